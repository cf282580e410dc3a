"""Redis goes away and comes back under two processes: counted at a model server, no window ever holds more than allowed."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sameas.llm.account import Ending, Granted, RateLimits, Wait
from sameas.llm.redis_account import RedisAccount
from sameas.once.errors import StoreError
from sameas.stores.redis import RedisBackend, open_backend
from tests.servers.model_script import Call, Step, held, says
from tests.servers.model_server import ModelServer
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

ROOT = Path(__file__).parents[2]
WINDOW = 3.0
LIMIT = 24
SLOTS = 6
SECOND = 1_000_000
ANSWERED = Ending(verdict="answered", tokens=1)

# A node: asks for as long as nobody says that it is enough, from more tasks than there are slots.
NODE = """
import asyncio, sys
from sameas.llm.account import RateLimits
from sameas.llm.errors import LimitsUnreachable
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import Ask, Message, open_model
from sameas.llm.redis_account import RedisAccount
from sameas.llm.supervisor import RequestSupervisor
from sameas.stores.redis import open_backend

url, address, name, window, limit = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}

async def go():
    backend = open_backend(url, timeout=1.0, strict=False)
    limits = RateLimits(requests_per_minute=limit, tokens_per_minute=10**9, max_concurrent=6)
    account = RedisAccount(backend, limits, account="shared", window=window)
    model = open_model(address)
    supervisor = RequestSupervisor(model, limiter=CentralRateLimiterService(account=account))
    enough = asyncio.Event()

    async def ask_on(task):
        number = 0
        while not enough.is_set():
            number += 1
            question = Message("user", f"{name} {task} {number}")
            try:
                await supervisor.ask("entity_extraction", Ask(
                    messages=(question,), schema=SCHEMA, schema_name="reply", max_output_tokens=5))
            except LimitsUnreachable:
                await asyncio.sleep(0.1)

    asking = [asyncio.create_task(ask_on(task)) for task in range(6)]
    while await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline) == "part?\\n":
        print("yes" if account.has_part else "no", flush=True)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await model.close()
    await backend.aclose()

asyncio.run(go())
"""


class Node:
    """A process that asks on and on."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def has_part(self) -> bool:
        """Whether it could go on alone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("part?\n")
        self._process.stdin.flush()
        return self._process.stdout.readline() == "yes\n"


@contextmanager
def node(name: str, redis: RedisServer, model: ModelServer, *, window: float = WINDOW) -> Iterator[Node]:
    command = [sys.executable, "-c", NODE, redis.url, model.address(), name, str(window), str(LIMIT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield Node(process)
            process.communicate("enough\n", timeout=60)
            assert process.returncode == 0
        finally:
            process.kill()


def asked(model: ModelServer, since: float = 0.0) -> list[str]:
    """Who has asked since then."""
    return [call.user.split()[0] for call in model.calls if call.arrived_at >= since]


def wait_for(model: ModelServer, calls: int, since: float, *, of: tuple[str, ...], of_each: int) -> None:
    """Until so many calls have come since then, and of each node so many."""
    until_true(lambda: len(names := asked(model, since)) >= calls and min(map(names.count, of)) >= of_each)


def until_true(happened: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 90
    while not happened():
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.05)


def quick(_: Call) -> Step:
    return says({}, latency=0.02)


@contextmanager
def all_slots_taken(model: ModelServer) -> Iterator[None]:
    """Hold every call that may be under way at once, so that none is on its way, and both nodes have something to do."""
    gate, here = threading.Event(), []

    def hold(call: Call) -> Step:
        here.append(call)
        return held(gate, {})

    model.rescript(hold)
    until_true(lambda: len(here) == SLOTS)
    try:
        yield
    finally:
        model.rescript(quick)
        gate.set()


@pytest.mark.parametrize("appendonly", ["always", "no"])
def test_two_processes_share_the_limits_with_redis_and_without_and_when_it_is_back(appendonly: Any) -> None:
    names = ("one", "other")
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(appendonly=appendonly))
        model = stack.enter_context(ModelServer(quick))
        nodes = [stack.enter_context(node(name, redis, model)) for name in names]
        wait_for(model, 2 * LIMIT, 0.0, of=names, of_each=2)
        for _ in range(2):
            with all_slots_taken(model):
                # Who has no part when Redis goes waits for it: that is not what is asked here.
                until_true(lambda: all(one.has_part for one in nodes))
                gone_at = time.monotonic()
                redis.kill()
            wait_for(model, 2 * LIMIT, gone_at, of=names, of_each=LIMIT // 2)
            alone = [call.arrived_at for call in model.calls if call.arrived_at > gone_at]
            # Nobody was let through for a window.
            assert alone[0] - gone_at > WINDOW
            redis.start()
            wait_for(model, 2 * LIMIT, time.monotonic(), of=names, of_each=1)
        assert model.most_within(WINDOW) <= LIMIT
        assert model.most_at_once <= SLOTS


def test_four_processes_under_pressure_share_whole_windows_and_each_has_its_turn() -> None:
    names, window = ("a", "b", "c", "d"), 5.0
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(appendonly="always"))
        model = stack.enter_context(ModelServer(quick))
        for name in names:
            stack.enter_context(node(name, redis, model, window=window))
        wait_for(model, 3 * LIMIT, 0.0, of=names, of_each=1)
        assert model.most_within(window) <= LIMIT
        assert model.most_at_once <= SLOTS


@pytest.mark.anyio
async def test_what_a_node_spent_alone_is_reported_before_anybody_is_let_through() -> None:
    """Each step on clocks that are moved: parts, a gap, the report, and what is kept for those who have not come yet."""
    limits = RateLimits(requests_per_minute=10, tokens_per_minute=1_000, max_concurrent=20)
    now = 0.0
    with RedisServer(appendonly="always") as redis, FaultProxy(port=redis.port) as proxy:
        near, far = open_backend(redis.url, timeout=1.0), open_backend(proxy.url_of(redis.url), timeout=1.0)
        one, other = (RedisAccount(place, limits, account="test", clock=lambda: now) for place in (near, far))
        kept = [await one.admit(1), await other.admit(1)]
        # The first learns that there are two, shows that it knows, and only then has the second a part.
        kept += [await one.admit(1), await one.admit(1), await other.admit(1)]
        assert all(isinstance(grant, Granted) for grant in kept)
        redis.kill()
        for account in (one, other):
            waits = await account.admit(1)
            assert isinstance(waits, Wait)
            assert (waits.seconds, account.is_alone) == (75.0, True)
        proxy.cut()
        now = 76.0
        mine = [await one.admit(1) for _ in range(4)]
        # Half of ten, and three of its calls are still under way.
        assert [isinstance(answer, Granted) for answer in mine] == [True, True, False, False]
        near.skew_micros = far.skew_micros = 76 * SECOND
        redis.start()
        await until(one, alone=False)
        # The other is not there yet: five are kept for it, and five is what this one has under way.
        refused = await one.admit(1)
        assert isinstance(refused, Wait)
        assert refused.reason == "requests"
        theirs = await other.admit(1)
        assert isinstance(theirs, Granted)
        proxy.heal()
        await until(other, alone=False)
        # Of its three calls the server has counted two as dead already, and counts them for a window.
        assert isinstance(await other.admit(1), Wait)
        calls = ((one, [kept[0], kept[2], kept[3], *mine]), (other, [kept[1], kept[4], theirs]))
        for account, grants in calls:
            for grant in grants:
                if isinstance(grant, Granted):
                    await account.finish(grant, ANSWERED)
        assert (one.in_flight, other.in_flight) == (0, 0)
        await close(near, far)


@pytest.mark.anyio
async def test_a_redis_that_lost_its_memory_lets_nobody_through_for_a_window() -> None:
    now = 0.0
    with RedisServer() as redis:
        backend = open_backend(redis.url, timeout=1.0, strict=False)
        account = RedisAccount(backend, account="test", clock=lambda: now)
        grant = await account.admit(1)
        assert isinstance(grant, Granted)
        redis.flush()
        held = await account.admit(1)
        assert isinstance(held, Wait)
        assert held.seconds == pytest.approx(75, abs=1)
        backend.skew_micros = 76 * SECOND
        second = await account.admit(1)
        assert isinstance(second, Granted)
        for one in (grant, second):
            await account.finish(one, ANSWERED)
        await close(backend)


@pytest.mark.anyio
@pytest.mark.parametrize("has_part", [True, False])
async def test_the_slot_of_a_call_that_ended_while_redis_was_away_is_free_when_it_is_back(has_part: bool) -> None:
    limits = RateLimits(requests_per_minute=10, tokens_per_minute=1_000, max_concurrent=2)
    with RedisServer(appendonly="always") as redis:
        here, there = open_backend(redis.url, timeout=1.0), open_backend(redis.url, timeout=1.0)
        account = RedisAccount(here, limits, account="test")
        other = RedisAccount(there, limits, account="test")
        grants = [await account.admit(300), await account.admit(300)]
        if not has_part:
            account._set_parts(0, 0)
        assert isinstance(await other.admit(1), Wait)
        redis.kill()
        for grant in grants:
            assert isinstance(grant, Granted)
            if account.is_alone:
                await account.finish(grant, ANSWERED)
            else:
                with pytest.raises(StoreError):
                    await account.finish(grant, Ending(verdict="failed", tokens=200, pause=60.0))
        assert account.is_alone is has_part
        redis.start()
        assert account._telling is not None
        await account._telling
        # Told with what they used, and not after the lease of half a minute; a failure of then closes nothing now.
        theirs = await other.admit(500)
        assert isinstance(theirs, Granted)
        await other.finish(theirs, ANSWERED)
        await close(here, there)


@pytest.mark.anyio
async def test_a_node_that_asks_when_its_last_call_ends_keeps_its_part() -> None:
    with RedisServer(appendonly="always") as redis, FaultProxy(port=redis.port) as proxy:
        backend = open_backend(proxy.url_of(redis.url), timeout=0.5)
        account = RedisAccount(backend, RateLimits(), account="test")
        grant = await account.admit(300)
        assert isinstance(grant, Granted)
        proxy.half_open()
        asked = asyncio.create_task(account.admit(300))
        await asyncio.sleep(0)
        with pytest.raises(StoreError):
            await account.finish(grant, ANSWERED)
        # It goes on alone, and has to wait; without a part the call would be refused.
        assert isinstance(await asked, Wait)
        assert account.is_alone
        proxy.heal()
        await until(account, alone=False)
        again = await account.admit(300)
        assert isinstance(again, Granted)
        await account.finish(again, ANSWERED)
        await close(backend)


async def until(account: RedisAccount, *, alone: bool) -> None:
    async with asyncio.timeout(30):
        while account.is_alone is not alone:
            await asyncio.sleep(0.02)


async def close(*backends: RedisBackend) -> None:
    for backend in backends:
        backend.close()
        await backend.aclose()
