"""Live events over a real Redis whose connections are cut."""

import asyncio

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
