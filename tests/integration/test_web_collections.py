"""The pages of collections in a real browser: documents, graph, things, decisions, contradictions, SPARQL, questions."""

import re
import time
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from sameas.server.app import open_entry
from sameas.tenancy.directory import open_tables
from tests.integration.test_service_tenants import _enrol
from tests.integration.test_web_console import looked_at
from tests.servers.browser import WITHIN_MS, is_too_wide, open_browser, open_page, violations
from tests.servers.model_server import ModelServer
from tests.unit.server.house import EXAMPLE, TURTLE, WITHIN, running, settings_for

DOCUMENTS = sorted((EXAMPLE / "collection").glob("*.txt"))
QUERY = "SELECT ?company ?person { ?company :founder|:chiefExecutive ?person } LIMIT 50"
HOSTILE = "<img src=x onerror=alert(1)>.txt"
HOSTILE_TEXT = "Anna <script>alert(2)</script> Stone works for Acme Ltd. Acme Ltd was founded by Anna Stone."


class Place(NamedTuple):
    service: object
    browser: object
    id: str
    thing: str

    @property
    def address(self):
        return f"/api/v1/collections/{self.id}"


def fill(client, documents, **options):
    made = client.post("/api/v1/collections", json={"name": "harbour", "ontologyId": "company"}, **options)
    assert made.status_code == 201, made.text
    address = f"/api/v1/collections/{made.json()['id']}"
    added = client.post(f"{address}/documents", json={"documents": documents}, **options)
    assert added.status_code == 202, added.text
    wait(client, address, **options)
    return made.json()["id"]


def wait(client, address, **options):
    ends_at = time.monotonic() + WITHIN
    while client.get(f"{address}/sync", **options).json()["waiting"]:
        assert time.monotonic() < ends_at, "the documents were not read in time"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("collections")
    model = ModelServer({"sparql": QUERY})
    with model, running(home, models=model.address("tiny")) as service, open_browser() as browser:
        expect.set_options(timeout=WITHIN_MS)
        documents = [{"name": path.name, "text": path.read_text("utf-8")} for path in DOCUMENTS]
        documents.append({"name": HOSTILE, "text": HOSTILE_TEXT})
        id_ = fill(service.client, documents)
        place = Place(service, browser, id_, named(service.client, id_, "Tidewater Robotics")[0])
        # Documents give it two years of foundation: for the service two of a name, until somebody says that it is one.
        a, b = named(service.client, id_, "Solheim Foundation")
        decided = {"verdict": "same", "a": a, "b": b, "reason": "there is only one in Bergen"}
        assert service.client.post(f"{place.address}/decisions", json=decided).status_code == 201
        yield place


def named(client, id_, name):
    found = client.get(f"/api/v1/collections/{id_}/entities", params={"q": name}).json()["entities"]
    return [one["id"] for one in found if one["name"] == name]


@pytest.fixture
def page(place):
    with looked_at(place.browser, place.service.url) as one:
        yield one


def go(page, place, path=""):
    page.goto(f"/#/collections/{place.id}{path}")


PLACES = {
    "": "table",
    "/graph": ".things li",
    "/entities/{thing}": ".stated",
    "/pairs": ".ways",
    "/contradictions": ".claim-side",
    "/sparql": "textarea",
    "/ask": "form input",
}


@pytest.mark.parametrize("path", PLACES)
def test_every_page_is_accessible_in_light_and_dark_and_fits_a_telephone_and_a_wall(place, page, path):
    go(page, place, path.format(thing=place.thing))
    page.wait_for_selector(PLACES[path])
    for _ in ("light", "dark"):
        assert violations(page) == []
        page.get_by_role("button", name="colours").click()
    for width in (360, 2560):
        page.set_viewport_size({"width": width, "height": 740})
        assert not is_too_wide(page), width


def test_a_collection_is_made_and_filled_and_its_documents_are_read(place, page):
    page.goto("/#/collections")
    expect(page.locator(".collection-card")).to_have_count(1)
    page.get_by_role("button", name="New collection…").click()
    page.get_by_label("Name").fill("minutes 2026")
    page.get_by_label("Ontology").select_option(label="Companies and their people")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="minutes 2026")).to_be_visible()
    assert violations(page) == []
    page.get_by_label("Add documents…").set_input_files(
        [
            {"name": "one.txt", "mimeType": "text/plain", "buffer": b"Anna Stone works for Acme Ltd."},
            {"name": "two.html", "mimeType": "text/html", "buffer": b"<p>Acme Ltd is based in Paris.</p>"},
        ]
    )
    rows = page.locator(".table-frame[aria-label='Documents'] tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.locator(".badge", has_text="complete")).to_have_count(2)
    remove = rows.filter(has_text="two.html").get_by_role("button", name="Remove")
    remove.click()
    assert violations(page) == []
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(rows).to_have_count(2)
    remove.click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("two.html was removed.")).to_be_visible()
    expect(rows).to_have_count(1)


def test_on_a_telephone_the_page_that_one_is_on_is_seen_in_the_row_of_pages(place, page):
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("", "/contradictions", "/ask"):
        go(page, place, path)
        here = page.locator(".ways [aria-current]")
        expect(here).to_be_visible()
        page.wait_for_function(
            "() => { const box = document.querySelector('.ways [aria-current]').getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; }"
        )


def test_names_and_sentences_from_documents_are_text(place, page):
    go(page, place)
    expect(page.get_by_role("cell", name=HOSTILE)).to_be_visible()
    found = place.service.client.get(f"{place.address}/entities", params={"q": "Acme Ltd"}).json()["entities"]
    go(page, place, f"/entities/{found[0]['id']}")
    page.get_by_role("button", name="1 document").first.click()
    expect(page.locator(".sentences").first).to_contain_text(HOSTILE)


def test_the_graph_begins_with_the_most_connected_and_grows_by_choosing(place, page):
    go(page, place, "/graph")
    things = page.locator(".things li")
    expect(page.locator(".things")).to_contain_text("Tidewater Robotics")
    before = things.count()
    whole = place.service.client.get(place.address).json()["entities"]
    assert before < whole
    page.get_by_role("searchbox", name="Start from").fill("Leif Aune")
    page.keyboard.press("Enter")
    expect(page.locator(".things")).not_to_contain_text("Maria Okafor")
    few = things.count()
    page.locator(".things").get_by_role("button", name="Norhavn AS", exact=True).click()
    expect(page.locator(".things")).to_contain_text("Bergen")
    assert things.count() > few
    aside = page.get_by_role("complementary", name="Selection")
    expect(aside.get_by_role("heading", name="Norhavn AS")).to_be_visible()
    # A fact of the list shows the sentences that say it.
    aside.get_by_title("See its sentences").first.click()
    expect(aside.locator("blockquote").first).to_be_visible()


def test_a_thing_has_all_facts_with_their_sentences_by_document(place, page):
    go(page, place, f"/entities/{place.thing}")
    expect(page.get_by_role("heading", name="Tidewater Robotics").first).to_be_visible()
    expect(page).to_have_title("Tidewater Robotics · sameas")
    fact = page.locator(".stated", has_text="Maria Okafor").first
    fact.get_by_role("button").first.click()
    expect(fact.locator("blockquote").first).to_contain_text("Maria Okafor")
    expect(fact.locator(".source").first).to_contain_text(".txt")
    page.get_by_role("link", name="Show in the graph").click()
    expect(page.locator(".things")).to_contain_text("Tidewater Robotics")


def test_contradictions_show_both_sides(place, page):
    go(page, place, "/contradictions")
    one = page.locator("article", has_text="Solheim Foundation")
    expect(one.get_by_role("heading", name="2009")).to_be_visible()
    expect(one.get_by_role("heading", name="2011")).to_be_visible()
    expect(one.locator(".claim-side", has_text="2009").locator(".sentences")).to_contain_text("founders.txt")
    expect(one.locator(".claim-side", has_text="2011").locator(".sentences")).to_contain_text("prize.txt")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_file_of_a_collection_opens_from_disk_without_a_server(place, tmp_path, scheme):
    reply = place.service.client.get(f"{place.address}/export", params={"format": "html"})
    assert reply.headers["content-security-policy"] == "sandbox"
    assert "attachment" in reply.headers["content-disposition"]
    file = tmp_path / "collection.html"
    file.write_bytes(reply.content)
    assert "<script>alert" not in reply.text
    assert "<img src=x" not in reply.text
    with open_page(place.browser, file.as_uri(), offline=True, color_scheme=scheme) as page:
        page.get_by_role("heading", name="harbour").wait_for()
        things = page.locator(".things")
        expect(things).to_contain_text("Tidewater Robotics")
        page.locator(".canvas[data-settled]").wait_for()
        assert things.locator("li").count() < place.service.client.get(place.address).json()["entities"]
        page.get_by_role("searchbox", name="Start from").fill("Leif Aune")
        page.keyboard.press("Enter")
        expect(things).not_to_contain_text("Maria Okafor")
        few = things.locator("li").count()
        things.get_by_role("button", name="Norhavn AS", exact=True).click()
        expect(things).to_contain_text("Bergen")
        assert things.locator("li").count() > few
        aside = page.get_by_role("complementary", name="Selection")
        expect(aside.get_by_role("heading", name="Norhavn AS")).to_be_visible()
        aside.get_by_title("See its sentences").first.click()
        expect(aside.locator("blockquote").first).to_be_visible()
        expect(page.get_by_role("cell", name=HOSTILE)).to_be_visible()
        assert violations(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        assert not is_too_wide(page)


def test_a_collection_is_downloaded_in_every_format(place, page):
    go(page, place)
    page.get_by_role("button", name="Download").click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    for _ in ("light", "dark"):
        assert violations(page) == []
        page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    parts = {
        "nq": "company#founder> ",
        "ttl": "company#founder",
        "jsonl": '{"entity"',
        "csv": "Okafor",
        "html": "<!doctype",
    }
    assert dialog.locator(".downloads button").count() == len(parts)
    for suffix, part in parts.items():
        with page.expect_download() as download:
            dialog.get_by_role("button", name=f".{suffix}", exact=False).last.click()
        assert download.value.suggested_filename == f"harbour.{suffix}"
        assert part in download.value.path().read_text()


def test_a_doubtful_pair_is_decided_by_a_key_and_undone(place, page):
    pairs = place.service.client.get(f"{place.address}/pairs").json()["pairs"]
    assert pairs, "the documents have a pair in doubt"
    go(page, place, "/pairs")
    cards = page.locator(".twins")
    expect(cards).to_have_count(len(pairs))
    # A letter that is meant for something else decides nothing.
    page.get_by_role("button", name="Download").focus()
    page.keyboard.press("d")
    page.get_by_label("Reason").first.press("d")
    expect(page.get_by_label("Reason").first).to_have_value("d")
    expect(page.get_by_text("stay two")).to_have_count(0)
    cards.first.focus()
    page.keyboard.press("d")
    expect(page.get_by_text("stay two")).to_be_visible()
    expect(cards).to_have_count(len(pairs) - 1)
    expect(page.locator(".lines li")).to_have_count(2)
    page.locator(".lines li", has_text="different").get_by_role("button", name="Undo").click()
    expect(cards).to_have_count(len(pairs))
    expect(page.locator(".lines")).to_contain_text("undone")


def test_a_doubtful_pair_is_made_one_by_a_key_that_counts_once(place, page):
    pairs = place.service.client.get(f"{place.address}/pairs").json()["pairs"]
    decisions = f"{place.address}/decisions?undone=true&limit=50"
    before = len(place.service.client.get(decisions).json()["decisions"])
    go(page, place, "/pairs")
    cards = page.locator(".twins")
    expect(cards).to_have_count(len(pairs))
    cards.first.evaluate(
        """card => {
          for (let turn = 0; turn < 2; turn += 1) card.dispatchEvent(new KeyboardEvent("keydown", { key: "s", bubbles: true }));
        }"""
    )
    expect(page.get_by_text(" are one.")).to_be_visible()
    expect(cards).to_have_count(len(pairs) - 1)
    found = place.service.client.get(decisions).json()["decisions"]
    assert len(found) == before + 1
    page.locator(".lines li").first.get_by_role("button", name="Undo").click()
    expect(cards).to_have_count(len(pairs))


def test_the_graph_grows_by_a_click_on_its_canvas(place, page):
    go(page, place, "/graph?q=Leif%20Aune")
    things = page.locator(".things li")
    expect(things.first).to_be_visible()
    few = things.count()
    page.locator(".canvas[data-settled]").wait_for()
    norhavn = named(place.service.client, place.id, "Norhavn AS")[0]
    spot = page.evaluate("id => document.querySelector('.canvas').whereIs(id)", norhavn)
    page.locator(".canvas").hover(position=spot)
    page.locator(".canvas .clickable").wait_for()
    page.locator(".canvas").click(position=spot)
    expect(
        page.get_by_role("complementary", name="Selection").get_by_role("heading", name="Norhavn AS")
    ).to_be_visible()
    expect(page.locator(".things")).to_contain_text("Bergen")
    assert things.count() > few


def test_sparql_is_completed_from_the_ontology_and_answered_as_table_and_graph(place, page):
    go(page, place, "/sparql")
    editor = page.get_by_label("SPARQL")
    editor.fill("PREFIX : <https://sameas.dev/example/company#>\nSELECT ?company ?person { ?company chief")
    editor.press("End")
    editor.type(" ")
    editor.press("Backspace")
    option = page.get_by_role("option", name="chief executive")
    expect(option).to_have_attribute("aria-selected", "true")
    editor.press("Tab")
    expect(editor).to_have_value(
        "PREFIX : <https://sameas.dev/example/company#>\nSELECT ?company ?person { ?company :chiefExecutive "
    )
    editor.press_sequentially("?person }")
    editor.press("Control+Enter")
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    company = rows.filter(has_text="Tidewater Robotics").first
    expect(company).to_contain_text("Maria Okafor")
    # Names are for people; who wants the identity finds the whole of it.
    expect(company.get_by_role("link").first).to_have_attribute(
        "title", re.compile(r"^urn:sameas:\S*tidewater-robotics")
    )
    assert violations(page) == []
    page.get_by_role("tab", name="Graph").click()
    page.locator(".answer .canvas[data-settled]").wait_for()
    names = page.evaluate(
        "() => document.querySelector('.answer .canvas').chart.graphData().nodes.map((one) => one.name)"
    )
    assert {"Tidewater Robotics", "Maria Okafor"} <= set(names)
    # A query that is no query is answered with where it is wrong, and an update is refused.
    editor.fill("SELECT ?x {")
    editor.press("Control+Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    editor.fill("CONSTRUCT { ?a ?p ?b } WHERE { ?a ?p ?b . FILTER(isIRI(?b)) } LIMIT 20")
    editor.press("Control+Enter")
    expect(page.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "answer.csv"


def test_rows_of_sparql_have_names_and_prefixes_and_the_whole_iri_as_title(place, page):
    go(page, place, "/sparql")
    editor = page.get_by_label("SPARQL")
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    labelled = "https://sameas.dev/example/company#Company"
    editor.fill(
        f"PREFIX mine: <https://example.org/mine/>\nSELECT ?class ?type ?own ?other {{ VALUES (?class ?type ?own ?other)"
        f" {{ (<{labelled}> <http://www.w3.org/2002/07/owl#Class> mine:one <https://example.org/else/where>) }} }}"
    )
    editor.press("Control+Enter")
    cells = rows.first.locator("td")
    for at, (words, iri) in enumerate(
        (
            ("company", labelled),
            ("owl:Class", "http://www.w3.org/2002/07/owl#Class"),
            ("mine:one", "https://example.org/mine/one"),
            ("https://example.org/else/where", "https://example.org/else/where"),
        )
    ):
        expect(cells.nth(at)).to_have_text(words)
        expect(cells.nth(at).locator("[title]")).to_have_attribute("title", iri)


def test_a_question_is_answered_with_the_sentences_it_rests_on(place, page):
    go(page, place, "/ask")
    page.get_by_label("Question").fill("Who founded which company?")
    page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("Maria Okafor")
    expect(page.get_by_role("region", name="Sentences")).to_contain_text("was founded in 2012 by Maria Okafor")
    expect(page.get_by_role("region", name="Sentences")).to_contain_text("annual-report.txt")
    expect(page.get_by_role("region", name="Sentences")).to_contain_text(
        "Tidewater Robotics chief executive Maria Okafor"
    )
    assert violations(page) == []
    page.get_by_text("The query that was asked").click()
    page.get_by_role("link", name="Open it").click()
    expect(page.get_by_label("SPARQL")).to_have_value(QUERY)


def test_without_a_model_a_question_is_refused_with_what_to_do(place, tmp_path):
    with running(tmp_path) as service:
        id_ = fill(service.client, [{"name": "a.txt", "text": "Anna Stone works for Acme Ltd."}])
        refused = service.client.post(f"/api/v1/collections/{id_}/ask", json={"question": "Who?"})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:sameas:problem:no-model")
        with looked_at(place.browser, service.url) as page:
            page.goto(f"/#/collections/{id_}/ask")
            page.get_by_label("Question").fill("Who?")
            page.keyboard.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("no model configured")
            assert violations(page) == []


def test_two_tenants_see_nothing_of_each_others_collections(place, tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()
    entry = open_entry(settings_for(tmp_path, auth="api-key"))
    with running(tmp_path, entry=entry, auth="api-key") as service:
        service.client.put("/api/v1/ontologies/company", content=TURTLE, headers=one.admin)
        documents = [{"name": "secret.txt", "text": "Anna Stone works for Acme Ltd."}]
        id_ = fill(service.client, documents, headers=one.user)
        for who, sees in ((one, True), (two, False)):
            with looked_at(place.browser, service.url) as page:
                page.goto(f"/#/collections/{id_}")
                page.get_by_label("API key").fill(who.user["X-API-Key"])
                page.get_by_role("button", name="Sign in").click()
                if sees:
                    expect(page.get_by_role("cell", name="secret.txt")).to_be_visible()
                else:
                    expect(page.get_by_role("alert").first).to_be_visible()
                    expect(page.get_by_text("secret.txt")).to_have_count(0)
                page.goto("/#/collections")
                expect(page.get_by_role("heading", name="Collections")).to_be_visible()
                expect(page.locator(".collection-card")).to_have_count(1 if sees else 0)
