"""A run as objects: segments of a journal over attempts, copies of results, and what late writers do."""

import threading
from types import SimpleNamespace

import msgspec
import pytest

from sameas.extraction.runs.folder import Mark, RunFolder
from sameas.extraction.runs.library import Runs
from sameas.extraction.runs.metadata import ENTITIES, METADATA, FileDigest, RunMetadata
from sameas.extraction.runs.run_objects import JournalSegment, RunObjects, SegmentedJournal, read_place
from sameas.objects import open_objects

KEY = "sha256-" + "ab" * 32


def _of(known, fields):
    return msgspec.convert({"".join(_camel(name)): value for name, value in {**known, **fields}.items()}, RunMetadata)


def _camel(name):
    first, *rest = name.split("_")
    return (first, *(part.title() for part in rest))


@pytest.fixture
def run_objects(tmp_path):
    return RunObjects(open_objects(f"file://{tmp_path}/objects"), tenant="")


def folder_of(tmp_path, name):
    return RunFolder(tmp_path / name, KEY)


def ended(run_objects, folder, *, fence, entities=b"[]"):
    """A result of an attempt, as it is kept."""
    folder.path.mkdir(parents=True, exist_ok=True)
    (folder.path / ENTITIES).write_bytes(entities)
    (folder.path / "events.jsonl").write_bytes(b'{"n":1}\n{"n":2}\n')
    done = _of(_KNOWN, {"files": {ENTITIES: {"sha256": FileDigest.of(entities).sha256, "size": len(entities)}}})
    run_objects.put_result(folder, f"{fence:020d}", done)
    return done


_KNOWN = {
    "idempotency_key": KEY, "status": "complete", "ontology_id": "o", "ontology_version": "1",
    "started_at": "2026-01-31T12:00:00.000Z", "extractor": {"name": "x", "version": "1"}, "settings": {},
    "base": "urn:x:", "text_hash": "t", "extraction_params_hash": "p",
}  # fmt: skip


def test_a_line_is_read_from_the_latest_attempt_that_had_begun():
    first = [JournalSegment(1, 3, 10, "a"), JournalSegment(4, 9, 10, "late writer")]
    second = [JournalSegment(4, 5, 11, "b"), JournalSegment(6, 6, 11, "c")]
    journal = SegmentedJournal([*second, *first])
    found = [journal.at(number) for number in range(1, 8)]
    assert [one and one.name for one in found] == ["a", "a", "a", "b", "b", "c", None]


def test_a_run_that_is_done_again_has_a_journal_of_its_own():
    assert SegmentedJournal([JournalSegment(1, 9, 10, "a"), JournalSegment(1, 2, 12, "b")]).at(3) is None


def test_a_segment_that_was_told_twice_because_no_answer_came_is_read_once():
    journal = SegmentedJournal(
        [JournalSegment(5, 12, 10, "again"), JournalSegment(5, 9, 10, "first"), JournalSegment(13, 13, 10, "next")]
    )
    assert [journal.at(number).name for number in (5, 10, 13)] == ["again", "again", "next"]


def test_another_machine_gets_a_copy_of_the_place_that_was_accepted(run_objects, tmp_path):
    here, there = folder_of(tmp_path, "here"), folder_of(tmp_path, "there")
    ended(run_objects, here, fence=7, entities=b"[1]")
    # A late writer's result is at a place of its own.
    ended(run_objects, folder_of(tmp_path, "late"), fence=9, entities=b"[2]")
    run_objects.refresh(there, place=f"{7:020d}")
    assert (there.path / ENTITIES).read_bytes() == b"[1]"
    assert there.metadata().status == "complete"
    assert read_place(there) == f"{7:020d}/result"


def test_a_damaged_copy_is_made_anew(run_objects, tmp_path):
    ended(run_objects, folder_of(tmp_path, "here"), fence=7, entities=b"[1]")
    there = folder_of(tmp_path, "there")
    run_objects.refresh(there, place=f"{7:020d}")
    (there.path / ENTITIES).write_bytes(b"torn")
    run_objects.refresh(there, place=f"{7:020d}", anew=True)
    assert (there.path / ENTITIES).read_bytes() == b"[1]"


@pytest.mark.parametrize("name", [METADATA, ENTITIES])
def test_a_copy_that_a_power_cut_emptied_is_made_anew(run_objects, tmp_path, name):
    ended(run_objects, folder_of(tmp_path, "here"), fence=7, entities=b"[1]")
    there = folder_of(tmp_path, "there")
    run_objects.refresh(there)
    (there.path / name).write_bytes(b"")
    run_objects.refresh(there)
    assert (there.path / ENTITIES).read_bytes() == b"[1]"
    assert there.metadata().status == "complete"


def test_large_files_lie_beside_the_result(run_objects, tmp_path):
    large = b"[" + b"1," * (5 << 20) + b"1]"
    ended(run_objects, folder_of(tmp_path, "here"), fence=7, entities=large)
    assert f"{7:020d}/files/{ENTITIES}" in run_objects.names(KEY)
    there = folder_of(tmp_path, "there")
    run_objects.refresh(there)
    assert (there.path / ENTITIES).read_bytes() == large


def test_a_copy_of_what_was_deleted_elsewhere_goes(run_objects, tmp_path):
    ended(run_objects, folder_of(tmp_path, "here"), fence=7)
    there = folder_of(tmp_path, "there")
    run_objects.refresh(there)
    assert there.exists()
    assert run_objects.remove(KEY)
    run_objects.refresh(there)
    assert not there.exists()
    assert not run_objects.remove(KEY)


def test_an_attempt_tells_what_it_writes_until_it_is_replaced(run_objects, tmp_path):
    heard, was_told = [], threading.Event()

    def publish(tenant, key, first, lines, *, fence):
        heard.append((first, lines, fence))
        was_told.set()

    live = SimpleNamespace(publish=publish, ended=lambda tenant, key: None)
    telling = RunObjects(run_objects._objects, tenant="", live=live)
    folder = folder_of(tmp_path, "here")
    folder.path.mkdir(parents=True)
    folder.journal_path.write_bytes(b'{"n":1}\n')
    lost = threading.Event()
    upload = telling.begin(folder, 7, is_lost=lost.is_set)
    upload.note(_of(_KNOWN, {}))
    with folder.journal_path.open("ab") as journal:
        journal.write(b'{"n":2}\n{"n":3}\n{"torn')
    assert was_told.wait(30)
    assert [line.data for line in telling.lines(KEY, after=1)] == [b'{"n":2}', b'{"n":3}']
    assert heard == [(2, [b'{"n":2}', b'{"n":3}'], 7)]
    lost.set()
    upload.close()
    with folder.journal_path.open("ab") as journal:
        journal.write(b'":4}\n')
    assert [line.number for line in telling.lines(KEY, after=1)] == [2, 3]
    assert f"{7:020d}/{METADATA}" in telling.names(KEY)


def test_runs_are_listed_by_when_they_began_the_newest_first(run_objects):
    other = "sha256-" + "cd" * 32
    run_objects.add_mark(Mark("2026-01-31T12:00:00.000Z", KEY))
    run_objects.add_mark(Mark("2026-02-01T12:00:00.000Z", other))
    assert [mark.key for mark in run_objects.marks()] == [other, KEY]


def test_what_an_ontology_superseded_is_marked_where_it_is_fetched_and_no_run_is_read_for_it(run_objects, tmp_path):
    ended(run_objects, folder_of(tmp_path, "here"), fence=7)
    old, new, after = (folder_of(tmp_path, name) for name in ("old", "new", "after"))
    run_objects.refresh(new)
    run_objects.supersede("o", version="1", at="2026-02-01T12:00:00.000Z")
    run_objects.refresh(old)
    assert (new.metadata().superseded_at, old.metadata().superseded_at) == (None, None)
    run_objects.supersede("o", version="2", at="2026-02-02T12:00:00.000Z")
    run_objects.refresh(after)
    assert after.metadata().superseded_at == "2026-02-02T12:00:00.000Z"
    run_objects.supersede("another", version="2", at="2026-02-03T12:00:00.000Z")
    assert len(run_objects.names(KEY)) == 1


def test_marking_reads_what_this_home_has_and_fetches_nothing(run_objects, tmp_path):
    ended(run_objects, folder_of(tmp_path, "elsewhere"), fence=7)
    run_objects.add_mark(Mark("2026-01-31T12:00:00.000Z", KEY))
    runs = Runs(tmp_path / "home", records=None, objects=run_objects)
    assert runs.supersede("o", new_version="2") == ()
    assert not runs.at(KEY).exists()
    assert [one.superseded_at is not None for one in runs.list()] == [True]
    # A copy that was here before is marked by the notice.
    assert runs.supersede("o", new_version="3", tell=False) == ()
