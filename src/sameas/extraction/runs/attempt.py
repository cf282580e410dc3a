"""One worker's attempt at a run: it opens the folder, keeps the metadata in step with the events, and closes it.

Rule: metadata.json is rewritten when the attempt begins, after each stage, and when it ends. An attempt continues where
the one before it ended, so the numbers of the journal have no gap. A worker that was replaced writes nothing more.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from sameas.extraction.events.events import (
    ErrorRecoverable,
    Event,
    ExtractionStarted,
    ProgressEvent,
    StageCompleted,
    StageStarted,
    TimeoutWarning,
)
from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs import write_entities, write_rejected, write_relations
from sameas.extraction.pipeline.outcome import ExtractionResult, failure_code
from sameas.extraction.runs.folder import Mark, RunFolder, RunOrder, RunReplacedError, Write
from sameas.extraction.runs.metadata import (
    ENTITIES,
    EVENTS,
    GRAPH,
    REJECTED,
    RELATIONS,
    AuditError,
    AuditEvent,
    AuditType,
    ErrorType,
    ExtractorName,
    FileDigest,
    RunMetadata,
    SpendingFile,
    instant,
    seconds_of,
)
from sameas.extraction.runs.run_objects import RunObjects
from sameas.llm.ledger import SpendingMeter, UsageRow, added, joined
from sameas.once.context import Context

# A run that fails again and again must not grow its metadata without end.
_EVENTS_KEPT = 500
_ERRORS_KEPT = 200
_BLOCK = 1 << 16

DAMAGED_RUN = "damaged_run"
_COUNTED: Mapping[str, AuditType] = {
    "entity_extraction": "entity_extracted",
    "relation_extraction": "relation_extracted",
}


class AttemptPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run before it begins."""

    key: str
    ontology_id: str
    ontology_version: str
    text_hash: str
    extraction_params_hash: str
    extractor: ExtractorName
    settings: Mapping[str, Any]
    base: str
    document: str = ""
    notes: tuple[str, ...] = ()
    audit_meta: Mapping[str, Any] = {}


class RunAttempt:
    """The journal of a run, for its bus, and the writer of its metadata."""

    def __init__(
        self,
        folder: RunFolder,
        plan: AttemptPlan,
        context: Context,
        *,
        objects: RunObjects | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._context = context
        self._clock = clock
        folder.prepare()
        previous = folder.peek()
        goes_on = previous is not None and previous.status != "complete"
        if goes_on:
            folder.check_journal()
        if previous is not None and previous.fence > context.fence:
            raise RunReplacedError
        self._journal = folder.open_journal(anew=not goes_on)
        self._upload = None
        self._spending = SpendingFile(folder.path)
        spent = self._spending.read(previous.usage) if previous is not None and goes_on else ()
        self.meter = SpendingMeter(spent, on_spent=self._note_spent)
        self._metadata = RunMetadata(
            idempotency_key=plan.key,
            status="pending",
            ontology_id=plan.ontology_id,
            ontology_version=plan.ontology_version,
            started_at=instant(clock()),
            events=previous.events if previous is not None and goes_on else (),
            errors=previous.errors if previous is not None and goes_on else (),
            extractor=plan.extractor,
            settings=plan.settings,
            base=plan.base,
            document=plan.document,
            notes=plan.notes,
            text_hash=plan.text_hash,
            extraction_params_hash=plan.extraction_params_hash,
            attempt=previous.attempt + 1 if previous is not None and goes_on else 1,
            fence=context.fence,
            first_event=self._journal.length + 1,
            audit_meta=_audit_of(plan.audit_meta, previous if goes_on else None),
        )
        mark = Mark(self._metadata.started_at, plan.key)
        if objects is None:
            RunOrder(folder.path.parent).add(mark)
        self._write()
        if objects is not None:
            objects.add_mark(mark)
            self._upload = objects.begin(folder, context.fence, is_lost=lambda: context.lost)
            self._upload.note(self._metadata)

    @property
    def metadata(self) -> RunMetadata:
        return self._metadata

    @property
    def place(self) -> str:
        """Where the objects of this attempt are; empty if there are none."""
        return "" if self._upload is None else self._upload.place

    @property
    def length(self) -> int:
        return self._journal.length

    def append(self, *events: Event) -> None:
        """Append events to the journal and note in the metadata what an audit needs."""
        if self._context.lost:
            raise RunReplacedError
        self._journal.append(*events)
        for event in events:
            self._audit(event)

    def _audit(self, event: Event) -> None:
        match event:
            case ExtractionStarted():
                self._metadata = replace(self._metadata, status="running")
                self._note("started")
                self._write()
            case StageStarted(stage=stage):
                self._note("stage_began", stage=stage)
            case StageCompleted(stage=stage):
                if stage in _COUNTED:
                    self._note(_COUNTED[stage], count=event.item_count)
                self._note(
                    "stage_completed",
                    stage=stage,
                    durationMs=event.duration_ms,
                    itemCount=event.item_count,
                    partial=event.partial,
                )
                self._write()
            case TimeoutWarning(limit="hard"):
                message = f"{event.stage.replace('_', ' ')} took longer than {event.timeout_ms / 1000:g} s"
                self._went_wrong("timeout", message, stage=event.stage, chunkIndex=event.chunk_index)
            case ErrorRecoverable(error=error):
                kind: ErrorType = "validation_error" if error.code == DAMAGED_RUN else "llm_error"
                self._went_wrong(kind, error.message, code=error.code, chunkIndex=event.chunk_index)
            case _:
                pass

    def read(self, *, after: int = 0, up_to: int | None = None) -> Iterator[ProgressEvent]:
        return self._journal.read(after=after, up_to=up_to)

    def close(self) -> None:
        if self._upload is not None:
            self._upload.close()
        self._journal.close()
        self._spending.close()

    def finish(self, result: ExtractionResult, graph: Graph) -> RunMetadata:
        """Write what a run found that came to its end; the status says whether that is everything."""
        contents: dict[str, Write] = {
            ENTITIES: partial(write_entities, graph),
            RELATIONS: partial(write_relations, graph),
            REJECTED: partial(write_rejected, graph),
        }
        if "turtle" in result.outputs:
            contents[GRAPH] = partial(result.outputs.copy, "turtle")
        files = self._folder.write_artefacts(contents)
        files[EVENTS] = _digest_of(self._folder.journal_path)
        whole = result.outcome == "COMPLETE"
        if whole:
            self._note("completed", entityCount=len(graph.entities), relationCount=len(graph.relations))
        self._metadata = replace(
            self._metadata,
            status="complete" if whole else "partial",
            outcome=result.outcome,
            entity_count=len(graph.entities),
            relation_count=len(graph.relations),
            rejected_count=len(graph.rejected),
            notes=graph.notes,
            chunks=result.chunks,
            chunks_from_checkpoints=result.chunks_from_checkpoints,
            chunks_ended_early=result.chunks_ended_early,
            missing=result.missing,
            files=files,
        )
        self._end()
        return self._metadata

    def fail(self, error: Exception) -> None:
        """Record that the run failed."""
        kind: ErrorType = "validation_error" if isinstance(error, ValueError) else "internal_error"
        self._went_wrong(kind, str(error) or type(error).__name__, code=failure_code(error))
        self._note("failed", code=failure_code(error))
        self._metadata = replace(self._metadata, status="failed")
        self._end()

    def cancel(self) -> None:
        """Record that the run was cancelled; what is done of it stays as checkpoints."""
        self._went_wrong("cancelled", "cancelled by its owner")
        self._metadata = replace(self._metadata, status="partial", outcome="CANCELLED")
        self._end()

    def _end(self) -> None:
        now = self._clock()
        took = max(0, round((now - seconds_of(self._metadata.started_at)) * 1000))
        self._metadata = replace(self._metadata, completed_at=instant(now), duration_ms=took)
        # One chunk is nobody else's.
        if self._upload is not None and self._metadata.chunks != 1:
            self.meter.before = joined(self.meter.before, self._upload.spent_by_helpers())
        self._write()
        self._spending.end()
        if self._upload is not None:
            self._upload.finish(self._metadata)

    def _note_spent(self, row: UsageRow) -> None:
        before = [one for one in self.meter.before if (one.stage, one.model) == (row.stage, row.model)]
        if not self._context.lost:
            self._spending.note(added((*before, row), stage=row.stage, model=row.model))

    def _note(self, kind: AuditType, **data: object) -> None:
        event = AuditEvent(timestamp=instant(self._clock()), type=kind, data=data)
        self._metadata = replace(self._metadata, events=(*self._metadata.events, event)[-_EVENTS_KEPT:])

    def _went_wrong(self, kind: ErrorType, message: str, **context: object) -> None:
        known = {name: value for name, value in context.items() if value is not None}
        error = AuditError(timestamp=instant(self._clock()), type=kind, message=message, context=known)
        self._metadata = replace(self._metadata, errors=(*self._metadata.errors, error)[-_ERRORS_KEPT:])

    def _write(self) -> None:
        if self._context.lost:
            raise RunReplacedError
        self._metadata = replace(self._metadata, usage=joined(self.meter.before, self.meter.read()))
        if self._upload is not None:
            self._upload.note(self._metadata)
        # Where it is told elsewhere while it goes on, nobody reads it here.
        if self._upload is None or not self._metadata.is_under_way:
            self._folder.write_metadata(self._metadata)
        self._spending.begin()


def _audit_of(audit: Mapping[str, Any], previous: RunMetadata | None) -> Mapping[str, Any]:
    """The audit of this writer, with the original owner."""
    owner = None if previous is None else previous.audit_meta.get("created_by_user_id")
    return audit if owner is None else {**audit, "created_by_user_id": owner}


def _digest_of(path: Path) -> FileDigest:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return FileDigest(digest.hexdigest(), size)
