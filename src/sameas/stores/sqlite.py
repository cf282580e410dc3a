"""A SQLite file as a place to run statements: WAL mode, one writer at a time, safe over processes and after a fork."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar

from sameas.once.errors import (
    NestedInTransaction,
    StoreClosed,
    StoreMisconfigured,
    StoreUnavailable,
)
from sameas.once.forks import hold_across_forks, renew_after_fork
from sameas.stores.joined import AsyncJoined, Joined, ajoined, joined
from sameas.stores.memory import system_micros
from sameas.stores.sql import Row, SqlBackend, Statement
from sameas.stores.sqlite_file import IMPATIENT, file_locked, is_busy, open_sqlite, switch_to_wal, translated, when_free
from sameas.stores.sqlite_writer import Begin, SqliteWriter
from sameas.stores.statements import migrations


class _Transaction:
    """A caller's transaction on a file, while it lasts; tasks that it started may outlive it and inherit this."""

    def __init__(self, path: str) -> None:
        self.path: str | None = path


# The transactions of this thread or task: a call beside one of them, on its file, would wait for itself.
_JOINED: ContextVar[tuple[_Transaction, ...]] = ContextVar("sameas_joined", default=())

# SQLite passes over a word that it does not know.
_SYNCHRONOUS = ("EXTRA", "FULL", "NORMAL", "OFF")


class _Connection(sqlite3.Connection):
    """A connection that knows whether its commits wait for the disk."""

    durable = True


class _Undone(Exception):
    """A statement failed in a way, as on a full disk, that undoes its whole transaction."""

    def __init__(self, error: sqlite3.Error, statements: Sequence[Statement]) -> None:
        self.error = error
        self.statements = statements
        super().__init__(str(error))


class SqlitePerformer:
    """A SQLite file. Every write waits for the write lock first and then reads the clock, so that times never go back.

    Connections are kept for reuse, one per caller at a time; a forked child opens its own.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        busy_timeout: float = 10.0,
        synchronous: str = "FULL",
        clock: Callable[[], int] = system_micros,
    ) -> None:
        if synchronous.upper() not in _SYNCHRONOUS:
            raise ValueError(f"synchronous must be one of {', '.join(_SYNCHRONOUS)}, not {synchronous!r}")
        self.path = str(Path(path).absolute())
        self.now = clock
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous.upper()
        self._closed = self._closing = False
        self._writer: SqliteWriter | None = None
        # One writer per process at a time: threads queue here, only processes meet at the file.
        self._writing = RLock()
        self._idle: list[_Connection] = []
        self._inherited: list[list[_Connection]] = []
        renew_after_fork(self)
        hold_across_forks(self)
        self._migrate()

    def before_fork(self) -> None:
        # SQLite notes in memory which locks this process holds, and a child inherits the note: none may be held.
        self._writing.acquire(timeout=self._busy_timeout)

    def after_fork_in_parent(self) -> None:
        _let_go(self._writing)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append(self._idle)
        self._idle = []
        self._writing = RLock()
        self._writer = None

    def perform(self, statement: Statement) -> list[Row]:
        return self._perform(statement, self._busy_timeout)

    def _perform(self, statement: Statement, seconds: float) -> list[Row]:
        self._refuse_nested()
        connection = self._take()
        try:
            if statement.reads:
                rows = self._read(connection, statement, time.monotonic() + seconds)
            else:
                rows = self._write(connection, [statement])[0]
                if isinstance(rows, Exception):
                    raise rows
        except sqlite3.Error as error:
            raise translated(error) from error
        finally:
            self._give_back(connection)
        return rows

    def perform_many(self, statements: Sequence[Statement]) -> list[Any]:
        self._refuse_nested()
        try:
            return self._perform_together(statements)
        except sqlite3.Error as error:
            raise translated(error) from error

    def _perform_together(
        self, statements: Sequence[Statement], since: float | None = None, begin: Begin | None = None
    ) -> list[Any]:
        connection = self._take()
        try:
            if all(statement.reads for statement in statements):
                deadline = (time.monotonic() if since is None else since) + self._busy_timeout
                return [self._read(connection, statement, deadline) for statement in statements]
            return self._write(connection, statements, since, begin)
        finally:
            self._give_back(connection)

    async def aperform(self, statement: Statement) -> list[Row]:
        # A read in WAL mode takes microseconds and waits only for who repairs the file after a crash. Whatever may wait
        # goes to a thread.
        if statement.reads:
            try:
                return self._perform(statement, 0.0)
            except StoreUnavailable:
                return await asyncio.to_thread(self.perform, statement)
        (reply,) = await self.aperform_many([statement])
        if isinstance(reply, Exception):
            raise reply
        return reply  # type: ignore[no-any-return]

    async def aperform_many(self, statements: Sequence[Statement]) -> list[Any]:
        self._refuse_nested()
        if self._closing:
            raise StoreClosed
        if self._writer is None:
            self._writer = SqliteWriter(self._perform_together)
        try:
            waits = self._waits(statements)
            return await self._writer.ask(statements, waits if waits < self._busy_timeout else None)
        except sqlite3.Error as error:
            raise translated(error) from error

    @contextmanager
    def join(self, connection: Any) -> Iterator[Joined]:
        """The caller's connection: a sqlite3 connection, or a SQLAlchemy connection or session."""
        with self._joined(), joined(connection, self.path, self.now) as performer:
            yield performer

    @asynccontextmanager
    async def ajoin(self, connection: Any) -> AsyncIterator[AsyncJoined]:
        """The caller's SQLAlchemy AsyncConnection or AsyncSession."""
        with self._joined():
            async with ajoined(connection, self.path, self.now) as performer:
                yield performer

    @contextmanager
    def _joined(self) -> Iterator[None]:
        transaction, before = _Transaction(self.path), _JOINED.get()
        try:
            _JOINED.set((*before, transaction))
            yield
        finally:
            transaction.path = None
            _JOINED.set(before)

    def _refuse_nested(self) -> None:
        for transaction in _JOINED.get():
            if transaction.path == self.path:
                raise NestedInTransaction

    def close(self) -> None:
        self._closing = True
        if self._writer is not None:
            self._writer.close()
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def aclose(self) -> None:
        await asyncio.to_thread(self.close)

    def _take(self) -> _Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def _give_back(self, connection: _Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _open(self) -> _Connection:
        if self._closed:
            raise StoreClosed
        try:
            return open_sqlite(
                self.path,
                f"synchronous = {self._synchronous}",
                # What is forgotten is not left behind in the file.
                "secure_delete = ON",
                # From here on `_begin` does the waiting.
                "busy_timeout = 20",
                seconds=self._busy_timeout,
                kind=_Connection,
            )
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    def _waits(self, statements: Sequence[Statement]) -> float:
        """For how many seconds the most patient of these statements waits for the file."""
        longest = 0.0
        for statement in statements:
            if statement.lock_wait is None:
                return self._busy_timeout
            longest = max(longest, statement.lock_wait / 1e6)
        return min(max(longest, IMPATIENT), self._busy_timeout)

    def _write(
        self,
        connection: _Connection,
        statements: Sequence[Statement],
        since: float | None = None,
        begin: Begin | None = None,
    ) -> list[Any]:
        """All statements in one transaction, or each in its own where one undoes the others; the reply of one that
        failed is its error."""
        try:
            return self._write_together(connection, statements, since, begin)
        except _Undone as undone:
            statements = undone.statements
            if len(statements) == 1:
                return [translated(undone.error)]
        replies: list[Any] = []
        for statement in statements:
            # Those before it are written for good: what meets this one is its own.
            try:
                replies += self._write(connection, [statement])
            except sqlite3.Error as error:
                replies.append(translated(error))
        return replies

    def _write_together(
        self, connection: _Connection, statements: Sequence[Statement], since: float | None, begin: Begin | None
    ) -> list[Any]:
        replies: list[Any] = []
        waits = self._waits(statements)
        deadline = (time.monotonic() if since is None else since) + waits
        # An RLock, because it knows its owner: a signal may strike right after it was acquired.
        writing = self._writing
        try:
            writing.acquire(timeout=max(deadline - time.monotonic(), 0))
            self._sync(connection, durable=any(statement.durable for statement in statements))
            try:
                self._begin(connection, deadline)
            except sqlite3.OperationalError as error:
                if waits < self._busy_timeout and is_busy(error):
                    return [file_locked() for _ in statements]
                raise
            now = self.now()
            if begin is not None:
                statements = begin()
            for statement in statements:
                try:
                    replies.append(_execute(connection, statement, now))
                except (ValueError, OverflowError) as error:
                    # Values that cannot be bound: nothing was sent to SQLite.
                    replies.append(error)
                except sqlite3.Error as error:
                    if not connection.in_transaction:
                        raise _Undone(error, statements) from error
                    replies.append(translated(error))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            # A signal may strike here, too, but not twice.
            try:
                _let_go(writing)
            finally:
                _let_go(writing)
        return replies

    def _sync(self, connection: _Connection, *, durable: bool) -> None:
        """Whether the next commit waits for the disk. What does not wait is written with the next one that does."""
        if self._synchronous != "FULL" or connection.durable is durable:
            return
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.durable = durable

    def _read(self, connection: sqlite3.Connection, statement: Statement, deadline: float) -> list[Row]:
        return when_free(lambda: _execute(connection, statement, self.now()), deadline)

    def _begin(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Wait for the write lock."""
        when_free(lambda: connection.execute("BEGIN IMMEDIATE"), deadline)

    def _migrate(self) -> None:
        """Make or upgrade the tables; safe from many processes at once."""
        connection = self._take()
        try:
            if (mode := switch_to_wal(connection, self._busy_timeout)) != "wal":
                raise StoreMisconfigured(
                    f"{self.path} cannot be kept in WAL mode (it is {mode}): use a file on a local disk, or memory://"
                )
            deadline = time.monotonic() + self._busy_timeout
            # Looking needs no lock: who holds the file for long keeps nobody from opening it.
            if when_free(lambda: _is_current(connection), deadline):
                return
            self._begin(connection, deadline)
            connection.execute("CREATE TABLE IF NOT EXISTS sameas_schema (version INTEGER NOT NULL)")
            (there,) = connection.execute("SELECT coalesce(max(version), 0) FROM sameas_schema").fetchone()
            for number, migration in enumerate(migrations("sqlite"), 1):
                if number > there:
                    for sql in migration.split(";\n"):
                        connection.execute(sql)
                    connection.execute("INSERT INTO sameas_schema VALUES (?)", (number,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._give_back(connection)


class SqliteBackend(SqlBackend):
    """The SQL scripts; a claim that does not wait meets a file that another transaction holds."""

    waits_for_rows: ClassVar[bool] = True


def _let_go(lock: Any) -> None:
    """Release a lock, if it is this thread's."""
    if lock._is_owned():
        lock.release()


def _is_current(connection: sqlite3.Connection) -> bool:
    """Whether every migration that this release knows was made."""
    (there,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sameas_schema'").fetchone()
    if not there:
        return False
    (made,) = connection.execute("SELECT coalesce(max(version), 0) FROM sameas_schema").fetchone()
    return bool(made >= len(migrations("sqlite")))


def _execute(connection: sqlite3.Connection, statement: Statement, now: int) -> list[Row]:
    found = connection.execute(statement.sql, {**statement.values, "now": now})
    return found.fetchall() if found.description is not None else [(found.rowcount,)]
