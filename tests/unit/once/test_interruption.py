"""Signals, forks, cancellations and tasks that outlive their work: nothing is left behind, nobody is mistaken."""

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from sameas import (
    AsyncEngine,
    Engine,
    IdempotentProcessor,
    InProgress,
    Policy,
    StoreUnavailable,
    Superseded,
    open_async_store,
    open_store,
)
from sameas.once.errors import Reentered
from sameas.once.record import State
from sameas.once.store import Query, Store
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock

# In a process of its own: the signal would also strike inside the tools that run the tests.
LIGHTNING = """
import signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from sameas import Engine, open_store
from sameas.once.context import WORKING

class Struck(BaseException):
    pass

def strike(*_):
    raise Struck

def elsewhere(function, *args, **kwargs):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args, **kwargs).result()

signal.signal(signal.SIGALRM, strike)
url, step = sys.argv[1], float(sys.argv[2])
engine = Engine(open_store(url))
engine.run(lambda ctx: None, scope="warm", key="up")
began = time.monotonic()
struck = number = 0
while struck <= 50 or time.monotonic() < began + 2:
    assert time.monotonic() < began + 50, "the machine is too slow for this test"
    number += 1
    key = str(number)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-6 + (number % 97) * step)
        engine.run(lambda ctx: "done", scope="s", key=key)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Struck:
        struck += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert WORKING.get() == (), "the thread believes to be at work"
    assert len(engine._call_builder.in_flight_calls) == 0, "a flight is stuck"
    answer = elsewhere(engine.record, lambda ctx: "done", scope="s", key=key, wait_for=5)
    assert answer.result == "done"
assert engine._heartbeat._beats == {}, "a lease is renewed for nobody"
print(struck)
"""


@pytest.mark.parametrize(("kind", "step"), [("memory", 2e-6), ("sqlite", 8e-6)])
def test_a_signal_at_any_moment_leaves_nothing_behind(kind, step, tmp_path):
    url = "memory://" if kind == "memory" else f"sqlite:///{tmp_path}/records.db"
    stormy = subprocess.run(
        [sys.executable, "-c", LIGHTNING, url, str(step)], capture_output=True, text=True, timeout=60, check=False
    )
    assert stormy.returncode == 0, stormy.stderr
    assert int(stormy.stdout) > 50


def elsewhere(function, *args, **kwargs):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args, **kwargs).result()


def test_a_second_interruption_during_the_clean_up_of_a_batch_goes_on_with_the_rest():
    class Interrupting(MemoryBackend):
        releases = 0

        def perform(self, command):
            if "release" in repr(command):
                self.releases += 1
                if self.releases == 1:
                    raise StoreUnavailable
            return super().perform(command)

    engine = Engine(Store(Interrupting()))

    def work(ctx, payload):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupted:
        engine.run_many(work, range(5), scope="s")
    assert len(engine._call_builder.in_flight_calls) == 0
    assert engine._heartbeat._beats == {}
    assert len(interrupted.value.__notes__) == 1
    assert len(engine.find(Query(state=State.HELD)).records) == 1


def test_a_batch_that_is_struck_while_it_boards_leaves_no_flights(monkeypatch):
    engine = Engine(open_store("memory://"))
    from sameas.once.call import Call

    boarded = []
    join_or_lead = Call.join_or_lead

    def struck(self):
        in_flight = join_or_lead(self)
        boarded.append(self)
        if len(boarded) == 3:
            raise KeyboardInterrupt
        return in_flight

    monkeypatch.setattr(Call, "join_or_lead", struck)
    with pytest.raises(KeyboardInterrupt):
        engine.run_many(lambda ctx, payload: payload, range(5), scope="s")
    assert len(engine._call_builder.in_flight_calls) == 0


class Scope(str, Enum):  # noqa: UP042 - the kind whose str() is not its text
    CHARGE = "charge"


def test_a_member_of_a_str_enum_is_its_text():
    engine = Engine(open_store("memory://"))
    engine.run(lambda ctx: 1, scope=Scope.CHARGE, key="k")
    assert engine.record(lambda ctx: 2, scope="charge", key="k").was_replay


@pytest.mark.parametrize("ending", ["exit", "return", "raise"])
def test_a_child_forked_inside_the_work_leaves_the_record_to_its_parent(ending, tmp_path):
    engine = Engine(open_store(f"sqlite:///{tmp_path}/records.db"))
    parent = os.getpid()

    def work(ctx):
        child = os.fork()
        if child == 0:
            if ending == "exit":
                raise SystemExit
            if ending == "raise":
                raise RuntimeError("in the child")
            return "child"
        os.waitpid(child, 0)
        with pytest.raises(InProgress):
            elsewhere(
                Engine(open_store(f"sqlite:///{tmp_path}/records.db")).run, len, scope="s", key="k", on_busy="refuse"
            )
        return "parent"

    try:
        record = engine.record(work, scope="s", key="k")
    except BaseException as error:
        if os.getpid() != parent:
            os._exit(0 if isinstance(error, Superseded | SystemExit | RuntimeError) else 1)
        raise
    if os.getpid() != parent:
        os._exit(1)
    assert (record.result, record.was_replay) == ("parent", False)
    assert engine.run(len, scope="s", key="k") == "parent"


def test_the_memory_store_works_in_children_forked_from_busy_threads():
    engine = Engine(open_store("memory://"))
    stop = threading.Event()

    def busy():
        number = 0
        while not stop.is_set():
            number += 1
            engine.run(lambda ctx: None, scope="busy", key=f"{threading.get_ident()}-{number}")

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(25):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                engine.run(lambda ctx: "child", scope="s", key="k")
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_heartbeat_whose_thread_could_not_start_is_started_by_the_next_lease(monkeypatch):
    engine = Engine(open_store("memory://"), policy=Policy(lease=0.06))
    start = threading.Thread.start

    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(RuntimeError, match="new thread"):
        engine.run(lambda ctx: 1, scope="s", key="first")
    monkeypatch.setattr(threading.Thread, "start", start)

    def slow(ctx):
        time.sleep(0.3)
        return ctx.lost

    assert engine.run(slow, scope="s", key="second") is False
    assert engine._heartbeat._thread is not None


def test_waiting_is_one_budget_however_often_the_leader_changes():
    engine = Engine(open_store("memory://"))
    runs, told = [], []

    def followers():
        return sum(
            len(in_flight.followers) for in_flight in engine._call_builder.in_flight_calls._in_flight_calls.values()
        )

    def fails(ctx):
        runs.append(1)
        # Everybody's time runs before the first one ends, so nobody has any left after three of them.
        while len(runs) == 1 and followers() + len(told) < 7:
            time.sleep(0.001)
        time.sleep(0.15)
        raise RuntimeError

    def caller(_):
        with pytest.raises((RuntimeError, InProgress)) as ended:
            engine.run(fails, scope="s", key="k", wait_for=0.4)
        told.append(ended.type)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(caller, range(8)))
    assert len(runs) == told.count(RuntimeError) < 8


def test_a_batch_that_asks_for_its_own_key_is_told_at_once():
    backend = MemoryBackend()
    engine, other = Engine(Store(backend)), Engine(Store(backend))

    def work(ctx):
        return other.run_many(lambda ctx, payload: 1, [None], keys=["k"], scope="s")

    with pytest.raises(Reentered):
        engine.run(work, scope="s", key="k", payload=None)


def test_iterators_among_the_options_of_a_batch_count_for_every_payload():
    engine = Engine(open_store("memory://"))
    runs = []
    payloads = [{"a": number, "t": os.urandom(4).hex()} for number in range(3)]
    for _ in range(2):
        excluded = (name for name in ["t"])
        engine.run_many(
            lambda ctx, payload: runs.append(1), payloads, scope="s", exclude_fields=excluded, tags=iter(["x"])
        )
        payloads = [payload | {"t": "other"} for payload in payloads]
    assert len(runs) == 3
    assert engine.forget_where(tag="x") == 3


def test_functions_without_a_name_need_a_scope():
    store = open_store("memory://")
    with pytest.raises(ValueError, match="scope="):
        IdempotentProcessor(lambda payload: 1, store=store)
    with pytest.raises(ValueError, match="scope="):
        Engine(store).once()(lambda order: 1)


def test_records_of_either_namespace_are_read_and_forgotten_by_their_key():
    engine = Engine(open_store("memory://"))
    record = engine.record(lambda ctx: 1, scope="s", payload={"a": 1})
    assert engine.read("s", record.key) is not None
    assert engine.forget("s", record.key)
    assert not engine.forget("s", record.key)


def test_what_json_would_merge_is_not_merged_in_a_result():
    engine = Engine(open_store("memory://"))
    assert engine.run(lambda ctx: {1: "a", "1": "b"}, scope="s", key="k") == {1: "a", "1": "b"}
    assert engine.run(lambda ctx: None, scope="s", key="k") == {1: "a", "1": "b"}


def test_a_kept_failure_may_say_anything():
    engine = Engine(open_store("memory://"), policy=Policy(keep_errors=(ValueError,)))

    def fail(ctx):
        raise ValueError("lone \ud800")

    with pytest.raises(ValueError, match="lone"):
        engine.run(fail, scope="s", key="k")
    with pytest.raises(Exception, match="ValueError: lone"):
        engine.run(fail, scope="s", key="k")


@pytest.mark.anyio
async def test_a_transaction_beside_it_does_not_stop_a_heartbeat(tmp_path):
    path = tmp_path / "records.db"
    clock = MovableClock()
    engine = AsyncEngine(open_async_store(f"sqlite:///{path}", clock=clock))
    database = create_async_engine(f"sqlite+aiosqlite:///{path}")
    under_way, may_end, lost = asyncio.Event(), asyncio.Event(), []

    async def slow(ctx):
        under_way.set()
        await may_end.wait()
        lost.append(ctx.lost)
        return "kept"

    async def quick(ctx):
        lost.append(ctx.lost)
        return 1

    async def renewed():
        """The lease ends by the store's clock, which moves only once the lease was renewed."""
        before = (await engine.read("s", "k")).lease_until
        clock.advance(0.2)
        while (await engine.read("s", "k")).lease_until <= before + 200_000:
            await asyncio.sleep(0.005)

    running = asyncio.create_task(engine.run(slow, scope="s", key="k", lease=0.3))
    await under_way.wait()
    async with database.begin() as connection:
        await connection.execute(text("SELECT 1"))
        await engine.run(quick, scope="tx", key="t", connection=connection)
    for _ in range(3):
        await renewed()
        with pytest.raises(InProgress):
            await engine.run(slow, scope="s", key="k", on_busy="refuse")
    may_end.set()
    assert await running == "kept"
    assert lost == [False, False]
    await database.dispose()
    await engine.close()


def test_a_transaction_has_no_lease_to_renew(tmp_path):
    engine = Engine(open_store(f"sqlite:///{tmp_path}/records.db"))
    connection = sqlite3.connect(tmp_path / "records.db")

    def work(ctx):
        time.sleep(0.05)
        assert engine._heartbeat._beats == {}
        return ctx.lost

    with connection:
        assert engine.run(work, scope="s", key="k", connection=connection, lease=0.03) is False
    connection.close()


@pytest.mark.anyio
async def test_a_cancelled_claim_on_sqlite_is_not_applied_after_it_was_given_back(tmp_path):
    engine = AsyncEngine(open_async_store(f"sqlite:///{tmp_path}/records.db"))
    performer = engine.store.backend.performer
    write = performer._write

    def slow_write(*args):
        time.sleep(0.1)
        return write(*args)

    performer._write = slow_write
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.03):
            await engine.run(lambda ctx: 1, scope="s", key="k")
    performer._write = write
    await asyncio.sleep(0.15)
    assert await engine.read("s", "k") is None
    await engine.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await engine.run(lambda ctx: 1, scope="s", key="k")


@pytest.mark.anyio
async def test_a_task_that_outlives_the_work_may_ask_for_its_key():
    engine = AsyncEngine(open_async_store("memory://"))
    tasks = []

    async def later():
        await asyncio.sleep(0.02)
        return await engine.run(lambda ctx: "again", scope="s", key="k")

    async def work(ctx):
        tasks.append(asyncio.create_task(later()))
        return "first"

    assert await engine.run(work, scope="s", key="k") == "first"
    assert await tasks[0] == "first"


def test_event_loops_are_not_kept_alive():
    engine = AsyncEngine(open_async_store("memory://"))
    loops = []

    async def main(number):
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await engine.run(lambda ctx: 1, scope="s", key=str(number))

    for number in range(5):
        asyncio.run(main(number))
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 1


@pytest.mark.anyio
async def test_the_concurrency_of_a_batch_bounds_those_who_follow_too():
    engine = AsyncEngine(open_async_store("memory://"))
    running = most = 0

    async def work(ctx, payload):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        raise RuntimeError

    with pytest.raises(Exception, match="calls failed"):
        await engine.run_many(work, [1] * 40, scope="s", concurrency=2)
    assert most <= 2
