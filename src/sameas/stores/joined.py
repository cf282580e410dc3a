"""The caller's own connection as a place to run statements: what is written there is committed by the caller, or
never was.

A savepoint surrounds the writes of one call, so that a call that fails leaves the rest of the transaction as it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from sameas.once.errors import TransactionEnded, TransactionRefused
from sameas.stores.sql import Row, Statement
from sameas.stores.sqlite_file import translated

_NUMBERS = count(1)
_FILES = "PRAGMA database_list"
# Takes SQLite's write lock without writing, so that the clock is read while nobody else can write.
_LOCK = Statement("DELETE FROM sameas_records WHERE digest = x''", {})


class Joined:
    """A sqlite3 connection, or a SQLAlchemy connection or session."""

    def __init__(self, connection: Any, now: Callable[[], int]) -> None:
        self._connection = connection
        self.now = now

    def perform(self, statement: Statement) -> list[Row]:
        return self.execute(statement.sql, {**statement.values, "now": self.now()})

    def execute(self, sql: str, values: dict[str, Any] | None = None) -> list[Row]:
        try:
            if isinstance(self._connection, sqlite3.Connection):
                found = self._connection.execute(sql, values or {})
                return found.fetchall() if found.description is not None else [(found.rowcount,)]
            return _rows(self._connection.exec_driver_sql(sql, values or {}))
        except Exception as error:
            raise fault(error) from error


class AsyncJoined:
    """A SQLAlchemy AsyncConnection or AsyncSession."""

    def __init__(self, connection: Any, now: Callable[[], int]) -> None:
        self._connection = connection
        self.now = now

    async def aperform(self, statement: Statement) -> list[Row]:
        return await self.execute(statement.sql, {**statement.values, "now": self.now()})

    async def execute(self, sql: str, values: dict[str, Any] | None = None) -> list[Row]:
        try:
            return _rows(await self._connection.exec_driver_sql(sql, values or {}))
        except Exception as error:
            raise fault(error) from error


@contextmanager
def joined(connection: Any, path: str, now: Callable[[], int]) -> Iterator[Joined]:
    """Run statements in the caller's transaction; an error undoes them and leaves the transaction open."""
    if hasattr(connection, "connection") and callable(connection.connection):
        connection = connection.connection()
    _refuse_stranger(connection)
    raw = connection if isinstance(connection, sqlite3.Connection) else connection.connection.dbapi_connection
    performer = Joined(connection, now)
    _refuse_other_file(performer.execute(_FILES), path)
    if not raw.in_transaction:
        _refuse_autocommit(raw)
        performer.execute("BEGIN IMMEDIATE")
    savepoint = f"sameas_{next(_NUMBERS)}"
    performer.execute(f"SAVEPOINT {savepoint}")
    try:
        performer.perform(_LOCK)
        yield performer
    except BaseException as error:
        # Where the transaction was ended, the savepoint is gone with it.
        with suppress(TransactionEnded):
            performer.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
            performer.execute(f"RELEASE SAVEPOINT {savepoint}")
        if isinstance(error, TransactionEnded):
            with suppress(Exception):
                connection.rollback()
        raise
    try:
        performer.execute(f"RELEASE SAVEPOINT {savepoint}")
    except TransactionEnded:
        with suppress(Exception):
            connection.rollback()
        raise


@asynccontextmanager
async def ajoined(connection: Any, path: str, now: Callable[[], int]) -> AsyncIterator[AsyncJoined]:
    """`joined`, for tasks."""
    if not hasattr(connection, "get_raw_connection") and callable(getattr(connection, "connection", None)):
        connection = await connection.connection()
    _refuse_stranger(connection)
    raw = (await connection.get_raw_connection()).driver_connection
    performer = AsyncJoined(connection, now)
    _refuse_other_file(await performer.execute(_FILES), path)
    if not raw.in_transaction:
        _refuse_autocommit(raw)
        await performer.execute("BEGIN IMMEDIATE")
    savepoint = f"sameas_{next(_NUMBERS)}"
    await performer.execute(f"SAVEPOINT {savepoint}")
    try:
        await performer.aperform(_LOCK)
        yield performer
    except BaseException as error:
        with suppress(TransactionEnded):
            await performer.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
            await performer.execute(f"RELEASE SAVEPOINT {savepoint}")
        if isinstance(error, TransactionEnded):
            with suppress(Exception):
                await connection.rollback()
        raise
    try:
        await performer.execute(f"RELEASE SAVEPOINT {savepoint}")
    except TransactionEnded:
        with suppress(Exception):
            await connection.rollback()
        raise


def fault(error: Exception) -> Exception:
    """What an error of the caller's own connection means to callers."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, sqlite3.Error):
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


def _refuse_autocommit(raw: Any) -> None:
    if raw.isolation_level is None:
        raise ValueError("the connection is in autocommit mode and no transaction is open: begin one first")


def _rows(result: Any) -> list[Row]:
    return result.fetchall() if result.returns_rows else [(result.rowcount,)]
