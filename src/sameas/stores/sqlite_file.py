"""SQLite files that are used by many threads and processes at once: how they are opened, their write-ahead log, and
what an error means to callers.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import uniform
from typing import TypeVar

from sameas.once.errors import RecordDamaged, StoreError, StoreFull, StoreMisconfigured, StoreUnavailable
from sameas.stores.faults import RowLocked

_T = TypeVar("_T")
_C = TypeVar("_C", bound=sqlite3.Connection)

# Seconds that even one who does not wait allows the file: it has one writer at a time, whatever the key, and what
# others write statement by statement is over by then.
IMPATIENT = 0.5

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNUSABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_ANOTHERS = re.compile(r"no such (?:table|column)|table \S+ (?:already exists|has no column)")
_MISUSED = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}


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


def translated(error: sqlite3.Error, path: str = "") -> StoreError:
    """What a driver's error means to callers."""
    whole = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = whole & 0xFF
    if code in _DAMAGED:
        return RecordDamaged(f"The SQLite file is damaged: {error}. Put back a copy, or remove the file.")
    # A path that is right and cannot be opened all the same is a matter of the moment: too many files are open.
    misplaced = code == sqlite3.SQLITE_CANTOPEN and path and (Path(path).is_dir() or not Path(path).parent.is_dir())
    if misplaced or code in _UNUSABLE or _ANOTHERS.match(str(error)):
        return StoreMisconfigured(
            f"SQLite cannot use this file: {error}. The path must be a file in a folder that is there, which this user "
            "may write to, and which is not another program's."
        )
    if code in _MISUSED:
        return StoreError(f"SQLite refuses the statement: {error}")
    # Whoever is the first to open a file makes room for the index of its log.
    if code == sqlite3.SQLITE_FULL or whole == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFull(f"SQLite cannot write: {error}. Make room, and try again later.")
    # A statement that failed in SQLite was not applied: there is no reply that could be lost.
    message = f"SQLite cannot answer now: {error}. Try again later."
    return StoreUnavailable(message, maybe_applied=False)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others hold the file. The low byte tells: who repairs the log after a crash has a code of its own."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY


def file_locked() -> RowLocked:
    """What one is told whose wait has ended before the store's own."""
    return RowLocked("Another transaction holds the file.")
