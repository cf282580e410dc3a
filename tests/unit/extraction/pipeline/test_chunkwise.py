"""Work that never waits lets everybody else run, however many do it."""

import asyncio
from collections.abc import Callable

import pytest

from sameas.extraction.events.bus import Bus
from sameas.extraction.pipeline import chunkwise
from sameas.extraction.pipeline.chunkwise import Conditions, over_chunks
from sameas.extraction.pipeline.spools import ResultSpool
from sameas.extraction.text.chunking import Chunk
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName

MILLISECOND = 0.001


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Busy:
    """A stage whose work takes a millisecond and never waits."""

    name: StageName = "entity_extraction"
    result_type = int

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def digest(self, chunk: Chunk) -> str:
        return ""

    async def work(self, chunk: Chunk) -> int:
        self._work()
        return chunk.index

    def nothing(self, chunk: Chunk) -> int:
        return -1

    def count(self, result: int) -> int:
        return 1

    def announce(self, result: int, chunk: Chunk, bus: Bus) -> None:
        pass


@pytest.mark.parametrize("workers", [1, 4, 16])
def test_workers_keep_the_event_loop_for_one_slice_together_and_a_chunk_each(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(chunkwise, "time", clock)
    waits: list[float] = []

    def work() -> None:
        clock.now += MILLISECOND

    async def others() -> None:
        last = clock.now
        while True:
            await asyncio.sleep(0)
            waits.append(clock.now - last)
            last = clock.now

    async def go() -> list[int]:
        chunks = [Chunk(number, number, number + 1, "x") for number in range(400)]
        results = ResultSpool(int, total=len(chunks))
        watching = asyncio.ensure_future(others())
        conditions = Conditions(bus=Bus("run"), timeouts=STAGE_TIMEOUTS, concurrency=workers)
        await over_chunks(Busy(work), chunks, results=results, conditions=conditions, progress=(0.0, 1.0))
        watching.cancel()
        done = list(results)
        results.close()
        return done

    assert asyncio.run(go()) == list(range(400))
    # A slice ends with the chunk that was begun in it.
    assert max(waits) <= chunkwise._SLICE + (workers + 1) * MILLISECOND
    assert len(waits) >= 400 * MILLISECOND / (chunkwise._SLICE + (workers + 1) * MILLISECOND)
