"""The journal's line number is the event's number, through every crash."""

import os
from pathlib import Path

import pytest

from sameas.extraction.events.events import ExtractionCancelled, StageCompleted, StageProgress, StageStarted
from sameas.extraction.events.journal import FileJournal, JournalDamagedError, MemoryJournal, NoJournal, read_journal
from tests.servers.full_disk import files_end_at


def event(number: int) -> StageStarted:
    return StageStarted(
        event_id=f"e{number}", request_id="k", timestamp=number, sequence_number=number, progress=0.0, stage="chunking"
    )


def test_events_are_read_back_by_number(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "events.jsonl")
    for number in range(1, 6):
        journal.append(event(number))
    assert [one.sequence_number for one in journal.read(after=1, up_to=4)] == [2, 3, 4]
    assert journal.length == 5
    journal.close()


@pytest.mark.parametrize("journal", [MemoryJournal(), NoJournal()], ids=["memory", "none"])
def test_a_number_out_of_turn_is_refused(journal: MemoryJournal | NoJournal) -> None:
    journal.append(event(1))
    with pytest.raises(ValueError, match="number 2"):
        journal.append(event(3))


@pytest.mark.parametrize("torn", [b"{", b'{"type":"stage_star', b'{"type":"stage_started","eventId":"e9"}'])
def test_a_torn_last_line_is_cut_off_on_reopening(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "events.jsonl"
    journal = FileJournal(path)
    journal.append(event(1))
    journal.append(event(2))
    journal.close()
    with path.open("ab") as file:
        file.write(torn)
    assert [one.sequence_number for one in read_journal(path)] == [1, 2]
    again = FileJournal(path)
    assert again.length == 2
    again.append(event(3))
    again.close()
    assert [one.sequence_number for one in read_journal(path)] == [1, 2, 3]


def test_every_cut_of_a_journal_leaves_whole_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = FileJournal(path)
    for number in (1, 2, 3):
        journal.append(event(number))
    journal.close()
    data = path.read_bytes()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        whole = FileJournal(path).length
        assert [one.sequence_number for one in read_journal(path)] == list(range(1, whole + 1))
        assert whole == data[:cut].count(b"\n")


def test_damage_in_the_middle_is_an_error_not_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event(1).to_json() + b"\nrubbish\n" + event(3).to_json() + b"\n")
    with pytest.raises(JournalDamagedError, match="line 2"):
        list(read_journal(path))
    path.write_bytes(event(1).to_json() + b"\n" + event(3).to_json() + b"\n")
    with pytest.raises(JournalDamagedError, match="number 3"):
        list(read_journal(path))


def test_a_journal_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "events.jsonl")) == []


def test_an_append_is_readable_at_once_by_another(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = FileJournal(path)
    progress = StageProgress(
        event_id="e",
        request_id="k",
        timestamp=1,
        sequence_number=1,
        progress=0.1,
        stage="chunking",
        percent=1.0,
        items_processed=1,
        items_total=9,
    )
    journal.append(progress)
    assert list(read_journal(path)) == [progress]
    journal.close()


def test_what_ended_is_forced_to_the_disk_and_what_begins_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    monkeypatch.setattr(os, "fsync", forced.append)
    journal = FileJournal(tmp_path / "events.jsonl")
    journal.append(event(1))
    assert forced == []
    about = {"event_id": "e", "request_id": "k", "timestamp": 1, "progress": 0.0}
    journal.append(
        StageCompleted(**about, sequence_number=2, stage="chunking", duration_ms=1, item_count=1)  # type: ignore[arg-type]
    )
    assert len(forced) == 1
    journal.append(ExtractionCancelled(**about, sequence_number=3, reason="enough"))  # type: ignore[arg-type]
    assert len(forced) == 2
    journal.close()


def test_an_event_for_which_there_is_no_room_leaves_nothing_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal = FileJournal(path)
    journal.append(event(1))
    whole = path.read_bytes()
    with files_end_at(len(whole) + 10), pytest.raises(OSError, match="disk full"):
        journal.append(event(2))
    assert path.read_bytes() == whole
    journal.append(event(2))
    journal.close()
    assert [one.sequence_number for one in read_journal(path)] == [1, 2]
