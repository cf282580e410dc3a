"""The life of a record. Every legal change is in this file; nothing here reads a clock or a socket.

Two rules. A claim looks at expiry first, then at the fingerprint, then at the lease. A write is taken only from the
holder: fence and attempt id must both be the record's own, however late the holder is.

`TRANSITIONS` is the whole of it: how the record looks to the one who asks, what is asked, what becomes of the record,
and what is answered. Stores in SQL or Lua say the same in their own language, and the conformance kit compares them
with this.

An admitted weakness: a fence outlives its record only through the store's clock. If that clock is set back by more
than the age of a record that was forgotten or released, a number may come again; the attempt id, checked with every
write, still tells the two holders apart.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from msgspec.structs import replace

from sameas.once.record import (
    LOST,
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    ClaimRequest,
    Lease,
    Mismatch,
    Outcome,
    Record,
    Replay,
    State,
)


class Event(Enum):
    """What can be asked of a record."""

    # Members are compared by identity anyway; Enum's own hash is a Python function and costs more than the look-up.
    __hash__ = object.__hash__

    CLAIM = auto()
    RENEW = auto()
    COMPLETE = auto()
    FAIL = auto()
    RELEASE = auto()
    FORGET = auto()


class View(Enum):
    """How a record looks, now, to the one who asks."""

    __hash__ = object.__hash__

    ABSENT = auto()  # never there, or past its expiry
    OTHER = auto()  # live, but for another fingerprint
    MINE = auto()  # held by this very attempt
    LAPSED = auto()  # held by another, whose lease is over
    TAKEN = auto()  # held by another, whose lease is live
    DONE = auto()
    FAILED = auto()
    DONE_BY_ME = auto()  # done by this very attempt
    FAILED_BY_ME = auto()


class Change(Enum):
    """What becomes of a record."""

    NONE = auto()
    TAKE = auto()  # held, under a higher fence
    EXTEND = auto()  # held, lease moved on
    FINISH = auto()  # done
    KEEP_FAILURE = auto()  # failed, for the retry window
    DROP = auto()  # absent


Row = dict[View, tuple[Change, str]]
_NOT_THE_HOLDER: Final[Row] = dict.fromkeys(set(View) - {View.OTHER, View.MINE}, (Change.NONE, "lost"))

TRANSITIONS: Final[dict[Event, Row]] = {
    Event.CLAIM: {
        View.ABSENT: (Change.TAKE, "acquired"),
        View.OTHER: (Change.NONE, "mismatch"),
        # The reply to this attempt's first claim was lost on the way: the same fence again.
        View.MINE: (Change.EXTEND, "acquired"),
        View.LAPSED: (Change.TAKE, "acquired"),
        View.TAKEN: (Change.NONE, "busy"),
        View.DONE: (Change.NONE, "replay"),
        View.FAILED: (Change.NONE, "replay"),
    },
    Event.RENEW: {
        **_NOT_THE_HOLDER,
        View.MINE: (Change.EXTEND, "accepted"),
    },
    Event.COMPLETE: {
        **_NOT_THE_HOLDER,
        View.MINE: (Change.FINISH, "accepted"),
        # The reply to this attempt's first write was lost on the way.
        View.DONE_BY_ME: (Change.NONE, "accepted"),
    },
    Event.FAIL: {
        **_NOT_THE_HOLDER,
        View.MINE: (Change.KEEP_FAILURE, "accepted"),
        View.FAILED_BY_ME: (Change.NONE, "accepted"),
    },
    Event.RELEASE: {
        **_NOT_THE_HOLDER,
        View.MINE: (Change.DROP, "accepted"),
    },
    Event.FORGET: {
        **dict.fromkeys(View, (Change.DROP, "accepted")),
        View.ABSENT: (Change.DROP, "lost"),
    },
}

_ON_CLAIM: Final = TRANSITIONS[Event.CLAIM]

Step = tuple[Record | None, Answer]


def claim(record: Record | None, request: ClaimRequest, now: int) -> tuple[Record | None, Claim]:
    """Ask to do the work. One look decides: do it, here is the result, wait, or the key is for something else."""
    change, answer = _ON_CLAIM[_seen_by_claimant(record, request, now)]
    if change is Change.TAKE:
        taken = _take(record, request, now)
        return taken, Acquired(taken.fence, taken.attempt)
    assert record is not None
    if change is Change.EXTEND:
        held = _extend(record, request.lease_for, request.retain_for, now)
        return held, Acquired(held.fence, held.attempt)
    if answer == "replay":
        return record, Replay(record)
    if answer == "busy":
        return record, Busy(record.lease_until - now, record.attempt)
    return record, Mismatch(record.fingerprint)


def renew(record: Record | None, lease: Lease, *, lease_for: int, retain_for: int, now: int) -> Step:
    """Move the lease on; the work goes on."""
    change, _ = TRANSITIONS[Event.RENEW][_seen_by_holder(record, lease, now)]
    if change is Change.NONE or record is None:
        return record, LOST
    held = _extend(record, lease_for, retain_for, now)
    return held, Accepted(now, held.expires_at)


def complete(record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Step:
    """Hand in the result."""
    return _settle(record, lease, Event.COMPLETE, outcome, retain_for, now)


def fail(record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Step:
    """Hand in a failure that is to be kept for the retry window."""
    return _settle(record, lease, Event.FAIL, outcome, retain_for, now)


def release(record: Record | None, lease: Lease, *, now: int) -> Step:
    """Give the work back undone: the next claim does it again."""
    change, _ = TRANSITIONS[Event.RELEASE][_seen_by_holder(record, lease, now)]
    return (record, LOST) if change is Change.NONE else (None, Accepted(now, now))


def forget(record: Record | None, *, now: int) -> Step:
    """Remove the record, whoever holds it; the holder is fenced, because its fence is never given again."""
    seen = View.ABSENT if record is None or record.expires_at <= now else View.TAKEN
    _, answer = TRANSITIONS[Event.FORGET][seen]
    return None, LOST if answer == "lost" else Accepted(now, now)


def _seen_by_claimant(record: Record | None, request: ClaimRequest, now: int) -> View:
    if record is None or record.expires_at <= now:
        return View.ABSENT
    if record.fingerprint != request.fingerprint:
        return View.OTHER
    if record.state is State.DONE:
        return View.DONE
    if record.state is State.FAILED:
        return View.FAILED
    if record.attempt_id == request.attempt_id:
        return View.MINE
    return View.LAPSED if record.lease_until <= now else View.TAKEN


def _seen_by_holder(record: Record | None, lease: Lease, now: int) -> View:
    if record is None or record.expires_at <= now:
        return View.ABSENT
    # The fence, not the clock, decides: a holder may outlive its lease as long as nobody took over.
    mine = record.fence == lease.fence and record.attempt_id == lease.attempt_id
    if record.state is State.DONE:
        return View.DONE_BY_ME if mine else View.DONE
    if record.state is State.FAILED:
        return View.FAILED_BY_ME if mine else View.FAILED
    if mine:
        return View.MINE
    return View.LAPSED if record.lease_until <= now else View.TAKEN


def _take(record: Record | None, request: ClaimRequest, now: int) -> Record:
    """A new holder. The fence is above every earlier one, also after the record was gone: the clock moved on."""
    known = None if record is None or record.expires_at <= now else record
    return Record(
        request.identity,
        request.fingerprint,
        State.HELD,
        fence=now if record is None else max(record.fence + 1, now),
        attempt=1 if known is None else known.attempt + 1,
        attempt_id=request.attempt_id,
        lease_until=now + request.lease_for,
        created_at=now if known is None else known.created_at,
        expires_at=now + request.retain_for,
        about=request.about,
    )


def _extend(record: Record, lease_for: int, retain_for: int, now: int) -> Record:
    return replace(record, lease_until=now + lease_for, expires_at=max(record.expires_at, now + retain_for))


def _settle(record: Record | None, lease: Lease, event: Event, outcome: Outcome, retain_for: int, now: int) -> Step:
    change, answer = TRANSITIONS[event][_seen_by_holder(record, lease, now)]
    if answer == "lost" or record is None:
        return record, LOST
    if change is Change.NONE:
        return record, Accepted(record.completed_at or now, record.expires_at)
    state = State.DONE if change is Change.FINISH else State.FAILED
    settled = replace(record, state=state, outcome=outcome, completed_at=now, expires_at=now + retain_for)
    return settled, Accepted(now, settled.expires_at)
