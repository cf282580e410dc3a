"""One run of the pipeline: its stages in order, what they have found so far, and what was cut short."""

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import (
    ExtractionCancelled,
    ExtractionCompleted,
    ExtractionFailed,
    ExtractionStarted,
    StageCompleted,
    StageStarted,
    Summary,
    TimeoutWarning,
)
from sameas.extraction.extractors.contract import (
    Bindable,
    BoundExtractor,
    Extractor,
    RunLink,
    extractor_digest,
)
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import FoundGraph, Graph, KnowledgeGraph
from sameas.extraction.graph.rejections import Ledger
from sameas.extraction.graph.resolution import Resolution
from sameas.extraction.outputs import OutputContext, OutputFormat, OutputSpool
from sameas.extraction.pipeline.assembly import AssembledRelations, assemble
from sameas.extraction.pipeline.checkpoints import Checkpoints
from sameas.extraction.pipeline.chunkwise import ChunkStage, Conditions, StageIdentity, over_chunks, progress_of
from sameas.extraction.pipeline.outcome import ExtractionResult, MissingChunk, outcome_of
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.pipeline.spools import ChunkSpool, ResultSpool
from sameas.extraction.pipeline.stages import (
    ChunkClaims,
    ChunkingStage,
    ChunkMentions,
    ChunkSupport,
    EntityStage,
    GroundingStage,
    RelationStage,
    ResolutionStage,
    ScopingStage,
    SerializationStage,
)
from sameas.extraction.text.chunking import iter_chunks
from sameas.extraction.text.document import normalized_pieces
from sameas.llm.ledger import SpendingMeter
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimedOutError, within
from sameas.ontology.focus import Focus, Focuser
from sameas.ontology.index import OntologyIndex

T = TypeVar("T")

# What a failed or cancelled run found is reported up to these sizes; beyond them it is in the checkpoints only.
_CHUNKS_REPORTED, _ENTITIES_REPORTED = 500, 1_000
# Counting the chunks of a longer text would hold the loop.
_SHORT = 100_000
_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_NAME_HAS_A_CLASS = (
    "Names were found, but none of them got a class, so the graph is empty; rejected.json lists them as no_type. Add "
    "to the ontology a class such as person, organization or place with rdfs:label, class labels that the text uses "
    "beside names, the names themselves as individuals, or rdfs:domain and rdfs:range of the properties that the text "
    "speaks of."
)


class RunPart(NamedTuple):
    """One of several parts of a document's chunks; the first is number 0."""

    number: int
    parts: int

    def has(self, index: int, *, of: int) -> bool:
        """Whether a chunk of a document with `of` chunks belongs to this part."""
        return index * self.parts // of == self.number


class RunPlan(msgspec.Struct, frozen=True):
    """What the runs of a pipeline share."""

    index: OntologyIndex
    extractor: Extractor
    guard: Guard
    focuser: Focuser
    settings: PipelineSettings
    checkpoints: Checkpoints | None


class PipelineRun:
    """The state of one run: what was found so far and what was cut short."""

    def __init__(self, plan: RunPlan, text: str | Iterable[str], *, key: str, bus: Bus, meter: SpendingMeter) -> None:
        self.bus = bus
        self._key = key
        self._meter = meter
        self._bound: BoundExtractor | None = None
        self._index = plan.index
        self._extractor = plan.extractor
        self._guard = plan.guard
        self._focuser = plan.focuser
        self._settings = plan.settings
        self._began = time.monotonic()
        limit = self._settings.deadline_seconds
        self._conditions = Conditions(
            bus=bus,
            timeouts={**STAGE_TIMEOUTS, **self._settings.timeouts},
            concurrency=self._settings.concurrency,
            ahead=self._settings.concurrency if isinstance(self._extractor, Bindable) else 0,
            checkpoints=plan.checkpoints,
            ends_at=None if limit is None else self._began + limit,
        )
        self._identity = StageIdentity(extractor_digest(self._extractor), self._index.ontology.version)
        self._size = len(text) if isinstance(text, str) else None
        self._chunks = ChunkSpool()
        self._results = ExitStack()
        self._rejected = Ledger()
        self._notes: set[str] = set()
        self._early: dict[StageName, int] = {}
        self._missing: list[MissingChunk] = []
        self._reused = 0
        self._count = 0
        self._stage_early = False
        self._mentions: ResultSpool[Any] | None = None
        self._resolution: Resolution | None = None
        self._so_far: KnowledgeGraph | None = None

    async def go(
        self, text: str | Iterable[str], *, formats: Sequence[OutputFormat], output: OutputContext
    ) -> ExtractionResult:
        """Go through the seven stages; returns what they found."""
        self.bus.emit(ExtractionStarted, total_chunks=await self._count_chunks(text), total_characters=self._size)
        try:
            await self._chunk(text)
            self._bind()
            foci = await self._each(ScopingStage(self._focuser))
            mentions = await self._read(foci)
            self._collect(mentions)
            resolution = await self._resolve(mentions)
            claims = await self._relate(foci, mentions)
            self._collect(claims)
            support = await self._ground(claims)
            relations = assemble(support, starts=self._chunks.starts, resolution=resolution, ledger=self._rejected)
        except BaseException:
            self._so_far = self._found_so_far()
            raise
        finally:
            self._chunks.close()
            self._results.close()
        graph = self._graph(resolution, relations)
        outputs = await self._write(graph, relations.evidence_count, formats, output)
        return self._finish(graph, outputs)

    async def help(self, text: str, part: RunPart) -> int:
        """Leave checkpoints of a part of the chunks to a run that goes on elsewhere; returns the number of chunks."""
        try:
            await self._chunk(text)
            mine = [chunk for chunk in self._chunks if part.has(chunk.index, of=len(self._chunks))]
            self._chunks.close()
            # The run works from the front and the helper from the back, so that they meet only once.
            self._chunks = ChunkSpool(replace(chunk, index=place) for place, chunk in enumerate(reversed(mine)))
            self._bind()
            foci = await self._each(ScopingStage(self._focuser))
            await self._ground(await self._relate(foci, await self._read(foci)))
            return len(mine)
        finally:
            self._chunks.close()
            self._results.close()

    def end(self, kind: type[ExtractionFailed | ExtractionCancelled], **fields: object) -> None:
        """Emit the last event: how the run ended and what it had found."""
        self.bus.emit(kind, partial_result=self._so_far, **fields)
        self.bus.close()

    async def _count_chunks(self, text: str | Iterable[str]) -> int | None:
        """The number of chunks; None for a text in pieces, which are read only once."""
        if not isinstance(text, str):
            return None

        def count() -> int:
            return sum(1 for _ in iter_chunks(normalized_pieces((text,)), settings=self._settings.chunking))

        return count() if len(text) <= _SHORT else await asyncio.to_thread(count)

    def _found_so_far(self) -> KnowledgeGraph | None:
        """The entities of the chunks that were read before the run ended; None if there are none, or too many for an
        event.
        """
        resolution = self._resolution
        if resolution is None and self._mentions is not None and len(self._mentions) <= _CHUNKS_REPORTED:
            starts = list(self._chunks.starts)
            found = list(self._mentions.present())
            stage = ResolutionStage(self._index)
            resolution = stage.run([one for _, one in found], starts=[starts[index] for index, _ in found])
        if resolution is None or not 0 < len(resolution.entities) <= _ENTITIES_REPORTED:
            return None
        return KnowledgeGraph.of(entities=resolution.entities)

    async def _chunk(self, text: str | Iterable[str]) -> None:
        with self._stage("chunking"):
            stage = ChunkingStage(self._settings.chunking, limits=self._conditions.timeouts["chunking"])
            pieces = normalized_pieces((text,) if isinstance(text, str) else text)
            done = await stage.run(map(_writable, pieces), bus=self.bus)
            self._chunks, self._stage_early = done.chunks, done.ended_early
            self._early["chunking"] = int(done.ended_early)
            self._count = len(done.chunks)

    def _bind(self) -> None:
        """Bind an extractor that spends money to this run, now that the number of chunks is known."""
        if isinstance(self._extractor, Bindable):
            link = RunLink(
                key=self._key,
                chunks=len(self._chunks),
                on_signal=self._emit,
                spent=self._meter.before,
                on_spent=self._meter.on_spent,
                concurrency=self._settings.concurrency,
            )
            self._extractor = self._bound = self._extractor.bind(link)
            self._meter.attach(self._bound.usage)

    def _emit(self, signal: Any) -> None:
        from sameas.extraction.extractors.prompted.control import announce

        announce(signal, self.bus)

    async def _each(self, stage: ChunkStage[T]) -> ResultSpool[T]:
        with self._stage(stage.name):
            results = self._results.enter_context(closing(ResultSpool(stage.result_type, total=len(self._chunks))))
            if stage.name == EntityStage.name:
                self._mentions = results
            done = await over_chunks(
                stage,
                self._chunks,
                results=results,
                conditions=self._conditions,
                progress=progress_of(stage.name),
            )
            self._early[stage.name] = len(done.missing)
            self._missing.extend(done.missing)
            self._stage_early = bool(done.missing)
            self._reused += done.from_checkpoints
            self._count = done.items
        return results

    async def _read(self, foci: ResultSpool[Focus]) -> ResultSpool[ChunkMentions]:
        return await self._each(EntityStage(self._extractor, self._guard, foci=foci, identity=self._identity))

    async def _relate(self, foci: ResultSpool[Focus], mentions: ResultSpool[ChunkMentions]) -> ResultSpool[ChunkClaims]:
        return await self._each(
            RelationStage(
                self._extractor,
                self._guard,
                foci=foci,
                found=mentions,
                identity=self._identity,
                is_kept=self._bound is None or self._bound.relates,
            )
        )

    async def _ground(self, claims: ResultSpool[ChunkClaims]) -> ResultSpool[ChunkSupport]:
        second = self._bound if self._bound is not None and self._bound.verifies else None
        return await self._each(
            GroundingStage(self._settings.grounding, found=claims, second=second, identity=self._identity)
        )

    async def _resolve(self, mentions: ResultSpool[ChunkMentions]) -> Resolution:
        with self._stage("entity_resolution"):
            stage = ResolutionStage(self._index)
            # In a thread: it is one long calculation, and events and cancellation must go on.
            resolution = await asyncio.to_thread(stage.run, mentions, starts=self._chunks.starts)
            self._count = len(resolution.entities)
            self._resolution = resolution
        return resolution

    async def _write(
        self, graph: Graph, evidence: int, formats: Sequence[OutputFormat], output: OutputContext
    ) -> OutputSpool:
        with self._stage("serialization"):
            stage = SerializationStage(output, formats=formats)
            # A fixed limit would leave a graph that takes longer partial for ever.
            limits = self._conditions.timeouts["serialization"].for_items(len(graph.entities) + evidence)
            outputs = OutputSpool()
            try:
                if not formats:
                    return outputs
                outputs = await within(
                    "serialization",
                    lambda: asyncio.to_thread(stage.run, graph),
                    limits=limits,
                    on_soft=lambda: self._warn("serialization", "soft", limits.soft_ms),
                )
            except StageTimedOutError:
                self._warn("serialization", "hard", limits.hard_ms)
                self._early["serialization"] = 1
                self._stage_early = True
            self._count = len(outputs)
        return outputs

    def _collect(self, found: Iterable[ChunkMentions | ChunkClaims]) -> None:
        """Collect rejections and notes, in the document's offsets."""
        for chunk, start in zip(found, self._chunks.starts, strict=True):
            self._notes.update(chunk.notes)
            self._rejected.add(chunk.rejected, start=start)

    def _graph(self, resolution: Resolution, relations: AssembledRelations) -> FoundGraph:
        # A name without a class in its chunk is refused there; one that resolution knew is not refused after all.
        self._rejected.forgive("no_type", where=resolution.is_named)
        if not len(resolution.entities) and any(one.code == "no_type" for one in self._rejected):
            self._notes.add(_NO_NAME_HAS_A_CLASS)
        return FoundGraph(resolution.entities, relations, self._rejected, tuple(sorted(self._notes)))

    def _finish(self, graph: Graph, outputs: OutputSpool) -> ExtractionResult:
        early = sum(self._early.values())
        usage = self._meter.read()
        result = ExtractionResult(
            found=graph,
            outcome=outcome_of(graph, ended_early=early > 0, usage=usage if self._bound is not None else None),
            outputs=outputs,
            chunks=len(self._chunks),
            chunks_from_checkpoints=self._reused,
            chunks_ended_early=early,
            duration_ms=int((time.monotonic() - self._began) * 1000),
            missing=tuple(sorted(self._missing)),
            usage=usage,
        )
        self.bus.advance(1.0)
        self.bus.emit(
            ExtractionCompleted,
            summary=Summary(
                entity_count=len(graph.entities),
                relation_count=len(graph.relations),
                duration_ms=result.duration_ms,
                rejected_count=len(graph.rejected),
                outcome=result.outcome,
            ),
        )
        return result

    def _warn(self, stage: StageName, limit: str, timeout_ms: int) -> None:
        self.bus.emit(TimeoutWarning, stage=stage, limit=limit, timeout_ms=timeout_ms)

    @contextmanager
    def _stage(self, name: StageName) -> Iterator[None]:
        self.bus.emit(StageStarted, stage=name)
        began = time.monotonic()
        self._count, self._stage_early = 0, False
        yield
        self.bus.advance(progress_of(name)[1])
        self.bus.emit(
            StageCompleted,
            stage=name,
            duration_ms=int((time.monotonic() - began) * 1000),
            item_count=self._count,
            partial=self._stage_early,
        )


def _writable(piece: str) -> str:
    """The piece with U+FFFD in place of lone surrogates, which no encoding can write; offsets do not change."""
    if piece.isascii():
        return piece
    return _SURROGATES.sub("\ufffd", piece)
