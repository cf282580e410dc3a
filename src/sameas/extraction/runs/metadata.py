"""`metadata.json` of a run: its state and counts, what happened, what went wrong, and the digests of its files; and
`spending.jsonl`, what a run under way has spent so far.

Rule: the first eleven fields are those of source document 001, part 1.4, under its names; the others were added. Times
are UTC with milliseconds. Layouts are numbered; an unknown one is not read.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.extraction.pipeline.outcome import MissingChunk
from sameas.llm.ledger import RunOutcome, UsageRow
from sameas.once.line_log import LineLog

RunStatus: TypeAlias = Literal["pending", "running", "complete", "failed", "partial"]
AuditType: TypeAlias = Literal[
    "started",
    "stage_began",
    "stage_completed",
    "entity_extracted",
    "relation_extracted",
    "completed",
    "failed",
]
# The document has no word for an error of the program itself.
ErrorType: TypeAlias = Literal["timeout", "llm_error", "validation_error", "cancelled", "internal_error"]

ENTITIES = "entities.json"
RELATIONS = "relations.json"
REJECTED = "rejected.json"
GRAPH = "graph.ttl"
EVENTS = "events.jsonl"
METADATA = "metadata.json"
ARTEFACTS = (ENTITIES, RELATIONS, REJECTED, GRAPH)

LAYOUT = 1


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    timestamp: str


class AuditEvent(_Part, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that happened; found entities and relations are counted, not listed."""

    type: AuditType
    data: Mapping[str, Any] = {}


class AuditError(_Part, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that went wrong."""

    type: ErrorType
    message: str
    context: Mapping[str, Any] = {}


class FileDigest(msgspec.Struct, frozen=True):
    """The digest and size that a file of the run must have."""

    sha256: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> "FileDigest":
        return cls(hashlib.sha256(data).hexdigest(), len(data))


class ExtractorName(msgspec.Struct, frozen=True):
    """The extractor and its version."""

    name: str
    version: str


class RunMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a run."""

    idempotency_key: str
    status: RunStatus
    ontology_id: str
    ontology_version: str
    entity_count: int = 0
    relation_count: int = 0
    started_at: str
    completed_at: str | None = None
    duration_ms: int | None = None
    events: tuple[AuditEvent, ...] = ()
    errors: tuple[AuditError, ...] = ()

    outcome: RunOutcome | Literal["CANCELLED"] | None = None
    rejected_count: int = 0
    extractor: ExtractorName
    settings: Mapping[str, Any]
    base: str
    document: str = ""
    notes: tuple[str, ...] = ()
    text_hash: str
    extraction_params_hash: str
    chunks: int = 0
    chunks_from_checkpoints: int = 0
    chunks_ended_early: int = 0
    missing: tuple[MissingChunk, ...] = ()
    """What a partial run could not do, by stage and place."""
    usage: tuple[UsageRow, ...] = ()
    """What all attempts of the run spent on models, and what the memo of calls saved."""
    files: Mapping[str, FileDigest] = {}
    superseded_at: str | None = None
    attempt: int = 1
    fence: int = 0
    first_event: int = 1
    """The number in the journal at which the present attempt begins."""
    audit_meta: Mapping[str, Any] = {}
    """Who made the run and in which hop, and who wrote it last (source document 004, part 8)."""
    layout: Literal[1] = 1

    @property
    def is_under_way(self) -> bool:
        return self.status in ("pending", "running")

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @classmethod
    def from_json(cls, data: bytes | str) -> "RunMetadata":
        return msgspec.json.decode(data, type=cls)

    def digest(self) -> str:
        """Names the result: what was worked on, how it ended, and every artefact. The record keeps it."""
        files = [(name, self.files[name].sha256) for name in ARTEFACTS if name in self.files]
        facts = (
            *(self.idempotency_key, self.ontology_id, self.ontology_version, self.status, self.outcome),
            *(
                self.entity_count,
                self.relation_count,
                self.rejected_count,
                self.base,
                self.document,
                self.notes,
            ),
        )
        return hashlib.sha256(msgspec.json.encode((facts, files))).hexdigest()


def instant(seconds: float) -> str:
    """A time as the metadata writes it, `2026-01-31T12:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(written: str) -> float:
    """The time that `instant` wrote."""
    return datetime.fromisoformat(written).timestamp()


SPENDING = "spending.jsonl"
_row = msgspec.json.Decoder(UsageRow)


class SpendingFile:
    """What a run under way has spent, a line at each change, so that a kill loses nothing. Only one process writes.

    A line has all that was spent on one stage with one model, over all attempts; a call under way counts as sent and
    not answered. The last line of each stage and model counts. When the run ends, metadata.json has it all and the file
    is deleted. It is not forced to the disk: after a power cut the metadata is what counts.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / SPENDING
        self._last: dict[tuple[str, str], UsageRow] = {}
        self._lines: LineLog | None = None

    def read(self, known: Iterable[UsageRow]) -> tuple[UsageRow, ...]:
        """What was spent: the rows of the metadata, updated by what was noted since."""
        rows = {(row.stage, row.model): row for row in known}
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                row = _row.decode(line)
            except (msgspec.DecodeError, msgspec.ValidationError):
                # A line of a process that was killed may be torn, and the one before it counts.
                continue
            rows[row.stage, row.model] = row
        return tuple(row for _, row in sorted(rows.items()))

    def note(self, row: UsageRow) -> None:
        """Note all that was spent so far on the stage and model of this row."""
        self._last[row.stage, row.model] = row
        if self._lines is None:
            self._lines = LineLog(self._path)
        self._lines.append(msgspec.json.encode(row))

    def begin(self) -> None:
        """Rewrite the file with only the last line of each, so that no former writer has it open."""
        self.close()
        if not self._last:
            self._path.unlink(missing_ok=True)
            return
        fresh = self._path.with_name(f".{SPENDING}-fresh.writing")
        fresh.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in self._last.values()))
        fresh.replace(self._path)

    def end(self) -> None:
        """Delete the file: the run is over, and its metadata has it all."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None
