"""`./run screenshots [PAGE ...]`: a picture of each page of the web app, light and dark, from a real service in a real
browser.

The service is filled with the documents that come along and with thirty days of invented hourly counts, so that the
charts have something to show; everything else is what the service made of it. Not a benchmark: nothing is measured.
Pictures look alike wherever they are made, because the fonts must be there; the command says which packages they are of.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, urljoin

from playwright.sync_api import Page, sync_playwright

from bench.web_demo import QUESTION, Demo, demo_service
from tests.servers.program import ProgramMissingError, find_program

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
WIDTH, HEIGHT = 1440, 900
# What Debian calls the packages of the fonts in the pictures; the story names a firm in Chinese.
FONTS = {
    "Inter": "fonts-inter",
    "Noto Serif": "fonts-noto-core",
    "WenQuanYi Micro Hei": "fonts-wqy-microhei",
    "DejaVu Sans Mono": "fonts-dejavu-core",
}
WITHIN = 30_000
# Milliseconds until charts are drawn and nothing moves any more.
SETTLE = 800
QUERY = """PREFIX : <https://sameas.dev/example/company#>

# Companies with their founders, and where they are based
SELECT ?company ?founder ?city {
  ?company :founder ?founder ;
           :headquarters ?city .
}
ORDER BY ?company"""


Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


class Shot(NamedTuple):
    """A page: where it is, what is there when it is ready, and what somebody does on it first."""

    address: str
    ready: str
    act: Callable[[Page], object] = lambda _: None


def main(*wanted: str) -> None:
    program, smaller = find_program("chromium"), required("pngquant", "pngquant")
    look_for_fonts()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, demo_service(Path(home)) as demo, browser(program) as page:
        for name, shot in pages(demo).items():
            if wanted and name not in wanted:
                continue
            for scheme in SCHEMES:
                path = FOLDER / f"{name}{'' if scheme == 'light' else '-dark'}.png"
                take(page, urljoin(f"{demo.url}/", shot.address), shot, scheme, path)
                subprocess.run([smaller, "--force", "--skip-if-larger", "--strip", "--ext", ".png", path], check=False)
                print(f"{path.relative_to(FOLDER.parents[1])}  {path.stat().st_size / 1000:.0f} kB", flush=True)


def take(page: Page, address: str, shot: Shot, scheme: Scheme, path: Path) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(shot.ready, timeout=WITHIN)
    shot.act(page)
    page.wait_for_timeout(SETTLE)
    page.screenshot(path=path)


def required(program: str, package: str) -> Path:
    try:
        return find_program(program)
    except ProgramMissingError:
        sys.exit(f"{program} is not on this machine. On Debian and Ubuntu: apt-get install {package}")


def look_for_fonts() -> None:
    """Ends with what to install where a font is missing."""
    lister = required("fc-list", "fontconfig")
    listed = subprocess.run([lister, ":", "family"], check=True, capture_output=True, text=True).stdout
    there = {family.strip() for line in listed.splitlines() for family in line.split(",")}
    missing = [package for family, package in FONTS.items() if family not in there]
    if missing:
        sys.exit(f"fonts of the pictures are missing. On Debian and Ubuntu: apt-get install {' '.join(missing)}")


def pages(demo: Demo) -> dict[str, Shot]:
    """Every page of the web app."""
    run, collection = demo.run, f"#/collections/{demo.collection}"
    return {
        # A part of a run is given up after a minute.
        "studio-live": Shot(demo.live, "mark"),
        "studio": Shot("#/", "textarea"),
        "studio-run": Shot(f"#/studio/{run}", ".canvas[data-settled]", _choose_fact),
        "studio-graph": Shot(f"#/studio/{run}", ".canvas[data-settled]", _enlarge),
        "studio-review": Shot(f"#/studio/{run}?tab=review", ".canvas[data-settled]"),
        "compare": Shot(f"#/compare?left={run}&right={demo.other}", ".difference"),
        "collections": Shot("#/collections", ".collection-card"),
        "collection-documents": Shot(collection, "table"),
        "collection-graph": Shot(f"{collection}/graph", ".canvas[data-settled]", _choose),
        "collection-entity": Shot(f"{collection}/entities/{demo.entity}", ".stated", _open_first_facts),
        "collection-pairs": Shot(f"{collection}/pairs", ".twins"),
        "collection-contradictions": Shot(f"{collection}/contradictions", ".claim-side"),
        "collection-sparql": Shot(f"{collection}/sparql", "textarea", _query),
        "collection-ask": Shot(f"{collection}/ask?q={quote(QUESTION)}", "form input", _ask),
        "runs": Shot("#/runs", ".u-wrap"),
        "run-timeline": Shot(f"#/runs/{run}/timeline", ".stage-table"),
        "keys": Shot("#/keys?hours=720", ".u-wrap"),
        "key-record": Shot("#/keys/record?key=order-2026-0815", ".record-words"),
        "ontologies": Shot("#/ontologies", "table"),
        "ontology-versions": Shot("#/ontologies/one?id=company", ".changes"),
        "health": Shot("#/health", ".u-wrap"),
        "sign-in": Shot(demo.door, ".signin"),
        "api": Shot("docs", ".opblock"),
    }


def _choose_fact(page: Page) -> None:
    page.get_by_role("tab", name="Relations").click()
    page.locator("[data-relation]", has_text="Hélène Aubert studied at").first.click()
    page.mouse.move(640, 130)


def _enlarge(page: Page) -> None:
    """The graph in the place of the text, with the best connected company chosen."""
    page.get_by_role("tab", name="Entities").click()
    page.locator("[data-entity]", has_text="Nordlicht Speicher").first.click()
    page.get_by_role("button", name="Enlarge").click()
    page.mouse.move(640, 880)


def _open_first_facts(page: Page) -> None:
    for number in (0, 1):
        page.locator(".stated button").nth(number).click()


def _choose(page: Page) -> None:
    page.locator(".things button", has_text="Tidewater Robotics").first.click()
    page.mouse.move(20, 430)
    page.evaluate("scrollTo(0, 190)")


def _query(page: Page) -> None:
    page.get_by_label("SPARQL").fill(QUERY)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector("[aria-label='Rows'] tbody tr", timeout=WITHIN)


def _ask(page: Page) -> None:
    page.get_by_role("button", name="Ask").click()
    page.wait_for_selector(".citations", timeout=WITHIN)


@contextmanager
def browser(program: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(program), args=["--force-color-profile=srgb"])
        context = chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        yield context.new_page()
        chromium.close()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ProgramMissingError as error:
        sys.exit(str(error))
