"""A network that fails at every message of the protocol, and workers whose clocks are wrong: the promise holds."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlsplit

import pytest

from sameas import (
    Engine,
    InProgress,
    OutcomeUnknown,
    Policy,
    ResultNotKept,
    StoreUnavailable,
    Superseded,
    open_store,
)
from sameas.once.errors import BatchFailed
from tests.servers.program import program_or_skip
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer

LEASE = 0.5
GRACE = 0.25
TIMEOUT = 0.4
# More messages than one fresh call of any store exchanges in one direction.
MESSAGES = 6


@pytest.fixture(params=["redis", "postgres", "mariadb"])
def server_url(request):
    return request.getfixturevalue(f"{request.param}_url")


def bounds(url):
    return {"timeout": TIMEOUT} if url.startswith("redis") else {"timeout": TIMEOUT, "lock_timeout": TIMEOUT}


@pytest.fixture
def proxy(server_url):
    with FaultProxy(port=urlsplit(server_url).port) as proxy:
        yield proxy


@pytest.fixture
def through(server_url, proxy):
    """An engine whose every message goes through the proxy, and one that reaches the server directly."""
    policy = Policy(lease=LEASE, hand_in_for=0.2, wait_for=4.0)
    with (
        Engine(open_store(server_url), policy=policy) as direct,
        Engine(open_store(proxy.url_of(server_url), **bounds(server_url)), policy=policy) as engine,
    ):
        engine.run(lambda ctx: "connected", scope="warm", key="up")
        yield engine, direct


def attempts_at(engine, direct, proxy, key, arm):
    """One call while a fault is armed, then one that is not disturbed: what the first was told, what the second was."""
    runs = []

    def work(ctx):
        runs.append(ctx.attempt)
        return f"result {len(runs)}"

    arm()
    told = None
    began = time.monotonic()
    try:
        record = engine.record(work, scope="s", key=key)
        told = record.result if record.stored else None
    except StoreUnavailable:
        assert runs == [], "a store that cannot answer means that nothing runs"
    except (OutcomeUnknown, InProgress, Superseded):
        pass
    assert time.monotonic() - began < 8, "a fault gets a bounded wait"
    proxy.heal()
    began = time.monotonic()
    later = direct.record(work, scope="s", key=key)
    assert time.monotonic() - began < LEASE + GRACE + 0.2, "nothing is stuck"
    if told is not None:
        assert (later.result, later.was_replay) == (told, True)
    return len(runs)


@pytest.mark.parametrize("action", ["reset", "cut", "half_open"])
@pytest.mark.parametrize("side", ["request", "reply"])
def test_a_fault_at_every_message(through, proxy, side, action):
    engine, direct = through
    drop = proxy.drop_request if side == "request" else proxy.drop_reply
    for number in range(1, MESSAGES + 1):
        key = f"{side}-{action}-{number}"
        runs = attempts_at(engine, direct, proxy, key, lambda number=number: drop(number, action=action))
        assert runs <= 2


def test_a_lost_reply_never_costs_the_caller_its_own_claim(through, proxy):
    engine, direct = through
    for number in range(1, 4):
        runs = []
        proxy.drop_reply(number)
        try:
            record = engine.record(lambda ctx, runs=runs: runs.append(1), scope="s", key=f"lost-{number}")
        except StoreUnavailable:
            record = None
        proxy.heal()
        if record is not None:
            assert (record.attempt, len(runs)) == (1, 1)


@pytest.mark.parametrize("fault", ["cut", "reset", "half_open"])
def test_a_result_that_the_server_was_not_told_is_raised_with_it_and_a_batch_runs_no_more(through, proxy, fault):
    engine, direct = through
    runs = []

    def work(ctx, payload=None):
        runs.append(payload)
        getattr(proxy, fault)()
        return {"charged": payload}

    with pytest.raises(OutcomeUnknown) as unknown:
        engine.run(work, scope="s", key=f"alone-{fault}", lease=LEASE)
    assert unknown.value.result == {"charged": None}
    proxy.heal()
    with pytest.raises(BatchFailed) as failed:
        engine.run_many(work, [1, 2], scope=f"batch-{fault}")
    told = [error.result for error in failed.value.results if isinstance(error, OutcomeUnknown)]
    assert told == [{"charged": payload} for payload in runs[1:]], "whoever was run is told of"
    proxy.heal()


def test_a_result_is_handed_in_when_the_server_is_back_within_the_lease(server_url, proxy):
    policy = Policy(lease=60.0)
    with (
        Engine(open_store(server_url), policy=policy) as direct,
        Engine(open_store(proxy.url_of(server_url), **bounds(server_url)), policy=policy) as engine,
        ThreadPoolExecutor(1) as pool,
    ):
        away = threading.Event()

        def work(ctx):
            proxy.cut()
            away.set()
            return "charged"

        calling = pool.submit(engine.record, work, scope="s", key="back")
        assert away.wait(30)
        # Longer than one try, shorter than the lease.
        assert not wait([calling], timeout=4 * TIMEOUT).done
        proxy.heal()
        assert calling.result(30).stored
        assert direct.record(work, scope="s", key="back").was_replay


def test_whatever_a_result_is_its_work_is_done_once_on_every_server(server_url):
    odd = object()
    results = [datetime(2026, 1, 2, tzinfo=UTC), {1, 2}, {(1, "a"): Decimal("1.10")}, [float("inf")], b"\x00", odd]
    with Engine(open_store(server_url)) as engine:
        for number, result in enumerate(results):
            assert engine.run(lambda ctx, result=result: result, scope="kinds", key=str(number)) == result
        for number, result in enumerate(results[:-1]):
            assert engine.run(lambda ctx: "again", scope="kinds", key=str(number)) == result
        with pytest.raises(ResultNotKept, match="object"):
            engine.run(lambda ctx: "again", scope="kinds", key=str(len(results) - 1))


def test_a_result_that_is_too_large_for_its_server_is_done_once(mariadb_url):
    """MariaDB closes the connection on more than max_allowed_packet, 16 MiB by default."""
    runs = []

    def work(ctx):
        runs.append(1)
        return os.urandom(20_000_000)

    with Engine(open_store(mariadb_url), policy=Policy(lease=4)) as engine:
        assert len(engine.run(work, scope="large", key="k")) == 20_000_000
        with pytest.raises(ResultNotKept):
            engine.run(work, scope="large", key="k")
    assert runs == [1]


def test_a_result_for_which_redis_has_no_memory_is_done_once():
    runs = []

    def work(ctx):
        runs.append(1)
        return os.urandom(20_000_000)

    with program_or_skip():
        server = RedisServer(appendonly="always", options={"maxmemory": "30mb"})
    with server, Engine(open_store(server.url), policy=Policy(lease=4)) as engine:
        assert len(engine.run(work, scope="large", key="k")) == 20_000_000
        with pytest.raises(ResultNotKept):
            engine.run(work, scope="large", key="k")
    assert runs == [1]


def test_a_slow_network_is_only_slow(through, proxy):
    engine, direct = through
    proxy.delay(0.02)
    with ThreadPoolExecutor(4) as threads:
        results = set(threads.map(lambda _: engine.run(lambda ctx: "slow", scope="s", key="slow"), range(4)))
    proxy.heal()
    assert results == {"slow"}
    assert direct.record(lambda ctx: "again", scope="s", key="slow").was_replay


def test_a_server_that_cannot_be_reached_is_refused_in_bounded_time_and_nothing_runs(through, proxy):
    engine, _ = through
    runs = []
    for fault in (proxy.cut, proxy.reset, proxy.half_open):
        fault()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable):
            engine.run(runs.append, scope="s", key="down")
        assert time.monotonic() - began < 6
        proxy.heal()
    assert runs == []
    assert engine.run(lambda ctx: "up again", scope="s", key="down") == "up again"


WRONG_CLOCK = """
import sys, time
offset = float(sys.argv[2])
real_time, real_ns = time.time, time.time_ns
time.time = lambda: real_time() + offset
time.time_ns = lambda: real_ns() + int(offset * 1e9)
from sameas import Engine, Policy, open_store
engine = Engine(open_store(sys.argv[1]), policy=Policy(lease=0.5))
record = engine.record(lambda ctx: sys.argv[3], scope="clock", key=sys.argv[4])
print(record.result, record.attempt, record.was_replay)
"""


def test_worker_clocks_wrong_by_ten_minutes_have_no_effect(server_url):
    def worker(offset, name, key):
        code = [sys.executable, "-c", WRONG_CLOCK, server_url, str(offset), name, key]
        return subprocess.run(code, capture_output=True, text=True, check=True).stdout.split()

    assert worker(600, "ahead", "k") == ["ahead", "1", "False"]
    assert worker(-600, "behind", "k") == ["ahead", "1", "True"]
    with Engine(open_store(server_url), policy=Policy(lease=30)) as engine:
        engine.store.claim(engine._call_builder.call(len, scope="clock", key="held").request)
        refused = subprocess.run(
            [
                sys.executable,
                "-c",
                WRONG_CLOCK.replace("lease=0.5", "wait_for=0.3"),
                server_url,
                "600",
                "thief",
                "held",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert "InProgress" in refused.stderr, "a fast clock does not end another's lease"
