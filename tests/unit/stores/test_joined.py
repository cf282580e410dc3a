"""The caller's own connection to a SQLite file: what cannot keep record and effects together is refused clearly."""

import asyncio
import sqlite3

import pytest
import sqlalchemy
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session

from sameas import AsyncEngine, Engine, StoreUnavailable, open_async_store, open_store
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


def test_a_file_that_another_transaction_holds_gives_no_error_of_the_driver(engine, path):
    holder, caller = sqlite3.connect(path), sqlite3.connect(path, timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        engine.run(never, scope="s", key="k", connection=caller)
    holder.rollback()
    assert engine.run(lambda ctx: "done", scope="s", key="k", connection=caller) == "done"
    holder.close()
    caller.close()
