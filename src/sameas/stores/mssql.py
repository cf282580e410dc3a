"""Records in MS SQL Server, in the table of source document 003 under its own names."""

from __future__ import annotations

from typing import Any, ClassVar

from sameas.once.record import ClaimRequest
from sameas.stores.rows import claim_values, limited
from sameas.stores.sql import Performer, SqlBackend, Statement


class MsSqlBackend(SqlBackend):
    """The SQL scripts, with the claim in one batch."""

    looks_first: ClassVar[bool] = False
    waits_for_rows: ClassVar[bool] = True

    def __init__(self, performer: Performer, *, dialect: str) -> None:
        super().__init__(performer, dialect=dialect)
        place: Any = performer
        # The server takes this setting only as a number in the text.
        patience = str(int(place.extras["patience"]))
        self._sql = {name: sql.replace("{patience}", patience) for name, sql in self._sql.items()}

    def _take(self, request: ClaimRequest) -> Statement:
        return Statement(self._sql["claim"], limited(claim_values(request)))
