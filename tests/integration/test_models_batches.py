"""Questions handed in together at half the price: nothing is lost, nothing is paid twice, whoever is killed goes on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sameas.cli.extract import run
from sameas.llm.batches import Batches
from sameas.llm.models import Model, ModelError, open_model
from sameas.llm.prices import Price
from tests.servers.batch_server import BatchServer
from tests.servers.model_script import Call, says, status
from tests.unit.extraction.company import ONTOLOGY
from tests.unit.llm.asks import an_ask

from .model_interfaces import CANARY, GOOD, NAMES
from .model_path import ORACLE, document

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]


def good(_: Call) -> Any:
    return says(GOOD, usage=(60, 9))


def opened(server: BatchServer, interface: str, folder: Path) -> Model:
    return open_model(
        f"{interface}:{NAMES[interface]}",
        api_key=CANARY,
        url=server.url if interface == "openai" else server.root,
        price=Price(Decimal(2), Decimal(4)),
        batches=Batches(folder, gather_for=0.2, poll_every=0.05),
    )


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_questions_that_come_together_are_one_batch_at_half_the_price(interface: str, tmp_path: Path) -> None:
    with BatchServer(good, is_quick=False) as server:
        model = opened(server, interface, tmp_path)
        asks = [asyncio.create_task(model.ask(an_ask(f"number {number}"))) for number in range(40)]
        async with asyncio.timeout(30):
            while not list(tmp_path.glob("*.batch.json")):
                await asyncio.sleep(0.01)
            assert not any(ask.done() for ask in asks)
            server.finish()
            replies = await asyncio.gather(*asks)
        assert {reply.text for reply in replies} == {'{"entities":["Acme","Berlin"]}'}
        assert {reply.usage.total_tokens for reply in replies} == {69}
        assert server.handed_in == [40]
        assert model.price == Price(Decimal(1), Decimal(2))
        # What is written down holds no key, and goes when all is well.
        assert CANARY not in "".join(file.read_text() for file in tmp_path.iterdir())
        assert all(CANARY in key for key in server.keys)
        await model.close()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_a_question_that_is_in_a_batch_is_not_handed_in_again(interface: str, tmp_path: Path) -> None:
    with BatchServer(good, is_quick=False) as server:
        first = opened(server, interface, tmp_path)
        asked = asyncio.create_task(first.ask(an_ask("one")))
        async with asyncio.timeout(30):
            while not list(tmp_path.glob("*.batch.json")):
                await asyncio.sleep(0.01)
            # Whoever asked is gone, as after a kill.
            asked.cancel()
            await first.close()
            server.finish()
            second = opened(server, interface, tmp_path)
            replies = await asyncio.gather(second.ask(an_ask("one")), second.ask(an_ask("two")))
            await second.close()
        assert len(replies) == 2
        assert server.handed_in == [1, 1]


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
async def test_a_question_without_an_answer_may_be_asked_again(interface: str, tmp_path: Path) -> None:
    with BatchServer(good) as server:
        server.unanswered = {0}
        model = opened(server, interface, tmp_path)
        async with asyncio.timeout(30):
            with pytest.raises(ModelError) as failed:
                await model.ask(an_ask())
            assert failed.value.code == "overloaded"
            assert (await model.ask(an_ask())).finish == "stop"
        await model.close()
        assert server.handed_in == [1, 1]


@pytest.mark.parametrize("interface", ["openai", "anthropic"])
@pytest.mark.parametrize(("code", "meant"), [(400, "bad_request"), (404, "not_found"), (429, "rate_limited")])
async def test_an_error_in_a_batch_means_what_it_means_elsewhere(
    interface: str, code: int, meant: str, tmp_path: Path
) -> None:
    with BatchServer(lambda _: status(code, message="scripted")) as server:
        model = opened(server, interface, tmp_path)
        async with asyncio.timeout(30):
            with pytest.raises(ModelError) as failed:
                await model.ask(an_ask())
        await model.close()
        assert failed.value.code == meant
        assert "scripted" in str(failed.value)


def test_models_without_batches_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be asked in batches"):
        open_model("ollama:qwen3", batches=Batches(tmp_path))
    with pytest.raises(ValueError, match="must be positive"):
        Batches(tmp_path, poll_every=0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "company.ttl").write_text(ONTOLOGY, "utf-8")
    for number in range(3):
        text = document(4 * number + 4).replace("\n\n", f" {'And so on. ' * 120}\n\n")
        (tmp_path / f"{number}.txt").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMEAS_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_corpus_is_a_batch_for_each_question_whatever_its_size(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    documents = [f"{number}.txt" for number in range(3)]
    with BatchServer(ORACLE) as server:
        model = ("--ontology", "company.ttl", "--model", server.address(), "--batch", "--json")
        assert run([*documents, *model]) == 0
        out, err = capfd.readouterr()
        answers = [json.loads(line) for line in out.splitlines()]
        assert [len(answer["relations"]) for answer in answers] == [4, 8, 12]
        # All questions about names, then all about relations; documents of other lengths may need one more.
        assert len(server.handed_in) <= 4
        assert sum(server.handed_in) == sum(row["calls"] for answer in answers for row in answer["usage"])
        assert "questions were handed in as batch" in err


def test_a_command_that_was_killed_finds_its_batch(folder: Path) -> None:
    command = [sys.executable, "-m", "sameas.cli", "extract", "0.txt", "--ontology", "company.ttl", "--batch"]
    with BatchServer(ORACLE, is_quick=False) as server:
        command += ["--model", server.address()]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = ""
            while "handed in" not in said:
                said += process.stderr.readline()
            os.kill(process.pid, signal.SIGKILL)
        assert len(server.handed_in) == 1
        server.finish()
        again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        # The questions about names were in the first batch; only those about relations were handed in now.
        assert len(server.handed_in) == 2
