"""Checkpoints on disk, shared by all runs of a tenant: an edited document costs only the chunks that changed.

Rule: a file's name is the stage and the digest of everything that went into the result, so it is never stale;
its content begins with its own digest, so a torn or damaged one is a miss. Nothing is forced to the disk, and who
looks while another writes may take the file away: what is lost so is done again. Any number of processes may share the
folder.
"""

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from sameas.extraction.size_bound import Kept, is_look_due, least_recent
from sameas.llm.timeouts import STAGES, StageName

_DIGEST = re.compile(r"[0-9a-f]{64}")
_HEAD = b"sameas-checkpoint\n"
_DIGEST_BYTES = 32
_TOUCH_EVERY = 3600.0

DEFAULT_BYTES = 1 << 30


class FileCheckpoints:
    """A folder of checkpoints within a bound of bytes; the least recently used go first."""

    def __init__(self, folder: Path, *, max_bytes: int = DEFAULT_BYTES, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._clock = clock

    def load(self, stage: StageName, digest: str) -> bytes | None:
        path = self._path(stage, digest)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        body = content[len(_HEAD) + _DIGEST_BYTES :]
        if content[: -len(body) or None] != _HEAD + hashlib.sha256(body).digest():
            with suppress(OSError):
                path.unlink()
            return None
        self._touch(path)
        return body

    def save(self, stage: StageName, digest: str, data: bytes) -> None:
        """Keep it; a folder that cannot be written costs the checkpoint, not the run."""
        path = self._path(stage, digest)
        content = _HEAD + hashlib.sha256(data).digest() + data
        try:
            try:
                self._write(path, content)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                self._write(path, content)
            except FileExistsError:
                # It was of no use, or somebody else had the same work done at the same time.
                path.unlink(missing_ok=True)
                self._write(path, content)
        except OSError:
            return
        if is_look_due(digest, size=len(content), bound=self._max_bytes):
            self.prune()

    def prune(self) -> int:
        """Bring the folder within its bound; returns how many went."""
        # Most looks find room, and need not remember the names of very many small files.
        if sum(kept.size for kept in self._all()) <= self._max_bytes:
            return 0
        gone = 0
        for kept in least_recent(self._all(), bound=self._max_bytes):
            kept.path.unlink(missing_ok=True)
            gone += 1
        return gone

    def _all(self) -> Iterator[Kept]:
        for stage in STAGES:
            for shard in _entries(self._folder / stage):
                for entry in _entries(Path(shard.path)):
                    try:
                        about = entry.stat()
                    except OSError:
                        continue
                    if _DIGEST.fullmatch(entry.name):
                        yield Kept(about.st_mtime, about.st_size, Path(entry.path))

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        # Unbuffered, and no look at what kind of file it is: there is one of these for each chunk and stage.
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            while content:
                content = content[os.write(place, content) :]
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        finally:
            os.close(place)

    def _touch(self, path: Path) -> None:
        now = self._clock()
        try:
            if path.stat().st_mtime < now - _TOUCH_EVERY:
                os.utime(path, (now, now))
        except OSError:
            # Somebody pruned it a moment ago; what was read is good all the same.
            return

    def _path(self, stage: StageName, digest: str) -> Path:
        if stage not in STAGES or not _DIGEST.fullmatch(digest):
            raise ValueError(f"a checkpoint is named by a stage and 64 hex digits, not by {stage!r} and {digest!r}")
        return self._folder / stage / digest[0] / digest


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return
