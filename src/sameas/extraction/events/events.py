"""What a run reports while it works: seventeen events, numbered without gaps in the order in which they happened.

Rule: an event is frozen; its JSON form is camelCase, as in source document 001. An event for one subscriber only (a
backpressure_warning, a cache_hit after the run) has no sequence number.
"""

from typing import Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from sameas.llm.signals import LimitReason

EventClass: TypeAlias = Literal["lifecycle", "stage", "progress", "discovery", "control", "subscriber"]


class Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag_field="type"):
    """The fields of every event: ids, the time in milliseconds since 1970, its number, and the progress of the run
    from 0 to 1.
    """

    event_class: ClassVar[EventClass] = "control"

    event_id: str
    request_id: str
    timestamp: int
    sequence_number: int | None = None
    progress: float

    @property
    def type(self) -> str:
        return str(self.__struct_config__.tag)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


class Summary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The counts of a finished run."""

    entity_count: int
    relation_count: int
    duration_ms: int
    rejected_count: int = 0
    outcome: str = "COMPLETE"


class ErrorReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What went wrong, for a program (`code`) and for a person (`message`)."""

    code: str
    message: str
    recoverable: bool
    retry_after_ms: int | None = None


class ExtractionStarted(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="extraction_started"):
    event_class = "lifecycle"
    total_chunks: int | None = None
    total_characters: int | None = None


class ExtractionCompleted(Event, frozen=True, kw_only=True, rename="camel", tag="extraction_completed"):
    event_class = "lifecycle"
    summary: Summary


class ExtractionFailed(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="extraction_failed"):
    event_class = "lifecycle"
    error: ErrorReport
    partial_result: Any = None


class ExtractionCancelled(
    Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="extraction_cancelled"
):
    event_class = "lifecycle"
    reason: str
    partial_result: Any = None


class StageStarted(Event, frozen=True, kw_only=True, rename="camel", tag="stage_started"):
    event_class = "stage"
    stage: str


class StageProgress(Event, frozen=True, kw_only=True, rename="camel", tag="stage_progress"):
    event_class = "progress"
    stage: str
    percent: float
    items_processed: int
    items_total: int


class StageCompleted(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="stage_completed"):
    event_class = "stage"
    stage: str
    duration_ms: int
    item_count: int
    partial: bool = False


class ChunkStarted(Event, frozen=True, kw_only=True, rename="camel", tag="chunk_started"):
    event_class = "progress"
    stage: str
    chunk_index: int
    start: int
    end: int


class ChunkCompleted(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="chunk_completed"):
    event_class = "progress"
    stage: str
    chunk_index: int
    item_count: int
    duration_ms: int
    cached: bool = False
    partial: bool = False


class EntityFound(Event, frozen=True, kw_only=True, rename="camel", tag="entity_found"):
    event_class = "discovery"
    entity: Any
    confidence: float


class RelationFound(Event, frozen=True, kw_only=True, rename="camel", tag="relation_found"):
    event_class = "discovery"
    relation: Any
    confidence: float


class RateLimited(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="rate_limited"):
    wait_ms: int
    reason: LimitReason
    asked_by_server: bool = False


class BudgetWarning(Event, frozen=True, kw_only=True, rename="camel", tag="budget_warning"):
    stage: str
    used: int
    limit: int
    message: str


class TimeoutWarning(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="timeout_warning"):
    stage: str
    limit: Literal["soft", "hard"]
    timeout_ms: int
    chunk_index: int | None = None


class ErrorRecoverable(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="error_recoverable"):
    error: ErrorReport
    stage: str | None = None
    chunk_index: int | None = None


class CacheHit(Event, frozen=True, kw_only=True, rename="camel", omit_defaults=True, tag="cache_hit"):
    source: Literal["result", "execution", "checkpoint", "model_call"]
    key: str
    computed_at: str | None = None
    items: int | None = None


class BackpressureWarning(Event, frozen=True, kw_only=True, rename="camel", tag="backpressure_warning"):
    event_class = "subscriber"
    dropped: int
    queue_size: int


ProgressEvent: TypeAlias = (
    ExtractionStarted
    | ExtractionCompleted
    | ExtractionFailed
    | ExtractionCancelled
    | StageStarted
    | StageProgress
    | StageCompleted
    | ChunkStarted
    | ChunkCompleted
    | EntityFound
    | RelationFound
    | RateLimited
    | BudgetWarning
    | TimeoutWarning
    | ErrorRecoverable
    | CacheHit
    | BackpressureWarning
)
EVENT_TYPES: tuple[type[Event], ...] = get_args(ProgressEvent)
# The run is over after one of these.
FINAL_EVENTS = (ExtractionCompleted, ExtractionFailed, ExtractionCancelled)

_decoder: msgspec.json.Decoder[ProgressEvent] = msgspec.json.Decoder(ProgressEvent)


def decode_event(line: bytes | str) -> ProgressEvent:
    """Decode the event in a line of JSON."""
    return _decoder.decode(line)


def is_droppable(event: Event) -> bool:
    """Whether a subscriber that fell behind may miss it; lifecycle and stage events are never dropped."""
    return event.event_class not in ("lifecycle", "stage", "subscriber")


def is_sampled(event: Event) -> bool:
    """Whether only a sample of such events is kept while a subscriber is behind."""
    return event.event_class in ("progress", "discovery")


def event_schema() -> dict[str, Any]:
    """The JSON schema of all events."""
    return msgspec.json.schema(ProgressEvent)
