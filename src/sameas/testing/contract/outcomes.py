"""Handing in what came of the work, once: a result or a failure, by the holder and nobody else."""

from __future__ import annotations

from sameas.once.record import Accepted, Acquired, Lease, Lost, Outcome, State
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
