"""Asking to do the work: who gets it, who waits, who is handed the result, who is refused."""

from __future__ import annotations

from sameas.identity.key import MAX_KEY, MAX_NAME
from sameas.once.record import FOR_EVER, About, Accepted, Acquired, Busy, Mismatch, Replay, State
from sameas.once.store import Query
from sameas.testing.examined import OUTCOME, SECOND, Examined, identity, replayed


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

    def test_keys_of_every_kind_are_told_apart_and_kept_as_they_are(self) -> None:
        keys = ["k", "K", "k ", " k", "'k", 'k"', "k%", "k_", "k\\", "k\n", "k\t", "k\x7f", "é", "e\u0301", "🔑"]
        for number, key in enumerate(keys):
            self.hold(self.request(key, attempt=f"a{number}", lease=30))
        for key in keys:
            assert isinstance(self.store.claim(self.request(key, attempt="b")), Busy)
        if self.capabilities.searchable:
            found = self.store.find(Query(limit=len(keys) + 1)).records
            assert sorted(record.identity.key for record in found) == sorted(keys)

    def test_longest_names_are_kept_whole(self) -> None:
        tenant, scope, key = "\U0001f3e0" * MAX_NAME, "\U0001f527" * MAX_NAME, "\U0001f511" * MAX_KEY
        request = self.request(key, tenant=tenant, scope=scope, lease=30)
        self.hold(request)
        record = self.read(key, tenant=tenant, scope=scope)
        assert record is not None
        assert record.identity == request.identity

    def test_what_never_expires_is_kept(self) -> None:
        for_ever = FOR_EVER / SECOND
        lease = self.hold(self.request(retention=for_ever))
        answer = self.complete(lease, retention=for_ever)
        assert isinstance(answer, Accepted)
        assert answer.expires_at >= answer.at + FOR_EVER
        if self.capabilities.movable_clock:
            self.advance(50 * 365 * 86_400)
        assert replayed(self.store.claim(self.request(attempt="a2"))).outcome == OUTCOME
