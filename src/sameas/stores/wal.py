"""The write-ahead log of a SQLite file, used by many processes at once."""

import sqlite3
import time
from collections.abc import Callable
from random import uniform
from typing import TypeVar

_T = TypeVar("_T")


def when_free(ask: Callable[[], _T], deadline: float) -> _T:
    """Ask until others let go of the file. SQLite's own waiting sleeps longer and longer: a latecomer always wins."""
    while True:
        try:
            return ask()
        except sqlite3.OperationalError as error:
            # The low byte: who repairs the log after a crash keeps others out too, and has a code of its own.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(uniform(0.0005, 0.003))


def switch_to_wal(connection: sqlite3.Connection, seconds: float) -> str:
    """Keep the file in WAL mode, waiting so long for others; answers the mode that it is in then."""
    # Switching needs the file alone for a moment, and SQLite does not wait for that by itself.
    switch = "PRAGMA journal_mode = WAL"
    (mode,) = when_free(lambda: connection.execute(switch).fetchone(), time.monotonic() + seconds)
    return str(mode)
