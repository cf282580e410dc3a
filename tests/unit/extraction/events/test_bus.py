"""Nobody who listens slows the run, and everybody learns how it ended."""

import asyncio
import threading
from pathlib import Path

import pytest

from sameas.extraction.events.bus import Backpressure, Bus
from sameas.extraction.events.events import (
    BackpressureWarning,
    EntityFound,
    Event,
    ExtractionCompleted,
    RateLimited,
    StageCompleted,
    StageStarted,
    Summary,
)
from sameas.extraction.events.journal import FileJournal

SMALL = Backpressure(queue_size=10, sample_above=0.8, keep_one_in=10)


def discoveries(bus: Bus, count: int) -> None:
    for number in range(count):
        bus.emit(EntityFound, entity=number, confidence=1.0)


def end(bus: Bus) -> None:
    bus.emit(ExtractionCompleted, summary=Summary(entity_count=0, relation_count=0, duration_ms=0))
    bus.close()


def of(kind: type[Event], events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def test_numbers_are_gapless_from_one() -> None:
    bus = Bus("k")
    heard = bus.subscribe()
    discoveries(bus, 50)
    end(bus)
    events = list(heard)
    assert [event.sequence_number for event in events] == list(range(1, 52))


def test_several_events_at_once_are_as_one_by_one(tmp_path: Path) -> None:
    bus = Bus("k", journal=FileJournal(tmp_path / "events.jsonl"))
    heard = bus.subscribe()
    assert bus.emit_all(EntityFound, []) == []
    bus.emit_all(EntityFound, [{"entity": number, "confidence": 1.0} for number in range(5)])
    discoveries(bus, 1)
    bus.emit_all(EntityFound, [{"entity": number, "confidence": 0.5} for number in range(2)])
    end(bus)
    events = list(heard)
    assert [event.sequence_number for event in events] == list(range(1, 10))
    assert len({event.event_id for event in events}) == 9
    assert [event.entity for event in of(EntityFound, events)] == [0, 1, 2, 3, 4, 0, 0, 1]  # type: ignore[attr-defined]
    assert list(bus.subscribe()) == [*events]
    with pytest.raises(RuntimeError, match="has ended"):
        bus.emit_all(EntityFound, [{"entity": 1, "confidence": 1.0}])


def test_a_late_subscriber_hears_the_run_from_its_beginning(tmp_path: Path) -> None:
    bus = Bus("k", journal=FileJournal(tmp_path / "events.jsonl"))
    discoveries(bus, 5)
    late = bus.subscribe()
    discoveries(bus, 5)
    end(bus)
    after_the_end = bus.subscribe()
    assert [event.sequence_number for event in late] == list(range(1, 12))
    assert [event.sequence_number for event in after_the_end] == list(range(1, 12))


def test_a_listener_resumes_after_the_number_it_had() -> None:
    bus = Bus("k")
    discoveries(bus, 5)
    again = bus.subscribe(after=3)
    discoveries(bus, 1)
    end(bus)
    assert [event.sequence_number for event in again] == [4, 5, 6, 7]


def test_a_slow_listener_misses_discoveries_and_is_told_how_many() -> None:
    bus = Bus("k", settings=SMALL)
    slow = bus.subscribe()
    bus.emit(StageStarted, stage="entity_extraction")
    discoveries(bus, 500)
    bus.emit(StageCompleted, stage="entity_extraction", duration_ms=1, item_count=500)
    end(bus)
    events = list(slow)
    warnings = [event for event in events if isinstance(event, BackpressureWarning)]
    assert len(warnings) == 1
    assert warnings[0].sequence_number is None
    assert warnings[0].dropped == 500 - len(of(EntityFound, events))
    assert len(events) <= SMALL.queue_size + 3
    assert [event.type for event in events if not isinstance(event, EntityFound | BackpressureWarning)] == [
        "stage_started",
        "stage_completed",
        "extraction_completed",
    ]


def test_above_the_threshold_one_in_ten_is_kept() -> None:
    bus = Bus("k", settings=Backpressure(queue_size=100))
    heard = bus.subscribe()
    discoveries(bus, 81 + 100)
    end(bus)
    kept = [event.entity for event in heard if isinstance(event, EntityFound)]
    assert kept == [*range(81), *range(90, 181, 10)]


def test_a_full_queue_drops_the_oldest_droppable_event() -> None:
    bus = Bus("k", settings=SMALL)
    heard = bus.subscribe()
    for wait in range(30):
        bus.emit(RateLimited, wait_ms=wait, reason="tokens")
    end(bus)
    waits = [event.wait_ms for event in heard if isinstance(event, RateLimited)]
    assert waits == list(range(21, 30))


def test_stage_events_are_kept_even_when_nothing_else_fits() -> None:
    bus = Bus("k", settings=SMALL)
    heard = bus.subscribe()
    for _ in range(40):
        bus.emit(StageStarted, stage="grounding")
    discoveries(bus, 100)
    end(bus)
    assert len(of(StageStarted, list(heard))) == 40


def test_one_slow_listener_does_not_touch_another() -> None:
    bus = Bus("k", settings=SMALL)
    slow, quick = bus.subscribe(), bus.subscribe(settings=Backpressure(queue_size=1000))
    discoveries(bus, 600)
    end(bus)
    assert len(of(EntityFound, list(quick))) == 600
    assert len(of(EntityFound, list(slow))) < 20


def test_a_thread_hears_events_while_they_happen() -> None:
    bus = Bus("k")
    heard: list[Event] = []
    subscription = bus.subscribe()
    first = threading.Event()

    def listen() -> None:
        for event in subscription:
            heard.append(event)
            first.set()

    thread = threading.Thread(target=listen)
    thread.start()
    discoveries(bus, 1)
    assert first.wait(10)
    discoveries(bus, 2)
    end(bus)
    thread.join(10)
    assert [event.sequence_number for event in heard] == [1, 2, 3, 4]


def test_asyncio_hears_events_from_another_thread() -> None:
    bus = Bus("k")

    async def listen() -> list[Event]:
        publisher = threading.Thread(target=lambda: (discoveries(bus, 300), end(bus)))
        events: list[Event] = []
        async for event in bus.subscribe():
            if not events:
                publisher.start()
            events.append(event)
        publisher.join()
        return events

    discoveries(bus, 1)
    events = asyncio.run(listen())
    assert [event.sequence_number for event in events] == list(range(1, 303))


def test_a_listener_whose_loop_is_gone_harms_nobody() -> None:
    bus = Bus("k")
    subscription = bus.subscribe()

    async def first() -> None:
        bus.emit(StageStarted, stage="chunking")
        async for _ in subscription:
            break

    asyncio.run(first())
    discoveries(bus, 5)
    end(bus)


def test_a_closed_run_takes_no_event() -> None:
    bus = Bus("k")
    end(bus)
    with pytest.raises(RuntimeError, match="has ended"):
        discoveries(bus, 1)


def test_progress_never_goes_back() -> None:
    bus = Bus("k")
    bus.advance(0.5)
    bus.advance(0.2)
    assert bus.emit(StageStarted, stage="grounding").progress == 0.5


def test_who_leaves_hears_no_more() -> None:
    bus = Bus("k")
    subscription = bus.subscribe()
    discoveries(bus, 1)
    bus.unsubscribe(subscription)
    discoveries(bus, 1)
    assert len(list(subscription)) == 1


def test_useless_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="queue_size"):
        Backpressure(queue_size=0)
