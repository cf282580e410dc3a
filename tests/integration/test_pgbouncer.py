"""PostgreSQL behind a real PgBouncer in transaction mode, Debian's own, with nothing said about it in the URL."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from sameas.connections import open_async_store, open_database, open_store
from sameas.databases import Statements
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.errors import StoreMisconfigured
from sameas.once.record import Accepted, Acquired, Busy, ClaimRequest, Identity, Lease, Renewal, Replay
from sameas.once.store import Query
from tests.servers.fixtures import program_or_skip
from tests.servers.pgbouncer import PgBouncerServer

SECOND = 1_000_000
CALLS = 60


@pytest.fixture(scope="module")
def pgbouncer_by_session(postgres_server) -> Iterator[PgBouncerServer]:
    with program_or_skip():
        server = PgBouncerServer(postgres_server, mode="session", options={"default_pool_size": "20"})
    with server:
        yield server


@pytest.fixture
def url(pgbouncer_server, postgres_url):
    return pgbouncer_server.url_of(postgres_url)


def wish(key, *, attempt="a1"):
    identity = Identity(record_digest("", "s", key), "", "s", key)
    return ClaimRequest(identity, "", attempt, 30 * SECOND, 60 * SECOND)


def test_many_threads_call_through_it(url):
    with Engine(open_store(url)) as engine, ThreadPoolExecutor(12) as threads:
        for _ in range(3):
            done = list(threads.map(lambda key: engine.run(lambda _: key, scope="s", key=str(key)), range(CALLS)))
            assert done == list(range(CALLS))


def test_many_tasks_call_through_it(url):
    async def main():
        async with AsyncEngine(open_async_store(url)) as engine:
            for _ in range(3):
                calls = (engine.run(lambda _, key=key: key, scope="s", key=str(key)) for key in range(CALLS))
                assert await asyncio.gather(*calls) == list(range(CALLS))

    asyncio.run(main())


def test_many_claims_and_renewals_at_once_go_through_it(url):
    with open_store(url) as store, ThreadPoolExecutor(4) as threads:
        for each in range(8):
            requests = [wish(f"{each}-{number}") for number in range(150)]
            claims = [claim for some in threads.map(store.claim_many, _parts(requests)) for claim in some]
            assert {type(claim) for claim in claims} == {Acquired}
            renewals = [
                Renewal(Lease(request.identity, claim.fence, "a1"), 30 * SECOND, 60 * SECOND)
                for request, claim in zip(requests, claims, strict=True)
            ]
            answers = [answer for some in threads.map(store.renew_many, _parts(renewals)) for answer in some]
            assert {type(answer) for answer in answers} == {Accepted}
        assert isinstance(store.claim(wish("0-0", attempt="a2")), Busy)
        assert len(store.find(Query(limit=2_000)).records) == 1_200


def _parts(items):
    return [items[start : start + 40] for start in range(0, len(items), 40)]


def test_caller_that_brings_a_transaction_of_the_pooler_is_served(url):
    with Engine(open_store(url)) as engine, psycopg.connect(url, prepare_threshold=None) as connection:
        for number in range(12):
            assert engine.run(lambda _: "mine", scope="s", key=str(number), connection=connection) == "mine"
            connection.commit()
        assert isinstance(engine.store.claim(wish("3")), Replay)


def test_plain_tables_are_written_through_it(url):
    statements = Statements(
        "pooled",
        {
            "schema_postgres_1": "CREATE TABLE pooled (number integer PRIMARY KEY)",
            "add": "INSERT INTO pooled VALUES (:number)",
            "count": "SELECT count(*) FROM pooled",
        },
    )
    database = open_database(url, statements)

    def add(number):
        with database.transaction() as session:
            session.run("add", number=number)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(CALLS)))
    with database.reading() as session:
        assert session.one("count") == (CALLS,)
    database.close()


def test_statements_that_are_named_all_the_same_are_refused_with_the_remedy(url):
    with (
        open_store(url, prepare_threshold=0) as store,
        ThreadPoolExecutor(8) as threads,
        pytest.raises(StoreMisconfigured, match="prepare_threshold=None"),
    ):
        list(threads.map(lambda key: store.claim(wish(str(key))), range(200)))


def test_listening_through_it_is_refused_with_the_remedy(url, postgres_url):
    with pytest.raises(StoreMisconfigured, match="listen_url"):
        open_store(url, listen_url=url)
    open_store(url, listen_url=postgres_url).close()


def test_listening_through_a_pooler_of_sessions_is_accepted(pgbouncer_by_session, postgres_url):
    url = pgbouncer_by_session.url_of(postgres_url)
    with Engine(open_store(url, listen_url=url)) as engine:
        assert engine.run(lambda _: 1, scope="s", key="k") == 1
