"""Live events over a real Redis whose connections are cut."""

import asyncio
from random import Random

import pytest

from sameas.cluster.live_events import EventReader, RedisEvents
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.anyio
WITHIN = 30.0


@pytest.fixture(scope="module")
def redis():
    with RedisServer() as server:
        yield server


async def until(happened):
    async with asyncio.timeout(WITHIN):
        while not happened():
            await asyncio.sleep(0.01)


async def test_an_end_that_is_told_between_two_reads_is_heard(redis):
    ends, events = [], RedisEvents(redis.url)
    events.ended("acme", "before anybody listened")
    with FaultProxy(port=redis.port) as proxy:
        reader = EventReader(proxy.url_of(redis.url), on_ended=lambda *one: ends.append(one))
        reader.start()
        await until(lambda: reader.is_hearing)
        proxy.cut()
        await until(lambda: not reader.is_hearing)
        events.ended("acme", "meanwhile")
        proxy.heal()
        await until(lambda: ends)
        await reader.close()
    assert ends == [("acme", "meanwhile")]


async def test_lines_come_from_the_beginning_with_the_fence_of_their_writer(redis):
    heard, events = [], RedisEvents(redis.url)
    events.publish("acme", "key", 1, [b"one", b"two"], fence=7)
    reader = EventReader(redis.url, on_ended=lambda *_: None)
    reader.start()
    reader.listen("acme", "key", lambda *told: heard.append(told))
    await until(lambda: heard)
    events.publish("acme", "key", 3, [b"three"], fence=8)
    await until(lambda: len(heard) == 2)
    await reader.close()
    assert heard == [(1, [b"one", b"two"], 7), (3, [b"three"], 8)]


async def test_a_reader_is_closed_whatever_its_connection_does_at_that_moment(redis):
    """A client that is closing a broken connection keeps a cancellation to itself, about once in fifty times."""
    random = Random(7)
    with FaultProxy(port=redis.port) as proxy:
        is_over = asyncio.Event()

        async def cut():
            while not is_over.is_set():
                await asyncio.sleep(random.uniform(0.01, 0.2))
                random.choice((proxy.reset, proxy.cut))()
                await asyncio.sleep(random.uniform(0.0, 0.05))
                proxy.heal()

        async def open_and_close():
            for _ in range(20):
                reader = EventReader(proxy.url_of(redis.url), on_ended=lambda *_: None)
                reader.start()
                reader.listen("acme", "closed", lambda *_: None)
                await asyncio.sleep(random.uniform(0.0, 0.3))
                async with asyncio.timeout(WITHIN):
                    await reader.close()

        cutting = asyncio.create_task(cut())
        await asyncio.gather(*(open_and_close() for _ in range(20)))
        is_over.set()
        await cutting
