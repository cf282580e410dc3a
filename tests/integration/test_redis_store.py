"""The Redis store on real servers that restart, lie, fill up and fall silent."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random

import pytest

from sameas.identity.key import record_digest
from sameas.once import protocol
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.errors import RecordDamaged, StoreClosed, StoreMisconfigured, StoreUnavailable
from sameas.once.policy import Policy
from sameas.once.record import (
    About,
    Accepted,
    Acquired,
    Busy,
    ClaimRequest,
    Identity,
    Lease,
    Lost,
    Outcome,
    Replay,
)
from sameas.once.store import AsyncStore, Query, Selection, Store
from sameas.stores import redis_waker
from sameas.stores.redis import health, open_backend
from sameas.stores.redis_health import Level
from sameas.stores.redis_record import VERSION
from tests.servers.program import program_or_skip
from tests.servers.proxy import FaultProxy
from tests.servers.redis import RedisServer
from tests.servers.redis_cluster import RedisCluster
from tests.servers.round_trips import RedisRequests

SECOND = 1_000_000
OUTCOME = Outcome(b"the result", "text/plain", {"status": 201})


def identity(key="key"):
    return Identity(record_digest("tenant", "scope", key), "tenant", "scope", key)


def request(key="key", *, attempt="a1", lease=30.0, retention=60.0, about=None, fingerprint="f"):
    return ClaimRequest(
        identity(key),
        fingerprint,
        attempt,
        round(lease * SECOND),
        round(retention * SECOND),
        about or About(),
    )


def finish(store, key="key", outcome=OUTCOME, **words):
    wish = request(key, **words)
    claim = store.claim(wish)
    assert isinstance(claim, Acquired)
    lease = Lease(wish.identity, claim.fence, wish.attempt_id)
    assert isinstance(store.complete(lease, outcome=outcome, retain_for=60 * SECOND), Accepted)
    return lease


@pytest.fixture
def store(redis_url):
    with Store(open_backend(redis_url)) as opened:
        yield opened


@pytest.fixture
def proxy(redis_server):
    with FaultProxy(port=redis_server.port) as opened:
        yield opened


def name_of(key="key"):
    return b"sameas:" + identity(key).digest.hex().encode()


class TestRoundTrips:
    def test_fresh_call_takes_two_and_a_replay_one(self, redis_url):
        with Engine(Store(open_backend(redis_url))) as engine:
            engine.run(lambda _: 1, scope="s", key="warm")
            with RedisRequests(redis_url) as fresh:
                engine.run(lambda _: 1, scope="s", key="k")
            with RedisRequests(redis_url) as replay:
                engine.run(lambda _: 2, scope="s", key="k")
        assert fresh.names == {"EVALSHA": 2}
        assert replay.names == {"EVALSHA": 1}

    @pytest.mark.anyio
    async def test_async_fresh_call_takes_two_and_a_replay_one(self, redis_url):
        async with AsyncEngine(AsyncStore(open_backend(redis_url))) as engine:
            await engine.run(lambda _: 1, scope="s", key="warm")
            with RedisRequests(redis_url) as fresh:
                await engine.run(lambda _: 1, scope="s", key="k")
            with RedisRequests(redis_url) as replay:
                await engine.run(lambda _: 2, scope="s", key="k")
        assert fresh.names == {"EVALSHA": 2}
        assert replay.names == {"EVALSHA": 1}

    def test_scripts_that_the_server_forgot_are_sent_again(self, store, redis_server):
        finish(store)
        with redis_server.client() as client:
            client.script_flush()
        assert isinstance(store.claim(request(attempt="a2")), Replay)
        with redis_server.client() as client:
            client.script_flush()
        claims = store.claim_many([request(attempt="a3"), request("other", attempt="a4")])
        assert [type(claim) for claim in claims] == [Replay, Acquired]


class TestLostReplies:
    def test_claim_whose_reply_was_lost_is_still_ours(self, redis_url, proxy):
        with Store(open_backend(proxy.url_of(redis_url))) as store:
            finish(store, "warm")
            proxy.drop_reply()
            claim = store.claim(request())
            assert isinstance(claim, Acquired)
            assert claim.attempt == 1

    def test_complete_whose_reply_was_lost_is_accepted(self, redis_url, proxy):
        with Store(open_backend(proxy.url_of(redis_url))) as store:
            claim = store.claim(request())
            proxy.drop_reply()
            answer = store.complete(Lease(identity(), claim.fence, "a1"), outcome=OUTCOME, retain_for=60 * SECOND)
            assert isinstance(answer, Accepted)
            assert isinstance(store.claim(request(attempt="a2")), Replay)

    @pytest.mark.anyio
    async def test_async_claim_whose_reply_was_lost_is_still_ours(self, redis_url, proxy):
        async with AsyncStore(open_backend(proxy.url_of(redis_url))) as store:
            await store.claim(request("warm"))
            proxy.drop_reply()
            claim = await store.claim(request())
            assert isinstance(claim, Acquired)
            assert claim.attempt == 1

    @pytest.mark.parametrize("action", ["cut", "reset"])
    @pytest.mark.parametrize("fault", ["drop_request", "drop_reply"])
    def test_work_runs_once_whichever_message_is_lost(self, redis_url, proxy, fault, action):
        runs = []
        with Engine(Store(open_backend(proxy.url_of(redis_url)))) as engine:
            engine.run(lambda _: 0, scope="s", key="warm")
            for message in (1, 2):
                getattr(proxy, fault)(message, action=action)
                result = engine.run(lambda _: runs.append(message) or message, scope="s", key=f"k{message}")
                assert result == message
                assert not proxy.armed
        assert runs == [1, 2]

    def test_silent_server_is_unavailable_in_bounded_time(self, redis_url, proxy):
        with Store(open_backend(proxy.url_of(redis_url), timeout=0.2)) as store:
            finish(store)
            proxy.half_open()
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                store.claim(request("other"))
            assert time.monotonic() - began < 1.0
            proxy.heal()
            assert isinstance(store.claim(request(attempt="a2")), Replay)

    @pytest.mark.anyio
    async def test_silent_server_leaves_the_event_loop_free(self, redis_url, proxy):
        async with AsyncStore(open_backend(proxy.url_of(redis_url), timeout=0.7)) as store:
            await store.claim(request("warm"))
            proxy.half_open()
            asking = asyncio.ensure_future(store.claim(request()))
            for _ in range(20):
                await asyncio.sleep(0.005)
            # A loop that was blocked would come here when the waiting is over.
            assert not asking.done()
            with pytest.raises(StoreUnavailable):
                await asking
            proxy.heal()
            assert isinstance(await store.claim(request()), Acquired)

    @pytest.mark.anyio
    async def test_cancelled_call_does_not_leave_its_reply_to_the_next(self, redis_url, proxy):
        async with AsyncStore(open_backend(proxy.url_of(redis_url))) as store:
            await store.claim(request("warm"))
            proxy.delay(0.1)
            asking = asyncio.ensure_future(store.claim(request("cancelled")))
            await asyncio.sleep(0.05)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            proxy.heal()
            assert await store.read(identity("nobody")) is None


class TestServerFaults:
    def test_killed_server_keeps_every_acknowledged_result(self, redis_server, redis_url):
        with Store(open_backend(redis_url)) as store:
            for number in range(50):
                finish(store, f"key{number}", Outcome(b"%d" % number, "text/plain"))
            restart(redis_server)
            for number in range(50):
                claim = store.claim(request(f"key{number}", attempt="a2"))
                assert isinstance(claim, Replay)
                assert claim.record.outcome.data == b"%d" % number

    def test_server_that_is_down_is_unavailable_and_then_back(self, redis_server, redis_url):
        with Store(open_backend(redis_url, timeout=0.5)) as store:
            finish(store)
            redis_server.kill()
            with pytest.raises(StoreUnavailable):
                store.claim(request("other"))
            restart(redis_server)
            assert isinstance(store.claim(request(attempt="a2")), Replay)

    def test_server_that_is_down_at_the_start_is_checked_when_it_comes(self):
        with RedisServer() as server:
            server.kill()
            with Store(open_backend(server.url, timeout=0.5)) as store:
                with pytest.raises(StoreUnavailable):
                    store.claim(request())
                server.start()
                with pytest.raises(StoreMisconfigured, match="keeps nothing on disk"):
                    store.claim(request())

    def test_full_server_refuses_new_work_and_still_replays(self):
        with RedisServer() as server, Store(open_backend(server.url, strict=False)) as store:
            finish(store)
            with server.client() as client:
                client.config_set("maxmemory", 1)
            with pytest.raises(StoreUnavailable, match="maxmemory"):
                store.claim(request("new"))
            assert isinstance(store.claim(request(attempt="a2")), Replay)

    def test_replica_that_is_no_master_is_unavailable(self, redis_server, redis_url):
        with replica_of(redis_server) as replica:
            with Store(open_backend(replica.url, strict=False)) as store, pytest.raises(StoreUnavailable):
                store.claim(request())

    def test_all_connections_in_use_is_answered_in_bounded_time(self, redis_url, proxy):
        with Store(open_backend(proxy.url_of(redis_url), max_connections=1, timeout=0.3)) as store:
            finish(store)
            proxy.delay(0.25)
            with ThreadPoolExecutor(4) as threads:
                asked = [threads.submit(store.claim, request(f"k{number}")) for number in range(4)]
            failures = [future.exception() for future in asked if future.exception()]
            proxy.heal()
            assert failures
            assert all(isinstance(failure, StoreUnavailable) for failure in failures)
            assert isinstance(store.claim(request(attempt="a2")), Replay)

    @pytest.mark.anyio
    async def test_tasks_share_few_connections_and_none_waits_for_ever(self, redis_url, proxy):
        async with AsyncStore(open_backend(proxy.url_of(redis_url), max_connections=2, timeout=1)) as store:
            claims = await asyncio.gather(*(store.claim(request(f"k{number}")) for number in range(100)))
            assert all(isinstance(claim, Acquired) for claim in claims)
            proxy.half_open()
            began = time.monotonic()
            asked = (store.claim(request(f"new{number}")) for number in range(6))
            failures = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(failure, StoreUnavailable) for failure in failures)
            assert time.monotonic() - began < 5
            proxy.heal()
            assert isinstance(await store.claim(request()), Acquired)

    def test_store_speaks_tls(self):
        with program_or_skip():
            server = RedisServer(transport="tls", appendonly="always")
        with server:
            with Store(open_backend(server.url)) as store:
                finish(store, outcome=Outcome(b"x" * 300_000, "text/plain"))

            async def replay():
                async with AsyncStore(open_backend(server.url)) as store:
                    return await store.claim(request(attempt="a2"))

            claim = asyncio.run(replay())
            assert isinstance(claim, Replay)
            assert claim.record.outcome.data == b"x" * 300_000


class TestSettings:
    @pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
    def test_strict_refuses_a_server_that_evicts(self, policy):
        with RedisServer(appendonly="always", options={"maxmemory-policy": policy}) as server:
            with pytest.raises(StoreMisconfigured, match=f"{policy}.*set maxmemory-policy to noeviction"):
                open_backend(server.url)
            with Store(open_backend(server.url, strict=False)) as store:
                finish(store)

    def test_strict_refuses_a_server_that_keeps_nothing_on_disk(self):
        with RedisServer() as server:
            with pytest.raises(StoreMisconfigured, match="set appendonly to yes"):
                open_backend(server.url)
            assert [finding.level for finding in health(server.url)] == [Level.FINE, Level.REFUSED]

    def test_server_that_forbids_config_is_judged_by_what_it_tells(self, caplog):
        with RedisServer(appendonly="always") as server:
            url = restricted(server)
            assert [finding.level for finding in health(url)] == [Level.FINE, Level.FINE]
            open_backend(url).close()
        with RedisServer() as server:
            url = restricted(server)
            assert [finding.level for finding in health(url)] == [Level.FINE, Level.UNKNOWN]
            with caplog.at_level(logging.WARNING, "sameas.redis"), Store(open_backend(url)) as store:
                finish(store)
            assert "make sure that it keeps its data" in caplog.text

    def test_snapshots_and_lazy_syncing_are_warned_of(self):
        with RedisServer() as server:
            with server.client() as client:
                client.config_set("save", "3600 1")
            assert health(server.url)[1].level is Level.WARNING
        with RedisServer(appendonly="everysec") as server:
            assert health(server.url)[1].level is Level.WARNING

    def test_wrong_password_says_what_to_check(self):
        with RedisServer() as server:
            url = restricted(server).replace(":secret@", ":wrong@")
            with pytest.raises(StoreMisconfigured, match="password"):
                open_backend(url)

    def test_user_who_may_not_publish_still_has_a_store(self):
        with RedisServer(appendonly="always") as server:
            with Store(open_backend(restricted(server, "resetchannels"))) as store:
                finish(store)
                assert isinstance(store.claim(request(attempt="a2")), Replay)
                assert isinstance(store.forget(identity()), Accepted)

    def test_result_counts_only_when_replicas_have_it(self, redis_server, redis_url):
        with Store(open_backend(redis_url, wait=1, timeout=1)) as store:
            claim = store.claim(request())
            lease = Lease(identity(), claim.fence, "a1")
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                store.complete(lease, outcome=OUTCOME, retain_for=60 * SECOND)
            with replica_of(redis_server) as replica:
                deadline = time.monotonic() + 20
                while True:
                    try:
                        answer = store.complete(lease, outcome=OUTCOME, retain_for=60 * SECOND)
                        break
                    except StoreUnavailable:
                        assert time.monotonic() < deadline
                assert isinstance(answer, Accepted)
                with replica.client() as client:
                    assert client.get(name_of()) is not None

    @pytest.mark.anyio
    async def test_async_result_counts_only_when_replicas_have_it(self, redis_url):
        async with AsyncStore(open_backend(redis_url, wait=1, timeout=1)) as store:
            claim = await store.claim(request())
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                await store.complete(Lease(identity(), claim.fence, "a1"), outcome=OUTCOME, retain_for=SECOND)
            assert await store.complete(Lease(identity(), 1, "a1"), outcome=OUTCOME, retain_for=SECOND) == Lost()


class TestStoredStrings:
    def test_record_expires_natively_a_little_after_its_time(self, store, redis_server):
        finish(store)
        with redis_server.client() as client:
            assert 60_000 < client.pttl(name_of()) <= 61_000

    def test_record_of_an_unknown_version_is_damaged_and_not_a_miss(self, store, redis_server):
        lease = finish(store)
        with redis_server.client() as client:
            client.setrange(name_of(), 0, bytes([VERSION + 1]))
        for ask in (
            lambda: store.claim(request(attempt="a2")),
            lambda: store.read(identity()),
            lambda: store.complete(lease, outcome=OUTCOME, retain_for=SECOND),
            lambda: store.renew(lease, lease_for=SECOND, retain_for=SECOND),
            lambda: store.release(lease),
        ):
            with pytest.raises(RecordDamaged):
                ask()
        assert store.find(Query()).records == []
        assert isinstance(store.forget(identity()), Accepted)
        assert isinstance(store.claim(request(attempt="a2")), Acquired)

    @pytest.mark.parametrize("value", [b"", b"x", bytes([VERSION])])
    def test_a_string_that_is_no_record_is_damaged_and_can_be_forgotten(self, store, redis_server, value):
        with redis_server.client() as client:
            client.set(name_of(), value)
        with pytest.raises(RecordDamaged):
            store.claim(request())
        assert store.find(Query()).records == []
        assert isinstance(store.forget(identity()), Accepted)

    def test_key_of_another_type_is_damaged_and_can_be_forgotten(self, store, redis_server):
        with redis_server.client() as client:
            client.rpush(name_of(), "somebody else's")
        with pytest.raises(RecordDamaged):
            store.claim(request())
        assert store.find(Query()).records == []
        assert isinstance(store.forget(identity()), Accepted)

    def test_every_flipped_bit_is_an_error(self, redis_server, redis_url):
        with Engine(Store(open_backend(redis_url))) as engine, redis_server.client() as client:
            engine.run(lambda _: "the result", scope="scope", key="key", payload={"n": 1})
            (name,) = client.keys()
            value, ttl = client.get(name), client.pttl(name)
            for place in range(len(value)):
                flipped = bytearray(value)
                flipped[place] ^= 1 << place % 8
                client.set(name, bytes(flipped), px=ttl)
                with pytest.raises(RecordDamaged):
                    engine.run(
                        lambda _: pytest.fail("a damaged record was a miss"),
                        scope="scope",
                        key="key",
                        payload={"n": 1},
                    )

    def test_long_descriptions_are_listed_whole(self, store):
        about = About(tags=tuple(f"tag{number}" for number in range(500)))
        finish(store, about=about)
        (record,) = store.find(Query(tag="tag499")).records
        assert record.about == about
        assert record.outcome == Outcome(b"", "text/plain", {"status": 201})
        assert store.forget_where(Selection(tag="tag499")) == 1

    def test_many_records_are_listed_and_forgotten(self, store):
        store.claim_many([request(f"key{number:04}", attempt=f"a{number}") for number in range(1_200)])
        page = store.find(Query(limit=1_000))
        assert len(page.records) == 1_000
        assert len(store.find(Query(limit=1_000, after=page.next)).records) == 200
        assert store.forget_where(Selection(scope="scope")) == 1_200

    def test_stores_with_other_prefixes_do_not_meet(self, redis_url):
        with (
            Store(open_backend(redis_url)) as one,
            Store(open_backend(redis_url, prefix="an[o]ther:")) as other,
        ):
            finish(one)
            assert isinstance(other.claim(request(attempt="a2")), Acquired)
            assert len(other.find(Query()).records) == 1
            assert other.forget_where(Selection(scope="scope")) == 1
            assert one.read(identity()) is not None


class TestProtocol:
    @pytest.mark.parametrize("seed", range(20))
    def test_random_histories_are_answered_as_the_protocol_says(self, redis_url, seed):
        """Steps are seconds apart, so that the microseconds between model and server make no difference."""
        random = Random(seed)
        backend = open_backend(redis_url)
        record, now, leases = None, 1_800_000_000 * SECOND, []
        with Store(backend) as store:
            for step in range(60):
                passed = random.choice([0, 1, 4, 12]) * SECOND
                now += passed + 1_000
                backend.skew_micros += passed
                wish = request(
                    attempt=f"a{random.randrange(4)}" if random.random() < 0.7 else f"new{step}",
                    fingerprint=random.choice("ffg"),
                    lease=random.choice([2.5, 7.5]),
                    retention=random.choice([10.5, 20.5]),
                )
                operation = random.choice(["claim", "claim", "renew", "complete", "fail", "release", "forget"])
                if operation == "claim":
                    record, expected = protocol.claim(record, wish, now)
                    got = store.claim(wish)
                    if isinstance(expected, Acquired):
                        leases.append((expected.fence, got.fence, wish.attempt_id))
                elif operation == "forget":
                    record, expected = protocol.forget(record, now=now)
                    got = store.forget(identity())
                elif leases:
                    fence, real_fence, attempt = random.choice(leases[-3:])
                    model, real = Lease(identity(), fence, attempt), Lease(identity(), real_fence, attempt)
                    words = {"retain_for": round(10.5 * SECOND)}
                    if operation == "renew":
                        words["lease_for"] = round(2.5 * SECOND)
                    elif operation == "release":
                        words = {}
                    else:
                        words["outcome"] = OUTCOME
                    record, expected = getattr(protocol, operation)(record, model, now=now, **words)
                    got = getattr(store, operation)(real, **words)
                else:
                    continue
                assert type(got) is type(expected), (step, operation, expected, got)
                if isinstance(expected, Acquired | Busy):
                    assert got.attempt == expected.attempt
                if isinstance(expected, Accepted):
                    assert abs((got.expires_at - got.at) - (expected.expires_at - expected.at)) < SECOND
                if isinstance(expected, Busy):
                    assert abs(got.time_left - expected.time_left) < SECOND
                if isinstance(expected, Replay):
                    assert got.record.state is expected.record.state
                    assert got.record.outcome == expected.record.outcome


class TestWakeUp:
    """The poll beneath is put out of reach, so that only a message can wake a waiter in time."""

    @pytest.fixture
    def backends(self, redis_url):
        pair = open_backend(redis_url), open_backend(redis_url)
        for backend in pair:
            backend.poll_at_most = 1_000.0
        yield pair
        for backend in pair:
            backend.close()

    def test_waiter_in_another_process_is_woken(self, backends, monkeypatch):
        monkeypatch.setattr("sameas.once.call._FIRST_POLL", 1_000.0)
        first, second = (Engine(Store(backend), policy=Policy(wait_for=30)) for backend in backends)
        working, finish_it = threading.Event(), threading.Event()

        def work(_):
            working.set()
            finish_it.wait(10)
            return "done"

        with ThreadPoolExecutor(2) as threads:
            leader = threads.submit(first.run, work, scope="s", key="k")
            working.wait(10)
            waiter = threads.submit(second.run, lambda _: "ran twice", scope="s", key="k")
            wait_until(lambda: backends[1].waker.listening)
            time.sleep(0.05)
            finish_it.set()
            assert leader.result(5) == "done"
            assert waiter.result(5) == "done"

    def test_thread_survives_a_server_that_restarts_while_others_subscribe(self, redis_server, backends):
        waker = backends[0].waker
        woken = threading.Event()
        ends = [waker.listen(identity("first").digest, woken.set)]
        wait_until(lambda: woken.is_set())
        thread = waker._thread
        for turn in range(3):
            redis_server.kill()
            # Each of them finds the connection broken before the thread does, or after.
            ends += [waker.listen(identity(f"{turn} {number}").digest, lambda: None) for number in range(50)]
            redis_server.start()
        woken.clear()
        ends.append(waker.listen(identity("last").digest, woken.set))
        wait_until(lambda: woken.is_set())
        assert waker._thread is thread
        assert thread.is_alive()
        for end in ends:
            end()

    def test_thread_survives_a_connection_that_is_closed_under_its_hands(self, backends):
        waker = backends[0].waker
        woken = threading.Event()
        end = waker.listen(identity("first").digest, woken.set)
        wait_until(lambda: woken.is_set())
        thread = waker._thread
        for _ in range(3):
            woken.clear()
            wait_until(lambda: waker._connection is not None)
            # What redis-py does to a connection on which a message could not be sent.
            waker._connection.disconnect()
            wait_until(lambda: woken.is_set())
        assert waker._thread is thread
        assert thread.is_alive()
        end()

    def test_listener_that_raises_does_not_keep_the_others_from_hearing(self, backends):
        woken = threading.Event()

        def fail():
            raise RuntimeError("this listener is broken")

        waker = backends[0].waker
        ends = [waker.listen(identity().digest, wake) for wake in (fail, woken.set)]
        wait_until(lambda: woken.is_set())
        woken.clear()
        store = Store(backends[1])
        store.release(Lease(identity(), store.claim(request()).fence, "a1"))
        wait_until(lambda: woken.is_set())
        assert waker._thread.is_alive()
        for end in ends:
            end()

    @pytest.mark.anyio
    async def test_waiting_task_is_woken(self, backends, monkeypatch):
        monkeypatch.setattr("sameas.once.call._FIRST_POLL", 1_000.0)
        first, second = (AsyncEngine(AsyncStore(backend), policy=Policy(wait_for=30)) for backend in backends)
        working, finish_it = asyncio.Event(), asyncio.Event()

        async def work(_):
            working.set()
            await finish_it.wait()
            return "done"

        leader = asyncio.ensure_future(first.run(work, scope="s", key="k"))
        await working.wait()
        waiter = asyncio.ensure_future(second.run(lambda _: "ran twice", scope="s", key="k"))
        await asyncio.sleep(0.1)
        finish_it.set()
        async with asyncio.timeout(5):
            assert await leader == "done"
            assert await waiter == "done"
        for engine in (first, second):
            await engine.close()

    @pytest.mark.parametrize("end", ["complete", "fail", "release", "forget"])
    def test_every_end_of_a_lease_wakes(self, backends, end):
        one, other = (Store(backend) for backend in backends)
        claim = one.claim(request())
        lease = Lease(identity(), claim.fence, "a1")
        woken = threading.Event()
        stop = other.backend.waker.listen(identity().digest, woken.set)
        assert woken.wait(5)  # the subscription is in place
        woken.clear()
        if end == "forget":
            one.forget(identity())
        elif end == "release":
            one.release(lease)
        else:
            getattr(one, end)(lease, outcome=OUTCOME, retain_for=SECOND)
        assert woken.wait(5)
        stop()

    def test_listener_is_subscribed_again_after_a_restart(self, backends, redis_server):
        woken = threading.Event()
        stop = backends[0].waker.listen(identity().digest, woken.set)
        assert woken.wait(5)
        woken.clear()
        restart(redis_server)
        assert woken.wait(10)  # subscribed again
        woken.clear()
        finish(Store(backends[1]))
        assert woken.wait(5)
        stop()

    def test_thread_ends_when_nobody_listens_and_comes_back(self, backends, monkeypatch):
        monkeypatch.setattr(redis_waker, "_LINGER", 0.0)
        monkeypatch.setattr(redis_waker, "_TICK", 0.01)
        waker = backends[0].waker
        woken = threading.Event()
        assert not waker.listening
        for _ in range(2):
            stop = waker.listen(identity().digest, woken.set)
            assert woken.wait(5)
            woken.clear()
            stop()
            wait_until(lambda: not waker.listening)

    def test_silent_wake_up_connection_is_given_up(self, redis_url, proxy, monkeypatch):
        monkeypatch.setattr(redis_waker, "_PING_AFTER", 0.05)
        monkeypatch.setattr(redis_waker, "_TICK", 0.02)
        backend = open_backend(proxy.url_of(redis_url))
        woken = threading.Event()
        stop = backend.waker.listen(identity().digest, woken.set)
        assert woken.wait(5)
        woken.clear()
        proxy.half_open()
        time.sleep(0.05)
        proxy.heal()
        assert woken.wait(10)  # subscribed again on a new connection
        stop()
        backend.close()


# Notes what hiredis is handed, by everything here that speaks to Redis.
ALL_THAT_IS_SENT = """
import sys, threading
import hiredis

kinds, verbs, pack = set(), set(), hiredis.pack_command

def note(words):
    kinds.update(type(word).__name__ for word in words)
    verbs.add(words[0] if isinstance(words[0], str) else words[0].decode())
    return pack(words)

hiredis.pack_command = note

from sameas.cluster.live_events import RedisEvents
from sameas.once.store import Query, Selection, Store
from sameas.stores.redis import health, open_backend
from tests.integration.test_redis_store import finish, identity, request

url = sys.argv[1]
health(url)
with Store(open_backend(url)) as store:
    woken = threading.Event()
    stop = store.backend.waker.listen(identity().digest, woken.set)
    assert woken.wait(10)
    finish(store)
    assert len(store.find(Query()).records) == 1
    assert store.forget_where(Selection(scope="scope")) == 1
    store.claim_many([request("one"), request("two")])
    stop()
events = RedisEvents(url)
events.publish("tenant", "key", 1, [b"line"], fence=1)
events.ended("tenant", "key")
events._connected().close()
print(*sorted(kinds))
print(*sorted(verbs))
"""


def test_hiredis_is_never_handed_a_number(redis_server):
    # Version 3.5 ends the process if a signal's handler raises while it packs one; a database has a number, too.
    url = redis_server.url.removesuffix("/0") + "/1"
    told = subprocess.run(
        [sys.executable, "-c", ALL_THAT_IS_SENT, url], capture_output=True, text=True, timeout=120, check=False
    )
    assert told.returncode == 0, told.stderr
    kinds, verbs = told.stdout.splitlines()
    assert kinds == "bytes str"
    assert {"SELECT", "EVALSHA", "SUBSCRIBE", "SCAN", "XADD", "EXPIRE"} <= set(verbs.split())
    redis_server.flush()


class TestProcessesAndLoops:
    def test_forked_child_has_connections_of_its_own(self, redis_url):
        backend = open_backend(redis_url)
        with Store(backend) as store:
            finish(store)
            woken = threading.Event()
            stop = backend.waker.listen(identity("other").digest, woken.set)
            assert woken.wait(5)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    heard = threading.Event()
                    backend.waker.listen(identity().digest, heard.set)
                    claims = [store.claim(request(attempt=f"c{number}")) for number in range(50)]
                    if all(isinstance(claim, Replay) for claim in claims) and heard.wait(5):
                        status = 0
                finally:
                    os._exit(status)
            for number in range(50):
                assert isinstance(store.claim(request(attempt=f"p{number}")), Replay)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            woken.clear()
            finish(store, "other")
            assert woken.wait(5)
            stop()

    def test_one_store_serves_two_event_loops(self, redis_url):
        store = AsyncStore(open_backend(redis_url))

        async def use(number):
            claims = await asyncio.gather(*(store.claim(request(attempt=f"{number}.{n}")) for n in range(5)))
            await store.close()
            return claims

        with ThreadPoolExecutor(2) as threads:
            together = [threads.submit(asyncio.run, use(number)) for number in range(2)]
        claims = [claim for future in together for claim in future.result()] + asyncio.run(use(3))
        assert sum(isinstance(claim, Acquired) for claim in claims) == 1

    def test_a_connection_that_is_in_use_when_its_store_is_closed_is_closed_too(self):
        with RedisServer(appendonly="everysec") as server, server.client() as client, ThreadPoolExecutor(1) as thread:
            with Store(open_backend(server.url)) as other:
                # From now on the server knows the scripts.
                finish(other, "other")
            store = Store(open_backend(server.url, wait=1))
            # There is no replica, so it waits for one for a while.
            finishing = thread.submit(finish, store)
            wait_until(lambda: client.info("clients")["blocked_clients"] == 1)
            store.close()
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                finishing.result()
            wait_until(lambda: client.info("clients")["connected_clients"] == 1)
            with pytest.raises(StoreClosed):
                store.claim(request("another"))

    def test_threads_share_a_store(self, redis_url):
        with (
            Engine(Store(open_backend(redis_url, max_connections=4))) as engine,
            ThreadPoolExecutor(16) as threads,
        ):
            runs = []
            results = list(
                threads.map(
                    lambda n: engine.run(lambda _: runs.append(n) or n, scope="s", key=f"k{n % 20}"),
                    range(200),
                )
            )
        assert len(runs) == 20
        assert all(result % 20 == number % 20 for number, result in enumerate(results))


@contextmanager
def replica_of(master):
    with RedisServer() as replica:
        with replica.client() as client:
            client.replicaof(master.host, master.port)
        yield replica


def restart(server):
    """Kill it, and start it until it has read its file."""
    server.kill_and_restart()
    with server.client() as client:
        wait_until(lambda: client.info("persistence")["loading"] == 0)


def restricted(server, *rules):
    """The address of a user as managed servers give it: without CONFIG."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "managed", "on", ">secret", "~*", "&*", "+@all", "-config", *rules)
    return server.url.replace("redis://", "redis://managed:secret@")


class TestCluster:
    @pytest.fixture(scope="class")
    @staticmethod
    def cluster():
        with program_or_skip():
            cluster = RedisCluster(appendonly="everysec")
        with cluster:
            yield cluster

    def test_cluster_is_recognised_without_being_named(self, cluster):
        with Store(open_backend(cluster.url)) as store:
            for number in range(20):
                finish(store, f"key{number}")
            assert len(store.find(Query()).records) == 20
            assert store.forget_where(Selection(scope="scope")) == 20

    def test_waiter_on_another_node_is_woken(self, cluster):
        here, there = open_backend(cluster.url), open_backend(cluster.url)
        for number in range(6):
            key, woken = f"wake{number}", threading.Event()
            stop = here.waker.listen(identity(key).digest, woken.set)
            assert woken.wait(5)
            woken.clear()
            finish(Store(there), key)
            assert woken.wait(5)
            stop()
        for backend in (here, there):
            backend.close()

    def test_a_closed_store_answers_nobody(self, cluster):
        store = Store(open_backend(cluster.url))
        finish(store)
        store.close()
        with pytest.raises(StoreClosed):
            store.claim(request())

        async def ask_after_closing():
            store = AsyncStore(open_backend(cluster.url))
            assert isinstance(await store.claim(request()), Replay)
            await store.close()
            with pytest.raises(StoreClosed):
                await store.claim(request())

        asyncio.run(ask_after_closing())

    def test_waiting_for_replicas_is_refused(self, cluster):
        with pytest.raises(StoreMisconfigured, match="leave it out"):
            open_backend(cluster.url, wait=1)

    def test_node_that_evicts_is_refused(self, cluster):
        with cluster.nodes[2].client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
            with pytest.raises(StoreMisconfigured, match="noeviction"):
                open_backend(cluster.url)
            client.config_set("maxmemory-policy", "noeviction")


def wait_until(holds, within=10.0):
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)
