"""The caller's own connection as a place to run statements: what is written there is committed by the caller, or
never was.

A savepoint surrounds the writes of one call, so that a call that fails leaves the rest of the transaction as it was.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any

from sameas.stores.sql import Row, Statement

_NUMBERS = count(1)
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
        if isinstance(self._connection, sqlite3.Connection):
            found = self._connection.execute(sql, values or {})
            return found.fetchall() if found.description is not None else [(found.rowcount,)]
        return _rows(self._connection.exec_driver_sql(sql, values or {}))


class AsyncJoined:
    """A SQLAlchemy AsyncConnection or AsyncSession."""

    def __init__(self, connection: Any, now: Callable[[], int]) -> None:
        self._connection = connection
        self.now = now

    async def aperform(self, statement: Statement) -> list[Row]:
        return await self.execute(statement.sql, {**statement.values, "now": self.now()})

    async def execute(self, sql: str, values: dict[str, Any] | None = None) -> list[Row]:
        return _rows(await self._connection.exec_driver_sql(sql, values or {}))


@contextmanager
def joined(connection: Any, now: Callable[[], int]) -> Iterator[Joined]:
    """Run statements in the caller's transaction; an error undoes them and leaves the transaction open."""
    if hasattr(connection, "connection") and callable(connection.connection):
        connection = connection.connection()
    raw = connection if isinstance(connection, sqlite3.Connection) else connection.connection.dbapi_connection
    performer = Joined(connection, now)
    if not raw.in_transaction:
        _refuse_autocommit(raw)
        performer.execute("BEGIN IMMEDIATE")
    savepoint = f"sameas_{next(_NUMBERS)}"
    performer.execute(f"SAVEPOINT {savepoint}")
    try:
        performer.perform(_LOCK)
        yield performer
    except BaseException:
        performer.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
        performer.execute(f"RELEASE SAVEPOINT {savepoint}")
        raise
    performer.execute(f"RELEASE SAVEPOINT {savepoint}")


@asynccontextmanager
async def ajoined(connection: Any, now: Callable[[], int]) -> AsyncIterator[AsyncJoined]:
    """`joined`, for tasks."""
    if not hasattr(connection, "get_raw_connection"):
        connection = await connection.connection()
    raw = (await connection.get_raw_connection()).driver_connection
    performer = AsyncJoined(connection, now)
    if not raw.in_transaction:
        _refuse_autocommit(raw)
        await performer.execute("BEGIN IMMEDIATE")
    savepoint = f"sameas_{next(_NUMBERS)}"
    await performer.execute(f"SAVEPOINT {savepoint}")
    try:
        await performer.aperform(_LOCK)
        yield performer
    except BaseException:
        await performer.execute(f"ROLLBACK TO SAVEPOINT {savepoint}")
        await performer.execute(f"RELEASE SAVEPOINT {savepoint}")
        raise
    await performer.execute(f"RELEASE SAVEPOINT {savepoint}")


def _refuse_autocommit(raw: Any) -> None:
    if raw.isolation_level is None:
        raise ValueError("the connection is in autocommit mode and no transaction is open: begin one first")


def _rows(result: Any) -> list[Row]:
    return result.fetchall() if result.returns_rows else [(result.rowcount,)]
