"""Records in a SQL database: the same scripts for every dialect, over named statements and a performer.

A performer runs one statement at a time and knows nothing of records. `SqlBackend.join` swaps it for the caller's own
connection, so that record and business rows commit or vanish together.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from sameas.once import protocol
from sameas.once.errors import StoreUnavailable
from sameas.once.record import (
    LOST,
    About,
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
from sameas.once.store import Backend, Page, Query, Selection, cursor, cursor_position
from sameas.stores.statements import statements

Row = Sequence[Any]

# A record can change between a look and a claim; somebody else then got further, so this cannot go on for ever.
_LOOKS = 50

_STATES = {state.value: state for state in State}


class Statement(Struct, frozen=True):
    """One statement with its values. One that only reads may be run where waiting is not allowed."""

    sql: str
    values: dict[str, Any]
    reads: bool = False


class Performer(Protocol):
    """Runs statements somewhere. The rows of a statement that has none are one row with the number it changed.

    Where the server's clock is not asked for inside a statement, the performer supplies `:now` once the statement may
    write.
    """

    def now(self) -> int:
        """The store's time in microseconds."""
        ...

    def perform(self, statement: Statement) -> list[Row]: ...
    async def aperform(self, statement: Statement) -> list[Row]: ...
    def perform_many(self, statements: Sequence[Statement]) -> Sequence[Any]: ...
    async def aperform_many(self, statements: Sequence[Statement]) -> Sequence[Any]: ...
    def join(self, connection: Any) -> Any: ...
    def ajoin(self, connection: Any) -> Any: ...
    def close(self) -> None: ...


class SqlBackend(Backend):
    """The scripts of every SQL store."""

    poll_at_most = 0.05

    def __init__(self, performer: Performer, *, dialect: str) -> None:
        self._performer = performer
        self._dialect = dialect
        self._sql = statements(dialect)
        # In the caller's transaction a look would take a snapshot that a later write may not be allowed to leave.
        self._look_first = True

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        look = Statement(self._sql["look"], {"digest": request.identity.digest}, reads=True)
        looked = not self._look_first
        for _ in range(_LOOKS):
            if not looked:
                rows: list[Row] = yield look
                if rows:
                    claim = self._seen(_record(request.identity, rows[0]), request)
                    if claim is not None:
                        return claim
            looked = False
            rows = yield Statement(self._sql["claim"], self._claim_values(request))
            if rows:
                return Acquired(*rows[0])
        raise StoreUnavailable("The record changes faster than it can be read.")

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        rows: list[Row] = yield self._write("renew", lease, lease_for=lease_for, retain_for=retain_for)
        return Accepted(*rows[0]) if rows else LOST

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settle(State.DONE, lease, outcome, retain_for)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settle(State.FAILED, lease, outcome, retain_for)

    def release(self, lease: Lease) -> Script[Answer]:
        rows: list[Row] = yield self._write("release", lease)
        return Accepted(*rows[0]) if rows else LOST

    def forget(self, identity: Identity) -> Script[Answer]:
        rows: list[Row] = yield Statement(self._sql["forget"], {"digest": identity.digest})
        return Accepted(*rows[0]) if rows and rows[0][0] is not None else LOST

    def read(self, identity: Identity) -> Script[Record | None]:
        rows: list[Row] = yield Statement(self._sql["look"], {"digest": identity.digest}, reads=True)
        record = _record(identity, rows[0]) if rows else None
        return None if record is None or record.expires_at <= self._performer.now() else record

    def forget_where(self, selection: Selection) -> Script[int]:
        where = Where()
        where.equals("tenant", selection.tenant)
        where.equals("scope", selection.scope)
        where.tagged(selection.tag)
        rows: list[Row] = yield where.statement(self._sql["forget_where"])
        return int(rows[0][0])

    def find(self, query: Query) -> Script[Page]:
        where = Where()
        where.add("expires_at > :now")
        where.equals("tenant", query.tenant)
        where.equals("scope", query.scope)
        where.equals("state", query.state and query.state.value)
        where.equals("route", query.route)
        where.equals("http_method", query.method)
        where.equals("status_code", query.status)
        where.tagged(query.tag)
        if query.key_prefix is not None:
            where.add("substr(key, 1, :key_length) = :key", key=query.key_prefix, key_length=len(query.key_prefix))
        if query.created_from is not None:
            where.add("created_at >= :created_from", created_from=query.created_from)
        if query.created_before is not None:
            where.add("created_at < :created_before", created_before=query.created_before)
        if query.after is not None:
            created_at, digest = cursor_position(query.after)
            where.add("(created_at, digest) < (:after_time, :after_digest)", after_time=created_at, after_digest=digest)
        where.values["limit"] = query.limit + 1
        rows: list[Row] = yield where.statement(self._sql["find"], reads=True)
        records = [_record(Identity(*row[:4]), row[4:]) for row in rows[: query.limit]]
        return Page(records, cursor(records[-1]) if len(rows) > query.limit else None)

    def prune(self, limit: int) -> Script[int]:
        rows: list[Row] = yield Statement(self._sql["prune"], {"limit": limit})
        return int(rows[0][0])

    @contextmanager
    def join(self, connection: Any) -> Iterator[Backend]:
        with self._performer.join(connection) as performer:
            yield self._inside(performer)

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[Backend]:
        async with self._performer.ajoin(connection) as performer:
            yield self._inside(performer)

    def close(self) -> None:
        self._performer.close()

    def perform(self, command: Statement) -> Any:
        return self._performer.perform(command)

    async def aperform(self, command: Statement) -> Any:
        return await self._performer.aperform(command)

    def perform_many(self, commands: Sequence[Statement]) -> Sequence[Any]:
        return self._performer.perform_many(commands)

    async def aperform_many(self, commands: Sequence[Statement]) -> Sequence[Any]:
        return await self._performer.aperform_many(commands)

    def _inside(self, performer: Performer) -> SqlBackend:
        inside = SqlBackend(performer, dialect=self._dialect)
        inside._look_first = False
        return inside

    def _seen(self, record: Record, request: ClaimRequest) -> Claim | None:
        """The answer to a claim by the look of the record; None where it may be taken, which a statement has to do."""
        _, claim = protocol.claim(record, request, self._performer.now())
        return None if isinstance(claim, Acquired) else claim

    def _claim_values(self, request: ClaimRequest) -> dict[str, Any]:
        identity, about = request.identity, request.about
        return {
            "digest": identity.digest,
            "tenant": identity.tenant,
            "scope": identity.scope,
            "key": identity.key,
            "fingerprint": request.fingerprint,
            "attempt_id": request.attempt_id,
            "owner": about.owner,
            "lease_for": request.lease_for,
            "retain_for": request.retain_for,
            "route": about.route or None,
            "http_method": about.method or None,
            "tags": _tags_text(about.tags),
            "audit_meta": _json_text(about.audit),
        }

    def _settle(self, state: State, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        rows: list[Row] = yield self._write(
            "settle",
            lease,
            state=state.value,
            retain_for=retain_for,
            outcome=outcome.data,
            content_type=outcome.media_type,
            status_code=outcome.meta.get("status"),
            meta=_json_text(outcome.meta),
        )
        if not rows:
            rows = yield self._write("settled_by_me", lease, state=state.value)
        return Accepted(*rows[0]) if rows else LOST

    def _write(self, name: str, lease: Lease, **values: Any) -> Statement:
        values.update(digest=lease.identity.digest, fence=lease.fence, attempt_id=lease.attempt_id)
        return Statement(self._sql[name], values)


class Where:
    """The conditions of a statement and their values."""

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.values: dict[str, Any] = {}

    def add(self, condition: str, **values: Any) -> None:
        self._conditions.append(condition)
        self.values.update(values)

    def equals(self, column: str, value: Any) -> None:
        if value is not None:
            self.add(f"{column} = :{column}", **{column: value})

    def tagged(self, tag: str | None) -> None:
        if tag is not None:
            self.add("tags <> '' AND instr(tags, :tag) > 0", tag=_tags_text((tag,)))

    def statement(self, sql: str, *, reads: bool = False) -> Statement:
        return Statement(sql.replace("{conditions}", " AND ".join(self._conditions)), self.values, reads)


_BREAK = re.compile(r"[\r\n]")


def _tags_text(tags: Sequence[str]) -> str:
    """Each tag between line breaks, so that one is found whole or not at all."""
    if not tags:
        return ""
    for tag in tags:
        if not tag or _BREAK.search(tag):
            raise ValueError(f"{tag!r} is not a tag: it must be one line of text")
    return "\n" + "\n".join(tags) + "\n"


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value else ""


def _from_json(text: str) -> Any:
    return msgspec.json.decode(text) if text else {}


def _record(identity: Identity, row: Row) -> Record:
    (
        fingerprint,
        state,
        fence,
        attempt,
        attempt_id,
        lease_until,
        created_at,
        expires_at,
        completed_at,
        outcome,
        content_type,
        meta,
        owner,
        tags,
        route,
        method,
        audit,
    ) = row
    return Record(
        identity,
        fingerprint,
        _STATES[state],
        fence,
        attempt,
        attempt_id,
        lease_until,
        created_at,
        expires_at,
        completed_at,
        None if completed_at is None else Outcome(outcome or b"", content_type or "", _from_json(meta)),
        About(owner, tuple(tags.split("\n")[1:-1]) if tags else (), route or "", method or "", _from_json(audit)),
    )
