"""A circuit breaker: a server that fails again and again is left alone for a while, then tried with one call at a time.

Rule: nothing here reads a clock. In the half-open state there is one probe at a time. A call that began before the
circuit changed says nothing about it any more. Failures of calls that were under way together, or begun in the same
moment, count once: a blip of the network ends them all and says one thing. `limits.lua` holds the same rules for
several nodes.
"""

import itertools
import time
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from sameas.llm.errors import CircuitOpen

Phase: TypeAlias = Literal["closed", "open", "half_open"]
Change: TypeAlias = Literal["opened", "closed"]


class CircuitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When to open, how long to stay open, when to close again: source document 001, part 1.3.

    A call that began before the last failure that counted, or within `together_within` seconds after it, does not count
    when it fails too.

    Raises ValueError for numbers that cannot be.
    """

    failures_to_open: int = 5
    recover_after: float = 120.0
    successes_to_close: int = 2
    together_within: float = 1.0

    def __post_init__(self) -> None:
        if self.failures_to_open < 1 or self.successes_to_close < 1 or not self.recover_after > 0:
            raise ValueError("a circuit needs at least one failure to open, one success to close, and time to recover")
        if not self.together_within >= 0:
            raise ValueError("together_within must not be negative")


class Ticket(msgspec.Struct, frozen=True):
    """What a circuit has to know about one call."""

    id: str
    epoch: int
    began_at: float


class Circuit:
    """The state of one circuit. Hand each ticket back once: `succeeded`, `failed` or `left`."""

    def __init__(self, settings: CircuitSettings | None = None) -> None:
        self.settings = settings or CircuitSettings()
        # Counts the changes between open and closed, so that late results are known for what they are.
        self._epoch = 0
        self._failures = self._successes = 0
        self._failed_at: float | None = None
        self._opened_at: float | None = None
        # When it opened first since it was last closed.
        self._down_since: float | None = None
        self._probe, self._probe_until = "", 0.0

    def phase(self, now: float) -> Phase:
        if self._opened_at is None:
            return "closed"
        return "open" if now < self._opened_at + self.settings.recover_after else "half_open"

    def refusal(self, now: float) -> CircuitOpen | None:
        """Why no call may begin, if none may; `is_probing` if another call is just finding out."""
        match self.phase(now):
            case "open":
                assert self._opened_at is not None
                down_for = now - (now if self._down_since is None else self._down_since)
                return CircuitOpen(retry_after=self._opened_at + self.settings.recover_after - now, down_for=down_for)
            case "half_open" if self._probe and now < self._probe_until:
                return CircuitOpen(retry_after=self._probe_until - now, is_probing=True)
            case _:
                return None

    def enter(self, call: str, now: float) -> Ticket:
        """A call begins that was not refused."""
        if self._opened_at is not None:
            # A probe that nobody ever heard of again must not keep the circuit open for ever.
            self._probe, self._probe_until = call, now + self.settings.recover_after
        return Ticket(call, self._epoch, now)

    def succeeded(self, ticket: Ticket) -> Change | None:
        if ticket.epoch != self._epoch:
            return None
        if self._opened_at is None:
            self._failures, self._failed_at = 0, None
        elif ticket.id == self._probe:
            self._successes, self._probe = self._successes + 1, ""
            if self._successes >= self.settings.successes_to_close:
                self._change(opened_at=None, down_since=None)
                return "closed"
        return None

    def failed(self, ticket: Ticket, now: float) -> Change | None:
        if ticket.epoch != self._epoch:
            return None
        if self._opened_at is None:
            if self._failed_at is not None and ticket.began_at < self._failed_at + self.settings.together_within:
                return None
            self._failures, self._failed_at = self._failures + 1, now
            if self._failures < self.settings.failures_to_open:
                return None
        elif ticket.id != self._probe:
            return None
        self._change(opened_at=now, down_since=now if self._down_since is None else self._down_since)
        return "opened"

    def left(self, ticket: Ticket) -> None:
        """A call ended that tells nothing about the server: it was cancelled, or refused for what it asked."""
        if ticket.epoch == self._epoch and self._probe == ticket.id:
            self._probe = ""

    def _change(self, *, opened_at: float | None, down_since: float | None) -> None:
        self._epoch += 1
        self._failures = self._successes = 0
        self._failed_at = None
        self._opened_at, self._down_since = opened_at, down_since
        self._probe, self._probe_until = "", 0.0


class CircuitBreaker:
    """A circuit for use without a limiter, which has one of its own. Only `enter` raises."""

    def __init__(self, settings: CircuitSettings | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._circuit = Circuit(settings)
        self._clock = clock
        self._numbers = itertools.count(1)

    @property
    def settings(self) -> CircuitSettings:
        return self._circuit.settings

    async def phase(self) -> Phase:
        return self._circuit.phase(self._clock())

    async def enter(self) -> Ticket:
        """Leave to make a call; raises `CircuitOpen`, with `is_probing` if another call is just finding out."""
        now = self._clock()
        if (refusal := self._circuit.refusal(now)) is not None:
            raise refusal
        return self._circuit.enter(str(next(self._numbers)), now)

    async def succeeded(self, ticket: Ticket) -> Change | None:
        return self._circuit.succeeded(ticket)

    async def failed(self, ticket: Ticket) -> Change | None:
        return self._circuit.failed(ticket, self._clock())

    async def left(self, ticket: Ticket) -> None:
        self._circuit.left(ticket)
