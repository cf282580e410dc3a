"""Plain tables in PostgreSQL, over the same bounded pool of connections as its records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg

from sameas.databases.database import NOT_A_TEXT, Row, RowRefused, Work
from sameas.once.forks import renew_after_fork
from sameas.stores.faults import from_postgres
from sameas.stores.postgres import conninfo
from sameas.stores.postgres_pool import Options, Pool, Taken
from sameas.stores.statements import bound

_SCHEMA_LOCK = 0x73616D656173
_CURSORS = count(1)
_FETCHED = 500
# A durable transaction waits for the disk also where the session, role or database does not.
_BEGIN = {
    True: b"BEGIN; SELECT set_config('synchronous_commit', 'on', true) "
    b"WHERE current_setting('synchronous_commit') = 'off'",
    False: b"BEGIN; SET LOCAL synchronous_commit = off",
}
# All statements of a reader see one state, as in SQLite.
_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresDriver:
    """A database on a server."""

    dialect = "postgres"

    def __init__(self, url: str, *, pool_size: int = 4, timeout: float = 10.0) -> None:
        # No prepared statements: a transaction pooler may stand between.
        self._options = Options(conninfo(url), timeout=timeout, prepare_threshold=None)
        # The records' adapters say that text is text; here the server must find out that it is a time or JSON.
        del self._options.words["context"]
        self._size = pool_size
        self._pool = Pool(self._options, size=pool_size)
        self._inherited: list[Pool] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append(self._pool)
        self._pool = Pool(self._options, size=self._size)

    @contextmanager
    def transaction(self, *, writes: bool, durable: bool) -> Iterator[Work]:
        taken = self._first(_BEGIN[durable] if writes else _READ)
        cursor = taken[1]
        try:
            yield _PostgresWork(cursor)
            cursor.execute(b"COMMIT")
        except UnicodeEncodeError as error:
            raise RowRefused(NOT_A_TEXT) from error
        except (psycopg.IntegrityError, psycopg.DataError) as error:
            raise RowRefused(str(error).partition("\n")[0]) from error
        except psycopg.Error as error:
            raise from_postgres(error) from error
        finally:
            # A connection in the middle of a transaction is closed here, which undoes it.
            self._pool.give_back(taken)

    def read(self, sql: str, values: dict[str, Any]) -> list[Row]:
        text, order = bound(sql, values, "numeric_dollar")
        # One statement is a transaction by itself.
        taken = self._first(text.encode(), order)
        try:
            return taken[1].fetchall()
        except psycopg.Error as error:
            raise from_postgres(error) from error
        finally:
            self._pool.give_back(taken)

    def _first(self, statement: bytes, values: Sequence[Any] | None = None) -> Taken:
        """A connection on which the first statement of a transaction was run, of a server that is there."""
        while True:
            taken = self._pool.take()
            try:
                taken[1].execute(statement, values)
            except psycopg.Error as error:
                reused = taken[0].reused
                self._pool.give_back(taken)
                if not reused:
                    raise from_postgres(error) from error
                # The server was restarted since; nothing was done, and the other idle connections are as old.
                self._pool.clear()
            else:
                return taken

    def lock_schema(self, work: Work) -> None:
        work.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _SCHEMA_LOCK})

    def truncate_log(self) -> None:
        """The server's log is its own; what was deleted goes from the tables with the next vacuum."""

    def close(self) -> None:
        self._pool.closed = True
        self._pool.clear()


class _PostgresWork:
    def __init__(self, cursor: psycopg.RawCursor[Any]) -> None:
        self._cursor = cursor

    def execute(self, sql: str, values: dict[str, Any]) -> tuple[list[Row], int]:
        text, order = bound(sql, values, "numeric_dollar")
        self._cursor.execute(text.encode(), order)
        rows = self._cursor.fetchall() if self._cursor.description is not None else []
        return rows, self._cursor.rowcount

    def execute_many(self, sql: str, values: Sequence[dict[str, Any]]) -> None:
        text, _ = bound(sql, values[0], "numeric_dollar")
        self._cursor.executemany(text.encode(), [bound(sql, one, "numeric_dollar")[1] for one in values])

    def stream(self, sql: str, values: dict[str, Any]) -> Iterator[Row]:
        text, order = bound(sql, values, "numeric_dollar")
        name = f"sameas_rows_{next(_CURSORS)}"
        self._cursor.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {text}".encode(), order)
        while True:
            self._cursor.execute(f"FETCH {_FETCHED} FROM {name}".encode())
            rows = self._cursor.fetchall()
            yield from rows
            if len(rows) < _FETCHED:
                self._cursor.execute(f"CLOSE {name}".encode())
                return

    def script(self, sql: str) -> None:
        self._cursor.execute(sql.encode())
