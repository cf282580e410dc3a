"""The web app without a pointer: the clipboard, and what a reviewer does, by keys alone in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from sameas.server.app import open_entry
from tests.integration.test_web_app import FACTS, NAMES, STORY, entity, extract, show
from tests.servers.browser import WITHIN_MS, open_browser, open_page, violations
from tests.unit.server.house import running, settings_for
from tests.unit.server.scripted import Scripted, scripted_models

CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=WITHIN_MS)
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    home = tmp_path_factory.mktemp("keyboard")
    models = scripted_models(story=Scripted(NAMES, FACTS))
    with running(home, entry=open_entry(settings_for(home), models=models)) as opened:
        yield opened


@pytest.fixture
def page(browser, service):
    with open_page(browser, service.url, permissions=CLIPBOARD) as opened:
        opened.get_by_role("heading", name="Turn a text into a graph").wait_for()
        yield opened


def tab_to(page, wanted, most=150):
    """Goes on with the Tab key until the focus is on something of that role and name."""
    wanted.first.wait_for(state="attached")
    for _ in range(most):
        page.keyboard.press("Tab")
        if wanted.evaluate_all("all => all.includes(document.activeElement)"):
            return
    pytest.fail(f"{wanted} cannot be reached")


def test_a_text_is_pasted_and_a_link_is_copied(page, service):
    text = page.get_by_label("Text", exact=True)
    page.evaluate("words => navigator.clipboard.writeText(words)", STORY)
    page.bring_to_front()
    text.focus()
    page.keyboard.press("Control+V")
    expect(text).to_have_value(STORY)
    # What is pasted from a page or an office program is words, whatever it was there.
    page.evaluate(
        """async () => navigator.clipboard.write([new ClipboardItem({
          "text/html": new Blob(["<b>Anna</b> <i>Stone</i>"], { type: "text/html" }),
          "text/plain": new Blob(["Anna Stone"], { type: "text/plain" }),
        })])"""
    )
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")
    expect(text).to_have_value("Anna Stone")
    key = extract(service)
    acme = entity(service, key, "Acme GmbH")["id"]
    page.goto(show(service, key, min=0, s=f"e:{acme}"))
    page.get_by_role("heading", name="Acme GmbH").wait_for()
    tab_to(page, page.get_by_role("button", name="Copy link"))
    page.keyboard.press("Enter")
    page.get_by_text("Copied. The link opens this very view.").wait_for()
    link = page.evaluate("() => navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    page.get_by_role("heading", name="Acme GmbH").wait_for()


def test_entities_are_merged_and_split_with_the_keyboard_alone(page, service):
    key = extract(service, text=f"By hand. {STORY}", document="by-hand.txt")
    page.goto(show(service, key, min=0, tab="entities"))
    rows = page.locator("[data-entity]")
    rows.first.wait_for()
    before = rows.count()
    # The list is gone through like any list of buttons; Enter chooses.
    tab_to(page, rows.filter(has_text="北京大学"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("button", name="Merge"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Merge")
    # The dialog has the focus where it is needed, and its list is chosen from by typing.
    expect(dialog.get_by_label("The entity that stays")).to_be_focused()
    page.keyboard.type("Univ")
    expect(dialog.get_by_label("The entity that stays").locator("option:checked")).to_have_text(
        "Universität Bremen (university)"
    )
    tab_to(page, dialog.get_by_role("button", name="Merge them"), most=5)
    page.keyboard.press("Enter")
    page.get_by_text("Merged.").wait_for()
    expect(page.get_by_role("tab", name="Entities")).to_contain_text(str(before - 1))
    page.get_by_text("Also: 北京大学").wait_for()
    tab_to(page, page.get_by_role("button", name="Split"))
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Split")
    place = dialog.get_by_role("checkbox", name=re.compile("北京大学"))
    for _ in range(place.count() + dialog.get_by_role("checkbox").count()):
        if place.evaluate_all("all => all.includes(document.activeElement)"):
            break
        page.keyboard.press("Tab")
    # The second place is that of the other university.
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert violations(page) == []
    tab_to(page, dialog.get_by_label("Name of the other entity"), most=8)
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("北京大学")
    page.keyboard.press("Enter")
    page.get_by_text("Split.").wait_for()
    expect(page.get_by_role("tab", name="Entities")).to_contain_text(str(before))
    # Both are undone, the last first.
    tab_to(page, page.get_by_role("tab", selected=True))
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Decisions")).to_be_focused()
    for undone in (1, 2):
        tab_to(page, page.locator(".decisions li:not(.undone)").first.get_by_role("button", name="Undo"))
        page.keyboard.press("Enter")
        expect(page.locator(".decisions li.undone")).to_have_count(undone)
    expect(page.get_by_role("tab", name="Entities")).to_contain_text(str(before))


def test_escape_leaves_a_dialog_and_gives_the_focus_back(page, service):
    key = extract(service, text=f"To be left. {STORY}", document="left.txt")
    page.goto(show(service, key, min=0, tab="entities"))
    page.locator("[data-entity]").first.click()
    for name in ("Change class", "Merge", "Download"):
        button = page.get_by_role("button", name=name, exact=True)
        button.focus()
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(button).to_be_focused()
