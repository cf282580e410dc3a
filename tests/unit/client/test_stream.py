"""Events read from a stream are given once, in order, whatever way it breaks."""

import pytest

from sameas.client import ServiceError
from sameas.client.stream import EventReader
from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import (
    BackpressureWarning,
    CacheHit,
    EntityFound,
    Event,
    ExtractionCompleted,
    ExtractionStarted,
    StageStarted,
    Summary,
)
from sameas.extraction.events.journal import MemoryJournal


def frames() -> tuple[list[Event], list[str]]:
    bus = Bus("sha256-0", journal=MemoryJournal())
    events: list[Event] = [
        bus.emit(ExtractionStarted, total_characters=3),
        bus.emit(StageStarted, stage="chunking"),
        bus.emit(
            ExtractionCompleted,
            summary=Summary(entity_count=0, relation_count=0, duration_ms=1, rejected_count=0, outcome="COMPLETE"),
        ),
    ]
    lines = ["retry: 1000", ""]
    for event in events:
        lines += [
            f"id: {event.sequence_number}",
            f"event: {event.type}",
            f"data: {event.to_json().decode()}",
            "",
            ": alive",
            "",
        ]
    return events, lines


def test_events_come_out_as_they_went_in() -> None:
    events, lines = frames()
    reader = EventReader()
    assert [event for line in lines if (event := reader.take(line))] == events
    assert reader.is_over
    assert reader.last == 3


def test_a_stream_is_not_over_before_the_last_event() -> None:
    _, lines = frames()
    reader = EventReader()
    for line in lines[:8]:
        reader.take(line)
    assert not reader.is_over


def test_what_came_before_a_break_is_not_given_again() -> None:
    events, lines = frames()
    reader = EventReader()
    first = [event for line in lines[:9] if (event := reader.take(line))]
    reader.take(lines[10])
    reader.broke()
    again = [event for line in lines if (event := reader.take(line))]
    assert first + again == events


def test_lines_may_end_as_windows_ends_them() -> None:
    events, lines = frames()
    reader = EventReader(after=2)
    assert [event for line in lines if (event := reader.take(f"{line}\r\n"))] == events[2:]


def test_a_text_with_every_kind_of_separator_is_read_whole() -> None:
    name = "a\u2028b\u2029c\u0085d\x1ce"
    bus = Bus("sha256-0", journal=MemoryJournal())
    event = bus.emit(EntityFound, entity={"name": name}, confidence=1.0)
    frame = b"id: 1\nevent: entity_found\ndata: " + event.to_json() + b"\n\n"
    for size in (1, 7, len(frame)):
        reader = EventReader()
        pieces = [frame[at : at + size] for at in range(0, len(frame), size)]
        (found,) = [event for piece in pieces for event in reader.feed(piece)]
        assert isinstance(found, EntityFound)
        assert found.entity["name"] == name


def test_a_break_at_any_byte_neither_loses_nor_repeats_an_event() -> None:
    events, lines = frames()
    whole = "\n".join([*lines, ""]).encode()
    for cut in range(len(whole)):
        reader = EventReader()
        seen = list(reader.feed(whole[:cut]))
        reader.broke()
        seen += reader.feed(whole)
        assert seen == events, cut


def test_the_word_that_a_result_is_there_is_the_last_one() -> None:
    reader = EventReader()
    hit = CacheHit(event_id="e", request_id="sha256-0", timestamp=0, progress=1.0, source="result", key="k")
    assert list(reader.feed(b"data: " + hit.to_json() + b"\n\n")) == [hit]
    assert reader.is_over


def test_what_concerns_the_listener_alone_does_not_undo_the_end() -> None:
    events, lines = frames()
    reader = EventReader()
    warning = BackpressureWarning(
        event_id="e", request_id="sha256-0", timestamp=0, progress=0.0, dropped=1, queue_size=1
    )
    given = list(reader.feed("\n".join([*lines, ""]).encode() + b"data: " + warning.to_json() + b"\n\n"))
    assert given == [*events, warning]
    assert reader.is_over


@pytest.mark.parametrize("data", ["{", "[]", '{"type":"nothing_known"}', "\ufffd"])
def test_an_event_that_is_not_understood_is_an_error_of_the_service(data: str) -> None:
    with pytest.raises(ServiceError, match="does not understand"):
        list(EventReader().feed(f"data: {data}\n\n".encode()))
