"""The console in a real browser: runs, keys, ontologies and health, used as people use them."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from bench.web_demo import hold_key
from sameas.once.observe import CallEnded, CallStarted, Removed
from sameas.once.record import Identity
from sameas.server.app import open_entry
from sameas.server.runs.hourly_counts import HourlyCounts
from sameas.tenancy.directory import open_tables
from tests.integration.model_path import ORACLE, document
from tests.integration.test_service_tenants import _enrol
from tests.servers.browser import WITHIN_MS, is_too_wide, open_browser, open_page, violations
from tests.servers.model_script import status
from tests.servers.model_server import ModelServer
from tests.unit.server.house import REQUEST, TURTLE, running, settings_for

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
HOSTILE_KEY = "<script>alert(1)</script>"
EVIL = TURTLE.replace(b'"Companies and their people"@en', b'"<script>alert(3)</script>"@en').replace(
    b'rdfs:label "prize"@en', b'rdfs:label "<img src=x onerror=alert(4)>"@en'
)
OLDER = TURTLE.replace(b'"sodium"@en', b'"soda"@en')


def looked_at(browser, url, **options):
    """A page of the app; that the service refuses something is told to the person, and no fault of the page."""
    return open_page(browser, url, base_url=url, forgiven=("status of 4",), **options)


class Console(NamedTuple):
    service: object
    browser: object
    run: str

    def open(self, path, **options):
        return _at(self, path, options)


class _at:
    """A page of the app, opened at a place."""

    def __init__(self, console, path, options):
        self._opening = looked_at(console.browser, console.service.url, **options)
        self._path = path

    def __enter__(self):
        self.page = self._opening.__enter__()
        self.page.goto(f"/#{self._path}")
        return self.page

    def __exit__(self, *error):
        return self._opening.__exit__(*error)


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    with running(tmp_path_factory.mktemp("console"), lease=60.0) as service, open_browser() as browser:
        expect.set_options(timeout=WITHIN_MS)
        client = service.client
        for turtle in (OLDER, TURTLE):
            assert client.put("/api/v1/ontologies/company", content=turtle).status_code in (200, 201)
        run = ""
        for number, name in enumerate(("report.txt", HOSTILE, "minutes.txt")):
            request = {**REQUEST, "text": f"{REQUEST['text']} Number {number}.", "document": name}
            headers = {"Idempotency-Key": f"order-{number}" if name != HOSTILE else HOSTILE_KEY}
            for _ in range(2):
                answer = client.post("/api/v1/extract", json=request, headers=headers)
                assert answer.status_code == 200, answer.text
            run = run or answer.json()["idempotencyKey"]
        yield Console(service, browser, run)


PLACES = {
    "/runs": "table",
    "/runs/{run}/timeline": ".stage-table",
    "/keys": ".u-wrap",
    "/keys/record?key=order-0": ".record-words",
    "/ontologies": "table",
    "/ontologies/one?id=company": ".changes",
    "/health": ".u-wrap",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_page_is_accessible_in_light_and_dark_and_fits_a_telephone_and_a_wall(console, place):
    with console.open(place.format(run=console.run)) as page:
        page.wait_for_selector(PLACES[place])
        for _ in ("light", "dark"):
            assert violations(page) == []
            page.get_by_role("button", name="colours").click()
        for width in (360, 2560):
            page.set_viewport_size({"width": width, "height": 740})
            assert not is_too_wide(page), width


def test_runs_are_filtered_and_one_is_followed_to_its_stages(console):
    with console.open("/runs") as page:
        rows = page.locator(".table-frame[aria-label='Runs'] tbody tr")
        expect(rows).to_have_count(3)
        page.get_by_label("Document").fill("REPORT")
        expect(rows).to_have_count(1)
        page.get_by_label("Status").select_option("failed")
        expect(page.get_by_text("No run fits these filters.")).to_be_visible()
        page.get_by_label("Status").select_option("complete")
        page.get_by_role("link", name="report.txt").click()
        expect(page.get_by_role("heading", name="report.txt")).to_be_visible()
        expect(page.get_by_role("row", name="serialization")).to_be_visible()
        expect(page.locator(".events")).to_contain_text("extraction completed")
        page.go_back()
        # The filter is in the address.
        expect(page.get_by_label("Document")).to_have_value("REPORT")


def test_names_from_outside_are_text_everywhere(console):
    with console.open("/runs") as page:
        page.get_by_role("link", name=HOSTILE).click()
        expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
        page.goto("/#/keys")
        page.get_by_role("searchbox", name="Find a record").fill(HOSTILE_KEY)
        page.get_by_role("button", name="Find").click()
        expect(page.get_by_role("heading", name=HOSTILE_KEY)).to_be_visible()
        expect(page.locator(".record-words")).to_contain_text(HOSTILE_KEY)


def test_a_clients_key_is_found_by_keyboard_and_told_in_words(console):
    with console.open("/keys") as page:
        # Whoever comes from another page begins in the content, whoever opens this one at the top.
        page.reload()
        page.wait_for_selector(".u-wrap")
        # Another page of the same browser may have been in front.
        page.bring_to_front()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.type") == "search":
                break
        page.keyboard.type("order-0")
        page.keyboard.press("Enter")
        expect(page.locator(".record-words")).to_contain_text("a client chose it")
        expect(page.locator(".record-words")).to_contain_text("gets this result again")
        # Times are written for people; who wants the instant finds it in the element.
        expect(page.locator(".record-words")).to_contain_text(f"was accepted at {datetime.now(UTC).day} ")
        expect(page.locator(".record-words time").first).to_have_attribute("datetime", re.compile(r"T.*Z$"))


def test_keys_are_filtered_by_all_that_is_known_of_them(console):
    with console.open("/keys") as page:
        rows = page.locator(".table-frame[aria-label='Records'] tbody tr")
        expect(rows).to_have_count(6)
        page.get_by_label("Scope").fill("extract")
        page.get_by_label("Scope").press("Enter")
        expect(rows).to_have_count(3)
        page.get_by_label("Method").select_option("POST")
        page.get_by_label("Route").fill("/api/v1/extract")
        page.get_by_label("Status code").fill("200")
        page.get_by_label("Status code").press("Enter")
        expect(rows).to_have_count(3)
        page.get_by_label("To", exact=True).fill("2020-01-01")
        expect(page.get_by_text("No record fits these filters.")).to_be_visible()


def test_runs_and_records_are_narrowed_by_ontology_state_and_day(console):
    today = datetime.now(UTC).date()
    tomorrow = str(today + timedelta(days=1))
    with console.open("/runs") as page:
        rows = page.locator(".table-frame[aria-label='Runs'] tbody tr")
        expect(rows).to_have_count(3)
        for field, other in (("Ontology", "foaf"), ("From", tomorrow), ("To", "2020-01-01")):
            page.get_by_label(field, exact=True).fill(other)
            page.get_by_label(field, exact=True).blur()
            expect(page.get_by_text("No run fits these filters.")).to_be_visible()
            page.get_by_label(field, exact=True).fill("")
            page.get_by_label(field, exact=True).blur()
            expect(rows).to_have_count(3)
        page.get_by_label("Ontology").fill("company")
        page.get_by_label("From").fill(str(today - timedelta(days=1)))
        page.get_by_label("To", exact=True).fill(tomorrow)
        expect(rows).to_have_count(3)
        page.goto("/#/keys")
        records = page.locator(".table-frame[aria-label='Records'] tbody tr")
        expect(records).to_have_count(6)
        page.get_by_label("State").select_option("failed")
        expect(page.get_by_text("No record fits these filters.")).to_be_visible()
        page.get_by_label("State").select_option("done")
        expect(records).to_have_count(6)
        page.get_by_label("From", exact=True).fill(tomorrow)
        expect(page.get_by_text("No record fits these filters.")).to_be_visible()


def test_a_held_key_is_released_with_a_reason(console):
    hold_key(console.service, "order-held")
    with console.open("/keys?state=held") as page:
        page.get_by_role("link", name="order-held").click()
        expect(page.locator(".record-words")).to_contain_text("importer-2:4711 has held it since")
        facts = page.locator(".facts")
        for fact in (r"Holder\s*importer-2:4711", r"Attempt\s*1", r"Fence\s*\d+", r"Lease until\s*\d"):
            expect(facts).to_have_text(re.compile(fact))
        page.get_by_role("button", name="Release…").click()
        assert violations(page) == []
        page.get_by_label("Reason").fill("its machine is gone")
        page.get_by_role("button", name="Release", exact=True).click()
        expect(page.get_by_text("Released: the next request runs the work.")).to_be_visible()
    audit = (console.service.app.service.settings.home / "audit.jsonl").read_text().splitlines()
    last = [json.loads(line) for line in audit if "key-released" in line][-1]
    assert (last["reason"], last["key"].endswith(":order-held")) == ("its machine is gone", True)


def test_clients_that_retry_too_hard_are_told_of_above_the_charts(console, tmp_path):
    counts = HourlyCounts(f"sqlite:///{tmp_path}/counts.db", clock=time.time)
    identity = Identity(b"", "", "extract", "key")
    for number in range(200):
        counts.on(CallEnded(CallStarted(identity, {}), "replay" if number % 10 == 0 else "fresh", 0.1, 0.0))
    counts.flush()
    counts.close()
    with running(tmp_path) as service, looked_at(console.browser, service.url) as page:
        page.goto("/#/keys")
        notice = page.get_by_role("status").filter(has_text="Clients retry too hard: extract")
        expect(notice).to_contain_text("20 of 200 calls in the last day were replays")
        expect(page.get_by_label("In this time")).to_contain_text("10 %")


def test_a_key_that_never_recognised_anything_for_weeks_is_told_of_as_wrong(console, tmp_path):
    hours = [time.time()]
    counts = HourlyCounts(f"sqlite:///{tmp_path}/counts.db", clock=lambda: hours[-1])
    identity = Identity(b"", "", "extract", "key")
    for day in reversed(range(20)):
        hours.append(hours[0] - timedelta(days=day).total_seconds())
        for _ in range(10):
            counts.on(CallEnded(CallStarted(identity, {}), "fresh", 0.1, 0.0))
        counts.flush()
    counts.close()
    with running(tmp_path) as service, looked_at(console.browser, service.url) as page:
        # A short time is shown; the advice looks back for weeks all the same.
        page.goto("/#/keys?hours=24")
        notice = page.get_by_role("status").filter(has_text="The key may be wrong: extract")
        expect(notice).to_contain_text("Not one of 140 calls in two weeks was a replay")
        expect(page.get_by_label("In this time")).to_contain_text("0 %")
        assert violations(page) == []
        # One redelivery that is recognised shows that the key is right.
        headers = {"Idempotency-Key": "order-1"}
        for _ in range(2):
            assert service.client.post("/api/v1/extract", json=REQUEST, headers=headers).status_code == 200
        page.reload()
        expect(page.get_by_label("In this time")).to_contain_text("8.3 %")
        expect(notice).to_have_count(0)


def test_a_run_that_failed_says_why_and_what_was_not_finished(console, tmp_path):
    refusal = status(401, message="Incorrect key")
    with ModelServer(lambda _: refusal) as model, running(tmp_path, models=model.address("tiny")) as service:
        request = {**REQUEST, "document": "refused.txt", "extractionParams": {"extractor": "model"}}
        assert service.client.post("/api/v1/extract", json=request).status_code >= 400
        (run,) = service.client.get("/api/v1/runs").json()["runs"]
        with looked_at(console.browser, service.url) as page:
            page.goto(f"/#/studio/{run['idempotencyKey']}")
            expect(page.get_by_role("alert")).to_contain_text("Incorrect key")
            expect(page.get_by_text("Nothing to draw.")).to_be_visible()
            assert violations(page) == []
            page.goto(f"/#/runs/{run['idempotencyKey']}/timeline")
            expect(page.get_by_role("row", name="entity extraction").first).to_contain_text("not finished")
            expect(page.locator(".events")).to_contain_text("1 chunk")
            expect(page.locator(".events")).not_to_contain_text("1 chunks")
            assert violations(page) == []


def test_limiter_and_circuit_of_a_model_are_shown(console, tmp_path):
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("tiny")) as service:
        request = {"text": document(1), "ontologyId": "company", "extractionParams": {"extractor": "model"}}
        assert service.client.post("/api/v1/extract", json=request).status_code == 200
        with looked_at(console.browser, service.url) as page:
            page.goto("/#/health")
            row = page.locator(".table-frame[aria-label='Models'] tbody tr")
            expect(row).to_have_count(1)
            expect(row).to_contain_text("closed: calls go through")
            assert violations(page) == []
            # What it took, stage by stage.
            page.goto("/#/runs")
            page.locator("tbody a").first.click()
            usage = page.locator(".table-frame[aria-label='Tokens and cost by stage'] tbody tr")
            expect(usage.first).to_contain_text("tiny")
            assert violations(page) == []


def test_a_run_tells_its_cost_by_stage_and_what_was_saved(console, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('as_of = 2026-01-01\n[models]\n"compatible:tiny" = { input = 1000, output = 1000 }\n', "utf-8")
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address("tiny"), prices=str(prices)) as service,
        looked_at(console.browser, service.url) as page,
    ):
        for chunks in (2, 3):
            request = {"text": document(chunks), "ontologyId": "company", "document": f"{chunks}.txt"}
            request["extractionParams"] = {"extractor": "model", "chunkSize": 100}
            assert service.client.post("/api/v1/extract", json=request).status_code == 200
        for chunks, calls, known in ((2, 4, 0), (3, 2, 4)):
            page.goto("/#/runs")
            page.get_by_role("link", name=f"{chunks}.txt").click()
            took = page.get_by_label("What it took")
            expect(took).to_contain_text(re.compile(rf"{calls} calls\s*Cost\s*\$\d\.\d\d"))
            expect(took).to_contain_text(re.compile(rf"From checkpoints\s*{known}\s*pieces of work on {chunks} chunks"))
            rows = page.locator(".table-frame[aria-label='Tokens and cost by stage'] tbody tr")
            expect(rows.filter(has_text="relation extraction")).to_contain_text(re.compile(r"\$[\d.]*[1-9]"))


def test_calls_that_were_remembered_are_told_as_saved(console, tmp_path):
    prices = tmp_path / "prices.toml"
    prices.write_text('as_of = 2026-01-01\n[models]\n"compatible:tiny" = { input = 1000, output = 1000 }\n', "utf-8")
    # A class that no chunk is about: a new version of the ontology, of which no question changes.
    larger = TURTLE + b'\n:Volcano a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "volcano"@en .\n'
    with (
        ModelServer(ORACLE) as model,
        running(tmp_path, models=model.address("tiny"), prices=str(prices)) as service,
        looked_at(console.browser, service.url) as page,
    ):
        request = {"text": document(2), "ontologyId": "company", "document": "twice.txt"}
        request["extractionParams"] = {"extractor": "model", "chunkSize": 100}
        keys = []
        for turtle in (TURTLE, larger):
            assert service.client.put("/api/v1/ontologies/company", content=turtle).status_code in (200, 201)
            answer = service.client.post("/api/v1/extract", json=request)
            assert answer.status_code == 200, answer.text
            keys.append(answer.json()["idempotencyKey"])
        assert keys[0] != keys[1]
        page.goto(f"/#/runs/{keys[1]}/timeline")
        took = page.get_by_label("What it took")
        expect(took).to_contain_text(re.compile(r"Calls saved\s*[1-9]\d*\s*[1-9][\d,]* tokens, \$\d+\.\d*[1-9]"))
        rows = page.locator(".table-frame[aria-label='Tokens and cost by stage'] tbody tr")
        saved = page.locator(".table-frame[aria-label='Tokens and cost by stage'] th", has_text="Calls saved")
        at = saved.evaluate("one => one.cellIndex")
        counts = rows.evaluate_all("(all, at) => all.map((row) => Number(row.cells[at].innerText))", at)
        assert sum(counts) > 0, counts
        assert violations(page) == []


def test_the_circuit_of_a_model_that_is_down_is_shown_open(console, tmp_path):
    # After more than a second each time: failures of one moment count once.
    down = status(503, retry_after=1.2)
    with ModelServer(down) as model, running(tmp_path, models=model.address("tiny")) as service:
        request = {"text": document(2), "ontologyId": "company", "extractionParams": {"extractor": "model"}}
        answer = service.client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async"})
        with looked_at(console.browser, service.url) as page:
            page.goto(f"/#/studio/{answer.json()['idempotencyKey']}")
            notice = page.locator(".progress .notice", has_text="failed 5 times in a row and is not asked")
            expect(notice).to_be_visible(timeout=2 * WITHIN_MS)
            asked = len(model.calls)
            page.goto("/#/health")
            row = page.locator(".table-frame[aria-label='Models'] tbody tr")
            expect(row).to_have_count(1)
            expect(row).to_contain_text("open: calls are refused for a while")
            expect(row.locator(".badge")).to_have_class(re.compile("badge-bad"))
            expect(row).to_contain_text("0 of")
            assert violations(page) == []
            assert len(model.calls) == asked


def test_forgetting_a_key_needs_a_reason_and_is_audited(console):
    with console.open("/keys/record?key=order-2") as page:
        page.get_by_role("button", name="Forget…").click()
        expect(page.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
        page.get_by_label("Reason").fill("asked for twice by mistake")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Keys")).to_be_visible()
    audit = (console.service.app.service.settings.home / "audit.jsonl").read_text().splitlines()
    last = [json.loads(line) for line in audit if "key-forgotten" in line][-1]
    assert last["reason"] == "asked for twice by mistake"
    assert last["key"].endswith(":order-2")


def test_a_chart_has_its_numbers_as_a_table_and_keeps_its_span_in_the_address(console):
    with console.open("/keys") as page:
        page.get_by_role("button", name="24 hours").click()
        page.get_by_role("figure", name="Replays and hits").get_by_text("The numbers").click()
        table = page.get_by_role("region", name="Replays and hits, the numbers")
        expect(table.locator("tbody tr")).to_have_count(1)
        expect(table).to_contain_text("50 %")
        assert "hours=24" in page.url


def test_waiting_and_prunes_of_a_month_are_charts_with_their_numbers(console, tmp_path):
    hours = [time.time()]
    counts = HourlyCounts(f"sqlite:///{tmp_path}/counts.db", clock=lambda: hours[-1])
    identity = Identity(b"", "", "extract", "key")
    for day, waited, pruned in ((25, 4.0, 7), (3, 2.0, 30)):
        hours.append(hours[0] - timedelta(days=day).total_seconds())
        counts.on(CallEnded(CallStarted(identity, {}), "shared", waited, waited))
        counts.on(Removed("expired", pruned))
        counts.flush()
    counts.close()
    with running(tmp_path) as service, looked_at(console.browser, service.url) as page:
        page.goto("/#/keys?hours=720")
        for title, older, newer in (("Waiting", "4.0 s", "2.0 s"), ("Removed", "7", "30")):
            figure = page.get_by_role("figure", name=title)
            expect(figure.locator("canvas")).to_be_visible()
            figure.get_by_text("The numbers").click()
            last = figure.get_by_role("region").locator("tbody td:last-child")
            expect(last).to_have_count(2)
            assert last.all_inner_texts() == [newer, older]
        assert violations(page) == []
        # A week knows the newer alone.
        page.get_by_role("button", name="7 days").click()
        expect(page.get_by_role("region", name="Removed, the numbers").locator("tbody tr")).to_have_count(1)


def test_an_ontology_is_added_after_a_look_at_it(console):
    added = TURTLE.replace(b"example/company>", b"example/added>").replace(b"Companies and their people", b"Added")
    with console.open("/ontologies") as page:
        page.get_by_role("button", name="Add an ontology…").click()
        page.get_by_label("File").set_input_files({"name": "my own.ttl", "mimeType": "text/turtle", "buffer": added})
        expect(page.get_by_label("Name", exact=True)).to_have_value("my-own")
        page.get_by_role("button", name="See what it would change").click()
        expect(page.get_by_text("No result would be invalidated")).to_be_visible()
        page.get_by_role("button", name="Register it", exact=True).click()
        expect(page.get_by_role("link", name="Added", exact=True)).to_be_visible()


def test_a_new_version_is_put_after_a_preview_of_what_it_invalidates(console):
    client = console.service.client
    client.put("/api/v1/ontologies/evil", content=EVIL.replace(b"example/company", b"example/evil"))
    client.post("/api/v1/extract", json={**REQUEST, "ontologyId": "evil"})
    changed = EVIL.replace(b"example/company", b"example/evil").replace(b'"sodium"@en', b'"<b>salt</b>"@en')
    with console.open("/ontologies") as page:
        page.get_by_role("link", name="<script>alert(3)</script>").click()
        page.get_by_role("button", name="New version…").click()
        page.get_by_label("File").set_input_files({"name": "evil.ttl", "mimeType": "text/turtle", "buffer": b"<a> <b>"})
        page.get_by_role("button", name="See what it would change").click()
        expect(page.get_by_role("alert")).to_contain_text("Line 1")
        page.get_by_label("File").set_input_files({"name": "evil.ttl", "mimeType": "text/turtle", "buffer": changed})
        page.get_by_role("button", name="See what it would change").click()
        expect(page.get_by_text("1 result of the present version would be invalidated")).to_be_visible()
        expect(page.locator("dialog .changes")).to_contain_text("<b>salt</b>")
        assert violations(page) == []
        page.get_by_role("button", name="Register it and invalidate 1 result").click()
        expect(page.get_by_text("1 result went")).to_be_visible()
        expect(page.locator(".table-frame[aria-label='Versions'] tbody tr")).to_have_count(2)
        expect(page.locator("main .changes")).to_contain_text("<b>salt</b>")
        # What the old version had is superseded, and the new one has nothing yet.
        expect(page.get_by_text("None yet.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("path", "button"),
    [("/keys/record?key=order-0", "Forget…"), ("/ontologies", "Add an ontology…"), ("/collections", "New collection…")],
)
def test_dialogs_are_accessible_in_light_and_dark(console, path, button, scheme):
    with console.open(path, color_scheme=scheme) as page:
        page.get_by_role("button", name=button).first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == []


def test_health_names_dependencies_and_settings(console):
    with console.open("/health") as page:
        expect(page.locator(".dependency")).to_have_count(2)
        expect(page.locator(".dependency").first).to_contain_text("ok")
        expect(page.get_by_role("row", name="lease 60 s")).to_be_visible()
        expect(page.get_by_text("No model was asked since the start.")).to_be_visible()


def test_a_dependency_that_fails_is_shown_until_it_is_there_again(console, tmp_path):
    home = tmp_path / "home"
    with running(home) as service, looked_at(console.browser, service.url) as page:
        page.goto("/#/health")
        folder = page.locator(".dependency", has_text="the folder of runs")
        expect(folder).to_contain_text("ok")
        home.rename(tmp_path / "away")
        page.reload()
        expect(folder).to_contain_text("FileNotFoundError")
        expect(page.get_by_text("Something does not answer")).to_be_visible()
        assert violations(page) == []
        (tmp_path / "away").rename(home)
        # The page looks again by itself.
        expect(folder).to_contain_text("ok")
        expect(page.get_by_text("Something does not answer")).to_have_count(0)


def test_two_tenants_see_nothing_of_each_other(console, tmp_path):
    database = open_tables(f"sqlite:///{tmp_path}/tenants.db")
    one, two = (_enrol(database, name) for name in ("one", "two"))
    database.close()
    entry = open_entry(settings_for(tmp_path, auth="api-key"))
    with running(tmp_path, entry=entry, auth="api-key") as service:
        client = service.client
        client.put("/api/v1/ontologies/secret", content=TURTLE, headers=one.admin)
        request = {**REQUEST, "ontologyId": "secret", "document": "secret.txt"}
        client.post("/api/v1/extract", json=request, headers={**one.user, "Idempotency-Key": "secret-1"})
        for who, sees in ((one, True), (two, False)):
            with looked_at(console.browser, service.url) as page:
                page.goto("/#/runs")
                page.get_by_label("API key").fill(who.user["X-API-Key"])
                page.get_by_role("button", name="Sign in").click()
                expect(page.get_by_role("heading", name="Runs")).to_be_visible()
                expect(page.get_by_role("link", name="secret.txt")).to_have_count(1 if sees else 0)
                if not sees:
                    expect(page.get_by_text("No run yet")).to_be_visible()
                page.goto("/#/keys")
                expect(page.get_by_role("link", name="secret-1")).to_have_count(1 if sees else 0)
                page.goto("/#/keys/record?key=secret-1")
                if sees:
                    expect(page.locator(".record-words")).to_contain_text("secret-1")
                    # Without the role for it nothing can be changed.
                    expect(page.get_by_role("button", name="Forget…")).to_have_count(0)
                else:
                    expect(page.get_by_role("alert")).to_contain_text("There is no record")
                page.goto("/#/ontologies")
                expect(page.get_by_role("link", name="Companies and their people")).to_have_count(1 if sees else 0)
                page.goto("/#/health")
                expect(page.get_by_text("Dependencies")).to_be_visible()
                expect(page.get_by_text("Settings in force")).to_have_count(0)


def test_each_filter_of_keys_narrows_by_itself_and_is_in_the_address(console):
    hold_key(console.service, "order-in-hand")
    today = datetime.now(UTC).date()
    fitting = {
        "Scope": ("extraction", "extract"),
        "State": ("held", "done"),
        "Route": ("/api/v1/extract", "/api/v1/nowhere"),
        "Method": ("POST", "DELETE"),
        "Status code": ("200", "404"),
        "From": (str(today - timedelta(days=1)), str(today + timedelta(days=1))),
        "To": (str(today + timedelta(days=1)), "2020-01-01"),
    }
    with console.open("/keys") as page:
        rows = page.locator(".table-frame[aria-label='Records'] tbody tr")
        filters = page.get_by_role("search", name="Filter records")
        rows.first.wait_for()
        seen = {}
        for name, values in fitting.items():
            label = page.locator(".label").get_by_text(name, exact=True)
            field = filters.locator(".field").filter(has=label).locator("input, select")
            for value in values:
                with page.expect_response("**/api/v1/keys?*") as asked:
                    if name in ("State", "Method"):
                        field.select_option(value)
                    else:
                        field.fill(value)
                        field.blur()
                told = asked.value.json()["keys"]
                seen[name, value] = {one["key"] for one in told}
                if told:
                    expect(rows).to_have_count(len(told))
                else:
                    expect(page.get_by_text("No record fits these filters.")).to_be_visible()
            # Whoever gets the link sees the same.
            page.wait_for_function("value => decodeURIComponent(location.hash).includes(value)", arg=values[1])
            with page.expect_response("**/api/v1/keys?*"):
                if name in ("State", "Method"):
                    field.select_option("")
                else:
                    field.fill("")
                    field.blur()
        for name, (one, other) in fitting.items():
            assert not seen[name, one] & seen[name, other], name
            assert seen[name, one], name
        assert seen["Scope", "extract"]
        assert seen["State", "held"] < seen["Scope", "extract"]
    with console.open("/keys?state=held&scope=extract") as page:
        expect(page.get_by_label("State")).to_have_value("held")
        expect(page.get_by_label("Scope")).to_have_value("extract")
        expect(page.get_by_role("link", name="order-in-hand")).to_be_visible()
