"""Records in MariaDB or MySQL: scripts for a server that cannot answer a write with what it wrote.

A claim looks first: a replay is one round trip. If the record may be taken, an INSERT or an UPDATE of exactly what
was seen decides, in one statement, who takes it. Every statement is a transaction of its own, and none needs a lock
that outlives it.

An admitted weakness: a statement's time is that of its start. A claim that was started before a record was made and
forgotten, and got through after, has a fence below the forgotten one; the attempt id still tells the two apart, and no
late write gets in (`tests/conformance/test_lower_fence.py`). Only a fence that the work itself passes on is lower.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil
from typing import Any, ClassVar

from sameas.once import protocol
from sameas.once.errors import StoreError, StoreUnavailable
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
    Renewal,
    State,
)
from sameas.once.script import Script
from sameas.once.store import Renewed
from sameas.stores.faults import RowLocked
from sameas.stores.rows import Row, claim_values, limited, outcome_values, record_of
from sameas.stores.sql import LOOKS, RENEWED_TOGETHER, SqlBackend, Statement, batches

# How often one who does not wait looks again whether a row is locked: others' single statements lock it, too.
_MOMENTS = 5


class MySqlBackend(SqlBackend):
    """The SQL scripts without RETURNING."""

    waits_for_rows: ClassVar[bool] = True
    guards: ClassVar[bool] = True

    def _claim(self, request: ClaimRequest) -> Script[Claim]:
        place: Any = self.performer
        # The server counts in seconds, and a session of ours is set to the store's own wait for a lock.
        if self._joined or request.lock_wait is None or request.lock_wait >= place.extras["lock_wait"] * 1_000:
            return (yield from self._claim_row(request))
        for _ in range(_MOMENTS):
            try:
                return (yield from self._claim_row(request, waits=False))
            except RowLocked:
                yield Statement(self._sql["moment"], {}, reads=True)
        return (yield from self._claim_row(request, waits=False))

    def _claim_row(self, request: ClaimRequest, *, waits: bool = True) -> Script[Claim]:
        values = limited(claim_values(request))
        how = "" if waits else self._sql["impatient"] + " "
        looked = self._joined
        for _ in range(LOOKS):
            rows: list[Row] = []
            if not looked:
                rows = yield self._look(request.identity)
            # In the caller's transaction the INSERT comes first: it waits for the row, and has no snapshot to leave.
            looked = False
            if not rows:
                if not waits:
                    yield from self._refuse_locked(request.identity)
                rows = yield Statement(how + self._sql["insert"], dict(values))
                if rows[0][1]:
                    return Acquired(rows[0][1], 1)
                continue
            record, now = record_of(request.identity, rows[0]), rows[0][-1]
            after, claim = protocol.claim(record, request, now)
            if not isinstance(claim, Acquired) or after is None:
                return claim
            if not waits:
                yield from self._refuse_locked(request.identity)
            rows = yield self._take_seen(record, claim, values, how)
            if rows[0][0]:
                return Acquired(rows[0][1], claim.attempt)
        raise StoreUnavailable("The record changes faster than it can be read.")

    def _refuse_locked(self, identity: Identity) -> Script[None]:
        """MySQL has no write that does not wait for a row, and a look that does not. A lock that somebody takes in the
        moment between the two is waited for as long as the store waits."""
        place: Any = self.performer
        if not place.is_mariadb:
            yield Statement(self._sql["look_now"], {"digest": identity.digest}, reads=True)

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        rows: list[Row] = yield self._write("renew", lease, lease_for=lease_for, retain_for=retain_for)
        changed, now = rows[0]
        if not changed:
            return LOST
        rows = yield Statement(self._sql["expiry"], {"digest": lease.identity.digest}, reads=True)
        return Accepted(now, rows[0][0] if rows else now + retain_for)

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        return [
            self._renew_group(group)
            for _, alike in groupby(renewals, lambda renewal: (renewal.lease_for, renewal.retain_for))
            for group in batches(list(alike), RENEWED_TOGETHER)
        ]

    def _renew_group(self, renewals: Sequence[Renewal]) -> Script[Renewed]:
        try:
            rows: list[Row] = yield self._of_holders("renew_many", renewals)
            now = rows[0][1]
            rows = yield self._of_holders("renewed", renewals, reads=True)
        except RowLocked:
            # Another transaction holds one of them, and nobody can say which.
            answers: list[Answer | StoreError] = []
            for renewal in renewals:
                answers += yield from self.renew_alone(renewal)
            return answers
        except StoreError as error:
            return [error] * len(renewals)
        expiries = {(bytes(digest), *holder): expires_at for digest, *holder, expires_at in rows}
        leases = [renewal.lease for renewal in renewals]
        holders = [(lease.identity.digest, lease.fence, lease.attempt_id) for lease in leases]
        return [Accepted(now, expiries[holder]) if holder in expiries else LOST for holder in holders]

    def _of_holders(self, name: str, renewals: Sequence[Renewal], *, reads: bool = False) -> Statement:
        values: dict[str, Any] = {"lease_for": renewals[0].lease_for, "retain_for": renewals[0].retain_for}
        for number, renewal in enumerate(renewals):
            values[f"digest{number}"] = renewal.lease.identity.digest
            values[f"fence{number}"] = renewal.lease.fence
            values[f"attempt_id{number}"] = renewal.lease.attempt_id
        numbers = range(len(renewals))
        holder = self._sql["where_holder"]
        sql = self._sql[name].replace("{digests}", ", ".join(f":digest{number}" for number in numbers))
        sql = sql.replace("{holders}", " OR ".join(holder.replace("{number}", str(number)) for number in numbers))
        return Statement(sql, values, reads)

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

    def _take_seen(self, record: Record, claim: Acquired, values: dict[str, Any], how: str) -> Statement:
        # Nothing that was seen may have changed; that it was free by the server's clock then, it still is.
        return Statement(
            how + self._sql["take"],
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
        found, waits, *idles = rows[0]
        self._refuse_other_home(found)
        place.afterwards.append(self._seconds("wait_for_rows", waits))
        yield self._seconds("wait_for_rows", _seconds_for_rows(request, place))
        if idles:
            lease = ceil(request.lease_for / 1_000_000)
            if not 0 < idles[0] <= lease:
                place.afterwards.append(self._seconds("idle_for", idles[0]))
                yield self._seconds("idle_for", lease)
        return (yield from self._claim(request))

    def _seconds(self, name: str, seconds: int) -> Statement:
        return Statement(self._sql[name], {"seconds": seconds})


def _seconds_for_rows(request: ClaimRequest, place: Any) -> int:
    """How long the caller's session waits for a row: whole seconds, and on MySQL at least one."""
    seconds: int = ceil(place.extras["lock_wait"] / 1_000)
    if request.lock_wait is not None:
        seconds = min(seconds, request.lock_wait // 1_000_000)
    return seconds if place.is_mariadb else max(seconds, 1)
