"""The same extraction is done once, and whatever ends it early costs only what was missing."""

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sameas import open_async_store
from sameas.extraction.events.events import (
    CacheHit,
    ErrorRecoverable,
    Event,
    ExtractionCompleted,
    ExtractionStarted,
    StageCompleted,
)
from sameas.extraction.events.journal import read_journal
from sameas.extraction.outputs import FORMATS
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.metadata import FileDigest, RunMetadata
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.runs.service import ExtractionService
from sameas.extraction.text.document import Document, DocumentPlaces, DocumentSource
from tests.unit.extraction.company import TEXT

from .desk import LONG, ONTOLOGY, SMALL, CountingExtractor, extract, make_service, same_files

pytestmark = pytest.mark.anyio


async def test_the_folder_is_as_the_source_document_says(tmp_path: Path) -> None:
    done = await extract(make_service(tmp_path), CountingExtractor())
    assert done.folder == tmp_path / "runs" / done.key.key
    assert {path.name for path in done.folder.iterdir()} == {
        *("metadata.json", "entities.json", "relations.json", "graph.ttl", "rejected.json", "events.jsonl"),
        "text.txt",
    }
    written = json.loads((done.folder / "metadata.json").read_bytes())
    names = "idempotencyKey status ontologyId ontologyVersion entityCount relationCount startedAt completedAt"
    assert list(written)[:11] == [*names.split(), "durationMs", "events", "errors"]
    assert (written["status"], written["idempotencyKey"]) == ("complete", done.key.key)
    assert written["entityCount"] == len(json.loads((done.folder / "entities.json").read_bytes())) > 0
    assert written["relationCount"] == len(json.loads((done.folder / "relations.json").read_bytes())) > 0
    kinds = [event["type"] for event in written["events"]]
    assert (kinds[0], kinds[-1], kinds.count("stage_completed")) == ("started", "completed", 7)


async def test_the_second_extraction_is_a_replay(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    first = await extract(service, extractor)
    asked = len(extractor.asked)
    told: list[Event] = []
    second = await extract(service, extractor, on_event=told.append)
    assert (first.replayed, second.replayed, second.shared) == (False, True, False)
    assert (second.graph, second.metadata) == (first.graph, first.metadata)
    assert len(extractor.asked) == asked
    (hit,) = told
    assert isinstance(hit, CacheHit)
    assert (hit.source, hit.sequence_number, hit.computed_at) == ("result", None, first.metadata.completed_at)


async def test_text_that_differs_in_line_ends_only_is_the_same_work(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    await extract(service, extractor)
    assert (await extract(service, extractor, TEXT.replace("\n", " \r\n") + "\n")).replayed


async def test_base_settings_and_extractor_are_part_of_the_key_and_concurrency_is_not(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    first = await extract(service, extractor)
    assert (await extract(service, extractor, settings=PipelineSettings(concurrency=1))).key == first.key
    others = [
        await extract(service, extractor, base="http://example.org/id/"),
        await extract(service, extractor, settings=SMALL),
        await extract(service, CountingExtractor(settings={"strict": True})),
    ]
    assert len({first.key.key, *(other.key.key for other in others)}) == 4


async def test_pieces_have_the_key_of_the_whole_text(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    pieces = await extract(service, extractor, (TEXT[start : start + 7] for start in range(0, len(TEXT), 7)))
    whole = await extract(service, extractor)
    assert whole.replayed
    assert (whole.key.key, whole.graph) == (pieces.key.key, pieces.graph)


async def test_two_tasks_at_once_make_one_run_and_both_hear_of_it(tmp_path: Path) -> None:
    extractor = CountingExtractor()
    extractor.gate = asyncio.Event()
    ours, theirs = make_service(tmp_path), make_service(tmp_path)
    own: list[Event] = []
    heard: list[Event] = []
    first = asyncio.create_task(extract(ours, extractor, on_event=own.append))
    await extractor.reached.wait()
    second = asyncio.create_task(extract(theirs, extractor, on_event=heard.append))
    while not any(isinstance(event, ExtractionStarted) for event in heard):
        await asyncio.sleep(0.01)
    extractor.gate.set()
    done, shared = await first, await second
    assert (done.replayed, done.shared, shared.shared) == (False, False, True)
    assert shared.graph == done.graph
    journal = list(read_journal(done.folder / "events.jsonl"))
    assert heard[:-1] == journal
    assert isinstance(heard[-1], CacheHit)
    assert heard[-1].source == "execution"
    assert [event.to_json() for event in own] == [event.to_json() for event in journal]


async def test_who_waits_for_another_is_told_so_once(tmp_path: Path) -> None:
    first, second = make_service(tmp_path), make_service(tmp_path)
    extractor = CountingExtractor()
    extractor.gate = asyncio.Event()
    told: list[str] = []
    waits = asyncio.Event()

    def wait() -> None:
        told.append("waits")
        waits.set()

    leads = asyncio.create_task(extract(first, extractor, on_wait=lambda: told.append("leads")))
    await extractor.reached.wait()
    follows = asyncio.create_task(extract(second, extractor, on_wait=wait))
    await waits.wait()
    extractor.gate.set()
    assert not (await leads).shared
    assert (await follows).shared
    assert told == ["waits"]


async def test_callers_of_one_service_share_too(tmp_path: Path) -> None:
    extractor, service = CountingExtractor(), make_service(tmp_path)
    all_done = await asyncio.gather(*(extract(service, extractor) for _ in range(8)))
    assert sum(not done.replayed for done in all_done) == 1
    assert len(extractor.asked) == all_done[0].metadata.chunks


def test_two_threads_at_once_make_one_run(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    answers = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        answers.append(asyncio.run(extract(service, extractor)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(not answer.replayed for answer in answers) == 1
    assert len({answer.metadata.fence for answer in answers}) == 1


async def test_a_partial_run_is_answered_and_the_next_request_does_what_is_missing(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    extractor.fails_on = {"Al3ice"}
    partial = await extract(service, extractor, LONG, settings=SMALL)
    assert (partial.metadata.status, partial.metadata.outcome) == ("partial", "PARTIAL_EARLY_EXIT")
    assert partial.graph.entities
    assert partial.metadata.errors[0].type == "llm_error"
    failed = [text for text in extractor.asked if "Al3ice" in text]
    kept = service.runs.find(partial.key.key)
    assert (kept.metadata, kept.graph()) == (partial.metadata, partial.graph)

    extractor.fails_on, extractor.asked = set(), []
    whole = await extract(service, extractor, LONG, settings=SMALL)
    assert (whole.metadata.status, whole.replayed, whole.metadata.attempt) == ("complete", False, 2)
    assert extractor.asked == failed
    numbers = [event.sequence_number for event in whole_journal(whole.folder)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert (await extract(service, extractor, LONG, settings=SMALL)).replayed
    fresh = await extract(make_service(tmp_path / "other"), CountingExtractor(), LONG, settings=SMALL)
    assert same_files(fresh.folder, whole.folder)


def whole_journal(folder: Path) -> list[Event]:
    return list(read_journal(folder / "events.jsonl"))


async def test_a_failed_run_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    extractor.breaks = True
    with pytest.raises(RuntimeError, match="broken"):
        await extract(service, extractor)
    (run,) = service.runs.list()
    assert (run.status, run.errors[-1].message, run.events[-1].type) == (
        *("failed", "the extractor is broken"),
        "failed",
    )
    extractor.breaks = False
    assert (await extract(service, extractor)).metadata.status == "complete"


async def test_a_cancelled_run_is_partial_and_its_claim_is_given_back(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    extractor.gate = asyncio.Event()
    running = asyncio.create_task(extract(service, extractor))
    await extractor.reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (run,) = service.runs.list()
    assert (run.status, run.outcome, run.errors[-1].type) == ("partial", "CANCELLED", "cancelled")
    extractor.gate = None
    done = await asyncio.wait_for(extract(service, extractor), 10)
    assert (done.metadata.status, done.metadata.attempt) == ("complete", 2)


async def test_the_folder_says_who_made_the_run_and_who_wrote_it_last(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    extractor.fails_on = {"Globex"}
    first = {"trace_id": "t-1", "invocation_id": "i-1", "created_by_user_id": "anna", "initiated_by_user_id": "anna"}
    second = {"trace_id": "t-2", "invocation_id": "i-2", "created_by_user_id": "bob", "initiated_by_user_id": "bob"}
    done = await extract(service, extractor, audit=first)
    written = json.loads((done.folder / "metadata.json").read_bytes())
    assert (written["status"], written["auditMeta"]) == ("partial", first)
    extractor.fails_on = set()
    done = await extract(service, extractor, audit=second)
    written = json.loads((done.folder / "metadata.json").read_bytes())
    assert (written["status"], written["auditMeta"]) == ("complete", {**second, "created_by_user_id": "anna"})


def tear(folder: Path) -> None:
    (folder / "graph.ttl").write_bytes((folder / "graph.ttl").read_bytes()[:-20])


def tamper(folder: Path) -> None:
    path = folder / "entities.json"
    path.write_bytes(path.read_bytes().replace(b"Alice", b"Alina"))


def tamper_twice(folder: Path) -> None:
    """The metadata is made to fit what was changed; the record knows better."""
    tamper(folder)
    path = folder / "metadata.json"
    metadata = RunMetadata.from_json(path.read_bytes())
    changed = FileDigest.of((folder / "entities.json").read_bytes())
    path.write_bytes(replace(metadata, files={**metadata.files, "entities.json": changed}).to_json())


def lose_a_file(folder: Path) -> None:
    (folder / "relations.json").unlink()


def lose_the_metadata(folder: Path) -> None:
    (folder / "metadata.json").unlink()


def tear_the_metadata(folder: Path) -> None:
    (folder / "metadata.json").write_bytes(b'{"idempotencyKey": "sha')


def cut_the_journal(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"")


@pytest.mark.parametrize(
    "harm",
    [tear, tamper, tamper_twice, lose_a_file, lose_the_metadata, tear_the_metadata, cut_the_journal],
)
async def test_a_damaged_folder_is_set_aside_and_done_again(harm, tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    first = await extract(service, extractor)
    good = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    harm(first.folder)
    told: list[object] = []
    again = await extract(service, extractor, on_event=told.append)
    assert not again.replayed
    assert [path.name for path in (tmp_path / "runs" / ".quarantine").iterdir()] == [f"{again.key.key}-1"]
    for name in ("entities.json", "relations.json", "graph.ttl"):
        assert (again.folder / name).read_bytes() == good[name]
    assert "set aside" in again.metadata.notes[0]
    assert isinstance(told[0], ErrorRecoverable)
    assert told[0].error.code == "damaged_run"
    later = await extract(service, extractor)
    assert later.replayed
    assert later.graph == again.graph


async def test_a_folder_that_is_gone_is_done_again(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    first = await extract(service, extractor)
    first.folder.rename(tmp_path / "elsewhere")
    assert not (await extract(service, extractor)).replayed


async def test_an_edit_costs_only_the_chunks_it_touches(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    text = "\n\n".join(f"Person{n} Stone works for Acme{n} Ltd. {TEXT[:180]}" for n in range(130))
    first = await extract(service, extractor, text, settings=SMALL)
    assert first.metadata.chunks >= 200
    extractor.asked = []
    edited = text.replace("Person70 Stone works for Acme70 Ltd.", "Person70 Stone was employed by Globex.")
    second = await extract(service, extractor, edited, settings=SMALL)
    assert 1 <= len(extractor.asked) <= 3
    assert any("Person70" in chunk for chunk in extractor.asked)
    assert second.key.key != first.key.key


async def test_a_worker_that_was_replaced_gets_the_accepted_result(tmp_path: Path) -> None:
    slow, quick = CountingExtractor(), CountingExtractor()
    slow.gate = asyncio.Event()
    sleeper, successor = make_service(tmp_path), make_service(tmp_path)
    late = asyncio.create_task(extract(sleeper, slow))
    await slow.reached.wait()
    (run,) = successor.runs.list()
    await sleeper._engine.forget(SCOPE, run.idempotency_key, namespace="content")
    accepted = await extract(successor, quick)
    slow.gate.set()
    answer = await late
    assert answer.metadata == accepted.metadata
    numbers = [event.sequence_number for event in whole_journal(accepted.folder)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert (await extract(successor, quick)).replayed


async def test_a_forgotten_record_means_that_the_work_is_wanted_again(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    first = await extract(service, extractor)
    await service._engine.forget(SCOPE, first.key.key, namespace="content")
    again = await extract(service, extractor)
    assert not again.replayed
    assert same_files(first.folder, again.folder)


async def test_an_updated_ontology_forgets_the_records_and_marks_the_runs(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    assert await service.invalidate_ontology(ONTOLOGY.iri, ONTOLOGY.version, "sha256:new") == 1
    assert service.runs.find(done.key.key).metadata.superseded_at is not None
    assert done.folder.exists()
    again = await extract(service, extractor)
    assert (again.replayed, again.metadata.superseded_at) == (False, None)


async def test_every_format_can_be_had_of_a_finished_run(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    run = service.runs.find(done.key.key)
    for name in FORMATS:
        assert service.render(done, name) == service.render(run, name)
    assert service.render(run, "turtle").startswith((done.folder / "graph.ttl").read_bytes())


async def test_the_names_of_a_document_are_those_of_who_asks(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    one, other = await extract(service, extractor), await extract(service, extractor)
    assert other.replayed
    for name in FORMATS:
        mine = service.render(one, name, sources=[DocumentSource(name="mine.txt")])
        yours = service.render(other, name, sources=[DocumentSource(name="yours.txt")])
        assert b"mine.txt" in mine
        assert b"mine.txt" not in yours
        assert b".txt" not in service.render(service.runs.find(one.key.key), name)


async def test_what_is_added_to_a_stored_graph_is_what_would_have_been_written(tmp_path: Path) -> None:
    service, extractor = make_service(tmp_path), CountingExtractor()
    done = await extract(service, extractor)
    known: dict[str, Any] = {"sources": [DocumentSource(name="a.txt")], "places": DocumentPlaces(Document("x"))}
    added = service.render(done, "turtle", **known)
    (done.folder / "graph.ttl").unlink()
    files = {name: digest for name, digest in done.metadata.files.items() if name != "graph.ttl"}
    without = replace(done, metadata=replace(done.metadata, files=files))
    assert service.render(without, "turtle", **known) == added


async def test_tenants_do_not_meet(tmp_path: Path) -> None:
    extractor = CountingExtractor()
    homes = [
        (await extract(make_service(tmp_path, tenant=tenant), extractor)).folder.parent
        for tenant in ("", "acme", "Acme", "../../acme", "sha256-" + "0" * 64)
    ]
    assert len(set(homes)) == 5
    assert all(home.is_relative_to(tmp_path / "runs") for home in homes)
    again = await extract(make_service(tmp_path, tenant="acme"), extractor)
    assert again.replayed


async def test_a_listener_that_fails_changes_nothing(tmp_path: Path) -> None:
    calls = []

    def fail(event: object) -> None:
        calls.append(event)
        raise ValueError("no")

    done = await extract(make_service(tmp_path), CountingExtractor(), on_event=fail)
    assert (done.metadata.status, len(calls)) == ("complete", 1)


async def test_events_come_in_order_and_the_last_says_how_it_ended(tmp_path: Path) -> None:
    told: list[object] = []
    await extract(make_service(tmp_path), CountingExtractor(), on_event=told.append)
    assert isinstance(told[0], ExtractionStarted)
    assert isinstance(told[-1], ExtractionCompleted)
    assert sum(isinstance(event, StageCompleted) for event in told) == 7


REPLAY = """
import asyncio, sys
from pathlib import Path
from tests.unit.extraction.runs.desk import TEXT, CountingExtractor, make_service
from sameas.ontology.load import load_ontology
for module in list(sys.modules):
    if module.startswith("pyoxigraph"):
        del sys.modules[module]
from tests.unit.extraction.runs.desk import ONTOLOGY
done = asyncio.run(make_service(Path(sys.argv[1])).extract(TEXT, ontology=ONTOLOGY, extractor=CountingExtractor()))
print(done.replayed, any(module.startswith("pyoxigraph") for module in sys.modules))
"""


async def test_a_replay_needs_no_graph_library(tmp_path: Path) -> None:
    await extract(make_service(tmp_path), CountingExtractor())
    root = Path(__file__).resolve().parents[4]
    answer = subprocess.run(
        [sys.executable, "-c", REPLAY, str(tmp_path)], cwd=root, capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["True", "False"]


def test_a_database_of_another_kind_is_refused_clearly(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'mysql' is no database for tables"):
        ExtractionService(home=tmp_path, store=open_async_store("memory://"), database="mysql://x")
