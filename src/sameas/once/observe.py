"""What happens, told to whoever wants to know: logs, metrics, traces, an audit trail. Without observers it costs
nothing.

Keys, tenants and scopes are told; payloads and results never are. An observer that fails is logged and changes nothing.
`answered` says how a call was answered, in the words that logs, metrics and traces share.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from threading import Lock
from time import perf_counter
from typing import Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from sameas.once.errors import StoredFailure, StoreError
from sameas.once.forks import renew_after_fork
from sameas.once.record import (
    Accepted,
    Answer,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Outcome,
    Record,
    Renewal,
    Replay,
)
from sameas.once.script import Script
from sameas.once.store import Backend, Page, Query, Renewed, Selection, WrappedBackend

T = TypeVar("T")
V = TypeVar("V")


class CallStarted(Struct, frozen=True, eq=False):
    """A call came in. What observers put into `audit` is stored with the record."""

    identity: Identity
    audit: dict[str, Any]


class CallEnded(Struct, frozen=True):
    """A call was answered: `how` is fresh, replay, shared or the name of the error.

    `stored` is False if the work was done and the store could not be brought to keep it; `kept` is False if it
    keeps that the work is done, and not the result.
    """

    started: CallStarted
    how: str
    seconds: float
    waited: float
    attempt: int = 0
    error: BaseException | None = None
    stored: bool = True
    kept: bool = True


class Claimed(Struct, frozen=True):
    """The store answered a claim."""

    identity: Identity
    claim: Claim
    seconds: float


class Settled(Struct, frozen=True):
    """The store answered a write: complete, fail, release, renew or forget."""

    operation: str
    identity: Identity
    answer: Answer
    seconds: float
    # Of the lease that was shown; None if none was, as in forget.
    fence: int | None = None


class Removed(Struct, frozen=True):
    """Records went: forgotten by choice, or pruned because they had expired."""

    why: str
    count: int
    selection: Selection | None = None


class StoreFailed(Struct, frozen=True):
    """The store could not answer."""

    operation: str
    error: Exception


class KeyFailed(Struct, frozen=True):
    """A payload has no canonical form, so it has no key."""

    scope: str
    error: Exception


Event = CallStarted | CallEnded | Claimed | Settled | Removed | StoreFailed | KeyFailed
Emit = Callable[[Event], None]


class Observer(Protocol):
    """Anything that wants to be told."""

    def on(self, event: Event) -> None: ...


def make_emitter(observers: Sequence[Observer]) -> Emit | None:
    """One function that tells every observer; None if there is nobody to tell."""
    if not observers:
        return None
    log = logging.getLogger("sameas")

    def emit(event: Event) -> None:
        for observer in observers:
            try:
                observer.on(event)
            except Exception:
                log.exception("observer %r failed at %s", observer, type(event).__name__)

    return emit


class ObservedBackend(WrappedBackend):
    """A back end whose answers are told."""

    def __init__(self, inner: Backend, emit: Emit) -> None:
        super().__init__(inner)
        self.emit = emit

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        began = perf_counter()
        claim = yield from self._told("claim", self.inner.claim(request))
        self.emit(Claimed(request.identity, claim, perf_counter() - began))
        return claim

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        return self._settled("renew", lease.identity, self.inner.renew(lease, lease_for, retain_for), lease.fence)

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        scripts = self.inner.renew_many(renewals)
        began = perf_counter()
        answers: dict[int, Renewed] = {}

        def told(number: int, script: Script[Renewed]) -> Script[Renewed]:
            answers[number] = yield from self._told("renew", script)
            if len(answers) == len(scripts):
                # Only all of them together say which answer is whose.
                self._tell_renewed(renewals, [answer for each in sorted(answers) for answer in answers[each]], began)
            return answers[number]

        return [told(number, script) for number, script in enumerate(scripts)]

    def _tell_renewed(self, renewals: Sequence[Renewal], answers: Renewed, began: float) -> None:
        seconds = perf_counter() - began
        for renewal, answer in zip(renewals, answers, strict=True):
            if isinstance(answer, StoreError):
                self.emit(StoreFailed("renew", answer))
            else:
                self.emit(Settled("renew", renewal.lease.identity, answer, seconds, renewal.lease.fence))

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settled("complete", lease.identity, self.inner.complete(lease, outcome, retain_for), lease.fence)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settled("fail", lease.identity, self.inner.fail(lease, outcome, retain_for), lease.fence)

    def release(self, lease: Lease) -> Script[Answer]:
        return self._settled("release", lease.identity, self.inner.release(lease), lease.fence)

    def forget(self, identity: Identity) -> Script[Answer]:
        answer = yield from self._settled("forget", identity, self.inner.forget(identity))
        if isinstance(answer, Accepted):
            self.emit(Removed("forgotten", 1))
        return answer

    def read(self, identity: Identity) -> Script[Record | None]:
        return self._told("read", self.inner.read(identity))

    def forget_where(self, selection: Selection) -> Script[int]:
        count = yield from self._told("forget", self.inner.forget_where(selection))
        self.emit(Removed("forgotten", count, selection))
        return count

    def find(self, query: Query) -> Script[Page]:
        return self._told("find", self.inner.find(query))

    def prune(self, limit: int) -> Script[int]:
        count = yield from self._told("prune", self.inner.prune(limit))
        self.emit(Removed("expired", count))
        return count

    @contextmanager
    def join(self, connection: Any) -> Iterator[Backend]:
        with self.inner.join(connection) as joined:
            yield ObservedBackend(joined, self.emit)

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[Backend]:
        async with self.inner.ajoin(connection) as joined:
            yield ObservedBackend(joined, self.emit)

    def close(self) -> None:
        self.inner.close()

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _settled(
        self, operation: str, identity: Identity, script: Script[Answer], fence: int | None = None
    ) -> Script[Answer]:
        began = perf_counter()
        answer = yield from self._told(operation, script)
        self.emit(Settled(operation, identity, answer, perf_counter() - began, fence))
        return answer

    def _told(self, operation: str, script: Script[T]) -> Script[T]:
        try:
            return (yield from script)
        except Exception as error:
            self.emit(StoreFailed(operation, error))
            raise


def original_trace(claim: Claim) -> str | None:
    """The traceparent of the call whose result is replayed."""
    if isinstance(claim, Replay):
        trace = claim.record.about.audit.get("traceparent")
        return trace if isinstance(trace, str) else None
    return None


class Answered(Struct, frozen=True):
    """How a call was answered: `replay` is whether by a kept answer, `error` the name of the error's type, if any.

    Only the type: an error's message is the handler's own and may hold anything, also a payload or a password.
    """

    how: Literal["fresh", "replay", "shared", "error"]
    replay: bool
    error: str = ""


def answered(ended: CallEnded) -> Answered:
    """How this call was answered. A kept failure is a replay too: nothing was run."""
    if ended.error is not None:
        return Answered("error", isinstance(ended.error, StoredFailure), type(ended.error).__name__)
    if ended.how == "replay":
        return Answered("replay", replay=True)
    if ended.how == "shared":
        return Answered("shared", replay=True)
    return Answered("fresh", replay=False)


class Recent(Generic[V]):
    """One value per digest; above `at_most` the one noted longest ago goes. Safe for threads, empty after a fork."""

    def __init__(self, at_most: int) -> None:
        if at_most < 1:
            raise ValueError("at least one key must be remembered")
        self._at_most = at_most
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._values: dict[bytes, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def note(self, digest: bytes, value: V) -> None:
        with self._lock:
            self._values.pop(digest, None)
            self._values[digest] = value
            if len(self._values) > self._at_most:
                del self._values[next(iter(self._values))]

    def get(self, digest: bytes) -> V | None:
        return self._values.get(digest)

    def drop(self, digest: bytes) -> None:
        with self._lock:
            self._values.pop(digest, None)
