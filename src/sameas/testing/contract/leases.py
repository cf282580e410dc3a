"""Keeping the work or giving it back, while it is one's own."""

from __future__ import annotations

from sameas.once.record import Accepted, Acquired, Busy, Lease, Lost, Replay
from sameas.testing.examined import Examined, identity


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
