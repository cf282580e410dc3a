"""Results that were read and checked a moment ago: who asks again need not read and check the same files.

Rule: a result is given only while every file of its run is the one that was read, by its inode, size and times, and
while the record of the run accepts it. What was written less than a moment before it was read is not kept, because a
clock that ticks slowly could hide a change. The least recently used go when there are too many bytes.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from sameas.extraction.runs.folder import RunFolder, Stored
from sameas.extraction.runs.metadata import ARTEFACTS, EVENTS, METADATA

# Of files; the objects that are made of them take some times as much.
DEFAULT_BYTES = 4 << 20
# File systems note times by a clock that ticks every few milliseconds.
_SETTLED_NS = 100_000_000

Seen: TypeAlias = tuple[tuple[int, int, int, int], ...]


class _Kept(NamedTuple):
    digest: str
    seen: Seen
    stored: Stored
    size: int


class RecentResults:
    """The results that one process read last. Any thread may ask."""

    def __init__(self, *, max_bytes: int = DEFAULT_BYTES, now_ns: Callable[[], int] = time.time_ns) -> None:
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
    """What tells a file from every other one that was ever there; nothing where one is missing."""
    try:
        found = [(folder.path / name).stat() for name in (METADATA, EVENTS, *ARTEFACTS)]
    except OSError:
        return ()
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in found)
