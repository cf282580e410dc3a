"""The commands of collections as a person types them, where a unit test cannot see what is printed or asked."""

import os
import subprocess
import sys
from pathlib import Path

from sameas.collections import Collections, collections_url, local_caller, open_tables
from tests.servers.model_script import says as answers
from tests.servers.model_server import ModelServer
from tests.unit.collections.press import company, ids, new_collection, person, put, says

ROOT = Path(__file__).resolve().parents[2]
ONTOLOGY = ROOT / "src" / "sameas" / "example" / "company.ttl"


def sameas(home: Path, *arguments: str) -> str:
    environment = {**os.environ, "SAMEAS_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "sameas", *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_contradictions_are_printed_with_both_sides(tmp_path: Path) -> None:
    collections = Collections(open_tables(collections_url(tmp_path)))
    collection = new_collection(collections)
    alice = person("Alice Stone")
    put(collection, "a.txt", alice, says(alice, "born", "1970", quote="Alice Stone, born 1970"))
    put(collection, "b.txt", alice, says(alice, "born", "1980", quote="Alice Stone, born 1980"))
    put(collection, "c.txt", person("Orbit"))
    put(collection, "d.txt", company("Orbit"))
    for name in ("Alice Stone", "Orbit"):
        collection.decide("same", *ids(collection, name))
    collections.close()
    printed = sameas(tmp_path, "collection", "contradictions", "press")
    for said in (
        "a.txt:0: Alice Stone, born 1970",
        "b.txt:0: Alice Stone, born 1980",
        "c.txt:0: Orbit",
        "d.txt:0: Orbit",
    ):
        assert said in printed, printed


def test_documents_get_ready_while_the_model_is_busy_and_it_never_has_more_calls_than_allowed(tmp_path: Path) -> None:
    files = []
    for number in range(7):
        file = tmp_path / f"{number}.txt"
        file.write_text(f"Anna{number} Stone works for Acme{number} Ltd.")
        files.append(str(file))
    home = tmp_path / "home"
    sameas(home, "collection", "create", "press", "-o", str(ONTOLOGY))
    with ModelServer(answers({"entities": [], "values": [], "relations": []}, latency=0.3)) as server:
        sameas(home, "add", "press", *files, "--model", server.address(), "--concurrency", "2", "-q")
        assert server.most_at_once == 2
        assert len(server.calls) == 7
    opened = Collections(open_tables(collections_url(home)))
    assert opened.open("press", caller=local_caller()).info().documents == 7
    opened.close()
