"""Bytes by place; beyond a size they lie in a file without a name."""

import tempfile
import weakref
from typing import IO


class SpooledBytes:
    """Read and write anywhere. The file, if there is one, is closed with it or before."""

    def __init__(self, *, in_memory: int, prefix: str) -> None:
        self._in_memory = in_memory
        self._prefix = prefix
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    def write(self, at: int, data: bytes) -> None:
        if self._file is None and at + len(data) > self._in_memory:
            self._move_out()
        if self._file is not None:
            self._file.seek(at)
            self._file.write(data)
            return
        if at > len(self._memory):
            self._memory.extend(bytes(at - len(self._memory)))
        self._memory[at : at + len(data)] = data

    def read(self, at: int, size: int) -> bytes:
        """As many bytes as there are from there on, up to `size`."""
        if self._file is None:
            return bytes(self._memory[at : at + size])
        self._file.seek(at)
        return self._file.read(size)

    def close(self) -> None:
        self._memory.clear()
        if self._file is not None:
            self._file.close()

    def _move_out(self) -> None:
        self._file = tempfile.TemporaryFile(prefix=self._prefix)  # noqa: SIM115 - it vanishes with its owner
        weakref.finalize(self, self._file.close)
        self._file.write(self._memory)
        self._memory = bytearray()
