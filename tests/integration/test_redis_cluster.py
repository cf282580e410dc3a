"""Many leases at once on a real Redis Cluster: each node is told of its own in one go, over few connections."""

import asyncio
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.errors import StoreUnavailable
from sameas.once.policy import Policy
from sameas.once.record import Accepted, Acquired, ClaimRequest, Identity, Lease, Renewal
from sameas.once.store import AsyncStore, Query, Selection, Store
from sameas.stores.redis import open_backend
from tests.servers.program import program_or_skip
from tests.servers.redis_cluster import RedisCluster

SECOND = 1_000_000
LEASES = 400
CONNECTIONS = 3
KEYS = [str(number) for number in range(LEASES)]


@pytest.fixture(scope="module")
def running():
    with program_or_skip():
        cluster = RedisCluster(appendonly="everysec")
    with cluster:
        yield cluster


@pytest.fixture
def cluster(running):
    yield running
    for node in running.nodes:
        with node.client() as client:
            client.flushall()


def wish(key, *, attempt="a1", lease=30.0):
    identity = Identity(record_digest("", "s", key), "", "s", key)
    return ClaimRequest(identity, "", attempt, round(lease * SECOND), 60 * SECOND)


def renewals_of(requests, claims):
    assert all(isinstance(claim, Acquired) for claim in claims)
    return [
        Renewal(Lease(request.identity, claim.fence, request.attempt_id), 30 * SECOND, 60 * SECOND)
        for request, claim in zip(requests, claims, strict=True)
    ]


def node_of(cluster, key):
    """The number of the node that has the record of a key."""
    with cluster.nodes[0].client() as client:
        slot = client.execute_command("CLUSTER KEYSLOT", "sameas:" + wish(key).identity.digest.hex())
    return next(number for number in range(3) if slot < (number + 1) * 16_384 // 3)


def few(cluster):
    return open_backend(cluster.url, max_connections=CONNECTIONS)


class Watch:
    """The most clients that one node has at once, beside those that are there before, and how often it reads."""

    def __init__(self, cluster):
        self._clients = [node.client() for node in cluster.nodes]

    def __enter__(self):
        self._before = [self._stats(client) for client in self._clients]
        self.most, self._looks, self._over = 0, 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()
        self.reads = max(
            self._stats(client)[1] - reads - self._looks
            for client, (_, reads) in zip(self._clients, self._before, strict=True)
        )
        for client in self._clients:
            client.close()

    def _stats(self, client):
        told = client.info()
        return told["connected_clients"], told["total_reads_processed"]

    def _look(self):
        while not self._over.wait(0.005):
            self._looks += 1
            for client, (clients, _) in zip(self._clients, self._before, strict=True):
                self.most = max(self.most, client.info("clients")["connected_clients"] - clients)


def test_many_leases_are_renewed_in_one_go_for_each_node(cluster):
    with Store(few(cluster)) as store:
        requests = [wish(key) for key in KEYS]
        renewals = renewals_of(requests, store.claim_many(requests))
        with Watch(cluster) as watch:
            answers = store.renew_many(renewals)
        assert [type(answer) for answer in answers] == [Accepted] * LEASES
        # One by one a node would read 130 times and more.
        assert watch.reads < 30
        ends = [record.expires_at for record in store.find(Query(limit=LEASES)).records]
        assert sorted(ends) == sorted(answer.expires_at for answer in answers)


def test_many_leases_of_tasks_are_renewed_over_the_connections_that_there_are(cluster):
    async def main():
        async with AsyncStore(few(cluster)) as store:
            requests = [wish(key) for key in KEYS]
            renewals = renewals_of(requests, await store.claim_many(requests))
            return await store.renew_many(renewals)

    with Watch(cluster) as watch:
        answers = asyncio.run(main())
    assert [type(answer) for answer in answers] == [Accepted] * LEASES
    # One each is redis-py's own, to ask which node has what; opening the store asks, too.
    assert watch.most <= CONNECTIONS + 2


def test_more_tasks_than_connections_wait_for_their_turn(cluster):
    async def main():
        async with AsyncEngine(AsyncStore(few(cluster))) as engine:
            return await asyncio.gather(*(engine.run(lambda _: 1, scope="s", key=key) for key in KEYS))

    with Watch(cluster) as watch:
        assert asyncio.run(main()) == [1] * LEASES
    assert watch.most <= CONNECTIONS + 2


def test_more_threads_than_connections_wait_for_their_turn(cluster):
    with Engine(Store(few(cluster))) as engine, ThreadPoolExecutor(24) as threads, Watch(cluster) as watch:
        results = list(threads.map(lambda key: engine.run(lambda _: 1, scope="s", key=key), KEYS))
    assert results == [1] * LEASES
    assert watch.most <= CONNECTIONS + 2


def test_leases_that_a_process_holds_are_kept_by_its_few_connections(cluster):
    async def main():
        async with AsyncEngine(AsyncStore(few(cluster)), policy=Policy(lease=2.0)) as engine:
            held = [await engine.begin(scope="s", key=key) for key in KEYS]
            first = {record.identity.key: record.lease_until for record in await all_of(engine)}
            deadline = time.monotonic() + 30
            while any(record.lease_until < first[record.identity.key] + 2 * SECOND for record in await all_of(engine)):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            assert not any(each.context.lost for each in held)
            return [(await each.finish(1)).attempt for each in held]

    async def all_of(engine):
        return (await engine.find(Query(limit=LEASES))).records

    assert asyncio.run(main()) == [1] * LEASES


def forget_scripts(cluster):
    for node in cluster.nodes:
        with node.client() as client:
            client.script_flush()


def move_a_slot(cluster, key):
    """Another node has the key's slot from now on; no client is told."""
    at = node_of(cluster, key)
    to = (at + 1) % 3
    with cluster.nodes[0].client() as client:
        slot = client.execute_command("CLUSTER KEYSLOT", "sameas:" + wish(key).identity.digest.hex())
    with cluster.nodes[to].client() as client:
        its_id = client.execute_command("CLUSTER MYID")
    for number in (to, at, 3 - to - at):
        with cluster.nodes[number].client() as client:
            client.execute_command("CLUSTER SETSLOT", slot, "NODE", its_id)
    return slot, at


def test_what_a_node_does_not_know_or_have_any_more_is_asked_again(cluster):
    def moved(renewed):
        # No key of it is there yet, so that nothing need be carried over.
        slot, at = move_a_slot(cluster, "moved")
        try:
            forget_scripts(cluster)
            return renewed()
        finally:
            with cluster.nodes[at].client() as client:
                its_id = client.execute_command("CLUSTER MYID")
            for node in cluster.nodes:
                with node.client() as client:
                    client.flushall()
                    client.execute_command("CLUSTER SETSLOT", slot, "NODE", its_id)

    requests = [wish(key) for key in [*KEYS[:50], "moved"]]
    with Store(few(cluster)) as store:
        store.claim_many(requests[:50])
        store.forget_where(Selection(scope="s"))
        claims = moved(lambda: store.claim_many(requests))
        assert [type(claim) for claim in claims] == [Acquired] * 51

    async def main():
        loop = asyncio.get_running_loop()
        async with AsyncStore(few(cluster)) as store:
            await store.claim_many(requests[:50])
            await store.forget_where(Selection(scope="s"))
            again = lambda: asyncio.run_coroutine_threadsafe(store.claim_many(requests), loop).result()  # noqa: E731
            return await asyncio.to_thread(moved, again)

    assert [type(claim) for claim in asyncio.run(main())] == [Acquired] * 51


@pytest.fixture
def silent(cluster):
    """For each of sixty keys whether its node will say nothing."""
    yield [node_of(cluster, key) == 2 for key in KEYS[:60]]
    cluster.nodes[2].resume()


def told_only_by_others(answers, silent):
    kinds = [StoreUnavailable if is_silent else Accepted for is_silent in silent]
    return all(map(isinstance, answers, kinds))


def test_a_silent_node_does_not_keep_the_leases_of_the_others_from_being_renewed(cluster, silent):
    requests = [wish(key) for key in KEYS[:60]]
    with Store(open_backend(cluster.url, timeout=0.3)) as store:
        renewals = renewals_of(requests, store.claim_many(requests))
        cluster.nodes[2].pause()
        assert told_only_by_others(store.renew_many(renewals), silent)
        cluster.nodes[2].resume()
        assert [type(answer) for answer in store.renew_many(renewals)] == [Accepted] * 60


# redis-py lets go of connections unclosed when it looks for a node that is silent.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nor_does_it_those_of_tasks(cluster, silent):
    async def main():
        requests = [wish(key) for key in KEYS[:60]]
        async with AsyncStore(open_backend(cluster.url, timeout=0.3)) as store:
            renewals = renewals_of(requests, await store.claim_many(requests))
            cluster.nodes[2].pause()
            assert told_only_by_others(await store.renew_many(renewals), silent)
            cluster.nodes[2].resume()
            assert [type(answer) for answer in await store.renew_many(renewals)] == [Accepted] * 60

    asyncio.run(main())
    gc.collect()
