"""Records in MariaDB or MySQL: scripts for a server that cannot answer a write with what it wrote.

A claim looks first: a replay is one round trip. Where the record may be taken, an INSERT or an UPDATE of exactly what
was seen decides, in one statement, who takes it. Every statement is a transaction of its own, and none needs a lock
that outlives it.

An admitted weakness: a statement's time is that of its start. A claim that was started before a record was made and
forgotten, and got through after, has a fence below the forgotten one; the attempt id still tells the two apart, and no
late write gets in (`tests/conformance/test_lower_fence.py`). Only a fence that the work itself passes on is lower.
"""

from __future__ import annotations

from math import ceil
from typing import Any, ClassVar

from sameas.once import protocol
from sameas.once.errors import StoreUnavailable
from sameas.once.record import (
    LOST,
    Accepted,
    Acquired,
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
from sameas.stores.rows import Row, claim_values, limited, outcome_values, record_of
from sameas.stores.sql import LOOKS, SqlBackend, Statement


class MySqlBackend(SqlBackend):
    """The SQL scripts without RETURNING."""

    waits_for_rows: ClassVar[bool] = True
    guards: ClassVar[bool] = True

    def _claim(self, request: ClaimRequest) -> Script[Claim]:
        values = limited(claim_values(request))
        looked = self._joined
        for _ in range(LOOKS):
            rows: list[Row] = []
            if not looked:
                rows = yield self._look(request.identity)
            # In the caller's transaction the INSERT comes first: it waits for the row, and has no snapshot to leave.
            looked = False
            if not rows:
                rows = yield Statement(self._sql["insert"], dict(values))
                if rows[0][1]:
                    return Acquired(rows[0][1], 1)
                continue
            record, now = record_of(request.identity, rows[0]), rows[0][-1]
            after, claim = protocol.claim(record, request, now)
            if not isinstance(claim, Acquired) or after is None:
                return claim
            rows = yield self._take_seen(record, claim, values)
            if rows[0][0]:
                return Acquired(rows[0][1], claim.attempt)
        raise StoreUnavailable("The record changes faster than it can be read.")

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        rows: list[Row] = yield self._write("renew", lease, lease_for=lease_for, retain_for=retain_for)
        changed, now = rows[0]
        if not changed:
            return LOST
        rows = yield Statement(self._sql["expiry"], {"digest": lease.identity.digest}, reads=True)
        return Accepted(now, rows[0][0] if rows else now + retain_for)

    def release(self, lease: Lease) -> Script[Answer]:
        rows: list[Row] = yield self._write("release", lease)
        if not rows[0][0]:
            return LOST
        return (yield from self._accepted_now())

    def forget(self, identity: Identity) -> Script[Answer]:
        rows: list[Row] = yield Statement(self._sql["forget"], {"digest": identity.digest})
        if rows[0][0]:
            return (yield from self._accepted_now())
        yield Statement(self._sql["forget_expired"], {"digest": identity.digest})
        return LOST

    def _settle(self, state: State, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        values = outcome_values(outcome)
        rows: list[Row] = yield self._write("settle", lease, state=state.value, retain_for=retain_for, **values)
        changed, now = rows[0]
        if changed:
            return Accepted(now, now + retain_for)
        rows = yield self._write("settled_by_me", lease, state=state.value)
        return Accepted(rows[0][0], rows[0][1]) if rows else LOST

    def _look(self, identity: Identity) -> Statement:
        name = "look_locked" if self._joined else "look"
        return Statement(self._sql[name], {"digest": identity.digest}, reads=not self._joined)

    def _take_seen(self, record: Record, claim: Acquired, values: dict[str, Any]) -> Statement:
        # Nothing that was seen may have changed; that it was free by the server's clock then, it still is.
        return Statement(
            self._sql["take"],
            values
            | {
                "mine": claim.fence == record.fence,
                "attempt": claim.attempt,
                "seen_fence": record.fence,
                "seen_state": record.state.value,
                "seen_lease_until": record.lease_until,
                "seen_expires_at": record.expires_at,
            },
        )

    def _accepted_now(self) -> Script[Answer]:
        rows: list[Row] = yield Statement(self._sql["clock"], {}, reads=True)
        return Accepted(rows[0][0], rows[0][0])

    def _guarded(self, request: ClaimRequest) -> Script[Claim]:
        """Claim in the caller's transaction; its session gets its own time-outs back when the call is over."""
        place: Any = self.performer
        rows: list[Row] = yield Statement(self._sql["guard_idle" if place.is_mariadb else "guard"], {})
        waits, *idles = rows[0]
        place.afterwards.append(self._seconds("wait_for_rows", waits))
        yield self._seconds("wait_for_rows", ceil(place.extras["patience"] / 1_000))
        if idles:
            lease = ceil(request.lease_for / 1_000_000)
            if not 0 < idles[0] <= lease:
                place.afterwards.append(self._seconds("idle_for", idles[0]))
                yield self._seconds("idle_for", lease)
        return (yield from self._claim(request))

    def _seconds(self, name: str, seconds: int) -> Statement:
        return Statement(self._sql[name], {"seconds": seconds})
