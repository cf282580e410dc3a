"""What a store said was kept is there after its server was killed, whatever the server was told about its disk."""

import asyncio
import sqlite3
from urllib.parse import quote

import psycopg
import pytest
import sqlalchemy

from sameas.connections import open_async_store, open_database, open_store
from sameas.databases import Statements
from sameas.identity.key import record_digest
from sameas.once.engine import Engine
from sameas.once.errors import StoreMisconfigured
from sameas.once.record import Acquired, Busy, ClaimRequest, Identity, Lease, Outcome
from tests.servers.fixtures import program_or_skip
from tests.servers.postgres import PostgresServer

SECOND = 1_000_000
RESULTS = 50


@pytest.fixture(scope="module")
def lazy_postgres():
    """A PostgreSQL that writes what was committed to its disk much later, if it is let."""
    with program_or_skip():
        server = PostgresServer(options={"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"})
    with server:
        yield server


@pytest.fixture
def lazy_url(request, lazy_postgres):
    """A database of that server with synchronous_commit off, said in one of the four places where it can be."""
    where = getattr(request, "param", "database")
    url = lazy_postgres.create_database(f"lazy_{where}")
    with psycopg.connect(url, autocommit=True) as connection:
        said = {
            "server": ["ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"],
            "database": [f"ALTER DATABASE lazy_{where} SET synchronous_commit = off"],
            "role": ["ALTER ROLE postgres SET synchronous_commit = off"],
            "session": [],
        }
        for statement in said[where]:
            connection.execute(statement)
    if where == "session":
        url += "?options=" + quote("-c synchronous_commit=off")
    yield url
    lazy_postgres.start()
    with psycopg.connect(lazy_postgres.url, autocommit=True) as connection:
        for statement in ("ALTER SYSTEM RESET ALL", "ALTER ROLE postgres RESET ALL", "SELECT pg_reload_conf()"):
            connection.execute(statement)
    lazy_postgres.drop_database(f"lazy_{where}")


def wish(key, *, attempt="a1"):
    identity = Identity(record_digest("", "s", key), "", "s", key)
    return ClaimRequest(identity, "", attempt, 30 * SECOND, 60 * SECOND)


def crash(server):
    server.kill()
    server.start()


@pytest.mark.parametrize("lazy_url", ["server", "database", "role", "session"], indirect=True)
def test_results_that_were_accepted_are_there_after_the_server_was_killed(lazy_url, lazy_postgres):
    with psycopg.connect(lazy_url) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)
    with Engine(open_store(lazy_url)) as engine:
        for number in range(RESULTS):
            engine.run(lambda _: "first", scope="s", key=str(number))
        crash(lazy_postgres)
        again = [engine.run(lambda _: "second", scope="s", key=str(number)) for number in range(RESULTS)]
    assert again == ["first"] * RESULTS


def test_a_claim_and_a_renewal_are_there_after_the_server_was_killed(lazy_url, lazy_postgres):
    with open_store(lazy_url) as store:
        claimed, renewed = (store.claim(wish(key)) for key in ("claimed", "renewed"))
        assert isinstance(claimed, Acquired)
        lease = Lease(wish("renewed").identity, renewed.fence, "a1")
        until = store.renew(lease, lease_for=300 * SECOND, retain_for=600 * SECOND)
        crash(lazy_postgres)
        assert isinstance(store.claim(wish("claimed", attempt="a2")), Busy)
        assert store.read(lease.identity).expires_at == until.expires_at


def test_what_was_forgotten_or_given_back_stays_so_after_the_server_was_killed(lazy_url, lazy_postgres):
    with open_store(lazy_url) as store:
        for key in ("forgotten", "released"):
            claim = store.claim(wish(key))
            lease = Lease(wish(key).identity, claim.fence, "a1")
            if key == "forgotten":
                store.complete(lease, outcome=Outcome(b"x", "text/plain"), retain_for=60 * SECOND)
                store.forget(lease.identity)
            else:
                store.release(lease)
        crash(lazy_postgres)
        assert [store.read(wish(key).identity) for key in ("forgotten", "released")] == [None, None]


def test_many_claims_at_once_are_there_after_the_server_was_killed(lazy_url, lazy_postgres):
    with open_store(lazy_url) as store:
        store.claim_many([wish(str(number)) for number in range(20)])
        crash(lazy_postgres)
        claims = store.claim_many([wish(str(number), attempt="a2") for number in range(20)])
    assert {type(claim) for claim in claims} == {Busy}


def test_a_caller_whose_own_transaction_was_committed_is_not_served_twice_after_a_kill(lazy_url, lazy_postgres):
    with Engine(open_store(lazy_url)) as engine:
        with psycopg.connect(lazy_url) as connection:
            engine.run(lambda _: "first", scope="s", key="k", connection=connection)
        crash(lazy_postgres)
        assert engine.run(lambda _: "second", scope="s", key="k") == "first"


def test_rows_of_plain_tables_are_there_after_the_server_was_killed(lazy_url, lazy_postgres):
    statements = Statements(
        "kept",
        {
            "schema_postgres_1": "CREATE TABLE kept (number integer PRIMARY KEY)",
            "add": "INSERT INTO kept VALUES (:number)",
            "count": "SELECT count(*) FROM kept",
        },
    )
    database = open_database(lazy_url, statements)
    with database.transaction() as session:
        session.run("add", number=1)
    crash(lazy_postgres)
    with database.reading() as session:
        assert session.one("count") == (1,)
    database.close()


def test_a_session_keeps_its_own_setting(lazy_postgres):
    url = lazy_postgres.create_database("own_setting")
    with psycopg.connect(url, options="-c synchronous_commit=off") as connection, Engine(open_store(url)) as engine:
        engine.run(lambda _: 1, scope="s", key="k", connection=connection)
        connection.commit()
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)


def refused(url):
    with pytest.raises(StoreMisconfigured, match="strict=False") as refusal:
        open_store(url)

    async def claim():
        async with open_async_store(url, create=False) as store:
            await store.claim(wish("k"))

    with pytest.raises(StoreMisconfigured, match="strict=False"):
        asyncio.run(claim())
    open_store(url, strict=False).close()
    return str(refusal.value)


def test_a_postgres_that_does_not_wait_for_its_disk_is_refused():
    with program_or_skip():
        server = PostgresServer(fsync=False)
    with server:
        assert "fsync" in refused(server.create_database("x"))


@pytest.mark.parametrize("setting", ["0", "2"])
def test_a_mariadb_that_does_not_flush_every_commit_is_refused(mariadb_server, setting):
    url = mariadb_server.create_database(f"lazy_{setting}")
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET GLOBAL innodb_flush_log_at_trx_commit = {setting}")
        assert "innodb_flush_log_at_trx_commit" in refused(url)
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        engine.dispose()
        mariadb_server.drop_database(f"lazy_{setting}")


def test_sqlite_takes_no_setting_that_it_would_pass_over(tmp_path):
    for synchronous in ("full", "normal", "EXTRA", "off"):
        open_store(f"sqlite:///{tmp_path}/{synchronous}.db", synchronous=synchronous).close()
    for synchronous in ("ful", "", "FULL; DROP TABLE sameas_records"):
        with pytest.raises(ValueError, match="synchronous"):
            open_store(f"sqlite:///{tmp_path}/a.db", synchronous=synchronous)


def test_sqlite_keeps_its_own_setting_over_that_of_the_library(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    connection = store.backend.performer._take()
    assert isinstance(connection, sqlite3.Connection)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.backend.performer._give_back(connection)
    store.close()
