"""A store of your own in a few lines: two operations on bytes, four if claims are to hold between processes.

`lift` turns it into a store that the engine takes, and `not_promised` of its back end says, in sentences, what cannot
be had of so little. Nothing here is weaker than it says: what a store cannot do is refused, never imitated.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, ClassVar

import msgspec
from msgspec.structs import replace

from sameas.once import protocol
from sameas.once.errors import RecordDamaged, StoreClosed, StoreError, StoreMisconfigured, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.once.record import (
    LOST,
    NEVER,
    Accepted,
    Answer,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Outcome,
    Record,
    State,
)
from sameas.once.script import Script
from sameas.once.store import AsyncStore, Backend, Page, Query, Selection, Store
from sameas.stores.memory import system_micros

_log = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode

# One rule of the protocol with everything but the record and the moment.
Rule = Callable[[Record | None, int], tuple[Record | None, Any]]


class SimpleStore(ABC):
    """Bytes under keys. Whatever goes wrong is raised; a value that was set stays."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """The value, or None if there is none."""

    @abstractmethod
    def set_if_absent(self, key: str, value: bytes) -> bool:
        """Set the value and return True, in one step that no other caller can divide; False if there is one."""


class ComparingStore(SimpleStore):
    """A simple store that can also change a value that nobody else has changed meanwhile."""

    @abstractmethod
    def replace(self, key: str, old: bytes, new: bytes) -> bool:
        """Set the new value and return True if the value is still the old one, in one step; else False."""

    @abstractmethod
    def delete(self, key: str, old: bytes) -> bool:
        """Delete the value and return True if it is still the old one, in one step; else False."""


def lift(simple: SimpleStore, *, clock: Callable[[], int] = system_micros) -> Store:
    """A store for threads; what it cannot promise is logged once, as warnings.

    Whatever the simple store raises, its callers get a StoreError, mostly StoreUnavailable.
    """
    return Store(_backend(simple, clock))


def lift_async(simple: SimpleStore, *, clock: Callable[[], int] = system_micros) -> AsyncStore:
    """A store for tasks; the simple store's own calls are made in threads."""
    return AsyncStore(_backend(simple, clock))


def _backend(simple: SimpleStore, clock: Callable[[], int]) -> SimpleBackend:
    kind = ComparingBackend if isinstance(simple, ComparingStore) else InsertOnlyBackend
    backend = kind(simple, clock)
    for sentence in backend.not_promised:
        _log.warning("%s: %s", type(simple).__name__, sentence)
    return backend


class SimpleBackend(Backend):
    """What both kinds share: each operation is one rule of the protocol, applied to one record."""

    not_promised: ClassVar[tuple[str, ...]] = (
        "Leases and retention go by each machine's own clock: keep the machines' clocks together.",
        "Records are not listed, forgotten by tag, scope or tenant, or pruned.",
        "Waiters look again by themselves, up to a second late.",
    )

    def __init__(self, simple: SimpleStore, clock: Callable[[], int]) -> None:
        self._simple = simple
        self._clock = clock
        self._closed = False

    def change(self, digest: bytes, rule: Rule) -> Any:
        """Apply a rule to the record of a digest, and answer as it says."""
        raise NotImplementedError

    def look(self, digest: bytes) -> Record | None:
        """The record of a digest, expired or not."""
        raise NotImplementedError

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        def rule(record: Record | None, now: int) -> tuple[Record | None, Claim]:
            return protocol.claim(record, request, now)

        return (yield partial(self.change, request.identity.digest, rule))  # type: ignore[no-any-return]

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.renew(record, lease, lease_for=lease_for, retain_for=retain_for, now=now)

        return (yield partial(self.change, lease.identity.digest, rule))  # type: ignore[no-any-return]

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.complete(record, lease, outcome=outcome, retain_for=retain_for, now=now)

        return (yield partial(self.change, lease.identity.digest, rule))  # type: ignore[no-any-return]

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.fail(record, lease, outcome=outcome, retain_for=retain_for, now=now)

        return (yield partial(self.change, lease.identity.digest, rule))  # type: ignore[no-any-return]

    def release(self, lease: Lease) -> Script[Answer]:
        return (yield partial(self.change, lease.identity.digest, partial(_release, lease)))  # type: ignore[no-any-return]

    def forget(self, identity: Identity) -> Script[Answer]:
        return (yield partial(self.change, identity.digest, _forget))  # type: ignore[no-any-return]

    def read(self, identity: Identity) -> Script[Record | None]:
        record: Record | None = yield partial(self.look, identity.digest)
        return None if record is None or record.expires_at <= self._clock() else record

    def forget_where(self, selection: Selection) -> Script[int]:
        raise self._unable("forget records by tag, scope or tenant")

    def find(self, query: Query) -> Script[Page]:
        raise self._unable("list its records")

    def prune(self, limit: int) -> Script[int]:
        raise self._unable("find what has expired")

    def perform(self, command: Callable[[], Any]) -> Any:
        if self._closed:
            raise StoreClosed
        try:
            return command()
        except StoreError:
            raise
        except Exception as error:
            raise StoreUnavailable(
                f"{type(self._simple).__name__} failed: {type(error).__name__}: {error}. Try again later."
            ) from error

    async def aperform(self, command: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(self.perform, command)

    def close(self) -> None:
        # What is open is the simple store's own, and its owner's to close.
        self._closed = True

    def _unable(self, what: str) -> StoreMisconfigured:
        return StoreMisconfigured(
            f"{type(self._simple).__name__} cannot {what}: it has no way to. Use one of sameas's own stores."
        )

    def _get(self, digest: bytes) -> tuple[bytes | None, Record | None]:
        value = self._simple.get(digest.hex())
        if value is None:
            return None, None
        try:
            return value, _decode(value)
        except msgspec.MsgspecError as error:
            raise RecordDamaged(
                f"{type(self._simple).__name__} holds something under {digest.hex()} that is no record: {error}."
            ) from error


class ComparingBackend(SimpleBackend):
    """The whole protocol: a record is one value, and a change of it is taken only if nobody was quicker."""

    def change(self, digest: bytes, rule: Rule) -> Any:
        while True:
            value, record = self._get(digest)
            after, answer = rule(record, self._clock())
            if after is record or self._exchange(digest.hex(), value, after):
                return answer

    def look(self, digest: bytes) -> Record | None:
        return self._get(digest)[1]

    def _exchange(self, key: str, old: bytes | None, after: Record | None) -> bool:
        simple = self._simple
        assert isinstance(simple, ComparingStore)
        if old is None:
            return after is None or simple.set_if_absent(key, _encode(after))
        return simple.delete(key, old) if after is None else simple.replace(key, old, _encode(after))


class InsertOnlyBackend(SimpleBackend):
    """Claims hold in this process; the first result that any process hands in is the accepted one."""

    not_promised: ClassVar[tuple[str, ...]] = (
        "Two processes may run the same work at once; one result is accepted, and both callers get that one.",
        "An accepted result is kept for ever: it neither expires nor can be forgotten.",
        "A failure that the policy keeps is known to this process alone.",
        *SimpleBackend.not_promised,
    )

    def __init__(self, simple: SimpleStore, clock: Callable[[], int]) -> None:
        super().__init__(simple, clock)
        self._lock = Lock()
        self._held: dict[bytes, Record] = {}
        renew_after_fork(self)

    def after_fork(self) -> None:
        # A child holds none of its parent's claims.
        self._lock, self._held = Lock(), {}

    def change(self, digest: bytes, rule: Rule) -> Any:
        accepted = self._get(digest)[1]
        now = self._clock()
        if accepted is not None:
            after, answer = rule(accepted, now)
            if after is not accepted:
                raise self._unable("forget a result")
            return answer
        with self._lock:
            before = self._held.get(digest)
            after, answer = rule(before, now)
            if after is not None and after.state is State.DONE:
                return self._hand_in(digest, replace(after, expires_at=NEVER), answer)
            if after is None:
                self._held.pop(digest, None)
            else:
                self._held[digest] = after
            return answer

    def look(self, digest: bytes) -> Record | None:
        return self._get(digest)[1] or self._held.get(digest)

    def _hand_in(self, digest: bytes, record: Record, answer: Accepted) -> Answer:
        if not self._simple.set_if_absent(digest.hex(), _encode(record)):
            _, first = self._get(digest)
            # Our own, if the reply to an earlier try was lost on the way.
            if first is None or first.attempt_id != record.attempt_id:
                self._held.pop(digest, None)
                return LOST
        self._held.pop(digest, None)
        return replace(answer, expires_at=NEVER)


def _release(lease: Lease, record: Record | None, now: int) -> protocol.Step:
    return protocol.release(record, lease, now=now)


def _forget(record: Record | None, now: int) -> protocol.Step:
    return protocol.forget(record, now=now)
