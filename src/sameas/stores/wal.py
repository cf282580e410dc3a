"""SQLite files that are used by many threads and processes at once: how they are opened, and their write-ahead log."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import uniform
from typing import TypeVar

from sameas.stores.sqlite_faults import is_busy

_T = TypeVar("_T")
_C = TypeVar("_C", bound=sqlite3.Connection)


def when_free(ask: Callable[[], _T], deadline: float) -> _T:
    """Ask until others let go of the file. SQLite's own waiting sleeps longer and longer: a latecomer always wins."""
    while True:
        try:
            return ask()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(uniform(0.0005, 0.003))


def open_sqlite(path: str | Path, *settings: str, seconds: float, kind: type[_C], cached_statements: int = 128) -> _C:
    """A connection for any thread, in autocommit, that waits so long for others; `settings` are pragmas."""
    opened = sqlite3.connect(
        path,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,
        factory=kind,
        cached_statements=cached_statements,
    )
    try:
        for setting in settings:
            opened.execute(f"PRAGMA {setting}")
    except BaseException:
        opened.close()
        raise
    return opened


def switch_to_wal(connection: sqlite3.Connection, seconds: float) -> str:
    """Keep the file in WAL mode, waiting so long for others; answers the mode that it is in then."""
    # Switching needs the file alone for a moment, and SQLite does not wait for that by itself.
    switch = "PRAGMA journal_mode = WAL"
    (mode,) = when_free(lambda: connection.execute(switch).fetchone(), time.monotonic() + seconds)
    return str(mode)
