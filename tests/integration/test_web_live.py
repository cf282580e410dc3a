"""A run that is watched while it works: what it waits for is told, and it is gone when it is gone."""

import re
from threading import Event, Semaphore

import pytest

from sameas.server.app import open_entry
from tests.integration.model_path import ORACLE, document
from tests.servers.browser import is_too_wide, open_browser, open_page, violations
from tests.servers.model_script import Step, status
from tests.servers.model_server import ModelServer
from tests.unit.server.house import LONG, SLOW, WITHIN, HeldExtractor, Hold, running, settings_for

BEGINS = {"Prefer": "respond-async"}


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture
def hold():
    return Hold()


@pytest.fixture
def service(tmp_path, hold):
    with running(tmp_path, hold=hold) as opened:
        yield opened


class RelationsHeld(HeldExtractor):
    """Finds entities at once and is held before relations."""

    async def extract_entities(self, chunk, focus):
        return await self._inner.extract_entities(chunk, focus)

    async def extract_relations(self, chunk, mentions, focus):
        await super().extract_entities(chunk, focus)
        return await super().extract_relations(chunk, mentions, focus)


def begin(service, hold, **changes):
    """The key of a run that is held in its middle."""
    request = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW, "document": "slow.txt", **changes}
    answer = service.client.post("/api/v1/extract", json=request, headers=BEGINS)
    assert hold.reached.wait(WITHIN)
    return answer.json()["idempotencyKey"]


def studio(service, key, query=""):
    return f"{service.url}/#/studio/{key}?{query}"


def test_a_run_that_is_deleted_while_somebody_looks_is_gone(browser, service, hold):
    key = begin(service, hold)
    with open_page(browser, service.url, forgiven=("404", "ERR_FAILED")) as page:
        # The page hears of it when all is over, as one that was asleep.
        page.route(re.compile(f"{key}(/events)?([?].*)?$"), lambda route: route.abort())
        page.goto(studio(service, key))
        page.get_by_text("Connection lost").wait_for()
        assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
        page.unroute_all()
        page.get_by_role("alert").get_by_text("there is no run").wait_for()
        assert page.get_by_text("Connection lost").count() == 0


def test_what_was_chosen_by_its_number_is_let_go_when_the_numbers_change(browser, tmp_path):
    hold = Hold()
    with (
        running(
            tmp_path,
            hold=hold,
            entry=open_entry(settings_for(tmp_path), models=lambda wish: RelationsHeld(hold, wish.ontology)),
        ) as service,
        open_page(browser, studio(service, begin(service, hold))) as page,
    ):
        page.get_by_role("tab", name="Relations").click()
        relation = page.locator("[data-relation]").last
        relation.wait_for()
        relation.click()
        page.get_by_text("Said here").wait_for()
        hold.let_go()
        page.get_by_role("button", name="Download").wait_for()
        page.wait_for_function("() => !location.hash.includes('s=r')")
        assert page.get_by_text("Said here").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_under_way_is_for_everybody_and_fits_a_telephone(browser, service, hold, scheme):
    key = begin(service, hold)
    with open_page(browser, studio(service, key), color_scheme=scheme) as page:
        page.locator("mark").first.wait_for()
        page.get_by_role("tab", name="Relations").click()
        page.get_by_text("No relations yet").wait_for()
        assert violations(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        assert not is_too_wide(page)


def test_parts_that_take_too_long_or_fail_are_told(browser, tmp_path):
    seen, first = Event(), Semaphore(1)

    def reply(call):
        # The first is refused once by the server and asked again; every later one waits until somebody has looked.
        if first.acquire(blocking=False):
            return status(500, message="the server stumbled")
        return Step(reply=ORACLE(call), gate=seen)

    with (
        ModelServer(reply) as model,
        running(tmp_path, models=model.address("tiny"), stage_timeouts="entity_extraction=1/60") as one,
    ):
        request = {"text": document(2), "ontologyId": "company", "extractionParams": {"extractor": "model"}}
        answer = one.client.post("/api/v1/extract", json=request, headers=BEGINS)
        with open_page(browser, studio(one, answer.json()["idempotencyKey"])) as page:
            notices = page.locator(".progress .notice")
            notices.filter(has_text="Entity extraction takes longer than 1 s; it goes on.").wait_for()
            notices.filter(has_text="tried again after").wait_for()
            seen.set()
            page.get_by_role("button", name="Download").wait_for()


def test_a_chunk_that_is_known_from_before_is_counted_once_and_not_in_every_stage(browser, service):
    with open_page(browser, service.url) as page:
        known = page.evaluate(
            """async () => {
              const { emptyProgress, heard } = await import("/app/live_run.js");
              const now = emptyProgress();
              let number = 0;
              for (const stage of ["entity_extraction", "relation_extraction"]) {
                for (const cached of [true, true, false]) heard(now, { type: "chunk_completed", stage, cached, sequenceNumber: ++number });
              }
              return now.cached;
            }"""
        )
    assert known == 2


def test_a_wait_that_is_over_is_told_no_more(browser, service):
    with open_page(browser, service.url) as page:
        told = page.evaluate(
            """async () => {
              const { currentNotices, emptyProgress, heard } = await import("/app/live_run.js");
              const now = emptyProgress(), at = Date.now();
              heard(now, { type: "rate_limited", waitMs: 60000, reason: "tokens", timestamp: at - 90000, sequenceNumber: 1 });
              heard(now, { type: "timeout_warning", limit: "hard", stage: "grounding", timeoutMs: 2000, timestamp: at, sequenceNumber: 2 });
              const over = currentNotices(now).map((one) => one.text);
              heard(now, { type: "rate_limited", waitMs: 60000, reason: "server", timestamp: at, sequenceNumber: 3 });
              return [over, currentNotices(now).map((one) => one.text)];
            }"""
        )
    given_up = "Grounding took longer than 2 s for a part of the text: that part was given up."
    assert told == [
        [given_up],
        [given_up, "The model's server lets nothing more through for 60 s; waiting."],
    ]
