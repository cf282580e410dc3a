"""What an error of SQLite means to callers."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from sameas.once.errors import RecordDamaged, StoreError, StoreFull, StoreMisconfigured, StoreUnavailable
from sameas.stores.faults import RowLocked

# Seconds that even one who does not wait allows the file: it has one writer at a time, whatever the key, and what
# others write statement by statement is over by then.
IMPATIENT = 0.5

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_UNUSABLE = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_ANOTHERS = re.compile(r"no such (?:table|column)|table \S+ (?:already exists|has no column)")
_MISUSED = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG}


def translated(error: sqlite3.Error, path: str = "") -> StoreError:
    """What a driver's error means to callers."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
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
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"SQLite cannot write: {error}. Make room, and try again later.")
    # A statement that failed in SQLite was not applied: there is no reply that could be lost.
    message = f"SQLite cannot answer now: {error}. Try again later."
    return StoreUnavailable(message, maybe_applied=False)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others hold the file. The low byte tells: who repairs the log after a crash has a code of its own."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF == sqlite3.SQLITE_BUSY


def file_locked() -> RowLocked:
    """What one is told whose patience has ended before the store's own."""
    return RowLocked("Another transaction holds the file.")
