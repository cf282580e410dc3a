"""The caller's own transaction on a server as a place to run statements: what is written there is committed by the
caller, or never was.

A savepoint surrounds the writes of one call, so that a call that fails leaves the rest of the transaction as it was.
If the server itself ends the transaction (a deadlock on MySQL or SQL Server), the caller begins anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from typing import Any, Final

from sameas.once.errors import SameasError, StoreError, StoreUnavailable, TransactionEnded, TransactionRefused
from sameas.stores.faults import Translate, from_mssql, from_mysql, from_postgres
from sameas.stores.rows import Row
from sameas.stores.sql import Statement, at_most
from sameas.stores.statements import bound

_NUMBERS = count(1)
_TRANSLATE: Final[Mapping[str, Translate]] = {
    "postgres": from_postgres,
    "mysql": from_mysql,
    "mssql": from_mssql,
}
_SAVE: Final = {"mssql": "SAVE TRANSACTION {}"}
_UNDO: Final = {"mssql": "ROLLBACK TRANSACTION {}"}
# SQL Server has nothing to end a savepoint with: it lasts as long as its transaction.
_KEEP: Final = {"mssql": ""}


class _Place:
    """Where statements go, and what belongs to the place rather than to them."""

    def __init__(self, connection: Any, *, dialect: str, extras: Mapping[str, Any]) -> None:
        self.connection = connection
        self.extras = extras
        # What gives a session back its own settings, run when the call is over, however it ends.
        self.afterwards: list[Statement] = []
        self.translate = _TRANSLATE[dialect]
        # psycopg's own connection has no dialect.
        described = getattr(connection, "dialect", None)
        self.paramstyle = "pyformat" if described is None else described.paramstyle
        self.errors, self.ended = _driver_errors(connection)
        name = f"sameas_{next(_NUMBERS)}"
        self.save = _SAVE.get(dialect, "SAVEPOINT {}").format(name)
        self.undo = _UNDO.get(dialect, "ROLLBACK TO SAVEPOINT {}").format(name)
        self.keep = _KEEP.get(dialect, "RELEASE SAVEPOINT {}").format(name)

    @property
    def is_mariadb(self) -> bool:
        return bool(getattr(getattr(self.connection, "dialect", None), "is_mariadb", False))

    def bound(self, statement: Statement) -> tuple[str, Any]:
        extras = self.extras
        if "lock_wait" in statement.values:
            extras = {**extras, "lock_wait": at_most(str(extras["lock_wait"]), statement.values["lock_wait"])}
        sql, values = bound(statement.sql, {**statement.values, **extras}, self.paramstyle)
        return sql, values if statement.values or ":" in statement.sql else None

    def fault(self, error: Exception) -> Exception:
        if isinstance(error, self.ended):
            return TransactionEnded()
        return self.translate(getattr(error, "orig", None) or error)

    def is_ended(self, error: BaseException) -> bool:
        """Whether an error at the end of the savepoint says that its transaction is no more."""
        refused = isinstance(error, StoreError) and not isinstance(error, StoreUnavailable)
        return refused or isinstance(error, TransactionEnded)


class Enlisted(_Place):
    """A SQLAlchemy Connection, or psycopg's own."""

    def perform(self, statement: Statement) -> list[Row]:
        return self.execute(*self.bound(statement))

    def execute(self, sql: str, values: Any = None) -> list[Row]:
        try:
            if hasattr(self.connection, "exec_driver_sql"):
                return _rows(self.connection.exec_driver_sql(sql, values))
            cursor = _plain_cursor(self.connection).execute(sql, values)
            return cursor.fetchall() if cursor.description is not None else [(cursor.rowcount,)]
        except self.errors as error:
            raise self.fault(error) from error


class AsyncEnlisted(_Place):
    """A SQLAlchemy AsyncConnection, or psycopg's own."""

    async def aperform(self, statement: Statement) -> list[Row]:
        return await self.execute(*self.bound(statement))

    async def execute(self, sql: str, values: Any = None) -> list[Row]:
        try:
            if hasattr(self.connection, "exec_driver_sql"):
                return _rows(await self.connection.exec_driver_sql(sql, values))
            cursor = await _plain_cursor(self.connection).execute(sql, values)
            return await cursor.fetchall() if cursor.description is not None else [(cursor.rowcount,)]
        except self.errors as error:
            raise self.fault(error) from error


@contextmanager
def enlisted(connection: Any, *, dialect: str, extras: Mapping[str, Any]) -> Iterator[Enlisted]:
    """Run statements in the caller's transaction; an error undoes them and leaves the transaction open."""
    if _is_session(connection):
        connection = connection.connection()
    _refuse_stranger(connection, dialect)
    _refuse_autocommit(connection)
    place = Enlisted(connection, dialect=dialect, extras=extras)
    place.execute(place.save)
    try:
        yield place
    except BaseException as error:
        # If the server has ended the transaction, the savepoint is gone with it.
        with contextlib.suppress(Exception):
            place.execute(place.undo)
            if place.keep:
                place.execute(place.keep)
        with contextlib.suppress(Exception):
            for statement in place.afterwards:
                place.perform(statement)
        if isinstance(error, TransactionEnded):
            with contextlib.suppress(Exception):
                place.connection.rollback()
        raise
    try:
        for statement in place.afterwards:
            place.perform(statement)
        if place.keep:
            place.execute(place.keep)
    except SameasError as error:
        if not place.is_ended(error):
            raise
        with contextlib.suppress(Exception):
            place.connection.rollback()
        raise TransactionEnded from error


@asynccontextmanager
async def aenlisted(connection: Any, *, dialect: str, extras: Mapping[str, Any]) -> AsyncIterator[AsyncEnlisted]:
    """`enlisted`, for tasks."""
    if _is_session(connection):
        connection = await connection.connection()
    _refuse_stranger(connection, dialect)
    _refuse_autocommit(getattr(connection, "sync_connection", connection))
    place = AsyncEnlisted(connection, dialect=dialect, extras=extras)
    await place.execute(place.save)
    try:
        yield place
    except BaseException as error:
        with contextlib.suppress(Exception):
            await place.execute(place.undo)
            if place.keep:
                await place.execute(place.keep)
        with contextlib.suppress(Exception):
            for statement in place.afterwards:
                await place.aperform(statement)
        if isinstance(error, TransactionEnded):
            with contextlib.suppress(Exception):
                await place.connection.rollback()
        raise
    try:
        for statement in place.afterwards:
            await place.aperform(statement)
        if place.keep:
            await place.execute(place.keep)
    except SameasError as error:
        if not place.is_ended(error):
            raise
        with contextlib.suppress(Exception):
            await place.connection.rollback()
        raise TransactionEnded from error


def _is_session(connection: Any) -> bool:
    return not hasattr(connection, "exec_driver_sql") and callable(getattr(connection, "connection", None))


_KINDS: Final = {"postgres": ("postgresql",), "mysql": ("mysql", "mariadb"), "mssql": ("mssql",)}


def _refuse_stranger(connection: Any, dialect: str) -> None:
    """Refuse what is no connection to a server of the store's kind."""
    described = getattr(connection, "dialect", None)
    kind = getattr(described, "name", "postgresql" if hasattr(connection, "pgconn") else "")
    if kind not in _KINDS[dialect]:
        raise TransactionRefused(
            f"The records are in {dialect}, and the connection is a {type(connection).__qualname__}"
            f"{f' to {kind}' if kind else ''}: pass one to the same database, or leave connection= out."
        )


def _refuse_autocommit(connection: Any) -> None:
    if hasattr(connection, "get_isolation_level"):
        autocommit = (
            connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
            or getattr(connection.connection.dbapi_connection, "autocommit", False) is True
        )
    else:
        # psycopg: autocommit is allowed inside its own transaction block.
        autocommit = bool(getattr(connection, "autocommit", False)) and connection.info.transaction_status == 0
    if autocommit:
        raise ValueError("the connection is in autocommit mode and no transaction is open: begin one first")


def _plain_cursor(connection: Any) -> Any:
    """A cursor of psycopg that gives rows as tuples and takes values by name, whatever the caller's own do."""
    from psycopg import AsyncConnection, AsyncCursor, AsyncRawCursor, Cursor, RawCursor
    from psycopg.rows import tuple_row

    if not issubclass(connection.cursor_factory, RawCursor | AsyncRawCursor):
        return connection.cursor(row_factory=tuple_row)
    kind: Any = AsyncCursor if isinstance(connection, AsyncConnection) else Cursor
    return kind(connection, row_factory=tuple_row)


def _driver_errors(connection: Any) -> tuple[tuple[type[Exception], ...], tuple[type[Exception], ...]]:
    """What the driver raises, and what of it says that the transaction is over."""
    if hasattr(connection, "exec_driver_sql"):
        from sqlalchemy.exc import DBAPIError, InvalidRequestError

        return (DBAPIError, InvalidRequestError), (InvalidRequestError,)
    from psycopg import Error

    return (Error,), ()


def _rows(result: Any) -> list[Row]:
    if result.returns_rows:
        return [tuple(row) for row in result.fetchall()]
    return [(result.rowcount, getattr(result, "lastrowid", None))]
