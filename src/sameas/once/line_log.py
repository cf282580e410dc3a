"""A file to which threads and processes of one machine append lines, any of which may be killed at any moment.

Rule: a line is told of once all of it is written. A kill, or a full disk, may end a write between two pages of the
file; whoever writes next ends the torn line first, so that it spoils no other. Nothing is ever rewritten: a reader may
meet a part of a line, standing alone, of which nobody was told that it was written.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from threading import Lock
from typing import Self

from sameas.once.forks import renew_after_fork


class LineLog:
    """The file, readable by its owner. With `fsync` a line is on the disk before `append` returns."""

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._lock = Lock()
        self._file = self._open()
        self._is_inherited = False
        if fsync:
            self._settle_name()
        renew_after_fork(self)

    def append(self, *lines: bytes) -> None:
        """Write lines, given without their newlines, next to each other."""
        data = b"".join(line + b"\n" for line in lines)
        with self._lock:
            if self._file < 0:
                raise ValueError(f"{self.path} was closed")
            if self._is_inherited:
                self._reopen()
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX)
                self._write(data)
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            file = self._file
        if self._fsync:
            # Not under the lock: the disk takes the lines of threads that wait together in one go.
            os.fsync(file)

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            data = b"\n" + data
        written = os.write(self._file, data)
        if written < len(data):
            raise OSError(f"{self.path} took {written} of {len(data)} bytes: is the disk full?")

    def close(self) -> None:
        """Close the file; what was written stays."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def after_fork(self) -> None:
        self._lock = Lock()
        self._is_inherited = True

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _reopen(self) -> None:
        # A lock belongs to the open file, which a forked child has in common with its parent.
        inherited, self._file = self._file, self._open()
        self._is_inherited = False
        os.close(inherited)

    def _settle_name(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
