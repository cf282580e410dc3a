"""The chunks of a run, to be gone through once for each stage; beyond a size they lie in a file without a
name.
"""

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

from sameas.extraction.chunking import Chunk
from sameas.extraction.stages.pair_spool import PairSpool

# A chunk in memory keeps its sentences too, which take some times as much as its text.
_IN_MEMORY = 512 * 1024


class ChunkSpool:
    """Chunks in order. Iterate it as often as needed; close it when the run is over."""

    def __init__(self, chunks: Iterable[Chunk] = (), *, in_memory: int = _IN_MEMORY) -> None:
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
        """Where each chunk begins in the text; to be walked as often as needed."""
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
