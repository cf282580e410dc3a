"""A store in memory whose clock only a test moves: leases end by that clock, however long the test itself takes."""

import asyncio
import time
from collections import Counter

from sameas.once.record import State
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock

WITHIN_SECONDS = 60


class Renewals(MemoryBackend):
    """Counts how often each lease was renewed, so that time passes only for those who had a chance to renew."""

    def __init__(self):
        self.clock = MovableClock()
        super().__init__(self.clock)
        self.renewed = Counter()

    def renew(self, lease, lease_for, retain_for):
        answer = yield from super().renew(lease, lease_for, retain_for)
        self.renewed[lease.identity.digest] += 1
        return answer

    def pass_time(self, seconds):
        """Move the clock on, and wait until whoever holds a lease has renewed it since."""
        self.clock.advance(seconds)
        ends_at, due = time.monotonic() + WITHIN_SECONDS, self._due()
        while self._are_missing(due, ends_at):
            time.sleep(0.001)

    async def apass_time(self, seconds):
        """`pass_time`, for tasks."""
        self.clock.advance(seconds)
        ends_at, due = time.monotonic() + WITHIN_SECONDS, self._due()
        while self._are_missing(due, ends_at):
            await asyncio.sleep(0.001)

    def _due(self):
        # One renewal may have looked at the clock before it was moved; the next one did not.
        held = [digest for digest, record in list(self._records.items()) if record.state is State.HELD]
        return {digest: self.renewed[digest] + 2 for digest in held}

    def _are_missing(self, due, ends_at):
        assert time.monotonic() < ends_at, "a lease was not renewed"
        return any(self.renewed[digest] < count for digest, count in due.items())
