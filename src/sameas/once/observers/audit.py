"""The audit trail: what became of every record, in order, for as long as the sink keeps it.

What changed nothing is not in it, and neither are keys, payloads, results or fingerprints: a record is named by its
digest, which `record_digest` computes from tenant, scope and key. Nothing here is ever rewritten, rotated or deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, Self

import msgspec
from msgspec import Struct

from sameas.once.line_log import LineLog
from sameas.once.observe import CallEnded, Claimed, Event, Recent, Removed, Settled, answered
from sameas.once.record import Accepted, Acquired, Identity, Replay

What = Literal["claimed", "completed", "replayed", "failed", "released", "lost", "forgotten", "pruned"]

_SETTLED: dict[str, What] = {
    "complete": "completed",
    "fail": "failed",
    "release": "released",
    "forget": "forgotten",
}


class AuditEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened. `fence` and `attempt` are those of the claim, if this process was told of it."""

    time: datetime
    event: What
    tenant: str | None = None
    scope: str | None = None
    record: str | None = None
    attempt: int | None = None
    fence: int | None = None
    # Of what was lost: the write that was refused.
    operation: str | None = None
    # Of many records at once: how many, and by which tag.
    count: int | None = None
    tag: str | None = None
    actor: str | None = None
    reason: str | None = None


class AuditSink(Protocol):
    """Where entries go. It is called from any thread, in the order of events within each."""

    def write(self, entry: AuditEntry) -> None: ...


class _Acting(Struct, frozen=True):
    actor: str | None = None
    reason: str | None = None


_NOBODY = _Acting()
_ACTING: ContextVar[_Acting] = ContextVar("sameas_acting", default=_NOBODY)


@contextmanager
def acting(actor: str, reason: str | None = None) -> Iterator[None]:
    """Within this block, what happens is written down as done by `actor`, for `reason`."""
    if not actor:
        raise ValueError("an actor needs a name: say who does this")
    token = _ACTING.set(_Acting(actor, reason))
    try:
        yield
    finally:
        _ACTING.reset(token)


class _Claim(Struct, frozen=True):
    fence: int | None = None
    attempt: int | None = None


_UNKNOWN = _Claim()


class AuditObserver:
    """Tells a sink. Fence and attempt come from the claim, which is remembered for the latest `remembered` keys."""

    def __init__(
        self,
        sink: AuditSink,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        remembered: int = 65_536,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._claims: Recent[_Claim] = Recent(remembered)

    def on(self, event: Event) -> None:
        match event:
            case Claimed(identity=identity, claim=Acquired(fence=fence, attempt=attempt)):
                self._claims.note(identity.digest, _Claim(fence, attempt))
                self._write("claimed", identity)
            case Claimed(identity=identity, claim=Replay(record=record)):
                # Not yet an entry: the end of the call is, which is told of those who only shared it too.
                self._claims.note(identity.digest, _Claim(record.fence, record.attempt))
            case CallEnded():
                self._ended(event)
            case Settled():
                self._settled(event)
            case Removed():
                self._removed(event)
            case _:
                pass

    def _ended(self, event: CallEnded) -> None:
        if not answered(event).replay:
            return
        identity = event.started.identity
        known = self._claims.get(identity.digest) or _UNKNOWN
        if event.attempt and event.attempt != known.attempt:
            # Answered with a later attempt than the one claimed here: its fence was not told.
            known = _Claim(attempt=event.attempt)
        self._write("replayed", identity, known)

    def _settled(self, event: Settled) -> None:
        if isinstance(event.answer, Accepted):
            what = _SETTLED.get(event.operation)
            if what is not None:
                self._write(what, event.identity, self._shown(event))
        elif event.operation not in ("renew", "forget"):
            # A renewal that crosses the end of its own call is refused too; a lost lease is told by its last write.
            self._write("lost", event.identity, self._shown(event), operation=event.operation)
        if event.operation == "forget":
            self._claims.drop(event.identity.digest)

    def _shown(self, event: Settled) -> _Claim:
        """The claim behind a write: the one that is remembered, if it has the fence that was shown."""
        known = self._claims.get(event.identity.digest) or _UNKNOWN
        return known if event.fence in (None, known.fence) else _Claim(fence=event.fence)

    def _removed(self, event: Removed) -> None:
        which = event.selection
        if not event.count or (which is None and event.why == "forgotten"):
            # A single record that was forgotten has been told with its digest.
            return
        by = _ACTING.get()
        self._sink.write(
            AuditEntry(
                time=self._clock(),
                event="pruned" if event.why == "expired" else "forgotten",
                tenant=which.tenant if which else None,
                scope=which.scope if which else None,
                tag=which.tag if which else None,
                count=event.count,
                actor=by.actor,
                reason=by.reason,
            )
        )

    def _write(
        self, what: What, identity: Identity, known: _Claim | None = None, *, operation: str | None = None
    ) -> None:
        by = _ACTING.get()
        claim = known or self._claims.get(identity.digest) or _UNKNOWN
        self._sink.write(
            AuditEntry(
                time=self._clock(),
                event=what,
                tenant=identity.tenant,
                scope=identity.scope,
                record=identity.digest.hex(),
                attempt=claim.attempt,
                fence=claim.fence,
                operation=operation,
                actor=by.actor,
                reason=by.reason,
            )
        )


class JsonLinesSink:
    """A file with one JSON object per line, for any number of threads and processes on one machine.

    What a killed process left of a line stands alone and spoils no other. With `fsync` a line is on the disk before the
    call goes on, at the price of a disk write per entry.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self._lines = LineLog(path, fsync=fsync)

    @property
    def path(self) -> Path:
        return self._lines.path

    def write(self, entry: AuditEntry) -> None:
        self._lines.append(msgspec.json.encode(entry))

    def close(self) -> None:
        """Close the file; what was written stays."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
