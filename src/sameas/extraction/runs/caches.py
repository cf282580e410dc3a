"""What runs leave behind for later calls: checkpoints and replies of models, with a note of which run uses which; and,
in memory, the results that this process read last.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sameas.extraction.pipeline.checkpoints import Used, UsedFile, read_used
from sameas.extraction.runs.checkpoint_file import CheckpointFile
from sameas.extraction.runs.checkpoint_tables import CheckpointTables, UsedRows
from sameas.extraction.runs.folder import RunFolder, Stored
from sameas.extraction.runs.metadata import ARTEFACTS, EVENTS, METADATA
from sameas.llm.memo import SCOPE as CALLS
from sameas.once.engine import Engine


class RunCaches:
    """The caches of one tenant; `memo_tenant` is under whose name models' replies are kept. Blocking."""

    def __init__(self, checkpoints: CheckpointFile | CheckpointTables, engine: Engine, *, memo_tenant: str) -> None:
        self._checkpoints = checkpoints
        self._shared = checkpoints if isinstance(checkpoints, CheckpointTables) else None
        self._engine = engine
        self._memo_tenant = memo_tenant

    def noting(self, key: str, path: Path) -> UsedFile | UsedRows:
        """Where a run notes what it uses: in the database if other nodes share it, otherwise in a file."""
        return UsedFile(path) if self._shared is None else UsedRows(self._shared, key)

    def forget_run(self, folder: RunFolder, *, asked_model: bool) -> bool:
        """Delete what a run used. Returns False if neither this node nor the database knows the run."""
        used = read_used(folder.used_path)
        if self._shared is not None:
            # Before checkpoints were shared it stood in the file.
            noted = self._shared.used_by(folder.key)
            used = Used(
                used.checkpoints | noted.checkpoints,
                used.calls | noted.calls,
                is_known=used.is_known or noted.is_known,
            )
        if not used.is_known and not folder.exists():
            return False
        self._forget(used, asked_model=asked_model)
        return True

    def forget_uses(self, key: str) -> None:
        """Forget the notes of a run that was deleted."""
        if self._shared is not None:
            self._shared.forget_uses(key)

    def clear(self) -> None:
        """Delete everything."""
        self._checkpoints.clear()
        self._engine.forget_where(tenant=self._memo_tenant, scope=CALLS)

    def _forget(self, used: Used, *, asked_model: bool) -> None:
        if used.is_known:
            self._checkpoints.forget(used.checkpoints)
        else:
            self._checkpoints.clear()
        for key in used.calls:
            self._engine.forget(CALLS, key, tenant=self._memo_tenant, namespace="content")
        if asked_model and not used.is_known:
            self._engine.forget_where(tenant=self._memo_tenant, scope=CALLS)


# Of files; the objects that are made of them take some times as much.
RECENT_BYTES = 4 << 20
# File systems note times by a clock that ticks every few milliseconds.
_SETTLED_NS = 100_000_000

Seen: TypeAlias = tuple[tuple[int, int, int, int], ...]


class _Kept(NamedTuple):
    digest: str
    seen: Seen
    stored: Stored
    size: int


class RecentResults:
    """The results that this process read and checked last, so that the same files need not be read again. Thread-safe.

    A result is returned only while every file of its run is the one that was read, by inode, size and times, and while
    the record of the run accepts it. A file that was written less than a moment before it was read is not kept, because
    a slowly ticking clock could hide a change. The least recently used results go when there are too many bytes.
    """

    def __init__(self, *, max_bytes: int = RECENT_BYTES, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._max_bytes = max_bytes
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0

    def find(self, folder: RunFolder, *, digest: str) -> Stored | None:
        """The result of the run, if it is here and its files are as they were."""
        with self._lock:
            kept = self._kept.get(folder.key)
        if kept is None or kept.digest != digest or kept.seen != _look(folder):
            return None
        with self._lock:
            if folder.key in self._kept:
                self._kept.move_to_end(folder.key)
        return kept.stored

    def read(self, folder: RunFolder, *, digest: str) -> Stored:
        """The result as it is in the folder, checked; raises `RunDamagedError`."""
        seen = _look(folder)
        stored = folder.result(digest=digest)
        size = sum(file.size for name, file in stored.metadata.files.items() if name in ARTEFACTS)
        with self._lock:
            gone = self._kept.pop(folder.key, None)
            self._size -= 0 if gone is None else gone.size
            if size <= self._max_bytes and self._is_settled(seen) and seen == _look(folder):
                self._kept[folder.key] = _Kept(digest, seen, stored, size)
                self._size += size
            while self._size > self._max_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.size
        return stored

    def forget(self, key: str) -> None:
        """The run is being deleted."""
        with self._lock:
            gone = self._kept.pop(key, None)
            self._size -= 0 if gone is None else gone.size

    def _is_settled(self, seen: Seen) -> bool:
        return bool(seen) and max(changed for *_, changed in seen) < self._now_ns() - _SETTLED_NS


def _look(folder: RunFolder) -> Seen:
    """What distinguishes each file from any other that was ever there; empty if one is missing."""
    try:
        found = [(folder.path / name).stat() for name in (METADATA, EVENTS, *ARTEFACTS)]
    except OSError:
        return ()
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)
