"""The outputs of a run: beyond a size they lie in files without a name, which vanish with them.

Rule: reading one as a mapping's value brings it into memory whole; `copy` passes it on in pieces.
"""

import tempfile
import weakref
from collections.abc import Iterator, Mapping
from typing import IO

from sameas.extraction.outputs.context import Writable
from sameas.extraction.outputs.formats import OutputFormat

_IN_MEMORY = 512 * 1024
_BLOCK = 1 << 16


class SpooledOutputs(Mapping[OutputFormat, bytes]):
    """What was written, by format."""

    def __init__(self, *, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = max(1, in_memory)
        self._files: dict[OutputFormat, IO[bytes]] = {}

    def add(self, name: OutputFormat) -> Writable:
        """Where to write this one."""
        # It lives as long as this object, which may end anywhere.
        file = tempfile.SpooledTemporaryFile(self._in_memory, prefix="sameas-output-")  # noqa: SIM115
        weakref.finalize(self, file.close)
        self._files[name] = file
        return file

    def copy(self, name: OutputFormat, target: Writable) -> None:
        for block in self._blocks(name):
            target.write(block)

    def __getitem__(self, name: OutputFormat) -> bytes:
        return b"".join(self._blocks(name))

    def __contains__(self, name: object) -> bool:
        # The mapping's own way to look would read the file.
        return name in self._files

    def __iter__(self) -> Iterator[OutputFormat]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def _blocks(self, name: OutputFormat) -> Iterator[bytes]:
        file = self._files[name]
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block
