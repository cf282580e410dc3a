"""A store that cannot be right says so, and what to do; no error of a driver ever reaches a user."""

import asyncio
import contextlib
import sqlite3

import psycopg
import pymysql
import pytest

from sameas.connections import open_async_store, open_database, open_store
from sameas.databases import Statements
from sameas.identity.key import record_digest
from sameas.once.errors import StoreMisconfigured, StoreUnavailable
from sameas.once.record import ClaimRequest, Identity
from tests.servers.proxy import FaultProxy

SECOND = 1_000_000
STATEMENTS = Statements(
    "misconfigured",
    {
        "schema_sqlite_1": "CREATE TABLE misconfigured (number integer)",
        "schema_postgres_1": "CREATE TABLE misconfigured (number integer)",
        "add": "INSERT INTO misconfigured VALUES (:number)",
    },
)


def wish(key="k"):
    identity = Identity(record_digest("", "s", key), "", "s", key)
    return ClaimRequest(identity, "", "a1", 30 * SECOND, 60 * SECOND)


def claim_in_a_thread(url, **options):
    with open_store(url, **options) as store:
        store.claim(wish())


def claim_in_a_task(url, **options):
    async def main():
        async with open_async_store(url, **options) as store:
            await store.claim(wish())

    asyncio.run(main())


def use_tables(url):
    database = open_database(url, STATEMENTS)
    try:
        with database.transaction() as session:
            session.run("add", number=1)
    finally:
        database.close()


def misconfigured(url, remedy, **options):
    """Refused for threads and tasks, at open or, where nothing is asked there, at the first claim."""
    for claim in (claim_in_a_thread, claim_in_a_task):
        with pytest.raises(StoreMisconfigured, match=remedy):
            claim(url, **options)
    if url.startswith(("postgresql", "mysql")):
        with pytest.raises(StoreMisconfigured, match=remedy):
            claim_in_a_task(url, create=False, **options)
    if url.startswith(("postgresql", "sqlite")) and not options:
        with pytest.raises(StoreMisconfigured):
            use_tables(url)


def test_missing_database_or_role_of_postgres(postgres_server, postgres_url):
    at = f"{postgres_server.host}:{postgres_server.port}"
    misconfigured(f"postgresql://postgres@{at}/nowhere", "make the role and the database")
    misconfigured(postgres_url.replace("postgres@", "nobody@"), "make the role and the database")
    misconfigured(f"{postgres_url}?nonsense=1", "URL")


def test_missing_database_behind_pgbouncer(pgbouncer_server, postgres_url):
    # Only the first who asks is told; for a while after that PgBouncer keeps everybody waiting.
    with pytest.raises(StoreMisconfigured, match="make the role and the database"):
        claim_in_a_thread(pgbouncer_server.database_url("nowhere"))
    misconfigured(pgbouncer_server.url_of(postgres_url).replace("postgres@", "nobody@"), "make the role")


def test_wrong_password_of_postgres(postgres_server, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
        connection.execute("GRANT ALL ON SCHEMA public TO guarded")
    rules = postgres_server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{before}")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
        misconfigured(postgres_url.replace("postgres@", "guarded:wrong@"), "password")
        claim_in_a_thread(postgres_url.replace("postgres@", "guarded:right@"))
    finally:
        rules.write_text(before)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("DROP OWNED BY guarded")
            connection.execute("DROP ROLE guarded")


def test_tables_of_another_program_in_postgres(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE sameas_records (x integer)")
        connection.execute("CREATE TABLE sameas_parts (x integer)")
    misconfigured(postgres_url, "database or schema of its own")


def test_tables_that_were_dropped_while_a_postgres_store_was_open(postgres_url):
    with open_store(postgres_url) as store:
        store.claim(wish())
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP TABLE sameas_records CASCADE")
        with pytest.raises(StoreMisconfigured, match="create=True"):
            store.claim(wish("other"))


def test_missing_database_user_or_tables_of_mariadb(mariadb_server, mariadb_url):
    misconfigured(mariadb_server.database_url("nowhere"), "make the user and the database")
    misconfigured(mariadb_url.replace("root@", "nobody@"), "make the user and the database")
    misconfigured(mariadb_url.replace("root@", "root:wrong@"), "password")
    misconfigured(mariadb_server.database_url(""), "database")
    with pytest.raises(StoreMisconfigured, match="driver"):
        open_store(mariadb_url.replace("pymysql", "nonsense"))
    name = mariadb_url.rpartition("/")[2].partition("?")[0]
    with (
        pymysql.connect(host=mariadb_server.host, port=mariadb_server.port, user="root", database=name) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE TABLE sameas_records (x integer)")
    misconfigured(mariadb_url, "database or schema of its own")


def test_missing_database_of_redis(redis_server, redis_url):
    at = f"{redis_server.host}:{redis_server.port}"
    misconfigured(f"redis://{at}/99", "number")
    misconfigured(f"redis://{at}/0?nonsense=1", "option")
    misconfigured(f"redis://somebody:wrong@{at}/0", "user name and password")
    misconfigured(f"redis+cluster://{at}/0", "redis://")
    with pytest.raises(ValueError, match="number"):
        open_store(f"redis://{at}/records")


def test_places_where_no_sqlite_file_can_be(tmp_path):
    misconfigured(f"sqlite:///{tmp_path}", "file in a folder")
    misconfigured(f"sqlite:///{tmp_path}/nowhere/a.db", "file in a folder")
    with pytest.raises(ValueError, match="zero byte"):
        open_store(f"sqlite:///{tmp_path}/a%00b.db")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE sameas_records (x)")
        connection.execute("CREATE TABLE sameas_parts (x)")
    connection.close()
    misconfigured(f"sqlite:///{tmp_path}/other.db", "another program's")


@pytest.mark.parametrize("kind", ["postgres", "mariadb", "redis"])
@pytest.mark.parametrize("replies", [1, 2, 3, 4, 5])
def test_connection_cut_at_any_reply_is_a_store_that_cannot_answer(request, kind, replies):
    server, url = request.getfixturevalue(f"{kind}_server"), request.getfixturevalue(f"{kind}_url")
    for claim in (claim_in_a_thread, claim_in_a_task):
        with FaultProxy(port=server.port) as proxy:
            proxy.after(server_messages=replies, action="cut", reach="everything")
            # A cut that comes after the last reply is met by nobody.
            with contextlib.suppress(StoreUnavailable):
                claim(proxy.url_of(url), **({} if kind == "redis" else {"lock_timeout": 0.5}), timeout=1.0)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql+pymysql://u:p@127.0.0.1:1/x?nonsense=1", "nonsense"),
        ("mysql+pymysql://127.0.0.1:notaport/x", "notaport"),
    ],
)
def test_an_option_or_port_that_mariadb_does_not_know_is_named(url, why):
    with pytest.raises(StoreMisconfigured, match=why):
        open_store(url)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("claim", [claim_in_a_thread, claim_in_a_task])
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql+pymysql://u:canary@127.0.0.1:1/x?nonsense=1", "nonsense"),
        ("mysql+pymysql://u:canary@127.0.0.1:1/x?ssl_ca=/nowhere/ca.pem", "No such file"),
        ("mssql+mssqlpython://u:canary@127.0.0.1:1/x?nonsense=1", "nonsense"),
        ("mssql+mssqlpython:///", "server"),
    ],
)
def test_what_a_driver_cannot_use_in_a_url_is_no_error_of_the_driver(url, why, claim, create):
    with pytest.raises(StoreMisconfigured, match=why) as refused:
        claim(url, create=create)
    assert "canary" not in str(refused.value)


def test_options_in_a_url_of_sqlite_are_refused_and_make_no_file(tmp_path):
    with pytest.raises(ValueError, match="has no options"):
        open_store(f"sqlite:///{tmp_path}/records.db?mode=ro")
    assert not [*tmp_path.iterdir()]
