"""Tasks that write to a SQLite file at once share transactions, and each is told the truth about its own."""

import asyncio
import os
import sqlite3
import threading
import time
from contextlib import asynccontextmanager, contextmanager

import pytest

from sameas import AsyncEngine, Engine, Policy, StoreUnavailable, open_async_store, open_store
from sameas.once.call_builder import identity_of
from sameas.once.errors import OutcomeUnknown, StoreError
from sameas.once.record import Acquired, ClaimRequest
from sameas.stores.sql import Statement
from sameas.stores.sqlite_writer import SqliteWriter

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.db"


@asynccontextmanager
async def opened(path, **options):
    engine = AsyncEngine(open_async_store(f"sqlite:///{path}", **options), policy=Policy(hand_in_for=0))
    try:
        yield engine
    finally:
        await engine.close()


@contextmanager
def locked(path):
    """The write lock of the file, held by somebody else."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture
def transactions(monkeypatch):
    """Counts the transactions of an engine's file."""

    def counted(engine):
        performer, seen = engine.store.backend.performer, []
        begin = performer._begin
        monkeypatch.setattr(performer, "_begin", lambda *args: (seen.append(1), begin(*args)))
        return seen

    return counted


def kept_keys(path):
    with sqlite3.connect(path) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM sameas_records WHERE is_processed = 1")}


async def begun(tasks):
    """Every task has asked for what it needs."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def test_what_waits_together_is_written_together(path, transactions):
    async with opened(path) as engine:
        seen = transactions(engine)
        with locked(path):
            tasks = [
                asyncio.create_task(engine.run(lambda _, n=number: n, scope="s", key=str(number)))
                for number in range(60)
            ]
            await begun(tasks)
        assert await asyncio.gather(*tasks) == list(range(60))
        # The first claim on its own, the other claims, and the results.
        assert len(seen) < 20
    assert kept_keys(path) == {str(number) for number in range(60)}


@pytest.mark.parametrize(("kinds", "waits"), [((False, False), False), ((False, True), True), ((True, False), True)])
async def test_a_result_waits_for_the_disk_whatever_it_is_written_with(path, monkeypatch, kinds, waits):
    async with opened(path) as engine:
        performer, seen = engine.store.backend.performer, []
        begin = performer._begin

        def noted(connection, deadline):
            seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])
            begin(connection, deadline)

        monkeypatch.setattr(performer, "_begin", noted)
        nothing = "UPDATE sameas_records SET state = state WHERE 0"
        await performer.aperform_many([Statement(nothing, {}, durable=kind) for kind in kinds])
        assert seen == [2 if waits else 1]


@pytest.mark.parametrize("harm", ["ABORT", "ROLLBACK"], ids=["refused", "undoes all, as a full disk may"])
async def test_one_that_fails_does_not_hurt_the_others(path, harm):
    async with opened(path) as engine:
        with sqlite3.connect(path) as connection:
            connection.execute(
                "CREATE TRIGGER harm BEFORE INSERT ON sameas_records WHEN NEW.key LIKE 'bad%' "
                f"BEGIN SELECT RAISE({harm}, 'refused'); END"
            )
        keys = [f"{'bad' if number % 7 == 3 else 'good'}{number}" for number in range(20)]
        with locked(path):
            tasks = [asyncio.create_task(engine.run(lambda _: 1, scope="s", key=key)) for key in keys]
            await begun(tasks)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, StoreError) for answer in answers] == [key.startswith("bad") for key in keys]
    assert kept_keys(path) == {key for key in keys if key.startswith("good")}


async def test_who_is_cancelled_comes_after_its_write_and_leaves_nothing(path):
    async with opened(path) as engine:
        runs = []
        with locked(path):
            task = asyncio.create_task(engine.run(runs.append, scope="s", key="k"))
            await begun([task])
            task.cancel()
            await begun([task])
        with pytest.raises(asyncio.CancelledError):
            await task
        assert runs == []
        assert await engine.run(lambda _: "mine", scope="s", key="k") == "mine"


async def test_a_value_that_cannot_be_written_is_the_fault_of_one(path):
    async with opened(path) as engine:
        with locked(path):
            tasks = [
                asyncio.create_task(
                    engine.store.claim(ClaimRequest(identity_of("s", str(number)), print_, "a1", 9, 99))
                )
                for number, print_ in enumerate(["", "", "\ud800", "", ""])
            ]
            await begun(tasks)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Acquired, Acquired, UnicodeEncodeError, Acquired, Acquired]


async def test_what_meets_one_on_its_own_is_not_told_to_those_before_it(path, monkeypatch):
    async with opened(path, busy_timeout=0.1) as engine:
        with sqlite3.connect(path) as connection:
            connection.execute(
                "CREATE TRIGGER harm BEFORE INSERT ON sameas_records WHEN NEW.key = 'bad' "
                "BEGIN SELECT RAISE(ROLLBACK, 'undone'); END"
            )
        performer = engine.store.backend.performer
        begin, other, seen = performer._begin, sqlite3.connect(path, isolation_level=None, check_same_thread=False), []

        def taken_midway(*args):
            seen.append(1)
            # The first claim, then nine together, then one by one.
            if len(seen) == 6:
                other.execute("BEGIN IMMEDIATE")
            begin(*args)

        keys = ["0", "1", "2", "3", "bad", *map(str, range(5, 10))]
        with locked(path):
            monkeypatch.setattr(performer, "_begin", taken_midway)
            tasks = [asyncio.create_task(engine.record(lambda _: 1, scope="s", key=key)) for key in keys]
            await begun(tasks)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        other.execute("ROLLBACK")
        other.close()
        monkeypatch.undo()
        assert len(seen) >= 6
        refused = {key for key, answer in zip(keys, answers, strict=True) if isinstance(answer, StoreError)}
        with sqlite3.connect(path) as connection:
            there = {key for (key,) in connection.execute("SELECT key FROM sameas_records")}
        assert "bad" in refused
        assert refused.isdisjoint(there)


def test_callers_of_a_locked_file_wait_no_longer_for_being_many(path):
    async def main():
        async with opened(path, busy_timeout=1.0) as engine:
            with locked(path):
                began = time.monotonic()
                answers = await asyncio.gather(
                    *(engine.run(lambda _: 1, scope="s", key=str(number)) for number in range(450)),
                    return_exceptions=True,
                )
                assert time.monotonic() - began < 4
            assert all(isinstance(answer, StoreUnavailable | OutcomeUnknown) for answer in answers)

    asyncio.run(main())


async def test_results_that_wait_when_the_store_is_closed_are_written(path):
    async with opened(path) as engine:
        gate, at_work = asyncio.Event(), []

        async def work(_):
            at_work.append(1)
            await gate.wait()
            return 1

        tasks = [asyncio.create_task(engine.record(work, scope="s", key=str(number))) for number in range(150)]
        while len(at_work) < 150:
            await asyncio.sleep(0.01)
        gate.set()
        for _ in range(5):
            await asyncio.sleep(0)
        await engine.close()
        assert all(record.stored for record in await asyncio.gather(*tasks))
    assert len(kept_keys(path)) == 150


async def test_a_store_that_is_closed_finishes_what_was_asked(path):
    async with opened(path) as engine:
        tasks = [asyncio.create_task(engine.run(lambda _: 1, scope="s", key=str(number))) for number in range(10)]
        for _ in range(3):
            await asyncio.sleep(0)
        await engine.close()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(StoreUnavailable, match="closed"):
            await engine.run(lambda _: 1, scope="s", key="late")
    assert all(answer == 1 or isinstance(answer, StoreUnavailable | OutcomeUnknown) for answer in answers)


async def test_who_asks_at_the_moment_of_closing_is_told_so():
    writer = SqliteWriter(lambda statements, since, begin: [[] for _ in statements])
    writer.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await writer.ask([Statement("", {})])


def test_two_event_loops_share_one_file_and_one_store(path):
    store = open_async_store(f"sqlite:///{path}")
    answers = {}

    def caller(name):
        async def main():
            engine = AsyncEngine(store)
            answers[name] = await asyncio.gather(
                *(engine.run(lambda _, n=number: (name, n), scope="s", key=str(number)) for number in range(30))
            )

        asyncio.run(main())

    threads = [threading.Thread(target=caller, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [number for _, number in answers["a"]] == list(range(30))
    assert answers["a"] == answers["b"]
    asyncio.run(store.close())


def test_a_child_that_is_forked_while_another_thread_writes_can_write(path):
    engine = Engine(open_store(f"sqlite:///{path}", busy_timeout=3.0))
    engine.run(lambda _: 1, scope="s", key="warm")
    performer = engine.store.backend.performer
    inside, now = threading.Event(), performer.now

    def slowly():
        # Read while the write lock is held.
        if performer._writing._is_owned():
            inside.set()
            time.sleep(0.3)
        return now()

    performer.now = slowly
    writer = threading.Thread(target=lambda: engine.run(lambda _: 1, scope="s", key="parent"))
    writer.start()
    inside.wait(10)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            performer.now = now
            engine.run(lambda _: 2, scope="s", key="child")
            status = 0
        finally:
            os._exit(status)
    writer.join()
    performer.now = now
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept_keys(path) == {"warm", "parent", "child"}


def test_a_forked_child_has_a_writer_of_its_own(path):
    engine = AsyncEngine(open_async_store(f"sqlite:///{path}"))
    asyncio.run(engine.run(lambda _: "parent", scope="s", key="k"))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(engine.run(lambda _: "child", scope="s", key="other"))
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert kept_keys(path) == {"k", "other"}
    asyncio.run(engine.close())
