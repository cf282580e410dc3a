"""Word of an update, a cancellation or a cleared cache reaches every node by itself: a node that is to hear of it is asked
for nothing until what it did can be seen. Records in Redis, and in PostgreSQL. How soon is measured by
`./run bench cluster word`.
"""

import json
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from sameas import Engine, open_store
from sameas.once.record import State
from tests.integration.model_path import ORACLE, document, sentence
from tests.integration.test_cluster import WITHIN, accepted, held_by, request, until
from tests.servers.program import program_or_skip
from tests.storm.cluster_storm import Machines
from tests.unit.server.house import TURTLE

NEWER = TURTLE + b"\n<https://sameas.dev/example/company#Newer> a <http://www.w3.org/2002/07/owl#Class> .\n"


@pytest.fixture(scope="module", params=["redis", "postgres"])
def machines(request):
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        yield Machines(stack, workers=1, broker="rabbitmq", settings={}, records=request.param)


@pytest.fixture
def nodes(machines):
    machines.model.rescript(ORACLE)
    return machines.nodes


def copies(node, key):
    """What a node has of a run in its home."""
    runs = node.folder / "home" / "runs"
    return [*runs.rglob(f"*{key}*/metadata.json")] if runs.exists() else []


def has_asked(node, key):
    """Whether somebody waits for a run at a node, by its log."""
    return any("Cache miss" in line and key in line for line in node.log.splitlines())


def metadata(node, key):
    (path,) = copies(node, key)
    return json.loads(path.read_bytes())


def test_who_listens_or_waits_at_one_node_is_told_that_another_cancelled_the_run(machines, nodes):
    one, other = nodes
    gate = threading.Event()
    machines.model.rescript(held_by(gate))
    before = len(machines.model.calls)
    text = f"{document(2)}\n\nWord of a cancellation."
    key = accepted(one, text)
    machines.model.wait_for_calls(before + 1, within_seconds=WITHIN)
    told = []
    waiting = threading.Thread(target=lambda: told.append(other.ask("POST", "/api/v1/extract", request(text))))
    try:
        with urllib.request.urlopen(f"{other.url}/api/v1/runs/{key}/events", timeout=WITHIN) as stream:
            waiting.start()
            until(lambda: b"extraction_started" in stream.readline())
            until(lambda: has_asked(other, key))
            assert one.ask("POST", f"/api/v1/runs/{key}/cancel")[0] == 202
            types = [json.loads(line[6:])["type"] for line in stream if line.startswith(b"data: ")]
        waiting.join(WITHIN)
    finally:
        gate.set()
    assert types[-1] == "extraction_cancelled"
    ((status, said),) = told
    assert (status, said["type"].rpartition(":")[2]) == (409, "run-cancelled")
    # The model was never answered: nothing but the word has ended it, and its claim with it.
    with Engine(open_store(machines.records)) as engine:
        record = engine.read("extraction", key, tenant="", namespace="content")
    assert record is None or record.state is not State.HELD


def test_a_run_that_nobody_has_begun_is_cancelled_for_those_who_wait_at_another_node(machines, nodes):
    one, other = nodes
    (worker,) = machines.workers
    worker.kill()
    told = []
    text = f"{sentence(710)} Word of a cancellation in the queue."
    key = accepted(one, text)
    waiting = threading.Thread(target=lambda: told.append(other.ask("POST", "/api/v1/extract", request(text))))
    waiting.start()
    try:
        until(lambda: has_asked(other, key))
        before = len(machines.model.calls)
        assert one.ask("POST", f"/api/v1/runs/{key}/cancel")[0] == 202
        waiting.join(WITHIN)
        assert told
        assert told[0][0] == 409, told
    finally:
        worker.start()
    assert one.ask("GET", f"/api/v1/runs/{key}")[0] == 404
    assert len(machines.model.calls) == before


def test_an_update_marks_what_another_node_has_and_its_next_answer_is_of_the_new_version(nodes):
    one, other = nodes
    text = f"{sentence(711)} Word of an update."
    first = other.ask("POST", "/api/v1/extract", request(text))[1]
    key = first["idempotencyKey"]
    assert metadata(other, key).get("supersededAt") is None
    assert one.ask("PUT", "/api/v1/ontologies/company", NEWER)[1]["changed"]
    until(lambda: metadata(other, key).get("supersededAt"))
    second = other.ask("POST", "/api/v1/extract", request(text))[1]
    assert (second["cacheHit"], second["status"]) == (False, "complete")
    assert second["ontologyVersion"] != first["ontologyVersion"]
    assert one.ask("PUT", "/api/v1/ontologies/company", TURTLE)[1]["changed"]
    until(lambda: metadata(other, second["idempotencyKey"]).get("supersededAt"))


def test_a_cache_that_one_node_cleared_is_empty_at_another(machines, nodes):
    one, other = nodes
    text = f"{sentence(712)} Word of a cleared cache."
    key = other.ask("POST", "/api/v1/extract", request(text))[1]["idempotencyKey"]
    assert other.ask("POST", "/api/v1/extract", request(text))[1]["cacheHit"]
    assert copies(other, key)
    status, said = one.ask("POST", "/api/v1/cache/clear", {"reason": "a test"})
    assert status in (200, 204), said
    until(lambda: not copies(other, key))
    before = len(machines.model.calls)
    again = other.ask("POST", "/api/v1/extract", request(text))[1]
    assert (again["cacheHit"], again["status"]) == (False, "complete")
    assert len(machines.model.calls) > before
