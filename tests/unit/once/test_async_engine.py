"""The engine for tasks: the same promise, and cancellation that leaves nothing behind."""

import asyncio
import threading
from contextvars import Context

import pytest

from sameas import (
    AsyncEngine,
    AsyncIdempotentProcessor,
    InProgress,
    KeyReused,
    OutcomeUnknown,
    Policy,
    StoredFailure,
    StoreUnavailable,
    Superseded,
    current_context,
    open_async_store,
)
from sameas.once.errors import BatchFailed, Reentered, TooManyWaiters
from sameas.once.record import State
from sameas.once.store import AsyncStore, Query
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock
from tests.unit.once.renewals import Renewals

pytestmark = pytest.mark.anyio


class Counted:
    def __init__(self, result="done", seconds=0.0):
        self.result = result
        self.seconds = seconds
        self.runs = 0
        self.contexts = []

    async def __call__(self, ctx):
        self.runs += 1
        self.contexts.append(ctx)
        assert current_context() is ctx
        await asyncio.sleep(self.seconds)
        return self.result


class Gated(Counted):
    """Work that says when it is under way and ends when it may."""

    def __init__(self, result="done"):
        super().__init__(result)
        self.under_way, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, ctx):
        result = await super().__call__(ctx)
        self.under_way.set()
        await self.may_end.wait()
        return result


async def followed(engine):
    """Somebody waits for the one who is at work."""
    while not any(in_flight.followers for in_flight in engine._call_builder.in_flight_calls._in_flight_calls.values()):
        await asyncio.sleep(0.001)


@pytest.fixture
def backend():
    return MemoryBackend()


@pytest.fixture
def engine(backend):
    return AsyncEngine(AsyncStore(backend))


async def test_the_first_call_runs_and_the_second_is_a_replay(engine):
    work = Counted({"a": 1})
    first = await engine.record(work, scope="s", key="k", payload={"x": 1})
    second = await engine.record(work, scope="s", key="k", payload={"x": 1})
    assert (first.result, first.was_replay) == ({"a": 1}, False)
    assert (second.result, second.was_replay) == ({"a": 1}, True)
    assert await engine.run(work, scope="s", key="k", payload={"x": 1}) == {"a": 1}
    with pytest.raises(KeyReused, match="x"):
        await engine.run(work, scope="s", key="k", payload={"x": 2})
    assert work.runs == 1


async def test_a_plain_function_may_be_the_work(engine):
    assert await engine.run(lambda ctx: 5, scope="s", key="k") == 5


async def test_tasks_of_one_key_share_one_run(engine):
    work = Counted("shared", 0.01)
    records = await asyncio.gather(*(engine.record(work, scope="s", key="k") for _ in range(64)))
    assert work.runs == 1
    assert {record.result for record in records} == {"shared"}
    assert [record.was_replay for record in records].count(False) == 1
    assert len(engine._call_builder.in_flight_calls) == 0


async def test_when_the_first_of_twenty_fails_one_second_run_serves_the_rest(engine):
    runs = []

    async def work(ctx):
        runs.append(1)
        await asyncio.sleep(0.01)
        if len(runs) == 1:
            raise RuntimeError("first")
        return "second"

    results = await asyncio.gather(*(engine.run(work, scope="s", key="k") for _ in range(20)), return_exceptions=True)
    assert len(runs) == 2
    assert results.count("second") == 19
    assert isinstance(results[0], RuntimeError)


async def test_a_failure_that_is_kept_is_shared(backend):
    engine = AsyncEngine(AsyncStore(backend), policy=Policy(keep_errors=(ValueError,)))

    async def work(ctx):
        await asyncio.sleep(0.01)
        raise ValueError("bad input")

    results = await asyncio.gather(*(engine.run(work, scope="s", key="k") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [ValueError, StoredFailure, StoredFailure]


async def test_a_cancelled_leader_gives_way_to_a_waiter(engine):
    work = Gated("served")
    leader = asyncio.create_task(engine.run(work, scope="s", key="k"))
    await work.under_way.wait()
    waiter = asyncio.create_task(engine.record(work, scope="s", key="k"))
    await followed(engine)
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    work.may_end.set()
    assert (await waiter).result == "served"
    assert work.runs == 2


async def test_a_cancelled_waiter_does_not_disturb_the_run(engine):
    work = Gated("served")
    leader = asyncio.create_task(engine.run(work, scope="s", key="k"))
    await work.under_way.wait()
    waiter = asyncio.create_task(engine.run(work, scope="s", key="k"))
    await followed(engine)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    work.may_end.set()
    assert await leader == "served"
    assert work.runs == 1


class Slow(MemoryBackend):
    """A store whose answers to some commands take a while, applied before or after the wait."""

    def __init__(self, word, *, applied_first):
        super().__init__()
        self.word = word
        self.applied_first = applied_first
        self.reached = asyncio.Event()

    async def aperform(self, command):
        if self.word not in repr(command):
            return await super().aperform(command)
        self.reached.set()
        if self.applied_first:
            answer = await super().aperform(command)
            await asyncio.sleep(0.03)
            return answer
        await asyncio.sleep(0.03)
        return await super().aperform(command)


@pytest.mark.parametrize("applied_first", [True, False])
@pytest.mark.parametrize("cancels", [1, 3])
async def test_cancellation_during_the_claim_leaves_no_claim_behind(applied_first, cancels):
    backend = Slow("claim", applied_first=applied_first)
    engine = AsyncEngine(AsyncStore(backend))
    task = asyncio.create_task(engine.run(Counted(), scope="s", key="k"))
    await backend.reached.wait()
    for _ in range(cancels):
        task.cancel()
        await asyncio.sleep(0.001)
    with pytest.raises(asyncio.CancelledError):
        await task
    backend.word = "nothing"
    assert await engine.read("s", "k") is None
    assert await engine.run(Counted(), scope="s", key="k") == "done"


@pytest.mark.parametrize("applied_first", [True, False])
async def test_cancellation_between_effect_and_complete_still_hands_the_result_in(applied_first):
    backend = Slow("complete", applied_first=applied_first)
    engine = AsyncEngine(AsyncStore(backend))
    work = Counted("effect")
    task = asyncio.create_task(engine.run(work, scope="s", key="k"))
    await backend.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = await engine.record(work, scope="s", key="k")
    assert (record.result, record.was_replay, work.runs) == ("effect", True, 1)


async def test_a_handler_that_outlives_its_lease_keeps_it():
    backend = Renewals()
    engine = AsyncEngine(AsyncStore(backend), policy=Policy(lease=0.06))
    thief = Counted("stolen")

    async def slow(ctx):
        for _ in range(6):
            await backend.apass_time(0.04)
            with pytest.raises(InProgress):
                await asyncio.create_task(
                    AsyncEngine(AsyncStore(backend)).run(thief, scope="s", key="k", on_busy="refuse"),
                    context=Context(),
                )
        assert not ctx.lost
        return "kept"

    assert await engine.run(slow, scope="s", key="k") == "kept"
    assert thief.runs == 0


async def test_a_replaced_worker_gets_the_accepted_result(backend):
    engine = AsyncEngine(AsyncStore(backend), policy=Policy(lease=0.03))

    async def sleeps_through_its_lease(ctx):
        engine._heartbeat.remove(ctx)
        await asyncio.sleep(0.05)
        other = AsyncEngine(AsyncStore(backend))
        await asyncio.create_task(other.run(Counted("accepted"), scope="s", key="k"), context=Context())
        engine._heartbeat.add(ctx, Policy(lease=0.003))
        while not ctx.lost:
            await asyncio.sleep(0.001)
        return "late"

    record = await engine.record(sleeps_through_its_lease, scope="s", key="k")
    assert (record.result, record.was_replay) == ("accepted", True)


async def test_a_forgotten_worker_is_told_so(engine):
    async def work(ctx):
        await engine.forget("s", "k")
        return "late"

    with pytest.raises(Superseded):
        await engine.run(work, scope="s", key="k")


async def test_a_dead_holder_is_replaced_after_its_lease(backend):
    dead = AsyncEngine(AsyncStore(backend))
    await dead.store.claim(dead._call_builder.call(len, scope="s", key="k", lease=0.05).request)
    work = Counted()
    await AsyncEngine(AsyncStore(backend)).run(work, scope="s", key="k")
    assert work.contexts[0].attempt == 2


async def test_re_entry_waiting_and_refusal(engine):
    async def again(ctx):
        return await engine.run(again, scope="s", key="k")

    with pytest.raises(Reentered):
        await engine.run(again, scope="s", key="k")

    work = Gated("done")
    leader = asyncio.create_task(engine.run(work, scope="s", key="k"))
    await work.under_way.wait()
    with pytest.raises(InProgress):
        await engine.run(work, scope="s", key="k", on_busy="refuse")
    with pytest.raises(InProgress):
        await engine.run(work, scope="s", key="k", wait_for=0.01)
    work.may_end.set()
    assert await leader == "done"


async def test_waiters_are_bounded(backend):
    engine = AsyncEngine(AsyncStore(backend), policy=Policy(max_waiters=3))
    work = Counted("done", 0.05)
    results = await asyncio.gather(*(engine.run(work, scope="s", key="k") for _ in range(6)), return_exceptions=True)
    assert results[:4] == ["done"] * 4
    assert [type(result) for result in results[4:]] == [TooManyWaiters, TooManyWaiters]


async def test_a_waiter_is_woken_from_another_thread(backend):
    engine = AsyncEngine(AsyncStore(backend))
    other = AsyncEngine(AsyncStore(backend))
    go = threading.Event()

    def lead():
        async def work(ctx):
            await asyncio.to_thread(go.wait, 5)
            return "other loop"

        asyncio.run(other.run(work, scope="s", key="k"))

    thread = threading.Thread(target=lead)
    thread.start()
    while await engine.read("s", "k") is None:
        await asyncio.sleep(0.001)
    waiter = asyncio.create_task(engine.run(Counted("mine"), scope="s", key="k"))
    while not backend._listeners:
        await asyncio.sleep(0.001)
    go.set()
    assert await waiter == "other loop"
    thread.join()


def test_one_engine_serves_two_event_loops_one_after_the_other_and_at_once(tmp_path):
    engine = AsyncEngine(open_async_store(f"sqlite:///{tmp_path}/a.db"), policy=Policy(lease=0.1))
    work = Counted("loop", 0.2)
    assert asyncio.run(engine.run(work, scope="s", key="first")) == "loop"
    assert asyncio.run(engine.run(work, scope="s", key="first")) == "loop"
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(asyncio.run(engine.run(work, scope="s", key="second"))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["loop"] * 4
    assert work.runs == 2


class Flaky(MemoryBackend):
    def __init__(self, **refuse):
        super().__init__()
        self.refuse = refuse

    async def aperform(self, command):
        for word, left in self.refuse.items():
            if left and word in repr(command):
                self.refuse[word] -= 1
                raise StoreUnavailable
        return await super().aperform(command)


async def test_a_store_that_does_not_answer():
    work = Counted()
    with pytest.raises(StoreUnavailable):
        await AsyncEngine(AsyncStore(Flaky(claim=1))).run(work, scope="s", key="k")
    assert work.runs == 0
    assert (await AsyncEngine(AsyncStore(Flaky(complete=2))).record(work, scope="s", key="k")).stored
    brief = Policy(hand_in_for=0.02, on_unstored="return")
    record = await AsyncEngine(AsyncStore(Flaky(complete=99)), policy=brief).record(work, scope="s", key="k")
    assert (record.result, record.stored) == ("done", False)
    short = Policy(lease=0.02, hand_in_for=0.2)
    with pytest.raises(OutcomeUnknown):
        await AsyncEngine(AsyncStore(Flaky(complete=99, renew=99)), policy=short).run(work, scope="s", key="k")


async def test_a_claim_that_cannot_be_given_back_is_noted():
    async def fail(ctx):
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError) as cancelled:
        await AsyncEngine(AsyncStore(Flaky(release=1))).run(fail, scope="s", key="k")
    assert "could not give the claim back" in cancelled.value.__notes__[0]


async def test_many_payloads(engine):
    running, most = 0, 0

    async def work(ctx, payload):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        if payload == 7:
            raise RuntimeError("seven")
        return payload * 2

    assert await engine.run_many(work, [1, 2, 3, 1], scope="s") == [2, 4, 6, 2]
    with pytest.raises(BatchFailed) as failed:
        await engine.run_many(work, range(12), scope="t", concurrency=3)
    assert most <= 4
    assert [getattr(result, "result", None) for result in failed.value.results] == [
        number * 2 if number != 7 else None for number in range(12)
    ]
    assert len(engine._call_builder.in_flight_calls) == 0


async def test_a_cancelled_batch_leaves_no_claims_behind(engine):
    async def work(ctx, payload):
        await asyncio.sleep(10)

    task = asyncio.create_task(engine.run_many(work, range(8), scope="s", concurrency=2))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await engine.find(Query(scope="s"))).records == []
    assert len(engine._call_builder.in_flight_calls) == 0


async def test_a_decorated_async_function(engine):
    @engine.once(scope="s", exclude_fields={"sent_at"})
    async def charge(order):
        return order["total"]

    assert await charge({"total": 5, "sent_at": 1}) == 5
    assert (await charge.record({"total": 5, "sent_at": 2})).was_replay

    class Shop:
        @engine.once(scope="m", key=lambda self, item: item)
        async def sell(self, item):
            return item

    assert await Shop().sell("x") == "x"
    assert (await Shop().sell.record("x")).was_replay


async def test_forgetting_listing_and_pruning():
    clock = MovableClock()
    engine = AsyncEngine(AsyncStore(MemoryBackend(clock)))
    await engine.run(Counted(), scope="a", key="k", tenant="t", tags=["red"])
    await engine.run(Counted(), scope="a", key="l", retention=60)
    assert [record.state for record in (await engine.find(Query(tenant="t"))).records] == [State.DONE]
    clock.advance(61)
    assert await engine.prune() == 1
    assert await engine.forget_where(tag="red") == 1
    assert not await engine.forget("a", "k", tenant="t")


async def test_processor_for_tasks(backend):
    seen = []

    async def handle(payload):
        seen.append(payload)
        return payload["id"]

    async with AsyncStore(backend) as store:
        processor = AsyncIdempotentProcessor(handle, store=store, scope="handle", exclude_fields={"sent_at"})
        assert not (await processor.process({"id": 1, "sent_at": 1})).was_replay
        assert (await processor.process({"id": 1, "sent_at": 2})).was_replay
        assert [record.result for record in await processor.process_many([{"id": 1}, {"id": 2}])] == [1, 2]
    assert len(seen) == 2
    async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
        assert await engine.run(lambda ctx: 1, scope="s", key="k") == 1
