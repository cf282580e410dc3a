"""Work that is done outside the engine: begun, held, and finished or given back, for threads and for tasks."""

import asyncio
import threading
import time

import pytest

from sameas import AsyncEngine, Engine, InProgress, KeyReused, current_context
from sameas.once.claim_handle import AsyncClaimHandle, ClaimHandle
from sameas.once.observe import CallEnded
from sameas.once.record import LOST
from sameas.once.store import AsyncStore, Query, Store
from sameas.stores.memory import MemoryBackend


class Told:
    def __init__(self):
        self.events = []

    def on(self, event):
        self.events.append(event)


class Losing(MemoryBackend):
    """Keeps what it is given and says that somebody else was faster."""

    def complete(self, lease, outcome, retain_for):
        yield from super().complete(lease, outcome, retain_for)
        return LOST


@pytest.fixture(params=["plain", "observed"])
def observers(request):
    return [Told()] if request.param == "observed" else []


def test_a_claim_is_finished_by_its_holder(observers):
    engine = Engine(Store(MemoryBackend()), observers=observers)
    held = engine.begin(scope="s", key="k", request_fingerprint="f")
    assert isinstance(held, ClaimHandle)
    with pytest.raises(InProgress):
        engine.begin(scope="s", key="k", request_fingerprint="f", on_busy="refuse")
    record = held.finish({"a": 1})
    assert (record.result, record.was_replay) == ({"a": 1}, False)
    assert engine.begin(scope="s", key="k", request_fingerprint="f").was_replay
    with pytest.raises(KeyReused):
        engine.begin(scope="s", key="k", request_fingerprint="other")
    if observers:
        ended = [event.how for event in observers[0].events if isinstance(event, CallEnded)]
        assert ended == ["InProgress", "fresh", "replay", "KeyReused"]


def test_a_claim_is_given_back_by_its_holder(observers):
    engine = Engine(Store(MemoryBackend()), observers=observers)
    held = engine.begin(scope="s", key="k")
    with pytest.raises(LookupError):
        held.give_back(LookupError("no"))
    assert engine.find(Query()).records == []
    assert isinstance(engine.begin(scope="s", key="k"), ClaimHandle)


def test_the_lease_of_a_held_call_is_renewed_and_others_wait():
    engine = Engine(Store(MemoryBackend()))
    held = engine.begin(scope="s", key="k", lease=0.1)
    got = []
    waiting = threading.Thread(target=lambda: got.append(engine.begin(scope="s", key="k", lease=0.1)))
    waiting.start()
    time.sleep(0.4)
    assert held.context.lost is False
    held.finish("done")
    waiting.join()
    assert (got[0].result, got[0].attempt) == ("done", 1)


def test_current_context_is_that_of_the_held_call():
    held = Engine(Store(MemoryBackend())).begin(scope="s", key="k")
    found = []

    def work():
        held.enter()
        found.append(current_context())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [held.context]
    held.finish(None)


@pytest.mark.anyio
async def test_tasks_finish_and_give_back(observers):
    engine = AsyncEngine(AsyncStore(MemoryBackend()), observers=observers)
    held = await engine.begin(scope="s", key="k")
    assert isinstance(held, AsyncClaimHandle)
    with pytest.raises(LookupError):
        await held.give_back(LookupError("no"))
    held = await engine.begin(scope="s", key="k")
    other = asyncio.create_task(engine.begin(scope="s", key="k"))
    await asyncio.sleep(0.01)
    assert (await held.finish("done")).result == "done"
    assert (await other).was_replay


@pytest.mark.anyio
async def test_a_holder_that_was_replaced_gets_what_was_accepted():
    engine = AsyncEngine(AsyncStore(Losing()))
    held = await engine.begin(scope="s", key="k")
    assert (await held.finish("mine")).was_replay


@pytest.mark.anyio
async def test_a_holder_that_is_cancelled_leaves_no_claim():
    engine = AsyncEngine(AsyncStore(MemoryBackend()))
    held = await engine.begin(scope="s", key="k")
    with pytest.raises(asyncio.CancelledError):
        await held.give_back(asyncio.CancelledError())
    assert (await engine.find(Query())).records == []
    assert len(engine._call_builder.in_flight_calls) == 0
