"""The contract of a store, as a suite: one class per operation, run for every store, for threads and for tasks.

    from sameas.testing import StoreConformance

    class TestMyStore(StoreConformance):
        def open(self):
            return Store(MyBackend())

A store whose clock can be moved overrides `advance`; for the others the suite waits for real, with short leases.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sameas.identity.key import record_digest
from sameas.once.record import (
    About,
    Accepted,
    Acquired,
    Busy,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Lost,
    Mismatch,
    Outcome,
    Record,
    Replay,
    State,
)
from sameas.once.store import AsyncStore, Query, Selection, Store
from sameas.testing.driven import Driven

SECOND = 1_000_000
OUTCOME = Outcome(b"the result", "text/plain", {"status": 201, "headers": {"x-a": "1"}})
OTHER = Outcome(b"another result", "text/plain")


@dataclass(frozen=True)
class Capabilities:
    """What a store can do, instead of its name in the tests."""

    # `advance` moves the store's clock at once; otherwise it waits.
    movable_clock: bool = False
    # Lists and forgets by tag, scope and tenant.
    searchable: bool = True


class Examined:
    """One open store and the ways to talk to it."""

    capabilities: ClassVar[Capabilities] = Capabilities()
    # Long enough for a slow machine to do a step within it, short enough to wait for.
    lease: ClassVar[float] = 0.4
    retention: ClassVar[float] = 60.0

    store: Driven

    def open(self) -> Store | AsyncStore:
        """The store under examination, empty."""
        raise NotImplementedError

    def advance(self, seconds: float) -> None:
        """Let the store's time pass."""
        time.sleep(seconds)

    def setup_method(self) -> None:
        self.store = Driven(self.open())

    def teardown_method(self) -> None:
        self.store.close()

    def request(
        self,
        key: str = "key",
        *,
        attempt: str = "a1",
        fingerprint: str = "f",
        scope: str = "scope",
        tenant: str = "tenant",
        lease: float | None = None,
        retention: float | None = None,
        about: About | None = None,
    ) -> ClaimRequest:
        return ClaimRequest(
            identity(key, scope=scope, tenant=tenant),
            fingerprint,
            attempt,
            round((lease or self.lease) * SECOND),
            round((retention or self.retention) * SECOND),
            about or About(),
        )

    def hold(self, request: ClaimRequest) -> Lease:
        """Claim, which must succeed."""
        claim = self.store.claim(request)
        assert isinstance(claim, Acquired), f"expected to acquire, got {claim}"
        return Lease(request.identity, claim.fence, request.attempt_id)

    def finish(self, key: str = "key", outcome: Outcome = OUTCOME, **words: str) -> Lease:
        """Claim and complete."""
        lease = self.hold(self.request(key, **words))  # type: ignore[arg-type]
        assert isinstance(self.complete(lease, outcome), Accepted)
        return lease

    def complete(self, lease: Lease, outcome: Outcome = OUTCOME, *, retention: float | None = None) -> object:
        return self.store.complete(lease, outcome=outcome, retain_for=round((retention or self.retention) * SECOND))

    def fail(self, lease: Lease, outcome: Outcome = OUTCOME, *, window: float = 30.0) -> object:
        return self.store.fail(lease, outcome=outcome, retain_for=round(window * SECOND))

    def renew(self, lease: Lease) -> object:
        return self.store.renew(lease, lease_for=round(self.lease * SECOND), retain_for=round(self.retention * SECOND))

    def read(self, key: str = "key", *, scope: str = "scope", tenant: str = "tenant") -> Record | None:
        return self.store.read(identity(key, scope=scope, tenant=tenant))

    def pass_lease(self) -> None:
        self.advance(self.lease + 0.01)


def identity(key: str = "key", *, scope: str = "scope", tenant: str = "tenant") -> Identity:
    return Identity(record_digest(tenant, scope, key), tenant, scope, key)


def replayed(claim: Claim) -> Record:
    assert isinstance(claim, Replay), f"expected a replay, got {claim}"
    return claim.record


class ClaimContract(Examined):
    """Asking to do the work."""

    def test_first_claim_acquires_as_first_attempt(self) -> None:
        claim = self.store.claim(self.request())
        assert isinstance(claim, Acquired)
        assert claim.attempt == 1
        assert claim.fence > 0

    def test_claim_while_held_is_busy_with_the_time_left(self) -> None:
        self.hold(self.request(lease=30))
        claim = self.store.claim(self.request(attempt="a2"))
        assert isinstance(claim, Busy)
        assert 20 * SECOND < claim.time_left <= 30 * SECOND

    def test_same_attempt_claims_again_and_keeps_its_fence(self) -> None:
        first = self.hold(self.request())
        again = self.store.claim(self.request())
        assert isinstance(again, Acquired)
        assert (again.fence, again.attempt) == (first.fence, 1)

    def test_expired_lease_is_taken_over_with_a_higher_fence(self) -> None:
        first = self.hold(self.request())
        self.pass_lease()
        claim = self.store.claim(self.request(attempt="a2"))
        assert isinstance(claim, Acquired)
        assert claim.fence > first.fence
        assert claim.attempt == 2

    def test_done_record_is_replayed_whole(self) -> None:
        lease = self.finish()
        record = replayed(self.store.claim(self.request(attempt="a2")))
        assert record.state is State.DONE
        assert record.outcome == OUTCOME
        assert (record.fence, record.attempt) == (lease.fence, 1)
        assert record.completed_at is not None
        assert record.created_at <= record.completed_at < record.expires_at

    def test_other_fingerprint_is_a_mismatch_while_held(self) -> None:
        self.hold(self.request())
        assert self.store.claim(self.request(attempt="a2", fingerprint="g")) == Mismatch("f")

    def test_other_fingerprint_is_a_mismatch_when_done(self) -> None:
        self.finish()
        assert self.store.claim(self.request(attempt="a2", fingerprint="g")) == Mismatch("f")

    def test_other_fingerprint_is_a_mismatch_after_the_lease(self) -> None:
        self.hold(self.request())
        self.pass_lease()
        assert self.store.claim(self.request(attempt="a2", fingerprint="g")) == Mismatch("f")

    def test_expired_record_is_claimed_as_new_with_a_higher_fence(self) -> None:
        lease = self.hold(self.request())
        self.complete(lease, retention=self.lease)
        self.pass_lease()
        claim = self.store.claim(self.request(attempt="a2", fingerprint="g"))
        assert isinstance(claim, Acquired)
        assert claim.attempt == 1
        assert claim.fence > lease.fence

    def test_held_record_outlives_its_lease_so_that_a_takeover_finds_it(self) -> None:
        self.hold(self.request())
        self.pass_lease()
        record = self.read()
        assert record is not None
        assert record.state is State.HELD

    def test_tenants_scopes_and_keys_are_independent(self) -> None:
        self.finish()
        for other in (
            self.request(tenant="tenant2", attempt="b"),
            self.request(scope="scope2", attempt="c"),
            self.request("key2", attempt="d"),
            self.request("KEY", attempt="e"),
            self.request("key ", attempt="f"),
            self.request("k\u00e9y", attempt="g"),
            self.request("ke\u0301y", attempt="h"),
        ):
            assert isinstance(self.store.claim(other), Acquired), other.identity

    def test_what_is_said_about_a_record_is_kept(self) -> None:
        about = About("host:1", ("ontology:x", "run"), "/orders", "POST", {"trace_id": "t", "n": [1]})
        self.hold(self.request(about=about))
        record = self.read()
        assert record is not None
        assert record.about == about
        assert record.identity == identity()
        assert record.fingerprint == "f"

    def test_one_of_many_simultaneous_claims_wins(self) -> None:
        for key in map(str, range(20)):
            requests = [self.request(key, attempt=f"{key}.{number}", lease=30) for number in range(8)]
            claims = self.store.claim_at_once(requests)
            winners = [claim for claim in claims if isinstance(claim, Acquired)]
            assert len(winners) == 1, claims
            assert all(isinstance(claim, Busy) for claim in claims if claim is not winners[0])

    def test_one_of_many_simultaneous_takeovers_wins(self) -> None:
        for key in map(str, range(5)):
            first = self.hold(self.request(key, attempt="dead"))
            self.pass_lease()
            requests = [self.request(key, attempt=f"{key}.{number}", lease=30) for number in range(8)]
            winners = [claim for claim in self.store.claim_at_once(requests) if isinstance(claim, Acquired)]
            assert len(winners) == 1
            assert winners[0].fence > first.fence
            assert winners[0].attempt == 2

    def test_many_claims_in_one_go_are_answered_in_order(self) -> None:
        self.finish("b")
        self.hold(self.request("c", attempt="other", lease=30))
        self.finish("d")
        claims = self.store.claim_many(
            [
                self.request("a", attempt="1", lease=30),
                self.request("b", attempt="2"),
                self.request("c", attempt="3"),
                self.request("d", attempt="4", fingerprint="g"),
                self.request("a", attempt="5", lease=30),
            ]
        )
        assert [type(claim) for claim in claims] == [Acquired, Replay, Busy, Mismatch, Busy]
        assert self.store.claim_many([]) == []


class CompleteContract(Examined):
    """Handing in a result."""

    def test_complete_is_accepted_and_kept_until_its_expiry(self) -> None:
        lease = self.hold(self.request())
        answer = self.complete(lease)
        assert isinstance(answer, Accepted)
        record = self.read()
        assert record is not None
        assert (record.completed_at, record.expires_at) == (answer.at, answer.expires_at)
        assert answer.expires_at - answer.at == self.retention * SECOND

    def test_repeated_complete_of_the_same_attempt_is_accepted_again(self) -> None:
        lease = self.hold(self.request())
        first = self.complete(lease)
        assert self.complete(lease) == first

    def test_late_complete_is_accepted_when_nobody_took_over(self) -> None:
        lease = self.hold(self.request())
        self.pass_lease()
        assert isinstance(self.complete(lease), Accepted)

    def test_complete_with_an_old_fence_changes_nothing(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        new = self.hold(self.request(attempt="a2", lease=30))
        assert self.complete(old, OTHER) == Lost()
        assert isinstance(self.complete(new), Accepted)
        assert self.complete(old, OTHER) == Lost()
        assert replayed(self.store.claim(self.request(attempt="a3"))).outcome == OUTCOME

    def test_complete_needs_the_right_attempt_too(self) -> None:
        lease = self.hold(self.request())
        assert self.complete(Lease(lease.identity, lease.fence, "somebody else")) == Lost()

    def test_complete_needs_the_right_fence_too(self) -> None:
        lease = self.hold(self.request())
        assert self.complete(Lease(lease.identity, lease.fence + 1, lease.attempt_id)) == Lost()

    def test_complete_of_a_forgotten_record_is_lost(self) -> None:
        lease = self.hold(self.request())
        self.store.forget(lease.identity)
        assert self.complete(lease) == Lost()
        assert self.read() is None

    def test_forgotten_worker_cannot_complete_its_successors_record(self) -> None:
        old = self.hold(self.request())
        self.store.forget(old.identity)
        new = self.hold(self.request(attempt="a2"))
        assert new.fence > old.fence
        assert self.complete(old, OTHER) == Lost()
        assert isinstance(self.complete(new), Accepted)

    def test_complete_of_an_absent_record_is_lost(self) -> None:
        assert self.complete(Lease(identity(), 1, "a1")) == Lost()

    def test_bytes_come_back_as_they_were(self) -> None:
        data = bytes(range(256)) * 4_100  # a megabyte, every byte value
        self.finish(outcome=Outcome(data, "application/octet-stream", {}))
        record = replayed(self.store.claim(self.request(attempt="a2")))
        assert record.outcome is not None
        assert record.outcome.data == data

    def test_empty_result_is_a_result(self) -> None:
        self.finish(outcome=Outcome(b"", "text/plain", {}))
        assert replayed(self.store.claim(self.request(attempt="a2"))).outcome == Outcome(b"", "text/plain", {})


class FailContract(Examined):
    """Handing in a failure that is kept."""

    def test_failure_is_replayed_and_gone_after_its_window(self) -> None:
        lease = self.hold(self.request())
        assert isinstance(self.fail(lease, window=self.lease), Accepted)
        record = replayed(self.store.claim(self.request(attempt="a2")))
        assert record.state is State.FAILED
        assert record.outcome == OUTCOME
        self.pass_lease()
        assert isinstance(self.store.claim(self.request(attempt="a2")), Acquired)

    def test_fail_with_an_old_fence_changes_nothing(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        new = self.hold(self.request(attempt="a2", lease=30))
        assert self.fail(old) == Lost()
        assert isinstance(self.complete(new), Accepted)

    def test_done_record_does_not_become_failed(self) -> None:
        lease = self.finish()
        assert self.fail(lease, OTHER) == Lost()
        assert replayed(self.store.claim(self.request(attempt="a2"))).state is State.DONE

    def test_failed_record_does_not_become_done(self) -> None:
        lease = self.hold(self.request())
        self.fail(lease)
        assert self.complete(lease, OTHER) == Lost()
        assert replayed(self.store.claim(self.request(attempt="a2"))).state is State.FAILED


class RenewContract(Examined):
    """Keeping the lease."""

    def test_renewed_lease_is_not_taken_over(self) -> None:
        lease = self.hold(self.request())
        for _ in range(3):
            self.advance(self.lease * 0.6)
            assert isinstance(self.renew(lease), Accepted)
        assert isinstance(self.store.claim(self.request(attempt="a2")), Busy)

    def test_renew_with_an_old_fence_is_lost_and_does_not_help_the_successor(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        self.hold(self.request(attempt="a2"))
        assert self.renew(old) == Lost()
        self.pass_lease()
        assert self.renew(old) == Lost()
        assert isinstance(self.store.claim(self.request(attempt="a3")), Acquired)

    def test_renew_of_a_finished_record_is_lost(self) -> None:
        lease = self.finish()
        assert self.renew(lease) == Lost()
        assert isinstance(self.store.claim(self.request(attempt="a2")), Replay)

    def test_renew_of_an_absent_record_makes_none(self) -> None:
        assert self.renew(Lease(identity(), 1, "a1")) == Lost()
        assert self.read() is None


class ReleaseContract(Examined):
    """Giving the work back."""

    def test_released_record_is_claimed_again_with_a_higher_fence(self) -> None:
        lease = self.hold(self.request())
        assert isinstance(self.store.release(lease), Accepted)
        assert self.read() is None
        assert self.hold(self.request(attempt="a2")).fence > lease.fence

    def test_release_with_an_old_fence_changes_nothing(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        self.hold(self.request(attempt="a2", lease=30))
        assert self.store.release(old) == Lost()
        assert isinstance(self.store.claim(self.request(attempt="a3")), Busy)

    def test_release_does_not_undo_a_result(self) -> None:
        lease = self.finish()
        assert self.store.release(lease) == Lost()
        assert isinstance(self.store.claim(self.request(attempt="a2")), Replay)


class ForgetContract(Examined):
    """Removing records, whoever holds them."""

    def test_forgotten_result_is_done_again(self) -> None:
        lease = self.finish()
        assert isinstance(self.store.forget(lease.identity), Accepted)
        assert self.store.forget(lease.identity) == Lost()
        assert self.hold(self.request(attempt="a2")).fence > lease.fence

    def test_forget_by_scope_tenant_and_tag(self) -> None:
        if not self.capabilities.searchable:
            return
        for tenant in ("t1", "t2"):
            for scope in ("s1", "s2"):
                about = About(tags=(f"{tenant}:{scope}", "all"))
                self.hold(self.request(tenant=tenant, scope=scope, about=about))
        assert self.store.forget_where(Selection(tag="t1:s1")) == 1
        assert self.store.forget_where(Selection(tag="t1:s")) == 0
        assert self.store.forget_where(Selection(tenant="t1", scope="s2")) == 1
        assert self.store.forget_where(Selection(tenant="t1")) == 0
        assert self.store.forget_where(Selection(scope="s1", tag="all")) == 1
        assert self.read(scope="s2", tenant="t2") is not None
        assert self.store.forget_where(Selection(tag="all")) == 1


class ReadContract(Examined):
    """Looking without touching."""

    def test_reading_changes_nothing(self) -> None:
        assert self.read() is None
        lease = self.hold(self.request())
        held = self.read()
        assert held is not None
        assert (held.state, held.outcome, held.completed_at) == (State.HELD, None, None)
        assert isinstance(self.complete(lease), Accepted)
        done = self.read()
        assert done == self.read()
        assert done is not None
        assert done.created_at == held.created_at

    def test_expired_record_is_not_read(self) -> None:
        lease = self.hold(self.request())
        self.complete(lease, retention=self.lease)
        self.pass_lease()
        assert self.read() is None


class FindContract(Examined):
    """Listing with filters and pages."""

    def fill(self) -> list[str]:
        keys = [f"key-{number:02}" for number in range(12)]
        for number, key in enumerate(keys):
            about = About(tags=(f"tag{number % 3}",), route=f"/r{number % 2}", method="POST" if number % 2 else "PUT")
            lease = self.hold(self.request(key, lease=30, scope=f"s{number % 2}", tenant=f"t{number % 2}", about=about))
            if number % 3 == 0:
                self.complete(lease, Outcome(b"x" * 10, "text/plain", {"status": 200 + number}))
            self.advance(0.002)
        return keys

    def test_pages_hold_every_record_once_newest_first(self) -> None:
        if not self.capabilities.searchable:
            return
        keys = self.fill()
        found: list[str] = []
        after = None
        for _ in range(10):
            page = self.store.find(Query(limit=5, after=after))
            found += [record.identity.key for record in page.records]
            after = page.next
            if after is None:
                break
        assert found == keys[::-1]

    def test_every_filter_narrows(self) -> None:
        if not self.capabilities.searchable:
            return
        keys = self.fill()
        whole = self.store.find(Query()).records
        moment = whole[5].created_at
        for query, expected in (
            (Query(tenant="t0"), lambda number: number % 2 == 0),
            (Query(scope="s1"), lambda number: number % 2 == 1),
            (Query(tag="tag1"), lambda number: number % 3 == 1),
            (Query(route="/r0"), lambda number: number % 2 == 0),
            (Query(method="POST"), lambda number: number % 2 == 1),
            (Query(state=State.DONE), lambda number: number % 3 == 0),
            (Query(state=State.HELD), lambda number: number % 3 != 0),
            (Query(status=203), lambda number: number == 3),
            (Query(key_prefix="key-1"), lambda number: number >= 10),
            (Query(created_from=moment), lambda number: number >= 6),
            (Query(created_before=moment), lambda number: number < 6),
            (Query(tenant="t0", state=State.DONE, created_before=moment), lambda number: number == 0),
            (Query(tenant="nobody"), lambda number: False),
        ):
            found = [record.identity.key for record in self.store.find(query).records]
            assert found == [key for number, key in enumerate(keys) if expected(number)][::-1], query

    def test_listing_leaves_the_bytes_out(self) -> None:
        if not self.capabilities.searchable:
            return
        self.fill()
        done = self.store.find(Query(state=State.DONE)).records[0]
        assert done.outcome is not None
        assert (done.outcome.data, done.outcome.meta["status"]) == (b"", 209)


class PruneContract(Examined):
    """Deleting what has expired."""

    def test_prune_deletes_expired_records_in_batches_and_nothing_else(self) -> None:
        for number in range(7):
            self.complete(self.hold(self.request(f"old{number}", attempt=f"o{number}")), retention=self.lease)
        self.finish("done")
        self.hold(self.request("held", attempt="h", lease=30))
        self.pass_lease()
        gone = [self.store.prune(3), self.store.prune(3), self.store.prune(3), self.store.prune(3)]
        assert gone in ([3, 3, 1, 0], [0, 0, 0, 0]), gone  # a store with a native expiry has nothing left to prune
        assert self.read("done") is not None
        assert self.read("held") is not None
        assert self.read("old1") is None


class StoreConformance(
    ClaimContract,
    CompleteContract,
    FailContract,
    RenewContract,
    ReleaseContract,
    ForgetContract,
    ReadContract,
    FindContract,
    PruneContract,
):
    """Everything a store must do."""

    def test_one_result_is_accepted_whoever_hands_in_first(self) -> None:
        old = self.hold(self.request())
        self.pass_lease()
        new = self.hold(self.request(attempt="a2"))
        self.pass_lease()
        newest = self.hold(self.request(attempt="a3", lease=30))
        assert self.complete(new, OTHER) == Lost()
        assert isinstance(self.complete(newest), Accepted)
        assert self.complete(old, OTHER) == Lost()
        assert self.store.release(new) == Lost()
        assert self.renew(old) == Lost()
        assert replayed(self.store.claim(self.request(attempt="a4"))).outcome == OUTCOME


def contract_tests(suite: type[StoreConformance]) -> Iterator[str]:
    """The names of a suite's tests, in the order they are written."""
    seen = set()
    for contract in reversed(suite.__mro__):
        for name in vars(contract):
            if name.startswith("test_") and name not in seen:
                seen.add(name)
                yield name


def examine(suite: type[StoreConformance]) -> dict[str, Exception]:
    """Run a suite without pytest: what failed, by the name of the test."""
    failures: dict[str, Exception] = {}
    for name in contract_tests(suite):
        examined = suite()
        try:
            examined.setup_method()
            try:
                getattr(examined, name)()
            finally:
                examined.teardown_method()
        except Exception as failure:
            failures[name] = failure
    return failures
