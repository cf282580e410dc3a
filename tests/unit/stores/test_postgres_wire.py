"""Statements over psycopg's own wrapper of libpq: values and rows of any size, names that the server remembers, errors."""

import asyncio

import psycopg
import pytest

from sameas.stores import postgres_connection as postgres_wire
from sameas.stores.postgres_connection import AnswerTimedOut, AsyncPostgresConnection, PostgresConnection

LARGE = b"x" * 20_000_000


@pytest.fixture
def connection(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True, prepare_threshold=2) as connection:
        yield connection


@pytest.fixture
def wire(connection):
    return PostgresConnection(connection, answer_within=30)


def names_of(connection):
    found = connection.execute("SELECT name FROM pg_prepared_statements WHERE name LIKE 'sameas%'", prepare=False)
    return [name for (name,) in found.fetchall()]


def test_values_and_rows_come_back_as_they_were(wire):
    sql = "SELECT $1::bytea, $2::text, $3::bigint, $4::text, $5::bigint[]"
    for _ in range(4):
        assert wire.ask(sql, [b"\0\xff", "ä\n", -(2**62), None, [1, 2]]) == [(b"\0\xff", "ä\n", -(2**62), None, [1, 2])]


def test_statement_without_rows_answers_the_number_it_changed(wire):
    assert wire.ask("CREATE TEMPORARY TABLE t (n bigint)", []) == [(None,)]
    assert wire.ask("INSERT INTO t SELECT generate_series(1, $1::bigint)", [3]) == [(3,)]
    assert wire.ask("UPDATE t SET n = n WHERE n > $1::bigint", [9]) == [(0,)]
    assert wire.ask("SELECT n FROM t WHERE n > $1::bigint", [9]) == []


def test_value_larger_than_any_buffer_is_sent_while_the_server_is_read(wire):
    assert wire.ask("SELECT length($1::bytea), $1::bytea", [LARGE]) == [(len(LARGE), LARGE)]


def test_statement_that_is_asked_often_gets_a_name(wire, connection):
    for _ in range(2):
        wire.ask("SELECT $1::bigint", [1])
    assert names_of(connection) == []
    for _ in range(3):
        wire.ask("SELECT $1::bigint", [1])
    assert len(names_of(connection)) == 1


def test_without_a_threshold_nothing_is_remembered_by_the_server(wire, connection):
    connection.prepare_threshold = None
    for _ in range(9):
        wire.ask("SELECT $1::bigint", [1])
    assert names_of(connection) == []


def test_names_and_plans_are_bounded(wire, connection, monkeypatch):
    monkeypatch.setattr(postgres_wire, "_REMEMBERED", 4)
    for number in range(12):
        for _ in range(4):
            assert wire.ask(f"SELECT $1::bigint + {number}", [1]) == [(number + 1,)]
    assert len(names_of(connection)) == 4
    assert len(wire._dialogue._plans) <= 8


def test_refused_statement_is_an_error_and_the_connection_goes_on(wire):
    for _ in range(4):
        with pytest.raises(psycopg.errors.DivisionByZero):
            wire.ask("SELECT 1 / $1::bigint", [0])
        assert wire.ask("SELECT 1 / $1::bigint", [1]) == [(1,)]


def test_statement_that_cannot_be_prepared_is_an_error_each_time(wire):
    for _ in range(5):
        with pytest.raises(psycopg.errors.UndefinedTable):
            wire.ask("SELECT * FROM nowhere WHERE n = $1::bigint", [1])
    assert wire.ask("SELECT 1::bigint", []) == [(1,)]


def test_error_of_the_commit_is_not_taken_for_success(wire):
    wire.ask("CREATE TEMPORARY TABLE late (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)", [])
    with pytest.raises(psycopg.errors.UniqueViolation):
        wire.ask("INSERT INTO late VALUES ($1::bigint), ($1::bigint) RETURNING n", [1])
    assert wire.ask("SELECT n FROM late", []) == []


def test_server_that_does_not_answer_is_not_waited_for_beyond_the_time(connection):
    with pytest.raises(AnswerTimedOut):
        PostgresConnection(connection, answer_within=0.05).ask("SELECT pg_sleep(30)", [])
    connection.pgconn.finish()


def test_tasks_are_served_alike(postgres_url):
    async def main():
        async with await psycopg.AsyncConnection.connect(
            postgres_url, autocommit=True, prepare_threshold=2
        ) as connection:
            wire = AsyncPostgresConnection(connection, answer_within=30)
            for _ in range(4):
                assert await wire.ask("SELECT $1::bigint, $2::text", [1, None]) == [(1, None)]
            assert await wire.ask("SELECT length($1::bytea), $1::bytea", [LARGE]) == [(len(LARGE), LARGE)]
            with pytest.raises(psycopg.errors.DivisionByZero):
                await wire.ask("SELECT 1 / $1::bigint", [0])
            with pytest.raises(AnswerTimedOut):
                await AsyncPostgresConnection(connection, answer_within=0.05).ask("SELECT pg_sleep(30)", [])
            connection.pgconn.finish()

    asyncio.run(main())


def test_task_that_is_cancelled_leaves_the_loop_free_of_its_socket(postgres_url):
    async def main():
        connection = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)
        asked = asyncio.create_task(
            AsyncPostgresConnection(connection, answer_within=30).ask("SELECT pg_sleep(30)", [])
        )
        await asyncio.sleep(0.05)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert not asyncio.get_running_loop().remove_reader(connection.pgconn.socket)
        connection.pgconn.finish()

    asyncio.run(main())
