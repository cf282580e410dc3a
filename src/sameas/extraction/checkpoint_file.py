"""Checkpoints on disk, shared by all runs of a tenant: an edited document costs only the chunks that changed.

Rule: a row is found by its stage and the digest of everything that went into the result, so it is never stale; it
holds a digest over all of that, so a damaged one is a miss. Nothing is forced to the disk, nobody waits long for
somebody else, and a file that is of no use is begun anew: what is lost so is done again. Any number of processes may
share the file.
"""

import hashlib
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sameas.llm.timeouts import STAGES, StageName
from sameas.once.forks import renew_after_fork, this_process

# A file of its own for each checkpoint took twenty times as long. The lowest number was used longest ago.
_TABLE = """
CREATE TABLE IF NOT EXISTS checkpoints (
    number INTEGER PRIMARY KEY,
    stage TEXT NOT NULL,
    digest BLOB NOT NULL,
    used_at INTEGER NOT NULL,
    seal BLOB NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (digest, stage)
)
"""
_SAVE = "INSERT OR REPLACE INTO checkpoints (stage, digest, used_at, seal, data) VALUES (?, ?, ?, ?, ?)"
_LOAD = "SELECT data, seal, used_at FROM checkpoints WHERE stage = ? AND digest = ?"
_DROP = "DELETE FROM checkpoints WHERE number IN (SELECT number FROM checkpoints ORDER BY number LIMIT ?)"

_DIGEST = re.compile(r"[0-9a-f]{64}")
_PAGE = 4096
_BUSY_SECONDS = 0.1
_TOUCH_EVERY = 3600.0
# Rows that come push out twice as many while there is too much, so that nobody ever waits for very many.
_LOOK_EVERY = 8
_DROPPED_AT_ONCE = 16

DEFAULT_BYTES = 1 << 30

# Not even closed: a parent's connection must not be touched by its child.
_INHERITED: list[sqlite3.Connection | None] = []


class CheckpointFile:
    """A SQLite file of checkpoints within a bound of bytes; the least recently used go first."""

    def __init__(self, path: Path, *, max_bytes: int = DEFAULT_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._saved = 0
        renew_after_fork(self)

    def after_fork(self) -> None:
        _INHERITED.append(self._connection)
        self._connection, self._lock = None, threading.Lock()

    def load(self, stage: StageName, digest: str) -> bytes | None:
        name = _name(stage, digest)
        rows = self._do(_LOAD, stage, name)
        if not rows:
            return None
        data, seal, used_at = rows[0]
        if not isinstance(data, bytes) or seal != _seal(stage, name, data):
            return None
        if not 0 <= self._clock() - used_at < _TOUCH_EVERY:
            self.save(stage, digest, data)
        return data

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        """Keep it; a file that cannot be written costs the checkpoint, not the run."""
        name = _name(stage, digest)
        if self._do(_SAVE, stage, name, int(self._clock()), _seal(stage, name, data), data) is not None:
            self._saved += 1
            if self._saved % _LOOK_EVERY == 0:
                self._make_room()

    def _make_room(self) -> None:
        if self._bytes("page_count") <= self._max_bytes:
            return
        # The file stays as large as it ever was; what was given up in it is written over.
        if self._bytes("page_count") - self._bytes("freelist_count") > self._max_bytes:
            self._do(_DROP, _DROPPED_AT_ONCE)

    def _bytes(self, pages: str) -> int:
        counted = self._do(f"PRAGMA {pages}")
        return counted[0][0] * _PAGE if counted else 0

    def _do(self, statement: str, *values: Any) -> list[Any] | None:
        """The rows, or None where the file did not do it."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return self._connection.execute(statement, values).fetchall()
            except (sqlite3.OperationalError, OSError):
                return None
            except sqlite3.DatabaseError:
                self._begin_anew()
                return None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        opened = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            for setting in (f"page_size = {_PAGE}", "synchronous = OFF", "journal_mode = WAL"):
                opened.execute(f"PRAGMA {setting}")
            opened.execute(_TABLE)
        except BaseException:
            opened.close()
            raise
        weakref.finalize(self, _close, opened, this_process())
        return opened

    def _begin_anew(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)


def _close(connection: sqlite3.Connection, process: object) -> None:
    if process is this_process():
        connection.close()


def _name(stage: StageName, digest: str) -> bytes:
    if stage not in STAGES or not _DIGEST.fullmatch(digest):
        raise ValueError(f"a checkpoint is named by a stage and 64 hex digits, not by {stage!r} and {digest!r}")
    return bytes.fromhex(digest)


def _seal(stage: StageName, name: bytes, data: bytes) -> bytes:
    return hashlib.sha256(stage.encode() + name + data).digest()
