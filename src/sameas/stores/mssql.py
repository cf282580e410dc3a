"""Records in MS SQL Server, in the table of source document 003 under its own names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sameas.once.errors import StoreError
from sameas.once.record import Accepted, Answer, ClaimRequest, Renewal
from sameas.once.script import Script
from sameas.once.store import Renewed
from sameas.stores.rows import Row, claim_values, limited
from sameas.stores.sql import IMPATIENT, RENEWED_TOGETHER, Performer, SqlBackend, Statement, batches


class MsSqlBackend(SqlBackend):
    """The SQL scripts, with the claim in one batch, and many renewals too."""

    looks_first: ClassVar[bool] = False
    waits_for_rows: ClassVar[bool] = True

    def __init__(self, performer: Performer, *, dialect: str) -> None:
        super().__init__(performer, dialect=dialect)
        place: Any = performer
        self._longest = int(place.extras["lock_wait"])
        self._claim_sql = self._sql["claim"]
        self._sql = {name: _waiting(sql, self._longest) for name, sql in self._sql.items()}

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        return [self._renew_group(group) for group in batches(renewals, RENEWED_TOGETHER)]

    def _renew_group(self, renewals: Sequence[Renewal]) -> Script[Renewed]:
        try:
            rows: list[Row] = yield self._of_holders(renewals)
        except StoreError as error:
            return [error] * len(renewals)
        told = {(bytes(digest), fence, attempt_id): Accepted(*times) for digest, fence, attempt_id, *times in rows}
        answers: list[Answer | StoreError] = []
        for renewal in renewals:
            lease = renewal.lease
            answer = told.get((lease.identity.digest, lease.fence, lease.attempt_id))
            # One that was passed over is lost, or another transaction holds it just now.
            answers += [answer] if answer is not None else (yield from self.renew_alone(renewal))
        return answers

    def _of_holders(self, renewals: Sequence[Renewal]) -> Statement:
        values: dict[str, Any] = {}
        asked = padded(renewals)
        for number, renewal in enumerate(asked):
            values[f"digest{number}"] = renewal.lease.identity.digest
            values[f"fence{number}"] = renewal.lease.fence
            values[f"attempt_id{number}"] = renewal.lease.attempt_id
            values[f"lease_for{number}"] = renewal.lease_for
            values[f"retain_for{number}"] = renewal.retain_for
        one = self._sql["one_lease"]
        leases = ", ".join(one.replace("{number}", str(number)) for number in range(len(asked)))
        return Statement(self._sql["renew_many"].replace("{leases}", leases), values)

    def _take(self, request: ClaimRequest) -> Statement:
        sql = _waiting(self._claim_sql, milliseconds_for_rows(request.lock_wait, self._longest))
        return Statement(sql, limited(claim_values(request)))


def padded(renewals: Sequence[Renewal]) -> Sequence[Renewal]:
    """The renewals, the last one repeated up to one of few numbers: the server keeps a plan for each."""
    wanted = 1 << (len(renewals) - 1).bit_length()
    return [*renewals, *[renewals[-1]] * (wanted - len(renewals))]


def milliseconds_for_rows(lock_wait: int | None, longest: int) -> int:
    """How long a claim waits for a row: one of few lengths, because the server keeps a plan for each, and none longer
    than the caller waits; even one who does not wait allows the tenth of a second that a single statement may take."""
    if lock_wait is None:
        return longest
    tenths = lock_wait // IMPATIENT
    return min(longest, (IMPATIENT // 1_000) << max(tenths.bit_length() - 1, 0))


def _waiting(sql: str, milliseconds: int) -> str:
    # The server takes this setting only as a number in the text.
    return sql.replace("{lock_wait}", str(milliseconds))
