"""From text to graph: the same bytes every time, what is done is not done again, and every end is said."""

import asyncio
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import (
    CacheHit,
    ErrorRecoverable,
    Event,
    ExtractionCompleted,
    StageStarted,
    TimeoutWarning,
)
from sameas.extraction.events.journal import FileJournal, read_journal
from sameas.extraction.extractors.contract import ChunkFailedError, Found
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.model import Claim, KnowledgeGraph, Mention
from sameas.extraction.outputs import FORMATS, write_entities, write_rejected, write_relations
from sameas.extraction.pipeline.checkpoints import MemoryCheckpoints, UsedFile
from sameas.extraction.pipeline.outcome import ExtractionResult
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.run import RunPart
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import Chunk, ChunkSettings
from sameas.extraction.text.document import OffsetMap, Span
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.llm.ledger import SpendingMeter
from sameas.llm.timeouts import STAGES, paused
from sameas.ontology.focus import Focus
from tests.shared_data import shared
from tests.unit.extraction.clock import run_jumping
from tests.unit.extraction.company import EX, TEXT, company_index, company_pipeline

INDEX = company_index()
SMALL = ChunkSettings(window=60, limit=200)
LONG = "\n\n".join(TEXT.replace("Acme", f"Acme{number}").replace("Alice", f"Al{number}ice") for number in range(12))


def run(text: str, pipeline: Pipeline | None = None, **options: Any) -> ExtractionResult:
    return asyncio.run((pipeline or company_pipeline(INDEX)).run(text, key="sha256-test", **options))


def triples(graph: KnowledgeGraph) -> set[tuple[str, str, str]]:
    names = {entity.id: entity.name for entity in graph.entities}
    return {
        (
            names[relation.subject],
            relation.predicate.removeprefix(EX),
            names.get(relation.object) or (relation.value.value if relation.value else ""),
        )
        for relation in graph.relations
    }


def test_a_text_becomes_a_graph() -> None:
    result = run(TEXT)
    assert result.outcome == "COMPLETE"
    assert triples(result.graph) == {
        ("Alice Stone", "bornIn", "Paris"),
        ("Alice Stone", "birthDate", "1980-05-01"),
        ("Alice Stone", "worksFor", "Acme Robotics Ltd"),
        ("Alice Stone", "worksFor", "Globex"),
        ("Acme Robotics Ltd", "founder", "Alice Stone"),
        ("Acme Robotics Ltd", "founder", "Bob Miller"),
        ("Acme Robotics Ltd", "inception", "1999"),
        ("Acme Robotics Ltd", "employees", "3400"),
        ("Acme Robotics Ltd", "headquarters", "Zürich"),
        ("France", "capital", "Paris"),
        ("Germany", "capital", "Berlin"),
        ("Globex", "founder", "Hank Scorpio"),
        ("Globex", "motto", "Tomorrow, today"),
        ("李明", "bornIn", "北京"),
    }


def test_a_name_that_its_own_chunk_gives_no_class_is_known_from_another() -> None:
    told = "Aglaia Stone works for Acme Ltd, as everybody knows who has ever been there."
    silent = "Nobody had heard of it before, and yet Aglaia Stone slept until noon while it was raining outside."
    text = f"{told}\n\n{silent}"
    settings = PipelineSettings(chunking=SMALL)
    pipeline = Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX), settings=settings)
    result = run(text, pipeline)
    assert result.chunks > 1
    aglaia = next(entity for entity in result.graph.entities if entity.name == "Aglaia Stone")
    assert [said.start for said in aglaia.mentions] == [0, text.rindex("Aglaia Stone")]
    assert not [one for one in result.graph.rejected if one.subject == "Aglaia Stone"]
    assert [one.code for one in run(silent, pipeline).graph.rejected if one.subject == "Aglaia Stone"] == ["no_type"]


def test_names_that_all_have_no_class_are_told_with_what_to_add() -> None:
    silent = "Nobody had heard of it before, and yet Aglaia Stone slept until noon while it was raining outside."
    pipeline = Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX))
    (note,) = run(silent, pipeline).graph.notes
    assert "no_type" in note
    assert "rdfs:label" in note
    assert run(f"{silent} She met Alice Stone.", pipeline).graph.notes == ()


def test_every_span_is_exact_in_the_callers_own_text() -> None:
    original = "\r\n  " + TEXT.replace("\n", " \t\r\n").replace("Zürich", "Zu\u0308rich 👩\u200d🚀") + " \r\n"
    graph = run(original).graph
    normal, offsets = normalize_text(original), OffsetMap(original)
    assert graph.relations
    for entity in graph.entities:
        for mention in entity.mentions:
            assert normal[mention.start : mention.end] == mention.text
            there = offsets.span(Span(mention.start, mention.end))
            assert normalize_text(original[there.start : there.end]) == mention.text
    for relation in graph.relations:
        for evidence in relation.evidence:
            assert normal[evidence.start : evidence.end] == evidence.text
            for span in (*relation.subject_spans, *relation.object_spans):
                assert any(one.start <= span.start and span.end <= one.end for one in relation.evidence)


def test_concurrency_changes_no_byte() -> None:
    settings = [PipelineSettings(chunking=SMALL, concurrency=concurrency) for concurrency in (1, 2, 7, 64)]
    results = [
        run(LONG, Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX), settings=one), formats=FORMATS)
        for one in settings
    ]
    assert results[0].chunks > 20
    for result in results[1:]:
        assert result.outputs == results[0].outputs
        assert result.graph == results[0].graph


_IN_A_PROCESS = """
import asyncio, hashlib, io, sys
from tests.unit.extraction.company import TEXT, company_pipeline
from sameas.extraction.outputs import FORMATS, write_entities, write_relations
result = asyncio.run(company_pipeline(concurrency=int(sys.argv[1])).run(TEXT * 3, key="k", formats=FORMATS))
halves = io.BytesIO()
write_entities(result.found, halves)
write_relations(result.found, halves)
whole = [halves.getvalue(), *(result.outputs[name] for name in FORMATS)]
print(*(hashlib.sha256(data).hexdigest() for data in whole))
"""


def test_no_hash_seed_changes_a_byte() -> None:
    root = Path(__file__).resolve().parents[4]
    answers = set()
    for seed, concurrency in (("0", "1"), ("1", "5"), ("4242", "2"), ("random", "3")):
        done = subprocess.run(
            [sys.executable, "-c", _IN_A_PROCESS, concurrency],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answers.add(done.stdout)
    assert len(answers) == 1


def test_pieces_of_a_text_give_the_same_as_the_whole() -> None:
    pieces = [LONG[at : at + 97] for at in range(0, len(LONG), 97)]
    whole = run(LONG)
    assert asyncio.run(company_pipeline(INDEX).run(iter(pieces), key="sha256-test")).graph == whole.graph


def events_of(text: str, pipeline: Pipeline, **options: Any) -> list[Event]:
    bus = Bus("sha256-test")
    heard = bus.subscribe()
    run(text, pipeline, bus=bus, **options)
    return list(heard)


def test_a_run_tells_every_stage_in_order() -> None:
    events = events_of(TEXT, company_pipeline(INDEX))
    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert [event.stage for event in events if isinstance(event, StageStarted)] == list(STAGES)
    assert events[0].type == "extraction_started"
    assert isinstance(events[-1], ExtractionCompleted)
    assert events[-1].summary.relation_count == 14
    progress = [event.progress for event in events]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    assert {"chunk_started", "chunk_completed", "entity_found", "relation_found", "stage_progress"} <= {
        event.type for event in events
    }


def test_the_journal_on_disk_is_the_run(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    run(TEXT, bus=Bus("sha256-test", journal=FileJournal(path)))
    events = list(read_journal(path))
    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1], ExtractionCompleted)


def test_what_is_done_is_not_done_again() -> None:
    kept = MemoryCheckpoints()
    settings = PipelineSettings(chunking=SMALL)

    def pipeline() -> Pipeline:
        return Pipeline(index=INDEX, extractor=Counting(), settings=settings, checkpoints=kept)

    first = run(LONG, pipeline())
    calls = Counting.calls
    again = run(LONG, pipeline())
    assert Counting.calls == calls
    assert again.graph == first.graph
    assert again.chunks_from_checkpoints == 2 * first.chunks
    edited = LONG.replace("Hank Scorpio", "Hans Scorpio", 1)
    changed = run(edited, pipeline())
    assert 0 < Counting.calls - calls <= 2 * 6
    assert changed.graph != first.graph
    hits = [event for event in events_of(LONG, pipeline()) if isinstance(event, CacheHit)]
    assert {hit.source for hit in hits} == {"checkpoint"}


def help_with(part: RunPart, pipeline: Pipeline) -> int:
    notes = UsedFile(Path(os.devnull))
    return asyncio.run(pipeline.help(LONG, part, key="sha256-test", meter=SpendingMeter(), used=notes))


def test_parts_that_were_done_elsewhere_are_put_together_and_not_done_again() -> None:
    kept = MemoryCheckpoints()

    def pipeline(kept: MemoryCheckpoints) -> Pipeline:
        return Pipeline(index=INDEX, extractor=Counting(), settings=PipelineSettings(chunking=SMALL), checkpoints=kept)

    calls = Counting.calls
    alone = run(LONG, pipeline(MemoryCheckpoints()))
    needed = Counting.calls - calls
    helped = [help_with(RunPart(number, 4), pipeline(kept)) for number in (1, 3)]
    by_helpers = Counting.calls - calls - needed
    assert 0 < by_helpers < needed
    result = run(LONG, pipeline(kept))
    # What each chunk needed was done once, by whom ever.
    assert Counting.calls - calls == 2 * needed
    assert result.graph == alone.graph
    assert result.chunks_from_checkpoints >= by_helpers
    others = [help_with(RunPart(number, 4), pipeline(kept)) for number in (0, 2)]
    assert sum(helped) + sum(others) == result.chunks
    assert Counting.calls - calls == 2 * needed


def test_a_damaged_checkpoint_is_a_miss() -> None:
    class Damaged(MemoryCheckpoints):
        def load(self, stage: Any, digest: str) -> bytes | None:
            return b"\xc1 not a checkpoint"

    pipeline = Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX), checkpoints=Damaged())
    assert run(TEXT, pipeline).graph == run(TEXT).graph


class Counting:
    """The lexicon, counting how often it is asked."""

    calls = 0
    name = "counting"
    version = "1"
    settings: Mapping[str, Any] = {}

    def __init__(self) -> None:
        self._inner = LexiconExtractor(INDEX)

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        Counting.calls += 1
        return await self._inner.extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        Counting.calls += 1
        return await self._inner.extract_relations(chunk, mentions, focus)


class Slow(Counting):
    """Takes its time over some chunks and stages."""

    def __init__(self, *, entities: float = 0.0, relations: float = 0.0, only: str = "") -> None:
        super().__init__()
        self._entities, self._relations, self._only = entities, relations, only

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        if self._only in chunk.text:
            await asyncio.sleep(self._entities)
        return await super().extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        if self._only in chunk.text:
            await asyncio.sleep(self._relations)
        return await super().extract_relations(chunk, mentions, focus)


def run_slow(extractor: Slow, **options: Any) -> tuple[ExtractionResult, list[Event]]:
    bus = Bus("k")
    heard = bus.subscribe()
    pipeline = Pipeline(
        index=INDEX,
        extractor=extractor,
        settings=PipelineSettings(chunking=SMALL),
        checkpoints=options.get("checkpoints"),
    )
    # Threads take real time: without output and with one thread's work the loop's clock only jumps over sleeps.
    result = run_jumping(pipeline.run(TEXT, key="k", bus=bus, formats=()))
    return result, list(heard)


def test_a_soft_limit_warns_and_the_run_completes() -> None:
    result, events = run_slow(Slow(entities=50, only="Globex"))
    assert result.outcome == "COMPLETE"
    warnings = [event for event in events if isinstance(event, TimeoutWarning)]
    assert {(warning.stage, warning.limit, warning.timeout_ms) for warning in warnings} == {
        ("entity_extraction", "soft", 45_000)
    }


def test_a_hard_limit_ends_only_that_chunk() -> None:
    kept = MemoryCheckpoints()
    result, events = run_slow(Slow(entities=70, only="Globex"), checkpoints=kept)
    assert result.outcome == "PARTIAL_EARLY_EXIT"
    assert ("Alice Stone", "bornIn", "Paris") in triples(result.graph)
    assert not any(entity.name == "Globex" for entity in result.graph.entities)
    assert {event.limit for event in events if isinstance(event, TimeoutWarning)} == {"soft", "hard"}
    again, _ = run_slow(Slow(), checkpoints=kept)
    assert again.outcome == "COMPLETE"
    assert any(entity.name == "Globex" for entity in again.graph.entities)


def test_relations_that_never_come_leave_the_entities() -> None:
    result, _ = run_slow(Slow(relations=70))
    assert result.outcome == "PARTIAL_ENTITY_ONLY"
    assert result.graph.entities
    assert not result.graph.relations


def test_output_that_takes_too_long_is_left_out() -> None:
    bus = Bus("k")
    heard = bus.subscribe()
    release = threading.Event()

    def write(*_: object, **__: object) -> None:
        release.wait(30)

    async def go() -> ExtractionResult:
        try:
            return await company_pipeline(INDEX).run(TEXT, key="k", bus=bus)
        finally:
            release.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sameas.extraction.pipeline.stages.write_graph", write)
        result = run_jumping(go())
    assert result.outcome == "PARTIAL_EARLY_EXIT"
    assert result.outputs == {}
    assert result.graph.relations
    warned = [(event.stage, event.limit) for event in heard if isinstance(event, TimeoutWarning)]
    assert warned == [("serialization", "soft"), ("serialization", "hard")]


def test_a_deadline_that_has_passed_leaves_nothing_and_says_so() -> None:
    pipeline = Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX), settings=PipelineSettings(deadline_seconds=0.0))
    assert run(TEXT, pipeline).outcome == "EMPTY"


class Waiting(Counting):
    """Waits two hours for leave to work on chunks about Globex."""

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        if "Globex" in chunk.text:
            with paused():
                await asyncio.sleep(7200)
        return await super().extract_entities(chunk, focus)


def test_a_deadline_ends_what_waits_and_keeps_the_rest() -> None:
    settings = PipelineSettings(chunking=SMALL, deadline_seconds=3600.0)
    pipeline = Pipeline(index=INDEX, extractor=Waiting(), settings=settings)
    result = run_jumping(pipeline.run(TEXT, key="k", formats=()))
    assert {(one.stage, one.code) for one in result.missing} == {("entity_extraction", "deadline")}
    assert result.outcome == "PARTIAL_EARLY_EXIT"
    assert ("Alice Stone", "bornIn", "Paris") in triples(result.graph)
    assert not any(entity.name == "Globex" for entity in result.graph.entities)


class Broken(Counting):
    """Fails for chunks about Globex, in a way that the test chooses."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        if "Globex" in chunk.text:
            raise self._error
        return await super().extract_entities(chunk, focus)


def test_a_chunk_that_an_extractor_gives_up_is_left_out() -> None:
    pipeline = Pipeline(
        index=INDEX,
        extractor=Broken(ChunkFailedError("refused", "the model refused")),
        settings=PipelineSettings(chunking=SMALL),
    )
    events = events_of(TEXT, pipeline)
    reports = [event.error for event in events if isinstance(event, ErrorRecoverable)]
    assert {report.code for report in reports} == {"refused"}
    last = events[-1]
    assert isinstance(last, ExtractionCompleted)
    assert last.summary.outcome == "PARTIAL_EARLY_EXIT"


def test_a_broken_extractor_fails_the_run_and_says_why() -> None:
    bus = Bus("k")
    heard = bus.subscribe()
    pipeline = Pipeline(index=INDEX, extractor=Broken(KeyError("oops")))
    with pytest.raises(KeyError, match="oops"):
        run(TEXT, pipeline, bus=bus)
    last = list(heard)[-1]
    assert last.type == "extraction_failed"
    assert msgspec.to_builtins(last)["error"]["code"] == "internal_error"


def test_a_cancelled_run_ends_at_once_and_says_so() -> None:
    bus = Bus("k")
    heard = bus.subscribe()
    pipeline = Pipeline(index=INDEX, extractor=Slow(entities=40))

    async def go() -> None:
        task = asyncio.create_task(pipeline.run(TEXT, key="k", bus=bus))
        while bus.progress < 0.05:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    run_jumping(go())
    assert list(heard)[-1].type == "extraction_cancelled"


def test_notes_of_the_extractor_reach_the_person() -> None:
    class Noting(Counting):
        async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
            return Found((), ("the ontology gives no cue; add labels",))

    assert run(TEXT, Pipeline(index=INDEX, extractor=Noting())).graph.notes == (
        "the ontology gives no cue; add labels",
    )


def test_a_result_is_short_to_look_at() -> None:
    assert repr(run(TEXT)) == "<ExtractionResult COMPLETE <FoundGraph of 12 entities and 14 relations>>"


def test_the_key_holds_what_changes_the_result_and_not_concurrency() -> None:
    one = company_pipeline(INDEX, concurrency=1).key_params()
    assert one == company_pipeline(INDEX, concurrency=9).key_params()
    other = Pipeline(index=INDEX, extractor=LexiconExtractor(INDEX), settings=PipelineSettings(chunking=SMALL))
    assert other.key_params() != one
    assert "concurrency" not in str(one)
    keys = [
        compute_idempotency_key(TEXT, ontology_id="o", ontology_version="1", extraction_params=params).key
        for params in (one, one, other.key_params())
    ]
    assert keys[0] == keys[1] != keys[2]


def test_an_empty_text_is_a_complete_run_without_anything() -> None:
    for text in ("", "  \r\n "):
        result = run(text)
        assert (result.outcome, result.chunks, result.graph.entities) == ("COMPLETE", 0, ())


def test_text_that_is_anything_is_survived() -> None:
    strange = "\x00\x01 \ud800 <>&'\"`{}[] \u202e abc \ufeff Dr. . . . ((((( 1/0 99999999999999999999999 " * 30
    result = run(strange, formats=FORMATS)
    assert result.outcome == "COMPLETE"


@pytest.mark.parametrize(
    "piece",
    [
        "A.B.C.D. ",
        "Aa Bb ",
        "Acme Ltd founder ",
        "1 May 1999 ",
        '"',
        "出生于",
        "Alice, ",
        "O'",
        "1",
        "(",
        "Alice Stone and ",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = "Acme Ltd was founded by " + piece * (30_000 // len(piece))
    began = time.process_time()
    run(text)
    assert time.process_time() - began < 5


def test_the_run_folder_files_are_the_graph() -> None:
    result = run(f"{TEXT} Nobody knows Zyx Qrst.")
    graph = result.graph
    parts = {write_entities: graph.entities, write_relations: graph.relations, write_rejected: graph.rejected}
    for write, part in parts.items():
        assert part
        for source in (result.found, graph, KnowledgeGraph()):
            file = io.BytesIO()
            write(source, file)
            whole = part if source.entities else ()
            assert file.getvalue() == msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def test_the_outcome_obeys_a_real_ontology() -> None:
    from sameas.ontology.index import OntologyIndex, Verdict
    from sameas.ontology.load import load_ontology

    index = OntologyIndex(load_ontology(shared("data", "text2kgbench", "ontologies", "owl", "ont_1_movie.ttl")))
    lines = shared("data", "text2kgbench", "validation", "ont_1_movie_validation.jsonl").read_text().splitlines()[:300]
    text = "\n\n".join(msgspec.json.decode(line)["sent"] for line in lines)
    graph = asyncio.run(
        Pipeline(index=index, extractor=LexiconExtractor(index)).run(text, key="k", formats=("nquads",))
    ).graph
    types = {entity.id: entity.types for entity in graph.entities}
    assert len(graph.relations) > 50
    for relation in graph.relations:
        values = (relation.value.datatype,) if relation.value else types[relation.object]
        verdicts = {
            index.allows(subject, relation.predicate, value) for subject in types[relation.subject] for value in values
        }
        assert Verdict.OK in verdicts
