"""Seventeen events, one wire form."""

import json
from typing import Any

import msgspec
import pytest

from sameas.extraction.events.events import (
    EVENT_TYPES,
    EntityFound,
    ErrorReport,
    Event,
    Summary,
    decode_event,
    event_schema,
    is_droppable,
    is_sampled,
)
from sameas.extraction.graph.model import Mention

BASE: dict[str, Any] = {"event_id": "e", "request_id": "k", "timestamp": 5, "sequence_number": 1, "progress": 0.5}
FIELDS: dict[str, Any] = {
    "summary": Summary(entity_count=1, relation_count=2, duration_ms=3),
    "error": ErrorReport(code="x", message="y", recoverable=True),
    "reason": "requests",
    "stage": "chunking",
    "percent": 50.0,
    "items_processed": 1,
    "items_total": 2,
    "duration_ms": 3,
    "item_count": 4,
    "chunk_index": 0,
    "start": 0,
    "end": 9,
    "entity": {"a": 1},
    "relation": {"b": 2},
    "confidence": 0.9,
    "wait_ms": 10,
    "used": 1,
    "limit": "soft",
    "message": "m",
    "timeout_ms": 7,
    "source": "checkpoint",
    "key": "k",
    "dropped": 3,
    "queue_size": 1000,
}


def make(kind: type[Event]) -> Event:
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required and field.name not in BASE]
    fields = {name: FIELDS[name] for name in needed}
    if kind.__name__ == "BudgetWarning":
        fields["limit"] = 100
    return kind(**BASE, **fields)


def test_there_are_seventeen_with_the_names_of_the_design() -> None:
    names = {str(kind.__struct_config__.tag) for kind in EVENT_TYPES}
    assert names == set(
        """extraction_started extraction_completed extraction_failed extraction_cancelled stage_started stage_progress
        stage_completed chunk_started chunk_completed entity_found relation_found rate_limited budget_warning
        timeout_warning error_recoverable cache_hit backpressure_warning""".split()
    )


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_each_event_goes_over_the_wire_in_camel_case_and_comes_back(kind: type[Event]) -> None:
    event = make(kind)
    wire = json.loads(event.to_json())
    assert wire["type"] == event.type
    assert {"eventId", "requestId", "timestamp", "sequenceNumber", "progress"} <= wire.keys()
    assert not any("_" in name for name in wire)
    assert decode_event(event.to_json()) == event


def test_what_was_found_is_written_as_it_is_kept() -> None:
    mention = Mention(3, 8, "Alice", types=("http://e/P",))
    event = EntityFound(**BASE, entity=mention, confidence=1.0)
    assert json.loads(event.to_json())["entity"] == {"start": 3, "end": 8, "text": "Alice", "types": ["http://e/P"]}


def test_lifecycle_and_stage_events_are_never_droppable() -> None:
    kept = {kind.__name__ for kind in EVENT_TYPES if not is_droppable(make(kind))}
    assert kept == {
        "ExtractionStarted",
        "ExtractionCompleted",
        "ExtractionFailed",
        "ExtractionCancelled",
        "StageStarted",
        "StageCompleted",
        "BackpressureWarning",
    }


def test_discoveries_and_progress_are_sampled() -> None:
    sampled = {kind.__name__ for kind in EVENT_TYPES if is_sampled(make(kind))}
    assert sampled == {"EntityFound", "RelationFound", "StageProgress", "ChunkStarted", "ChunkCompleted"}


def test_the_schema_names_every_event() -> None:
    schema = event_schema()
    assert {kind.__name__ for kind in EVENT_TYPES} <= schema["$defs"].keys()
    assert "sequenceNumber" in schema["$defs"]["StageStarted"]["properties"]


def test_an_unknown_event_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_event(b'{"type":"something_else"}')
