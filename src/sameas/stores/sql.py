"""Records in a SQL database: the same scripts for every dialect, over named statements and a performer.

A performer runs one statement at a time and knows nothing of records. `SqlBackend.join` swaps it for the caller's own
connection, so that record and business rows commit or vanish together.

Tables are made by numbered migrations, each once, whichever of many processes comes first. Where tables can be made
inside a transaction, the caller runs `migrate` in one, under a lock that ends with it. MySQL ends a transaction at
every change of a table and has only session locks, so there every step may be made twice: what is there already is left
alone. Migrations only add: the release before runs on the tables of the release after.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct

from sameas.once import protocol
from sameas.once.errors import StoreUnavailable, TransactionRefused
from sameas.once.record import (
    LOST,
    Accepted,
    Acquired,
    Answer,
    Busy,
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
from sameas.once.store import Backend, Page, Query, Selection, cursor, cursor_position
from sameas.stores.faults import RowLocked
from sameas.stores.rows import Row, claim_values, outcome_values, record_of, tags_text
from sameas.stores.statements import migrations, statements

__all__ = ["Performer", "Row", "SqlBackend", "Statement", "Where"]

# Leases that one statement renews.
RENEWED_TOGETHER = 100
# A record can change between a look and a claim; somebody else then got further, so this cannot go on for ever.
LOOKS = 50
# Microseconds that even one who does not wait allows a row: a lock that a single statement holds is over by then.
IMPATIENT = 100_000


class Statement(Struct, frozen=True):
    """One statement with its values. One that only reads may be run where waiting is not allowed."""

    sql: str
    values: dict[str, Any]
    reads: bool = False
    # Whether it must survive a power cut. A claim on a local file need not: everybody it concerns goes with it.
    durable: bool = True
    # Microseconds that it may wait for a file that another transaction holds; None leaves it to the store.
    lock_wait: int | None = None


class Performer(Protocol):
    """Runs statements somewhere. A statement without rows answers one row: the number it changed, then, where the
    server tells one, the number that it generated.

    A performer adds the values that are its own: `:now` where the clock is this machine's, read once the statement may
    write; `:skew` and `:lock_wait` (milliseconds to wait for a row) where the clock is the server's.
    """

    def perform(self, statement: Statement) -> list[Row]: ...
    async def aperform(self, statement: Statement) -> list[Row]: ...
    def perform_many(self, statements: Sequence[Statement]) -> Sequence[Any]: ...
    async def aperform_many(self, statements: Sequence[Statement]) -> Sequence[Any]: ...
    def join(self, connection: Any) -> Any: ...
    def ajoin(self, connection: Any) -> Any: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


class SqlBackend(Backend):
    """The scripts of every SQL store; a dialect that cannot say something in one statement overrides its script."""

    poll_at_most = 0.05
    # Whether a claim reads first and writes only where it may; a claim that does both in one statement need not.
    looks_first: ClassVar[bool] = True
    # Whether a claim can meet a row that another transaction holds.
    waits_for_rows: ClassVar[bool] = False
    # Whether a call in the caller's transaction sets time-outs there before it claims.
    guards: ClassVar[bool] = False

    def __init__(self, performer: Performer, *, dialect: str) -> None:
        self.performer = performer
        self._dialect = dialect
        self._sql: Mapping[str, str] = statements(dialect)
        self._joined = False
        # Which records these are, as the server tells it: those of a caller's connection must be the same.
        self._home: str | None = None
        self._place: object = getattr(performer, "place", self)

    @property
    def place(self) -> object:
        return self._place

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        return self._patiently(request) if self.waits_for_rows else self._claim(request)

    def _patiently(self, request: ClaimRequest) -> Script[Claim]:
        try:
            if self._joined and self.guards:
                return (yield from self._guarded(request))
            return (yield from self._claim(request))
        except RowLocked as locked:
            # A transaction that is not ours holds the row: its claim is the lock.
            if self._joined and (undo := getattr(self.performer, "undo", "")):
                # Some servers take nothing more from a transaction in which a statement failed.
                yield Statement(undo, {})
            return Busy(locked.waited_for)

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        rows: list[Row] = yield self._write("renew", lease, lease_for=lease_for, retain_for=retain_for)
        return _accepted(rows)

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settle(State.DONE, lease, outcome, retain_for)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settle(State.FAILED, lease, outcome, retain_for)

    def release(self, lease: Lease) -> Script[Answer]:
        rows: list[Row] = yield self._write("release", lease)
        return _accepted(rows)

    def forget(self, identity: Identity) -> Script[Answer]:
        rows: list[Row] = yield Statement(self._sql["forget"], {"digest": identity.digest})
        return _accepted(rows) if rows and rows[0][0] is not None else LOST

    def read(self, identity: Identity) -> Script[Record | None]:
        rows: list[Row] = yield self._look(identity)
        record = record_of(identity, rows[0]) if rows else None
        return None if record is None or record.expires_at <= rows[0][-1] else record

    def forget_where(self, selection: Selection) -> Script[int]:
        where = Where(self._sql)
        where.add("tenant", tenant=selection.tenant)
        where.add("scope", scope=selection.scope)
        where.tagged(selection.tag)
        rows: list[Row] = yield where.statement("forget_where")
        return int(rows[0][0])

    def find(self, query: Query) -> Script[Page]:
        where = Where(self._sql)
        where.always("expired" if query.expired else "live")
        where.add("tenant", tenant=query.tenant)
        where.add("scope", scope=query.scope)
        where.add("state", state=query.state and query.state.value)
        where.add("route", route=query.route)
        where.add("method", http_method=query.method)
        where.add("status", status_code=query.status)
        where.tagged(query.tag)
        if query.key_prefix is not None:
            where.add("key_prefix", key=query.key_prefix, key_length=len(query.key_prefix))
        where.add("created_from", created_from=query.created_from)
        where.add("created_before", created_before=query.created_before)
        if query.after is not None:
            created_at, digest = cursor_position(query.after)
            where.add("after", after_time=created_at, after_digest=digest)
        where.values["limit"] = query.limit + 1
        rows: list[Row] = yield where.statement("find", reads=True)
        records = [record_of(Identity(*row[:4]), row[4:]) for row in rows[: query.limit]]
        return Page(records, cursor(records[-1]) if len(rows) > query.limit else None)

    def prune(self, limit: int) -> Script[int]:
        rows: list[Row] = yield Statement(self._sql["prune"], {"limit": limit})
        return int(rows[0][0])

    @contextmanager
    def join(self, connection: Any) -> Iterator[Backend]:
        if self.guards and self._home is None:
            self._home = self.performer.perform(Statement(self._sql["home"], {}, reads=True))[0][0]
        with self.performer.join(connection) as performer:
            yield self._inside(performer)

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[Backend]:
        if self.guards and self._home is None:
            self._home = (await self.performer.aperform(Statement(self._sql["home"], {}, reads=True)))[0][0]
        async with self.performer.ajoin(connection) as performer:
            yield self._inside(performer)

    def close(self) -> None:
        self.performer.close()

    async def aclose(self) -> None:
        await self.performer.aclose()

    def perform(self, command: Statement) -> Any:
        return self.performer.perform(command)

    async def aperform(self, command: Statement) -> Any:
        return await self.performer.aperform(command)

    def perform_many(self, commands: Sequence[Statement]) -> Sequence[Any]:
        return self.performer.perform_many(commands)

    async def aperform_many(self, commands: Sequence[Statement]) -> Sequence[Any]:
        return await self.performer.aperform_many(commands)

    def _inside(self, performer: Performer) -> Self:
        inside = type(self)(performer, dialect=self._dialect)
        inside._joined = True
        inside._home = self._home
        inside._place = self._place
        return inside

    def _claim(self, request: ClaimRequest) -> Script[Claim]:
        # In the caller's transaction a look would take a snapshot that a later write may not be allowed to leave.
        look_first = self.looks_first and not self._joined
        for _ in range(LOOKS):
            rows: list[Row]
            if look_first:
                rows = yield self._look(request.identity)
                claim = seen(rows[0], request) if rows else None
                if claim is not None:
                    return claim
            look_first = self.looks_first
            rows = yield self._take(request)
            if rows:
                row = rows[0]
                if row[0] is not None:
                    return Acquired(row[0], row[1])
                # Where the record changes all the time, a claim that also reads may end with neither.
                claim = None if row[3] is None else seen(row[2:], request)
                if claim is not None:
                    return claim
        raise StoreUnavailable("The record changes faster than it can be read.")

    def _guarded(self, request: ClaimRequest) -> Script[Claim]:
        """Claim in the caller's transaction: wait for rows for a bounded time, never idle for longer than a lease."""
        lease_for = max(request.lease_for // 1_000, 1)
        rows: list[Row] = yield Statement(self._sql["guard"], {"lease_for": lease_for})
        found, waited_before, *_ = rows[0]
        self._refuse_other_home(found)
        claim = yield from self._claim(request)
        yield Statement(self._sql["unguard"], {"waited_before": waited_before})
        return claim

    def _refuse_other_home(self, found: str) -> None:
        if found != self._home:
            raise TransactionRefused(
                f"The records are in the database {self._home!r}, and the connection is to {found!r}: one transaction"
                " holds only in one. Pass a connection to the same database and schema, or leave connection= out."
            )

    def _look(self, identity: Identity) -> Statement:
        return Statement(self._sql["look"], {"digest": identity.digest}, reads=True)

    def _take(self, request: ClaimRequest) -> Statement:
        return Statement(self._sql["claim"], claim_values(request), durable=False, lock_wait=request.lock_wait)

    def _settle(self, state: State, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        values = outcome_values(outcome)
        rows: list[Row] = yield self._write("settle", lease, state=state.value, retain_for=retain_for, **values)
        if not rows:
            rows = yield self._write("settled_by_me", lease, state=state.value)
        return _accepted(rows)

    def _write(self, name: str, lease: Lease, **values: Any) -> Statement:
        values.update(digest=lease.identity.digest, fence=lease.fence, attempt_id=lease.attempt_id)
        return Statement(self._sql[name], values, durable=name not in ("renew", "release"))


def at_most(longest: str, wished: int | str | None) -> str:
    """The milliseconds to wait for a row: what is wished, and never longer than the store's own. A statement that is
    run again brings the answer of the first time."""
    return longest if wished is None or int(wished) >= int(longest) else str(wished)


def seen(row: Row, request: ClaimRequest) -> Claim | None:
    """The answer to a claim by the look of the record; None if it may be taken, which a statement has to do."""
    _, claim = protocol.claim(record_of(request.identity, row), request, row[-1])
    return None if isinstance(claim, Acquired) else claim


def batches(renewals: Sequence[Renewal], size: int) -> Iterator[Sequence[Renewal]]:
    """The renewals in their order, at most so many together."""
    for start in range(0, len(renewals), size):
        yield renewals[start : start + size]


def _accepted(rows: list[Row]) -> Answer:
    return Accepted(rows[0][0], rows[0][1]) if rows else LOST


class Where:
    """The conditions of a statement, from the dialect's fragments `where_...`, and their values."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self._sql = sql
        self._conditions: list[str] = []
        self.values: dict[str, Any] = {}

    def always(self, name: str) -> None:
        self._conditions.append(self._sql[f"where_{name}"])

    def add(self, name: str, **values: Any) -> None:
        """A condition on values; without a value there is no condition."""
        if None not in values.values():
            self.always(name)
            self.values.update(values)

    def tagged(self, tag: str | None) -> None:
        if tag is not None:
            self.add("tag", tag=tags_text((tag,)))

    def statement(self, name: str, *, reads: bool = False) -> Statement:
        return Statement(self._sql[name].replace("{conditions}", " AND ".join(self._conditions)), self.values, reads)


def is_current(dialect: str) -> Script[bool]:
    """Whether every migration that this release knows was made."""
    sql = statements(dialect)
    rows: list[Row] = yield Statement(sql["versions_there"], {}, reads=True)
    if not rows or rows[0][0] is None:
        return False
    rows = yield Statement(sql["version_last"], {}, reads=True)
    return int(rows[0][0]) >= len(migrations(dialect))


def migrate(dialect: str) -> Script[None]:
    """Make the migrations that are missing."""
    sql = statements(dialect)
    if "lock_schema" in sql:
        yield Statement(sql["lock_schema"], {})
    yield Statement(sql["versions_table"], {})
    rows: list[Row] = yield Statement(sql["version_last"], {}, reads=True)
    for number, migration in enumerate(migrations(dialect), 1):
        if number > int(rows[0][0]):
            # A function's body has semicolons of its own; PostgreSQL takes the whole migration in one go.
            for step in [migration] if dialect == "postgres" else migration.split(";\n"):
                yield Statement(step, {})
            yield Statement(sql["version_made"], {"version": number})
