"""The command line as people and scripts meet it: real processes, their output and their exit codes."""

import csv
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

import pyoxigraph
import pytest

from sameas.cli.extract_options import ENDINGS
from sameas.connections import open_store
from sameas.identity.ids import uuid7
from sameas.once.call_builder import identity_of
from sameas.once.record import About, ClaimRequest, Lease, Outcome
from tests.servers.full_disk import small_disk
from tests.shared_data import shared

EXAMPLE = Path(str(files("sameas.example").joinpath("company.ttl"))).parent
TEXT = "Falke Uhren GmbH was founded by Berta Kunz. Falke Uhren GmbH is headquartered in Passau."
OTHER = "Weser Glas GmbH was founded by Otto Brandt in 1950."
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SAMEAS_")}
CLEAN["SAMEAS_EXTRACTOR"] = "lexicon"
COMMAND = [sys.executable, "-m", "sameas.cli"]


@pytest.fixture
def folder(tmp_path):
    shutil.copy(EXAMPLE / "company.ttl", tmp_path)
    (tmp_path / "a.txt").write_text(TEXT, "utf-8")
    (tmp_path / "b.txt").write_text(OTHER, "utf-8")
    return tmp_path


@pytest.fixture
def sameas(folder):
    def run(*arguments, code=0, stdin=None, **settings):
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=folder,
            env={**CLEAN, **settings},
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def extract(sameas):
    return lambda *arguments, **options: sameas("extract", *arguments, "--ontology", "company.ttl", **options)


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """A few examples: learning takes as long as there are sentences."""
    path = tmp_path_factory.mktemp("examples") / "few.jsonl"
    lines = (EXAMPLE / "examples.jsonl").read_text("utf-8").splitlines()
    path.write_text("\n".join(lines[:8]) + "\n", "utf-8")
    return path


def parse(turtle):
    return list(pyoxigraph.parse(turtle.encode(), format=pyoxigraph.RdfFormat.TURTLE))


def long_text(characters=2_000_000):
    line = "Falke Uhren GmbH was founded by Berta Kunz. It is headquartered in Passau.\n\n"
    return line * (characters // len(line))


# extract


def test_the_graph_goes_to_stdout_and_the_summary_to_stderr(extract):
    done = extract("a.txt")
    assert any("#founder" in str(triple.predicate) for triple in parse(done.stdout))
    assert "a.txt: entity extraction: " in done.stderr
    assert done.stderr.splitlines()[-2].split() == [
        *("document", "status", "entities", "relations", "rejected", "chunks", "seconds", "key")
    ]
    assert done.stderr.splitlines()[-1].split()[:4] == ["a.txt", "complete", "3", "2"]


def test_the_second_run_is_a_replay_of_the_same_bytes(extract, folder):
    first, second = extract("a.txt"), extract("a.txt")
    assert first.stdout == second.stdout
    assert "replayed" in second.stderr
    assert "entity extraction" not in second.stderr
    assert len([*(folder / "runs").glob("sha256-*")]) == 1


def test_the_same_text_from_anywhere_is_the_same_work(extract, folder):
    extract("a.txt")
    assert "replayed" in extract("-", stdin=TEXT).stderr
    assert "replayed" in extract(TEXT).stderr
    (folder / "copy.txt").write_text(TEXT.replace(". ", ". ") + "  \r\n", "utf-8")
    assert "replayed" in extract("copy.txt").stderr


def test_several_files_and_patterns_go_to_a_folder(extract, folder):
    done = extract("*.txt", "--out", "graphs")
    assert done.stdout == ""
    assert sorted(path.name for path in (folder / "graphs").iterdir()) == ["a.ttl", "b.ttl"]
    parse((folder / "graphs" / "b.ttl").read_text("utf-8"))


def test_one_document_goes_to_a_folder_that_is_written_as_one(extract, folder):
    extract("a.txt", "--out", "graphs/", "--format", "jsonld")
    assert [path.name for path in (folder / "graphs").iterdir()] == ["a.jsonld"]
    (folder / "plain").touch()
    assert "no folder" in extract("a.txt", "--out", "plain/", code=2).stderr


def test_several_graphs_on_one_stream_are_one_turtle(extract):
    assert len(parse(extract("a.txt", "b.txt").stdout)) > len(parse(extract("a.txt").stdout))


def test_several_graphs_that_do_not_fit_on_a_stream_are_refused(extract):
    assert "--out FOLDER" in extract("*.txt", "--format", "csv", code=2).stderr


def test_a_file_is_written_as_it_is_called_unless_a_format_is_asked_for(extract, folder):
    for ending, name in ENDINGS.items():
        extract("a.txt", "--out", f"called{ending}", "--quiet")
        extract("a.txt", "--out", "asked.txt", "--format", name, "--quiet")
        assert (folder / f"called{ending}").read_bytes() == (folder / "asked.txt").read_bytes(), ending
    extract("a.txt", "--out", "odd.JSONLD", "--quiet")
    assert (folder / "odd.JSONLD").read_bytes() == (folder / "called.jsonld").read_bytes()
    extract("a.txt", "--out", "plain.txt", "--quiet")
    assert (folder / "plain.txt").read_bytes() == (folder / "called.ttl").read_bytes()
    extract("a.txt", "--out", "other.jsonld", "--format", "turtle", "--quiet")
    assert (folder / "other.jsonld").read_bytes() == (folder / "called.ttl").read_bytes()


def test_a_name_that_no_format_fits_is_refused_before_any_work(extract, folder):
    refused = extract("a.txt", "--out", "graph.rdf", code=2).stderr
    assert "graph.rdf" in refused
    assert "--format" in refused
    assert "one file" in extract("a.txt", "b.txt", "--out", "graphs.jsonld", code=2).stderr
    assert not list(folder.glob("graph*"))
    assert not (folder / "runs").exists()
    extract("a.txt", "--out", "graph.rdf", "--format", "turtle", "--quiet")
    assert parse((folder / "graph.rdf").read_text("utf-8"))


def test_a_run_is_shown_in_the_format_of_its_file(extract, sameas, folder):
    key = extract("a.txt", "--out", "first.graphml").stderr.splitlines()[-1].split()[-1]
    sameas("runs", "show", key, "--out", "shown.nq")
    assert list(pyoxigraph.parse((folder / "shown.nq").read_bytes(), format=pyoxigraph.RdfFormat.N_QUADS))
    assert "graph.xlsx" in sameas("runs", "show", key, "--out", "graph.xlsx", code=2).stderr


def test_one_bad_document_does_not_cost_the_others(extract, folder):
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xfa\xff\xff")
    done = extract("a.txt", "bad.txt", "b.txt", "--out", "graphs", code=4)
    assert sorted(path.name for path in (folder / "graphs").iterdir()) == ["a.ttl", "b.ttl"]
    assert "bad.txt: sameas: " in done.stderr
    assert "failed" in done.stderr


def test_every_format_is_what_it_says(extract):
    written = {
        name: extract("a.txt", "--format", name, "--quiet").stdout
        for name in ("turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json")
    }
    assert parse(written["turtle"])
    json.loads(written["jsonld"])
    assert list(pyoxigraph.parse(written["nquads"].encode(), format=pyoxigraph.RdfFormat.N_QUADS))
    assert ET.fromstring(written["graphml"]).tag.endswith("graphml")
    assert len([*csv.reader(io.StringIO(written["csv"]))]) >= 2
    assert "MERGE" in written["cypher"]
    assert len(json.loads(written["json"])["entities"]) == 3


def test_json_is_one_object_for_each_document(extract):
    for replay in (False, True):
        lines = extract("a.txt", "b.txt", "--json").stdout.splitlines()
        first, second = map(json.loads, lines)
        assert (first["document"], second["document"]) == ("a.txt", "b.txt")
        assert first["status"] == "complete"
        assert first["cacheHit"] is replay
        assert first["idempotencyKey"].startswith("sha256-")
        assert {entity["name"] for entity in first["entities"]} == {"Falke Uhren GmbH", "Berta Kunz", "Passau"}


def test_places_of_json_lead_back_to_the_file(extract, folder):
    (folder / "c.txt").write_bytes(f"\ufeffA report.  \r\n\r\n{TEXT}\r\n".encode())
    found = json.loads(extract("c.txt", "--json").stdout)
    text = (folder / "c.txt").read_bytes().decode("utf-8-sig")
    names = {text[start:end] for _, _, _, start, end in found["places"]["spans"]}
    assert {"Falke Uhren GmbH", "Berta Kunz", "Passau"} <= names


def test_one_missing_file_does_not_cost_the_others(extract, folder):
    done = extract("a.txt", "missing.txt", "--out", "graphs", code=4)
    assert "'missing.txt' is not a file" in done.stderr
    assert [path.name for path in (folder / "graphs").iterdir()] == ["a.ttl"]


SHAPES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
[] a sh:NodeShape ; sh:targetClass <CLASS> ;
    sh:property [ sh:path <urn:x:motto> ; sh:minCount 1 ; sh:message "needs a motto" ] .
"""


def test_shapes_decide_by_exit_code_and_say_what_they_object_to(extract, sameas, folder):
    assert "shapes" not in json.loads(extract("a.txt", "--json").stdout)
    assert json.loads(extract("a.txt", "--json", "--shapes", "derived").stdout)["shapes"]["conforms"] is True
    organization = json.loads(extract("a.txt", "--json").stdout)["entities"][0]["types"][0]
    (folder / "shapes.ttl").write_text(SHAPES.replace("CLASS", organization), "utf-8")
    done = extract("a.txt", "--shapes", "shapes.ttl", "--out", "a.ttl", code=6)
    assert "needs a motto" in done.stderr
    assert (
        "does not conform"
        in sameas("ontology", "validate", "a.ttl", "--ontology", "company.ttl", "--shapes", "shapes.ttl", code=6).stderr
    )
    assert "conforms" in sameas("ontology", "validate", "a.ttl", "--ontology", "company.ttl").stderr
    extract("a.txt", "--shapes", "missing.ttl", code=4)


def test_quiet_says_nothing(extract):
    assert extract("a.txt", "--quiet").stderr == ""


def test_a_terminal_gets_a_bar_and_a_drawn_table(folder):
    (folder / "long.txt").write_text(long_text(400_000), "utf-8")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "extract", "long.txt", "--ontology", "company.ttl", "--out", "o.ttl"],
        cwd=folder,
        env={**CLEAN, "TERM": "xterm-256color", "COLUMNS": "140"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 60)
        try:
            data = os.read(ours, 65536) if ready else b""
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(ours)
    assert process.wait(60) == 0
    shown = seen.decode("utf-8", "replace")
    assert "relations" in shown
    assert "━" in shown
    assert "complete" in shown


def test_the_base_of_iris_can_be_set_and_is_checked(extract):
    assert "<https://data.example/" in extract("a.txt", "--base", "https://data.example/").stdout
    assert "absolute IRI" in extract("a.txt", "--base", "not an iri", code=2).stderr


def test_a_deadline_gives_what_is_there_and_the_next_run_the_rest(extract, folder):
    (folder / "long.txt").write_text(long_text(300_000), "utf-8")
    assert "partial" in extract("long.txt", "--deadline", "0.001", "--out", "o.ttl", code=3).stderr
    assert "complete" in extract("long.txt", "--out", "o.ttl").stderr


def test_an_edit_redoes_only_what_it_touches(extract, folder):
    story = (EXAMPLE / "story.txt").read_text("utf-8")
    (folder / "story.txt").write_text(story, "utf-8")
    extract("story.txt")
    (folder / "story.txt").write_text(story.replace("640 people", "655 people"), "utf-8")
    done = extract("story.txt")
    assert "entity extraction" in done.stderr
    assert "3 chunks reused" in done.stderr
    assert "4 (3 reused)" in done.stderr


def test_the_result_depends_on_nothing_but_its_input(extract, sameas, folder, examples):
    (folder / "story.txt").write_bytes((EXAMPLE / "story.txt").read_bytes())
    sameas("learn", str(examples), "--ontology", "company.ttl")
    answers = {
        extract(
            "story.txt", "--quiet", "--concurrency", concurrency, SAMEAS_HOME=f"home-{seed}", PYTHONHASHSEED=seed
        ).stdout
        for seed, concurrency in (("1", "1"), ("2", "7"))
    }
    # When it was read is all that may differ.
    assert len({re.sub(r'prov:(?:started|ended)AtTime "[^"]*"', "", answer) for answer in answers}) == 1


def test_a_document_that_cannot_be_read_is_named(folder, extract):
    (folder / "fake.pdf").write_text("no PDF at all", "utf-8")
    assert extract("fake.pdf", code=4).stderr.startswith("sameas: fake.pdf: ")


def test_who_waits_for_a_process_that_was_killed_is_told_so(folder):
    (folder / "long.txt").write_text(long_text(), "utf-8")
    arguments = [*COMMAND, "extract", "long.txt", "--ontology", "company.ttl"]
    said = []
    for _ in "ab":
        with subprocess.Popen(
            arguments, cwd=folder, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            said.append(process.stderr.readline())
            process.kill()
    assert "chunking" in said[0]
    assert said[1].startswith("long.txt: another process is at this; waiting")


def test_two_at_the_same_time_make_one_run(folder):
    (folder / "long.txt").write_text(long_text(600_000), "utf-8")
    arguments = [*COMMAND, "extract", "long.txt", "--ontology", "company.ttl", "--json", "--quiet"]
    both = [
        subprocess.Popen(arguments, cwd=folder, env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "ab"
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(answer["cacheHit"] for answer in answers) == [False, True]
    assert answers[0]["relations"] == answers[1]["relations"]


def test_sigterm_gives_the_claim_back(folder, sameas):
    (folder / "long.txt").write_text(long_text(), "utf-8")
    process = subprocess.Popen(
        [*COMMAND, "extract", "long.txt", "--ontology", "company.ttl"],
        cwd=folder, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "chunking" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert "Traceback" not in said
    assert "held" not in sameas("keys", "list").stdout


def test_ctrl_c_ends_with_130(folder):
    (folder / "long.txt").write_text(long_text(), "utf-8")
    process = subprocess.Popen(
        [*COMMAND, "extract", "long.txt", "--ontology", "company.ttl"],
        cwd=folder, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "chunking" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "interrupted" in said


def test_a_reader_that_has_enough_is_no_error(folder, sameas):
    (folder / "story.txt").write_bytes((EXAMPLE / "story.txt").read_bytes())
    command = f"{sys.executable} -m sameas.cli extract story.txt --ontology company.ttl --quiet | head -n 1"
    done = subprocess.run(command, shell=True, cwd=folder, env=CLEAN, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("@prefix")
    assert done.stderr == ""


def test_a_replay_loads_nothing_heavy(folder, extract):
    extract("a.txt")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "extract", "a.txt", "--ontology", "company.ttl"],
        cwd=folder, env=CLEAN, capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert not loaded & {"typer", "rich", "pydantic", "numpy", "scipy", "pyoxigraph", "sqlalchemy"}


# errors


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("missing.txt", "-o", "company.ttl"), 4, "'missing.txt' is not a file"),
        (("a.txt", "-o", "missing.ttl"), 4, "missing.ttl: there is no such ontology file"),
        (("a.txt", "-o", "broken.ttl"), 4, "line 2, column"),
        (("*.docx", "-o", "company.ttl"), 4, "no file fits"),
        (("bare", "-o", "company.ttl"), 4, "bare holds no file that can be read"),
        (("a.txt",), 2, "--ontology"),
        ((), 2, "usage: sameas extract"),
        (("a.txt", "-o", "company.ttl", "--format", "xml"), 2, "invalid choice: 'xml'"),
        (("a.txt", "-o", "company.ttl", "--concurrency", "0"), 2, "1 or more"),
        (("a.txt", "-o", "company.ttl", "--deadline", "-1"), 2, "more than 0"),
        (("a.txt", "-o", "company.ttl", "--extractor", "learned"), 4, "sameas learn EXAMPLES"),
        (("a.txt", "-o", "company.ttl", "--examples", "none.jsonl"), 4, "none.jsonl: there is no such file"),
        (("a.txt", "-o", "company.ttl", "--examples", "b.txt", "--extractor", "lexicon"), 2, "--examples needs"),
    ],
)
def test_an_error_says_what_where_and_what_to_do(sameas, folder, arguments, code, said):
    (folder / "broken.ttl").write_text("@prefix : <http://e/> .\n:a :b .\n")
    (folder / "bare").mkdir()
    done = sameas("extract", *arguments, code=code)
    assert said in done.stderr
    assert done.stdout == ""


def test_a_wrong_setting_is_named(extract, folder):
    assert "SAMEAS_CONCURRENCY" in extract("a.txt", code=2, SAMEAS_CONCURRENCY="many").stderr
    assert "SAMEAS_STOER is not a setting" in extract("a.txt", code=2, SAMEAS_STOER="x").stderr
    assert "SAMEAS_DATABASE" in extract("a.txt", code=2, SAMEAS_DATABASE="ftp://x/y").stderr
    assert "SAMEAS_STORE: store must be a URL, such as" in extract("a.txt", code=2, SAMEAS_STORE="ftp://x").stderr
    (folder / "sameas.toml").write_text("concurrency = 'many'\n")
    assert "sameas.toml, concurrency" in extract("a.txt", code=2).stderr


def test_a_store_that_does_not_answer_ends_with_5_and_nothing_is_run(extract, folder):
    extract("a.txt", code=5, SAMEAS_STORE="redis://127.0.0.1:1/0")
    assert not [*folder.glob("runs/sha256-*")]


def test_a_full_disk_is_told_wherever_it_ends_a_command_and_costs_no_work(extract, folder):
    small = folder / "small"
    small.mkdir()
    with small_disk(small, size=16 << 20) as disk:
        old = small / "graph.ttl"
        old.write_text("the old graph")
        disk.fill()
        done = extract("a.txt", "--out", str(old), code=1)
        assert f"{old} cannot be written: No space left on device" in done.stderr
        assert old.read_text() == "the old graph"
        assert "replayed" in extract("a.txt").stderr
        home = {"SAMEAS_HOME": str(small / "home")}
        assert "Make room" in extract("a.txt", code=5, **home).stderr
        disk.make_room()
        extract("a.txt", **home)
        disk.fill()
        # Nothing can be opened there, not even to be read.
        assert "Make room" in extract("a.txt", code=5, **home).stderr
        disk.make_room()
        assert "replayed" in extract("a.txt", **home).stderr


def test_debug_shows_the_traceback(folder):
    done = subprocess.run(
        [*COMMAND, "extract", "a.txt", "--ontology", "missing.ttl", "--debug"],
        cwd=folder, env=CLEAN, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" in done.stderr
    assert done.returncode == 1


def test_no_command_and_a_wrong_one_are_usage_errors(sameas):
    shown = sameas(code=2).stdout + sameas("--help").stdout
    for name in ("extract", "runs", "keys", "ontology", "learn", "eval", "events", "doctor"):
        assert f"  {name} " in shown
    assert "No such command" in sameas("extrakt", code=2).stderr
    assert sameas("--version").stdout.startswith("sameas ")
    assert "--deadline" in sameas("extract", "--help").stdout


def test_data_lives_where_home_says(extract, folder):
    extract("a.txt", SAMEAS_HOME="elsewhere")
    assert (folder / "elsewhere" / "sameas.db").is_file()
    assert [*(folder / "elsewhere" / "runs").glob("sha256-*")]
    assert not (folder / "runs").exists()


def test_an_ontology_without_words_is_told_what_to_add(sameas, folder):
    (folder / "mute.ttl").write_text(
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
        "<http://e/Q1> a owl:Class . <http://e/P57> a owl:ObjectProperty .\n"
    )
    done = sameas("extract", "a.txt", "--ontology", "mute.ttl")
    assert "note: The ontology gives the lexicon extractor no cue" in done.stderr


# learn


def test_a_learned_model_is_picked_up_and_is_part_of_the_key(extract, sameas, folder, examples):
    text = "Rhein Papier GmbH was founded in 1977 by Berta Kunz."
    before = json.loads(extract(text, "--json").stdout)
    done = sameas("learn", str(examples), "--ontology", "company.ttl")
    assert len(done.stdout.strip()) == 64
    assert "held out in turn, before and after learning" in done.stderr
    assert (folder / "company.ttl.learned").is_file()
    after = json.loads(extract(text, "--json").stdout)
    assert after["cacheHit"] is False
    assert after["idempotencyKey"] != before["idempotencyKey"]
    assert any(one["predicate"].endswith("#founder") for one in after["relations"])
    assert after["relations"] != before["relations"]
    assert json.loads(extract(text, "--json").stdout)["cacheHit"] is True
    again = json.loads(extract(text, "--json", "--extractor", "lexicon").stdout)
    assert (again["cacheHit"], again["idempotencyKey"]) == (True, before["idempotencyKey"])


def test_examples_are_learned_on_the_fly_and_kept(extract, sameas, folder, examples):
    first = extract("a.txt", "--examples", str(examples), "--json")
    second = extract("a.txt", "--examples", str(examples), "--json")
    assert "learning from" in first.stderr
    assert "learning from" not in second.stderr
    assert json.loads(second.stdout)["cacheHit"] is True
    # The same examples, learned by hand, are the same work.
    sameas("learn", str(examples), "--ontology", "company.ttl")
    assert json.loads(extract("a.txt", "--json").stdout)["cacheHit"] is True


def test_examples_that_cannot_be_read_are_refused_with_their_line(sameas, folder):
    (folder / "bad.jsonl").write_text(
        '{"text": "A.", "triples": []}\n{"text": "B.", "triples": [["B", "eats", "C"]]}\n'
    )
    assert "bad.jsonl, line 2" in sameas("learn", "bad.jsonl", "--ontology", "company.ttl", code=4).stderr
    assert "no such file" in sameas("learn", "none.jsonl", "--ontology", "company.ttl", code=4).stderr


def test_texts_without_relations_propose_labels_and_examples(sameas, folder):
    (folder / "bare.ttl").write_text(
        "@prefix : <https://x.example/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ':Person a owl:Class ; rdfs:label "person" . :Company a owl:Class ; rdfs:label "company" . '
        ':p a owl:ObjectProperty ; rdfs:domain :Person ; rdfs:range :Company ; rdfs:label "employee of" .'
    )
    text = "Anna Berg moonlights for Acme Ltd."
    assert "ontology suggest" in sameas("extract", text, "--ontology", "bare.ttl").stderr
    done = sameas("ontology", "suggest", text, "--ontology", "bare.ttl", "--examples", "new.jsonl")
    assert [str(one.object.value) for one in parse(done.stdout)] == ["moonlights for"]
    assert json.loads((folder / "new.jsonl").read_text()) == {
        "text": text,
        "triples": [["Anna Berg", "p", "Acme Ltd"]],
    }


def test_a_damaged_model_is_refused_with_what_to_do(extract, folder):
    (folder / "company.ttl.learned").write_bytes(b"sameas learned extractor 1\n" + b"x" * 64)
    assert "learn it again" in extract("a.txt", code=4).stderr


# runs


def test_runs_are_listed_shown_and_removed(extract, sameas):
    assert "no runs yet" in sameas("runs", "list").stderr
    extract("a.txt"), extract("b.txt")
    listed = sameas("runs", "list").stdout.splitlines()
    assert [line.split()[-1] for line in listed[1:]] == ["b.txt", "a.txt"]
    key = listed[2].split()[0]
    shown = sameas("runs", "show", key).stdout
    assert "Falke Uhren GmbH" in shown
    assert "complete (COMPLETE)" in shown
    assert json.loads(sameas("runs", "show", key.removeprefix("sha256-")[:8], "--json").stdout)["entityCount"] == 3
    assert parse(sameas("runs", "show", key, "--format", "turtle").stdout)
    assert [
        json.loads(line)["document"] for line in sameas("runs", "list", "--json", "--limit", "1").stdout.splitlines()
    ] == ["b.txt"]
    sameas("runs", "rm", key)
    assert len(sameas("runs", "list").stdout.splitlines()) == 2
    assert "replayed" not in extract("a.txt").stderr


def test_a_shown_run_says_how_sure_each_relation_is_and_how_many_are_left_out_of_answers(extract, sameas):
    answer = json.loads(extract("a.txt", "--json", "--min-confidence", "0").stdout)
    shown = sameas("runs", "show", answer["idempotencyKey"])
    assert f"{answer['relations'][0]['confidence']:.2f}" in shown.stdout
    assert "leaves" not in shown.stderr
    shown = sameas("runs", "show", answer["idempotencyKey"], SAMEAS_MIN_CONFIDENCE="1")
    assert f"`extract` leaves {len(answer['relations'])} of these out, below confidence 1" in shown.stderr


def test_events_of_a_run_are_its_journal(extract, sameas):
    key = json.loads(extract("a.txt", "--json").stdout)["idempotencyKey"]
    events = [json.loads(line) for line in sameas("runs", "events", key).stdout.splitlines()]
    assert [event["sequenceNumber"] for event in events] == [*range(1, len(events) + 1)]
    assert events[0]["type"] == "extraction_started"
    assert events[-1]["type"] == "extraction_completed"
    rest = sameas("runs", "events", key, "--after", str(len(events) - 1)).stdout.splitlines()
    assert len(rest) == 1


def test_a_key_that_no_run_has_is_an_error_for_people(sameas):
    assert "no run has a key" in sameas("runs", "show", "abcdef01", code=4).stderr
    assert "at least 8" in sameas("runs", "show", "abc", code=4).stderr


def test_the_schema_of_events_is_json(sameas):
    schema = json.loads(sameas("events", "schema").stdout)
    assert len(schema["anyOf"]) == 17


# keys


def claim(folder, key, *, scope="charge"):
    attempt = str(uuid7())
    with open_store(f"sqlite:///{folder}/sameas.db") as store:
        store.claim(ClaimRequest(identity_of(scope, key), "", attempt, 3600_000_000, 3600_000_000))


def test_keys_are_listed_explained_and_forgotten(extract, sameas):
    extract("a.txt")
    (line,) = sameas("keys", "list", "--json", "--scope", "extraction").stdout.splitlines()
    record = json.loads(line)
    assert record["state"] == "done"
    explained = sameas("keys", "explain", record["key"].removeprefix("sha256-")[:10]).stdout
    assert "gets this result again" in explained
    assert "not held" in sameas("keys", "release", record["key"], code=4).stderr
    sameas("keys", "forget", record["key"][:20])
    assert sameas("keys", "list", "--json").stdout == ""


def test_a_held_key_is_released_for_the_next_caller(sameas, folder):
    claim(folder, "order-1")
    assert "waits for the holder" in sameas("keys", "explain", "order-1").stdout
    assert "held" in sameas("keys", "list", "--state", "held").stdout
    assert "the next caller runs it" in sameas("keys", "release", "order-1").stderr
    assert "no record" in sameas("keys", "explain", "order-1", code=4).stderr


def test_many_are_forgotten_only_when_confirmed(sameas, folder):
    claim(folder, "order-1")
    claim(folder, "order-2")
    assert "fits several" in sameas("keys", "explain", "order", code=4).stderr
    sameas("keys", "forget", "--scope", "charge", stdin="n\n", code=1)
    assert len(sameas("keys", "list", "--json").stdout.splitlines()) == 2
    assert "forgot 2 records" in sameas("keys", "forget", "--scope", "charge", "--yes").stderr
    assert "nothing is named" in sameas("keys", "forget", code=2).stderr


def test_long_lists_have_pages(sameas, folder):
    for number in range(3):
        claim(folder, f"order-{number}")
    first = sameas("keys", "list", "--json", "--limit", "2")
    cursor = first.stderr.split()[-1]
    second = sameas("keys", "list", "--json", "--limit", "2", "--after", cursor)
    assert len(first.stdout.splitlines()) + len(second.stdout.splitlines()) == 3
    assert "not the cursor" in sameas("keys", "list", "--after", "xyz", code=2).stderr


def test_prune_says_how_many_went(sameas):
    assert "pruned 0 records" in sameas("keys", "prune").stderr


def answer(folder, key, *, status, retention):
    """What the HTTP middleware keeps: an answer under a client's key, with whose it is before it."""
    with open_store(f"sqlite:///{folder}/sameas.db") as store:
        identity = identity_of("orders", f"{'a' * 64}.{key}", tenant="")
        request = ClaimRequest(identity, "", "a1", 10_000_000, 10**12, About(route="/orders", method="POST"))
        claim = store.claim(request)
        lease = Lease(identity, claim.fence, "a1")
        store.complete(lease, outcome=Outcome(b"", "application/json", {"status": status}), retain_for=retention)


def test_a_client_s_own_key_finds_its_record_with_status_expiry_and_id(sameas, folder):
    answer(folder, "order-7", status=201, retention=10**12)
    record = json.loads(sameas("keys", "explain", "order-7", "--json").stdout)
    assert (record["client key"], record["status"], len(record["id"])) == ("order-7", 201, 64)
    assert record["expires"] > record["created"]
    head, line = sameas("keys", "list").stdout.splitlines()
    assert {"status", "expires", "id"} <= set(head.split())
    assert record["id"][:12] in line
    assert "201" in line


def test_what_is_pruned_is_archived_first(sameas, folder):
    answer(folder, "old", status=200, retention=1)
    answer(folder, "new", status=200, retention=10**12)
    assert "pruned 1 records" in sameas("keys", "prune", "--archive", "old.jsonl").stderr
    (line,) = (folder / "old.jsonl").read_text().splitlines()
    assert (json.loads(line)["client key"], json.loads(line)["status"]) == ("old", 200)
    (left,) = sameas("keys", "list", "--json").stdout.splitlines()
    assert json.loads(left)["client key"] == "new"
    assert "pruned 0 records" in sameas("keys", "prune", "--archive", "old.jsonl").stderr


# ontology


def test_an_ontology_is_shown_and_versioned(sameas, folder):
    shown = sameas("ontology", "show", "company.ttl").stdout
    assert "  person <https://sameas.dev/example/company#Person>" in shown
    assert "15 classes, 25 properties" in shown
    version = sameas("ontology", "version", "company.ttl").stdout.strip()
    assert version.startswith("sha256:")
    triples = pyoxigraph.parse(path=str(folder / "company.ttl"), format=pyoxigraph.RdfFormat.TURTLE)
    (folder / "company.nt").write_bytes(pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.N_TRIPLES))
    assert sameas("ontology", "version", "company.nt").stdout.strip() == version


def test_an_added_ontology_is_used_by_its_name(sameas, folder):
    assert "none yet" in sameas("ontology", "list").stderr
    assert "added firm" in sameas("ontology", "add", "company.ttl", "--name", "firm").stderr
    assert "firm" in sameas("ontology", "list").stdout
    assert "complete" in sameas("extract", "a.txt", "--ontology", "firm").stderr
    assert "unchanged" in sameas("ontology", "add", "company.ttl", "--name", "firm").stderr
    assert "removed firm" in sameas("ontology", "rm", "firm").stderr
    assert "no ontology was added" in sameas("ontology", "rm", "firm", code=4).stderr
    assert "cannot be the name" in sameas("ontology", "add", "company.ttl", "--name", "../x", code=2).stderr


def test_an_updated_ontology_supersedes_its_results(sameas, folder):
    sameas("ontology", "add", "company.ttl")
    sameas("extract", "a.txt", "--ontology", "company")
    text = (folder / "company.ttl").read_text("utf-8").replace('"founder"@en', '"founding mother"@en')
    (folder / "company.ttl").write_text(text, "utf-8")
    assert "updated company from" in sameas("ontology", "add", "company.ttl").stderr
    assert "superseded" in sameas("runs", "list").stdout
    assert sameas("keys", "list", "--json").stdout == ""


def test_an_ontology_is_named_by_its_id_as_by_any_of_its_names(sameas, folder):
    for name in ("firm", "company"):
        sameas("ontology", "add", "company.ttl", "--name", name)
    one = "https://sameas.dev/example/company"
    sameas("extract", "a.txt", "--ontology", "firm")
    assert "replay" in sameas("extract", "a.txt", "--ontology", one).stderr
    for named in ("firm", "company", one):
        listed = sameas("runs", "list", "--json", "--ontology", named).stdout.splitlines()
        assert [json.loads(line)["ontologyId"] for line in listed] == [one]
    assert sameas("runs", "list", "--json", "--ontology", "foaf").stdout == ""
    assert "Agent" in sameas("ontology", "show", "http://xmlns.com/foaf/0.1/").stdout


def test_changing_or_removing_a_name_leaves_the_results_of_another(sameas, folder):
    for name in ("firm", "company"):
        sameas("ontology", "add", "company.ttl", "--name", name)
    sameas("extract", "a.txt", "--ontology", "company")
    text = (folder / "company.ttl").read_text("utf-8").replace('"founder"@en', '"founding mother"@en')
    (folder / "new.ttl").write_text(text, "utf-8")
    assert "updated firm" in sameas("ontology", "add", "new.ttl", "--name", "firm").stderr
    assert "superseded" not in sameas("runs", "list").stdout
    assert "replay" in sameas("extract", "a.txt", "--ontology", "company").stderr
    refused = sameas("extract", "a.txt", "--ontology", "https://sameas.dev/example/company", code=4).stderr
    assert "company, firm, which differ" in refused
    sameas("ontology", "rm", "firm")
    assert "replay" in sameas("extract", "a.txt", "--ontology", "company").stderr


def test_imports_are_reported_and_answered_from_a_folder(sameas, folder):
    (folder / "main.ttl").write_text(
        "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<http://e/main> a owl:Ontology ;"
        " owl:imports <http://e/parts/company> ."
    )
    assert "was not read" in sameas("extract", "a.txt", "--ontology", "main.ttl").stderr
    (folder / "parts").mkdir()
    shutil.copy(folder / "company.ttl", folder / "parts")
    done = sameas("extract", "a.txt", "--ontology", "main.ttl", "--imports", "parts")
    assert "was not read" not in done.stderr
    assert "#founder" in done.stdout


# eval, doctor


def small_corpus(source, target, *, name, lines):
    """One ontology of a corpus with a few sentences of each part."""
    (target / "ontologies").mkdir(parents=True)
    shutil.copy(source / "ontologies" / f"{name}_ontology.json", target / "ontologies")
    for part in ("train", "validation"):
        (target / part).mkdir()
        content = (source / part / f"ont_{name}_{part}.jsonl").read_text("utf-8").splitlines()
        (target / part / f"ont_{name}_{part}.jsonl").write_text("\n".join(content[:lines]) + "\n", "utf-8")


def test_eval_scores_the_ontologies_of_a_corpus(sameas, folder):
    source = shared("data", "text2kgbench")
    name = min(path.name for path in (source / "ontologies").glob("*_ontology.json")).removesuffix("_ontology.json")
    small_corpus(source, folder / "corpus", name=name, lines=40)
    one = ("eval", "corpus", "--limit", "20", "--prior", "shipped")
    (row,) = map(json.loads, sameas(*one, "--ontology", name, "--json").stdout.splitlines())
    assert (row["name"], row["examples"], row["split"]) == (name, 20, "validation")
    assert 0 < row["scores"]["f1"] <= 1
    assert sameas(*one).stdout.splitlines()[-1].startswith("mean")
    assert "has no ontology" in sameas("eval", "corpus", "--ontology", "none", code=4).stderr
    assert "split 'test'" in sameas(*one, "--split", "test", code=4).stderr


def test_eval_scores_a_file_with_any_ontology(sameas, folder):
    lines = (EXAMPLE / "examples.jsonl").read_text("utf-8").splitlines()
    (folder / "train.jsonl").write_text("\n".join(lines[:24]) + "\n", "utf-8")
    (folder / "test.jsonl").write_text("\n".join(lines[24:34]) + "\n", "utf-8")
    one = ("eval", "test.jsonl", "--ontology", "company.ttl", "--train", "train.jsonl")
    (row,) = map(json.loads, sameas(*one, "--json").stdout.splitlines())
    assert (row["name"], row["examples"], row["scores"]["texts"]) == ("test", 24, 10)
    assert row["scores"]["conformance"] == 1.0
    assert "Name its ontology" in sameas("eval", "test.jsonl", code=4).stderr
    assert "no such file of examples" in sameas(*one[:-1], "none.jsonl", code=4).stderr


def test_eval_of_a_folder_that_is_none_is_an_error(sameas):
    assert "is not a folder" in sameas("eval", "nowhere", code=4).stderr


def test_doctor_tries_what_is_configured(sameas, folder):
    shown = sameas("doctor", SAMEAS_DATABASE="sqlite:///results.db", SAMEAS_CONCURRENCY="2").stdout
    assert "a key was claimed, read and released" in shown
    assert "the tables of results are there" in shown
    assert "environment" in shown
    assert sameas("keys", "list", "--json").stdout == ""
    whole = json.loads(sameas("doctor", "--json", SAMEAS_MODE="scope:extract=shadow:20%").stdout)
    assert [check["verdict"] for check in whole["checks"]] == ["ok", "ok"]
    assert whole["settings"]["mode"] == {"value": "scope:extract=shadow:20%", "from": "environment"}
    limits = ("request_tokens", "request_cost", "tenant_tokens_per_day", "tenant_cost_per_day", "stage_timeouts")
    for name in (*limits, "deadline", "result_ttl", "key_ttl"):
        assert whole["settings"][name]["value"]


def test_doctor_says_which_server_does_not_answer(sameas):
    done = sameas("doctor", code=5, SAMEAS_STORE="redis://user:secret@127.0.0.1:1/0")
    assert "failed" in done.stdout
    assert "secret" not in done.stdout + done.stderr


def test_doctor_asks_redis_whether_it_keeps_what_it_is_given(sameas, redis_url):
    shown = sameas("doctor", SAMEAS_STORE=redis_url).stdout
    assert "redis eviction" in shown
    assert "redis persistence" in shown


def test_extraction_runs_over_redis(extract, redis_url):
    assert "complete" in extract("a.txt", SAMEAS_STORE=redis_url).stderr
    assert "replayed" in extract("a.txt", SAMEAS_STORE=redis_url).stderr


# demo


def test_the_demo_shows_graph_replay_and_edit(tmp_path):
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "sameas.cli.demo"], cwd=tmp_path, env=CLEAN, capture_output=True, text=True, check=True
    )
    assert time.monotonic() - began < 60
    assert "founder         Jürgen Möller" in done.stdout
    assert "the chief executive of Nordlicht Speicher is Hélène Aubert" in done.stdout
    assert "replayed, nothing was extracted" in done.stdout
    assert "1 of 4 chunks redone, 3 reused" in done.stdout
    assert "+ nordlicht-speicher employees 655" in done.stdout
    assert [*tmp_path.iterdir()] == []


def test_names_of_a_spacy_pipeline_are_taken_and_a_missing_one_is_said(folder, extract):
    spacy = pytest.importorskip("spacy")
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "umbrella works"}])
    pipeline.to_disk(folder / "names")
    (folder / "c.txt").write_text("In the spring umbrella works was founded by Berta Kunz.", "utf-8")
    assert "umbrella works" not in extract("c.txt", "--quiet").stdout
    assert "umbrella works" in extract("c.txt", "--quiet", "--spacy", "names").stdout
    assert "no_such_pipeline" in extract("c.txt", "--spacy", "no_such_pipeline", code=2).stderr


def test_a_graph_says_which_file_it_comes_from(extract, folder):
    (folder / "story.md").write_text("# A story\n\nWeserstahl bought Helvetia Zellen.\n", "utf-8")
    (folder / "copy.md").write_text("# A story\n\nWeserstahl bought Helvetia Zellen.\n", "utf-8")
    first = json.loads(extract("story.md", "--format", "json").stdout)
    again = json.loads(extract("copy.md", "--format", "json").stdout)
    assert first["document"]["iri"] == again["document"]["iri"]
    assert first["document"]["readAt"] == again["document"]["readAt"]
    (source,) = first["document"]["sources"]
    assert (source["name"], source["title"], source["mediaType"]) == ("story.md", "A story", "text/markdown")
    assert source["location"] == (folder / "story.md").as_uri()
    assert again["document"]["sources"][0]["name"] == "copy.md"
    (evidence,) = first["relations"][0]["evidence"]
    assert (evidence["document"], evidence["paragraph"]) == (first["document"]["iri"], 2)
    based = extract("story.md", "--base", "https://data.example/").stdout
    assert "https://data.example/" in based
    assert "urn:sameas:" not in based
