"""What is at hand or done is answered at once, and nothing is left behind."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import PLAIN, frame, opened, pack, unpack
from sameas.once.engine import Engine
from sameas.once.errors import KeyReused, Reentered, ResultDoesNotFit, StoreUnavailable
from sameas.once.record import Outcome, Unframed
from sameas.once.store import AsyncStore, Store
from sameas.stores.memory import MemoryBackend
from sameas.stores.tiered import TieredBackend

RESULT = {"order": 1, "lines": ["a", "b"]}


class Counting(MemoryBackend):
    """Counts what it is asked, and can be down."""

    claims = 0
    down = False

    def claim(self, request):
        self.claims += 1
        return super().claim(request)

    def perform(self, command):
        if self.down:
            raise StoreUnavailable("down")
        return super().perform(command)


@pytest.fixture
def memory():
    return Counting()


@pytest.fixture
def tier(memory):
    return TieredBackend(memory, ttl=3_600)


def never(_):
    raise AssertionError("the work was run again")


def flights_of(engine):
    return len(engine._call_builder.in_flight_calls)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_answer_at_hand_asks_nobody(kind, tier, memory):
    def asked():
        if kind == "sync":
            return Engine(Store(tier)).record(never, scope="s", key="k")
        return asyncio.run(AsyncEngine(AsyncStore(tier)).record(never, scope="s", key="k"))

    Engine(Store(tier)).run(lambda _: RESULT, scope="s", key="k")
    first = asked()
    claims = memory.claims
    again = asked()
    assert again == first
    assert again.was_replay
    assert again.result == RESULT
    assert memory.claims == claims


def test_every_replay_from_the_tier_is_the_callers_own_to_change(tier):
    engine = Engine(Store(tier))
    engine.run(lambda _: RESULT, scope="s", key="k")
    engine.run(never, scope="s", key="k")["lines"].append("changed")
    assert engine.run(never, scope="s", key="k") == RESULT


def test_answer_at_hand_is_only_for_the_same_request(tier):
    engine = Engine(Store(tier))
    engine.run(lambda _: RESULT, scope="s", key="k", payload={"a": 1})
    engine.run(never, scope="s", key="k", payload={"a": 1})
    with pytest.raises(KeyReused):
        engine.run(never, scope="s", key="k", payload={"a": 2})


def test_work_that_asks_for_itself_is_refused_though_the_answer_is_at_hand(tier, memory):
    engine, elsewhere = Engine(Store(tier)), Engine(Store(memory))

    def work(_):
        elsewhere.forget("s", "k")
        # Another thread is not inside this work.
        with ThreadPoolExecutor(1) as threads:
            threads.submit(elsewhere.run, lambda _: RESULT, scope="s", key="k").result()
        request = engine._call_builder.call(never, scope="s", key="k").request
        Store(tier).claim(request)
        assert tier.recall(request) is not None
        with pytest.raises(Reentered):
            engine.run(never, scope="s", key="k")
        return "late"

    assert engine.run(work, scope="s", key="k") == RESULT


@pytest.mark.parametrize("backend", [MemoryBackend, lambda: TieredBackend(MemoryBackend())])
def test_flights_are_gone_after_every_kind_of_answer(backend):
    engine = Engine(Store(backend()))
    engine.run(lambda _: RESULT, scope="s", key="k", payload=1)
    assert flights_of(engine) == 0
    engine.run(never, scope="s", key="k", payload=1)
    assert flights_of(engine) == 0
    with pytest.raises(KeyReused):
        engine.run(never, scope="s", key="k", payload=2)
    assert flights_of(engine) == 0
    with pytest.raises(AssertionError):
        engine.run(never, scope="s", key="other")
    assert flights_of(engine) == 0


def test_store_that_is_down_leaves_no_flight(memory):
    engine = Engine(Store(memory))
    memory.down = True
    with pytest.raises(StoreUnavailable):
        engine.run(never, scope="s", key="k")
    assert flights_of(engine) == 0
    memory.down = False
    assert engine.run(lambda _: RESULT, scope="s", key="k") == RESULT


def test_replay_that_cannot_be_read_leaves_no_flight(memory):
    engine = Engine(Store(memory))
    engine.run(lambda _: b"bytes", scope="s", key="k")
    for _ in range(2):
        with pytest.raises(ResultDoesNotFit, match="no longer fits"):
            engine.run(never, scope="s", key="k", result_type=dict[str, int])
        assert flights_of(engine) == 0


def test_frame_is_checked_once_where_a_result_is_unpacked_often():
    kept = opened(Outcome(frame(b"[1,2]"), "application/json"))
    assert isinstance(kept, Unframed)
    assert kept.inside == b"[1,2]"
    assert unpack(kept, PLAIN) == [1, 2]


@pytest.mark.parametrize(
    "data",
    [frame(b"[" + b"1," * 5_000 + b"1]"), frame(b"[1]")[:-1] + b"x", b"", b"no frame at all, but long enough"],
    ids=["compressed", "damaged", "empty", "not framed"],
)
def test_what_cannot_be_opened_cheaply_and_surely_stays_as_it_is(data):
    outcome = Outcome(data, "application/json")
    assert opened(outcome) is outcome


@pytest.mark.parametrize("result", [RESULT, [1, {"a": None}], None, "text", b"bytes", 3, {"a": (1, 2)}])
def test_what_the_first_caller_gets_is_what_everybody_gets(result):
    outcome, told = pack(result, PLAIN)
    assert told == unpack(outcome, PLAIN)
    if isinstance(result, dict | list):
        assert told is not result


def test_work_that_asks_past_its_tier_asks_for_itself_too(tier, memory):
    engine, past = Engine(Store(tier)), Engine(Store(memory))

    def work(_):
        with pytest.raises(Reentered):
            past.run(never, scope="s", key="k")
        return RESULT

    assert engine.run(work, scope="s", key="k") == RESULT


def test_what_is_at_hand_is_given_without_asking_what_a_new_record_would_say(memory):
    engine, asked = Engine(Store(TieredBackend(memory, ttl=3_600))), []

    def audit_of():
        asked.append(1)
        return {"trace_id": "t"}

    held = engine.begin(scope="s", key="k", audit={"owner": "ann"}, audit_of=audit_of)
    assert held.finish(RESULT).result == RESULT
    assert engine.read("s", "k").about.audit == {"owner": "ann", "trace_id": "t"}
    # The first replay brings it near.
    engine.begin(scope="s", key="k")
    assert engine.begin(scope="s", key="k", audit_of=audit_of).was_replay
    assert asked == [1]


def test_tasks_do_alike(memory):
    async def main():
        engine, asked = AsyncEngine(AsyncStore(TieredBackend(memory, ttl=3_600))), []
        held = await engine.begin(scope="s", key="k", audit_of=lambda: asked.append(1) or {"trace_id": "t"})
        await held.finish(RESULT)
        await engine.begin(scope="s", key="k")
        assert (await engine.begin(scope="s", key="k", audit_of=lambda: asked.append(2) or {})).was_replay
        assert asked == [1]
        assert (await engine.read("s", "k")).about.audit == {"trace_id": "t"}

    asyncio.run(main())
