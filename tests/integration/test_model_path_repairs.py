"""Replies that needed a repair, or more room, are paid for once like all others."""

import asyncio
import threading
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from sameas.extraction.pipeline.estimate import Estimator
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.prices import Price
from sameas.llm.tokens import counter_for
from sameas.ontology.focus import FocusSettings
from tests.servers.model_script import Call, held, runs_out, says
from tests.servers.model_server import ModelServer

from .model_path import INDEX, LARGER, ORACLE, document, expected, model_path, sentence, stated
from .model_path_process import extract, killed_at_the_end

pytestmark = pytest.mark.anyio

CHUNKS = 6
BAD = {"no JSON": "no JSON", "cut off": runs_out()}
REPAIR = "could not be used"


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    return model_server


def is_repair(call: Call) -> bool:
    return REPAIR in call.user


@pytest.mark.parametrize("name", BAD)
async def test_a_class_that_no_chunk_is_about_causes_no_call_where_replies_were_repaired(
    server: ModelServer, name: str, tmp_path: Path
) -> None:
    def needs_repair(call: Call) -> object:
        return BAD[name] if call.schema_name == "EntityReply" and not is_repair(call) else ORACLE(call)

    server.rescript(needs_repair)
    for index in (INDEX, LARGER):
        async with model_path(server, tmp_path, index=index) as path:
            path.settings = msgspec.structs.replace(path.settings, focus=FocusSettings(whole_up_to=5))
            found = await path.extract(document(CHUNKS))
            assert not found.replayed
            assert found.metadata.outcome == "COMPLETE"
            assert stated(found) == expected(range(CHUNKS))
        assert len(server.calls) == 3 * CHUNKS


@pytest.mark.parametrize("script", ["good", "repaired"])
async def test_a_document_without_a_limit_is_complete_whatever_its_script_and_its_repairs(
    server: ModelServer, script: str, tmp_path: Path
) -> None:
    """Amharic takes more than a token for a character, many times what English prose of that length does."""
    filler = " ".join("".join(chr(0x1200 + (word * 7 + at * 37) % 0x150) for at in range(6)) for word in range(300))
    text = "\n\n".join(f"{filler}, {sentence(number)}" for number in range(CHUNKS))
    counter = counter_for("openai", "gpt-5-mini")

    def spends(call: Call) -> object:
        reply = ORACLE(call) if script == "good" or is_repair(call) else f"no JSON {'at all ' * 100}"
        said = sum(counter.count(str(message["content"])) for message in call.body["messages"])
        return says(reply, usage=(said + 80, counter.count(str(reply))))

    server.rescript(spends)
    async with model_path(server, tmp_path, price=Price(Decimal(1), Decimal(2))) as path:
        path.settings = msgspec.structs.replace(path.settings, chunking=ChunkSettings(window=20, limit=3000))
        found = await path.extract(text)
        assert found.metadata.missing == ()
        assert found.metadata.outcome == "COMPLETE"
        assert stated(found) == expected(range(CHUNKS))
        assert sum(row.tokens for row in found.metadata.usage) > 4096 * CHUNKS


async def test_an_estimate_knows_that_a_repaired_reply_is_remembered(server: ModelServer, tmp_path: Path) -> None:
    def needs_repair(call: Call) -> object:
        return ORACLE(call) if is_repair(call) else "no JSON"

    server.rescript(needs_repair)
    async with model_path(server, tmp_path) as path:
        await path.extract(document(CHUNKS))
        memo = path.extractor._control.memo
        estimate = await Estimator(INDEX, path.extractor, settings=path.settings, memo=memo).estimate(document(CHUNKS))
        assert (estimate.total.calls, estimate.total.known) == (0, 2 * CHUNKS)


async def test_a_reply_whose_repair_failed_too_is_asked_for_from_the_beginning(
    server: ModelServer, tmp_path: Path
) -> None:
    server.rescript(lambda _: "no JSON")
    async with model_path(server, tmp_path) as path:
        assert (await path.extract(document(1))).metadata.outcome == "EMPTY"
        server.rescript(ORACLE)
        before = len(server.calls)
        assert stated(await path.extract(document(1))) == expected(range(1))
        assert [is_repair(call) for call in server.calls[before:]] == [False, False]


def test_a_process_killed_in_its_repairs_does_not_ask_the_first_questions_again(tmp_path: Path) -> None:
    gate = threading.Event()

    def held_repairs(call: Call) -> object:
        if is_repair(call):
            return held(gate, ORACLE(call))
        return "no JSON" if call.schema_name == "EntityReply" else ORACLE(call)

    with ModelServer(held_repairs) as server:
        with killed_at_the_end(server.url, tmp_path, 10):
            server.wait_for(lambda calls: sum(map(is_repair, calls)) == 4, within_seconds=60)
        before, in_flight = len(server.calls), len(server.calls) - server.answered
        gate.set()
        whole = asyncio.run(extract(server.url, str(tmp_path), 10))
        assert whole.metadata.outcome == "COMPLETE"
        assert stated(whole) == expected(range(10))
        asked_before = [call.body["messages"] for call in server.calls[:before]]
        repeated = [call for call in server.calls[before:] if call.body["messages"] in asked_before]
        assert len(repeated) <= in_flight == 4
        assert all(map(is_repair, repeated))
        assert len(server.calls) == 30 + in_flight
