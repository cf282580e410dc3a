"""Pairs of whole numbers by index; beyond a size they lie in a file without a name.

A long text has so many chunks that even two numbers for each of them, in each stage, would be felt.
"""

import struct
import tempfile
import weakref
from collections.abc import Iterator

_PAIR = struct.Struct("<qq")
_IN_MEMORY = 64 * 1024
_PAIRS_AT_ONCE = 512


class PairSpool:
    """Pairs that are put in any order and read in any order; its file is closed with it or before."""

    def __init__(self, *, in_memory: int = _IN_MEMORY) -> None:
        # A limit of 0 would be none at all.
        self._file = tempfile.SpooledTemporaryFile(max(1, in_memory), prefix="sameas-pairs-")  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def __setitem__(self, index: int, pair: tuple[int, int]) -> None:
        self._file.seek(index * _PAIR.size)
        self._file.write(_PAIR.pack(*pair))

    def __getitem__(self, index: int) -> tuple[int, int]:
        self._file.seek(index * _PAIR.size)
        first, second = _PAIR.unpack(self._file.read(_PAIR.size))
        return first, second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        place = 0
        while True:
            # Two iterations may be under way at once: each keeps its own place.
            self._file.seek(place)
            block = self._file.read(_PAIRS_AT_ONCE * _PAIR.size)
            if not block:
                return
            place += len(block)
            yield from _PAIR.iter_unpack(block)

    def close(self) -> None:
        self._file.close()
