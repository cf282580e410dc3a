"""Four hundred leases at once on real servers at some distance: every one is renewed in time, in few round trips."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pymysql
import pytest

from sameas.connections import open_async_store, open_store
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.observe import Settled
from sameas.once.policy import Policy
from sameas.once.record import Accepted, Acquired, Busy, ClaimRequest, Identity, Lease, Lost, Renewal
from sameas.once.store import Query
from tests.servers.proxy import FaultProxy
from tests.servers.round_trips import RoundTrips

SECOND = 1_000_000
LEASES = 400
LEASE = 3.0
# One way. A renewal of each lease by itself would take longer than the leases last.
DISTANCE = 0.01
KEYS = [str(number) for number in range(LEASES)]


@pytest.fixture(params=["postgres", "mariadb", "redis"])
def kind(request):
    return request.param


@pytest.fixture
def url(kind, request):
    return request.getfixturevalue(f"{kind}_url")


@pytest.fixture
def proxy(kind, request):
    with FaultProxy(port=request.getfixturevalue(f"{kind}_server").port) as opened:
        yield opened


def wish(key, *, attempt="other", lease=LEASE):
    identity = Identity(record_digest("", "s", key), "", "s", key)
    return ClaimRequest(identity, "", attempt, round(lease * SECOND), 60 * SECOND)


def watch_until_renewed_twice(store):
    """Look again and again whether anybody could take one of the records; none may be free at any moment."""
    first = {record.identity.key: record.lease_until for record in store.find(Query(limit=LEASES)).records}
    assert len(first) == LEASES
    deadline = time.monotonic() + 60
    while True:
        claims = store.claim_many([wish(key) for key in KEYS])
        assert [claim for claim in claims if not isinstance(claim, Busy)] == []
        now = {record.identity.key: record.lease_until for record in store.find(Query(limit=LEASES)).records}
        if all(now[key] > first[key] + LEASE * SECOND for key in KEYS):
            return
        assert time.monotonic() < deadline, "the leases were not renewed"
        time.sleep(0.05)


def test_four_hundred_leases_of_threads_are_kept_over_a_slow_link(url, proxy):
    with (
        Engine(open_store(proxy.url_of(url)), policy=Policy(lease=LEASE)) as engine,
        open_store(url) as other,
        ThreadPoolExecutor(8) as threads,
    ):
        held = list(threads.map(lambda key: engine.begin(scope="s", key=key), KEYS))
        proxy.delay(DISTANCE)
        watch_until_renewed_twice(other)
        assert not any(each.context.lost for each in held)
        proxy.heal()
        results = list(threads.map(lambda each: each.finish(1).result, held))
    assert results == [1] * LEASES


def test_four_hundred_leases_of_tasks_are_kept_over_a_slow_link(url, proxy):
    async def main(other):
        async with AsyncEngine(open_async_store(proxy.url_of(url)), policy=Policy(lease=LEASE)) as engine:
            held = [await engine.begin(scope="s", key=key) for key in KEYS]
            proxy.delay(DISTANCE)
            await asyncio.to_thread(watch_until_renewed_twice, other)
            assert not any(each.context.lost for each in held)
            proxy.heal()
            return [(await each.finish(1)).result for each in held]

    with open_store(url) as other:
        assert asyncio.run(main(other)) == [1] * LEASES


def held_by(store, count):
    requests = [wish(str(number), attempt="a1", lease=30) for number in range(count)]
    claims = store.claim_many(requests)
    assert all(isinstance(claim, Acquired) for claim in claims)
    return [
        Renewal(Lease(request.identity, claim.fence, "a1"), 30 * SECOND, 60 * SECOND)
        for request, claim in zip(requests, claims, strict=True)
    ]


class Told:
    def __init__(self):
        self.renewed = []

    def on(self, event):
        if isinstance(event, Settled) and event.operation == "renew":
            self.renewed.append((event.identity, event.answer))


@pytest.mark.parametrize("observers", [[], [Told()]], ids=["alone", "observed"])
def test_a_hundred_leases_are_renewed_in_two_round_trips_at_most(url, proxy, observers):
    with Engine(open_store(proxy.url_of(url)), observers=observers) as engine:
        store = engine.store
        renewals = held_by(store, 100)
        store.renew_many(renewals)
        with RoundTrips(proxy) as trips:
            answers = store.renew_many(renewals)
    assert all(isinstance(answer, Accepted) for answer in answers)
    assert trips.count <= 2
    for observer in observers:
        told = [(each.lease.identity, answer) for each, answer in zip(renewals, answers, strict=True)]
        assert observer.renewed[-100:] == told

    async def main():
        async with AsyncEngine(open_async_store(proxy.url_of(url)), observers=observers) as engine:
            store = engine.store
            await store.renew_many(renewals)
            with RoundTrips(proxy) as trips:
                answers = await store.renew_many(renewals)
            assert all(isinstance(answer, Accepted) for answer in answers)
            return trips.count

    assert asyncio.run(main()) <= 2


def lock(kind, url, digest):
    """Another program's transaction holds one record."""
    if kind == "postgres":
        connection = psycopg.connect(url)
        connection.execute("SELECT 1 FROM sameas_records WHERE digest = %s FOR UPDATE", (digest,))
    else:
        host, _, port = url.partition("@")[2].partition("/")[0].partition(":")
        database = url.rpartition("/")[2].partition("?")[0]
        connection = pymysql.connect(host=host, port=int(port), user="root", database=database)
        connection.begin()
        connection.cursor().execute("SELECT 1 FROM sameas_records WHERE digest = %s FOR UPDATE", (digest,))
    return connection


def test_a_record_that_a_transaction_holds_does_not_keep_the_others_from_being_renewed(kind, url):
    if kind == "redis":
        pytest.skip("Redis has no transactions that hold a record")
    with open_store(url, lock_timeout=0.5) as store:
        renewals = held_by(store, 20)
        other = lock(kind, url, renewals[7].lease.identity.digest)
        try:
            answers = store.renew_many(renewals)
        finally:
            other.rollback()
            other.close()
        again = store.renew_many(renewals)
    assert [type(answer) for number, answer in enumerate(answers) if number != 7] == [Accepted] * 19
    assert not isinstance(answers[7], Accepted | Lost)
    assert [type(answer) for answer in again] == [Accepted] * 20
