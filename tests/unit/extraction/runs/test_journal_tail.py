"""Following a journal that somebody else writes."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import StageStarted
from sameas.extraction.events.journal import FileJournal, JournalTail


@pytest.fixture
def new_bus() -> Iterator[Callable[[Path], Bus]]:
    made: list[Bus] = []

    def make(path: Path) -> Bus:
        made.append(Bus("run", journal=FileJournal(path)))
        return made[-1]

    yield make
    for bus in made:
        bus.close()


def test_each_event_is_read_once(tmp_path: Path, new_bus: Callable[[Path], Bus]) -> None:
    path = tmp_path / "events.jsonl"
    tail = JournalTail(path)
    assert tail.read() == []
    bus = new_bus(path)
    first = bus.emit(StageStarted, stage="chunking")
    assert tail.read() == [first]
    assert tail.read() == []
    second = bus.emit(StageStarted, stage="grounding")
    assert tail.read() == [second]


def test_it_begins_after_a_number(tmp_path: Path, new_bus: Callable[[Path], Bus]) -> None:
    path = tmp_path / "events.jsonl"
    bus = new_bus(path)
    events = [bus.emit(StageStarted, stage=str(number)) for number in range(5)]
    assert JournalTail(path, after=3).read() == events[3:]


def test_half_a_line_is_left_for_later(tmp_path: Path, new_bus: Callable[[Path], Bus]) -> None:
    path = tmp_path / "events.jsonl"
    event = new_bus(tmp_path / "other").emit(StageStarted, stage="chunking")
    line = event.to_json() + b"\n"
    tail = JournalTail(path)
    path.write_bytes(line[:20])
    assert tail.read() == []
    path.write_bytes(line)
    assert tail.read() == [event]


def test_a_journal_that_was_taken_over_goes_on_at_the_same_number(
    tmp_path: Path, new_bus: Callable[[Path], Bus]
) -> None:
    path = tmp_path / "events.jsonl"
    bus = new_bus(path)
    bus.emit(StageStarted, stage="chunking")
    tail = JournalTail(path)
    tail.read()
    shutil.copyfile(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    bus.emit(StageStarted, stage="by the one who was replaced")
    successor = new_bus(path)
    event = successor.emit(StageStarted, stage="grounding")
    assert event.sequence_number == 2
    assert tail.read() == [event]
