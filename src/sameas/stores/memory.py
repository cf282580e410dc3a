"""Records in this process: for tests, for a single process, and as the plainest reading of the protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from heapq import nsmallest
from threading import Lock
from typing import Any

from sameas.once import protocol
from sameas.once.errors import StoreClosed
from sameas.once.forks import renew_after_fork
from sameas.once.record import Answer, Claim, ClaimRequest, Identity, Lease, Outcome, Record
from sameas.once.script import Script
from sameas.once.store import Backend, Page, Query, Selection, first_of, fits, page_of

Records = dict[bytes, Record]
# One change of the dictionary, made at one moment: (records, now) -> answer.
Change = Callable[[Records, int], Any]
# One rule of the protocol with everything but the record and the moment.
Rule = Callable[[Record | None, int], protocol.Step]


def system_micros() -> int:
    """This machine's clock. One process is its own store, so this is the store's clock."""
    return time.time_ns() // 1_000


class MemoryBackend(Backend):
    """A dictionary under a lock; waiters are called as soon as a record changes."""

    def __init__(self, clock: Callable[[], int] = system_micros) -> None:
        self._clock = clock
        self._lock = Lock()
        self._records: Records = {}
        self._listeners: dict[bytes, list[Callable[[], None]]] = {}
        self._closed = False
        self.waker = self
        renew_after_fork(self)

    def after_fork(self) -> None:
        # A child goes on with a copy of the records; a lock that was held while it forked would never be free.
        self._lock = Lock()
        self._listeners = {}

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        return (yield partial(_claim, request))  # type: ignore[no-any-return]

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.renew(record, lease, lease_for=lease_for, retain_for=retain_for, now=now)

        return (yield partial(_write, lease.identity.digest, rule))  # type: ignore[no-any-return]

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.complete(record, lease, outcome=outcome, retain_for=retain_for, now=now)

        return self._changed(lease.identity.digest, rule)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.fail(record, lease, outcome=outcome, retain_for=retain_for, now=now)

        return self._changed(lease.identity.digest, rule)

    def release(self, lease: Lease) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.release(record, lease, now=now)

        return self._changed(lease.identity.digest, rule)

    def forget(self, identity: Identity) -> Script[Answer]:
        def rule(record: Record | None, now: int) -> protocol.Step:
            return protocol.forget(record, now=now)

        return self._changed(identity.digest, rule)

    def read(self, identity: Identity) -> Script[Record | None]:
        return (yield partial(_read, identity.digest))  # type: ignore[no-any-return]

    def forget_where(self, selection: Selection) -> Script[int]:
        gone: list[bytes] = yield partial(_forget_where, selection)
        for digest in gone:
            self._wake(digest)
        return len(gone)

    def find(self, query: Query) -> Script[Page]:
        return (yield partial(_find, query))  # type: ignore[no-any-return]

    def prune(self, limit: int) -> Script[int]:
        return (yield partial(_prune, limit))  # type: ignore[no-any-return]

    def perform(self, command: Change) -> Any:
        if self._closed:
            raise StoreClosed
        with self._lock:
            return command(self._records, self._clock())

    async def aperform(self, command: Change) -> Any:
        return self.perform(command)

    def close(self) -> None:
        self._closed = True

    def listen(self, digest: bytes, wake: Callable[[], None]) -> Callable[[], None]:
        with self._lock:
            self._listeners.setdefault(digest, []).append(wake)
        return partial(self._unlisten, digest, wake)

    def _unlisten(self, digest: bytes, wake: Callable[[], None]) -> None:
        with self._lock:
            listeners = self._listeners.get(digest, [])
            if wake in listeners:
                listeners.remove(wake)
            if not listeners:
                self._listeners.pop(digest, None)

    def _changed(self, digest: bytes, rule: Rule) -> Script[Answer]:
        answer: Answer = yield partial(_write, digest, rule)
        if digest in self._listeners:
            self._wake(digest)
        return answer

    def _wake(self, digest: bytes) -> None:
        for wake in tuple(self._listeners.get(digest, ())):
            wake()


def _claim(request: ClaimRequest, records: Records, now: int) -> Claim:
    before = records.get(request.identity.digest)
    after, answer = protocol.claim(before, request, now)
    if after is not None and after is not before:
        records[request.identity.digest] = after
    return answer


def _write(digest: bytes, rule: Rule, records: Records, now: int) -> Answer:
    before = records.get(digest)
    after, answer = rule(before, now)
    if after is None:
        records.pop(digest, None)
    elif after is not before:
        records[digest] = after
    return answer


def _read(digest: bytes, records: Records, now: int) -> Record | None:
    record = records.get(digest)
    return None if record is None or record.expires_at <= now else record


def _forget_where(selection: Selection, records: Records, now: int) -> list[bytes]:
    gone = [
        digest
        for digest, record in records.items()
        if selection.tenant in (None, record.identity.tenant)
        and selection.scope in (None, record.identity.scope)
        and (selection.tag is None or selection.tag in record.about.tags)
    ]
    for digest in gone:
        del records[digest]
    return gone


def _prune(limit: int, records: Records, now: int) -> int:
    expired = (digest for digest, record in records.items() if record.expires_at <= now)
    gone = nsmallest(limit, expired, key=lambda digest: records[digest].expires_at)
    for digest in gone:
        del records[digest]
    return len(gone)


def _find(query: Query, records: Records, now: int) -> Page:
    fitting = (one for one in records.values() if (one.expires_at <= now) is query.expired and fits(one, query))
    return page_of(first_of(fitting, query), query)
