"""SQLite: transactions that record and effect share, many processes on one file, and faults that are told."""

import asyncio
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from sameas import AsyncEngine, Engine, InProgress, KeyReused, Policy, StoreUnavailable, open_async_store, open_store
from sameas.errors import StoreFull
from sameas.once.errors import (
    NestedInTransaction,
    RecordDamaged,
    Reentered,
    ResultNotKept,
    StoreError,
    StoreMisconfigured,
)
from tests.servers.full_disk import small_disk


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.db"


@pytest.fixture
def engine(path):
    with Engine(open_store(f"sqlite:///{path}")) as engine:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE charges (amount)")
        yield engine


def charges(path):
    with sqlite3.connect(path) as connection:
        return [amount for (amount,) in connection.execute("SELECT amount FROM charges")]


class Callers:
    """The kinds of connection a caller may bring."""

    def plain(path):
        return sqlite3.connect(path)

    def begun(path):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN")
        return connection


def charge(connection, amount=5):
    def work(ctx):
        execute = getattr(connection, "exec_driver_sql", connection.execute)
        execute("INSERT INTO charges VALUES (?)", (amount,))
        return amount

    return work


@pytest.mark.parametrize("caller", [Callers.plain, Callers.begun])
def test_record_and_effect_commit_together(engine, path, caller):
    connection = caller(path)
    assert engine.run(charge(connection), scope="s", key="k", connection=connection) == 5
    assert engine.read("s", "k") is None, "others see nothing before the commit"
    connection.commit()
    assert engine.record(charge(connection), scope="s", key="k").was_replay
    assert charges(path) == [5]


@pytest.mark.parametrize("caller", [Callers.plain, Callers.begun])
def test_record_and_effect_vanish_together(engine, path, caller):
    connection = caller(path)
    engine.run(charge(connection), scope="s", key="k", connection=connection)
    connection.rollback()
    assert engine.read("s", "k") is None
    assert charges(path) == []


def test_a_failed_call_leaves_the_rest_of_the_transaction_as_it_was(engine, path):
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO charges VALUES (1)")

    def work(ctx):
        connection.execute("INSERT INTO charges VALUES (2)")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        engine.run(work, scope="s", key="k", connection=connection)
    connection.commit()
    assert charges(path) == [1]
    assert engine.read("s", "k") is None


def test_a_second_call_in_the_transaction_is_a_replay_and_other_answers_are_errors(engine, path):
    connection = sqlite3.connect(path)
    first = engine.record(charge(connection), scope="s", key="k", payload=1, connection=connection)
    second = engine.record(charge(connection), scope="s", key="k", payload=1, connection=connection)
    assert (first.was_replay, second.was_replay) == (False, True)
    with pytest.raises(KeyReused):
        engine.run(charge(connection), scope="s", key="k", payload=2, connection=connection)
    connection.commit()
    engine.store.claim(engine._call_builder.call(len, scope="s", key="held").request)
    with pytest.raises(InProgress):
        engine.run(charge(connection), scope="s", key="held", connection=connection)
    connection.rollback()


def test_a_lease_mode_call_inside_the_transaction_fails_at_once(engine, path):
    connection = sqlite3.connect(path)

    def nested(ctx):
        return engine.run(lambda ctx: 1, scope="s", key="inner")

    began = time.monotonic()
    with pytest.raises(NestedInTransaction):
        engine.run(nested, scope="s", key="k", connection=connection)
    assert time.monotonic() - began < 1

    def joined(ctx):
        return engine.run(lambda ctx: 1, scope="s", key="inner", connection=connection)

    assert engine.run(joined, scope="s", key="k", connection=connection) == 1

    def itself(ctx):
        return engine.run(itself, scope="s", key="own", connection=connection)

    with pytest.raises(Reentered):
        engine.run(itself, scope="s", key="own", connection=connection)
    connection.commit()


def test_an_autocommit_connection_without_a_transaction_is_refused(engine, path):
    with pytest.raises(ValueError, match="begin one first"):
        engine.run(lambda ctx: 1, scope="s", key="k", connection=sqlite3.connect(path, isolation_level=None))


def test_stores_without_transactions_say_so():
    with pytest.raises(TypeError, match="use a SQL store"):
        Engine(open_store("memory://")).run(lambda ctx: 1, scope="s", key="k", connection=object())


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_sqlalchemy_connections_and_sessions_join(engine, path, kind):
    database = sqlalchemy.create_engine(f"sqlite:///{path}")

    def transaction():
        return database.begin() if kind == "connection" else Session(database)

    def work_on(caller):
        return lambda ctx: caller.execute(sqlalchemy.text("INSERT INTO charges VALUES (7)")) and 7

    with transaction() as caller:
        assert engine.run(work_on(caller), scope="s", key="k", connection=caller) == 7
        caller.commit() if kind == "session" else None
    with transaction() as caller:
        assert engine.record(work_on(caller), scope="s", key="k", connection=caller).was_replay
        assert engine.run(work_on(caller), scope="s", key="other", connection=caller) == 7
        caller.rollback()
    assert charges(path) == [7]
    assert engine.read("s", "other") is None
    database.dispose()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["connection", "session"])
async def test_sqlalchemy_async_connections_and_sessions_join(engine, path, kind):
    database = create_async_engine(f"sqlite+aiosqlite:///{path}")
    tasks = AsyncEngine(open_async_store(f"sqlite:///{path}"))

    def transaction():
        return database.connect() if kind == "connection" else AsyncSession(database)

    def work_on(caller):
        async def work(ctx):
            await caller.execute(sqlalchemy.text("INSERT INTO charges VALUES (7)"))
            return 7

        return work

    async with transaction() as caller:
        assert await tasks.run(work_on(caller), scope="s", key="k", connection=caller) == 7
        assert await tasks.read("s", "k") is None
        await caller.commit()
    async with transaction() as caller:
        assert (await tasks.record(work_on(caller), scope="s", key="k", connection=caller)).was_replay

        async def fail(ctx):
            await work_on(caller)(ctx)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await tasks.run(fail, scope="s", key="failed", connection=caller)
        await tasks.run(work_on(caller), scope="s", key="other", connection=caller)
        await caller.rollback()
    assert charges(path) == [7]
    assert await tasks.read("s", "other") is None
    await database.dispose()
    await tasks.close()


def test_racing_transactions_have_one_effect(engine, path):
    def caller():
        connection = sqlite3.connect(path, timeout=30)
        for key in map(str, range(20)):
            with connection:
                engine.run(charge(connection, key), scope="s", key=key, connection=connection)
        connection.close()

    threads = [threading.Thread(target=caller) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(charges(path), key=int) == [str(number) for number in range(20)]


def test_a_store_object_works_in_a_forked_child(path):
    engine = Engine(open_store(f"sqlite:///{path}"))
    engine.run(lambda ctx: os.getpid(), scope="s", key="parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            inherited = engine.run(lambda ctx: 0, scope="s", key="parent")
            engine.run(lambda ctx: os.getpid(), scope="s", key="child")
            status = 0 if inherited == os.getppid() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert engine.run(lambda ctx: 0, scope="s", key="child") == child
    assert engine.run(lambda ctx: 0, scope="s", key="parent") == os.getpid()


def open_and_run(path, number):
    with Engine(open_store(f"sqlite:///{path}")) as engine:
        engine.run(lambda ctx: number, scope="s", key=str(number))


def test_many_processes_make_the_tables_at_once(path):
    spawn = multiprocessing.get_context("fork")
    processes = [spawn.Process(target=open_and_run, args=(path, number)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 8


def test_a_locked_database_is_refused_within_the_bound_and_replays_are_still_served(path):
    engine = Engine(open_store(f"sqlite:///{path}", busy_timeout=0.05))
    engine.run(lambda ctx: "kept", scope="s", key="k")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        engine.run(lambda ctx: 1, scope="s", key="new")
    assert engine.record(lambda ctx: 1, scope="s", key="k").was_replay
    other.execute("ROLLBACK")
    assert engine.run(lambda ctx: 1, scope="s", key="new") == 1


def test_a_url_with_too_few_slashes_says_what_to_write():
    with pytest.raises(ValueError, match="write sqlite:///file.db"):
        open_store("sqlite:/a.db")


# What a process does that finds the index of the log torn, as a kill leaves it: it locks the places of the writer, of
# checkpoints and of recovery in the index, and mends its header. This one takes its time over it.
REPAIR = """
import fcntl, sys
with open(sys.argv[1] + "-shm", "r+b") as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 3, 120)
    index.write(bytes(96))
    index.flush()
    print("at it", flush=True)
    sys.stdin.read()
"""


@contextmanager
def repaired_by_another(path):
    """Another process repairs the log of the file; answers what ends that."""
    command = [sys.executable, "-c", REPAIR, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "at it\n"
        yield other.stdin.close


@pytest.mark.parametrize("asks", [lambda engine: engine.read("s", "k"), lambda engine: engine.forget("s", "k")])
def test_who_repairs_the_file_after_a_crash_is_waited_for(path, asks):
    with Engine(open_store(f"sqlite:///{path}")) as engine:
        engine.run(lambda ctx: "kept", scope="s", key="k")
        with repaired_by_another(path) as ends:
            # Longer than SQLite waits by itself.
            threading.Timer(0.2, ends).start()
            assert asks(engine)


def test_who_repairs_the_file_for_too_long_is_not_waited_for(path):
    with Engine(open_store(f"sqlite:///{path}", busy_timeout=0.05)) as engine:
        engine.run(lambda ctx: "kept", scope="s", key="k")
        with repaired_by_another(path):
            for asks in (engine.read, engine.forget):
                with pytest.raises(StoreUnavailable, match="locked"):
                    asks("s", "k")


def test_a_task_that_reads_a_file_under_repair_leaves_the_event_loop_free(path):
    async def main():
        engine = AsyncEngine(open_async_store(f"sqlite:///{path}"))
        await engine.run(lambda ctx: "kept", scope="s", key="k")
        with repaired_by_another(path) as ends:
            reading = asyncio.create_task(engine.read("s", "k"))
            for _ in range(20):
                await asyncio.sleep(0.005)
            assert not reading.done()
            ends()
            assert (await reading).identity.key == "k"
        await engine.close()

    asyncio.run(main())


def test_a_locked_database_does_not_block_the_event_loop(path):
    async def main(engine):
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(engine.run(lambda ctx: 1, scope="s", key="k"))
        for _ in range(20):
            await asyncio.sleep(0.005)
        # A loop that was blocked would come here when the waiting is over.
        assert not waiting.done()
        with pytest.raises(StoreUnavailable):
            await waiting
        other.close()
        await engine.close()

    asyncio.run(main(AsyncEngine(open_async_store(f"sqlite:///{path}", busy_timeout=1.5))))


def test_a_full_disk_refuses_writes_and_still_serves_replays(path):
    engine = Engine(open_store(f"sqlite:///{path}"))
    engine.run(lambda ctx: "kept", scope="s", key="k")
    performer = engine.store.backend.performer
    connection = performer._take()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    performer._give_back(connection)
    runs = []
    with pytest.raises(StoreFull, match="full"):
        engine.run(runs.append, scope="s", key="new", audit={"large": "x" * 200_000})
    assert runs == []
    brief = Engine(engine.store, policy=Policy(hand_in_for=0))
    large = os.urandom(200_000)
    unkept = brief.record(lambda ctx: large, scope="s", key="large result")
    assert (unkept.result, unkept.stored, bool(unkept.not_kept)) == (large, True, True)
    with pytest.raises(ResultNotKept):
        engine.run(runs.append, scope="s", key="large result")
    assert runs == []
    assert engine.record(lambda ctx: 1, scope="s", key="k").was_replay


def test_a_disk_without_room_to_open_a_file_is_full(tmp_path):
    with small_disk(tmp_path, size=8 << 20) as disk:
        store = f"sqlite:///{tmp_path}/keys.db"
        with Engine(open_store(store)) as engine:
            engine.run(lambda ctx: "kept", scope="s", key="k")
        disk.fill()
        with pytest.raises(StoreFull, match="Make room"):
            open_store(store)
        disk.make_room()
        with Engine(open_store(store)) as engine:
            assert engine.record(lambda ctx: 1, scope="s", key="k").was_replay


def test_a_damaged_result_is_an_error_and_not_a_miss(path):
    engine = Engine(open_store(f"sqlite:///{path}"))
    engine.run(lambda ctx: "kept", scope="s", key="k")
    with sqlite3.connect(path) as connection:
        (framed,) = connection.execute("SELECT outcome FROM sameas_records").fetchone()
        connection.execute("UPDATE sameas_records SET outcome = ?", (framed[:-1] + bytes([framed[-1] ^ 1]),))
    runs = []
    with pytest.raises(RecordDamaged, match="checksum"):
        engine.run(runs.append, scope="s", key="k")
    assert runs == []
    engine.forget("s", "k")
    assert engine.run(lambda ctx: "again", scope="s", key="k") == "again"


def test_a_file_that_is_no_database_is_refused(path):
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(RecordDamaged, match="damaged"):
        open_store(f"sqlite:///{path}")


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(StoreMisconfigured, match="unable to open"):
        open_store(f"sqlite:///{tmp_path}/none/records.db")


def test_the_columns_hold_to_their_rules(engine):
    for about in ({"route": "orders"}, {"route": "/a?b=1"}, {"route": "/a", "method": "BREW"}):
        with pytest.raises((StoreError, ValueError), match=r"CHECK|route|method"):
            engine.run(lambda ctx: 1, scope="s", key="k", **about)
    with pytest.raises(ValueError, match="one line"):
        engine.run(lambda ctx: 1, scope="s", key="k", tags=["a\nb"])


def test_results_and_forgets_wait_for_the_disk_and_claims_do_not(engine, monkeypatch):
    performer = engine.store.backend.performer
    begin = performer._begin
    seen = []

    def noted(connection, deadline):
        seen.append(connection.execute("PRAGMA synchronous").fetchone()[0])
        begin(connection, deadline)

    monkeypatch.setattr(performer, "_begin", noted)
    normal, full = 1, 2
    engine.run(lambda ctx: "kept", scope="s", key="k")
    assert seen == [normal, full]
    engine.forget("s", "k")
    assert seen[2:] == [full, full]
    with pytest.raises(RuntimeError):
        engine.run(lambda ctx: (_ for _ in ()).throw(RuntimeError), scope="s", key="k")
    assert seen[4:] == [normal, normal]


def test_a_file_that_another_transaction_holds_can_be_opened_and_read(engine, path):
    assert engine.run(lambda ctx: "done", scope="s", key="k") == "done"
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    with Engine(open_store(f"sqlite:///{path}", busy_timeout=0.05)) as second:
        assert second.run(lambda ctx: "again", scope="s", key="k") == "done"
    holder.close()
