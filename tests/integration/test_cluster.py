"""Several machines on loopback: nodes and workers with homes of their own, a broker, Redis, PostgreSQL and S3."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack

import pytest
from websockets.sync.client import connect

from sameas import Engine, open_store
from sameas.cluster.broker import Broker
from sameas.objects import open_objects
from sameas.once.record import State
from tests.integration.model_path import ORACLE, document, sentence
from tests.servers.cluster import ApiNode, WorkerNode
from tests.servers.model_script import held, status
from tests.servers.program import program_or_skip
from tests.storm.cluster_storm import ClusterStorm, Machines, marker
from tests.unit.server.house import TURTLE

WITHIN = 60.0


@pytest.fixture(scope="module")
def machines():
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        yield Machines(stack, workers=2, broker="rabbitmq", settings={}, with_proxies=True)


@pytest.fixture
def nodes(machines):
    machines.model.rescript(ORACLE)
    for one in (*machines.nodes, *machines.workers):
        one.start()
    return machines.nodes


def until(happened, *, within=WITHIN):
    ends_at = time.monotonic() + within
    while not (found := happened()):
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.05)
    return found


def held_by(gate):
    """A model that answers when the gate opens."""
    return lambda call: held(gate, ORACLE(call))


def request(text, **params):
    return {
        "text": text,
        "ontologyId": "company",
        "extractionParams": {"extractor": "model", "chunkSize": 100, **params},
    }


def accepted(node, text, **params):
    """The key of a run that a node has accepted."""
    status, said = node.ask("POST", "/api/v1/extract", request(text, **params), headers={"Prefer": "respond-async"})
    assert status == 202, said
    return said["idempotencyKey"]


def events(node, key, *, after=0):
    """All events of a run as a node streams them, to the end."""
    asked = urllib.request.Request(f"{node.url}/api/v1/runs/{key}/events?after={after}")
    with urllib.request.urlopen(asked, timeout=WITHIN) as stream:
        return [json.loads(line[6:]) for line in stream if line.startswith(b"data: ")]


def numbers(told):
    return [event["sequenceNumber"] for event in told if event.get("sequenceNumber")]


def test_any_node_answers_for_a_run_that_another_accepted_and_a_worker_did(nodes):
    one, other = nodes
    status, first = one.ask("POST", "/api/v1/extract", request(document(3)))
    assert (status, first["status"], first["cacheHit"]) == (200, "complete", False)
    key = first["idempotencyKey"]
    status, second = other.ask("POST", "/api/v1/extract", request(document(3)))
    assert (status, second["cacheHit"]) == (200, True)
    assert (second["entities"], second["relations"]) == (first["entities"], first["relations"])
    told = events(other, key)
    assert numbers(told) == list(range(1, len(told) + 1))
    assert (told[0]["type"], told[-1]["type"]) == ("extraction_started", "extraction_completed")
    assert "Person1 Stone" in other.ask("GET", f"/api/v1/runs/{key}/graph?format=turtle")[1]
    assert key in [run["idempotencyKey"] for run in other.ask("GET", "/api/v1/runs")[1]["runs"]]
    # Typed by hand, too.
    assert other.ask("GET", f"/api/v1/runs/{key[7:17]}")[1]["idempotencyKey"] == key


def test_events_of_a_run_under_way_come_from_the_beginning_at_any_node(machines, nodes):
    gate = threading.Event()
    script = held_by(gate)
    machines.model.rescript(script)
    key = accepted(nodes[0], document(4) + "\n\nUnder way.")
    with urllib.request.urlopen(f"{nodes[1].url}/api/v1/runs/{key}/events", timeout=WITHIN) as stream:
        early = []
        while not any(event["type"] == "chunk_started" for event in early):
            line = stream.readline()
            if line.startswith(b"data: "):
                early.append(json.loads(line[6:]))
        assert nodes[1].ask("GET", f"/api/v1/runs/{key}")[1]["status"] in ("pending", "running")
        gate.set()
        told = early + [json.loads(line[6:]) for line in stream if line.startswith(b"data: ")]
    assert numbers(told) == list(range(1, len(told) + 1))
    assert told[-1]["type"] == "extraction_completed"
    assert numbers(events(nodes[0], key)) == numbers(told)


def test_a_killed_workers_run_is_finished_by_another_without_a_gap_or_a_recorded_call_again(machines, nodes):
    gate = threading.Event()
    script = held_by(gate)
    first_done = []

    def mostly(call):
        # The first calls are answered and recorded; those after them wait.
        if len(first_done) < 2:
            first_done.append(call.user)
            return ORACLE(call)
        return script(call)

    machines.model.rescript(mostly)
    before = len(machines.model.calls)
    key = accepted(nodes[0], document(6) + "\n\nKilled.")
    machines.model.wait_for_calls(before + 3, within_seconds=WITHIN)
    until(lambda: len(numbers_so_far(nodes[1], key)) > 5)
    seen = numbers_so_far(nodes[1], key)
    for worker in machines.workers:
        worker.kill()
    machines.workers[0].start()
    machines.workers[1].start()
    gate.set()
    machines.model.rescript(ORACLE)
    told = events(nodes[1], key)
    assert numbers(told) == list(range(1, len(told) + 1))
    assert numbers(told)[: len(seen)] == seen
    assert told[-1]["type"] == "extraction_completed"
    asked_again = [call.user for call in machines.model.calls[before:] if call.user in first_done]
    assert len(asked_again) == len(first_done)


def numbers_so_far(node, key):
    """The numbers that a stream has told within a second."""
    found = []
    try:
        with urllib.request.urlopen(f"{node.url}/api/v1/runs/{key}/events", timeout=1.0) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    found.append(json.loads(line[6:]).get("sequenceNumber"))
    except TimeoutError:
        pass
    return found


def test_a_run_is_cancelled_from_any_node(machines, nodes):
    gate = threading.Event()
    script = held_by(gate)
    machines.model.rescript(script)
    before = len(machines.model.calls)
    key = accepted(nodes[0], document(2) + "\n\nCancelled.")
    machines.model.wait_for_calls(before + 1, within_seconds=WITHIN)
    status, said = nodes[1].ask("POST", f"/api/v1/runs/{key}/cancel")
    assert (status, said["outcome"]) == (202, "requested")
    run = until(lambda: (found := nodes[0].ask("GET", f"/api/v1/runs/{key}")[1]).get("outcome") and found)
    gate.set()
    assert (run["status"], run["outcome"]) == ("partial", "CANCELLED")
    assert [event["type"] for event in events(nodes[1], key)][-1] == "extraction_cancelled"
    # What is done of it stays: the same request finishes it.
    assert nodes[1].ask("POST", "/api/v1/extract", request(document(2) + "\n\nCancelled."))[1]["status"] == "complete"


def called(node, tag, payload):
    """What a call over a socket is told, to its end."""
    address = f"{node.url.replace('http', 'ws')}/api/rpc"
    told = []
    with connect(address, open_timeout=WITHIN, close_timeout=WITHIN, max_queue=None) as socket:
        socket.send(json.dumps({"tag": f"extraction.{tag}", "payload": payload}))
        while not told or told[-1]["type"] not in {"result", "error"}:
            told.append(json.loads(socket.recv(timeout=WITHIN)))
    return told


def test_a_call_over_a_socket_hears_a_run_that_a_worker_does_and_is_cached_at_another_node(nodes):
    payload = request(document(3) + "\n\nOver a socket.")
    first = called(nodes[0], "streamExtract", payload)
    assert first[-1]["type"] == "result", first[-1]
    heard = [message["event"] for message in first if message["type"] == "event"]
    assert numbers(heard) == list(range(1, len(heard) + 1))
    assert (heard[0]["type"], heard[-1]["type"]) == ("extraction_started", "extraction_completed")
    second = called(nodes[1], "streamExtract", payload)
    assert second[-1]["type"] == "result", second[-1]
    assert [message["event"]["type"] for message in second[:-1]] == ["cache_hit", "extraction_completed"]
    assert (first[-1]["result"]["cacheHit"], second[-1]["result"]["cacheHit"]) == (False, True)
    (found,) = called(nodes[1], "getResult", payload)
    assert found["result"]["entities"] == first[-1]["result"]["entities"]


def test_a_run_whose_time_is_over_is_told_in_part_at_every_node_and_finished_by_the_next_request(machines, nodes):
    gate = threading.Event()
    machines.model.rescript(held_by(gate))
    text = document(2) + "\n\nOut of time."
    try:
        status, said = nodes[0].ask("POST", "/api/v1/extract", request(text, deadline=1.0))
    finally:
        gate.set()
    assert (status, said["status"]) == (200, "partial"), said
    key = said["idempotencyKey"]
    assert {node.ask("GET", f"/api/v1/runs/{key}")[1]["status"] for node in nodes} == {"partial"}
    machines.model.rescript(ORACLE)
    finished = nodes[1].ask("POST", "/api/v1/extract", request(text))[1]
    assert (finished["status"], finished["idempotencyKey"]) == ("complete", key)


def test_what_somebody_waits_for_is_done_before_what_came_earlier_and_nobody_waits_for(machines, nodes):
    for worker in machines.workers:
        worker.kill()
    for number in range(40):
        accepted(nodes[number % 2], f"{sentence(600 + number)} Before.")
    text = f"{sentence(699)} Waited for."
    waiting = threading.Thread(target=lambda: nodes[0].ask("POST", "/api/v1/extract", request(text)))
    waiting.start()
    broker = Broker(machines.broker.url)
    until(lambda: broker.look().waiting == 41)
    broker.close()
    gate = threading.Event()
    machines.model.rescript(held_by(gate))
    before = len(machines.model.calls)
    try:
        machines.workers[0].start()
        # As many as one worker does at a time, of 41 that wait.
        machines.model.wait_for_calls(before + 8, within_seconds=2 * WITHIN)
        assert "699" in {marker(call)[1] for call in machines.model.calls[before : before + 8]}
    finally:
        gate.set()
        machines.model.rescript(ORACLE)
        machines.workers[1].start()
    waiting.join(WITHIN)


def test_a_deleted_run_is_deleted_everywhere(machines, nodes, monkeypatch):
    text = document(1) + "\n\nCanary Quetzalcoatl works for Xochimilco Robotics."
    key = nodes[0].ask("POST", "/api/v1/extract", request(text))[1]["idempotencyKey"]
    assert nodes[1].ask("GET", f"/api/v1/runs/{key}")[0] == 200
    assert nodes[1].ask("DELETE", f"/api/v1/runs/{key}")[0] == 204
    for name, value in machines.s3.credentials.items():
        monkeypatch.setenv(name, value)
    objects = open_objects(machines.s3.url)
    until(lambda: not [one for one in objects.list("runs") if key in one.name])
    assert not [one for one in objects.list("") if key in one.name]
    until(lambda: nodes[0].ask("GET", f"/api/v1/runs/{key}")[0] == 404)
    folders = [one.folder / "home" / "runs" for one in (*machines.nodes, *machines.workers)]
    until(lambda: not [path for folder in folders for path in folder.rglob("*") if key in str(path)])
    with Engine(open_store(machines.redis.url)) as engine:
        assert engine.read("extraction", key, tenant="", namespace="content") is None


def test_a_decision_that_was_taken_at_one_node_stands_at_another_and_goes_with_its_run(machines, nodes, monkeypatch):
    one, other = nodes
    key = one.ask("POST", "/api/v1/extract", request(sentence(88) + " Reviewed."))[1]["idempotencyKey"]
    view = other.ask("GET", f"/api/v1/runs/{key}/view")[1]
    assert view["ontology"] is not None
    assert view["text"].startswith("Person88")
    names = {entity["id"]: entity["name"] for entity in view["entities"]}
    said = view["relations"][0]
    statement = {
        "subject": {"name": names[said["subject"]], "id": said["subject"]},
        "predicate": said["predicate"],
        "object": {"name": names[said["object"]], "id": said["object"]},
    }
    status, answer = one.ask(
        "POST", f"/api/v1/runs/{key}/decisions", {"action": "reject", "statement": statement, "reason": "a test"}
    )
    assert status in (200, 201), answer
    assert len(other.ask("GET", f"/api/v1/runs/{key}/view?version=reviewed")[1]["relations"]) == 0
    for name, value in machines.s3.credentials.items():
        monkeypatch.setenv(name, value)
    objects = open_objects(machines.s3.url)
    assert list(objects.list("reviews"))
    assert other.ask("DELETE", f"/api/v1/runs/{key}")[0] == 204
    assert not list(objects.list("reviews"))
    assert "run-removed" in "".join((objects.get(found.name) or b"").decode() for found in objects.list("audit"))


def test_an_ontology_that_is_updated_at_one_node_is_the_new_one_everywhere(nodes):
    one, other = nodes
    text = "Kofi Baker works for Umbrella Robotics."
    first = other.ask("POST", "/api/v1/extract", {"text": text, "ontologyId": "company"})[1]
    changed = TURTLE + b"\n<https://sameas.dev/example/company#Later> a <http://www.w3.org/2002/07/owl#Class> .\n"
    assert one.ask("PUT", "/api/v1/ontologies/company", changed)[1]["changed"]
    until(lambda: other.ask("GET", "/api/v1/ontologies/company")[1]["version"] != first["ontologyVersion"])
    second = other.ask("POST", "/api/v1/extract", {"text": text, "ontologyId": "company"})[1]
    assert (second["cacheHit"], second["status"]) == (False, "complete")
    assert second["ontologyVersion"] != first["ontologyVersion"]
    assert one.ask("PUT", "/api/v1/ontologies/company", TURTLE)[1]["changed"]


def test_a_run_whose_message_is_gone_is_sent_again(machines, nodes):
    for worker in machines.workers:
        worker.kill()
    key = accepted(nodes[0], "Ada Long works for Initech Robotics. Lost message.")
    environment = {**machines.workers[0].environment()}
    purged = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "sameas.cluster.app", "purge", "-f", "-Q", "sameas"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=True,
    )
    assert "Purged" in purged.stdout
    for worker in machines.workers:
        worker.start()
    until(lambda: nodes[1].ask("GET", f"/api/v1/runs/{key}")[1].get("status") == "complete")


def test_the_usual_tools_of_celery_see_the_workers(machines, nodes):
    asked = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "sameas.cluster.app", "inspect", "registered", "--json", "-t", "20"],
        env={**machines.workers[0].environment()},
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=True,
    )
    registered = json.loads(asked.stdout)
    assert len(registered) == len(machines.workers)
    assert all("sameas.run" in tasks for tasks in registered.values())


def test_what_waits_and_who_is_busy_are_metrics(machines, nodes):
    gate = threading.Event()
    machines.model.rescript(held_by(gate))
    before = len(machines.model.calls)
    key = accepted(nodes[0], sentence(55) + " Measured.")
    machines.model.wait_for_calls(before + 1, within_seconds=WITHIN)

    def waits():
        said = nodes[1].ask("GET", "/metrics")[1]
        return "sameas_runs_waiting 1.0" in said and 'sameas_queue_length{queue="sameas"}' in said

    until(waits)
    busy = [worker.metrics() for worker in machines.workers]
    assert sorted('sameas_worker_slots{state="used"} 1.0' in said for said in busy) == [False, True]
    gate.set()
    until(lambda: nodes[1].ask("GET", f"/api/v1/runs/{key}")[1].get("status") == "complete")


def test_a_folder_is_read_by_workers_and_again_only_what_is_missing(machines, nodes, tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text(sentence(200 + number % 8))
    (tmp_path / "company.ttl").write_bytes(TURTLE)
    environment = {**nodes[0].environment(), "SAMEAS_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "sameas.cli", "extract", str(folder), "-o", str(tmp_path / "company.ttl")]
    command += ["--workers", "celery", "--model", "tiny", "--out", str(tmp_path / "out")]

    def run():
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WITHIN, check=False)

    # One that fails costs the others nothing; it is named with its reason, and the next time it alone is done.
    (folder / "poison.txt").write_text(sentence(250))
    machines.model.rescript(
        lambda call: status(400, message="no such thing") if "Person250" in call.user else ORACLE(call)
    )
    before = len(machines.model.calls)
    failed = run()
    assert failed.returncode != 0
    assert failed.stderr.count("complete") + failed.stderr.count("replayed") >= 12
    why = [line for line in failed.stderr.splitlines() if "poison.txt: " in line and "no such thing" in line]
    assert len(why) == 1, failed.stderr
    # Equal files cost once.
    asked = Counter(marker(call)[1] for call in machines.model.calls[before:])
    assert {count for person, count in asked.items() if person != "250"} == {2}
    assert len(asked) == 8 + 1
    machines.model.rescript(ORACLE)
    before = len(machines.model.calls)
    mended = run()
    assert mended.returncode == 0, mended.stderr
    assert len(list((tmp_path / "out").iterdir())) == 13
    assert {marker(call)[1] for call in machines.model.calls[before:]} == {"250"}


def test_a_collection_is_filled_by_workers(machines, nodes, tmp_path):
    folder = tmp_path / "inbox"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(sentence(300 + number))
    (tmp_path / "company.ttl").write_bytes(TURTLE)
    environment = {**nodes[0].environment(), "SAMEAS_HOME": str(tmp_path / "home")}

    def sameas(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "sameas.cli", *arguments],
            env=environment, capture_output=True, text=True, timeout=WITHIN, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    sameas("collection", "create", "press", "--ontology", "company.ttl")
    before = len(machines.model.calls)
    said = json.loads(sameas("sync", "press", "inbox", "--workers", "celery", "--model", "tiny", "--json"))
    assert said["summary"]["added"] == 5, said
    assert len(machines.model.calls) - before == 2 * 5
    assert "Acme301 Robotics" in sameas("find", "press", "Acme301 Robotics")


def test_a_worker_that_is_told_to_stop_hands_over_what_it_cannot_finish(machines, nodes):
    gate = threading.Event()
    script = held_by(gate)
    machines.model.rescript(script)
    before = len(machines.model.calls)
    machines.workers[1].kill()
    key = accepted(nodes[0], sentence(77) + " Drained.")
    machines.model.wait_for_calls(before + 1, within_seconds=WITHIN)
    machines.workers[1].start()
    stopped = machines.workers[0]
    os.kill(stopped.pid, signal.SIGTERM)
    until(lambda: not stopped.running)
    gate.set()
    machines.model.rescript(ORACLE)
    until(lambda: nodes[1].ask("GET", f"/api/v1/runs/{key}")[1].get("status") == "complete")


def test_a_message_whose_run_finds_no_objects_is_put_back_and_taken_again(machines, nodes):
    is_put_back_and_taken_again(machines)


def is_put_back_and_taken_again(machines):
    objects, nodes = machines.proxies[-1], machines.nodes
    for worker in machines.workers:
        worker.kill()
    text = sentence(78) + " Put back."
    key = accepted(nodes[0], text)
    # Nobody looks for runs whose message is gone.
    for node in nodes:
        node.kill()
    objects.reset()
    try:
        machines.workers[0].start()
        until(lambda: "is tried again in a moment" in machines.workers[0].log, within=2 * WITHIN)
    finally:
        objects.heal()
    with Engine(open_store(machines.redis.url)) as engine:
        until(lambda: is_done(engine.read("extraction", key, tenant="", namespace="content")), within=2 * WITHIN)


def is_done(record):
    return record is not None and record.state is State.DONE


def test_a_short_storm_loses_and_doubles_nothing(machines, nodes):
    storm = ClusterStorm(
        machines, seconds=5.0, requests=60, victims=("worker", "connections", "redis", "api"), every=1.0
    )
    report = storm.run()
    assert report.kills.total() >= 2
    assert report.kills["connections"]
    assert report.is_clean, report
    assert report.answered == report.asked == 60


def test_redis_is_a_broker_too():
    with ExitStack() as stack:
        machines = Machines(stack, workers=1, broker="redis", settings={}, with_proxies=True)
        one, other = machines.nodes
        assert one.ask("POST", "/api/v1/extract", request(document(2)))[1]["status"] == "complete"
        assert other.ask("POST", "/api/v1/extract", request(document(2)))[1]["cacheHit"]
        storm = ClusterStorm(machines, seconds=2.0, requests=20, victims=("worker",), every=1.0)
        report = storm.run()
        assert report.is_clean, report
        assert report.answered == 20
        machines.model.rescript(ORACLE)
        is_put_back_and_taken_again(machines)


def test_a_broker_without_a_place_for_objects_is_refused_with_what_to_set():
    node = ApiNode({"SAMEAS_BROKER": "amqp://localhost//"})
    ended = subprocess.run(
        node.command(), env={**node.environment()}, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    assert ended.returncode == 2
    assert "broker needs objects" in ended.stderr
    assert isinstance(WorkerNode({}), WorkerNode)
