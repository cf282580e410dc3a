"""Record and business rows in one transaction of the caller's: they commit or vanish together."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from sameas.connections import open_async_store, open_store
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.errors import InProgress, Reentered, StoreUnavailable, TransactionEnded, TransactionRefused
from sameas.stores import sql
from sameas.stores.sqlalchemy import SqlAlchemyPerformer

ROOT = Path(__file__).resolve().parents[2]
KEYS = 12
THREADS = 8


class Place:
    """A database, an engine of the caller's on it, and a store in it."""

    def __init__(self, url: str) -> None:
        self.store_url = url
        if url.startswith("postgresql:"):
            self.url = self.async_url = url.replace("postgresql:", "postgresql+psycopg:")
        else:
            self.url, self.async_url = url, url.replace("+pymysql", "+asyncmy")
        self.callers = sqlalchemy.create_engine(self.url, pool_size=THREADS, max_overflow=0)
        with self.callers.begin() as connection:
            connection.execute(text("CREATE TABLE effects (name VARCHAR(64) NOT NULL)"))
        self.engine = Engine(open_store(url, lock_timeout=1.0, timeout=4.0))

    def effects(self) -> list[str]:
        with self.callers.begin() as connection:
            return sorted(connection.execute(text("SELECT name FROM effects")).scalars())

    def close(self) -> None:
        self.engine.close()
        self.callers.dispose()


@pytest.fixture(params=["postgres_url", "mariadb_url"])
def place(request):
    place = Place(request.getfixturevalue(request.param))
    yield place
    place.close()


def effect(connection, name):
    """Work that writes a business row through the caller's connection."""

    def work(context):
        connection.execute(text("INSERT INTO effects VALUES (:name)"), {"name": name})
        return {"name": name, "fence": context.fence}

    return work


def never(context):
    raise AssertionError("it was done before")


class TestRefusals:
    """What cannot keep record and effects together is refused clearly, and never runs twice."""

    def test_work_that_commits_is_told_so_and_what_it_did_is_not_done_again(self, place):
        with place.callers.connect() as connection:

            def work(context):
                connection.execute(text("INSERT INTO effects VALUES ('once')"))
                connection.commit()
                return "done"

            with pytest.raises(TransactionEnded, match="Leave commit and rollback to the caller"):
                place.engine.run(work, scope="s", key="a", connection=connection)
        assert place.effects() == ["once"]
        assert place.engine.run(never, scope="s", key="a") == "done"

    def test_a_session_that_the_work_commits_is_told_so_too(self, place):
        with Session(place.callers) as session:

            def work(context):
                session.execute(text("INSERT INTO effects VALUES ('once')"))
                session.commit()
                return "done"

            with pytest.raises(TransactionEnded):
                place.engine.run(work, scope="s", key="a", connection=session)
        assert place.engine.run(never, scope="s", key="a") == "done"

    @pytest.mark.parametrize("end", ["commit", "rollback"])
    def test_psycopgs_own_connection_is_watched_alike(self, postgres_url, end):
        with Engine(open_store(postgres_url)) as engine, psycopg.connect(postgres_url) as connection:

            def work(context):
                getattr(connection, end)()
                return "done"

            with pytest.raises(TransactionEnded):
                engine.run(work, scope="s", key="a", connection=connection)
            record = engine.record(lambda context: "again", scope="s", key="a")
            assert (record.result, record.was_replay) == (("done", True) if end == "commit" else ("again", False))

    def test_work_that_rolls_back_is_told_so_and_may_be_run_again(self, place):
        with place.callers.connect() as connection:

            def work(context):
                connection.execute(text("INSERT INTO effects VALUES ('never')"))
                connection.rollback()

            with pytest.raises(TransactionEnded):
                place.engine.run(work, scope="s", key="a", connection=connection)
        assert place.effects() == []
        assert place.engine.run(lambda context: "fresh", scope="s", key="a") == "fresh"

    def test_a_connection_to_another_database_is_refused_before_the_work(self, place):
        with place.callers.connect() as connection:
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            autocommit.execute(text("CREATE DATABASE elsewhere"))
        try:
            other_url = sqlalchemy.make_url(place.store_url).set(database="elsewhere")
            Engine(open_store(other_url.render_as_string(hide_password=False))).close()
            other = sqlalchemy.create_engine(sqlalchemy.make_url(place.url).set(database="elsewhere"))
            with other.connect() as connection, pytest.raises(TransactionRefused, match="elsewhere"):
                place.engine.run(never, scope="s", key="a", connection=connection)
            other.dispose()
        finally:
            with place.callers.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("DROP DATABASE elsewhere"))

    def test_a_connection_of_another_kind_is_refused(self, place):
        other = sqlite3.connect(":memory:")
        with pytest.raises(TransactionRefused, match="Connection"):
            place.engine.run(never, scope="s", key="a", connection=other)
        other.close()


class TestLockedRows:
    """While a transaction holds a record's row, refusing and waiting are what the caller said, not the store's bound."""

    @pytest.fixture(params=[False, True], ids=["new", "left"])
    def left(self, place, request):
        """Whether there is a record of the key "a" already, which a dead worker left."""
        if request.param:
            left = place.engine._call_builder.call(never, scope="s", key="a", lease=0.001)
            assert place.engine.store.claim(left.request)

    @pytest.fixture
    def held(self, place):
        """A transaction in the middle of its work under the key "a"; its end, and a store that is very patient."""
        working, over = threading.Event(), threading.Event()

        def hold():
            with place.callers.begin() as connection:

                def work(context):
                    working.set()
                    # Whoever waits for the row instead of refusing is answered with the result, and fails the test.
                    over.wait(10)
                    return "theirs"

                place.engine.run(work, scope="s", key="a", connection=connection, lease=60.0)

        with (
            ThreadPoolExecutor(1) as pool,
            Engine(open_store(place.store_url, lock_timeout=50.0, timeout=55.0)) as patient,
        ):
            holding = pool.submit(hold)
            assert working.wait(30)
            yield patient, over
            over.set()
            holding.result(30)

    @pytest.mark.parametrize("options", [{"on_busy": "refuse"}, {"wait_for": 0.3}, {"wait_for": 0.0}])
    @pytest.mark.parametrize("joined", [False, True])
    def test_one_who_does_not_wait_is_refused(self, place, held, options, joined):
        patient, over = held
        with place.callers.connect() as connection, pytest.raises(InProgress):
            more = {"connection": connection} if joined else {}
            patient.run(never, scope="s", key="a", **options, **more)
        assert not over.is_set()

    def test_tasks_are_refused_alike(self, place, held):
        async def main():
            engine = AsyncEngine(open_async_store(place.store_url, lock_timeout=50.0, timeout=55.0))
            with pytest.raises(InProgress):
                await engine.run(never, scope="s", key="a", on_busy="refuse")
            await engine.close()

        asyncio.run(main())

    @pytest.fixture
    def as_mysql(self, monkeypatch):
        """MariaDB, asked as MySQL is: without its own statements that do not wait."""
        monkeypatch.setattr(SqlAlchemyPerformer, "is_mariadb", False)
        known = sql.statements

        def without(dialect):
            return {**known(dialect), "impatient": ""}

        monkeypatch.setattr(sql, "statements", without)

    @pytest.mark.parametrize("place", ["mariadb_url"], indirect=True)
    @pytest.mark.parametrize("options", [{"on_busy": "refuse"}, {"wait_for": 0.3}])
    @pytest.mark.usefixtures("as_mysql")
    def test_mysql_has_a_look_that_does_not_wait(self, left, held, options):
        patient, over = held
        with pytest.raises(InProgress):
            patient.run(never, scope="s", key="a", **options)
        assert not over.is_set()
        assert patient.run(lambda context: "mine", scope="s", key="b", **options) == "mine"

    def test_one_who_waits_does_so_beyond_the_stores_own_bound(self, place, held):
        _, over = held
        with (
            Engine(open_store(place.store_url, lock_timeout=0.2)) as brief,
            ThreadPoolExecutor(1) as pool,
            place.callers.connect() as connection,
        ):
            waiting = pool.submit(brief.record, never, scope="s", key="a", connection=connection, wait_for=60.0)
            # Longer than the bound of the store, in either server's units.
            assert not wait([waiting], timeout=1.5).done
            over.set()
            record = waiting.result(30)
        assert (record.result, record.was_replay) == ("theirs", True)

    def test_other_keys_are_not_refused(self, left, held):
        patient, _ = held
        assert patient.run(lambda context: "mine", scope="s", key="b", on_busy="refuse") == "mine"


class TestCommitAndRollback:
    def test_commit_keeps_record_and_effect(self, place):
        with place.callers.begin() as connection:
            first = place.engine.record(effect(connection, "a"), scope="s", key="a", connection=connection)
        assert not first.was_replay
        assert place.effects() == ["a"]
        with place.callers.begin() as connection:
            again = place.engine.record(never, scope="s", key="a", connection=connection)
        assert (again.was_replay, again.result) == (True, first.result)
        assert place.engine.run(never, scope="s", key="a") == first.result

    def test_rollback_undoes_record_and_effect(self, place):
        with place.callers.connect() as connection:
            place.engine.run(effect(connection, "a"), scope="s", key="a", connection=connection)
            connection.rollback()
        assert place.effects() == []
        assert place.engine.read("s", "a") is None
        with place.callers.begin() as connection:
            place.engine.run(effect(connection, "a"), scope="s", key="a", connection=connection)
        assert place.effects() == ["a"]

    def test_failed_work_leaves_the_rest_of_the_transaction(self, place):
        def fail(context):
            connection.execute(text("INSERT INTO effects VALUES ('half')"))
            raise ZeroDivisionError

        with place.callers.begin() as connection:
            connection.execute(text("INSERT INTO effects VALUES ('before')"))
            with pytest.raises(ZeroDivisionError):
                place.engine.run(fail, scope="s", key="a", connection=connection)
            connection.execute(text("INSERT INTO effects VALUES ('after')"))
        assert place.effects() == ["after", "before"]
        assert place.engine.read("s", "a") is None

    def test_session_is_joined_like_a_connection(self, place):
        with Session(place.callers) as session, session.begin():
            place.engine.run(effect(session, "a"), scope="s", key="a", connection=session)
        assert place.effects() == ["a"]
        assert place.engine.read("s", "a") is not None

    def test_autocommit_connection_is_refused(self, place):
        with place.callers.connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            with pytest.raises(ValueError, match="autocommit"):
                place.engine.run(effect(connection, "a"), scope="s", key="a", connection=connection)

    def test_settings_of_the_session_are_given_back(self, place):
        ask = "SHOW lock_timeout" if "postgresql" in place.url else "SELECT @@SESSION.innodb_lock_wait_timeout"
        with place.callers.begin() as connection:
            before = connection.execute(text(ask)).scalar()
            place.engine.run(effect(connection, "a"), scope="s", key="a", connection=connection)
            assert connection.execute(text(ask)).scalar() == before

    def test_transaction_that_idles_beyond_its_lease_is_ended_by_the_server(self, place):
        ask = {
            True: "SHOW idle_in_transaction_session_timeout",
            False: "SELECT @@SESSION.idle_transaction_timeout",
        }["postgresql" in place.url]
        seen = []
        with place.callers.begin() as connection:
            place.engine.run(
                lambda context: seen.append(str(connection.execute(text(ask)).scalar())),
                scope="s",
                key="a",
                lease=7.0,
                connection=connection,
            )
        assert seen in (["7s"], ["7"])


class TestRaces:
    def test_eight_threads_give_one_effect_per_key(self, place):
        def race(number):
            name = f"k{number % KEYS}"
            for _ in range(50):
                try:
                    with place.callers.begin() as connection:
                        return place.engine.run(effect(connection, name), scope="s", key=name, connection=connection)
                except (InProgress, StoreUnavailable):
                    continue
            raise AssertionError("it never got through")

        with ThreadPoolExecutor(THREADS) as threads:
            results = list(threads.map(race, range(KEYS * THREADS)))
        assert place.effects() == sorted(f"k{number}" for number in range(KEYS))
        for number in range(KEYS):
            assert len({str(result) for result in results[number::KEYS]}) == 1

    def test_claim_in_a_transaction_makes_others_busy_until_it_ends(self, place):
        with place.callers.connect() as holder:
            place.engine.run(effect(holder, "a"), scope="s", key="a", connection=holder)
            with place.callers.begin() as other, pytest.raises(InProgress):
                place.engine.run(never, scope="s", key="a", connection=other, wait_for=0.5)
            with pytest.raises(InProgress):
                place.engine.run(never, scope="s", key="a", wait_for=0.5)
            holder.commit()
        assert place.engine.record(never, scope="s", key="a").was_replay

    def test_lease_mode_waits_for_a_transaction_and_shares_its_result(self, place):
        with place.callers.connect() as holder, ThreadPoolExecutor(1) as thread:
            result = place.engine.run(effect(holder, "a"), scope="s", key="a", connection=holder)
            waiting = thread.submit(place.engine.record, never, scope="s", key="a", wait_for=20)
            holder.commit()
            shared = waiting.result()
        assert (shared.was_replay, shared.result) == (True, result)

    def test_nested_lease_mode_call_does_not_hang(self, place):
        def outer(context):
            return place.engine.run(lambda inner: "inner", scope="s", key="other", lease=5)

        with place.callers.begin() as connection:
            assert place.engine.run(outer, scope="s", key="a", connection=connection) == "inner"

            def same(context):
                return place.engine.run(never, scope="s", key="b")

            with pytest.raises(Reentered):
                place.engine.run(same, scope="s", key="b", connection=connection)


class TestTasks:
    def test_async_connection_and_session_commit_or_vanish_together(self, place):
        async def main():
            callers = create_async_engine(place.async_url)
            engine = AsyncEngine(open_async_store(place.store_url, lock_timeout=1.0, timeout=4.0))

            def work_on(connection, name):
                async def work(context):
                    await connection.execute(text("INSERT INTO effects VALUES (:name)"), {"name": name})
                    return name

                return work

            async with callers.begin() as connection:
                await engine.run(work_on(connection, "a"), scope="s", key="a", connection=connection)
            async with callers.connect() as connection:
                await engine.run(work_on(connection, "b"), scope="s", key="b", connection=connection)
                await connection.rollback()
            async with AsyncSession(callers) as session, session.begin():
                await engine.run(work_on(session, "c"), scope="s", key="c", connection=session)
            assert await engine.read("s", "b") is None
            assert await engine.run(never, scope="s", key="c") == "c"
            await engine.close()
            await callers.dispose()

        asyncio.run(main())
        assert place.effects() == ["a", "c"]

    def test_racing_tasks_give_one_effect_per_key(self, place):
        async def main():
            callers = create_async_engine(place.async_url, pool_size=THREADS, max_overflow=0)
            engine = AsyncEngine(open_async_store(place.store_url, lock_timeout=1.0, timeout=4.0))

            async def race(number):
                name = f"k{number % KEYS}"

                async def work(context):
                    await connection.execute(text("INSERT INTO effects VALUES (:name)"), {"name": name})
                    return context.fence

                for _ in range(50):
                    try:
                        async with callers.begin() as connection:
                            return await engine.run(work, scope="s", key=name, connection=connection)
                    except (InProgress, StoreUnavailable):
                        continue
                raise AssertionError("it never got through")

            results = await asyncio.gather(*(race(number) for number in range(KEYS * THREADS)))
            await engine.close()
            await callers.dispose()
            return results

        results = asyncio.run(main())
        assert place.effects() == sorted(f"k{number}" for number in range(KEYS))
        # One fence for each key; two keys may have the same.
        for number in range(KEYS):
            assert len(set(results[number::KEYS])) == 1


class TestKills:
    def test_killed_process_leaves_neither_record_nor_effect(self, place):
        code = (
            "import sys, sqlalchemy\n"
            "from sameas.connections import open_store\n"
            "from sameas.once.engine import Engine\n"
            "engine = Engine(open_store(sys.argv[1]))\n"
            "connection = sqlalchemy.create_engine(sys.argv[2]).connect()\n"
            "def work(context):\n"
            "    connection.exec_driver_sql(\"INSERT INTO effects VALUES ('a')\")\n"
            "    print('working', flush=True)\n"
            "    sys.stdin.read()\n"
            "engine.run(work, scope='s', key='a', connection=connection)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code, place.store_url, place.url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"working\n"
            os.kill(worker.pid, signal.SIGKILL)
        assert place.engine.run(lambda context: "second", scope="s", key="a", wait_for=20) == "second"
        assert place.effects() == []

    def test_killed_server_leaves_all_or_nothing(self, place, request):
        name = "postgres_server" if "postgresql" in place.url else "mariadb_server"
        server = request.getfixturevalue(name)
        with place.callers.begin() as connection:
            place.engine.run(effect(connection, "kept"), scope="s", key="kept", connection=connection)
        connection = place.callers.connect()
        place.engine.run(effect(connection, "lost"), scope="s", key="lost", connection=connection)
        server.kill_and_restart()
        with pytest.raises(sqlalchemy.exc.DBAPIError):
            connection.exec_driver_sql("SELECT 1")
        connection.invalidate()
        connection.close()
        place.callers.dispose()
        assert place.engine.record(never, scope="s", key="kept").was_replay
        assert place.engine.read("s", "lost") is None
        assert place.effects() == ["kept"]


def test_psycopg_connection_is_joined_without_sqlalchemy(postgres_url):
    with Engine(open_store(postgres_url)) as engine, psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE effects (name text)")
        engine.run(
            lambda context: connection.execute("INSERT INTO effects VALUES ('a')").rowcount,
            scope="s",
            key="a",
            connection=connection,
        )
        connection.rollback()
        assert engine.read("s", "a") is None
        engine.run(lambda context: 1, scope="s", key="a", connection=connection)
        connection.commit()
        assert engine.run(never, scope="s", key="a") == 1


@pytest.mark.parametrize(
    "own",
    [
        {"row_factory": dict_row},
        {"row_factory": namedtuple_row},
        {"row_factory": scalar_row},
        {"cursor_factory": "raw"},
    ],
    ids=["dicts", "named tuples", "scalars", "raw"],
)
def test_psycopgs_own_connection_may_have_rows_and_cursors_of_its_own(postgres_url, own):
    raw = {"cursor_factory": psycopg.RawCursor}, {"cursor_factory": psycopg.AsyncRawCursor}
    threads, tasks = raw if own.get("cursor_factory") == "raw" else (own, own)
    with Engine(open_store(postgres_url)) as engine, psycopg.connect(postgres_url, **threads) as connection:
        for _ in range(2):
            assert engine.run(lambda ctx: "first", scope="s", key="k", connection=connection) == "first"
            connection.commit()

    async def main():
        engine = AsyncEngine(open_async_store(postgres_url))
        async with await psycopg.AsyncConnection.connect(postgres_url, **tasks) as connection:
            assert await engine.run(lambda ctx: "second", scope="s", key="k", connection=connection) == "first"
        await engine.close()

    asyncio.run(main())
