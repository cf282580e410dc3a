"""A database without a name: the place of what a run finds and memory could not hold.

Rule: it has one owner, promises nothing after a crash, and vanishes with its owner. SQLite keeps it in a small cache
and moves the rest to a file that nobody else can open.
"""

import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sameas.stores.wal import open_sqlite

# Each run has a few of them.
_CACHE_KIB = 512
_ROWS_AT_ONCE = 256


class Scratch:
    """Tables of one owner, made by the statements given. Threads may follow one another, or wait for each other."""

    def __init__(self, *statements: str) -> None:
        # The empty name stands for a database of its own that is deleted when it is closed.
        settings = ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", f"cache_size = -{_CACHE_KIB}")
        self._connection = open_sqlite("", *settings, seconds=0.0, kind=sqlite3.Connection)
        self._turn = _Turn()
        # Its owner may end anywhere, and nobody waits for what is in it.
        weakref.finalize(self, self._connection.close)
        for statement in (*statements, "BEGIN"):
            self.do(statement)

    def do(self, statement: str, *values: Any) -> int:
        """How many rows were changed."""
        with self._turn:
            return self._connection.execute(statement, values).rowcount

    def fill(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """The statement for each row; making a row must not use this database."""
        with self._turn:
            self._connection.executemany(statement, rows)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """All rows of a query that has few."""
        with self._turn:
            return self._connection.execute(statement, values).fetchall()

    def read(self, statement: str, *values: Any) -> Iterator[Any]:
        """The rows of a query, some at a time: others may use the database meanwhile."""
        with self._turn:
            cursor = self._connection.execute(statement, values)
        rows: list[Any] = [None]
        while rows:
            with self._turn:
                rows = cursor.fetchmany(_ROWS_AT_ONCE)
            yield from rows


class _Turn:
    """One at a time; what SQLite has to say about the disk is said for people."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.OperationalError):
            todo = "free some room in it or set TMPDIR"
            raise OSError(f"the folder for temporary files cannot be used: {error}; {todo}") from error


class Seen:
    """A set of things that can be added to and nothing else; each is a tuple of texts and numbers."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE seen (thing BLOB PRIMARY KEY) WITHOUT ROWID")
        self._encoder = msgspec.msgpack.Encoder()

    def is_new(self, *thing: str | int) -> bool:
        """Whether it is met for the first time; from now on it is known."""
        return self._scratch.do("INSERT OR IGNORE INTO seen VALUES (?)", self._encoder.encode(thing)) == 1
