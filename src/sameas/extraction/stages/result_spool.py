"""The results of a stage for all chunks of a run; beyond a size they lie in a file without a name.

Rule: results may be put in any order and are read in the order of the chunks. Reading makes them anew, so that memory
holds one at a time, whatever the length of the text.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from sameas.extraction.stages.pair_spool import PairSpool
from sameas.extraction.stages.spooled_bytes import SpooledBytes

T = TypeVar("T")

# There are several at once, and a text of some megabytes seldom fills one.
_IN_MEMORY = 256 * 1024


class ResultSpool(Generic[T]):
    """One result for each chunk. Read it as often as needed, in one thread at a time; close it when the run is over."""

    def __init__(self, result_type: type[T], *, total: int, in_memory: int = _IN_MEMORY) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(result_type)
        self._bytes = SpooledBytes(in_memory=in_memory, prefix="sameas-results-")
        self._places = PairSpool()
        self._total = total
        self._written = 0
        self._last = b""
        self._latest: tuple[tuple[int, int], T] | None = None

    def __len__(self) -> int:
        return self._total

    def put(self, index: int, result: T) -> None:
        data = self._encoder.encode(result)
        # Runs of equal results are the rule: a small ontology's focus, chunks in which there is nothing.
        if data != self._last:
            self._bytes.write(self._written, data)
            self._last = data
            self._written += len(data)
        self._places[index] = (self._written - len(data), len(data))

    def __getitem__(self, index: int) -> T:
        return self._read(self._places[index])

    def __iter__(self) -> Iterator[T]:
        return (self._read(place) for place in self._places)

    def close(self) -> None:
        self._bytes.close()
        self._places.close()

    def _read(self, place: tuple[int, int]) -> T:
        latest = self._latest
        if latest is not None and latest[0] == place:
            return latest[1]
        result = self._decoder.decode(self._bytes.read(*place))
        self._latest = (place, result)
        return result
