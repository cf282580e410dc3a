"""Runs that workers elsewhere do: how it is found out that they have ended, and what is sent again."""

import asyncio
import threading

import pytest

from sameas.cluster.broker import Broker, make_app
from sameas.objects import open_objects
from sameas.once.errors import StoreUnavailable
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.pending_runs import PendingObjects, PendingRun
from sameas.server.schemas import ExtractRequest

pytestmark = pytest.mark.anyio
WITHIN = 30.0


class Counted(PendingObjects):
    """Real objects, and how often one of them was asked for."""

    asked = 0

    def has(self, tenant, key):
        self.asked += 1
        return super().has(tenant, key)


class Noted(Broker):
    """A real broker, and what it was sent."""

    def __init__(self, url):
        super().__init__(url)
        self.sent = []

    def send(self, name, *arguments, priority):
        super().send(name, *arguments, priority=priority)
        self.sent.append((arguments, priority))


@pytest.fixture(autouse=True)
def empty_queue():
    """Brokers in memory are one, whatever their names."""
    make_app("memory://").connection_for_write().default_channel.queue_purge("sameas")


@pytest.fixture
def pending(tmp_path):
    return Counted(open_objects(f"file://{tmp_path}/objects"))


def key(number):
    return f"sha256-{number:064x}"


def written(pending, number):
    request = ExtractRequest(text="Anna works.", ontology_id="company")
    pending.keep(PendingRun(tenant="", key=key(number), request=request))


async def nobody(space, key):
    return None


def dispatch_of(pending, broker):
    return Dispatch(broker, pending, record=nobody, hears_ends=lambda: False)


async def test_many_runs_are_waited_for_with_one_look_at_all_of_them(pending):
    dispatch = dispatch_of(pending, Noted("memory://waited"))
    for number in range(60):
        written(pending, number)
    waiting = [asyncio.create_task(dispatch.do("", key(number), priority="interactive")) for number in range(60)]
    # Nobody tells of this end.
    while len(dispatch._broker.sent) < 60:
        await asyncio.sleep(0.01)
    pending.done("", key(7))
    done, _ = await asyncio.wait(waiting, timeout=WITHIN, return_when=asyncio.FIRST_COMPLETED)
    assert done == {waiting[7]}
    assert pending.asked == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await dispatch.close()


async def test_a_run_that_ends_before_its_message_is_away_is_seen_to_have_ended(pending):
    class Quick(Noted):
        def send(self, name, *arguments, priority):
            super().send(name, *arguments, priority=priority)
            pending.done(*arguments)
            loop.call_soon_threadsafe(dispatch.hear_end, *arguments)

    loop = asyncio.get_running_loop()
    dispatch = Dispatch(Quick("memory://quick"), pending, record=nobody, hears_ends=lambda: True)
    written(pending, 1)
    await asyncio.wait_for(dispatch.do("", key(1), priority="batch"), WITHIN)
    assert pending.asked == 1
    await dispatch.close()


async def test_what_somebody_waits_for_is_sent_again_before_batches(pending, monkeypatch):
    monkeypatch.setattr("sameas.server.runs.dispatch._SETTLES", 0.0)
    monkeypatch.setattr("sameas.server.runs.dispatch._SENT_AGAIN_AFTER", 0.0)
    broker = Noted("memory://again")
    dispatch = dispatch_of(pending, broker)
    written(pending, 1)
    waiting = asyncio.create_task(dispatch.do("", key(1), priority="interactive"))
    while not broker.sent:
        await asyncio.sleep(0.01)
    # Its message is gone, and so is that of a run which another node accepted.
    broker._app.connection_for_write().default_channel.queue_purge("sameas")
    written(pending, 2)
    del broker.sent[:]
    assert await dispatch.reap() == 2
    assert sorted(broker.sent) == [(("", key(1)), "interactive"), (("", key(2)), "batch")]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await dispatch.close()


async def test_a_broker_that_is_slow_keeps_nothing_else_waiting(pending):
    taken = threading.Event()

    class Slow(Noted):
        def send(self, name, *arguments, priority):
            taken.wait(WITHIN)
            super().send(name, *arguments, priority=priority)

    dispatch = dispatch_of(pending, Slow("memory://slow"))
    for number in range(100):
        written(pending, number)
        dispatch.post("", key(number), priority="batch")
    # With a thread for each message this would wait for the broker.
    async with asyncio.timeout(WITHIN / 2):
        assert await asyncio.to_thread(pending.has, "", key(1))
    taken.set()
    async with asyncio.timeout(WITHIN):
        while len(dispatch._broker.sent) < 100:
            await asyncio.sleep(0.01)
    await dispatch.close()


async def test_what_the_broker_does_not_take_is_sent_when_it_does(pending, monkeypatch):
    monkeypatch.setattr("sameas.server.runs.dispatch._SETTLES", 0.0)

    class Away(Noted):
        is_away = True

        def send(self, name, *arguments, priority):
            if self.is_away:
                raise StoreUnavailable("away")
            super().send(name, *arguments, priority=priority)

    broker = Away("memory://away")
    dispatch = dispatch_of(pending, broker)
    written(pending, 1)
    dispatch.post("", key(1), priority="interactive")
    await asyncio.wait({dispatch._posting})
    assert await dispatch.reap() == 0
    broker.is_away = False
    assert await dispatch.reap() == 1
    assert broker.sent == [(("", key(1)), "interactive")]
    await dispatch.close()
