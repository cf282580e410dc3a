"""Plain tables: all or nothing, made once whoever comes first, usable after a fork and after a restart."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sameas import Engine, open_store
from sameas.connections import open_database
from sameas.databases import Database, RowRefused, Statements
from sameas.once.errors import StoreError, StoreMisconfigured, StoreUnavailable
from tests.servers.postgres import PostgresServer

STATEMENTS = Statements(
    "notes",
    {
        "schema_sqlite_1": "CREATE TABLE note (id TEXT PRIMARY KEY, said TEXT NOT NULL);\nCREATE INDEX said ON note (said)",
        "schema_postgres_1": "CREATE TABLE note (id TEXT PRIMARY KEY, said TEXT NOT NULL);\nCREATE INDEX said ON note (said)",
        "add": "INSERT INTO note (id, said) VALUES (:id, :said)",
        "all": "SELECT id, said FROM note ORDER BY id",
        "drop": "DELETE FROM note WHERE id = :id",
    },
)
NEXT = Statements(
    "notes",
    {
        **STATEMENTS.named,
        "schema_sqlite_2": "ALTER TABLE note ADD COLUMN by_whom TEXT",
        "schema_postgres_2": "ALTER TABLE note ADD COLUMN by_whom TEXT",
    },
)


def test_tables_of_an_earlier_release_are_found_again(url: str) -> None:
    database = open_database(url, STATEMENTS)
    with database.transaction() as session:
        session.run("add", id="a", said="kept")
    with database._driver.transaction(writes=True, durable=True) as work:
        work.script("ALTER TABLE sameas_parts RENAME TO sameas_schema")
    database.close()
    for statements in (STATEMENTS, NEXT, NEXT):
        database = open_database(url, statements)
        with database.reading() as session:
            assert [tuple(row) for row in session.run("all")] == [("a", "kept")]
        database.close()
    with Engine(open_store(url)) as engine:
        assert engine.run(lambda _: 1, scope="s", key="k") == 1


def test_records_and_tables_share_a_database(url: str) -> None:
    for _ in range(2):
        with Engine(open_store(url)) as engine:
            engine.run(lambda _: 1, scope="s", key="k")
        database = open_database(url, STATEMENTS)
        try:
            with database.reading() as session:
                assert session.run("all") == []
        finally:
            database.close()
    with Engine(open_store(url)) as engine:
        assert engine.record(lambda _: 2, scope="s", key="k").was_replay


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/plain.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url, STATEMENTS)
    yield opened
    opened.close()


def rows(database: Database) -> list[Any]:
    with database.reading() as session:
        return session.run("all")


def test_what_is_committed_is_there_and_the_changes_are_counted(database: Database) -> None:
    with database.transaction() as session:
        session.run("add", id="a", said="one: \u00fc \U0001f600 :id %s $1")
        assert session.changed == 1
        session.run("drop", id="b")
        assert session.changed == 0
        assert session.one("all") == ("a", "one: \u00fc \U0001f600 :id %s $1")
    assert rows(database) == [("a", "one: \u00fc \U0001f600 :id %s $1")]


def test_an_error_undoes_the_whole_transaction(database: Database) -> None:
    with pytest.raises(RuntimeError), database.transaction() as session:
        session.run("add", id="a", said="one")
        raise RuntimeError
    assert rows(database) == []


def test_a_row_that_a_constraint_refuses_is_named_and_undone(database: Database) -> None:
    with database.transaction(durable=False) as session:
        session.run("add", id="a", said="one")
    with pytest.raises(RowRefused, match="note"), database.transaction() as session:
        session.run("add", id="b", said="two")
        session.run("add", id="a", said="again")
    assert rows(database) == [("a", "one")]


def test_reading_cannot_write_beyond_its_transaction_on_postgres(postgres_url: str) -> None:
    database = open_database(postgres_url, STATEMENTS)
    with pytest.raises(StoreError), database.reading() as session:
        session.run("add", id="a", said="one")
    database.close()


def test_many_threads_share_it(database: Database) -> None:
    def add(number: int) -> None:
        with database.transaction(durable=False) as session:
            session.run("add", id=f"{number:02}", said="x")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(database)) == 20


def test_tables_are_made_once_whoever_comes_first(url: str) -> None:
    faults: list[BaseException] = []

    def opened() -> None:
        try:
            open_database(url, NEXT).close()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=opened) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_the_release_before_runs_on_the_tables_of_the_release_after(url: str) -> None:
    open_database(url, STATEMENTS).close()
    open_database(url, NEXT).close()
    before = open_database(url, STATEMENTS)
    with before.transaction() as session:
        session.run("add", id="a", said="one")
    assert rows(before) == [("a", "one")]
    before.close()


def test_a_child_process_opens_connections_of_its_own(database: Database) -> None:
    with database.transaction() as session:
        session.run("add", id="a", said="parent")
    child = os.fork()
    if child == 0:
        try:
            with database.transaction() as session:
                session.run("add", id="b", said="child")
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert [said for _, said in rows(database)] == ["parent", "child"]


def test_a_restarted_server_is_not_noticed_by_the_next_transaction(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    database = open_database(postgres_url, STATEMENTS)
    assert rows(database) == []
    postgres_server.kill()
    with pytest.raises(StoreUnavailable):
        rows(database)
    postgres_server.start()
    assert rows(database) == []
    database.close()


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "plain.db").write_bytes(b"this is not a database at all" * 100)
    with pytest.raises(StoreMisconfigured, match="not a database"):
        open_database(f"sqlite:///{tmp_path}/plain.db", STATEMENTS)


def test_a_closed_database_refuses(url: str) -> None:
    database = open_database(url, STATEMENTS)
    database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        rows(database)


def test_a_schema_with_a_gap_is_refused(tmp_path: Path) -> None:
    gap = Statements("gap", {"schema_sqlite_2": "CREATE TABLE x (y)"})
    with pytest.raises(ValueError, match="must be 1, 2"):
        open_database(f"sqlite:///{tmp_path}/plain.db", gap)


def test_whoever_reads_sees_one_state(url: str) -> None:
    database = open_database(url, STATEMENTS)
    try:
        with database.reading() as reading:
            assert reading.run("all") == []
            with database.transaction() as writing:
                writing.run("add", id="a", said="later")
            assert reading.run("all") == []
        with database.reading() as reading:
            assert len(reading.run("all")) == 1
    finally:
        database.close()
