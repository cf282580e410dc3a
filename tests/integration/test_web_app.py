"""The web app in a real browser: from an empty page to a downloaded graph, and everything that may go wrong on the way."""

import base64
import io
import itertools
import json
import re
from datetime import UTC, datetime
from threading import Event, Semaphore

import httpx
import pytest
from playwright.sync_api import expect

from sameas.server.app import open_entry
from tests.integration.model_path import ORACLE, document
from tests.servers.browser import is_too_wide, open_browser, open_page, violations
from tests.servers.model_script import Step
from tests.servers.model_server import ModelServer
from tests.unit.extraction.text.test_inputs import pdf_of
from tests.unit.server.house import LONG, REQUEST, SLOW, TURTLE, Hold, running, settings_for
from tests.unit.server.scripted import Scripted, scripted_models

STORY = (
    "🏭 Universität Bremen and 北京大学 work together. In Bremen 🚀 מיכל כהן works for חברת אקמה today.\n\n"
    "Acme GmbH was founded by Anna Stone. Acme GmbH employs Anna Stone. Bob Miller works for Acme GmbH."
)
NAMES = {
    "Universität Bremen": "University",
    "Bremen": "City",
    "北京大学": "University",
    "מיכל כהן": "Person",
    "חברת אקמה": "Company",
    "Acme GmbH": "Company",
    "Anna Stone": "Person",
    "Bob Miller": "Person",
}
FACTS = (
    ("Universität Bremen", "headquarters", "Bremen", 0.7),
    ("מיכל כהן", "worksFor", "חברת אקמה", 0.8),
    ("Acme GmbH", "founder", "Anna Stone", 0.95),
    ("Bob Miller", "worksFor", "Acme GmbH", 0.6),
    ("Anna Stone", "birthPlace", "Acme GmbH", 0.9),
)
NASTY = '<script>alert(1)</script> & "Quoted" </mark><img src=x onerror=alert(2)> GmbH'
NASTY_TURTLE = r"""
@prefix : <https://example.org/bad#> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<https://example.org/bad> a owl:Ontology ; rdfs:label "<script>alert(3)</script> \" > '" .
:Thing a owl:Class ; rdfs:label "<img src=x onerror=alert(4)>" ; rdfs:comment "</script><script>alert(5)</script>" .
:knows a owl:ObjectProperty ; rdfs:label "</option><script>alert(6)</script>" ; rdfs:domain :Thing ; rdfs:range :Thing .
:x a :Thing ; rdfs:label "Quoted" .
"""


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def hold():
    return Hold()


@pytest.fixture(scope="module")
def service(tmp_path_factory, hold):
    home = tmp_path_factory.mktemp("app")
    scripts = scripted_models(story=Scripted(NAMES, FACTS), other=Scripted(NAMES, FACTS[1:], version="2"))

    def models(wish):
        return hold.extractor(wish) if wish.params.named_model == "held" else scripts(wish)

    with running(home, entry=open_entry(settings_for(home), models=models)) as opened:
        yield opened
        hold.let_go()


def extract(service, text=STORY, model="story", **changes):
    request = {"text": text, "ontologyId": "company", "extractionParams": {"extractor": "model", "model": model}}
    answer = service.client.post("/api/v1/extract", json={**request, **changes})
    assert answer.status_code == 200, answer.text
    return answer.json()["idempotencyKey"]


def show(service, key, **query):
    return f"{service.url}/#/studio/{key}?{'&'.join(f'{name}={value}' for name, value in query.items())}"


def entity(service, key, name):
    view = service.client.get(f"/api/v1/runs/{key}/view").json()
    return next(one for one in view["entities"] if one["name"] == name)


def marked(page, name):
    """The stretches of the text that are stressed, joined."""
    page.locator("mark.chosen").first.wait_for()
    return page.locator("mark.chosen").all_inner_texts()


def test_a_newcomer_goes_from_an_empty_page_to_a_downloaded_graph(browser, service):
    with open_page(browser, service.url) as page:
        page.get_by_label("Text", exact=True).fill(REQUEST["text"])
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "firms.ttl", "mimeType": "text/turtle", "buffer": TURTLE}]
        )
        page.get_by_text("The ontology firms is registered.").wait_for()
        assert page.get_by_role("combobox", name="Ontology").input_value() == "firms"
        page.get_by_role("combobox", name="Extractor").select_option("lexicon")
        page.get_by_text("no call of a model, no cost").wait_for()
        page.get_by_role("button", name="Extract the graph").click()
        page.get_by_role("button", name="Download").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Turtle").click()
        graph = download.value.path().read_text()
        assert download.value.suggested_filename.endswith(".ttl")
        assert "Anna Stone" in graph
        assert "company#worksFor" in graph


def test_the_example_is_three_clicks_away_from_a_graph(browser, tmp_path):
    with running(tmp_path) as fresh, open_page(browser, fresh.url) as page:
        page.get_by_role("button", name="Try the example").click()
        page.get_by_text("The ontology example-company is registered.").wait_for()
        page.get_by_text("no call of a model, no cost").wait_for()
        page.get_by_role("button", name="Extract the graph").click()
        page.get_by_role("heading", name="story.txt").wait_for()
        page.locator("mark", has_text="Nordlicht Speicher").first.click()
        page.get_by_role("heading", name="Nordlicht Speicher").wait_for()
        page.get_by_role("link", name="Studio").click()
        # The same work again is known before it is asked for.
        page.get_by_text("This was extracted before").wait_for()


def drop(page, files):
    """Files from outside, let go over the page."""
    given = [[name, base64.b64encode(data).decode()] for name, data in files.items()]
    page.evaluate(
        """given => {
          const files = new DataTransfer();
          for (const [name, data] of given) files.items.add(new File([Uint8Array.from(atob(data), c => c.charCodeAt(0))], name));
          document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true }));
        }""",
        given,
    )


def test_files_are_read_where_they_are_dropped(browser, service):
    docx = pytest.importorskip("docx")
    document, whole = docx.Document(), io.BytesIO()
    document.add_paragraph("Anna Stone works for Acme Ltd in a DOCX.")
    document.save(whole)
    page_of = b"<html><body><p>Anna Stone works for Acme Ltd in HTML.</p><script>alert(1)</script></body></html>"
    with open_page(browser, service.url, forgiven=("422",)) as page:
        choose, text = page.get_by_label("Open a file"), page.get_by_label("Text", exact=True)
        files = {
            "a.docx": (whole.getvalue(), "in a DOCX."),
            "b.html": (page_of, "in HTML."),
            "c.pdf": (pdf_of("Anna Stone works for Acme Ltd in a PDF."), "in a PDF."),
        }
        for name, (data, said) in files.items():
            choose.set_input_files(files=[{"name": name, "mimeType": "", "buffer": data}])
            page.wait_for_function("said => document.getElementById('source')?.value.endsWith(said)", arg=said)
            assert "alert" not in text.input_value()
        # Dropped, not chosen: each kind of document, and a text with an ontology at once.
        for name, (data, said) in files.items():
            text.fill("")
            drop(page, {name: data})
            page.wait_for_function("said => document.getElementById('source')?.value.endsWith(said)", arg=said)
            assert page.get_by_label("Name of the document").input_value() == name
        drop(page, {"c.txt": b"Dropped words.", "dropped.ttl": TURTLE})
        page.wait_for_function("() => document.getElementById('source')?.value === 'Dropped words.'")
        page.get_by_text("The ontology dropped is registered.").wait_for()
        choose.set_input_files(files=[{"name": "d.pdf", "mimeType": "", "buffer": b"%PDF-1.7 no more"}])
        page.get_by_role("alert").wait_for()


def test_a_slow_run_shows_its_progress_survives_a_reload_and_is_cancelled(browser, service, hold):
    request = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW, "document": "slow.txt"}
    answer = service.client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async"})
    key = answer.json()["idempotencyKey"]
    assert hold.reached.wait(30)
    with open_page(browser, show(service, key)) as page:
        for _ in range(2):
            page.get_by_text("entity extraction").first.wait_for()
            page.locator("mark").first.wait_for()
            page.get_by_role("tab", name="Entities").click()
            page.locator("[data-entity]").first.wait_for()
            page.locator(".progress").get_by_text(re.compile(r"^[1-9]\d* entit(y|ies), 0 relations so far$")).wait_for()
            assert 0 < int(page.get_by_role("progressbar").get_attribute("aria-valuenow")) < 100
            page.reload()
        page.get_by_role("button", name="Cancel the run").click()
        page.get_by_text("Not all of it was done").wait_for()
    hold.let_go()


def test_the_limits_of_a_model_are_told_while_a_run_waits(browser, tmp_path):
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address("tiny"), model_requests_per_minute=1) as limited,
        open_page(browser, limited.url) as page,
    ):
        page.get_by_role("textbox", name="Text", exact=True).fill(document(20))
        page.get_by_role("combobox", name="Ontology").select_option("company")
        page.get_by_role("combobox", name="Extractor").select_option("model")
        assert page.get_by_label("Model", exact=True).input_value() == "compatible:tiny"
        page.get_by_text(re.compile(r"\d+ calls?, about [\d,]+ tokens")).wait_for()
        page.get_by_role("button", name="Extract the graph").click()
        page.get_by_text("no more requests").wait_for()
        page.get_by_role("button", name="Cancel the run").click()
        page.get_by_text("Not all of it was done").wait_for()


def test_a_budget_that_is_nearly_spent_is_told_while_the_run_goes_on(browser, tmp_path):
    went_on, first = Event(), Semaphore(1)

    def reply(call):
        # The calls after the first wait until somebody has seen what the first one took.
        gate = None if first.acquire(blocking=False) else went_on
        return Step(reply=ORACLE(call), usage=(4_000, 90), gate=gate)

    with (
        ModelServer(reply) as model,
        running(tmp_path, models=model.address("tiny"), tenant_tokens_per_day=20_000) as one,
    ):
        params = {"extractor": "model", "concurrency": 1}
        request = {"text": document(2), "ontologyId": "company", "extractionParams": params}
        answer = one.client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async"})
        with open_page(browser, show(one, answer.json()["idempotencyKey"])) as page:
            page.locator(".progress .notice", has_text="The budget is nearly spent").wait_for()
            went_on.set()
            page.get_by_role("button", name="Download").wait_for()


def test_a_new_version_of_an_ontology_is_asked_for(browser, service):
    changed = TURTLE.replace(b'"sodium"@en', b'"soda"@en')
    entry = service.client.get("/api/v1/ontologies/company").json()
    with open_page(browser, service.url) as page:
        page.get_by_role("option", name=re.compile("^company")).wait_for(state="attached")
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "company.ttl", "mimeType": "", "buffer": changed}]
        )
        page.get_by_role("button", name="Keep the present one").click()
        assert service.client.get("/api/v1/ontologies/company").json()["version"] == entry["version"]
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "broken.ttl", "mimeType": "", "buffer": b"no turtle <"}]
        )
        page.get_by_role("alert").get_by_text("broken.ttl, line 1").wait_for()


def test_text_graph_and_ontology_show_the_same_thing(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0)) as page:
        overlap = page.locator("mark.overlap")
        overlap.first.wait_for()
        # Offsets behind emoji, Chinese and Hebrew are those of the words.
        for name in NAMES:
            assert any(name in text or text in name for text in page.locator("mark").all_inner_texts())
        assert overlap.first.inner_text() == "Bremen"
        overlap.first.click()
        page.get_by_role("heading", name="Bremen", exact=True).wait_for()
        overlap.first.click()
        page.get_by_role("heading", name="Universität Bremen", exact=True).wait_for()
        assert "".join(marked(page, "Universität Bremen")) == "Universität Bremen"
        # From the text of the right-to-left name to its fact, and from the fact to its words.
        page.locator("mark", has_text="מיכל כהן").click()
        page.get_by_role("heading", name="מיכל כהן").wait_for()
        page.locator("[data-relation]").first.click()
        page.locator(".area-text .evidence").first.wait_for()
        underlaid = page.locator(".area-text .evidence, .area-text mark.in-evidence").all_inner_texts()
        assert "".join(underlaid) == "מיכל כהן works for חברת אקמה"
        # From the graph, by a click on the canvas, to every place of a repeated name.
        page.locator(".canvas[data-settled]").wait_for()
        acme = entity(service, key, "Acme GmbH")
        spot = page.evaluate("id => document.querySelector('.canvas').whereIs(id)", acme["id"])
        page.locator(".canvas").hover(position=spot)
        page.locator(".canvas .clickable").wait_for()
        page.locator(".canvas").click(position=spot)
        page.get_by_role("heading", name="Acme GmbH").wait_for()
        assert marked(page, "Acme GmbH") == ["Acme GmbH"] * 3
        # From the ontology to the things of a class, those below it too.
        page.get_by_role("button", name=re.compile(r"^organization\s*4$")).click()
        page.get_by_role("heading", name="4 entities").wait_for()
        assert set(marked(page, "")) >= {"北京大学", "חברת אקמה", "Acme GmbH"}
        # A refused claim has its reason.
        page.get_by_role("tab", name="Refused").click()
        page.locator("[data-refused]", has_text="Anna Stone").click()
        page.get_by_text("the object is of the wrong class").first.wait_for()


def test_a_link_opens_the_same_view_and_filters_narrow_it(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0, tab="relations")) as page:
        page.locator("[data-relation]").nth(3).wait_for()
        page.get_by_label("Least confidence").fill("0.75")
        page.wait_for_function("() => document.querySelectorAll('[data-relation]').length === 2")
        page.get_by_role("combobox", name="Property").select_option(label="works for (2)")
        page.wait_for_function("() => document.querySelectorAll('[data-relation]').length === 1")
        page.locator("[data-relation]").click()
        page.get_by_text("Said here").wait_for()
        page.wait_for_function("() => location.hash.includes('s=r')")
        address = page.url
    with open_page(browser, address) as page:
        page.get_by_text("Said here").wait_for()
        page.get_by_role("tab", name="Relations").click()
        assert page.locator("[data-relation]").count() == 1
        search = page.get_by_label("Search entities and relations")
        search.fill("אקמה")
        page.wait_for_function("() => document.querySelectorAll('[data-relation]').length === 1")
        search.fill("nothing like it")
        page.get_by_text("No relations fit").wait_for()


def test_classes_and_statuses_narrow_text_graph_and_lists(browser, service):
    key = extract(service, text=f"To be narrowed. {STORY}", document="narrowed.txt")
    relations, entities = (
        "() => document.querySelectorAll('[data-relation]').length === {}",
        ("() => document.querySelectorAll('[data-entity]').length === {}"),
    )
    with open_page(browser, show(service, key, min=0, tab="relations")) as page:
        page.locator("[data-relation]").nth(3).wait_for()
        page.get_by_role("combobox", name="Class").select_option(label="city (1)")
        page.wait_for_function(relations.format(1))
        assert "Bremen" in page.locator("[data-relation]").inner_text()
        page.get_by_role("tab", name="Entities").click()
        page.wait_for_function(entities.format(1))
        assert set(page.locator("mark").all_inner_texts()) == {"Bremen"}
        page.get_by_role("img", name="Graph of 1 entity").wait_for()
        # A class has what is below it.
        page.get_by_role("combobox", name="Class").select_option(label="organization (4)")
        page.wait_for_function(entities.format(4))
        page.get_by_role("combobox", name="Class").select_option(label="Every class")
        page.get_by_role("tab", name="Review").click()
        page.get_by_role("group", name="Review queue").get_by_role("button", name="Accept").click()
        page.get_by_text("Accepted.").first.wait_for()
        page.get_by_role("tab", name="Relations").click()
        for status, count in (("reviewed", 1), ("not reviewed", 3), ("grounded", 4), ("unverified", 0)):
            page.get_by_role("combobox", name="Status").select_option(label=status)
            page.wait_for_function(relations.format(count))
        page.get_by_role("button", name="Clear").click()
        page.wait_for_function(relations.format(4))


def test_a_run_is_downloaded_in_every_format(browser, service):
    key = extract(service, text=f"To be downloaded. {STORY}", document="all.txt")
    buttons = {
        "Turtle": (".ttl", "company#founder"),
        "JSON-LD": (".jsonld", "company#founder"),
        "N-Quads": (".nq", "company#founder> "),
        "GraphML": (".graphml", "<graphml"),
        "CSV": (".csv", "Anna Stone"),
        "Cypher": (".cypher", "MERGE"),
        "JSON .json": (".json", '"entities"'),
        "One HTML file": (".html", "<!doctype html>"),
    }
    with open_page(browser, show(service, key)) as page:
        page.get_by_role("button", name="Download").click()
        dialog = page.get_by_role("dialog")
        assert dialog.locator(".downloads button").count() == len(buttons)
        for name, (suffix, part) in buttons.items():
            with page.expect_download() as download:
                dialog.get_by_role("button", name=name).click()
            assert download.value.suggested_filename == f"all{suffix}"
            assert part in download.value.path().read_text()


def test_decisions_are_checked_kept_undone_and_hold_for_the_next_run(browser, service):
    began = datetime.now(UTC)
    text = f"Of another document. {STORY}"
    key = extract(service, text=text, document="reviewed.txt")
    with open_page(browser, show(service, key, min=0, tab="review"), forgiven=("422",)) as page:
        queue = page.get_by_role("group", name="Review queue")
        # The least sure is first.
        queue.get_by_role("heading", name="Bob Miller works for Acme GmbH").wait_for()
        queue.press("r")
        page.get_by_text("Rejected.").first.wait_for()
        queue.get_by_role("heading", name="Universität Bremen headquarters Bremen").wait_for()
        queue.press("a")
        page.get_by_text("Accepted.").first.wait_for()
        queue.press("u")
        page.get_by_text("Undone.").first.wait_for()
        queue.get_by_role("heading", name="Universität Bremen headquarters Bremen").wait_for()
        queue.press("a")
        queue.get_by_role("heading", name="מיכל כהן works for חברת אקמה").wait_for()
        # What the ontology does not allow is refused, with the reason.
        page.get_by_role("tab", name="Entities").click()
        page.locator("[data-entity]", has_text="Anna Stone").click()
        page.get_by_role("button", name="Change class").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("combobox", name="Class").select_option(label="city")
        dialog.get_by_role("button", name="Change the class").click()
        dialog.get_by_text("first reject or correct what would not fit").wait_for()
        dialog.get_by_role("button", name="Cancel").click()
        # A missed fact, from words that are selected.
        page.evaluate(
            """() => {
              const walker = document.createTreeWalker(document.querySelector(".reading"), NodeFilter.SHOW_TEXT);
              const nodes = [];
              while (walker.nextNode()) nodes.push(walker.currentNode);
              const last = nodes[nodes.length - 1], range = document.createRange();
              range.setStart(nodes.findLast(node => node.data.includes("Bob Miller")), 0);
              range.setEnd(last, last.length);
              getSelection().removeAllRanges();
              getSelection().addRange(range);
              document.querySelector(".text-pane").dispatchEvent(new MouseEvent("mouseup", { bubbles: true }));
            }"""
        )
        page.get_by_role("button", name="Add a relation from these words").click()
        dialog.get_by_text("Bob Miller works for Acme GmbH.").wait_for()
        dialog.get_by_role("combobox", name="Subject").select_option(label="Acme GmbH (company)")
        dialog.get_by_role("combobox", name="Property").select_option(label="founder")
        dialog.get_by_role("combobox", name="Object").select_option(label="Bob Miller (person)")
        dialog.get_by_role("button", name="Add it").click()
        page.get_by_text("Added.").first.wait_for()
        page.get_by_role("tab", name="Decisions").click()
        assert page.locator(".decisions li.applied").count() == 3
        assert page.locator(".decisions li.undone").count() == 1
        last = page.locator(".decisions li").first
        assert "local, " in last.inner_text()
        decided_at = datetime.fromisoformat(last.locator("time").get_attribute("datetime"))
        assert began <= decided_at <= datetime.now(UTC)
        # What was decided is what one is given, and examples of it.
        page.get_by_role("button", name="Download").click()
        given = {}
        for name in ("CSV", "examples.jsonl"):
            with page.expect_download() as download:
                dialog.get_by_role("button", name=name).click()
            given[name] = download.value.path().read_bytes().decode()
    reviewed = service.client.get(f"/api/v1/runs/{key}/graph", params={"format": "csv", "version": "reviewed"}).text
    found = service.client.get(f"/api/v1/runs/{key}/graph", params={"format": "csv"}).text
    assert ("Bob Miller" in found, reviewed == found) == (True, False)
    assert given["CSV"] == reviewed
    assert given["examples.jsonl"] == service.client.get(f"/api/v1/runs/{key}/examples").text
    # Another run of the document, by another model: the decisions are there, and what fits no more is said.
    again = extract(service, text=text, model="other", document="reviewed.txt")
    assert again != key
    with open_page(browser, show(service, again, tab="decisions")) as page:
        page.get_by_text("no longer fits").wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.locator("[data-relation]", has_text="founder").nth(1).wait_for()
        expect(page.locator("[data-relation]", has_text="Bob Miller").first).to_have_text(re.compile(r"^\s*Acme GmbH"))
        # Once more from the page itself, with the lexicon.
        page.get_by_role("link", name="Run again").click()
        page.wait_for_function("() => document.getElementById('source')?.value.startsWith('Of another document.')")
        page.get_by_role("combobox", name="Extractor").select_option("lexicon")
        page.get_by_role("button", name="Extract the graph").click()
        page.get_by_role("button", name="Download").wait_for()
        page.get_by_role("tab", name="Decisions").click()
        page.locator(".decisions li").nth(3).wait_for()
    examples = service.client.get(f"/api/v1/runs/{again}/examples").text.splitlines()
    assert ["Acme GmbH", "https://sameas.dev/example/company#founder", "Bob Miller"] in [
        triple for line in examples for triple in json.loads(line)["triples"]
    ]


def test_the_queue_is_gone_through_with_keys(browser, service):
    key = extract(service, text=f"By keys. {STORY}", document="keys.txt")
    with open_page(browser, show(service, key, min=0, tab="review")) as page:
        queue = page.get_by_role("group", name="Review queue")
        facts = (
            "Bob Miller works for Acme GmbH",
            "Universität Bremen headquarters Bremen",
            "מיכל כהן works for חברת אקמה",
        )
        for pressed, shown in (("", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0)):
            if pressed:
                queue.press(pressed)
            queue.get_by_role("heading", name=facts[shown]).wait_for()
        # After a decision comes the next, and not the first again; a key that is pressed twice decides once.
        queue.press("j")
        queue.get_by_role("heading", name=facts[1]).wait_for()
        page.evaluate(
            """() => {
              const press = () => document.querySelector(".queue").dispatchEvent(new KeyboardEvent("keydown", { key: "r", bubbles: true }));
              press();
              press();
            }"""
        )
        queue.get_by_role("heading", name=facts[2]).wait_for()
        page.get_by_role("tab", name=re.compile("^Decisions")).get_by_text("1", exact=True).wait_for()
        queue.press("c")
        dialog = page.get_by_role("dialog", name="Correct the relation")
        dialog.wait_for()
        # The form is at hand, and not the way out of it.
        assert page.evaluate("() => document.activeElement.closest('.dialog-body') !== null")
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")


def test_a_relation_is_chosen_by_its_line_on_the_canvas(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0)) as page:
        page.locator(".canvas[data-settled]").wait_for()
        ends = [entity(service, key, name)["id"] for name in ("Universität Bremen", "Bremen")]
        one, other = (page.evaluate("id => document.querySelector('.canvas').whereIs(id)", id_) for id_ in ends)
        middle = {axis: (one[axis] + other[axis]) / 2 for axis in ("x", "y")}
        page.locator(".canvas").hover(position=middle)
        page.locator(".canvas .clickable").wait_for()
        page.locator(".canvas").click(position=middle)
        page.get_by_role("heading", name="Universität Bremen headquarters Bremen").wait_for()
        page.get_by_text("Said here").wait_for()


def test_a_key_that_is_held_down_goes_on_from_mention_to_mention(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0)) as page:
        page.locator("mark").first.wait_for()
        # A browser lets an address change 200 times in ten seconds and no more.
        chosen = page.evaluate(
            """async () => {
              const text = document.querySelector(".text-pane"), seen = [];
              for (let turn = 0; turn < 260; turn += 1) {
                text.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true }));
                await new Promise(requestAnimationFrame);
                if (turn >= 240) seen.push([...document.querySelectorAll("mark.chosen")].map((one) => one.dataset.entities).join());
              }
              return seen;
            }"""
        )
        assert sum(before != after for before, after in itertools.pairwise(chosen)) > 10
        # The address follows, so that it can be handed on.
        heading = page.locator(".details h2").inner_text()
        page.wait_for_timeout(300)
        page.reload()
        page.get_by_role("heading", name=heading, exact=True).wait_for()


def test_files_beside_the_places_for_them_do_not_take_the_page_away(browser, service):
    with open_page(browser, service.url) as page:
        text = page.get_by_label("Text", exact=True)
        text.fill("Typed with care.")
        stopped = page.evaluate(
            """() => ["dragover", "drop"].map((type) => {
              const files = new DataTransfer();
              files.items.add(new File(["x"], "x.txt"));
              return !document.querySelector("h1").dispatchEvent(new DragEvent(type, { dataTransfer: files, bubbles: true, cancelable: true }));
            })"""
        )
        assert stopped == [True, True]
        # A look elsewhere costs nothing.
        page.get_by_role("link", name="Ontologies").click()
        page.get_by_role("heading", name="Ontologies").wait_for()
        page.get_by_role("link", name="Studio").click()
        assert text.input_value() == "Typed with care."
        page.get_by_role("button", name="Clear").click()
        assert text.input_value() == ""
        drop(page, {"one.txt": b"The first.", "two.txt": b"The second."})
        page.get_by_text("Studio reads one document at a time: one.txt.").wait_for()
        page.wait_for_function("() => document.getElementById('source')?.value === 'The first.'")


def test_a_key_is_shown_where_the_browser_lends_no_clipboard(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key)) as page:
        page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.get_by_role("button", name=key[7:19], exact=True).click()
        page.locator(".toast", has_text=key).wait_for()
        page.get_by_role("button", name="Copy link").click()
        page.locator(".toast", has_text=f"#/studio/{key}").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_with_nothing_to_show_are_for_everybody_and_say_what_to_do(browser, tmp_path, scheme):
    told = {
        "#/": "Still needed: a text and an ontology.",
        "#/compare": "Two runs are needed",
        "#/runs": "No run yet: paste a text in the Studio.",
        "#/keys": "No record yet. Every run makes one",
        "#/health": "No model was asked since the start.",
        "#/studio/00000000": "there is no run",
        "#/runs/00000000/timeline": "there is no run",
        "#/ontologies/one?id=nothing": "This ontology cannot be shown",
        "#/collections/00000000": "This collection cannot be shown",
        "#/keys/record?key=nothing": "This record cannot be shown",
        "#/nowhere": "There is no such page",
    }
    with running(tmp_path) as fresh, open_page(browser, fresh.url, color_scheme=scheme, forgiven=("404",)) as page:
        page.goto(f"{fresh.url}/#/collections")
        page.get_by_text("No collection yet").wait_for()
        assert violations(page) == []
        empty = fresh.client.post("/api/v1/collections", json={"name": "new", "ontologyId": "company"}).json()["id"]
        for part in ("graph", "pairs", "contradictions", "sparql", "ask"):
            told[f"#/collections/{empty}/{part}"] = "No document yet"
        told[f"#/collections/{empty}"] = "No document yet: drop some above."
        page.goto(f"{fresh.url}/#/collections/{empty}/pairs")
        page.get_by_role("link", name="Add documents").click()
        page.get_by_text("or drop them here").wait_for()
        for address, words in told.items():
            page.set_viewport_size({"width": 1280, "height": 800})
            page.goto(f"{fresh.url}/{address}")
            page.get_by_text(words).first.wait_for()
            assert violations(page) == [], address
            page.set_viewport_size({"width": 360, "height": 740})
            assert not is_too_wide(page), address


def test_the_api_s_own_page_is_dark_where_the_app_is(browser, service):
    for scheme, is_light in (("light", True), ("dark", False)):
        with open_page(browser, f"{service.url}/docs", color_scheme=scheme) as page:
            page.get_by_text("/api/v1/extract", exact=True).wait_for()
            ground = page.evaluate(
                "() => getComputedStyle(document.querySelector('.swagger-ui')).backgroundColor + getComputedStyle(document.body).backgroundColor"
            )
            assert ("255, 255, 255" in ground) == is_light, ground


def test_things_are_merged_split_and_corrected(browser, service):
    key = extract(service, text=STORY + " The end.", document="things.txt")
    with open_page(browser, show(service, key, min=0, tab="entities")) as page:
        page.locator("[data-entity]", has_text="北京大学").click()
        page.get_by_role("button", name="Merge").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("The entity that stays").select_option(label="Universität Bremen (university)")
        dialog.get_by_role("button", name="Merge them").click()
        page.get_by_text("Merged.").wait_for()
        page.get_by_role("tab", name="Entities").click()
        page.locator("[data-entity]", has_text="Universität Bremen").click()
        page.get_by_text("Also: 北京大学").wait_for()
        page.get_by_role("button", name="Split").click()
        dialog.get_by_role("checkbox").nth(1).check()
        dialog.get_by_label("Name of the other entity").fill("北京大学")
        dialog.get_by_role("button", name="Split it").click()
        page.get_by_text("Split.").wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.locator("[data-relation]", has_text="Bob Miller").click()
        page.get_by_role("button", name="Correct").click()
        dialog.get_by_role("combobox", name="Subject").select_option(label="Anna Stone (person)")
        dialog.get_by_role("button", name="Correct it").click()
        page.get_by_text("Corrected.").wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.locator("[data-relation]", has_text="Anna Stone works for Acme GmbH").wait_for()
        # 北京大学 stands apart again; it is given a class that the ontology allows, and has its own back.
        page.get_by_role("tab", name="Entities").click()
        beijing = page.locator("[data-entity]", has_text="北京大学")
        beijing.click()
        page.get_by_role("button", name="Change class").click()
        dialog.get_by_role("combobox", name="Class").select_option(label="company")
        dialog.get_by_role("button", name="Change the class").click()
        page.get_by_text("Class changed.").wait_for()
        page.get_by_role("tab", name="Entities").click()
        beijing.locator(".item-note", has_text="company").wait_for()
        page.get_by_role("tab", name=re.compile("^Decisions")).click()
        # The last decision first: the class, the correction, the split; then all of them is undone.
        for _ in range(4):
            undone = page.locator(".decisions li.undone").count()
            page.locator(".decisions li:not(.undone)").first.get_by_role("button", name="Undo").click()
            page.wait_for_function(
                "before => document.querySelectorAll('.decisions li.undone').length === before + 1", arg=undone
            )
        page.get_by_role("tab", name="Entities").click()
        beijing.locator(".item-note", has_text="university").wait_for()
        assert beijing.count() == 1


def test_two_runs_are_compared_in_colours_and_numbers(browser, service):
    left, right = extract(service), extract(service, model="other")
    with open_page(browser, f"{service.url}/#/compare?left={left}&right={right}") as page:
        page.get_by_text("− 1 relation").wait_for()
        assert page.locator(".side-gone").inner_text().endswith("Universität Bremen headquarters Bremen")
        page.get_by_role("button", name="In both").click()
        page.locator(".side-same").nth(2).wait_for()
        assert violations(page) == []


def test_two_ways_of_asking_a_model_are_compared(browser, tmp_path):
    def reply(call):
        # Asked for all at once it forgets the last fact.
        said = ORACLE(call)
        return {**said, "relations": said["relations"][:-1]} if call.schema_name == "JointReply" else said

    with ModelServer(reply) as model, running(tmp_path, models=model.address("tiny")) as one:
        runs = []
        for mode in ("two-stage", "joint"):
            params = {"extractor": "model", "mode": mode}
            request = {"text": document(3), "ontologyId": "company", "extractionParams": params}
            runs.append(one.client.post("/api/v1/extract", json=request).json()["idempotencyKey"])
        with open_page(browser, f"{one.url}/#/compare?left={runs[0]}&right={runs[1]}") as page:
            page.get_by_text("− 1 relation", exact=True).wait_for()
            page.get_by_text("+ 0 relations", exact=True).wait_for()
            assert page.locator(".side-gone").inner_text().endswith("Stone works for Acme2 Robotics")


def test_a_run_is_compared_with_that_on_the_next_version_of_its_ontology(browser, service):
    ontology = TURTLE.replace(b"https://sameas.dev/example/company>", b"https://sameas.dev/example/growing>")
    runs = []
    # The old version knows no founders, the new one nobody who works for anybody.
    for unknown in (b":founder a", b":worksFor a"):
        changed = ontology.replace(unknown, b":unheardOf a")
        assert service.client.put("/api/v1/ontologies/growing", content=changed).status_code in (200, 201)
        runs.append(extract(service, ontologyId="growing"))
    with open_page(browser, f"{service.url}/#/compare?right={runs[1]}") as page:
        # The two differ in nothing else that the choice could show.
        older = page.get_by_role("combobox", name="Left").locator("option", has_text="growing · superseded")
        older.wait_for(state="attached")
        assert older.get_attribute("value") == runs[0]
        page.get_by_role("combobox", name="Left").select_option(older.inner_text())
        page.get_by_text("− 2 relations").wait_for()
        page.get_by_text("+ 1 relation", exact=True).wait_for()
        page.get_by_text("= 1 relation", exact=True).wait_for()
        page.get_by_text("25 % the same; entities: 100 % the same").wait_for()
        gone, added = page.locator(".side-gone"), page.locator(".side-added")
        stated = [[one.rpartition("\n")[2] for one in rows.all_inner_texts()] for rows in (gone, added)]
        assert stated == [
            ["מיכל כהן works for חברת אקמה", "Bob Miller works for Acme GmbH"],
            ["Acme GmbH founder Anna Stone"],
        ]
        colours = {one.evaluate("row => getComputedStyle(row).backgroundColor") for one in (gone.first, added)}
        assert len(colours) == 2
        assert violations(page) == []


def test_a_run_as_found_is_compared_with_itself_as_reviewed(browser, service):
    key = extract(service, text=f"Reviewed and compared. {STORY}", document="versions.txt")
    with open_page(browser, show(service, key, min=0, tab="review")) as page:
        queue = page.get_by_role("group", name="Review queue")
        queue.get_by_role("heading", name="Bob Miller works for Acme GmbH").wait_for()
        queue.press("r")
        page.get_by_text("Rejected.").first.wait_for()
        page.get_by_role("link", name="Compare").last.click()
        page.get_by_role("combobox", name="Right").select_option(key)
        page.get_by_role("combobox", name="Version").first.select_option("found")
        page.get_by_text("− 1 relation").wait_for()
        assert page.locator(".side-gone").inner_text().endswith("Bob Miller works for Acme GmbH")
        page.get_by_text("+ 0 relations").wait_for()


def test_documents_and_ontologies_full_of_markup_stay_text(browser, service):
    with open_page(browser, service.url) as page:
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "bad<b>.ttl", "mimeType": "", "buffer": NASTY_TURTLE.encode()}]
        )
        page.get_by_text("is registered").wait_for()
        page.get_by_label("Text", exact=True).fill(f"{NASTY}\n\n{NASTY} knows Quoted.")
        page.get_by_label("Name of the document").fill("</title><script>alert(7)</script>.txt")
        page.get_by_role("combobox", name="Extractor").select_option("lexicon")
        page.get_by_role("button", name="Extract the graph").click()
        page.get_by_role("heading", name="</title><script>").wait_for()
        page.locator("mark", has_text="Quoted").first.click()
        page.get_by_role("heading", name="Quoted").wait_for()
        assert NASTY in page.locator(".reading").inner_text()
        assert page.locator(".reading script, .reading img, main script").count() == 0
        key = page.url.partition("/studio/")[2].partition("?")[0]
    text = service.client.get(f"/api/v1/runs/{key}/graph", params={"format": "html"}).text
    assert "<script>alert" not in text
    assert "</title><script>" not in text


def test_a_run_is_started_and_read_with_the_keyboard_alone(browser, service):
    with open_page(browser, service.url) as page:

        def tab_to(name, most=40):
            for _ in range(most):
                page.keyboard.press("Tab")
                here = page.evaluate(
                    "() => { const e = document.activeElement; return (e.labels?.[0]?.innerText || e.ariaLabel || e.innerText || e.id || '').trim(); }"
                )
                if here.startswith(name):
                    return
            pytest.fail(f"{name} cannot be reached")

        page.get_by_role("heading", name="Turn a text into a graph").wait_for()
        page.get_by_role("option", name=re.compile("^company")).wait_for(state="attached")
        tab_to("Skip to the content")
        page.keyboard.press("Enter")
        tab_to("Text")
        page.keyboard.insert_text(REQUEST["text"] + " By keyboard.")
        tab_to("Ontology")
        page.keyboard.type("company")
        tab_to("Extract the graph")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Download").wait_for()
        tab_to("Text with mentions", most=60)
        page.keyboard.press("ArrowRight")
        page.get_by_role("heading", name="Anna Stone").wait_for()
        tab_to("Details", most=20)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        tab_to("", most=1)
        tab_to("Anna Stone")
        page.keyboard.press("Enter")
        page.get_by_text("Said here").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_for_everybody(browser, service, scheme):
    key = extract(service)
    with open_page(browser, service.url, color_scheme=scheme) as page:
        page.get_by_role("heading", name="Recent runs").wait_for()
        assert violations(page) == []
        for tab in ("selection", "entities", "relations", "refused", "review", "decisions"):
            page.goto(show(service, key, min=0, tab=tab, s="r:1"))
            page.locator("mark").first.wait_for()
            page.get_by_role("tabpanel").wait_for()
            assert violations(page) == [], tab
        page.goto(f"{service.url}/#/compare?left={key}&right={key}")
        page.locator(".summary").wait_for()
        assert violations(page) == []
        page.goto(f"{service.url}/docs")
        page.get_by_text("/api/v1/extract", exact=True).wait_for()
        assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_dialog_of_a_run_is_for_everybody(browser, service, scheme):
    key = extract(service)
    acme = entity(service, key, "Acme GmbH")["id"]
    opened = {
        "Download": show(service, key),
        "Correct": show(service, key, min=0, s="r:1", tab="selection"),
        "Change class": show(service, key, min=0, s=f"e:{acme}", tab="selection"),
        "Merge": show(service, key, min=0, s=f"e:{acme}", tab="selection"),
        "Split": show(service, key, min=0, s=f"e:{acme}", tab="selection"),
        "Add it after all": show(service, key, min=0, s="x:0", tab="selection"),
    }
    with open_page(browser, service.url, color_scheme=scheme) as page:
        page.get_by_role("option", name=re.compile("^company")).wait_for(state="attached")
        changed = TURTLE.replace(b'"sodium"@en', b'"soda"@en')
        page.get_by_label("Add an ontology").set_input_files(
            files=[{"name": "company.ttl", "mimeType": "", "buffer": changed}]
        )
        page.get_by_role("dialog").wait_for()
        assert violations(page) == []
        for name, address in opened.items():
            page.goto(address)
            page.reload()
            page.get_by_role("button", name=name, exact=True).click()
            page.get_by_role("dialog").wait_for()
            assert violations(page) == [], name


def test_the_start_says_what_is_still_needed(browser, service):
    with open_page(browser, service.url) as page:
        page.get_by_text("Still needed: a text and an ontology.").wait_for()
        page.get_by_label("Text", exact=True).fill(REQUEST["text"])
        page.get_by_text("Still needed: an ontology.").wait_for()
        page.get_by_role("combobox", name="Ontology").select_option("company")
        page.get_by_text("Still needed").wait_for(state="detached")


def test_a_link_to_a_fact_shows_its_words_and_names_in_the_graph_do_not_lie_upon_each_other(browser, service):
    key = extract(service, text=f"{'Nothing is said here. ' * 900}\n\n{STORY}", document="far.txt")
    view = service.client.get(f"/api/v1/runs/{key}/view").json()
    number = next(at for at, one in enumerate(view["relations"]) if one["predicate"].endswith("founder"))
    with open_page(browser, show(service, key, min=0, s=f"r:{number}")) as page:
        page.wait_for_function(
            """() => {
              const frame = document.querySelector(".text-pane")?.getBoundingClientRect();
              const box = document.querySelector(".area-text .evidence, .area-text .in-evidence")?.getBoundingClientRect();
              return box && box.top >= frame.top && box.bottom <= frame.bottom;
            }"""
        )
        page.locator(".canvas[data-settled]").wait_for()
        page.wait_for_function("() => document.querySelector('.canvas')?.labels?.length > 4")
        assert page.evaluate(
            """() => document.querySelector(".canvas").labels.every((one, at, all) => all.slice(at + 1).every(other =>
              one.x >= other.x + other.w || other.x >= one.x + one.w || one.y >= other.y + other.h || other.y >= one.y + one.h))"""
        )


def test_the_graph_is_given_more_room_and_is_zoomed_with_the_keyboard(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0)) as page:
        page.locator(".canvas[data-settled]").wait_for()
        canvas, text = page.locator(".canvas"), page.locator(".area-text")
        before = canvas.bounding_box()["width"]
        page.get_by_role("button", name="Enlarge").press("Enter")
        text.wait_for(state="hidden")
        page.wait_for_function(
            "before => document.querySelector('.canvas').clientWidth > before * 1.2 && document.querySelector('.canvas canvas').clientWidth > before * 1.2",
            arg=before,
        )
        assert violations(page) == []
        # All that is drawn is inside of the frame, each name too.
        is_inside = """() => {
          const canvas = document.querySelector(".canvas"), { chart } = canvas;
          const from = chart.screen2GraphCoords(0, 0), to = chart.screen2GraphCoords(canvas.clientWidth, canvas.clientHeight);
          const nodes = chart.graphData().nodes;
          return canvas.labels.length === nodes.length && nodes.every((node) => node.x > from.x && node.x < to.x && node.y > from.y && node.y < to.y)
            && canvas.labels.every((one) => one.x >= from.x && one.x + one.w <= to.x && one.y >= from.y && one.y + one.h <= to.y);
        }"""
        page.wait_for_function(is_inside)
        zoomed = page.evaluate("() => document.querySelector('.canvas').chart.zoom()")
        page.get_by_role("button", name="Zoom in").press("Enter")
        page.wait_for_function("before => document.querySelector('.canvas').chart.zoom() > before", arg=zoomed)
        page.get_by_role("button", name="Fit").press("Enter")
        page.wait_for_function(is_inside)
        page.get_by_role("button", name="Enlarge").press("Enter")
        text.wait_for()


def test_what_is_chosen_has_its_relations_named_in_the_graph(browser, service):
    key = extract(service)
    acme = entity(service, key, "Acme GmbH")["id"]
    names = "() => document.querySelector('.canvas')?.labels?.length ?? 0"
    with open_page(browser, show(service, key, min=0)) as page:
        page.locator(".canvas[data-settled]").wait_for()
        page.wait_for_function("() => document.querySelector('.canvas')?.labels?.length > 4")
        before = page.evaluate(names)
        page.goto(show(service, key, min=0, s=f"e:{acme}"))
        # Two relations of it hold; each has its name beside the names of the things.
        page.wait_for_function(f"before => ({names})() >= before + 2", arg=before)


def test_details_begin_at_their_heading_however_far_down_one_has_chosen(browser, service):
    text = " ".join(f"Anna{number} Stone works for Acme{number} Ltd." for number in range(40))
    key = service.client.post("/api/v1/extract", json={"text": text, "ontologyId": "company"}).json()["idempotencyKey"]
    with open_page(browser, show(service, key, min=0, tab="entities")) as page:
        last = page.locator("[data-entity]").last
        name = last.locator(".item-name").inner_text()
        last.click()
        heading = page.locator(".details h2", has_text=name)
        heading.wait_for()
        page.wait_for_function(
            """() => {
              const panel = document.querySelector(".area-side [role='tabpanel']").getBoundingClientRect();
              return document.querySelector(".details h2").getBoundingClientRect().top >= panel.top;
            }"""
        )


def test_tabs_of_a_browser_tell_runs_apart(browser, service):
    key, other = (extract(service, text=f"Titled {name}. {STORY}", document=name) for name in ("one.txt", "two.txt"))
    with open_page(browser, show(service, key)) as page:
        for address, title in (
            (show(service, key), "one.txt · sameas"),
            (show(service, other), "two.txt · sameas"),
            (f"{service.url}/#/runs", "Runs · sameas"),
            (f"{service.url}/#/runs/{key}/timeline", "Timeline of one.txt · sameas"),
            (f"{service.url}/#/ontologies/one?id=company", "Companies and their people · sameas"),
        ):
            page.goto(address)
            page.wait_for_function("title => document.title === title", arg=title)


def test_details_of_an_entity_show_what_fits_the_filters_and_count_the_rest(browser, service):
    key = extract(service)
    acme = entity(service, key, "Acme GmbH")["id"]
    with open_page(browser, show(service, key, min="0.75", s=f"e:{acme}", tab="selection")) as page:
        details = page.get_by_role("article", name="Acme GmbH")
        details.get_by_text("1 more does not fit the filters.").wait_for()
        assert details.locator("[data-relation]").all_inner_texts()[0].startswith("Acme GmbH founder Anna Stone")
        assert details.locator("[data-relation]").count() == 1
        page.get_by_label("Least confidence").fill("0")
        page.wait_for_function("() => document.querySelectorAll('.details [data-relation]').length === 2")
        assert details.get_by_text("not fit the filters").count() == 0


def test_controls_of_one_row_are_equally_high(browser, service):
    key = extract(service)
    rows = {
        show(service, key, min=0): ".filters > :is(input, select)",
        f"{service.url}/#/runs": ".console-filters :is(input, select)",
        f"{service.url}/#/compare?left={key}": ".side:first-child :is(select, .button)",
    }
    with open_page(browser, service.url) as page:
        for address, row in rows.items():
            page.goto(address)
            page.locator(row).first.wait_for()
            assert len({box.bounding_box()["height"] for box in page.locator(row).all()}) == 1, address


def test_on_a_telephone_the_queue_the_place_and_whole_words_are_seen(browser, service):
    key = extract(service, document="telephone.txt")
    with open_page(browser, show(service, key, min=0), viewport={"width": 360, "height": 740}) as page:
        page.get_by_role("button", name="Review", exact=True).click()
        queue = page.get_by_role("group", name="Review queue")
        queue.wait_for()
        box = queue.get_by_role("button", name="Accept").bounding_box()
        assert box["y"] + box["height"] <= page.evaluate("() => document.documentElement.scrollHeight")
        page.goto(f"{service.url}/#/health")
        here = page.locator(".top nav [aria-current]", has_text="Health")
        here.wait_for()
        page.wait_for_function(
            "() => document.querySelector('.top nav [aria-current]').getBoundingClientRect().right <= innerWidth"
        )
        # A table is scrolled sideways sooner than its words are cut to single letters.
        page.goto(f"{service.url}/#/runs")
        page.locator(".table-frame tbody tr").first.wait_for()
        assert max(row.bounding_box()["height"] for row in page.locator(".table-frame tbody tr").all()) < 150


def test_the_tabs_of_a_run_stand_in_one_line_on_a_laptop(browser, service):
    key = extract(service)
    with open_page(browser, show(service, key, min=0), viewport={"width": 1280, "height": 800}) as page:
        tabs = page.get_by_role("tablist", name="Details and lists")
        tabs.wait_for()
        assert tabs.get_by_role("tab").count() == 6
        assert len({tab.bounding_box()["y"] for tab in tabs.get_by_role("tab").all()}) == 1
        assert tabs.evaluate("list => list.scrollWidth <= list.clientWidth")


@pytest.mark.parametrize("width", [360, 2560])
def test_nothing_is_cut_off_on_a_phone_or_a_wall(browser, service, width):
    key = extract(service)
    with open_page(browser, service.url, viewport={"width": width, "height": 800}) as page:
        for address in (service.url, show(service, key), f"{service.url}/#/compare?left={key}&right={key}"):
            page.goto(address)
            page.get_by_role("heading").first.wait_for()
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        page.goto(show(service, key))
        if width == 360:
            page.get_by_role("button", name="Graph", exact=True).click()
            page.locator(".canvas canvas").first.wait_for()
            page.get_by_role("button", name="Lists").click()
            page.get_by_role("tab", name="Entities").click()
            page.locator("[data-entity]").first.wait_for()
            assert violations(page) == []


def test_names_that_are_one_long_word_do_not_widen_a_page(browser, service):
    name, ontology, client = "A" * 140 + "😀" + "ب" * 100, "o" * 180, service.client
    long = TURTLE.replace(b"example/company", b"example/long").replace(b'"person"@en', b'"' + b"Person" * 30 + b'"@en')
    assert client.put(f"/api/v1/ontologies/{ontology}", content=long).status_code == 201
    text = f"{'Anna' * 40} Stone works for Acme Ltd. Bob Miller works for {'Very' * 40} GmbH."
    request = {"text": text, "ontologyId": ontology, "document": name}
    answer = client.post("/api/v1/extract", json=request, headers={"Idempotency-Key": "k" * 220})
    key = answer.json()["idempotencyKey"]
    made = client.post("/api/v1/collections", json={"name": "c" * 120, "ontologyId": ontology}).json()["id"]
    client.post(f"/api/v1/collections/{made}/documents", json={"documents": [{"name": name, "text": text}]})
    pages = {
        f"#/studio/{key}?min=0": "mark",
        f"#/runs/{key}/timeline": ".stage-table",
        "#/runs": ".table-frame tbody tr",
        f"#/keys/record?key={'k' * 220}": ".record-words",
        "#/ontologies": ".table-frame tbody tr",
        f"#/ontologies/one?id={ontology}": ".stats",
        f"#/compare?left={key}&right={key}": ".summary",
        "#/collections": ".collection-card",
        f"#/collections/{made}": ".table-frame tbody tr",
        f"#/collections/{made}/graph": ".things li",
    }
    with open_page(browser, service.url) as page:
        for address, ready in pages.items():
            page.goto(f"{service.url}/{address}")
            page.locator(ready).first.wait_for()
            for width in (360, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                assert not is_too_wide(page), (address, width)


def test_the_file_of_a_run_opens_without_a_server(browser, service, tmp_path):
    key = extract(service, text=f"Mailed. {STORY}", document="mailed.txt")
    reply = service.client.get(f"/api/v1/runs/{key}/graph", params={"format": "html"})
    assert (reply.headers["content-security-policy"], "attachment" in reply.headers["content-disposition"]) == (
        "sandbox",
        True,
    )
    (tmp_path / "run.html").write_bytes(reply.content)
    with open_page(browser, (tmp_path / "run.html").as_uri(), offline=True) as page:
        page.get_by_role("heading", name="mailed.txt").wait_for()
        page.locator("mark.overlap").first.click()
        page.get_by_role("heading", name="Bremen", exact=True).wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.locator("[data-relation]", has_text="founder").click()
        page.locator(".area-text .evidence").first.wait_for()
        page.locator(".canvas[data-settled]").wait_for()
        assert violations(page) == []


def test_pages_have_a_strict_policy_and_the_api_s_own_page_keeps_it(browser, service):
    policy = httpx.get(service.url).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert httpx.get(f"{service.url}/docs").headers["content-security-policy"] == policy
    assert service.client.get("/app/../files.py").status_code == 404
    assert service.client.get("/app/nothing.js").status_code == 404
    with open_page(browser, f"{service.url}/docs") as page:
        page.get_by_text("/api/v1/extract", exact=True).wait_for()
