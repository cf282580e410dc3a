"""Chains and notices: every process reads each document once, in order, and none is lost."""

import asyncio
from contextlib import asynccontextmanager

import msgspec
import pytest

from sameas import AsyncEngine, open_async_store
from sameas.server.tenants.broadcast import AppendLog, Broadcast, Notice

pytestmark = pytest.mark.anyio
HOUR = 3600.0


class Document(msgspec.Struct, frozen=True):
    text: str


class Clock:
    def __init__(self):
        self.now = 1_000_000.0 * HOUR

    def __call__(self):
        return self.now


@asynccontextmanager
async def engines(folder, count):
    stores = [open_async_store(f"sqlite:///{folder}/notices.db") for _ in range(count)]
    try:
        yield [AsyncEngine(store) for store in stores]
    finally:
        for store in stores:
            await store.close()


def notice(name):
    return Notice(type="cancel-run", id=name, tenant="t", timestamp=0)


async def test_of_two_who_add_at_the_same_number_one_gets_it_and_both_read_it(tmp_path):
    async with engines(tmp_path, 2) as (one, other):
        chains = [AppendLog(engine, Document, scope="chain", tenant="t") for engine in (one, other)]
        added = await asyncio.gather(
            *(append_log.add(Document(f"{n}"), number=1) for n, append_log in enumerate(chains))
        )
        assert added[0] == added[1] == await chains[0].read(1)
        assert await chains[1].read(2) is None


async def test_every_process_hears_every_notice_once_and_in_order(tmp_path):
    async with engines(tmp_path, 3) as all_engines:
        heard = [[] for _ in all_engines]
        everybody = [
            Broadcast(engine, lambda told, mine=mine: mine.append(told.id), every=0.01)
            for engine, mine in zip(all_engines, heard, strict=True)
        ]
        for one in everybody:
            await one.start()
        await asyncio.gather(*(one.publish(notice(f"{n}-{m}")) for m in range(5) for n, one in enumerate(everybody)))
        for one in everybody:
            await one.look()
            await one.close()
        assert heard[0] == heard[1] == heard[2]
        assert sorted(heard[0]) == sorted(f"{n}-{m}" for m in range(5) for n in range(3))


async def test_notices_go_on_over_the_turn_of_the_hour_and_with_clocks_that_differ(tmp_path):
    async with engines(tmp_path, 2) as (one, other):
        clock, behind = Clock(), Clock()
        clock.now -= 60.0
        behind.now -= 300.0
        heard = []
        speaker = Broadcast(one, lambda told: None, clock=clock)
        listener = Broadcast(other, lambda told: heard.append(told.id), clock=behind)
        for name in ("a", "b", "c", "d"):
            await speaker.publish(notice(name))
            await listener.look()
            assert heard[-1:] == [name]
            clock.now += 120.0
            behind.now += 120.0


async def test_what_was_said_in_the_hour_before_is_heard_by_one_who_is_ahead(tmp_path):
    async with engines(tmp_path, 2) as (one, other):
        clock, ahead = Clock(), Clock()
        clock.now -= 60.0
        ahead.now += 200.0
        heard = []
        await Broadcast(one, lambda told: None, clock=clock).publish(notice("late"))
        await Broadcast(other, lambda told: heard.append(told.id), clock=ahead).look()
        assert heard == ["late"]


async def test_what_was_said_before_a_process_began_is_not_told_to_it(tmp_path):
    async with engines(tmp_path, 2) as (one, other):
        heard = []
        speaker, newcomer = Broadcast(one, lambda told: None), Broadcast(other, lambda told: heard.append(told.id))
        await speaker.publish(notice("old"))
        await newcomer.start()
        await speaker.publish(notice("new"))
        await newcomer.look()
        await newcomer.close()
        assert heard == ["new"]


async def test_one_who_fails_to_act_on_a_notice_hears_the_next(tmp_path):
    async with engines(tmp_path, 1) as (one,):
        heard = []

        def act(told):
            heard.append(told.id)
            raise RuntimeError("not now")

        broadcast = Broadcast(one, act)
        await broadcast.publish(notice("a"))
        await broadcast.publish(notice("b"))
        assert heard == ["a", "b"]


async def test_a_notice_that_cannot_be_read_does_not_silence_those_after_it(tmp_path):
    async with engines(tmp_path, 2) as (one, other):
        clock, heard = Clock(), []
        listener = Broadcast(other, lambda told: heard.append((told.type, told.id)), clock=clock)
        await listener.look()
        newer = AppendLog(one, Document, scope=f"sameas.notices.{int(clock.now // HOUR)}", tenant="~sameas")
        await newer.add(Document("of a release that has other notices"), number=1)
        usual = AppendLog(one, Notice, scope=f"sameas.notices.{int(clock.now // HOUR)}", tenant="~sameas")
        await usual.add(notice("after"), number=2)
        await listener.look()
        assert heard == [("unreadable", ""), ("cancel-run", "after")]
