"""The caller's own connection as a place to run statements: what is written there is committed by the caller, or never
was.

A savepoint surrounds the writes of one call, so that a call that fails leaves the rest of the transaction as it was.
The write lock is taken with the first statement, which says how long it may wait for others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from sameas.once.errors import TransactionEnded, TransactionRefused
from sameas.once.script import Script, arun, run
from sameas.stores.sql import Row, Statement
from sameas.stores.sqlite_file import IMPATIENT, file_locked, translated

_NUMBERS = count(1)
_FILES = "PRAGMA database_list"
_TIMEOUT = "PRAGMA busy_timeout"
# Takes SQLite's write lock without writing, so that the clock is read while nobody else can write.
_LOCK = "DELETE FROM sameas_records WHERE digest = x''"
_AUTOCOMMIT = "the connection is in autocommit mode and no transaction is open: begin one first"


class _Place:
    """The caller's connection, and how far its transaction is ours to use."""

    def __init__(self, connection: Any, raw: Any, now: Callable[[], int]) -> None:
        self.connection = connection
        self.now = now
        self.is_locked = self._is_saved = False
        self._raw = raw
        self._savepoint = f"sameas_{next(_NUMBERS)}"

    def lock(self, lock_wait: int | None) -> Script[None]:
        """Take the write lock, waiting no longer than the first statement may, and than the caller does."""
        ((before,),) = yield _TIMEOUT
        if lock_wait is not None:
            yield f"{_TIMEOUT} = {min(before, round(max(lock_wait / 1_000, IMPATIENT * 1_000)))}"
        try:
            if not self._raw.in_transaction:
                if self._raw.isolation_level is None:
                    raise ValueError(_AUTOCOMMIT)
                yield "BEGIN IMMEDIATE"
            if not self._is_saved:
                yield f"SAVEPOINT {self._savepoint}"
                self._is_saved = True
            yield _LOCK
            self.is_locked = True
        finally:
            yield f"{_TIMEOUT} = {before}"

    def keep(self) -> Script[None]:
        """Leave what was written to the caller's transaction."""
        if self._is_saved:
            yield f"RELEASE SAVEPOINT {self._savepoint}"

    def roll_back(self) -> Script[None]:
        """Take back what was written; if the transaction was ended, the savepoint is gone with it."""
        if self._is_saved:
            with suppress(TransactionEnded):
                yield f"ROLLBACK TO SAVEPOINT {self._savepoint}"
                yield f"RELEASE SAVEPOINT {self._savepoint}"


class Joined(_Place):
    """A sqlite3 connection, or a SQLAlchemy connection or session."""

    def perform(self, statement: Statement) -> list[Row]:
        if not self.is_locked:
            run(self.lock(statement.lock_wait), self.execute)
        return self.execute(statement.sql, {**statement.values, "now": self.now()})

    def execute(self, sql: str, values: dict[str, Any] | None = None) -> list[Row]:
        try:
            if isinstance(self.connection, sqlite3.Connection):
                return _plain_rows(self.connection, sql, values or {})
            return _rows(self.connection.exec_driver_sql(sql, values or {}))
        except Exception as error:
            raise fault(error) from error


class AsyncJoined(_Place):
    """A SQLAlchemy AsyncConnection or AsyncSession."""

    async def aperform(self, statement: Statement) -> list[Row]:
        if not self.is_locked:
            await arun(self.lock(statement.lock_wait), self.execute)
        return await self.execute(statement.sql, {**statement.values, "now": self.now()})

    async def execute(self, sql: str, values: dict[str, Any] | None = None) -> list[Row]:
        try:
            return _rows(await self.connection.exec_driver_sql(sql, values or {}))
        except Exception as error:
            raise fault(error) from error


@contextmanager
def joined(connection: Any, path: str, now: Callable[[], int]) -> Iterator[Joined]:
    """Run statements in the caller's transaction; an error undoes them and leaves the transaction open."""
    if _is_session(connection):
        connection = connection.connection()
    _refuse_stranger(connection)
    raw = connection if isinstance(connection, sqlite3.Connection) else connection.connection.dbapi_connection
    performer = Joined(connection, raw, now)
    _refuse_other_file(performer.execute(_FILES), path)
    try:
        yield performer
    except BaseException as error:
        run(performer.roll_back(), performer.execute)
        if isinstance(error, TransactionEnded):
            with suppress(Exception):
                connection.rollback()
        raise
    try:
        run(performer.keep(), performer.execute)
    except TransactionEnded:
        with suppress(Exception):
            connection.rollback()
        raise


@asynccontextmanager
async def ajoined(connection: Any, path: str, now: Callable[[], int]) -> AsyncIterator[AsyncJoined]:
    """`joined`, for tasks."""
    if not hasattr(connection, "get_raw_connection") and _is_session(connection):
        connection = await connection.connection()
    _refuse_stranger(connection)
    raw = (await connection.get_raw_connection()).driver_connection
    performer = AsyncJoined(connection, raw, now)
    _refuse_other_file(await performer.execute(_FILES), path)
    try:
        yield performer
    except BaseException as error:
        await arun(performer.roll_back(), performer.execute)
        if isinstance(error, TransactionEnded):
            with suppress(Exception):
                await connection.rollback()
        raise
    try:
        await arun(performer.keep(), performer.execute)
    except TransactionEnded:
        with suppress(Exception):
            await connection.rollback()
        raise


def fault(error: Exception) -> Exception:
    """What an error of the caller's own connection means to callers."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, sqlite3.Error):
        if getattr(original, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            return file_locked()
        return TransactionEnded() if "no such savepoint" in str(original) else translated(original)
    # SQLAlchemy's own: the connection, or its transaction, was closed.
    return TransactionEnded() if type(error).__module__.startswith("sqlalchemy.") else error


def _refuse_stranger(connection: Any) -> None:
    dialect = getattr(getattr(connection, "dialect", None), "name", "")
    if not isinstance(connection, sqlite3.Connection) and dialect != "sqlite":
        raise TransactionRefused(
            f"The records are in a SQLite file, and the connection is a {type(connection).__qualname__}"
            f"{f' to {dialect}' if dialect else ''}: pass one to the same file, or leave connection= out."
        )


def _refuse_other_file(files: list[Row], path: str) -> None:
    """The records must be in the file that the caller's transaction writes to."""
    main = next((file for _, name, file in files if name == "main"), "")
    if not main or not Path(main).samefile(path):
        raise TransactionRefused(
            f"The records are in {path}, and the connection is to {main or 'memory'}: one transaction holds only in one"
            " file. Pass a connection to the same file, or leave connection= out."
        )


def _is_session(connection: Any) -> bool:
    # A cursor of sqlite3 has its connection there, which can be called, too.
    return callable(getattr(connection, "connection", None)) and not isinstance(connection, sqlite3.Cursor)


def _plain_rows(connection: sqlite3.Connection, sql: str, values: dict[str, Any]) -> list[Row]:
    """Rows and texts as they are, whatever the caller has them made into."""
    made, connection.text_factory = connection.text_factory, str
    try:
        found = sqlite3.Cursor(connection).execute(sql, values)
        return found.fetchall() if found.description is not None else [(found.rowcount,)]
    finally:
        connection.text_factory = made


def _rows(result: Any) -> list[Row]:
    return result.fetchall() if result.returns_rows else [(result.rowcount,)]
