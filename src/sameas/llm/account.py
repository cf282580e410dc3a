"""The limits of a provider's account, and whether they allow one more call now: requests and tokens of the last minute,
calls under way, pauses that the server asked for, the pace it bears, and its circuit.

Rule: `AccountState` decides from what it knows and the time that it is handed; it reads no clock and waits for nobody.
`limits.lua` holds the same rules for several nodes, and one suite of tests asks both.

A call counts from the moment it is let through until a minute after it has ended, with what it may use at most,
corrected when it ends. A server counts it when it arrives, which is somewhere in between: so in no 60 seconds does it
see more requests than allowed, nor more tokens while estimates are no lower than what it counts. Calls that end in
quick succession are counted together and leave with the last of them, so that a minute of any traffic takes as little
room. A server that says "too many", and not when to come back, gets a pause that doubles until a call is answered;
from then on calls begin as far apart as it has shown to bear, and a little closer after every answer. Of calls that
were under way together one refusal counts: who began before it has not waited for its pause.
"""

import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from sameas.llm.circuit import Change, Circuit, CircuitSettings, Phase, Ticket
from sameas.llm.signals import LimitReason

WINDOW_SECONDS = 60.0
# What ends within so long is counted together: it may stay in the window by as much longer, and never less long.
GRAIN_SECONDS = 0.1
# How often to look whether a probe of the circuit has ended.
PROBE_POLL = 1.0

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
# After about fourteen answers calls are twice as fast again.
_CLOSER = 0.95
_NEARLY_NOTHING = 0.001


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an account allows: source document 001, part 1.3. Raises ValueError for limits that let nobody through."""

    requests_per_minute: int = 50
    tokens_per_minute: int = 100_000
    max_concurrent: int = 5

    def __post_init__(self) -> None:
        if min(self.requests_per_minute, self.tokens_per_minute, self.max_concurrent) < 1:
            raise ValueError("requests_per_minute, tokens_per_minute and max_concurrent must be at least 1")


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A call may be made now; show it when the call has ended."""

    id: str
    tokens: int


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Not now. Nothing changes before `seconds` have passed; None if only the end of a call changes it.

    `look_again` is for what may change elsewhere, without anybody being told here. `down_for` is how long the server
    has been down that is waited for. Without a `reason` it is the caller's own run that is waited for.
    """

    seconds: float | None
    reason: LimitReason | None
    asked_by_server: bool = False
    look_again: float | None = None
    down_for: float | None = None

    def after(self, passed: float) -> "Wait":
        """What is left of it."""
        if self.seconds is None:
            return self
        return msgspec.structs.replace(self, seconds=max(0.0, self.seconds - passed))


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended: `withdrawn` was never made, `refused` was one too many, `untold` says nothing about the server.

    Nobody is let through for `pause` seconds; a refusal without one makes a pause of its own, stretched so much.
    """

    verdict: Literal["answered", "failed", "refused", "untold", "withdrawn"]
    tokens: int = 0
    pause: float = 0.0
    stretch: float = 1.0


class Account(Protocol):
    """Where the calls of an account are counted: in this process, or on Redis for several nodes."""

    @property
    def limits(self) -> RateLimits: ...

    @property
    def circuit(self) -> CircuitSettings: ...

    async def admit(self, tokens: int) -> Granted | Wait:
        """Count a call that uses at most so many tokens, or say how long it must wait."""
        ...

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        """The call has ended; what became of the circuit if that changed it."""
        ...

    async def phase(self) -> Phase:
        """How the circuit stands."""
        ...


class _Pace:
    """How fast calls go out to a server that has said "too many"."""

    def __init__(self) -> None:
        self._apart = 0.0
        self._next_at = self._refused_at = -math.inf
        self.refusals = 0
        # Since when answers are counted, and how many there were.
        self._since: float | None = None
        self._answers = 0

    def wait(self, now: float) -> float:
        """Seconds until the next call may begin."""
        return max(0.0, self._next_at - now)

    def begin(self, now: float) -> None:
        if self._apart:
            self._next_at = now + self._apart

    def answered(self) -> None:
        self.refusals = 0
        self._answers += 1
        self._apart = self._apart * _CLOSER if self._apart > _NEARLY_NOTHING else 0.0

    def refused(self, now: float, *, began_at: float) -> float:
        """A call that began then was refused; seconds for which nobody should call."""
        if began_at > self._refused_at:
            self.refusals = min(self.refusals + 1, 16)
            self._refused_at = now
            if self._since is not None and self._answers:
                self._apart = min(LONGEST_PAUSE, max(2 * self._apart, (now - self._since) / self._answers))
            if self._since is None or self._answers:
                self._since, self._answers = now, 0
        return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** max(0, self.refusals - 1)))


class _CallUnderWay(msgspec.Struct, frozen=True, gc=False):
    """One under way."""

    tokens: int
    ticket: Ticket


class _Bucket:
    """Calls that ended in quick succession: when the first and the last did, how many, and their tokens."""

    __slots__ = ("began_at", "last_at", "requests", "tokens")

    def __init__(self, now: float) -> None:
        self.began_at = self.last_at = now
        self.requests = self.tokens = 0


class AccountState:
    """The calls of one account, as far as this process makes them."""

    def __init__(
        self, limits: RateLimits | None = None, *, circuit: CircuitSettings | None = None, window: float
    ) -> None:
        if not window > 0:
            raise ValueError("a window must be longer than nothing")
        self.limits = limits or RateLimits()
        self.circuit = Circuit(circuit)
        self._pace = _Pace()
        self._seconds = window
        self._grain = GRAIN_SECONDS * window / WINDOW_SECONDS
        self._numbers = itertools.count(1)
        # Those under way; those that ended within a minute; and the sums over both.
        self.calls: dict[str, _CallUnderWay] = {}
        self._ended: deque[_Bucket] = deque()
        self._requests = 0
        self._tokens = 0
        self._paused_until = -math.inf

    def admit(self, tokens: int, now: float, id_: str | None = None) -> Granted | Wait:
        """Count a call that uses at most so many tokens, or say how long it must wait."""
        self._forget(now)
        wait = self._pace_wait(now) or self._circuit_wait(now) or self._window_wait(tokens, now)
        return self.take(id_ or str(next(self._numbers)), tokens, now) if wait is None else wait

    def take(self, id_: str, tokens: int, now: float) -> Granted:
        """Count a call that is let through in any case."""
        self._forget(now)
        grant = Granted(id=id_, tokens=tokens)
        self._pace.begin(now)
        self.calls[grant.id] = _CallUnderWay(tokens, self.circuit.enter(grant.id, now))
        self._requests += 1
        self._tokens += tokens
        return grant

    def pause(self, until: float) -> None:
        """Let nobody through before then."""
        self._paused_until = max(self._paused_until, until)

    def finish(self, grant: Granted, ending: Ending, now: float) -> Change | None:
        """The call has ended; a second time changes nothing."""
        call = self.calls.pop(grant.id, None)
        if call is None:
            return None
        self._tokens -= call.tokens
        if ending.verdict == "withdrawn":
            self._requests -= 1
        else:
            bucket = self._bucket(now)
            bucket.requests += 1
            bucket.tokens += ending.tokens
            self._tokens += ending.tokens
        pause = ending.pause
        if ending.verdict == "refused" and not pause:
            pause = self._pace.refused(now, began_at=call.ticket.began_at) * ending.stretch
        if pause:
            self.pause(now + pause)
        match ending.verdict:
            case "answered":
                self._pace.answered()
                return self.circuit.succeeded(call.ticket)
            case "failed":
                return self.circuit.failed(call.ticket, now)
            case _:
                self.circuit.left(call.ticket)
                return None

    def _forget(self, now: float) -> None:
        """Count no more what has left the window."""
        while self._ended and self._ended[0].last_at + self._seconds <= now:
            bucket = self._ended.popleft()
            self._requests -= bucket.requests
            self._tokens -= bucket.tokens

    def _pace_wait(self, now: float) -> Wait | None:
        if (apart := self._pace.wait(now)) > 0:
            return Wait(seconds=apart, reason="requests", asked_by_server=True)
        if self._pace.refusals and self.calls:
            # One call finds out whether the server takes calls again.
            return Wait(seconds=None, reason="requests", asked_by_server=True)
        return None

    def _circuit_wait(self, now: float) -> Wait | None:
        refusal = self.circuit.refusal(now)
        if refusal is None:
            return None
        if refusal.is_probing:
            return Wait(seconds=None, reason="concurrent", look_again=PROBE_POLL)
        return Wait(seconds=refusal.retry_after, reason="server", down_for=refusal.down_for)

    def _window_wait(self, tokens: int, now: float) -> Wait | None:
        limits = self.limits
        if now < self._paused_until:
            return Wait(seconds=self._paused_until - now, reason="requests", asked_by_server=True)
        if len(self.calls) >= limits.max_concurrent:
            return Wait(seconds=None, reason="concurrent")
        if self._requests >= limits.requests_per_minute:
            return Wait(seconds=self._seconds_until(now, requests=1), reason="requests")
        if self._tokens + tokens > limits.tokens_per_minute:
            return Wait(seconds=self._seconds_until(now, tokens=tokens), reason="tokens")
        return None

    def _bucket(self, now: float) -> _Bucket:
        """That of the calls that ended just before, or a new one."""
        if not self._ended or now >= self._ended[-1].began_at + self._grain:
            self._ended.append(_Bucket(now))
        self._ended[-1].last_at = now
        return self._ended[-1]

    def _seconds_until(self, now: float, *, requests: int = 0, tokens: int = 0) -> float | None:
        """When enough has left the window; None if calls under way must end first."""
        more_requests = self._requests + requests - self.limits.requests_per_minute
        more_tokens = self._tokens + tokens - self.limits.tokens_per_minute
        for bucket in self._ended:
            more_requests -= bucket.requests
            more_tokens -= bucket.tokens
            if (more_requests <= 0 or not requests) and (more_tokens <= 0 or not tokens):
                return bucket.last_at + self._seconds - now
        return None


class LocalAccount:
    """An account of this process alone. `window` is a minute everywhere but in benchmarks, which have less time. Raises
    ValueError for a window that is not longer than nothing; its calls raise nothing."""

    def __init__(
        self,
        limits: RateLimits | None = None,
        *,
        circuit: CircuitSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
        window: float = WINDOW_SECONDS,
    ) -> None:
        self.state = AccountState(limits, circuit=circuit, window=window)
        self.clock = clock

    @property
    def limits(self) -> RateLimits:
        return self.state.limits

    @property
    def circuit(self) -> CircuitSettings:
        return self.state.circuit.settings

    @property
    def in_flight(self) -> int:
        """How many calls are under way."""
        return len(self.state.calls)

    async def admit(self, tokens: int) -> Granted | Wait:
        return self.state.admit(tokens, self.clock())

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        return self.state.finish(grant, ending, self.clock())

    async def phase(self) -> Phase:
        return self.state.circuit.phase(self.clock())
