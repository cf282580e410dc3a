"""Records in MS SQL Server, in the table of source document 003 under its own names."""

from __future__ import annotations

from typing import Any, ClassVar

from sameas.once.record import ClaimRequest
from sameas.stores.rows import claim_values, limited
from sameas.stores.sql import IMPATIENT, Performer, SqlBackend, Statement


class MsSqlBackend(SqlBackend):
    """The SQL scripts, with the claim in one batch."""

    looks_first: ClassVar[bool] = False
    waits_for_rows: ClassVar[bool] = True

    def __init__(self, performer: Performer, *, dialect: str) -> None:
        super().__init__(performer, dialect=dialect)
        place: Any = performer
        self._longest = int(place.extras["lock_wait"])
        self._claim_sql = self._sql["claim"]
        self._sql = {name: _waiting(sql, self._longest) for name, sql in self._sql.items()}

    def _take(self, request: ClaimRequest) -> Statement:
        sql = _waiting(self._claim_sql, milliseconds_for_rows(request.lock_wait, self._longest))
        return Statement(sql, limited(claim_values(request)))


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
