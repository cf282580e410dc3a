"""The work of one extraction, done under a lease of the once engine: look for an existing result, run the pipeline,
commit the folder and the database.

Rule: a complete result that a crash left behind is adopted, a partial one is continued, a damaged one is set aside and
reported. A caller who waited for an attempt that ended early shares its result, unless that attempt ended because of
its caller's own limits. The result is in the folder and in the database before the record is completed.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import CacheHit, ErrorRecoverable, ErrorReport, ExtractionCompleted, Summary
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.graph.model import FoundGraph, Graph
from sameas.extraction.pipeline.outcome import failure_code
from sameas.extraction.runs.attempt import DAMAGED_RUN, AttemptPlan, RunAttempt
from sameas.extraction.runs.folder import RunDamagedError, RunFolder, RunReplacedError, Stored, keep_ontology, keep_text
from sameas.extraction.runs.library import Runs
from sameas.extraction.runs.metadata import ARTEFACTS, ExtractorName, RunMetadata, seconds_of
from sameas.extraction.runs.record import RunSummary
from sameas.extraction.runs.results import ResultTables
from sameas.extraction.runs.shared_runs import EventRelay
from sameas.extraction.text.source import SourceText
from sameas.identity.errors import SameasError
from sameas.identity.ids import uuid7
from sameas.llm.memo import NOTE_CALL
from sameas.objects import ObjectsUnavailable
from sameas.once.context import Context
from sameas.ontology.model import Ontology

if TYPE_CHECKING:
    from sameas.extraction.pipeline.outcome import ExtractionResult
    from sameas.extraction.pipeline.pipeline import Pipeline

T = TypeVar("T")


class PartialRunError(SameasError):
    """The run ended early and its claim was given back; what it found is in `graph`. With `shared` the run was another
    caller's.
    """

    def __init__(self, metadata: RunMetadata, graph: Graph, *, shared: bool = False) -> None:
        self.metadata = metadata
        self.graph = graph
        self.shared = shared
        super().__init__(metadata.outcome)


class ExtractionWork:
    """The extraction of one caller; the engine calls `do` if this caller has to work."""

    def __init__(
        self,
        *,
        pipeline: "Pipeline",
        source: SourceText,
        ontology: Ontology,
        extractor: Extractor,
        settings: Mapping[str, Any],
        base: str,
        document: str,
        audit: Mapping[str, Any],
        runs: Runs,
        tables: ResultTables | None,
        retention: float | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        components = source.key.components
        self.plan = AttemptPlan(
            key=source.key.key,
            ontology_id=components.ontology_id,
            ontology_version=components.ontology_version,
            text_hash=components.text_hash,
            extraction_params_hash=components.extraction_params_hash,
            extractor=ExtractorName(extractor.name, extractor.version),
            settings=settings,
            base=base,
            document=document,
            audit_meta=audit,
        )
        self.key = source.key
        self.audit = audit
        # The result that this caller hands in, and whether it was found without extracting.
        self.done: Stored | None = None
        self.found = False
        self._pipeline = pipeline
        self._source = source
        self._ontology = ontology
        self._runs = runs
        self._tables = tables
        self._retention = retention
        self._clock = clock
        self._asked_at = clock()
        self._damage: list[str] = []

    def note_damage(self, reason: str) -> None:
        """Note that an earlier result was damaged; the run that replaces it reports that."""
        self._damage.append(f"an earlier result of this run was damaged ({reason}); it was set aside and done again")

    async def do(self, context: Context, *, relay: EventRelay) -> RunSummary:
        """Return the summary of a complete result; raises PartialRunError if it is not complete."""
        await relay.leave()
        self.done = await asyncio.to_thread(self._find, context)
        self.found = self.done is not None
        if self.done is not None:
            for reason in self._damage:
                relay.emit(_damage_event(self.plan.key, reason, now=self._clock()))
            relay.emit(cache_hit(self.done.metadata, shared=False, now=self._clock()))
            return RunSummary.of(self.done.metadata, place=self._runs.place(self.plan.key))
        shared = await asyncio.to_thread(self._find_shared)
        if shared is not None:
            relay.emit(cache_hit(shared.metadata, shared=True, now=self._clock()))
            raise PartialRunError(shared.metadata, shared.graph, shared=True)
        attempt = await _to_its_end(self._begin, context)
        try:
            result = await self._run(attempt, relay)
            graph = self._with_notes(result.found)
            metadata = await _to_its_end(attempt.finish, result, graph)
        except RunReplacedError:
            raise
        except asyncio.CancelledError:
            await _to_its_end(self._close, attempt, attempt.cancel, {"code": "cancelled"})
            raise
        except Exception as error:
            about = {"code": failure_code(error), "message": str(error)}
            await _to_its_end(self._close, attempt, partial(attempt.fail, error), about)
            raise
        if metadata.status != "complete":
            if self._tables is not None:
                await asyncio.to_thread(self._not_complete, self._tables, {"code": metadata.outcome})
            raise PartialRunError(metadata, graph)
        if self._tables is not None:
            await asyncio.to_thread(self._save, self._tables, metadata)
        self.done = Stored(metadata, graph)
        return RunSummary.of(metadata, place=attempt.place)

    async def _run(self, attempt: RunAttempt, relay: EventRelay) -> "ExtractionResult":
        bus = Bus(self.plan.key, journal=attempt, clock=self._clock)
        relay.hear(bus, after=attempt.length)
        used = self._runs.noting(self.plan.key)
        noting = NOTE_CALL.set(used.call)
        try:
            if (beginning := used.begin()) is not None:
                await beginning
            for reason in self._damage:
                bus.emit(ErrorRecoverable, error=_damage_report(reason))
            return await self._pipeline.run(
                self._source.read(),
                key=self.plan.key,
                bus=bus,
                formats=("turtle",),
                base=self.plan.base,
                text_hash=self.plan.text_hash,
                meter=attempt.meter,
                used=used,
            )
        finally:
            NOTE_CALL.reset(noting)
            used.close()
            bus.close()
            await relay.end()

    def _find(self, context: Context) -> Stored | None:
        """An existing result without a record."""
        folder = self._runs.at(self.plan.key)
        # Another machine may have worked on it.
        self._runs.refresh(self.plan.key)
        try:
            if folder.exists():
                # A first attempt means that the record expired or was forgotten: the work is wanted again.
                stored = folder.result() if context.attempt > 1 else None
                return stored if stored is not None and self._stands(stored.metadata) else None
            return folder.result() if self._runs.restore(self.plan.key) is not None else None
        except RunDamagedError:
            return None

    def _find_shared(self) -> Stored | None:
        """The partial result of an attempt that this caller waited for. Trying again at once what a server just failed
        at would make each of many callers wait for all who came before it.
        """
        folder = self._runs.at(self.plan.key)
        metadata = folder.peek()
        if metadata is None or metadata.status != "partial" or metadata.outcome == "CANCELLED":
            return None
        was_waited_for = metadata.completed_at is not None and seconds_of(metadata.completed_at) > self._asked_at
        if not was_waited_for or not metadata.missing or any(one.is_for_own_limit for one in metadata.missing):
            return None
        try:
            return Stored(metadata, folder.graph(metadata))
        except RunDamagedError:
            return None

    def _stands(self, metadata: RunMetadata) -> bool:
        if metadata.superseded_at is not None or metadata.completed_at is None:
            return False
        return self._retention is None or self._clock() < seconds_of(metadata.completed_at) + self._retention

    def _begin(self, context: Context) -> RunAttempt:
        folder = self._runs.at(self.plan.key)
        if self._tables is not None:
            self._tables.save_ontology(self.plan.ontology_id, self._ontology, audit=self.audit)
            self._tables.begin(self.plan.key, ontology_id=self.plan.ontology_id, audit=self.audit)
        try:
            if not folder.is_blank():
                folder.metadata()
            attempt = self._attempt(folder, context)
        except RunDamagedError as damage:
            folder.set_aside()
            self.note_damage(str(damage))
            attempt = self._attempt(folder, context)
        ontology_file = keep_ontology(folder.path.parent, self._ontology)
        if self._runs.objects is not None:
            self._runs.objects.keep_ontology(ontology_file)
        keep_text(folder, self._source.read())
        return attempt

    def _attempt(self, folder: RunFolder, context: Context) -> RunAttempt:
        return RunAttempt(folder, self.plan, context, objects=self._runs.objects, clock=self._clock)

    def _with_notes(self, graph: Graph) -> Graph:
        notes = tuple(sorted({*graph.notes, *self._damage}))
        return FoundGraph(graph.entities, graph.relations, graph.rejected, notes)

    def _save(self, tables: ResultTables, metadata: RunMetadata) -> None:
        folder = self._runs.at(self.plan.key)
        contents = {name: folder.read(name, metadata) for name in ARTEFACTS}
        keep_for = float("inf") if self._retention is None else self._retention
        tables.save(metadata, contents, keep_for=keep_for, audit=self.audit)

    def _close(self, attempt: RunAttempt, end: Callable[[], None], error: Mapping[str, Any]) -> None:
        """Record in the folder and in the database how the run ended; the error itself goes to the caller."""
        with suppress(RunReplacedError, OSError, ObjectsUnavailable):
            end()
            if self._tables is not None:
                self._not_complete(self._tables, error)
        attempt.close()

    def _not_complete(self, tables: ResultTables, error: Mapping[str, Any]) -> None:
        tables.fail(self.plan.key, ontology_id=self.plan.ontology_id, error=error, audit=self.audit)


def cache_hit(metadata: RunMetadata, *, shared: bool, now: float) -> CacheHit:
    """The event for a caller whose result was there already."""
    return CacheHit(
        event_id=str(uuid7()),
        request_id=metadata.idempotency_key,
        timestamp=int(now * 1000),
        progress=1.0,
        source="execution" if shared else "result",
        key=metadata.idempotency_key,
        computed_at=metadata.completed_at,
        items=metadata.entity_count + metadata.relation_count,
    )


def completion(metadata: RunMetadata, *, now: float) -> ExtractionCompleted:
    """The last event of an earlier run, for a caller who did not hear it."""
    return ExtractionCompleted(
        event_id=str(uuid7()),
        request_id=metadata.idempotency_key,
        timestamp=int(now * 1000),
        progress=1.0,
        summary=Summary(
            entity_count=metadata.entity_count,
            relation_count=metadata.relation_count,
            duration_ms=metadata.duration_ms or 0,
            rejected_count=metadata.rejected_count,
            outcome=metadata.outcome or "COMPLETE",
        ),
    )


def _damage_report(reason: str) -> ErrorReport:
    return ErrorReport(code=DAMAGED_RUN, message=reason, recoverable=True)


def _damage_event(key: str, reason: str, *, now: float) -> ErrorRecoverable:
    """The event for a caller whose damaged result was restored without a run; only that caller gets it."""
    return ErrorRecoverable(
        event_id=str(uuid7()),
        request_id=key,
        timestamp=int(now * 1000),
        progress=1.0,
        error=_damage_report(reason),
    )


async def _to_its_end(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function in a thread and wait for its end even if cancelled meanwhile: files have one writer."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return running.result()
