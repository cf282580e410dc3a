"""Checkpoints on disk, shared by all runs of a tenant: an edited document costs only the chunks that changed.

Rule: a row is found by its stage and the digest of everything that went into the result, so it is never stale; it
holds a digest over all of that, so a damaged one is a miss. Nothing is forced to the disk, no process waits long for
another, and an unusable file is replaced by a new one: what is lost that way is done again. Any number of processes may
share the file.
"""

import hashlib
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sameas.llm.timeouts import STAGES, StageName
from sameas.once.errors import StoreUnavailable
from sameas.once.forks import hold_across_forks, renew_after_fork
from sameas.stores.sqlite_file import open_sqlite, switch_to_wal

# So many looks are made, on average, while as much is written as the bound allows.
_LOOKS = 64
# After a look that finds too much this share stays, so that the next one does not follow at once.
_KEEP = 0.9
_DIGITS = 8


class KeptItem(NamedTuple):
    """An item on the disk, its size, and when it was last used."""

    used_at: float
    size: int
    path: Path


def is_look_due(digest: str, *, size: int, bound: int) -> bool:
    """Whether the writer of these bytes should check the bound."""
    dice: float = int(digest[-_DIGITS:], 16) / 16.0**_DIGITS
    return dice < size * _LOOKS / max(1, bound)


def least_recent(kept: Iterable[KeptItem], *, bound: int) -> list[KeptItem]:
    """The items to delete, least recently used first; none while the bound is kept."""
    known = sorted(kept)
    total = sum(one.size for one in known)
    if total <= bound:
        return []
    going: list[KeptItem] = []
    for one in known:
        if total <= bound * _KEEP:
            break
        total -= one.size
        going.append(one)
    return going


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
_USED = """
SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_OLDEST = "SELECT number, ifnull(length(data), 0) FROM checkpoints ORDER BY number LIMIT 16"
_DROP = "DELETE FROM checkpoints WHERE number <= ?"
_FORGET = "DELETE FROM checkpoints WHERE stage = ? AND digest = ?"
_CLEAR = "DELETE FROM checkpoints"
# What was deleted is not left behind in the log.
_SETTLE = "PRAGMA wal_checkpoint(TRUNCATE)"

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CACHE_KIB = 256
_BUSY_SECONDS = 0.1
# After waiting once it is not asked again at once: others share the event loop.
_REST_SECONDS = 1.0
_DELETED_WITHIN = 10.0
_TOUCH_EVERY = 3600.0
_LOOK_EVERY = 8
# About what a row takes beside its data.
_AROUND = 200
# A file with another table, or with none, is as useless as one that is not a database.
_USELESS = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_NOTADB,
}

DEFAULT_BYTES = 1 << 30


class CheckpointFile:
    """A SQLite file of checkpoints within a bound of bytes; the least recently used go first."""

    is_remote = False

    def __init__(self, path: Path, *, max_bytes: int = DEFAULT_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._clock = clock
        # An RLock, because it knows its owner: a signal may fork in the middle of anything.
        self._lock = threading.RLock()
        self._is_held = False
        self._connection: sqlite3.Connection | None = None
        self._close: Callable[[], object] | None = None
        self._file: tuple[int, int] | None = None
        self._saved = 0
        self._came = 0
        self._rests_until = 0.0
        renew_after_fork(self)
        hold_across_forks(self)

    def before_fork(self) -> None:
        # SQLite notes in memory which locks this process holds, and a child inherits the note without the locks: what
        # it writes would be lost as soon as its parent closes the file.
        self._lock.acquire()
        self._is_held = True
        self._shut()

    def after_fork_in_parent(self) -> None:
        # One that was made during the fork is not held.
        if self._is_held:
            self._is_held = False
            self._lock.release()

    def after_fork(self) -> None:
        self._lock, self._is_held = threading.RLock(), False

    def load(self, stage: StageName, digest: str) -> bytes | None:
        name = name_of(stage, digest)
        rows = self._do(_LOAD, stage, name)
        if not rows:
            return None
        data, seal, used_at = rows[0]
        if not isinstance(data, bytes) or seal != seal_of(stage, name, data):
            return None
        if not isinstance(used_at, int) or not 0 <= self._clock() - used_at < _TOUCH_EVERY:
            self.save(stage, digest, data)
        return data

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        """Save a checkpoint; if the file cannot be written, the checkpoint is lost and the run goes on."""
        name = name_of(stage, digest)
        if len(data) > self._max_bytes or time.monotonic() < self._rests_until:
            return
        if self._do(_SAVE, stage, name, int(self._clock()), seal_of(stage, name, data), data) is None:
            return
        with self._lock:
            # The first one looks: there are processes that save only a few.
            is_due = self._saved % _LOOK_EVERY == 0 or self._came + len(data) > self._max_bytes // _LOOK_EVERY
            self._saved += 1
            self._came += len(data) + _AROUND
            if is_due:
                came, self._came = max(self._came, _LOOK_EVERY * (len(data) + _AROUND)), 0
                self._make_room(came)

    def forget(self, names: Iterable[tuple[StageName, str]]) -> None:
        """Delete these checkpoints; raises StoreUnavailable if that cannot be done in time."""
        if not self._path.exists():
            return
        for stage, digest in names:
            self._surely(_FORGET, stage, name_of(stage, digest))
        self._surely(_SETTLE)

    def clear(self) -> None:
        """Delete all checkpoints."""
        if self._path.exists():
            self._surely(_CLEAR)
            self._surely(_SETTLE)

    def _surely(self, statement: str, *values: Any) -> None:
        ends_at = time.monotonic() + _DELETED_WITHIN
        while self._do(statement, *values) is None:
            if not self._path.exists():
                # The unusable file was deleted with all that was in it.
                return
            if time.monotonic() > ends_at:
                raise StoreUnavailable("Checkpoints could not be deleted, because others use their file; try again.")
            time.sleep(_BUSY_SECONDS)

    def _make_room(self, came: int) -> None:
        """Delete what is too much, but at most twice what was added, so that no caller waits for many deletions."""
        if self._connection is not None and _which(self._path) != self._file:
            # The file was removed: what is written to it now would never be found.
            self._shut()
            return
        used = self._do(_USED)
        # The file stays as large as it ever was; what was given up in it is written over.
        over = used[0][0] - self._max_bytes if used else 0
        allowed = 2 * came
        while over > 0 and allowed > 0:
            last, freed = None, 0
            for number, size in self._do(_OLDEST) or ():
                last, freed = number, freed + size + _AROUND
                if freed >= over:
                    break
            if last is None or self._do(_DROP, last) is None:
                return
            over -= freed
            allowed -= freed

    def _do(self, statement: str, *values: Any) -> list[Any] | None:
        """The rows, or None if the file could not be used."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return self._connection.execute(statement, values).fetchall()
            except UnicodeDecodeError:
                # What SQLite says of a damaged table quotes it.
                self._begin_anew()
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
                if code in _USELESS:
                    self._begin_anew()
                elif code == sqlite3.SQLITE_BUSY:
                    self._rests_until = time.monotonic() + _REST_SECONDS
            except OSError:
                pass
            return None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _which(self._path)
        settings = ("synchronous = OFF", f"cache_size = -{_CACHE_KIB}", "secure_delete = ON")
        opened = open_sqlite(self._path, *settings, seconds=_BUSY_SECONDS, kind=sqlite3.Connection)
        try:
            switch_to_wal(opened, _BUSY_SECONDS)
            opened.execute(_TABLE)
        except BaseException:
            opened.close()
            raise
        self._file = _which(self._path)
        self._close = weakref.finalize(self, opened.close)
        return opened

    def _shut(self) -> None:
        if self._close is not None:
            self._close()
        self._connection = self._close = None

    def _begin_anew(self) -> None:
        self._shut()
        if _which(self._path) != self._file:
            # Another process replaced it first, and that one is good.
            return
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)


def _which(path: Path) -> tuple[int, int] | None:
    """The identity of the file that has this name now."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def name_of(stage: StageName, digest: str) -> bytes:
    """A digest in the form that rows have; raises ValueError if it is not one."""
    if stage not in STAGES or not _DIGEST.fullmatch(digest):
        raise ValueError(f"a checkpoint is named by a stage and 64 hex digits, not by {stage!r} and {digest!r}")
    return bytes.fromhex(digest)


def seal_of(stage: StageName, name: bytes, data: bytes) -> bytes:
    """The seal that a row must have to be believed."""
    return hashlib.sha256(stage.encode() + name + data).digest()
