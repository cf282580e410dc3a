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

# Members by names of their own: until Python 3.12 to look one up on its class takes longer than all else here.
_HELD, _DONE, _FAILED = State
_ABSENT, _OTHER, _MINE, _LAPSED, _TAKEN, _IS_DONE, _IS_FAILED, _DONE_BY_ME, _FAILED_BY_ME = View
_NONE, _TAKE, _EXTEND, _FINISH = Change.NONE, Change.TAKE, Change.EXTEND, Change.FINISH
_ON_CLAIM, _ON_RENEW, _ON_COMPLETE, _ON_FAIL, _ON_RELEASE, _ON_FORGET = (TRANSITIONS[event] for event in Event)

Step = tuple[Record | None, Answer]


def claim(record: Record | None, request: ClaimRequest, now: int) -> tuple[Record | None, Claim]:
    """Ask to do the work. One look decides: do it, here is the result, wait, or the key is for something else."""
    change, answer = _ON_CLAIM[_seen_by_claimant(record, request, now)]
    if change is _TAKE:
        taken = _take(record, request, now)
        return taken, Acquired(taken.fence, taken.attempt)
    assert record is not None
    if change is _EXTEND:
        held = _extend(record, request.lease_for, request.retain_for, now)
        return held, Acquired(held.fence, held.attempt)
    if answer == "replay":
        return record, Replay(record)
    if answer == "busy":
        return record, Busy(record.lease_until - now, record.attempt)
    return record, Mismatch(record.fingerprint)


def renew(record: Record | None, lease: Lease, *, lease_for: int, retain_for: int, now: int) -> Step:
    """Move the lease on; the work goes on."""
    change, _ = _ON_RENEW[_seen_by_holder(record, lease, now)]
    if change is _NONE or record is None:
        return record, LOST
    held = _extend(record, lease_for, retain_for, now)
    return held, Accepted(now, held.expires_at)


def complete(record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Step:
    """Hand in the result."""
    return _settle(record, lease, _ON_COMPLETE, outcome, retain_for, now)


def fail(record: Record | None, lease: Lease, *, outcome: Outcome, retain_for: int, now: int) -> Step:
    """Hand in a failure that is to be kept for the retry window."""
    return _settle(record, lease, _ON_FAIL, outcome, retain_for, now)


def release(record: Record | None, lease: Lease, *, now: int) -> Step:
    """Give the work back undone: the next claim does it again."""
    change, _ = _ON_RELEASE[_seen_by_holder(record, lease, now)]
    return (record, LOST) if change is _NONE else (None, Accepted(now, now))


def forget(record: Record | None, *, now: int) -> Step:
    """Remove the record, whoever holds it; the holder is fenced, because its fence is never given again."""
    seen = _ABSENT if record is None or record.expires_at <= now else _TAKEN
    _, answer = _ON_FORGET[seen]
    return None, LOST if answer == "lost" else Accepted(now, now)


def _seen_by_claimant(record: Record | None, request: ClaimRequest, now: int) -> View:
    if record is None or record.expires_at <= now:
        return _ABSENT
    if record.fingerprint != request.fingerprint:
        return _OTHER
    if record.state is _DONE:
        return _IS_DONE
    if record.state is _FAILED:
        return _IS_FAILED
    if record.attempt_id == request.attempt_id:
        return _MINE
    return _LAPSED if record.lease_until <= now else _TAKEN


def _seen_by_holder(record: Record | None, lease: Lease, now: int) -> View:
    if record is None or record.expires_at <= now:
        return _ABSENT
    # The fence, not the clock, decides: a holder may outlive its lease as long as nobody took over.
    mine = record.fence == lease.fence and record.attempt_id == lease.attempt_id
    if record.state is _DONE:
        return _DONE_BY_ME if mine else _IS_DONE
    if record.state is _FAILED:
        return _FAILED_BY_ME if mine else _IS_FAILED
    if mine:
        return _MINE
    return _LAPSED if record.lease_until <= now else _TAKEN


def _take(record: Record | None, request: ClaimRequest, now: int) -> Record:
    """A new holder. The fence is above every earlier one, also after the record was gone: the clock moved on."""
    fence, attempt, created_at = now, 1, now
    if record is not None:
        fence = max(record.fence + 1, now)
        if record.expires_at > now:
            attempt, created_at = record.attempt + 1, record.created_at
    lease_until, expires_at = now + request.lease_for, now + request.retain_for
    return Record(
        request.identity,
        request.fingerprint,
        _HELD,
        fence,
        attempt,
        request.attempt_id,
        lease_until,
        created_at,
        expires_at,
        about=request.about,
    )


def _extend(record: Record, lease_for: int, retain_for: int, now: int) -> Record:
    return replace(record, lease_until=now + lease_for, expires_at=max(record.expires_at, now + retain_for))


def _settle(record: Record | None, lease: Lease, row: Row, outcome: Outcome, retain_for: int, now: int) -> Step:
    change, answer = row[_seen_by_holder(record, lease, now)]
    if answer == "lost" or record is None:
        return record, LOST
    if change is _NONE:
        return record, Accepted(record.completed_at or now, record.expires_at)
    state = _DONE if change is _FINISH else _FAILED
    settled = replace(record, state=state, outcome=outcome, completed_at=now, expires_at=now + retain_for)
    return settled, Accepted(now, settled.expires_at)
