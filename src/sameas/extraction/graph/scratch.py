"""A database without a name: the place of what a run finds and memory could not hold.

Rule: it has one owner, promises nothing after a crash, and vanishes with its owner. SQLite keeps it in a small cache
and moves the rest to a file that nobody else can open.
"""

import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sameas.stores.sqlite_file import open_sqlite

# Each run has a few of them.
_CACHE_KIB = 512
_ROWS_AT_ONCE = 256
# SQLite remembers each statement that it has read: of these there are four.
_SEEN_AT_ONCE = (64, 16, 4, 1)


class Scratch:
    """Tables of one owner, made by the statements given. Threads may follow one another, or wait for each other."""

    def __init__(self, *statements: str) -> None:
        # The empty name stands for a database of its own that is deleted when it is closed.
        settings = ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE", f"cache_size = -{_CACHE_KIB}")
        self._connection = open_sqlite("", *settings, seconds=0.0, kind=sqlite3.Connection)
        self._lock = threading.Lock()
        # Its owner may end anywhere, and nobody waits for what is in it.
        weakref.finalize(self, self._connection.close)
        for statement in (*statements, "BEGIN"):
            self.do(statement)

    def do(self, statement: str, *values: Any) -> int:
        """How many rows were changed."""
        try:
            with self._lock:
                return self._connection.execute(statement, values).rowcount
        except sqlite3.OperationalError as error:
            raise _told(error) from error

    def fill(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """The statement for each row; making a row must not use this database."""
        try:
            with self._lock:
                self._connection.executemany(statement, rows)
        except sqlite3.OperationalError as error:
            raise _told(error) from error

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """All rows of a query that has few."""
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise _told(error) from error

    def read(self, statement: str, *values: Any) -> Iterator[Any]:
        """The rows of a query, some at a time: others may use the database meanwhile."""
        try:
            with self._lock:
                cursor = self._connection.execute(statement, values)
                rows = cursor.fetchmany(_ROWS_AT_ONCE)
            while rows:
                yield from rows
                with self._lock:
                    rows = cursor.fetchmany(_ROWS_AT_ONCE)
        except sqlite3.OperationalError as error:
            raise _told(error) from error


def _told(error: sqlite3.OperationalError) -> OSError:
    """What SQLite has to say about the disk, for people."""
    todo = "free some room in it or set TMPDIR"
    return OSError(f"the folder for temporary files cannot be used: {error}; {todo}")


class Seen:
    """A set of things that can be added to and nothing else; each is a tuple of texts and numbers."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE seen (thing BLOB PRIMARY KEY) WITHOUT ROWID")
        self._encoder = msgspec.msgpack.Encoder()

    def is_new(self, *thing: str | int) -> bool:
        """Whether it is met for the first time; from now on it is known."""
        return self._scratch.do("INSERT OR IGNORE INTO seen VALUES (?)", self._encoder.encode(thing)) == 1

    def new_of(self, things: Sequence[tuple[str | int, ...]]) -> list[bool]:
        """Which of these are met for the first time, in their order; of equal ones the first."""
        encoded = [self._encoder.encode(thing) for thing in things]
        new: set[bytes] = set()
        at = 0
        while at < len(encoded):
            size = next(size for size in _SEEN_AT_ONCE if size <= len(encoded) - at)
            places = ", ".join(["(?)"] * size)
            some = encoded[at : at + size]
            rows = self._scratch.rows(f"INSERT OR IGNORE INTO seen VALUES {places} RETURNING thing", *some)
            new.update(thing for (thing,) in rows)
            at += size
        told = []
        for thing in encoded:
            told.append(thing in new)
            new.discard(thing)
        return told
