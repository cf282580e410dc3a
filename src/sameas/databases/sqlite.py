"""Plain tables in a SQLite file: WAL mode, connections kept for reuse, each used by one thread at a time."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sameas.databases.database import NOT_A_TEXT, Row, RowRefused, Work
from sameas.once.errors import StoreMisconfigured, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.stores.sqlite_file import open_sqlite, switch_to_wal, translated

_BUSY_SECONDS = 10.0
_KEPT = 8


class SqliteDriver:
    """A file; it and its tables are made when they are not there."""

    dialect = "sqlite"

    def __init__(self, path: str | Path) -> None:
        self._path = str(Path(path).absolute())
        self._idle: list[sqlite3.Connection] = []
        self._inherited: list[list[sqlite3.Connection]] = []
        self._closed = False
        renew_after_fork(self)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append(self._idle)
        self._idle = []

    @contextmanager
    def transaction(self, *, writes: bool, durable: bool) -> Iterator[Work]:
        try:
            connection = self._take()
            try:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                yield _SqliteWork(connection)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.rollback()
                self._give_back(connection)
        except sqlite3.IntegrityError as error:
            raise RowRefused(str(error)) from error
        except UnicodeEncodeError as error:
            raise RowRefused(NOT_A_TEXT) from error
        except sqlite3.OperationalError as error:
            if isinstance(fault := translated(error, self._path), StoreMisconfigured):
                raise fault from error
            raise StoreUnavailable(f"the database {self._path} cannot answer: {error}. Try again later") from error
        except sqlite3.DatabaseError as error:
            raise StoreMisconfigured(f"the database {self._path} cannot be used: {error}") from error

    def read(self, sql: str, values: dict[str, Any]) -> list[Row]:
        with self.transaction(writes=False, durable=False) as work:
            return work.execute(sql, values)[0]

    def lock_schema(self, work: Work) -> None:
        """The write lock of the file is there already."""

    def truncate_log(self) -> None:
        connection = self._take()
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._give_back(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreUnavailable("the database was closed")
        try:
            return self._idle.pop()
        except IndexError:
            return self._open()

    def _open(self) -> sqlite3.Connection:
        # What is deleted is not left behind in the file, and what a table refers to is there: only when it is asked to.
        # A change of a large file touches pages all over it; they are written back once for several changes.
        settings = ("secure_delete = ON", "foreign_keys = ON", "cache_size = -16384", "wal_autocheckpoint = 4000")
        connection = open_sqlite(
            self._path, *settings, seconds=_BUSY_SECONDS, kind=sqlite3.Connection, cached_statements=64
        )
        switch_to_wal(connection, _BUSY_SECONDS)
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed or len(self._idle) >= _KEPT:
            connection.close()
        else:
            self._idle.append(connection)


class _SqliteWork:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, values: dict[str, Any]) -> tuple[list[Row], int]:
        cursor = self._connection.execute(sql, values)
        return cursor.fetchall(), cursor.rowcount

    def execute_many(self, sql: str, values: Sequence[dict[str, Any]]) -> None:
        self._connection.executemany(sql, values)

    def stream(self, sql: str, values: dict[str, Any]) -> Iterator[Row]:
        return self._connection.execute(sql, values)

    def script(self, sql: str) -> None:
        # Not `executescript`: it would commit the transaction that it runs in.
        for step in sql.split(";\n"):
            self._connection.execute(step)
