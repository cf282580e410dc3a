"""The local tier: what it serves, for how long at most, and who makes it let go."""

import asyncio
import os

import pytest

from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.record import (
    About,
    Accepted,
    Acquired,
    ClaimRequest,
    Identity,
    Lease,
    Mismatch,
    Outcome,
    Replay,
)
from sameas.once.store import AsyncStore, Selection, Store
from sameas.stores import postgres
from sameas.stores.memory import MemoryBackend
from sameas.stores.redis import open_backend
from sameas.stores.tiered import Announcing, TieredBackend
from sameas.testing import MovableClock
from tests.integration.test_redis_store import restart, wait_until
from tests.servers.proxy import FaultProxy
from tests.servers.round_trips import RedisRequests

SECOND = 1_000_000
OUTCOME = Outcome(b"the result", "text/plain")


class Timer:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


def identity(key="key"):
    return Identity(record_digest("tenant", "scope", key), "tenant", "scope", key)


def request(key="key", *, attempt="a", fingerprint="f", retention=60.0):
    return ClaimRequest(identity(key), fingerprint, attempt, 30 * SECOND, round(retention * SECOND), About(tags=("t",)))


def finish(store, key="key", *, data=OUTCOME.data, retention=60.0, end="complete"):
    claim = store.claim(request(key, retention=retention))
    assert isinstance(claim, Acquired)
    write = getattr(store, end)
    outcome = Outcome(data, "text/plain")
    answer = write(Lease(identity(key), claim.fence, "a"), outcome=outcome, retain_for=round(retention * SECOND))
    assert isinstance(answer, Accepted)


class Counting(MemoryBackend):
    """Records in memory, and how often they were asked for."""

    claims = 0

    def claim(self, request):
        self.claims += 1
        return super().claim(request)


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def timer():
    return Timer()


@pytest.fixture
def inner(clock):
    return Counting(clock)


@pytest.fixture
def tier(inner, timer, clock):
    return TieredBackend(inner, timer=timer, clock=clock)


class TestServing:
    def test_replay_is_served_from_the_tier_until_its_time_is_over(self, tier, inner, timer):
        store = Store(tier)
        finish(store)
        first = store.claim(request())
        asked = inner.claims
        timer.now += 0.9
        assert store.claim(request()) == first
        assert inner.claims == asked
        timer.now += 0.2
        assert store.claim(request()) == first
        assert inner.claims == asked + 1

    def test_serving_does_not_lengthen_the_time(self, tier, inner, timer):
        store = Store(tier)
        finish(store)
        store.claim(request())
        asked = inner.claims
        for _ in range(11):
            timer.now += 0.1
            store.claim(request())
        assert inner.claims == asked + 1

    def test_other_fingerprint_is_the_stores_to_answer(self, tier):
        store = Store(tier)
        finish(store)
        store.claim(request())
        assert store.claim(request(fingerprint="g")) == Mismatch("f")
        assert isinstance(store.claim(request()), Replay)

    def test_record_is_not_served_after_it_expired(self, tier, timer, clock):
        store = Store(tier)
        finish(store, retention=0.5)
        assert isinstance(store.claim(request()), Replay)
        timer.now += 0.6
        clock.advance(0.6)
        assert isinstance(store.claim(request(attempt="b")), Acquired)

    def test_wrong_clock_of_the_worker_changes_nothing(self, inner, timer, clock):
        store = Store(TieredBackend(inner, timer=timer, clock=lambda: clock() - 600 * SECOND))
        finish(store, retention=0.5)
        store.claim(request())
        timer.now += 0.6
        clock.advance(0.6)
        assert isinstance(store.claim(request(attempt="b")), Acquired)

    def test_kept_failure_is_the_stores_to_answer(self, tier, inner):
        store = Store(tier)
        finish(store, end="fail")
        asked = inner.claims
        for _ in range(3):
            assert isinstance(store.claim(request()), Replay)
        assert inner.claims == asked + 3
        assert len(tier) == 0

    def test_many_claims_in_one_go_ask_only_for_what_is_not_there(self, tier, inner):
        store = Store(tier)
        finish(store, "x")
        store.claim(request("x"))
        asked = inner.claims
        claims = store.claim_many([request("x"), request("y"), request("x")])
        assert [type(claim) for claim in claims] == [Replay, Acquired, Replay]
        assert inner.claims == asked + 1

    def test_tier_of_a_closed_store_is_empty(self, tier):
        store = Store(tier)
        finish(store)
        store.claim(request())
        assert len(tier) == 1
        store.close()
        assert len(tier) == 0


class TestBounds:
    def test_least_recently_used_records_go_first(self, inner, timer, clock):
        tier = TieredBackend(inner, size=2, timer=timer, clock=clock)
        store = Store(tier)
        for key in "abc":
            finish(store, key)
        for key in "aba":
            store.claim(request(key))
        store.claim(request("c"))
        asked = inner.claims
        store.claim(request("a"))
        assert inner.claims == asked
        store.claim(request("b"))
        assert inner.claims == asked + 1
        assert len(tier) == 2

    def test_bytes_are_bounded(self, inner, timer, clock):
        tier = TieredBackend(inner, size_bytes=1_000_000, timer=timer, clock=clock)
        store = Store(tier)
        for number in range(20):
            finish(store, str(number), data=b"x" * 100_000)
            store.claim(request(str(number)))
        assert 5 <= len(tier) <= 10
        finish(store, "large", data=b"x" * 500_000)
        store.claim(request("large"))
        assert 5 <= len(tier) <= 10

    @pytest.mark.parametrize("wrong", [{"size": 0}, {"size_bytes": 0}, {"ttl": 0}])
    def test_bounds_must_be_positive(self, inner, wrong):
        with pytest.raises(ValueError, match="positive"):
            TieredBackend(inner, **wrong)


class TestForgetting:
    def test_own_forget_is_seen_at_once(self, tier):
        store = Store(tier)
        for forget in (lambda: store.forget(identity()), lambda: store.forget_where(Selection(tag="t"))):
            finish(store)
            store.claim(request())
            forget()
            assert isinstance(store.claim(request(attempt="b")), Acquired)
            store.forget(identity())

    def test_answer_that_was_under_way_during_a_forget_is_not_kept(self, tier, inner):
        finish(Store(tier))
        claim = tier.claim(request())
        reply = inner.perform(next(claim))
        tier.drop(identity().digest)
        with pytest.raises(StopIteration):
            claim.send(reply)
        assert len(tier) == 0

    def test_forget_by_another_process_is_seen_within_the_time_where_no_message_comes(self, inner, timer, clock):
        here, there = (Store(TieredBackend(inner, timer=timer, clock=clock)) for _ in range(2))
        finish(there)
        assert isinstance(here.claim(request()), Replay)
        there.forget(identity())
        timer.now += 1.0
        assert isinstance(here.claim(request(attempt="b")), Acquired)


class TestBeforeRedis:
    @pytest.fixture
    def tiers(self, redis_url):
        # With a time of an hour, only a message can make them let go.
        pair = [TieredBackend(open_backend(redis_url), ttl=3_600.0) for _ in range(2)]
        yield pair
        for backend in pair:
            backend.close()

    def test_waker_of_redis_announces_what_is_forgotten(self, tiers):
        assert isinstance(tiers[0].waker, Announcing)

    def test_replay_from_the_tier_takes_no_round_trip(self, tiers, redis_url):
        finish(Store(tiers[0]))
        keep(tiers[1])
        with RedisRequests(redis_url) as asked:
            for _ in range(10):
                assert isinstance(Store(tiers[1]).claim(request()), Replay)
        assert asked.names == {}

    @pytest.mark.parametrize("by", ["key", "tag", "scope", "tenant"])
    def test_forget_reaches_the_tiers_of_others(self, tiers, by):
        here, there = (Store(backend) for backend in tiers)
        finish(there)
        keep(tiers[0])
        if by == "key":
            there.forget(identity())
        else:
            assert there.forget_where(Selection(**{by: {"tag": "t"}.get(by, by)})) == 1
        wait_until(lambda: len(tiers[0]) == 0)
        assert isinstance(here.claim(request(attempt="b")), Acquired)

    def test_forget_in_another_process_reaches_this_one(self, tiers, redis_url):
        finish(Store(tiers[0]))
        keep(tiers[0])
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if isinstance(Store(tiers[0]).forget(identity()), Accepted) else 1
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        wait_until(lambda: len(tiers[0]) == 0)

    def test_forked_child_watches_for_itself(self, tiers):
        finish(Store(tiers[0]))
        keep(tiers[0])
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                keep(tiers[0])
                os.write(tell, b"k")
                wait_until(lambda: len(tiers[0]) == 0)
                status = 0
            finally:
                os._exit(status)
        assert os.read(told, 1) == b"k"
        Store(tiers[1]).forget(identity())
        _, status = os.waitpid(child, 0)
        os.close(told)
        os.close(tell)
        assert os.waitstatus_to_exitcode(status) == 0

    def test_lost_message_costs_at_most_the_time(self, redis_server, redis_url):
        """The connection that would bring the message is dead, and nobody has noticed yet."""
        timer = Timer()
        with FaultProxy(port=redis_server.port) as proxy:
            backend = open_backend(redis_url)
            deaf = open_backend(proxy.url_of(redis_url))
            backend.waker = deaf.waker
            tier = TieredBackend(backend, ttl=1.0, timer=timer)
            finish(Store(tier))
            keep(tier)
            proxy.half_open()
            with Store(open_backend(redis_url)) as other:
                other.forget(identity())
            assert isinstance(Store(tier).claim(request()), Replay)
            timer.now += 1.0
            assert isinstance(Store(tier).claim(request(attempt="b")), Acquired)
            tier.close()
            deaf.close()

    def test_broken_wake_up_connection_empties_the_tier(self, tiers, redis_server):
        finish(Store(tiers[0]))
        keep(tiers[0])
        restart(redis_server)
        wait_until(lambda: len(tiers[0]) == 0)

    def test_engine_replays_from_the_tier_and_forgets_through_it(self, tiers, redis_url):
        runs = []
        one, other = (Engine(Store(backend)) for backend in tiers)
        call = {"scope": "s", "key": "k"}
        for engine in (one, other, one, other, one, other):
            assert engine.run(lambda _: runs.append(1) or "result", **call) == "result"
        assert one.forget("s", "k")
        wait_until(lambda: len(tiers[1]) == 0)
        assert other.run(lambda _: runs.append(1) or "again", **call) == "again"
        assert runs == [1, 1]

    def test_async_engines_in_two_loops_share_a_tier(self, tiers):
        store = AsyncStore(tiers[0])

        async def use():
            engine = AsyncEngine(store)
            result = [await engine.run(lambda _: "result", scope="s", key="k") for _ in range(3)]
            await store.close()
            return result

        assert asyncio.run(use()) == asyncio.run(use()) == ["result"] * 3


def keep(tier):
    """Have the record in the tier for good: what was kept before the watching began is dropped when it begins."""
    drops, watching = tier._drops, tier._stop_watching is not None
    assert isinstance(Store(tier).claim(request()), Replay)
    if not watching:
        wait_until(lambda: tier._drops > drops)
    wait_until(lambda: isinstance(Store(tier).claim(request()), Replay) and len(tier) > 0)


class TestBeforePostgres:
    @pytest.fixture
    def tiers(self, postgres_url):
        pair = [
            TieredBackend(postgres.open_backend(postgres_url, listen_url=postgres_url), ttl=3_600.0) for _ in range(2)
        ]
        yield pair
        for backend in pair:
            backend.close()

    @pytest.mark.parametrize("by", ["key", "tag", "scope", "tenant"])
    def test_forget_reaches_the_tiers_of_others(self, tiers, by):
        here, there = (Store(backend) for backend in tiers)
        finish(there)
        keep(tiers[0])
        if by == "key":
            there.forget(identity())
        else:
            assert there.forget_where(Selection(**{by: {"tag": "t"}.get(by, by)})) == 1
        wait_until(lambda: len(tiers[0]) == 0)
        assert isinstance(here.claim(request(attempt="b")), Acquired)
