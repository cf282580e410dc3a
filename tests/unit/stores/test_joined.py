"""The caller's own connection to a SQLite file: what cannot keep record and effects together is refused clearly."""

import asyncio
import sqlite3
import threading

import pytest
import sqlalchemy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from sameas import AsyncEngine, Engine, InProgress, open_async_store, open_store
from sameas.once.errors import TransactionEnded, TransactionRefused


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "records.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE effects (name TEXT)")
    connection.close()
    return path


@pytest.fixture
def engine(path):
    with Engine(open_store(f"sqlite:///{path}")) as engine:
        yield engine


def effects(path):
    connection = sqlite3.connect(path)
    try:
        return [name for (name,) in connection.execute("SELECT name FROM effects")]
    finally:
        connection.close()


def never(ctx):
    raise AssertionError("the work was run again")


@pytest.mark.parametrize("where", ["other.db", ":memory:"])
def test_a_connection_to_another_file_is_refused_before_the_work(engine, tmp_path, where):
    other = sqlite3.connect(where if where == ":memory:" else tmp_path / where)
    if where != ":memory:":
        # Even where it looks like ours: the records of another store.
        open_store(f"sqlite:///{tmp_path / where}").close()
    with pytest.raises(TransactionRefused, match="The records are in .*records.db"):
        engine.run(never, scope="s", key="k", connection=other)
    other.close()


def test_the_same_file_by_another_name_is_the_same_file(engine, path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    with sqlite3.connect(tmp_path / "link.db") as connection:
        assert engine.run(lambda ctx: "done", scope="s", key="k", connection=connection) == "done"
    connection.close()
    assert engine.run(never, scope="s", key="k") == "done"


def test_what_is_no_connection_is_refused(engine):
    with pytest.raises(TransactionRefused, match="the connection is a object"):
        engine.run(never, scope="s", key="k", connection=object())


@pytest.mark.parametrize("kind", ["sqlite3", "connection", "session"])
def test_work_that_commits_is_told_so_and_what_it_did_is_not_done_again(engine, path, kind):
    if kind == "sqlite3":
        owner = connection = sqlite3.connect(path)
        insert = "INSERT INTO effects VALUES ('once')"
    else:
        database = sqlalchemy.create_engine(f"sqlite:///{path}")
        owner = connection = database.connect() if kind == "connection" else Session(database)
        insert = text("INSERT INTO effects VALUES ('once')")

    def work(ctx):
        connection.execute(insert)
        connection.commit()
        return "done"

    with pytest.raises(TransactionEnded, match="Leave commit and rollback to the caller"):
        engine.run(work, scope="s", key="k", connection=connection)
    owner.close()
    assert effects(path) == ["once"]
    assert engine.run(never, scope="s", key="k") == "done"


def test_work_that_rolls_back_is_told_so_and_may_be_run_again(engine, path):
    connection = sqlite3.connect(path)

    def work(ctx):
        connection.execute("INSERT INTO effects VALUES ('never')")
        connection.rollback()

    with pytest.raises(TransactionEnded):
        engine.run(work, scope="s", key="k", connection=connection)
    connection.close()
    assert effects(path) == []
    assert engine.run(lambda ctx: "fresh", scope="s", key="k") == "fresh"


def test_tasks_are_told_so_too(path):
    async def main():
        engine = AsyncEngine(open_async_store(f"sqlite:///{path}"))
        database = create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with database.connect() as connection:

            async def work(ctx):
                await connection.execute(text("INSERT INTO effects VALUES ('once')"))
                await connection.commit()
                return "done"

            with pytest.raises(TransactionEnded):
                await engine.run(work, scope="s", key="k", connection=connection)
        assert await engine.run(never, scope="s", key="k") == "done"
        other = create_async_engine("sqlite+aiosqlite:///:memory:")
        async with other.connect() as connection:
            with pytest.raises(TransactionRefused):
                await engine.run(never, scope="s", key="other", connection=connection)
        await other.dispose()
        await database.dispose()
        await engine.close()

    asyncio.run(main())
    assert effects(path) == ["once"]


@pytest.mark.parametrize("options", [{"on_busy": "refuse"}, {"wait_for": 0.1}])
def test_who_does_not_wait_long_is_refused_while_another_transaction_holds_the_file(engine, path, options):
    # The caller's own connection would wait for a minute, and then call it an error of the database.
    holder, caller = sqlite3.connect(path), sqlite3.connect(path, timeout=60)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(InProgress):
        engine.run(never, scope="s", key="k", connection=caller, **options)
    assert caller.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    holder.rollback()
    assert engine.run(lambda ctx: "done", scope="s", key="k", connection=caller, **options) == "done"
    assert caller.execute("PRAGMA busy_timeout").fetchone() == (60_000,)
    for connection in (holder, caller):
        connection.close()


def test_a_task_that_does_not_wait_is_refused_while_another_transaction_holds_the_file(path):
    open_store(f"sqlite:///{path}").close()
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")

    async def main():
        engine = AsyncEngine(open_async_store(f"sqlite:///{path}"))
        database = create_async_engine(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 60})
        async with database.connect() as connection:
            with pytest.raises(InProgress):
                await engine.run(never, scope="s", key="k", connection=connection, on_busy="refuse")
            holder.rollback()
            assert await engine.run(lambda ctx: "done", scope="s", key="k", connection=connection) == "done"
        await database.dispose()
        await engine.close()

    asyncio.run(main())
    holder.close()


def test_who_waits_does_so_beyond_the_bound_of_the_callers_connection(engine, path):
    holder = sqlite3.connect(path, check_same_thread=False)
    caller = sqlite3.connect(path, timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    letting_go = threading.Timer(0.1, holder.rollback)
    letting_go.start()
    assert engine.run(lambda ctx: "done", scope="s", key="k", connection=caller) == "done"
    letting_go.join()
    for connection in (holder, caller):
        connection.close()


def test_rows_and_texts_that_the_caller_has_made_into_something_else_are_read_as_they_are(engine, path):
    connection = sqlite3.connect(path)
    connection.row_factory = lambda cursor, row: {"row": row}
    connection.text_factory = bytes
    assert engine.run(lambda ctx: "done", scope="s", key="k", connection=connection) == "done"
    connection.commit()
    assert engine.run(never, scope="s", key="k", connection=connection) == "done"
    assert connection.execute("SELECT 'text'").fetchone() == {"row": (b"text",)}
    connection.close()


def test_a_cursor_is_refused_as_no_connection(engine, path):
    connection = sqlite3.connect(path)
    with pytest.raises(TransactionRefused, match="is a Cursor"):
        engine.run(never, scope="s", key="k", connection=connection.cursor())
    connection.close()
