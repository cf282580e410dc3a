"""Debian's Chromium for tests of the web app, with an ear for everything that a page must not do.

    with open_browser() as browser, open_page(browser, url) as page: ...

A page that logs an error, breaks the policy, raises, or asks anybody but its server fails its test at the end.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from tests.servers.program import find_program, program_or_skip

AXE = (Path(__file__).resolve().parents[1] / "vendor" / "axe.min.js").read_text()
WITHIN_MS = 15_000


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser, or a skipped test where there is none."""
    with program_or_skip():
        program = find_program("chromium")
    with launched(program) as browser:
        yield browser


@contextmanager
def launched(program: Path) -> Iterator[Browser]:
    """The browser of a program."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(browser: Browser, url: str, *, forgiven: tuple[str, ...] = (), **options: Any) -> Iterator[Page]:
    """A page in a context of its own; `forgiven` are parts of messages that a test provokes."""
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, "reduced_motion": "reduce", **options})
    context.set_default_timeout(WITHIN_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"raised: {error}"))

    def logged(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(f"logged: {message.text}")

    def dismissed(dialog: Dialog) -> None:
        wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", logged)
    page.on("dialog", dismissed)
    own = urlsplit(url).netloc

    def asked(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != own:
            wrong.append(f"asked: {request.url}")

    page.on("request", asked)
    try:
        page.goto(url)
        yield page
    finally:
        context.close()
    wrong = [one for one in wrong if not any(part in one for part in forgiven)]
    assert not wrong, wrong


def violations(page: Page) -> list[Any]:
    """What axe-core finds, in short."""
    page.evaluate(AXE)
    found = page.evaluate(
        "async () => (await axe.run()).violations.map(one => [one.id, one.nodes.map(node => node.html.slice(0, 200))])"
    )
    return [json.dumps(one)[:600] for one in found]


def is_too_wide(page: Page) -> bool:
    """Whether the page itself has to be scrolled sideways."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")
    return wide
