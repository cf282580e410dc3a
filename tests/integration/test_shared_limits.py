"""Several nodes share the limits of one account on a real Redis: processes that compete, die, and lose replies."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import msgspec
import pytest

from sameas.llm.account import WINDOW_SECONDS, Ending, Granted, LocalAccount, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitSettings
from sameas.llm.errors import LimitsUnreachable
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.redis_account import BUCKETS, RedisAccount
from sameas.stores.redis import RedisBackend, open_backend
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

SECOND = 1_000_000
BUCKET = WINDOW_SECONDS / BUCKETS
WITHDRAWN = Ending(verdict="withdrawn")
ROOT = Path(__file__).parents[2]

# A node: makes its calls one after another from several tasks, and says for each when it was held.
NODE = """
import asyncio, json, sys, time
from sameas.llm.account import RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.redis_account import RedisAccount
from sameas.stores.redis import open_backend

url, calls, lasting, lease = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])

held = []

async def go():
    backend = open_backend(url)
    limits = RateLimits(requests_per_minute=20, tokens_per_minute=150, max_concurrent=3)
    account = RedisAccount(backend, limits, account="shared", window=0.3, lease=lease)
    limiter = CentralRateLimiterService(account=account)
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
print(json.dumps({"held": held}), flush=True)
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


def used(tokens: int) -> Ending:
    return Ending(verdict="answered", tokens=tokens)


def on(backend: RedisBackend, **words: Any) -> RedisAccount:
    return RedisAccount(backend, RateLimits(**words), account="test", random=Random(1))


def test_two_processes_stay_below_the_limits_together(start: Callable[..., Node]) -> None:
    nodes = [start(calls=30) for _ in range(2)]
    go(*nodes)
    told = [json.loads(node.communicate(timeout=60)[0]) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0]
    spans = sorted((began, ended) for one in told for began, ended in one["held"])
    assert len(spans) == 60
    for number, (began, _) in enumerate(spans[20:]):
        # Whatever the moment of its end at which a call arrived, the twentieth after it came a window later.
        assert began >= spans[number][0] + 0.3
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
    nodes = [RedisAccount(backend, limits, account="test", random=random, lease=1e6) for _ in range(2)]
    # When each call ended, and its tokens; those under way have no end yet.
    ended: list[tuple[float, int]] = []
    under_way: list[tuple[RedisAccount, Granted]] = []
    seconds, began = 0.0, time.monotonic()

    def clock() -> float:
        return seconds + time.monotonic() - began

    for _ in range(400):
        seconds += random.choice([0.0, 0.3, 2.0, 7.0])
        backend.skew_micros = int(seconds * SECOND)
        node = random.choice(nodes)
        answer = await node.admit(random.randrange(80))
        if isinstance(answer, Granted):
            under_way.append((node, answer))
            counted = [tokens for at, tokens in ended if at > clock() - 60]
            assert len(under_way) <= 4
            assert len(under_way) + len(counted) <= 12
            assert sum(grant.tokens for _, grant in under_way) + sum(counted) <= 300
        for number in reversed(range(len(under_way))):
            if random.random() < 0.5:
                owner, grant = under_way.pop(number)
                if random.random() < 0.1:
                    await owner.finish(grant, WITHDRAWN)
                else:
                    ended.append((clock(), random.randrange(grant.tokens + 1)))
                    await owner.finish(grant, used(ended[-1][1]))
    assert len(ended) > 60
    for owner, grant in under_way:
        await owner.finish(grant, used(0))


@pytest.mark.anyio
async def test_a_wait_says_when_there_is_room(backend: RedisBackend) -> None:
    account = on(backend, tokens_per_minute=100)
    first = await account.admit(60)
    assert isinstance(first, Granted)
    backend.skew_micros = 20 * SECOND
    full = await account.admit(50)
    assert isinstance(full, Wait)
    # A call under way has not begun its minute yet.
    assert (full.reason, full.seconds) == ("tokens", None)
    await account.finish(first, used(60))
    backend.skew_micros = 40 * SECOND
    full = await account.admit(50)
    assert isinstance(full, Wait)
    assert full.seconds == pytest.approx(40, abs=0.5)
    backend.skew_micros = 81 * SECOND
    second = await account.admit(50)
    assert isinstance(second, Granted)
    await account.finish(second, WITHDRAWN)
    third = await account.admit(90)
    assert isinstance(third, Granted)
    await account.finish(third, used(20))
    fourth = await account.admit(80)
    assert isinstance(fourth, Granted)
    await account.finish(fourth, used(80))


@pytest.mark.anyio
async def test_a_pause_asked_of_one_node_holds_for_all(backend: RedisBackend) -> None:
    one, other = on(backend), on(backend)
    grants = [await one.admit(1), await one.admit(1)]
    for seconds, grant in zip((30, 10), grants, strict=True):
        assert isinstance(grant, Granted)
        await one.finish(grant, Ending(verdict="untold", pause=seconds))
    held = await other.admit(1)
    assert isinstance(held, Wait)
    assert held.asked_by_server
    assert held.seconds == pytest.approx(30, abs=0.5)
    backend.skew_micros = 31 * SECOND
    later = await other.admit(1)
    assert isinstance(later, Granted)
    await other.finish(later, used(1))


@pytest.mark.anyio
async def test_a_node_that_waited_goes_before_those_that_came_later(backend: RedisBackend) -> None:
    large, small = on(backend, tokens_per_minute=100), on(backend, tokens_per_minute=100)
    grant = await small.admit(50)
    assert isinstance(grant, Granted)
    await small.finish(grant, used(50))
    assert isinstance(await large.admit(80), Wait)
    overtaking = await small.admit(10)
    assert isinstance(overtaking, Granted)
    await small.finish(overtaking, used(10))
    backend.skew_micros = 2 * SECOND
    assert isinstance(await large.admit(80), Wait)
    assert isinstance(await small.admit(10), Wait)
    # The one that waited has gone away: nobody waits for it.
    backend.skew_micros = 6 * SECOND
    late = await small.admit(10)
    assert isinstance(late, Granted)
    await small.finish(late, used(10))


@pytest.mark.anyio
async def test_calls_under_way_are_renewed_for_as_long_as_they_last(
    backend: RedisBackend, redis_server: RedisServer
) -> None:
    account = RedisAccount(backend, account="test", lease=0.3)
    grant = await account.admit(1)
    assert isinstance(grant, Granted)

    def until() -> int:
        with redis_server.client() as client:
            kept: Any = client.get("sameas:limits:4:test")
        return msgspec.msgpack.decode(kept)["s"][grant.id][0]  # type: ignore[no-any-return]

    first = until()
    async with asyncio.timeout(30):
        while until() == first:
            await asyncio.sleep(0.02)
    assert until() > first
    await account.finish(grant, used(1))
    assert account.in_flight == 0


@pytest.mark.anyio
async def test_a_step_whose_reply_was_lost_counts_once(redis_url: str, redis_server: RedisServer) -> None:
    with FaultProxy(port=redis_server.port) as proxy:
        backend = open_backend(proxy.url_of(redis_url))
        account = RedisAccount(backend, RateLimits(requests_per_minute=2), account="test")
        warm = await account.admit(1)
        assert isinstance(warm, Granted)
        await account.finish(warm, WITHDRAWN)
        for _ in range(2):
            proxy.drop_reply()
            grant = await account.admit(1)
            assert isinstance(grant, Granted)
            proxy.drop_reply()
            await account.finish(grant, used(1))
        assert isinstance(await account.admit(1), Wait)
        await backend.aclose()


async def make(account: RedisAccount, verdict: Any, **words: Any) -> Change | None:
    """A call from its admission to its end."""
    grant = await account.admit(1)
    assert isinstance(grant, Granted), grant
    return await account.finish(grant, Ending(verdict=verdict, tokens=1, **words))


@pytest.mark.anyio
async def test_the_circuit_is_shared(backend: RedisBackend) -> None:
    each = CircuitSettings(together_within=0)
    one, other = (RedisAccount(backend, account="test", circuit=each) for _ in range(2))
    for number in range(5):
        assert await make((one, other)[number % 2], "failed") == ("opened" if number == 4 else None)
    for account in (one, other):
        assert await account.phase() == "open"
        refused = await account.admit(1)
        assert isinstance(refused, Wait)
        assert (refused.reason, refused.seconds) == ("server", pytest.approx(120, abs=1))
    backend.skew_micros = 121 * SECOND
    probe = await one.admit(1)
    assert isinstance(probe, Granted)
    beside = await other.admit(1)
    assert isinstance(beside, Wait)
    assert (beside.reason, beside.seconds, beside.down_for) == ("concurrent", None, None)
    assert await one.finish(probe, used(1)) is None
    assert await one.phase() == "half_open"
    assert await make(other, "answered") == "closed"
    assert await one.phase() == "closed"


@pytest.mark.anyio
async def test_one_that_is_refused_without_a_hint_slows_all_nodes_down(backend: RedisBackend) -> None:
    one, other = on(backend, requests_per_minute=1_000), on(backend, requests_per_minute=1_000)
    for _ in range(3):
        await make(one, "answered")
    await make(one, "refused")
    held = await other.admit(1)
    assert isinstance(held, Wait)
    assert held.asked_by_server
    assert held.seconds == pytest.approx(1, abs=0.5)
    backend.skew_micros = 2 * SECOND
    finding_out = await other.admit(1)
    assert isinstance(finding_out, Granted)
    # One call finds out whether the server takes calls again.
    beside = await one.admit(1)
    assert isinstance(beside, Wait)
    assert (beside.seconds, beside.asked_by_server) == (None, True)
    await other.finish(finding_out, used(1))
    await make(one, "answered")
    await make(other, "answered")
    await make(one, "refused", stretch=1.5)
    held = await other.admit(1)
    assert isinstance(held, Wait)
    assert held.seconds == pytest.approx(1.5, abs=0.5)


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(3))
async def test_what_is_decided_on_the_server_is_what_a_process_alone_decides(
    backend: RedisBackend, redis_server: RedisServer, seed: int
) -> None:
    """One suite of rules in two languages: the same traffic at the same times gets the same answers."""
    chance, seconds = Random(seed), 0.0
    limits = RateLimits(requests_per_minute=20, tokens_per_minute=400, max_concurrent=3)
    circuit = CircuitSettings(failures_to_open=2, recover_after=20, together_within=0.5)
    with redis_server.client() as client:

        def clock() -> float:
            whole, micros = client.time()  # type: ignore[misc]
            return float(whole) + micros / SECOND + seconds

        local = LocalAccount(limits, circuit=circuit, clock=clock)
        shared = RedisAccount(backend, limits, account="test", circuit=circuit, lease=1e6)
        under_way: list[tuple[Granted, Granted]] = []
        reasons = set()
        for _ in range(150):
            seconds += chance.choice([0.0, 0.73, 2.9, 8.3])
            backend.skew_micros = round(seconds * SECOND)
            tokens = chance.randrange(60)
            here, there = await local.admit(tokens), await shared.admit(tokens)
            if isinstance(here, Granted):
                while isinstance(there, Wait) and 0 < (there.seconds or 0) < BUCKET:
                    # A bucket of the server is wider: what ended may count for so much longer.
                    seconds += BUCKET
                    backend.skew_micros = round(seconds * SECOND)
                    there = await shared.admit(tokens)
                assert isinstance(there, Granted), there
                under_way.append((here, there))
            else:
                assert isinstance(there, Wait)
                assert (there.reason, there.asked_by_server) == (here.reason, here.asked_by_server)
                assert there.seconds == (None if here.seconds is None else pytest.approx(here.seconds, abs=0.6))
                assert there.down_for == (None if here.down_for is None else pytest.approx(here.down_for, abs=0.6))
                reasons.add((here.reason, here.asked_by_server))
            while under_way and chance.random() < 0.5:
                pair = under_way.pop(chance.randrange(len(under_way)))
                verdict: Any = chance.choice(["answered"] * 4 + ["failed"] * 4 + ["refused", "untold", "withdrawn"])
                ending = Ending(verdict=verdict, tokens=tokens, pause=chance.choice([0.0] * 9 + [5.0]))
                assert await local.finish(pair[0], ending) == await shared.finish(pair[1], ending)
            assert await local.phase() == await shared.phase()
        for _, grant in under_way:
            await shared.finish(grant, used(0))
    assert {"server", "requests"} <= {reason for reason, _ in reasons}


@pytest.mark.anyio
async def test_a_server_that_is_gone_lets_nobody_through() -> None:
    with RedisServer(appendonly="always") as server:
        url = server.url
    backend = open_backend(url, timeout=0.5)
    limiter = CentralRateLimiterService(account=RedisAccount(backend, account="test"))
    with pytest.raises(LimitsUnreachable):
        async with limiter.slot("run", 1):
            pass
    assert (limiter.waiting, limiter.held) == (0, 0)
    await backend.aclose()


@pytest.mark.anyio
async def test_shared_limits_need_a_name(backend: RedisBackend) -> None:
    with pytest.raises(ValueError, match="name of an account"):
        RedisAccount(backend, account="")
