"""Records in PostgreSQL, over psycopg directly: one round trip to claim, one to complete.

No session is ever given a setting, a lock or a temporary table, so a transaction pooler may stand between; through one,
statements have no names unless `prepare_threshold` says so (PgBouncer keeps them since 1.21). Wake-ups by NOTIFY need
the server itself: `listen_url` is its direct address; without one, waiters poll. Every write waits for the disk, also
where `synchronous_commit` is off for others.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import lru_cache
from operator import itemgetter
from time import sleep
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, finalize

import psycopg
from psycopg import AsyncRawCursor, RawCursor

from sameas.once.errors import StoreClosed, StoreError, StoreMisconfigured, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.once.record import LOST, Accepted, Acquired, Answer, Busy, Claim, ClaimRequest, Renewal
from sameas.once.script import Script, run
from sameas.once.store import Renewed
from sameas.stores.faults import TRIES, Conflict, Disconnected, RowLocked, from_postgres, pause_after
from sameas.stores.postgres_connection import AnswerTimedOut
from sameas.stores.postgres_pool import (
    AsyncPool,
    AsyncSession,
    Options,
    Pool,
    PrepareThreshold,
    Session,
    is_broken,
    refuse_pooled_listening,
)
from sameas.stores.postgres_waker import PostgresWaker
from sameas.stores.rows import Row, claim_values
from sameas.stores.sql import (
    IMPATIENT,
    LOOKS,
    RENEWED_TOGETHER,
    SqlBackend,
    Statement,
    at_most,
    batches,
    is_current,
    migrate,
    seen,
)
from sameas.stores.statements import styled
from sameas.stores.transaction import AsyncEnlisted, Enlisted, aenlisted, enlisted

_log = logging.getLogger("sameas.postgres")

Bound = tuple[str, Sequence[Any]]

# Claims sent in one go are one transaction: few enough that nobody waits long for its end.
_GROUP = 100


class PostgresBackend(SqlBackend):
    """The SQL scripts, with the claim in one statement."""

    waits_for_rows: ClassVar[bool] = True
    guards: ClassVar[bool] = True

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        return self._patiently(request) if self._joined else self._claim(request)

    def _claim(self, request: ClaimRequest) -> Script[Claim]:
        for _ in range(LOOKS):
            try:
                rows: list[Row] = yield self._take(request)
            except RowLocked as locked:
                if self._joined:
                    raise
                return Busy(locked.waited_for)
            row = rows[0]
            if row[0] is not None:
                return Acquired(*row[0])
            # Another transaction may have made or changed the record since the statement began: then it is asked again.
            claim = None if row[2] is None else seen(row[1:], request)
            if claim is not None:
                return claim
        raise StoreUnavailable("The record changes faster than it can be read.")

    def renew_many(self, renewals: Sequence[Renewal]) -> Sequence[Script[Renewed]]:
        return [self._renew_group(group) for group in batches(renewals, RENEWED_TOGETHER)]

    def _renew_group(self, renewals: Sequence[Renewal]) -> Script[Renewed]:
        values = {
            "digests": [renewal.lease.identity.digest for renewal in renewals],
            "fences": [renewal.lease.fence for renewal in renewals],
            "attempt_ids": [renewal.lease.attempt_id for renewal in renewals],
            "leases_for": [renewal.lease_for for renewal in renewals],
            "retained_for": [renewal.retain_for for renewal in renewals],
        }
        try:
            rows: list[Row] = yield Statement(self._sql["renew_many"], values)
        except StoreError as error:
            return [error] * len(renewals)
        return [_renewed(*row) for row in rows]

    def _take(self, request: ClaimRequest) -> Statement:
        values = claim_values(request)
        # A transaction's own locks hold until its end; the many keys of a long one would fill the server's lock table.
        latch = None if self._joined else int.from_bytes(request.identity.digest[:8], "big", signed=True)
        values["latch"] = latch
        if request.lock_wait is not None:
            values["lock_wait"] = max(request.lock_wait, IMPATIENT) // 1_000
        return Statement(self._sql["claim"], values)


def _renewed(now: int, expires_at: int | None, was_mine: bool) -> Answer | StoreError:
    if expires_at is not None:
        return Accepted(now, expires_at)
    return RowLocked("Another transaction holds the record.") if was_mine else LOST


class PostgresPerformer:
    """Runs statements on pooled connections, each its own transaction; conflicts are run again within a bound."""

    def __init__(
        self,
        conninfo: str,
        *,
        pool_size: int = 10,
        timeout: float = 5.0,
        lock_timeout: float = 2.0,
        prepare_threshold: PrepareThreshold = "auto",
        strict: bool = True,
        skew: int = 0,
    ) -> None:
        if pool_size < 1 or timeout <= 0 or not 0 < lock_timeout <= timeout:
            raise ValueError("pool_size and timeout must be positive, and lock_timeout not beyond the timeout")
        # Microseconds that the server's clock is taken to be ahead: how tests let time pass.
        self.skew = skew
        self._lock_wait = str(round(lock_timeout * 1_000))
        self._lock_timeout = lock_timeout
        # One object for all who reach this database in this process.
        self.place: object = sys.intern(f"postgres {conninfo}")
        self._size = pool_size
        self._options = Options(conninfo, timeout=timeout, prepare_threshold=prepare_threshold, strict=strict)
        self._inherited: list[Any] = []
        self._closed = False
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append((self._pool, dict(self._pools)))
        self._renew()

    def _renew(self) -> None:
        self._pool = Pool(self._options, size=self._size)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncPool] = WeakKeyDictionary()

    def perform(self, statement: Statement) -> list[Row]:
        sql, values = self._bound(statement)
        for tries in range(1, TRIES + 1):
            taken = self._pool.take()
            session, cursor = taken
            try:
                return cursor.ask(sql, values)
            except psycopg.Error as error:
                self._after(error, session, tries)
            finally:
                self._pool.give_back(taken)
            sleep(pause_after(tries))
        raise AssertionError("the last try raises")

    async def aperform(self, statement: Statement) -> list[Row]:
        sql, values = self._bound(statement)
        pool = self._loop_pool()
        for tries in range(1, TRIES + 1):
            taken = await pool.take()
            session, cursor = taken
            try:
                return await cursor.ask(sql, values)
            except psycopg.Error as error:
                self._after(error, session, tries)
            finally:
                await pool.give_back(taken)
            await asyncio.sleep(pause_after(tries))
        raise AssertionError("the last try raises")

    def perform_many(self, statements: Sequence[Statement]) -> list[Any]:
        """Many statements, pipelined in groups; a group that fails as a whole is run one by one."""
        replies: list[Any] = [None] * len(statements)
        for numbers in _groups(statements):
            taken = self._pool.take()
            try:
                found = _pipelined(taken[0], [self._bound(statements[number]) for number in numbers])
                for number, rows in zip(numbers, found, strict=True):
                    replies[number] = rows
                continue
            except psycopg.Error:
                self._pool.clear()
            finally:
                self._pool.give_back(taken)
            for number in numbers:
                try:
                    replies[number] = self.perform(statements[number])
                except StoreError as error:
                    replies[number] = error
        return replies

    async def aperform_many(self, statements: Sequence[Statement]) -> list[Any]:
        replies: list[Any] = [None] * len(statements)
        pool = self._loop_pool()
        for numbers in _groups(statements):
            taken = await pool.take()
            try:
                found = await _apipelined(taken[0], [self._bound(statements[number]) for number in numbers])
                for number, rows in zip(numbers, found, strict=True):
                    replies[number] = rows
                continue
            except psycopg.Error:
                pool.clear()
            finally:
                await pool.give_back(taken)
            for number in numbers:
                try:
                    replies[number] = await self.aperform(statements[number])
                except StoreError as error:
                    replies[number] = error
        return replies

    @contextmanager
    def join(self, connection: Any) -> Iterator[Enlisted]:
        """The caller's connection: SQLAlchemy's Connection or Session, or psycopg's own."""
        with enlisted(connection, dialect="postgres", extras=self._extras()) as performer:
            yield performer

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[AsyncEnlisted]:
        """The caller's connection: SQLAlchemy's AsyncConnection or AsyncSession, or psycopg's own."""
        async with aenlisted(connection, dialect="postgres", extras=self._extras()) as performer:
            yield performer

    def migrate(self) -> None:
        """Make or upgrade the tables; safe from many processes at once."""
        if run(is_current("postgres"), self.perform):
            return
        taken = self._pool.take()
        try:
            with taken[0].transaction():
                run(migrate("postgres"), lambda statement: _execute(taken[1], *self._bound(statement)))
        except psycopg.Error as error:
            raise from_postgres(error) from error
        finally:
            self._pool.give_back(taken)

    def close(self) -> None:
        self._closed = self._pool.closed = True
        self._pool.clear()
        for pool in list(self._pools.values()):
            pool.closed = True
            pool.clear()

    async def aclose(self) -> None:
        self.close()

    def _extras(self) -> dict[str, Any]:
        return {"skew": self.skew, "lock_wait": self._lock_wait}

    def _bound(self, statement: Statement) -> Bound:
        sql, pick = _numbered(statement.sql)
        values = statement.values
        values["skew"] = self.skew
        values["lock_wait"] = at_most(self._lock_wait, values.get("lock_wait"))
        return sql, pick(values)

    def _loop_pool(self) -> AsyncPool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            if self._closed:
                raise StoreClosed
            pool = self._pools[loop] = AsyncPool(self._options, size=self._size)
            finalize(loop, pool.clear)
        return pool

    def _after(self, error: psycopg.Error, session: Session | AsyncSession, tries: int) -> None:
        """Raise what the error means, unless the statement may be run again."""
        fault = from_postgres(error)
        if isinstance(fault, Conflict) and tries < TRIES:
            return
        if is_broken(session):
            timed_out = isinstance(error, AnswerTimedOut)
            session.pgconn.finish()
            if session.reused and not timed_out and tries < TRIES:
                # The server was restarted while this connection was idle; so were the others. Every statement may be
                # run twice: a repeated claim or write of the same attempt is told what the first one did.
                self._pool.clear()
                for pool in list(self._pools.values()):
                    pool.clear()
                return
            if not isinstance(fault, Disconnected):
                fault = Disconnected(str(fault))
        if isinstance(fault, RowLocked):
            fault.waited_for = round(self._lock_timeout * 1_000_000)
        raise fault from error


def open_backend(
    url: str,
    *,
    pool_size: int = 10,
    timeout: float = 5.0,
    lock_timeout: float = 2.0,
    listen_url: str | None = None,
    prepare_threshold: PrepareThreshold = "auto",
    strict: bool = True,
    skew: int = 0,
    create: bool = True,
) -> PostgresBackend:
    """Records in the PostgreSQL database of `postgresql+psycopg://user@host:port/database`.

    No call waits longer than `timeout` seconds for a connection or an answer, nor longer than `lock_timeout` for a row
    that a transaction holds. `create=False` leaves the tables to somebody with more rights. `strict` refuses a server
    that does not wait for its disk. `prepare_threshold` is how often a statement is sent before it gets a name: if
    nothing is said 5 times, and never through a pooler.
    """
    performer = PostgresPerformer(
        conninfo(url),
        pool_size=pool_size,
        timeout=timeout,
        lock_timeout=lock_timeout,
        prepare_threshold=prepare_threshold,
        strict=strict,
        skew=skew,
    )
    try:
        if create:
            performer.migrate()
        if listen_url is not None:
            _check_listening(conninfo(listen_url))
    except BaseException:
        performer.close()
        raise
    backend = PostgresBackend(performer, dialect="postgres")
    if listen_url is not None:
        backend.waker = PostgresWaker(conninfo(listen_url))
        # The poll beneath is only for a wake-up that got lost.
        backend.poll_at_most = 0.25
    return backend


def _check_listening(address: str) -> None:
    try:
        refuse_pooled_listening(address)
    except psycopg.Error as error:
        fault = from_postgres(error)
        if isinstance(fault, StoreMisconfigured):
            raise fault from error
        # Nothing relies on wake-ups: one that cannot be listened to now is tried again, and waiters poll meanwhile.
        _log.warning("listen_url cannot be reached (%s); waiters poll until it can", fault)


def conninfo(url: str) -> str:
    """A URL as libpq reads it: without the name of a driver."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.partition('+')[0]}://{rest}"


@lru_cache(maxsize=512)
def _numbered(sql: str) -> tuple[str, Callable[[Mapping[str, Any]], Sequence[Any]]]:
    """A statement with numbered values, and what picks them in their order."""
    text, names = styled(sql, "numeric_dollar")
    assert names is not None
    if len(names) > 1:
        return text, itemgetter(*names)
    return text, lambda values: [values[name] for name in names]


def _execute(cursor: RawCursor[Any], sql: str, values: Sequence[Any]) -> list[Row]:
    # Not prepared: a step of a migration is many statements.
    cursor.execute(sql, values or None, prepare=False)
    return cursor.fetchall() if _has_rows(cursor) else [(cursor.rowcount,)]


def _has_rows(cursor: RawCursor[Any] | AsyncRawCursor[Any]) -> bool:
    # `description` would describe every column first, which takes longer than to fetch the row.
    result = cursor.pgresult
    return result is not None and result.nfields > 0


def _groups(statements: Sequence[Statement]) -> Iterator[list[int]]:
    """The numbers of the statements, in the order of their keys: two groups never wait for each other in a circle."""
    order = sorted(range(len(statements)), key=lambda number: (statements[number].values.get("digest", b""), number))
    for start in range(0, len(order), _GROUP):
        yield order[start : start + _GROUP]


def _pipelined(session: Session, bound: Sequence[Bound]) -> list[list[Row]]:
    cursors = []
    with session.pipeline():
        for sql, values in bound:
            cursor = RawCursor(session)
            cursor.execute(sql, values, binary=True)
            cursors.append(cursor)
    return [cursor.fetchall() if _has_rows(cursor) else [(cursor.rowcount,)] for cursor in cursors]


async def _apipelined(session: AsyncSession, bound: Sequence[Bound]) -> list[list[Row]]:
    cursors = []
    async with session.pipeline():
        for sql, values in bound:
            cursor = AsyncRawCursor(session)
            await cursor.execute(sql, values, binary=True)
            cursors.append(cursor)
    return [await cursor.fetchall() if _has_rows(cursor) else [(cursor.rowcount,)] for cursor in cursors]
