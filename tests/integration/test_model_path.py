"""Extraction by a model, end to end over HTTP: what is there is not paid for again, and what is missing is said."""

import asyncio
import re
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from sameas.cli.errors import ExitCode
from sameas.cli.summary import Row, print_spending
from sameas.extraction.events.events import (
    CacheHit,
    ChunkCompleted,
    EntityFound,
    Event,
    ExtractionCompleted,
    ExtractionFailed,
)
from sameas.extraction.extractors.learned import schema_of
from sameas.extraction.extractors.learning.examples import parse_examples
from sameas.extraction.extractors.prompted import ModelExtractor, PromptSettings
from sameas.extraction.graph.grounding import GroundingSettings
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.shared_runs import RunCancelledError
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import ModelError
from sameas.llm.prices import Price
from sameas.ontology.focus import FocusSettings
from sameas.settings import Settings
from tests.servers.model_oracle import Seen, asked
from tests.servers.model_script import Call, held, refuses, replace, says, status
from tests.servers.model_server import ModelServer

from .model_path import INDEX, LARGER, ORACLE, PLENTY, ModelPath, document, expected, model_path, sentence, stated

pytestmark = pytest.mark.anyio

CHUNKS = 6


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    """A model that knows the document."""
    model_server.rescript(ORACLE)
    return model_server


def second_is_down(call: Call) -> object:
    return status(400) if call.model == "second" else ORACLE(call)


async def test_a_document_becomes_a_graph_and_the_second_time_costs_nothing(
    server: ModelServer, tmp_path: Path
) -> None:
    async with model_path(server, tmp_path) as path:
        first = await path.extract(document(CHUNKS))
        assert stated(first) == expected(range(CHUNKS))
        assert first.metadata.status == "complete"
        assert len(server.calls) == 2 * CHUNKS
        again = await path.extract(document(CHUNKS))
        assert again.replayed
        assert again.graph == first.graph
        assert len(server.calls) == 2 * CHUNKS


async def test_metadata_says_what_was_spent_by_stage_and_model(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(lambda call: says(ORACLE(call), usage=(500, 20)))
    async with model_path(server, tmp_path) as path:
        metadata = (await path.extract(document(CHUNKS))).metadata
    rows = {row.stage: row for row in metadata.usage}
    assert set(rows) == {"entity_extraction", "relation_extraction"}
    for row in rows.values():
        assert (row.model, row.calls, row.input_tokens, row.output_tokens) == ("compatible:tiny", 6, 3000, 120)
        assert row.cost is None


async def test_an_edited_paragraph_costs_its_own_calls_only(server: ModelServer, tmp_path: Path) -> None:
    async with model_path(server, tmp_path) as path:
        await path.extract(document(200))
        before = len(server.calls)
        edited = await path.extract(document(200, changed={77: "Person77 Stone works for Zenith Robotics."}))
        assert ("Person77 Stone", "worksFor", "Zenith Robotics") in stated(edited)
        assert len(stated(edited)) == 200
        assert len(server.calls) - before == 2
        assert edited.metadata.chunks_from_checkpoints == 2 * 199


async def test_joint_extraction_gives_the_same_graph_with_half_the_calls(server: ModelServer, tmp_path: Path) -> None:
    async with model_path(server, tmp_path, prompts=PromptSettings(mode="joint")) as path:
        joint = await path.extract(document(CHUNKS))
        assert stated(joint) == expected(range(CHUNKS))
        # Its relations were not asked for by themselves, so there is nothing to keep of that stage.
        with sqlite3.connect(tmp_path / "cache" / "checkpoints" / "_.db") as kept:
            assert kept.execute("SELECT DISTINCT stage FROM checkpoints").fetchall() == [("entity_extraction",)]
        assert len(server.calls) == CHUNKS
        assert {row.stage for row in joint.metadata.usage} == {"entity_extraction"}


async def test_questions_that_wait_ready_are_not_asked_beyond_the_concurrency(
    server: ModelServer, tmp_path: Path
) -> None:
    plenty = CentralRateLimiterService(msgspec.structs.replace(PLENTY, max_concurrent=50))
    server.rescript(lambda call: says(ORACLE(call), latency=0.2))
    async with model_path(server, tmp_path, limiter=plenty) as path:
        assert path.settings.concurrency == PLENTY.max_concurrent
        assert stated(await path.extract(document(8))) == expected(range(8))
    assert server.most_at_once <= PLENTY.max_concurrent


async def test_a_class_that_no_chunk_is_about_causes_no_call(server: ModelServer, tmp_path: Path) -> None:
    async with model_path(server, tmp_path) as path:
        path.settings = msgspec.structs.replace(path.settings, focus=FocusSettings(whole_up_to=5))
        await path.extract(document(CHUNKS))
        calls = len(server.calls)
    async with model_path(server, tmp_path, index=LARGER) as path:
        path.settings = msgspec.structs.replace(path.settings, focus=FocusSettings(whole_up_to=5))
        again = await path.extract(document(CHUNKS))
        assert not again.replayed
        assert stated(again) == expected(range(CHUNKS))
        assert len(server.calls) == calls
        assert sum(row.memo_hits for row in again.metadata.usage) == 2 * CHUNKS
        assert {event.source for event in path.told(CacheHit)} == {"model_call"}


async def test_failed_chunks_are_named_and_only_they_are_asked_again(server: ModelServer, tmp_path: Path) -> None:
    def fails_at_two(call: Call) -> object:
        return "no JSON at all" if sentence(2) in asked(call) else ORACLE(call)

    server.rescript(fails_at_two)
    async with model_path(server, tmp_path) as path:
        part = await path.extract(document(CHUNKS))
        assert part.metadata.status == "partial"
        assert part.metadata.outcome == "PARTIAL_EARLY_EXIT"
        assert stated(part) == expected([0, 1, 3, 4, 5])
        (gap,) = part.metadata.missing
        assert document(CHUNKS)[gap.start : gap.end] == sentence(2)
        assert (gap.stage, gap.code, gap.chunk_index) == ("entity_extraction", "invalid_reply", 2)
        on_disk = RunMetadata.from_json((part.folder / "metadata.json").read_bytes())
        assert on_disk.missing == part.metadata.missing
        server.rescript(ORACLE)
        before = len(server.calls)
        whole = await path.extract(document(CHUNKS))
        assert whole.metadata.status == "complete"
        assert whole.metadata.missing == ()
        assert stated(whole) == expected(range(CHUNKS))
        assert [sentence(2) in asked(call) for call in server.calls[before:]] == [True, True]
        # Both attempts are accounted for.
        assert sum(row.calls for row in whole.metadata.usage) == len(server.calls)


async def test_identical_requests_at_once_share_one_run_and_its_events(server: ModelServer, tmp_path: Path) -> None:
    async with model_path(server, tmp_path) as path:
        heard: list[list[object]] = [[], [], []]
        results = await asyncio.gather(*(path.extract(document(CHUNKS), on_event=events.append) for events in heard))
        assert len(server.calls) == 2 * CHUNKS
        assert len({result.metadata.digest() for result in results}) == 1
        for events in heard:
            found = [event for event in events if isinstance(event, EntityFound)]
            assert len(found) == 2 * CHUNKS
            assert any(isinstance(event, ExtractionCompleted) for event in events)


async def test_identical_requests_at_once_share_a_run_that_ends_in_part(
    server: ModelServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Long enough for those who wait to look at the journal.
    fails = replace(status(500), latency=0.1)
    server.rescript(lambda call: fails if sentence(2) in asked(call) else ORACLE(call))
    async with model_path(server, tmp_path) as path:
        heard: list[list[object]] = [[], [], []]
        results = await asyncio.gather(*(path.extract(document(CHUNKS), on_event=events.append) for events in heard))
        assert {result.metadata.outcome for result in results} == {"PARTIAL_EARLY_EXIT"}
        assert {result.metadata.attempt for result in results} == {1}
        assert sorted(result.shared for result in results) == [False, True, True]
        assert all(stated(result) == expected({*range(CHUNKS)} - {2}) for result in results)
        # One try and two more, not as many for each caller.
        assert sum(sentence(2) in asked(call) for call in server.calls) == 3
        for events in heard:
            assert sum(isinstance(event, ExtractionCompleted) for event in events) == 1
        # Only one of them paid.
        print_spending([Row("a.txt", ExitCode.PARTIAL, 1.0, result) for result in results], settings=Settings())
        lines = [line for line in capsys.readouterr().err.splitlines() if "entity extraction, " in line]
        assert sorted("not spent again" in line for line in lines) == [False, True, True]
        # The next request is no waiting one: it does what is missing.
        server.rescript(ORACLE)
        assert stated(await path.extract(document(CHUNKS))) == expected(range(CHUNKS))


async def test_a_run_that_its_own_limit_ended_is_gone_on_with_by_who_waited(
    server: ModelServer, tmp_path: Path
) -> None:
    gate = threading.Event()
    server.rescript(lambda call: held(gate, ORACLE(call)))
    async with (
        model_path(server, tmp_path, control={"max_tokens": 3000}) as poor,
        model_path(server, tmp_path) as rich,
    ):
        first = asyncio.create_task(poor.extract(document(CHUNKS)))
        await asyncio.to_thread(server.wait_for_calls, 1)
        second = asyncio.create_task(rich.extract(document(CHUNKS)))
        await asyncio.sleep(0.1)
        gate.set()
        assert {one.code for one in (await first).metadata.missing} == {"budget_spent"}
        whole = await second
        assert not whole.shared
        assert stated(whole) == expected(range(CHUNKS))


async def test_a_client_that_leaves_does_not_stop_the_others(server: ModelServer, tmp_path: Path) -> None:
    gate = threading.Event()
    server.rescript(lambda call: held(gate, ORACLE(call)))
    async with model_path(server, tmp_path) as path:
        told: list[Event] = []
        first = asyncio.create_task(path.extract(document(CHUNKS), on_event=told.append))
        await asyncio.to_thread(server.wait_for_calls, 1)
        second = asyncio.create_task(path.extract(document(CHUNKS)))
        await asyncio.sleep(0.1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        heard = len(told)
        gate.set()
        result = await second
        assert stated(result) == expected(range(CHUNKS))
        # Who left is told no more.
        assert len(told) == heard > 0
        # Nothing was begun anew: the run of the one who left went on.
        assert result.metadata.attempt == 1
        assert len(server.calls) == 2 * CHUNKS


async def test_cancelling_ends_the_run_for_all_and_keeps_what_is_there(server: ModelServer, tmp_path: Path) -> None:
    gate = threading.Event()

    def stops_at_three(call: Call) -> object:
        return held(gate, ORACLE(call)) if sentence(3) in asked(call) else ORACLE(call)

    def kept(path: ModelPath) -> set[int]:
        done = path.told(ChunkCompleted)
        return {event.chunk_index for event in done if event.stage == "entity_extraction"}

    server.rescript(stops_at_three)
    async with model_path(server, tmp_path) as path:
        key = path.service.key_of(
            document(CHUNKS), ontology=INDEX.ontology, extractor=path.extractor, settings=path.settings
        ).key
        both = [asyncio.create_task(path.extract(document(CHUNKS))) for _ in range(2)]
        async with asyncio.timeout(30):
            # A chunk is completed after its checkpoint is written.
            while len(kept(path)) < CHUNKS - 1:
                await asyncio.sleep(0.01)
        assert path.service.cancel(key)
        for one in await asyncio.gather(*both, return_exceptions=True):
            assert isinstance(one, RunCancelledError)
        cancelled = path.service.runs.find(key).metadata
        assert cancelled.outcome == "CANCELLED"
        assert sum(row.calls for row in cancelled.usage) == CHUNKS
        gate.set()
        before = len(server.calls)
        whole = await path.extract(document(CHUNKS))
        assert stated(whole) == expected(range(CHUNKS))
        # The five chunks that were answered are not asked for their entities again.
        assert len(server.calls) - before == 1 + CHUNKS


async def test_samples_that_agree_give_confidence_and_lone_ones_are_left_out(
    server: ModelServer, tmp_path: Path
) -> None:
    def disagrees(call: Call) -> object:
        reply = ORACLE(call)
        if call.schema_name == "EntityReply" and call.body["seed"] == 2:
            return {"entities": [{"name": "works", "type": 1}], "values": []}
        return reply

    server.rescript(disagrees)
    async with model_path(server, tmp_path, prompts=PromptSettings(samples=3)) as path:
        found = await path.extract(document(1))
        assert {entity.name for entity in found.graph.entities} == {"Person0 Stone", "Acme0 Robotics"}
        assert {(entity.confidence, entity.confidence_from) for entity in found.graph.entities} == {(0.67, "agreement")}
        assert [(one.confidence, one.confidence_from) for one in found.graph.relations] == [(1.0, "agreement")]
        assert len(server.calls) == 6


async def test_a_sample_that_is_refused_does_not_lose_the_chunk(server: ModelServer, tmp_path: Path) -> None:
    def one_of_five_refuses(call: Call) -> object:
        return refuses() if call.body["seed"] == 2 else ORACLE(call)

    server.rescript(one_of_five_refuses)
    async with model_path(server, tmp_path, prompts=PromptSettings(samples=5)) as path:
        found = await path.extract(document(2))
        assert found.metadata.outcome == "COMPLETE"
        assert stated(found) == expected(range(2))
        assert {(one.confidence, one.confidence_from) for one in found.graph.entities} == {(1.0, "agreement")}


async def test_a_chunk_that_most_samples_are_refused_for_is_missing(server: ModelServer, tmp_path: Path) -> None:
    def most_refuse(call: Call) -> object:
        return refuses() if call.body["seed"] in (1, 2, 3) else ORACLE(call)

    server.rescript(most_refuse)
    async with model_path(server, tmp_path, prompts=PromptSettings(samples=5)) as path:
        found = await path.extract(document(1))
        assert [gap.code for gap in found.metadata.missing] == ["model_refused"]


@pytest.mark.parametrize(("said", "meant"), [(95, 0.95), ("80", 0.8), (0.95, 0.95), (1, 1.0), (0, 0.0)])
async def test_a_model_may_say_how_sure_it_is_in_percent_or_as_a_share(
    server: ModelServer, said: object, meant: float, tmp_path: Path
) -> None:
    def is_sure(call: Call) -> object:
        reply = ORACLE(call)
        for one in (*reply.get("entities", ()), *reply.get("relations", ())):
            one["confidence"] = said
        return reply

    server.rescript(is_sure)
    async with model_path(server, tmp_path, prompts=PromptSettings(ask_confidence=True)) as path:
        found = await path.extract(document(1))
        assert found.metadata.outcome == "COMPLETE"
        told: list[Any] = [*found.graph.entities, *found.graph.relations]
        assert {(one.confidence, one.confidence_from) for one in told} == {(meant, "model")}
        assert len(server.calls) == 2


async def test_a_cost_limit_holds_for_a_document_over_all_attempts(server: ModelServer, tmp_path: Path) -> None:
    price, limit = Price(input=Decimal(1), output=Decimal(10)), Decimal("0.03")
    server.rescript(lambda call: says(ORACLE(call), usage=(500, 20)))
    for attempt in (1, 2, 3):
        async with model_path(server, tmp_path, control={"max_cost": limit}, price=price) as path:
            part = await path.extract(document(60))
            assert part.metadata.attempt == attempt
            assert {gap.code for gap in part.metadata.missing} == {"budget_spent"}
            assert sum(row.cost or 0 for row in part.metadata.usage) <= limit
    async with model_path(server, tmp_path, control={"max_cost": 10 * limit}, price=price) as path:
        whole = await path.extract(document(60))
        assert stated(whole) == expected(range(60))
        assert sum(row.calls for row in whole.metadata.usage) == len(server.calls) == 120


async def test_a_run_that_failed_says_why_in_a_code_that_stays(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(status(401))
    async with model_path(server, tmp_path) as path:
        with pytest.raises(ModelError):
            await path.extract(document(1))
        (failed,) = path.told(ExtractionFailed)
        assert failed.error.code == "auth"


async def test_a_second_model_marks_what_it_does_not_find_in_the_text(server: ModelServer, tmp_path: Path) -> None:
    def doubts(call: Call) -> object:
        return {"supported": []} if call.model == "second" else ORACLE(call)

    server.rescript(doubts)
    async with model_path(server, tmp_path, second=True) as path:
        found = await path.extract(document(2))
        assert [one.status for one in found.graph.relations] == ["unverified", "unverified"]
        assert {(row.stage, row.model, row.calls) for row in found.metadata.usage} >= {
            ("grounding", "compatible:second", 2)
        }


async def test_a_second_model_that_fails_leaves_the_relations_unverified_and_the_next_request_asks_it_again(
    server: ModelServer,
    tmp_path: Path,
) -> None:
    server.rescript(second_is_down)
    async with model_path(server, tmp_path, second=True) as path:
        part = await path.extract(document(3))
        assert stated(part) == expected(range(3))
        assert [one.status for one in part.graph.relations] == ["unverified"] * 3
        assert [(gap.stage, gap.code) for gap in part.metadata.missing] == [("grounding", "bad_request")] * 3
        assert part.metadata.outcome == "PARTIAL_EARLY_EXIT"
        server.rescript(ORACLE)
        before = len(server.calls)
        whole = await path.extract(document(3))
        assert whole.metadata.outcome == "COMPLETE"
        assert [one.status for one in whole.graph.relations] == ["grounded"] * 3
        assert {call.model for call in server.calls[before:]} == {"second"}


async def test_what_a_failing_second_model_did_not_check_is_left_out_where_only_the_verified_is_wanted(
    server: ModelServer,
    tmp_path: Path,
) -> None:
    server.rescript(second_is_down)
    async with model_path(server, tmp_path, second=True) as path:
        path.settings = msgspec.structs.replace(path.settings, grounding=GroundingSettings("drop"))
        part = await path.extract(document(1))
        assert part.graph.relations == ()
        assert [(one.code, one.stage) for one in part.graph.rejected] == [("not_checked", "grounding")]
        assert [gap.stage for gap in part.metadata.missing] == ["grounding"]


async def test_a_key_that_is_refused_ends_the_run_at_once(server: ModelServer, tmp_path: Path) -> None:
    server.rescript(status(401))
    async with model_path(server, tmp_path) as path:
        with pytest.raises(Exception, match="401"):
            await path.extract(document(CHUNKS))
        assert len(server.calls) <= 4


def _show_one_of(path: ModelPath, lines: list[str]) -> None:
    """Have each chunk's question follow the one example that is most like it."""
    path.extractor = ModelExtractor(
        INDEX,
        path.model,
        control=path.extractor._control,
        settings=PromptSettings(examples=1),
        examples=parse_examples(lines, schema_of(INDEX)),
    )


async def test_examples_are_shown_by_likeness_and_never_found_in_the_result(
    server: ModelServer, tmp_path: Path
) -> None:
    lines = [
        '{"text": "Zoe Stone works for Hooli Robotics.", "triples": [["Zoe Stone", "works for", "Hooli Robotics"]]}',
        '{"text": "Rome is the capital of Italy.", "triples": [["Italy", "capital", "Rome"]]}',
    ]

    def echoes(call: Call) -> object:
        if call.schema_name == "EntityReply":
            person = 6 if "person" in call.system else 1
            return {
                "entities": [{"name": "Zoe Stone", "type": person}, {"name": "Hooli Robotics", "type": 2}],
                "values": [],
            }
        return {"relations": [{"subject": 1, "property": 9, "object": 2}]}

    server.rescript(echoes)
    async with model_path(server, tmp_path) as path:
        _show_one_of(path, lines)
        found = await path.extract(document(1))
        _, example, reply, question = (str(one["content"]) for one in server.calls[0].body["messages"])
        assert "Zoe Stone works for Hooli Robotics." in example
        assert '"name":"Zoe Stone"' in reply
        assert "Zoe Stone" not in question
        assert not any("Rome" in part for part in (example, reply, question))
        assert found.graph.entities == ()
        assert {one.code for one in found.graph.rejected} == {"not_in_text"}


async def test_each_chunk_is_shown_the_example_that_is_most_like_it(server: ModelServer, tmp_path: Path) -> None:
    work = "Zoe Stone works for Hooli Robotics."
    capital = "Rome is the capital of Italy."
    lines = [
        f'{{"text": "{work}", "triples": [["Zoe Stone", "works for", "Hooli Robotics"]]}}',
        f'{{"text": "{capital}", "triples": [["Italy", "capital", "Rome"]]}}',
    ]
    other = "Paris, they say, is the capital of France."
    async with model_path(server, tmp_path) as path:
        _show_one_of(path, lines)
        found = await path.extract(document(2, changed={1: other}))
    assert found.metadata.chunks == 2
    shown = {asked(call).split("\n")[2]: call.said[0] for call in server.calls if call.schema_name == "EntityReply"}
    assert set(shown) == {sentence(0), other}
    assert work in shown[sentence(0)]
    assert capital not in shown[sentence(0)]
    assert capital in shown[other]
    assert work not in shown[other]


@pytest.mark.parametrize("mode", ["two-stage", "joint"])
async def test_the_oracle_needs_nothing_but_the_prompt(
    server: ModelServer, tmp_path: Path, mode: Literal["two-stage", "joint"]
) -> None:
    """Were a class, a property or the text missing from a prompt, the tests above would see it."""
    async with model_path(server, tmp_path, prompts=PromptSettings(mode=mode)) as path:
        assert stated(await path.extract(document(1))) == expected([0])
    calls = server.calls
    for call in calls:
        asks_for_facts = call.schema_name != "EntityReply"
        told = ORACLE(call)
        assert told["relations" if asks_for_facts else "entities"]
        without = re.sub(r"^\d+ works for\(.*\n?", "", call.system, flags=re.MULTILINE)
        assert without != call.system
        assert not any(ORACLE.answer(call.schema_name, Seen.of(without, asked(call))).values())
        if "entities" in told:
            without = re.sub(r"^\d+ (?:person|organization)\b.*\n?", "", call.system, flags=re.MULTILINE)
            assert ORACLE.answer(call.schema_name, Seen.of(without, asked(call)))["entities"] == []
        elsewhere = asked(call).replace(sentence(0), "Nothing is said.")
        assert not any(ORACLE.answer(call.schema_name, Seen.of(call.system, elsewhere)).values())
