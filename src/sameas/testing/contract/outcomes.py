"""Handing in what came of the work, once: a result or a failure, by the holder and nobody else. Until then its lease is
renewed, or it gives the record back.
"""

from __future__ import annotations

from sameas.once.record import Accepted, Acquired, Busy, Lease, Lost, Outcome, Renewal, Replay, State
from sameas.testing.examined import OTHER, OUTCOME, SECOND, Examined, identity, replayed


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

    def test_many_leases_are_renewed_together_and_answered_in_their_order(self) -> None:
        held = [self.hold(self.request(f"k{number}", attempt=f"a{number}", lease=30)) for number in range(5)]
        done = self.finish("done", attempt="d")
        stranger = Lease(held[2].identity, held[2].fence, "somebody else")
        absent = Lease(identity("absent"), 1, "a1")
        leases = [held[0], done, *held[1:3], stranger, absent, *held[3:]]
        answers = self.renew_many(leases, lease=60)
        assert [type(answer) for answer in answers] == [
            *(Accepted, Lost, Accepted, Accepted, Lost, Lost, Accepted, Accepted)
        ]
        for number, lease in enumerate(held):
            record = self.read(f"k{number}")
            assert record is not None
            answer = answers[leases.index(lease)]
            assert isinstance(answer, Accepted)
            assert (record.lease_until, record.expires_at) == (answer.at + 60 * SECOND, answer.expires_at)
        assert self.read("absent") is None

    def test_many_leases_may_be_of_different_lengths(self) -> None:
        short, long = (self.hold(self.request(key, attempt=key)) for key in ("short", "long"))
        renewals = [
            Renewal(short, round(self.lease * SECOND), 60 * SECOND),
            Renewal(long, 60 * SECOND, 600 * SECOND),
        ]
        assert [type(answer) for answer in self.store.renew_many(renewals)] == [Accepted, Accepted]
        self.pass_lease()
        assert isinstance(self.store.claim(self.request("short", attempt="b1")), Acquired)
        assert isinstance(self.store.claim(self.request("long", attempt="b2")), Busy)

    def test_no_leases_to_renew_have_no_answers(self) -> None:
        assert self.store.renew_many([]) == []


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
