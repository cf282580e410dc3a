"""What a run finds, kept while it goes on; large content lies in files without a name."""

import struct
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import IO, Generic, TypeVar

import msgspec

from sameas.extraction.text.chunking import Chunk


class ByteSpool:
    """Bytes that can be read and written anywhere until they are closed; beyond a size they lie in a file."""

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
        """Up to `size` bytes from this offset."""
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


_PAIR = struct.Struct("<qq")
_PAIRS_IN_MEMORY = 64 * 1024
_PAIRS_AT_ONCE = 512


class PairSpool:
    """Pairs of numbers, written and read in any order."""

    def __init__(self, *, in_memory: int = _PAIRS_IN_MEMORY) -> None:
        self._bytes = ByteSpool(in_memory=in_memory, prefix="sameas-pairs-")

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


# A chunk in memory keeps its sentences too, which take some times as much as its text.
_CHUNKS_IN_MEMORY = 512 * 1024


class ChunkSpool:
    """Chunks in order; may be iterated repeatedly. Close it when the run is over."""

    def __init__(self, chunks: Iterable[Chunk] = (), *, in_memory: int = _CHUNKS_IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._chunks: list[Chunk] = []
        self._file: IO[bytes] | None = None
        # Where each chunk begins in the text, and how many bytes it is in the file.
        self._places = PairSpool()
        self._count = 0
        self._written = 0
        self.characters = 0
        for chunk in chunks:
            self.add(chunk)

    def __len__(self) -> int:
        return self._count

    @property
    def starts(self) -> Iterable[int]:
        """Where each chunk begins in the text; may be iterated repeatedly."""
        return _Starts(self._places)

    def add(self, chunk: Chunk) -> None:
        data = _bytes(chunk)
        if self._file is not None:
            self._write(self._file, data)
        else:
            self._chunks.append(chunk)
            if self.characters + len(chunk.text) > self._in_memory:
                self._move_out()
        self._places[self._count] = (chunk.start, len(data))
        self._count += 1
        self.characters += len(chunk.text)

    def __iter__(self) -> Iterator[Chunk]:
        if self._file is None:
            yield from self._chunks
            return
        place = 0
        for index, (start, size) in enumerate(self._places):
            # Two iterations may be under way at once: each keeps its own place.
            self._file.seek(place)
            text = self._file.read(size).decode("utf-8", "surrogatepass")
            place += size
            yield Chunk(index=index, start=start, end=start + len(text), text=text)

    def close(self) -> None:
        self._places.close()
        if self._file is not None:
            self._file.close()

    def _move_out(self) -> None:
        # It lives as long as the spool and vanishes with it.
        self._file = tempfile.TemporaryFile(prefix="sameas-chunks-")  # noqa: SIM115
        for chunk in self._chunks:
            self._write(self._file, _bytes(chunk))
        self._chunks.clear()

    def _write(self, file: IO[bytes], data: bytes) -> None:
        file.seek(self._written)
        file.write(data)
        self._written += len(data)


class _Starts:
    def __init__(self, places: PairSpool) -> None:
        self._places = places

    def __iter__(self) -> Iterator[int]:
        return (start for start, _ in self._places)


def _bytes(chunk: Chunk) -> bytes:
    return chunk.text.encode("utf-8", "surrogatepass")


T = TypeVar("T")

# There are several at once, and a text of some megabytes seldom fills one.
_RESULTS_IN_MEMORY = 256 * 1024


class ResultSpool(Generic[T]):
    """One result for each chunk; may be read repeatedly, in one thread at a time. Close it when the run is over."""

    def __init__(self, result_type: type[T], *, total: int, in_memory: int = _RESULTS_IN_MEMORY) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(result_type)
        self._bytes = ByteSpool(in_memory=in_memory, prefix="sameas-results-")
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

    def present(self) -> Iterator[tuple[int, T]]:
        """The results that exist so far, with their indexes."""
        return ((index, self._read(place)) for index, place in enumerate(self._places) if place[1])

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
