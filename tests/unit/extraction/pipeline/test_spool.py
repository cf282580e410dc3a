"""Chunks can be gone through as often as needed, in memory or on disk."""

import asyncio
from collections.abc import Iterator

import pytest

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import TimeoutWarning
from sameas.extraction.pipeline import stages as stages_module
from sameas.extraction.pipeline.spools import ChunkSpool
from sameas.extraction.pipeline.stages import ChunkingStage
from sameas.extraction.text.chunking import Chunk, ChunkSettings, chunk_text
from sameas.llm.timeouts import StageTimeout

SMALL = ChunkSettings(window=20, limit=60)
CHUNKS = chunk_text("Eins. Zwei 東京 drei. 👩\u200d🚀 vier fünf sechs. " * 40, settings=SMALL)


@pytest.mark.parametrize("in_memory", [0, 100, 1_000_000])
def test_chunks_come_back_as_they_went_in(in_memory: int) -> None:
    spool = ChunkSpool(CHUNKS, in_memory=in_memory)
    assert list(spool) == CHUNKS
    assert list(spool) == CHUNKS
    assert len(spool) == len(CHUNKS)
    assert spool.characters == sum(len(chunk.text) for chunk in CHUNKS)
    spool.close()


def test_two_may_go_through_it_at_once() -> None:
    spool = ChunkSpool(CHUNKS, in_memory=0)
    assert all(one == other for one, other in zip(spool, spool, strict=True))
    spool.close()


def test_a_lone_surrogate_survives_the_disk() -> None:
    chunk = Chunk(0, 0, 3, "a\ud800b")
    spool = ChunkSpool([chunk], in_memory=0)
    assert list(spool) == [chunk]
    spool.close()


def chunking(monkeypatch: pytest.MonkeyPatch, *, seconds_a_chunk: float) -> tuple[stages_module.Chunked, list[str]]:
    """Chunking with a clock that moves on by so much at every look."""
    now = 0.0

    class Clock:
        @staticmethod
        def monotonic() -> float:
            nonlocal now
            now += seconds_a_chunk
            return now

    monkeypatch.setattr(stages_module, "time", Clock)
    bus = Bus("k")
    heard = bus.subscribe()
    pieces: Iterator[str] = iter(["One. Two. Three. Four. Five. Six. Seven. Eight. Nine. Ten. " * 5])
    done = asyncio.run(ChunkingStage(SMALL, limits=StageTimeout(3000, 5000)).run(pieces, bus=bus))
    bus.close()
    return done, [event.limit for event in heard if isinstance(event, TimeoutWarning)]


def test_slow_chunking_warns_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    done, warned = chunking(monkeypatch, seconds_a_chunk=4)
    assert not done.ended_early
    assert set(warned) == {"soft"}
    assert len(warned) == len(done.chunks)


def test_chunking_that_hangs_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    done, warned = chunking(monkeypatch, seconds_a_chunk=6)
    assert done.ended_early
    assert warned == ["hard"]
    assert len(done.chunks) == 1
