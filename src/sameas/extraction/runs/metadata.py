"""`metadata.json` of a run: how it stands, what it counted, what happened and what went wrong, and the
digests of its files.

Rule: the first eleven fields are those of source document 001, part 1.4, under its names; the others were
added. Times are UTC with milliseconds. Layouts are numbered: one that is not known is not read.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from sameas.extraction.pipeline.outcome import MissingChunk
from sameas.llm.ledger import RunOutcome, UsageRow

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
    """Something that happened, for an audit; found things are counted, not listed."""

    type: AuditType
    data: Mapping[str, Any] = {}


class AuditError(_Part, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Something that went wrong."""

    type: ErrorType
    message: str
    context: Mapping[str, Any] = {}


class FileDigest(msgspec.Struct, frozen=True):
    """What a file of the run must be."""

    sha256: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> "FileDigest":
        return cls(hashlib.sha256(data).hexdigest(), len(data))


class ExtractorName(msgspec.Struct, frozen=True):
    """Who extracted."""

    name: str
    version: str


class RunMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a run stands."""

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
