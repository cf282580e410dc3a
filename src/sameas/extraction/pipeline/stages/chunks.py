"""Stage 1, chunking: from the normalised text, whole or in pieces, to its chunks."""

import asyncio
import time
from collections.abc import Iterable
from typing import NamedTuple

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import TimeoutWarning
from sameas.extraction.pipeline.stages.spools import ChunkSpool
from sameas.extraction.text.chunking import Chunk, ChunkSettings, iter_chunks
from sameas.llm.timeouts import StageName, StageTimeout
from sameas.ontology.focus import Focus, Focuser

_REST_EVERY = 64


class Chunked(NamedTuple):
    """The chunks, and whether the stage ended before the text did."""

    chunks: ChunkSpool
    ended_early: bool


class ChunkingStage:
    """Cuts a text. Takes pieces as they come; only the spool grows."""

    name: StageName = "chunking"

    def __init__(self, settings: ChunkSettings, *, limits: StageTimeout) -> None:
        self._settings = settings
        self._limits = limits

    async def run(self, pieces: Iterable[str], *, bus: Bus) -> Chunked:
        spool = ChunkSpool()
        last = time.monotonic()
        for chunk in iter_chunks(pieces, settings=self._settings):
            spool.add(chunk)
            now = time.monotonic()
            took_ms, last = (now - last) * 1000, now
            if took_ms > self._limits.soft_ms:
                over = took_ms > self._limits.hard_ms
                limit, allowed = ("hard", self._limits.hard_ms) if over else ("soft", self._limits.soft_ms)
                bus.emit(TimeoutWarning, stage=self.name, limit=limit, timeout_ms=allowed, chunk_index=chunk.index)
                if over:
                    return Chunked(spool, True)
            if chunk.index % _REST_EVERY == 0:
                await asyncio.sleep(0)
                last = time.monotonic()
        return Chunked(spool, False)


class ScopingStage:
    """Chooses the focus of each chunk; a small ontology is passed whole."""

    name: StageName = "property_scoping"
    result_type = Focus

    def __init__(self, focuser: Focuser) -> None:
        self._focuser = focuser

    def digest(self, chunk: Chunk) -> str:
        return ""

    async def work(self, chunk: Chunk) -> Focus:
        return self._focuser.focus(chunk.text)

    def nothing(self, _: Chunk) -> Focus:
        return Focus()

    def count(self, result: Focus) -> int:
        return len(result.classes) + len(result.properties)

    def announce(self, result: Focus, chunk: Chunk, bus: Bus) -> None:
        """A focus is not news."""
