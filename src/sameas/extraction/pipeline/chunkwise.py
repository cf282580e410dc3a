"""Runs one stage for every chunk: several at a time, within time limits, with events and checkpoints.

Rule: results are in the order of the chunks, in whatever order they were done. A chunk that passes its hard limit, or
that the extractor gives up on, has an empty result and makes the stage partial; it gets no checkpoint. So does one that
is under way or waiting when the deadline of the run passes.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import (
    CacheHit,
    ChunkCompleted,
    ChunkStarted,
    ErrorRecoverable,
    ErrorReport,
    StageProgress,
    TimeoutWarning,
)
from sameas.extraction.extractors.contract import ChunkFailedError
from sameas.extraction.pipeline.checkpoints import Checkpoints
from sameas.extraction.pipeline.outcome import DEADLINE, TIMED_OUT, MissingChunk
from sameas.extraction.pipeline.spools import ResultSpool
from sameas.extraction.text.chunking import Chunk
from sameas.llm.timeouts import StageName, StageTimedOutError, StageTimeout, within


class StageIdentity(msgspec.Struct, frozen=True):
    """The extractor and the ontology that a run works with, as digests."""

    extractor: str
    ontology: str

    def digest(self, stage: str, *parts: str | bytes) -> str:
        """A digest of the stage, this identity and the parts, each with its length before it."""
        joined = hashlib.sha256()
        for part in (stage, self.extractor, self.ontology, *parts):
            data = part.encode() if isinstance(part, str) else part
            joined.update(len(data).to_bytes(8, "big") + data)
        return joined.hexdigest()


# The share of each stage in the progress that people see, in the order of the stages.
_SHARES: Mapping[StageName, float] = {
    "chunking": 0.03,
    "property_scoping": 0.02,
    "entity_extraction": 0.45,
    "entity_resolution": 0.03,
    "relation_extraction": 0.35,
    "grounding": 0.07,
    "serialization": 0.05,
}


def progress_of(stage: StageName) -> tuple[float, float]:
    """The run's progress before and after a stage, from 0 to 1."""
    before = 0.0
    for name, share in _SHARES.items():
        if name == stage:
            return before, before + share
        before += share
    raise KeyError(stage)


T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
_PROGRESS_STEPS = 20
# How long work that never waits may keep the event loop.
_SLICE = 0.005


class ChunkStage(Protocol[T]):
    """The work of a stage on one chunk."""

    @property
    def name(self) -> StageName: ...

    @property
    def result_type(self) -> type[T]: ...

    def digest(self, chunk: Chunk) -> str:
        """A digest of everything that the result depends on; empty if a checkpoint is not worthwhile."""
        ...

    async def work(self, chunk: Chunk) -> T: ...

    def nothing(self, chunk: Chunk, /) -> T:
        """The result for a chunk that could not be done: what is known without it."""
        ...

    def count(self, result: T) -> int: ...

    def announce(self, result: T, chunk: Chunk, bus: Bus) -> None:
        """Emit what was found."""
        ...


class ChunkOutcome(NamedTuple):
    """How much was found, which chunks ended early, and how many came from checkpoints."""

    items: int
    missing: tuple[MissingChunk, ...]
    from_checkpoints: int


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The limits and the checkpoints of a run, for its stages."""

    bus: Bus
    timeouts: Mapping[StageName, StageTimeout]
    concurrency: int = 4
    ahead: int = 0
    """So many more chunks are got ready, where the extractor itself keeps to the concurrency: the next question is
    asked the moment an answer is there, before that answer is worked on."""
    checkpoints: Checkpoints | None = None
    ends_at: float | None = None
    """When the run's own deadline passes, by `time.monotonic`."""

    def time_left(self) -> float | None:
        """Seconds until the deadline of the run; None if it has none."""
        return None if self.ends_at is None else self.ends_at - time.monotonic()


async def over_chunks(
    stage: ChunkStage[T],
    chunks: Iterable[Chunk],
    *,
    results: ResultSpool[T],
    conditions: Conditions,
    progress: tuple[float, float],
) -> ChunkOutcome:
    """Run the stage for all chunks; `progress` is the progress of the run before and after it."""
    total = len(results)
    run = _Run(stage, results, conditions, progress)
    queue = iter(chunks)
    workers = max(1, min(conditions.concurrency + conditions.ahead, total))
    tasks = [asyncio.create_task(run.worker(queue)) for _ in range(workers)]
    try:
        # `wait` raises nothing, unlike `gather`, so that all can be ended before the first failure is raised.
        done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
    if running:
        await asyncio.wait(running)
    for task in tasks:
        if task in done:
            task.result()
    return ChunkOutcome(run.items, tuple(sorted(run.missing)), run.from_checkpoints)


class _Run(Generic[T]):
    def __init__(
        self, stage: ChunkStage[T], results: ResultSpool[T], conditions: Conditions, progress: tuple[float, float]
    ) -> None:
        self._stage = stage
        self._results = results
        self._total = len(results)
        self._conditions = conditions
        self._bus = conditions.bus
        self._progress = progress
        self._step = max(1, self._total // _PROGRESS_STEPS)
        self._decoder = msgspec.msgpack.Decoder(stage.result_type)
        self._done = 0
        self._yield_at = 0.0
        self.items = 0
        self.missing: list[MissingChunk] = []
        self.from_checkpoints = 0

    async def worker(self, queue: Iterator[Chunk]) -> None:
        """Work on chunks until none is left."""
        for chunk in queue:
            await self._do(chunk)
            # Work that never waits would keep other tasks, and a cancellation, from running.
            ended = self._yield_at
            if time.monotonic() >= ended:
                await asyncio.sleep(0)
                # One slice for all workers: the first to come back begins the next.
                if self._yield_at == ended:
                    self._yield_at = time.monotonic() + _SLICE

    async def _do(self, chunk: Chunk) -> None:
        stage, bus = self._stage, self._bus
        bus.emit(ChunkStarted, stage=stage.name, chunk_index=chunk.index, start=chunk.start, end=chunk.end)
        began = time.monotonic()
        digest = stage.digest(chunk) if self._conditions.checkpoints is not None else ""
        result = await self._load(digest)
        cached, failure = result is not None, ""
        if result is None:
            result, failure = await self._work(chunk)
            if not failure and digest and self._conditions.checkpoints is not None:
                await self._ask(self._conditions.checkpoints.save, stage.name, digest, msgspec.msgpack.encode(result))
        self._results.put(chunk.index, result)
        self._done += 1
        if failure:
            self.missing.append(MissingChunk(chunk.start, chunk.end, stage.name, failure, chunk.index))
        self.from_checkpoints += cached
        stage.announce(result, chunk, bus)
        self._report(chunk, result, began, cached=cached, partial=bool(failure))

    async def _ask(self, do: Callable[P, R], *args: P.args, **words: P.kwargs) -> R:
        """Look for a checkpoint, without blocking other work."""
        checkpoints = self._conditions.checkpoints
        if checkpoints is not None and checkpoints.is_remote:
            return await asyncio.to_thread(do, *args, **words)
        return do(*args, **words)

    async def _load(self, digest: str) -> T | None:
        checkpoints = self._conditions.checkpoints
        if checkpoints is None or not digest:
            return None
        kept = await self._ask(checkpoints.load, self._stage.name, digest)
        if kept is None:
            return None
        try:
            result = self._decoder.decode(kept)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None
        self._bus.emit(CacheHit, source="checkpoint", key=digest, items=self._stage.count(result))
        return result

    async def _work(self, chunk: Chunk) -> tuple[T, str]:
        """The result, and why it ended early if it did."""
        stage, bus = self._stage, self._bus
        limits = self._conditions.timeouts[stage.name]
        left = self._conditions.time_left()
        if left is not None and left <= 0:
            return stage.nothing(chunk), DEADLINE
        # Waits do not count as work of a stage, and may be longer than the run.
        deadline = asyncio.timeout(left)

        def warn(limit: str = "soft") -> None:
            milliseconds = limits.soft_ms if limit == "soft" else limits.hard_ms
            bus.emit(
                TimeoutWarning,
                stage=stage.name,
                limit=limit,
                timeout_ms=milliseconds,
                chunk_index=chunk.index,
            )

        try:
            async with deadline:
                return await within(stage.name, lambda: stage.work(chunk), limits=limits, on_soft=warn), ""
        except TimeoutError:
            if not deadline.expired():
                raise
            return stage.nothing(chunk), DEADLINE
        except StageTimedOutError:
            warn("hard")
            return stage.nothing(chunk), TIMED_OUT
        except ChunkFailedError as failed:
            report = ErrorReport(
                code=failed.code, message=str(failed), recoverable=True, retry_after_ms=failed.retry_after_ms
            )
            bus.emit(ErrorRecoverable, error=report, stage=stage.name, chunk_index=chunk.index)
            return stage.nothing(chunk), failed.code

    def _report(self, chunk: Chunk, result: T, began: float, *, cached: bool, partial: bool) -> None:
        done, items = self._done, self._stage.count(result)
        self.items += items
        before, after = self._progress
        self._bus.advance(before + (after - before) * done / self._total)
        self._bus.emit(
            ChunkCompleted,
            stage=self._stage.name,
            chunk_index=chunk.index,
            item_count=items,
            duration_ms=int((time.monotonic() - began) * 1000),
            cached=cached,
            partial=partial,
        )
        if done % self._step == 0 or done == self._total:
            self._bus.emit(
                StageProgress,
                stage=self._stage.name,
                percent=round(100 * done / self._total, 1),
                items_processed=done,
                items_total=self._total,
            )
