"""Bytes by place; beyond a size they lie in a file without a name."""

import tempfile
import weakref
from io import BytesIO
from typing import IO


class SpooledBytes:
    """Read and write anywhere until it is closed. The file, if there is one, is closed with it or before."""

    def __init__(self, *, in_memory: int, prefix: str) -> None:
        self._in_memory = in_memory
        self._prefix = prefix
        self._is_in_memory = True
        self._file: IO[bytes] = BytesIO()

    def write(self, at: int, data: bytes) -> None:
        if self._is_in_memory and at + len(data) > self._in_memory:
            self._move_out()
        self._file.seek(at)
        self._file.write(data)

    def read(self, at: int, size: int) -> bytes:
        """As many bytes as there are from there on, up to `size`."""
        self._file.seek(at)
        return self._file.read(size)

    def close(self) -> None:
        self._file.close()

    def _move_out(self) -> None:
        held = self.read(0, -1)
        file = tempfile.TemporaryFile(prefix=self._prefix)  # noqa: SIM115 - it vanishes with its owner
        weakref.finalize(self, file.close)
        file.write(held)
        self._file, self._is_in_memory = file, False
