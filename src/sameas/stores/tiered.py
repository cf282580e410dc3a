"""A bounded local tier of finished records before any store: a replay from it costs no round trip.

Its rule: a record is served from here for at most `ttl` seconds after the store was asked for it. That is how
long a forgotten record may still be replayed by another process, at the worst; where the store tells of what
was forgotten, it is a matter of the message. Only done records are kept: a failure, a lease or another
fingerprint is the store's to answer. Listing and reading always ask the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from threading import Lock
from time import monotonic
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from sameas.once.codec import opened
from sameas.once.forks import renew_after_fork
from sameas.once.record import (
    Accepted,
    Acquired,
    Answer,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Mismatch,
    Outcome,
    Record,
    Renewal,
    Replay,
    State,
    Unframed,
)
from sameas.once.script import Script
from sameas.once.store import Backend, Page, Query, Renewed, Selection, WrappedBackend
from sameas.stores.memory import system_micros

# What a record takes besides its bytes, roughly.
_OVERHEAD: Final = 1_024
# A record may fill at most this part of the tier.
_LARGEST_PART: Final = 8


@runtime_checkable
class Announcing(Protocol):
    """A waker that also tells, in every process, what was forgotten."""

    def watch(self, drop: Callable[[bytes | None], None]) -> Callable[[], None]:
        """Call `drop`, from any thread, with the digest of each forgotten record, and with None whenever some
        may have been missed; returns what ends the watching."""
        ...


class TierEntry(Struct, frozen=True):
    """A replay, and until when it may be given, by our own timer."""

    replay: Replay
    # The same for an engine, which wants what is inside the frame.
    opened: Replay
    fingerprint: str
    until: float
    size: int


class StoreTime:
    """An upper bound of the store's time, from what it answered and our own timer; this machine's clock until
    then."""

    def __init__(self, timer: Callable[[], float], clock: Callable[[], int]) -> None:
        self._timer = timer
        self._clock = clock
        self._ahead: int | None = None

    def learn(self, at: int, asked: float) -> None:
        """The store said that it was `at`, some time after `asked`."""
        ahead = at - round(asked * 1_000_000)
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)

    def now(self) -> int:
        return self._clock() if self._ahead is None else self._ahead + round(self._timer() * 1_000_000)


class TieredBackend(WrappedBackend):
    """`inner` behind a tier of at most `size` records and `size_bytes` bytes; the least recently used go
    first."""

    recalls: ClassVar[bool] = True

    def __init__(
        self,
        inner: Backend,
        *,
        size: int = 10_000,
        size_bytes: int = 64 * 1_024 * 1_024,
        ttl: float = 1.0,
        timer: Callable[[], float] = monotonic,
        clock: Callable[[], int] = system_micros,
    ) -> None:
        if size < 1 or size_bytes < 1 or ttl <= 0:
            raise ValueError("size, size_bytes and ttl must be positive")
        super().__init__(inner)
        self.ttl = ttl
        self._size = size
        self._size_bytes = size_bytes
        self._timer = timer
        self._time = StoreTime(timer, clock)
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[bytes, TierEntry] = OrderedDict()
        self._bytes = 0
        # Counts what was dropped: an answer that was under way meanwhile is not kept.
        self._drops = 0
        self._stop_watching: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def recall(self, request: ClaimRequest) -> Replay | None:
        kept = self._known(request)
        return None if kept is None else kept.opened

    def _known(self, request: ClaimRequest) -> TierEntry | None:
        digest = request.identity.digest
        kept = self._kept.get(digest)
        if kept is None or kept.fingerprint != request.fingerprint or self._timer() >= kept.until:
            return None
        try:
            # One step of the interpreter, without the lock: a record that was dropped just now stays dropped.
            self._kept.move_to_end(digest)
        except KeyError:
            return None
        return kept

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        kept = self._known(request)
        if kept is not None:
            return kept.replay
        asked = self._timer()
        drops = self._drops
        claim = yield from self.inner.claim(request)
        if type(claim) is Replay:
            if claim.record.state is State.DONE:
                self._keep(claim, asked, drops)
        elif type(claim) is not Mismatch:
            if request.identity.digest in self._kept:
                self.drop(request.identity.digest)
            if type(claim) is Acquired:
                self._time.learn(claim.fence, asked)
        return claim

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        return self._learning(self.inner.renew(lease, lease_for, retain_for))

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        return self.inner.renew_many(renewals)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._learning(self.inner.complete(lease, outcome, retain_for))

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._learning(self.inner.fail(lease, outcome, retain_for))

    def release(self, lease: Lease) -> Script[Answer]:
        return self._learning(self.inner.release(lease))

    def forget(self, identity: Identity) -> Script[Answer]:
        try:
            return (yield from self._learning(self.inner.forget(identity)))
        finally:
            # Also where the answer was lost: the record may be gone.
            self.drop(identity.digest)

    def read(self, identity: Identity) -> Script[Record | None]:
        return self.inner.read(identity)

    def forget_where(self, selection: Selection) -> Script[int]:
        try:
            return (yield from self.inner.forget_where(selection))
        finally:
            self.drop(None)

    def find(self, query: Query) -> Script[Page]:
        return self.inner.find(query)

    def prune(self, limit: int) -> Script[int]:
        return self.inner.prune(limit)

    def join(self, connection: Any) -> AbstractContextManager[Backend]:
        """The store itself: what a transaction sees is the database's to say."""
        return self.inner.join(connection)

    def ajoin(self, connection: Any) -> AbstractAsyncContextManager[Backend]:
        return self.inner.ajoin(connection)

    def close(self) -> None:
        self._unwatch()
        self.inner.close()

    async def aclose(self) -> None:
        self._unwatch()
        await self.inner.aclose()

    def drop(self, digest: bytes | None) -> None:
        """No longer serve a record from here; None drops them all."""
        with self._lock:
            self._drops += 1
            if digest is None:
                self._kept.clear()
                self._bytes = 0
            elif (gone := self._kept.pop(digest, None)) is not None:
                self._bytes -= gone.size

    def _keep(self, replay: Replay, asked: float, drops: int) -> None:
        record = replay.record
        if record.outcome is None:
            return
        outcome = opened(record.outcome)
        size = _OVERHEAD + len(outcome.data) + (len(outcome.inside) if isinstance(outcome, Unframed) else 0)
        if size * _LARGEST_PART > self._size_bytes:
            return
        self._watch()
        lives_for = (record.expires_at - self._time.now()) / 1_000_000
        kept = TierEntry(
            replay, Replay(replace(record, outcome=outcome)), record.fingerprint, asked + min(self.ttl, lives_for), size
        )
        digest = record.identity.digest
        with self._lock:
            if self._drops != drops:
                return
            before = self._kept.pop(digest, None)
            self._bytes += size - (0 if before is None else before.size)
            self._kept[digest] = kept
            while len(self._kept) > self._size or self._bytes > self._size_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= oldest.size

    def _watch(self) -> None:
        """Be told what others forget, from the first record on: a tier that is not used needs no
        connection."""
        waker: object = self.waker
        if self._stop_watching is None and isinstance(waker, Announcing):
            self._stop_watching = waker.watch(self.drop)

    def _unwatch(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        self.drop(None)

    def _learning(self, script: Script[Answer]) -> Script[Answer]:
        asked = self._timer()
        answer = yield from script
        if type(answer) is Accepted:
            self._time.learn(answer.at, asked)
        return answer
