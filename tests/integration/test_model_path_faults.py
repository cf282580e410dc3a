"""The model path against a server that misbehaves: the run says what happened, spends what it may, loses nothing."""

import asyncio
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sameas.extraction.events.events import (
    BudgetWarning,
    ErrorRecoverable,
    ExtractionCompleted,
    RateLimited,
    StageCompleted,
    TimeoutWarning,
)
from sameas.extraction.extractors.prompted import PromptSettings
from sameas.extraction.runs.service import Extraction
from sameas.llm.account import RateLimits
from sameas.llm.circuit import CircuitBreaker, CircuitSettings
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.prices import Price
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageTimeout
from tests.servers.model_oracle import asked
from tests.servers.model_script import (
    Call,
    Step,
    drips,
    empty,
    garbage,
    held,
    refuses,
    replace,
    resets,
    runs_out,
    says,
    status,
    truncated,
)
from tests.servers.model_server import ModelServer

from .model_path import ORACLE, PLENTY, ModelPath, document, expected, model_path, sentence, stated
from .model_path_process import extract, killed_at_the_end

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]

CHUNKS = 6
BAD = 2
WITHIN = 30.0
USED = (500, 20)


def good(call: Call) -> Step:
    return says(ORACLE(call), usage=USED)


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    """A model that knows the document, and says what it used."""
    model_server.rescript(good)
    return model_server


def impatient() -> CentralRateLimiterService:
    """Waits for no circuit, and counts every failure."""
    circuit = CircuitBreaker(CircuitSettings(together_within=0))
    return CentralRateLimiterService(PLENTY, circuit=circuit, longest_pause=0)


def bad_at(step: Step | Callable[[], Step], *, schema: str = "EntityReply") -> Callable[[Call], Step]:
    """Whatever is asked about one chunk goes wrong in one way."""

    def answer(call: Call) -> Step:
        if call.schema_name == schema and sentence(BAD) in asked(call):
            return step() if callable(step) else step
        return good(call)

    return answer


FAULTS: dict[str, tuple[Step, str, int]] = {
    # What is sent, the code that the run names, and how many calls the bad chunk takes.
    "server error": (status(500), "server", 3),
    "overloaded": (status(503), "overloaded", 9),
    "reset in mid-reply": (resets(), "network", 3),
    "closed in mid-reply": (resets(by="close"), "network", 3),
    "garbage": (garbage(), "malformed", 3),
    "truncated body": (truncated(), "malformed", 3),
    "no choices": (empty(), "malformed", 3),
    "text instead of JSON": (says("Sure! Here are the entities."), "invalid_reply", 2),
    "JSON that is cut": (says('{"entities":[{"name":"Pers'), "invalid_reply", 2),
    "wrong schema": (says({"entities": "none", "values": []}), "invalid_reply", 2),
    "another schema": (says({"answer": 42}), "invalid_reply", 2),
    "out of tokens": (runs_out(), "truncated_reply", 2),
    "refusal": (refuses(), "model_refused", 1),
    "bad request": (status(400), "bad_request", 1),
    "asked to wait": (status(429, retry_after=0.01), "rate_limited", 9),
    "a byte now and then": (drips("x" * 4000, every=0.05), "timeout", 3),
}


@pytest.mark.parametrize("interface", ["compatible", "anthropic", "google"])
@pytest.mark.parametrize("name", FAULTS)
async def test_a_bad_chunk_is_named_the_others_are_done_and_the_next_request_does_the_rest(
    server: ModelServer, name: str, interface: str, tmp_path: Path
) -> None:
    step, code, tries = FAULTS[name]
    server.rescript(bad_at(step))
    # Short only where the end of it is what is shown: on a slow machine good replies take their time too.
    timeout = 1.2 if code == "timeout" else 20.0
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, timeout=timeout, interface=interface) as path:
        part = await path.extract(document(CHUNKS))
        assert [(gap.stage, gap.chunk_index) for gap in part.metadata.missing] == [("entity_extraction", BAD)]
        assert part.metadata.missing[0].code == code
        assert part.metadata.outcome == "PARTIAL_EARLY_EXIT"
        assert stated(part) == expected(set(range(CHUNKS)) - {BAD})
        made = sum(sentence(BAD) in asked(call) for call in server.calls)
        # While others are answered, who is only asked to wait goes on.
        assert made == tries or (code == "rate_limited" and tries < made < tries + CHUNKS)
        assert server.most_at_once <= 4
        failures = [event for event in path.told(ErrorRecoverable) if event.chunk_index == BAD]
        assert [event.error.code for event in failures] == [code]
        assert [event.partial for event in path.told(StageCompleted) if event.stage == "entity_extraction"] == [True]
        assert path.told(ExtractionCompleted)[0].summary.outcome == "PARTIAL_EARLY_EXIT"
        _accounts_match(server, part)
        server.rescript(good)
        before = len(server.calls)
        whole = await path.extract(document(CHUNKS))
        assert whole.metadata.outcome == "COMPLETE"
        assert stated(whole) == expected(range(CHUNKS))
        assert all(sentence(BAD) in asked(call) for call in server.calls[before:])
        assert len(server.calls) - before == 2


def _accounts_match(server: ModelServer, part: Extraction) -> None:
    """Every call is in the accounts, and good replies with exactly what they cost."""
    rows = part.metadata.usage
    assert sum(row.calls for row in rows) == len(server.calls)
    relations = next(row for row in rows if row.stage == "relation_extraction")
    assert (relations.input_tokens, relations.output_tokens) == (5 * USED[0], 5 * USED[1])


async def test_a_failed_relation_question_keeps_the_entities(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(bad_at(status(500), schema="RelationReply"))
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        part = await path.extract(document(1 + BAD)[document(BAD + 1).index(sentence(BAD)) :])
        assert part.metadata.outcome == "PARTIAL_ENTITY_ONLY"
        assert len(part.graph.entities) == 2
        assert [gap.stage for gap in part.metadata.missing] == ["relation_extraction"]


async def test_a_429_without_retry_after_is_waited_for_and_told(server: ModelServer, tmp_path: Path) -> None:
    first = threading.Event()

    def once(call: Call) -> Step:
        if not first.is_set():
            first.set()
            return status(429)
        return good(call)

    server.rescript(once)
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        whole = await path.extract(document(CHUNKS))
        assert whole.metadata.outcome == "COMPLETE"
        assert path.told(RateLimited)
        assert len(server.calls) == 2 * CHUNKS + 1


async def test_the_limits_hold_and_waiting_is_told_and_does_not_count_as_work(
    server: ModelServer, tmp_path: Path
) -> None:
    limits = RateLimits(requests_per_minute=1000, tokens_per_minute=10**9, max_concurrent=1)
    tight = {**STAGE_TIMEOUTS, "entity_extraction": StageTimeout(2_000, 3_000)}
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, limits=limits, timeouts=tight) as path:
        path.settings = msgspec.structs.replace(path.settings, concurrency=CHUNKS)
        whole = await path.extract(document(CHUNKS))
        assert whole.metadata.outcome == "COMPLETE"
        assert {event.reason for event in path.told(RateLimited)} == {"concurrent"}
        assert server.most_at_once == 1


async def test_a_hard_limit_ends_the_chunk_and_is_told(server: ModelServer, tmp_path: Path) -> None:
    tight = {**STAGE_TIMEOUTS, "entity_extraction": StageTimeout(1_400, 1_500)}
    gate = threading.Event()
    server.rescript(bad_at(held(gate)))
    one_attempt = {"attempt_seconds": 60.0}
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, timeouts=tight, control=one_attempt) as path:
        part = await path.extract(document(CHUNKS))
        assert [(gap.chunk_index, gap.code) for gap in part.metadata.missing] == [(BAD, "timed_out")]
        warnings = [event.limit for event in path.told(TimeoutWarning) if event.chunk_index == BAD]
        assert warnings == ["soft", "hard"]
    gate.set()


@pytest.mark.parametrize("usage", [(), (0, 0), (-5, 10**9), ("many", None)], ids=str)
async def test_wrong_counts_of_tokens_are_replaced_by_our_own(
    server: ModelServer, usage: tuple[Any, ...], tmp_path: Path
) -> None:
    server.rescript(lambda call: says(ORACLE(call), usage=usage))
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        whole = await path.extract(document(2))
        assert whole.metadata.outcome == "COMPLETE"
        for row in whole.metadata.usage:
            assert row.unreported == row.calls
            assert 200 * row.calls < row.tokens < 1500 * row.calls


async def test_a_blip_costs_no_chunk(server: ModelServer, tmp_path: Path) -> None:
    """Six 503s within 0.4 s, from calls that were under way together, as a provider's restart gives them."""
    refused = 0

    def blip(call: Call) -> Step:
        nonlocal refused
        # The model has answered before: a blip is no wrong address.
        if 0 < call.number and refused < 6:
            refused += 1
            return replace(status(503), latency=0.02)
        return good(call)

    server.rescript(blip)
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        whole = await path.extract(document(44))
        assert whole.metadata.outcome == "COMPLETE"
        assert refused == 6
        assert stated(whole) == expected(range(44))
        assert "circuit_open" not in {event.error.code for event in path.told(ErrorRecoverable)}


async def test_a_429_without_a_time_costs_no_chunk(server: ModelServer, tmp_path: Path) -> None:
    taken: list[float] = []

    def few(call: Call) -> Step:
        """Takes five in a second, and does not say so."""
        if len(taken) >= 5 and call.arrived_at - taken[-5] < 1:
            return status(429)
        taken.append(call.arrived_at)
        return good(call)

    server.rescript(few)
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, prompts=PromptSettings(mode="joint")) as path:
        whole = await path.extract(document(15))
        assert whole.metadata.outcome == "COMPLETE"
        assert stated(whole) == expected(range(15))


async def test_a_batch_waits_for_the_circuit_and_then_goes_on(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(lambda call: status(500) if 0 < call.number <= 5 else good(call))
    settings = CircuitSettings(failures_to_open=2, recover_after=0.5, together_within=0)
    limiter = CentralRateLimiterService(PLENTY, circuit=CircuitBreaker(settings))
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, limiter=limiter) as path:
        whole = await path.extract(document(20))
        assert whole.metadata.outcome == "COMPLETE"
        assert "circuit_open" in {event.error.code for event in path.told(ErrorRecoverable)}
        assert "server" in {event.reason for event in path.told(RateLimited)}


async def test_a_deadline_ends_the_wait_for_a_circuit(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(lambda call: status(500) if call.number else good(call))
    limiter = CentralRateLimiterService(
        PLENTY, circuit=CircuitBreaker(CircuitSettings(failures_to_open=2, together_within=0))
    )
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, limiter=limiter) as path:
        path.settings = msgspec.structs.replace(path.settings, deadline_seconds=3)
        part = await path.extract(document(20))
        assert {gap.code for gap in part.metadata.missing} <= {"deadline", "server"}
        assert "deadline" in {gap.code for gap in part.metadata.missing}


async def test_where_no_pause_is_allowed_an_open_circuit_fails_the_rest_at_once(
    server: ModelServer, tmp_path: Path
) -> None:
    server.rescript(status(500))
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, limiter=impatient()) as path:
        none = await path.extract(document(40))
        assert none.metadata.outcome == "EMPTY"
        assert len(none.metadata.missing) == 40
        # One at a time, because it has not answered yet.
        assert len(server.calls) == 5
        codes = [event.error.code for event in path.told(ErrorRecoverable) if event.chunk_index is None]
        assert "circuit_open" in codes
        assert {gap.code for gap in none.metadata.missing} <= {"server", "circuit_open"}
    server.rescript(good)
    # Another process, or the same one two minutes later.
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        assert stated(await path.extract(document(40))) == expected(range(40))


async def test_a_token_limit_stops_cleanly_and_the_accounts_are_exact(server: ModelServer, tmp_path: Path) -> None:
    limit = 30_000

    async def stopped(path: ModelPath, server: ModelServer) -> Extraction:
        part = await path.extract(document(60))
        spent = sum(row.tokens for row in part.metadata.usage)
        assert spent == len(server.calls) * sum(USED)
        assert spent <= limit
        assert {gap.code for gap in part.metadata.missing} == {"budget_spent"}
        assert path.told(BudgetWarning)
        return part

    async with asyncio.timeout(WITHIN), model_path(server, tmp_path, control={"max_tokens": limit}) as path:
        part = await stopped(path, server)
        assert 0 < len(stated(part)) < 60
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        before = len(server.calls)
        whole = await path.extract(document(60))
        assert stated(whole) == expected(range(60))
        assert len(server.calls) == 120
        assert len(server.calls) - before < 120


async def test_a_cost_limit_stops_cleanly(server: ModelServer, tmp_path: Path) -> None:
    price = Price(input=Decimal(1), output=Decimal(10))
    limit = Decimal("0.02")
    async with (
        asyncio.timeout(WITHIN),
        model_path(server, tmp_path, control={"max_cost": limit}, price=price) as path,
    ):
        part = await path.extract(document(60))
        cost = sum((row.cost for row in part.metadata.usage if row.cost is not None), Decimal(0))
        assert cost == len(server.calls) * price.cost(input_tokens=USED[0], output_tokens=USED[1])
        assert Decimal(0) < cost <= limit
        assert {gap.code for gap in part.metadata.missing} == {"budget_spent"}


async def test_what_was_known_before_is_named_so_when_nobody_answers(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(bad_at(status(400)))
    async with asyncio.timeout(WITHIN), model_path(server, tmp_path) as path:
        assert (await path.extract(document(CHUNKS))).metadata.outcome == "PARTIAL_EARLY_EXIT"
        server.rescript(status(400))
        again = await path.extract(document(CHUNKS))
        assert again.metadata.outcome == "FALLBACK_CACHE"
        assert stated(again) == expected(set(range(CHUNKS)) - {BAD})


async def test_a_second_model_of_another_provider_that_is_down_does_not_keep_the_first_from_being_asked(
    server: ModelServer, tmp_path: Path
) -> None:
    with ModelServer(status(500)) as other:
        control = {"second_limiter": impatient()}
        async with asyncio.timeout(WITHIN), model_path(server, tmp_path, second=other, control=control) as path:
            part = await path.extract(document(CHUNKS))
            # The circuit of the second one is open by now.
            assert {gap.stage for gap in part.metadata.missing} == {"grounding"}
            assert "circuit_open" in {gap.code for gap in part.metadata.missing}
            more = await path.extract(document(CHUNKS + 2))
            assert stated(more) == expected(range(CHUNKS + 2))
            assert {gap.stage for gap in more.metadata.missing} == {"grounding"}
            assert len(other.calls) == 5


def test_a_killed_process_repeats_only_the_calls_that_were_in_flight(tmp_path: Path) -> None:
    gate = threading.Event()

    def slow_at_the_end(call: Call) -> Step:
        return held(gate, ORACLE(call)) if call.number >= 15 else good(call)

    with ModelServer(slow_at_the_end) as server:
        with killed_at_the_end(server.url, tmp_path, 10):
            # All four workers are stuck: each has kept its earlier answers before it asked again.
            server.wait_for_calls(19, within_seconds=60)
        in_flight = len(server.calls) - server.answered
        assert in_flight == 4
        gate.set()
        server.rescript(good)
        before = len(server.calls)
        whole = asyncio.run(extract(server.url, str(tmp_path), 10))
        assert whole.metadata.status == "complete"
        assert stated(whole) == expected(range(10))
        repeated = {asked(call) for call in server.calls[:before]} & {asked(call) for call in server.calls[before:]}
        assert len(repeated) <= in_flight
        assert len(server.calls) <= 20 + in_flight
        # The killed process left its accounts behind, also of what it never had an answer to.
        calls = sum(row.calls for row in whole.metadata.usage)
        lost = sum(row.failed for row in whole.metadata.usage)
        assert (calls, lost) == (len(server.calls), in_flight)
        assert sum(row.output_tokens for row in whole.metadata.usage) == 20 * USED[1]
        assert sum(row.input_tokens for row in whole.metadata.usage) > 20 * USED[0]
