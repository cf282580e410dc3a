"""Questions from the command line, and in plain words with a model on loopback."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sameas.collections.registry import Collections, local_caller, open_tables
from sameas.ontology.load import load_ontology
from tests.servers.model_server import ModelServer
from tests.unit.questions.conftest import BASE, EXAMPLE, Writer

FACT = "SELECT ?company ?city { ?company :headquarters ?city } LIMIT 50"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    collections = Collections(open_tables(f"sqlite:///{tmp_path / 'collections.db'}"))
    ontology = load_ontology(EXAMPLE / "company.ttl")
    writer = Writer(collections.create("press", ontology=ontology, caller=local_caller(), base=BASE))
    writer.put(
        "one.txt",
        ("Nordlicht Speicher/Company", "acquired", "Helvetia Zellen/Company"),
        ("Helvetia Zellen/Company", "headquarters", "Zug/City"),
    )
    writer.put("two.txt", ("Weserstahl AG/Company", "headquarters", "Bremen/City"))
    collections.close()
    return tmp_path


def sameas(home: Path, *arguments: str, code: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "sameas", *arguments],
        env={"SAMEAS_HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error::RuntimeWarning"},
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_a_query_prints_a_table_csv_json_or_turtle(home: Path) -> None:
    asked = "SELECT ?name ?city { ?c :headquarters ?city ; rdfs:label ?name } ORDER BY ?name"
    table = sameas(home, "query", "press", asked).stdout.splitlines()
    assert table[0].split() == ["name", "city"]
    assert table[1].startswith("Helvetia Zellen  this:zug-")
    rows = list(csv.DictReader(io.StringIO(sameas(home, "query", "press", asked, "--format", "csv").stdout)))
    assert [row["name"] for row in rows] == ["Helvetia Zellen", "Weserstahl AG"]
    assert json.loads(sameas(home, "query", "press", "-", "-f", "json", given=asked).stdout)["head"]["vars"]
    assert "headquarters" in sameas(home, "query", "press", "CONSTRUCT WHERE { ?s :headquarters ?o }").stdout
    assert sameas(home, "query", "press", "ASK { ?s :acquired ?o }").stdout == "yes\n"


def test_what_a_query_may_not_do_is_told(home: Path) -> None:
    assert "only reads" in sameas(home, "query", "press", "DELETE WHERE { ?s ?p ?o }", code=4).stderr
    assert (
        "more than 1 rows" in sameas(home, "query", "press", "SELECT * { ?s ?p ?o }", "--max-rows", "1", code=4).stderr
    )
    assert "no collection" in sameas(home, "query", "nowhere", "ASK {}", code=4).stderr


def test_things_are_found_shown_and_connected(home: Path) -> None:
    assert "Helvetia Zellen" in sameas(home, "find", "press", "helvetia zelen").stdout
    page = sameas(home, "entity", "press", "Helvetia Zellen").stdout
    assert "Helvetia Zellen - headquarters - Zug" in page
    assert '"Helvetia Zellen headquarters Zug." (one.txt' in page
    steps = sameas(home, "path", "press", "Nordlicht Speicher", "Zug").stdout.splitlines()
    assert [line for line in steps if not line.startswith(" ")] == [
        "Nordlicht Speicher - acquired - Helvetia Zellen",
        "Helvetia Zellen - headquarters - Zug",
    ]
    sameas(home, "path", "press", "Zug", "Bremen", code=1)


def ask(home: Path, server: ModelServer, question: str, *more: str, code: int = 0) -> Any:
    done = sameas(home, "ask", "press", question, "--model", server.address("tiny"), "--json", *more, code=code)
    return json.loads(done.stdout) if done.stdout else done.stderr


def test_an_answer_cites_the_sentences_it_rests_on_and_is_paid_for_once(home: Path) -> None:
    with ModelServer({"sparql": FACT}) as server:
        first = ask(home, server, "Where are the companies based?")
        assert first["isSupported"]
        assert sorted(first["rows"]) == [["Helvetia Zellen", "Zug"], ["Weserstahl AG", "Bremen"]]
        cited = {(one["text"], one["documentName"]) for one in first["citations"]}
        assert cited == {
            ("Helvetia Zellen headquarters Zug.", "one.txt"),
            ("Weserstahl AG headquarters Bremen.", "two.txt"),
        }
        assert "Weserstahl AG, Bremen [" in first["text"]
        assert "Weserstahl AG headquarters Bremen" in {one["fact"] for one in first["citations"]}
        assert ask(home, server, "Where are the companies based?") == first
        (call,) = server.calls
    (line,) = [line for line in call.system.splitlines() if line.startswith(':headquarters "headquarters"')]
    assert line.endswith("(:Organization -> :Place)")


def test_what_was_not_selected_is_cited_too(home: Path) -> None:
    between = "SELECT ?city { ?a rdfs:label 'Nordlicht Speicher' ; :acquired ?b . ?b :headquarters ?city }"
    with ModelServer({"sparql": between}) as server:
        answer = ask(home, server, "In which city is what Nordlicht Speicher bought?")
    assert answer["rows"] == [["Zug"]]
    assert {one["text"] for one in answer["citations"]} == {
        "Nordlicht Speicher acquired Helvetia Zellen.",
        "Helvetia Zellen headquarters Zug.",
    }


@pytest.mark.parametrize("written", ["", "SELECT ?x { ?x :spouse ?y }", "ASK { ?x :spouse ?y }"])
def test_without_support_the_answer_says_so(home: Path, written: str) -> None:
    with ModelServer({"sparql": written}) as server:
        answer = ask(home, server, "Who is married?", code=3)
    assert not answer["isSupported"]
    assert answer["rows"] == []
    assert answer["text"] in ("The collection has nothing that answers this.", "No document says so.")


@pytest.mark.parametrize(
    "made_up",
    [
        "SELECT ('Berlin' AS ?city) { ?c a :Company }",
        "SELECT (42 AS ?n) { ?c a :Company }",
        "SELECT ?city { ?c a :Company BIND('Berlin' AS ?city) }",
        "SELECT ?city { ?c a :Company BIND(CONCAT('Ber', 'lin') AS ?city) }",
        "SELECT ?city { VALUES ?city { 'Berlin' } ?c a :Company }",
        "SELECT ?city { ?c a :Company { SELECT (:Berlin AS ?city) {} } }",
    ],
)
def test_what_the_model_says_itself_is_no_answer(home: Path, made_up: str) -> None:
    with ModelServer([{"sparql": made_up}, {"sparql": FACT}]) as server:
        answer = ask(home, server, "Where is the company based?")
        assert "of your own" in server.calls[1].user
    assert "Berlin" not in answer["text"]
    assert sorted(answer["rows"]) == [["Helvetia Zellen", "Zug"], ["Weserstahl AG", "Bremen"]]


def test_what_is_counted_or_computed_from_the_graph_is_an_answer(home: Path) -> None:
    counted = "SELECT (COUNT(DISTINCT ?c) AS ?n) (GROUP_CONCAT(?l; SEPARATOR=', ') AS ?all) "
    counted += "{ ?c :headquarters ?city . ?city rdfs:label ?l FILTER(?l != 'Berlin') }"
    with ModelServer({"sparql": counted}) as server:
        answer = ask(home, server, "How many are based somewhere?")
    assert answer["rows"][0][0] == "2"
    assert len(answer["citations"]) == 2


def test_a_query_that_cannot_be_run_is_written_again_once(home: Path) -> None:
    with ModelServer([{"sparql": "SELECT nonsense"}, {"sparql": FACT}]) as server:
        assert ask(home, server, "Where?")["isSupported"]
        assert "cannot be used" in server.calls[1].user
    with ModelServer({"sparql": "DELETE WHERE { ?s ?p ?o }"}) as server:
        assert "only reads" in ask(home, server, "Forget everything", code=4)
        assert len(server.calls) == 2
    assert sameas(home, "query", "press", "ASK { ?s :acquired ?o }").stdout == "yes\n"


def test_a_question_stays_within_its_budget(home: Path) -> None:
    with ModelServer({"sparql": FACT}) as server:
        refused = ask(home, server, "Where are they?", "--max-tokens", "50", code=4)
        assert "budget" in refused.lower()
        assert not server.calls
