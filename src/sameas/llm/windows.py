"""The limits of a provider's account, and what was let through in the last minute.

Rule: a call is counted when it is let through, with what it may use at most, and corrected when it ends; so no 60
seconds ever hold more requests than allowed, nor more tokens while estimates are no lower than the use. A call that
used more than it said is counted in full, and the next ones wait until it has passed out of the window. Calls in quick
succession are counted together and leave with the last of them, so that a minute of any traffic takes as little room.
"""

import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from sameas.llm.signals import LimitReason

WINDOW_SECONDS = 60.0
# What begins within so long is counted together: it may stay in the window by as much longer, and never less long.
GRAIN_SECONDS = 0.1


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an account allows: source document 001, part 1.3."""

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
    # Where a shared back end counted it.
    place: int = 0


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Not now. Nothing changes before `seconds` have passed; None where only the end of a call changes it.

    `look_again` is for what may change elsewhere, without anybody being told here.
    """

    seconds: float | None
    reason: LimitReason
    asked_by_server: bool = False
    look_again: float | None = None

    def after(self, passed: float) -> "Wait":
        """What is left of it."""
        if self.seconds is None:
            return self
        return msgspec.structs.replace(self, seconds=max(0.0, self.seconds - passed))


Admission: TypeAlias = Granted | Wait


class Windows(Protocol):
    """Where calls are counted: in this process, or on Redis for several nodes."""

    @property
    def limits(self) -> RateLimits: ...

    async def admit(self, tokens: int) -> Admission:
        """Count a call that uses at most so many tokens, or say how long it must wait."""
        ...

    async def settle(self, grant: Granted, tokens: int) -> None:
        """The call has ended and used so many tokens."""
        ...

    async def withdraw(self, grant: Granted) -> None:
        """The call was never made."""
        ...

    async def hold(self, seconds: float) -> None:
        """Let nobody through for so long, or as long as before if that is longer."""
        ...


class _Bucket:
    """Calls in quick succession: when the first and the last were let through, how many, and their tokens."""

    __slots__ = ("began_at", "is_past", "last_at", "requests", "tokens")

    def __init__(self, now: float) -> None:
        self.began_at = self.last_at = now
        self.requests = self.tokens = 0
        self.is_past = False

    @property
    def leaves_at(self) -> float:
        return self.last_at + WINDOW_SECONDS


class LocalWindows:
    """The calls of this process."""

    def __init__(self, limits: RateLimits | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or RateLimits()
        self._clock = clock
        self._numbers = itertools.count(1)
        self._window: deque[_Bucket] = deque()
        self._requests = 0
        self._tokens = 0
        self._calls: dict[str, _Bucket] = {}
        self._held_until = 0.0

    @property
    def limits(self) -> RateLimits:
        return self._limits

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    async def admit(self, tokens: int) -> Admission:
        now = self._clock()
        self._forget(now)
        if now < self._held_until:
            return Wait(seconds=self._held_until - now, reason="requests", asked_by_server=True)
        if len(self._calls) >= self._limits.max_concurrent:
            return Wait(seconds=None, reason="concurrent")
        if self._requests >= self._limits.requests_per_minute:
            return Wait(seconds=self._window[0].leaves_at - now, reason="requests")
        if self._tokens + tokens > self._limits.tokens_per_minute:
            return Wait(seconds=self._free_at(tokens) - now, reason="tokens")
        bucket = self._bucket(now)
        grant = Granted(id=str(next(self._numbers)), tokens=tokens)
        self._count(bucket, requests=1, tokens=tokens)
        self._calls[grant.id] = bucket
        return grant

    async def settle(self, grant: Granted, tokens: int) -> None:
        bucket = self._calls.pop(grant.id, None)
        if bucket is None:
            return
        self._forget(self._clock())
        if not bucket.is_past:
            self._count(bucket, tokens=tokens - grant.tokens)

    async def withdraw(self, grant: Granted) -> None:
        bucket = self._calls.pop(grant.id, None)
        if bucket is None or bucket.is_past:
            return
        self._count(bucket, requests=-1, tokens=-grant.tokens)
        if not bucket.requests:
            self._window.remove(bucket)

    async def hold(self, seconds: float) -> None:
        self._held_until = max(self._held_until, self._clock() + seconds)

    def _bucket(self, now: float) -> _Bucket:
        """That of the calls just before, or a new one."""
        if not self._window or now >= self._window[-1].began_at + GRAIN_SECONDS:
            self._window.append(_Bucket(now))
        self._window[-1].last_at = now
        return self._window[-1]

    def _count(self, bucket: _Bucket, *, requests: int = 0, tokens: int) -> None:
        bucket.requests += requests
        bucket.tokens += tokens
        self._requests += requests
        self._tokens += tokens

    def _forget(self, now: float) -> None:
        while self._window and self._window[0].leaves_at <= now:
            bucket = self._window.popleft()
            bucket.is_past = True
            self._requests -= bucket.requests
            self._tokens -= bucket.tokens

    def _free_at(self, tokens: int) -> float:
        """When enough has left the window."""
        needed = self._tokens + tokens - self._limits.tokens_per_minute
        for bucket in self._window:
            needed -= bucket.tokens
            if needed <= 0:
                return bucket.leaves_at
        raise ValueError(f"{tokens} tokens never fit into {self._limits.tokens_per_minute} per minute")
