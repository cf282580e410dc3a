"""An attempt keeps the metadata in step with the events; one that was replaced writes nothing more."""

import hashlib
from pathlib import Path

import pytest

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import (
    EntityFound,
    ExtractionStarted,
    StageCompleted,
    StageStarted,
    TimeoutWarning,
)
from sameas.extraction.events.journal import read_journal
from sameas.extraction.runs.attempt import AttemptPlan, RunAttempt
from sameas.extraction.runs.durable_file import write_durably
from sameas.extraction.runs.folder import RunFolder, RunReplacedError
from sameas.extraction.runs.metadata import ExtractorName
from sameas.once.call_builder import identity_of
from sameas.once.context import Context
from sameas.once.record import Lease

KEY = "sha256-" + hashlib.sha256(b"run").hexdigest()
PLAN = AttemptPlan(
    key=KEY,
    ontology_id="http://example.org/o",
    ontology_version="sha256:1",
    text_hash="0" * 64,
    extraction_params_hash="1" * 64,
    extractor=ExtractorName("lexicon", "1"),
    settings={},
    base="urn:x:",
)


def context(fence: int) -> Context:
    lease = Lease(identity_of("extraction", KEY, namespace="content"), fence, f"attempt-{fence}")
    return Context(lease, 1, safe_until=0.0, place=None)


def attempt(folder: Path, *, fence: int) -> RunAttempt:
    return RunAttempt(RunFolder(folder, KEY), PLAN, context(fence), clock=lambda: 1_800_000_000.0)


def test_the_metadata_is_written_at_stage_ends_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def counted(path: Path, data: bytes, *, settle: bool = True) -> None:
        written.append(path.name)
        write_durably(path, data, settle=settle)

    monkeypatch.setattr("sameas.extraction.runs.folder.write_durably", counted)
    run = attempt(tmp_path, fence=1)
    bus = Bus(KEY, journal=run)
    assert written == ["metadata.json"]
    bus.emit(ExtractionStarted)
    assert len(written) == 2
    bus.emit(StageStarted, stage="entity_extraction")
    for _ in range(50):
        bus.emit(EntityFound, entity={}, confidence=1.0)
    assert len(written) == 2
    bus.emit(StageCompleted, stage="entity_extraction", duration_ms=1, item_count=50)
    assert len(written) == 3
    bus.close()
    on_disk = RunFolder(tmp_path, KEY).metadata()
    assert on_disk == run.metadata
    assert [event.type for event in on_disk.events] == [
        "started",
        "stage_began",
        "entity_extracted",
        "stage_completed",
    ]


def test_a_hard_time_out_is_an_error_and_a_soft_one_is_not(tmp_path: Path) -> None:
    run = attempt(tmp_path, fence=1)
    bus = Bus(KEY, journal=run)
    bus.emit(TimeoutWarning, stage="grounding", limit="soft", timeout_ms=5, chunk_index=0)
    bus.emit(TimeoutWarning, stage="grounding", limit="hard", timeout_ms=9, chunk_index=0)
    bus.close()
    (error,) = run.metadata.errors
    assert (error.type, error.context) == ("timeout", {"stage": "grounding", "chunkIndex": 0})


def test_a_replaced_worker_reaches_neither_metadata_nor_journal(tmp_path: Path) -> None:
    late = attempt(tmp_path, fence=1)
    bus = Bus(KEY, journal=late)
    bus.emit(ExtractionStarted)
    successor = attempt(tmp_path, fence=2)
    next_bus = Bus(KEY, journal=successor)
    next_bus.emit(ExtractionStarted)
    bus.emit(StageStarted, stage="chunking")
    with pytest.raises(RunReplacedError):
        bus.emit(StageCompleted, stage="chunking", duration_ms=1, item_count=1)
    with pytest.raises(RunReplacedError):
        late.fail(ValueError("no"))
    next_bus.emit(StageStarted, stage="grounding")
    bus.close()
    next_bus.close()
    metadata = RunFolder(tmp_path, KEY).metadata()
    assert (metadata.fence, metadata.attempt, metadata.first_event) == (2, 2, 2)
    events = list(read_journal(tmp_path / KEY / "events.jsonl"))
    assert [event.type for event in events] == ["extraction_started", "extraction_started", "stage_started"]
    with pytest.raises(RunReplacedError):
        attempt(tmp_path, fence=1)


def test_a_worker_that_knows_it_lost_its_lease_stops(tmp_path: Path) -> None:
    lost = context(1)
    run = RunAttempt(RunFolder(tmp_path, KEY), PLAN, lost)
    lost.lost = True
    with pytest.raises(RunReplacedError):
        Bus(KEY, journal=run).emit(ExtractionStarted)


def test_a_folder_that_was_removed_is_not_made_again_by_its_worker(tmp_path: Path) -> None:
    run = attempt(tmp_path, fence=1)
    RunFolder(tmp_path, KEY).remove()
    with pytest.raises(RunReplacedError):
        run.cancel()
    assert not (tmp_path / KEY).exists()


def test_many_failures_do_not_grow_the_metadata_without_end(tmp_path: Path) -> None:
    run = attempt(tmp_path, fence=1)
    bus = Bus(KEY, journal=run)
    for number in range(300):
        bus.emit(TimeoutWarning, stage="grounding", limit="hard", timeout_ms=9, chunk_index=number)
    bus.close()
    assert len(run.metadata.errors) == 200
    assert run.metadata.errors[-1].context["chunkIndex"] == 299
