"""Pairs of whole numbers by index; beyond a size they lie in a file without a name.

A long text has so many chunks that even two numbers for each of them, in each stage, would be felt.
"""

import struct
from collections.abc import Iterator

from sameas.extraction.stages.spooled_bytes import SpooledBytes

_PAIR = struct.Struct("<qq")
_IN_MEMORY = 64 * 1024
_PAIRS_AT_ONCE = 512


class PairSpool:
    """Pairs that are put in any order and read in any order."""

    def __init__(self, *, in_memory: int = _IN_MEMORY) -> None:
        self._bytes = SpooledBytes(in_memory=in_memory, prefix="sameas-pairs-")

    def __setitem__(self, index: int, pair: tuple[int, int]) -> None:
        self._bytes.write(index * _PAIR.size, _PAIR.pack(*pair))

    def __getitem__(self, index: int) -> tuple[int, int]:
        first, second = _PAIR.unpack(self._bytes.read(index * _PAIR.size, _PAIR.size))
        return first, second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        place = 0
        while True:
            # Two iterations may be under way at once: each keeps its own place.
            block = self._bytes.read(place, _PAIRS_AT_ONCE * _PAIR.size)
            if not block:
                return
            place += len(block)
            yield from _PAIR.iter_unpack(block)

    def close(self) -> None:
        self._bytes.close()
