"""Whose turn it is: tenants one after the other, short work not behind long, nobody for good."""

import asyncio

import pytest

from sameas.server.shares import RunQueue


class Runs:
    """Runs that begin when they may and end when they are told."""

    def __init__(self, at_once, **options):
        self.run_queue = RunQueue(at_once, **options)
        self.begun = []
        self._ends = {}
        self._tasks = {}

    async def ask(self, name, tenant, *, is_long=False):
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._go(name, tenant, is_long))
        await self._settle()

    async def end(self, name):
        self._ends[name].set()
        await self._tasks[name]
        await self._settle()

    async def cancel(self, name):
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await self._settle()

    async def _go(self, name, tenant, is_long):
        async with self.run_queue.turn(tenant, is_long=is_long):
            self.begun.append(name)
            await self._ends[name].wait()

    async def _settle(self):
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.anyio
async def test_a_tenant_with_one_run_does_not_wait_for_all_of_another():
    runs = Runs(1)
    for number in range(4):
        await runs.ask(f"many-{number}", "many")
    await runs.ask("one-0", "one")
    await runs.ask("other-0", "other")
    for name in ("many-0", "many-1", "one-0", "other-0", "many-2"):
        assert runs.begun[-1] == name
        await runs.end(name)
    assert runs.begun == ["many-0", "many-1", "one-0", "other-0", "many-2", "many-3"]
    await runs.end("many-3")


@pytest.mark.anyio
async def test_long_runs_leave_a_place_to_short_ones():
    runs = Runs(4)
    for number in range(6):
        await runs.ask(f"long-{number}", "a", is_long=True)
    assert len(runs.begun) == 3
    await runs.ask("short-0", "a")
    assert runs.begun[-1] == "short-0"
    await runs.ask("short-1", "a")
    assert runs.begun[-1] == "short-0"
    await runs.end("short-0")
    assert runs.begun[-1] == "short-1"


@pytest.mark.anyio
async def test_long_work_is_not_put_off_for_good_by_short_work():
    runs = Runs(1)
    await runs.ask("first", "a")
    await runs.ask("long", "a", is_long=True)
    for number in range(3):
        await runs.ask(f"short-{number}", "a")
    for name in ("first", "long"):
        await runs.end(name) if name in runs.begun else None
    while "long" not in runs.begun:
        await runs.end(runs.begun[-1])
    assert runs.begun.index("long") <= 2


@pytest.mark.anyio
async def test_who_leaves_the_line_leaves_no_gap_in_it():
    runs = Runs(1)
    for name in ("first", "gone", "next"):
        await runs.ask(name, name)
    await runs.cancel("gone")
    await runs.end("first")
    assert runs.begun == ["first", "next"]
    await runs.cancel("next")
    await runs.ask("last", "last")
    assert runs.begun[-1] == "last"


@pytest.mark.anyio
async def test_a_tenant_that_has_nothing_finds_a_place_beside_one_that_asks_for_all():
    runs = Runs(8, divided=True)
    for number in range(20):
        await runs.ask(f"many-{number}", "many")
    assert len(runs.begun) == 6
    for tenant in ("one", "other"):
        await runs.ask(tenant, tenant)
        assert runs.begun[-1] == tenant
    await runs.ask("third", "third")
    assert "third" not in runs.begun
    await runs.end("one")
    assert runs.begun[-1] == "third"
    for name in ("other", "third"):
        await runs.end(name)
    assert len(runs.begun) == 9, "the first tenant has no more than its share"


@pytest.mark.anyio
@pytest.mark.parametrize("places", [1, 2, 3])
async def test_the_only_place_is_for_whoever_comes_and_of_two_one_is_left(places):
    runs = Runs(places, divided=True)
    for number in range(4):
        await runs.ask(f"many-{number}", "many")
    assert len(runs.begun) == max(1, places - 1)
