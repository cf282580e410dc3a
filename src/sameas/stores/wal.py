"""The write-ahead log of a SQLite file, switched on by many processes at once."""

import sqlite3
import time

_PAUSE_SECONDS = 0.01


def switch_to_wal(connection: sqlite3.Connection, seconds: float) -> str:
    """Keep the file in WAL mode, waiting so long for others; answers the mode that it is in then."""
    # Switching needs the file alone for a moment, and SQLite does not wait for that by itself.
    deadline = time.monotonic() + seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return str(mode)
