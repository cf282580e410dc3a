"""Several nodes share the limits of one account on a real Redis: processes that compete, die, and lose replies."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest

from sameas.llm.circuit import CircuitBreaker
from sameas.llm.errors import CircuitOpen, LimitsUnreachable
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.redis_windows import BUCKETS, RedisKeeper, RedisWindows
from sameas.llm.windows import Granted, RateLimits, Wait
from sameas.stores.redis import RedisBackend, open_backend
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

SECOND = 1_000_000
ROOT = Path(__file__).parents[2]

# A node: makes its calls one after another from several tasks, and says for each its bucket and when it was held.
NODE = """
import asyncio, json, sys, time
from sameas.llm.circuit import CircuitBreaker
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.redis_windows import RedisKeeper, RedisWindows
from sameas.llm.windows import RateLimits
from sameas.stores.redis import open_backend

url, calls, lasting, lease = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])

class Noting(RedisWindows):
    async def admit(self, tokens):
        answer = await super().admit(tokens)
        if hasattr(answer, "place"):
            places.append(answer.place)
        return answer

places, held = [], []

async def go():
    backend = open_backend(url)
    limits = RateLimits(requests_per_minute=20, tokens_per_minute=150, max_concurrent=3)
    windows = Noting(backend, limits, account="shared", window=0.3, lease=lease)
    limiter = CentralRateLimiterService(
        windows=windows, circuit=CircuitBreaker(keeper=RedisKeeper(backend, account="shared"))
    )
    print("ready", flush=True)
    sys.stdin.readline()

    async def one():
        async with limiter.slot("run", 10) as permit:
            began = time.monotonic()
            if lasting > 5:
                print("held", flush=True)
            await asyncio.sleep(lasting)
            permit.reconcile(5)
            held.append((began, time.monotonic()))

    await asyncio.gather(*(one() for _ in range(calls)))
    await backend.aclose()

asyncio.run(go())
print(json.dumps({"places": places, "held": held}), flush=True)
"""


Node: TypeAlias = "subprocess.Popen[str]"


@pytest.fixture
def start(redis_url: str) -> Iterator[Callable[..., Node]]:
    """Starts nodes, and ends those that a test left behind."""
    nodes: list[Node] = []

    def start_one(*, calls: int, lasting: float = 0.005, lease: float = 30.0) -> Node:
        command = [sys.executable, "-c", NODE, redis_url, str(calls), str(lasting), str(lease)]
        nodes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT))
        return nodes[-1]

    yield start_one
    for node in nodes:
        if node.poll() is None:
            node.kill()
        for pipe in (node.stdin, node.stdout):
            if pipe is not None:
                pipe.close()
        node.wait()


def go(*nodes: Node) -> None:
    """Let all go when all are ready."""
    for node in nodes:
        assert node.stdout is not None
        assert node.stdout.readline() == "ready\n"
    for node in nodes:
        assert node.stdin is not None
        node.stdin.write("go\n")
        node.stdin.flush()


@pytest.fixture
async def backend(redis_url: str, anyio_backend: str) -> AsyncIterator[RedisBackend]:
    opened = open_backend(redis_url)
    yield opened
    await opened.aclose()


def on(backend: RedisBackend, **words: Any) -> RedisWindows:
    return RedisWindows(backend, RateLimits(**words), account="test", random=Random(1))


def test_two_processes_stay_below_the_limits_together(start: Callable[..., Node]) -> None:
    nodes = [start(calls=30) for _ in range(2)]
    go(*nodes)
    told = [json.loads(node.communicate(timeout=60)[0]) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    places = Counter(place for one in told for place in one["places"])
    assert places.total() == 60
    for last in places:
        # A bucket stays for a whole window after its end.
        assert sum(places[place] for place in range(last - BUCKETS, last + 1)) <= 20
    spans = [(began, ended) for one in told for began, ended in one["held"]]
    for moment, _ in spans:
        assert sum(began <= moment < ended for began, ended in spans) <= 3


def test_the_slots_of_a_process_that_was_killed_are_free_after_its_lease(start: Callable[..., Node]) -> None:
    dead = start(calls=3, lasting=1_000, lease=1.0)
    heir = start(calls=4)
    go(dead)
    assert dead.stdout is not None
    assert [dead.stdout.readline() for _ in range(3)] == ["held\n"] * 3
    dead.kill()
    dead.wait()
    go(heir)
    told = json.loads(heir.communicate(timeout=60)[0])
    assert len(told["held"]) == 4


@pytest.mark.anyio
async def test_windows_hold_over_any_traffic_on_the_clock_of_the_server(backend: RedisBackend) -> None:
    random = Random(5)
    limits = RateLimits(requests_per_minute=12, tokens_per_minute=300, max_concurrent=4)
    # The clock is moved by more than a lease while calls are under way.
    nodes = [RedisWindows(backend, limits, account="test", random=random, lease=1e6) for _ in range(2)]
    granted: list[list[Any]] = []
    under_way: list[tuple[RedisWindows, Granted, list[Any]]] = []
    seconds = 0.0
    for _ in range(400):
        seconds += random.choice([0.0, 0.3, 2.0, 7.0])
        backend.skew_micros = int(seconds * SECOND)
        node = random.choice(nodes)
        tokens = random.randrange(80)
        answer = await node.admit(tokens)
        if isinstance(answer, Granted):
            entry = [answer.place, tokens]
            granted.append(entry)
            under_way.append((node, answer, entry))
            assert len(under_way) <= 4
        for number in reversed(range(len(under_way))):
            if random.random() < 0.5:
                owner, grant, entry = under_way.pop(number)
                if random.random() < 0.1:
                    await owner.withdraw(grant)
                    granted.remove(entry)
                else:
                    entry[1] = random.randrange(grant.tokens + 1)
                    await owner.settle(grant, entry[1])
    assert len(granted) > 60
    for last, _ in granted:
        window = [tokens for at, tokens in granted if 0 <= last - at <= BUCKETS]
        assert len(window) <= 12
        assert sum(window) <= 300
    for owner, grant, _ in under_way:
        await owner.settle(grant, 0)


@pytest.mark.anyio
async def test_a_wait_says_when_there_is_room(backend: RedisBackend) -> None:
    windows = on(backend, tokens_per_minute=100)
    first = await windows.admit(60)
    assert isinstance(first, Granted)
    backend.skew_micros = 20 * SECOND
    full = await windows.admit(50)
    assert isinstance(full, Wait)
    assert full.reason == "tokens"
    assert full.seconds == pytest.approx(40, abs=0.5)
    await windows.settle(first, 10)
    second = await windows.admit(50)
    assert isinstance(second, Granted)
    await windows.withdraw(second)
    third = await windows.admit(90)
    assert isinstance(third, Granted)
    await windows.settle(third, 90)


@pytest.mark.anyio
async def test_a_pause_asked_of_one_node_holds_for_all(backend: RedisBackend) -> None:
    one, other = on(backend), on(backend)
    await one.hold(30)
    await one.hold(10)
    held = await other.admit(1)
    assert isinstance(held, Wait)
    assert held.asked_by_server
    assert held.seconds == pytest.approx(30, abs=0.5)
    backend.skew_micros = 31 * SECOND
    grant = await other.admit(1)
    assert isinstance(grant, Granted)
    await other.settle(grant, 1)


@pytest.mark.anyio
async def test_a_node_that_waited_goes_before_those_that_came_later(backend: RedisBackend) -> None:
    large, small = on(backend, tokens_per_minute=100), on(backend, tokens_per_minute=100)
    grant = await small.admit(50)
    assert isinstance(grant, Granted)
    await small.settle(grant, 50)
    assert isinstance(await large.admit(80), Wait)
    overtaking = await small.admit(10)
    assert isinstance(overtaking, Granted)
    await small.settle(overtaking, 10)
    backend.skew_micros = 2 * SECOND
    assert isinstance(await large.admit(80), Wait)
    assert isinstance(await small.admit(10), Wait)
    # The one that waited has gone away: nobody waits for it.
    backend.skew_micros = 6 * SECOND
    late = await small.admit(10)
    assert isinstance(late, Granted)
    await small.settle(late, 10)


@pytest.mark.anyio
async def test_calls_under_way_are_renewed_for_as_long_as_they_last(
    backend: RedisBackend, redis_server: RedisServer
) -> None:
    windows = RedisWindows(backend, account="test", lease=0.3)
    grant = await windows.admit(1)
    assert isinstance(grant, Granted)

    def until() -> int:
        with redis_server.client() as client:
            kept: Any = client.get("sameas:limits:test")
        return msgspec.msgpack.decode(kept)["s"][grant.id][0]  # type: ignore[no-any-return]

    first = until()
    async with asyncio.timeout(30):
        while until() == first:
            await asyncio.sleep(0.02)
    assert until() > first
    await windows.settle(grant, 1)
    assert windows.in_flight == 0


@pytest.mark.anyio
async def test_a_step_whose_reply_was_lost_counts_once(redis_url: str, redis_server: RedisServer) -> None:
    with FaultProxy(port=redis_server.port) as proxy:
        backend = open_backend(proxy.url_of(redis_url))
        windows = RedisWindows(backend, RateLimits(requests_per_minute=2), account="test")
        warm = await windows.admit(1)
        assert isinstance(warm, Granted)
        await windows.withdraw(warm)
        for _ in range(2):
            proxy.drop_reply()
            grant = await windows.admit(1)
            assert isinstance(grant, Granted)
            proxy.drop_reply()
            await windows.settle(grant, 1)
        assert isinstance(await windows.admit(1), Wait)


@pytest.mark.anyio
async def test_the_circuit_is_shared(backend: RedisBackend) -> None:
    one, other = (CircuitBreaker(keeper=RedisKeeper(backend, account="test")) for _ in range(2))
    for number in range(5):
        breaker = (one, other)[number % 2]
        await breaker.failed(await breaker.enter())
    for breaker in (one, other):
        with pytest.raises(CircuitOpen) as refused:
            await breaker.enter()
        assert refused.value.retry_after == pytest.approx(120, abs=1)
    backend.skew_micros = 121 * SECOND
    probe = await one.enter()
    with pytest.raises(CircuitOpen) as refused:
        await other.enter()
    assert refused.value.is_probing
    assert await one.succeeded(probe) is None
    assert await other.succeeded(await other.enter()) == "closed"
    assert await one.phase() == "closed"


@pytest.mark.anyio
async def test_a_server_that_is_gone_lets_nobody_through() -> None:
    with RedisServer(appendonly="always") as server:
        url = server.url
    backend = open_backend(url, timeout=0.5)
    limiter = CentralRateLimiterService(windows=RedisWindows(backend, account="test"))
    with pytest.raises(LimitsUnreachable):
        async with limiter.slot("run", 1):
            pass
    assert (limiter.waiting, limiter.held) == (0, 0)
    await backend.aclose()


@pytest.mark.anyio
async def test_shared_limits_need_a_name(backend: RedisBackend) -> None:
    with pytest.raises(ValueError, match="name of an account"):
        RedisWindows(backend, account="")
