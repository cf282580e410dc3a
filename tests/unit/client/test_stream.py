"""Events read from a stream are given once, in order, whatever way it breaks."""

from sameas.client.stream import EventReader
from sameas.extraction.bus import Bus
from sameas.extraction.events import Event, ExtractionCompleted, ExtractionStarted, StageStarted, Summary
from sameas.extraction.journal import MemoryJournal


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
