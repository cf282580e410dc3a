"""What operators do to several machines: a broker that is down, two releases at once, Flower, backup and restore."""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from sameas.objects import open_objects
from tests.integration.model_path import ORACLE, document, sentence
from tests.integration.test_cluster import WITHIN, accepted, request, until
from tests.servers.cluster import ApiNode, WorkerNode
from tests.servers.http_faults import HttpFaults
from tests.servers.model_server import ModelServer
from tests.servers.port import free_port
from tests.servers.postgres import PostgresServer, postgres_programs
from tests.servers.program import program_or_skip
from tests.servers.redis import RedisServer
from tests.servers.s3 import S3Server
from tests.storm.cluster_storm import Machines
from tests.unit.server.house import TURTLE


@pytest.fixture(scope="module")
def machines():
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        made = Machines(stack, workers=2, broker="rabbitmq", settings={})
        made.model.rescript(ORACLE)
        yield made


def status_of(node, key):
    return node.ask("GET", f"/api/v1/runs/{key}")[1].get("status")


def test_runs_that_are_accepted_while_the_broker_is_down_end_when_it_is_back(machines):
    machines.broker.kill()
    keys = [accepted(machines.nodes[number % 2], f"{sentence(500 + number)} Broker down.") for number in range(4)]
    assert {status_of(machines.nodes[0], key) for key in keys} == {"pending"}
    machines.broker.start()
    for key in keys:
        until(lambda key=key: status_of(machines.nodes[1], key) == "complete", within=2 * WITHIN)


def test_a_request_of_a_later_release_is_left_to_it_and_a_longer_message_is_understood(machines, monkeypatch):
    for name, value in machines.s3.credentials.items():
        monkeypatch.setenv(name, value)
    objects = open_objects(machines.s3.url)
    node = machines.nodes[0]
    for worker in machines.workers:
        worker.kill()
    later, known = (accepted(node, f"{sentence(number)} Upgrade.") for number in (520, 521))
    (name,) = [one.name for one in objects.list("requests") if later in one.name]
    written = json.loads(objects.get(name))
    changed = {**written, "form": written["form"] + 1, "shard": 3}
    objects.put(name, json.dumps(changed).encode())
    for worker in machines.workers:
        worker.start()
    send = f"""
from sameas.cluster.broker import QUEUE, RUN, make_app
import os
app = make_app(os.environ["SAMEAS_BROKER"])
for key in {[later, known]!r}:
    app.send_task(RUN, args=("", key, "a word of a later release"), kwargs={{"shard": 3}}, queue=QUEUE)
app.close()
"""
    subprocess.run([sys.executable, "-c", send], env={**machines.workers[0].environment()}, check=True, timeout=WITHIN)
    until(lambda: status_of(node, known) == "complete")
    until(lambda: any("has a later form" in worker.log for worker in machines.workers))
    # Nothing of it was lost, and its own release does it.
    assert json.loads(objects.get(name)) == changed
    objects.put(name, json.dumps(written).encode())
    until(lambda: status_of(node, later) == "complete", within=2 * WITHIN)


def test_what_an_update_superseded_is_marked_at_every_node_and_where_it_is_fetched_later(machines):
    one, other = machines.nodes
    text = f"{sentence(530)} Superseded."
    key = one.ask("POST", "/api/v1/extract", request(text))[1]["idempotencyKey"]
    assert status_of(other, key) == "complete"

    def marked(node):
        path = next((node.folder / "home" / "runs").rglob(f"*{key}*/metadata.json"))
        return json.loads(path.read_bytes()).get("supersededAt")

    assert marked(other) is None
    changed = TURTLE + b"\n<https://sameas.dev/example/company#Newer> a <http://www.w3.org/2002/07/owl#Class> .\n"
    assert one.ask("PUT", "/api/v1/ontologies/company", changed)[1]["changed"]
    until(lambda: marked(other))
    # Who fetches it later finds it marked.
    other.kill()
    shutil.rmtree(other.folder / "home" / "runs")
    other.start()
    assert other.ask("GET", f"/api/v1/runs/{key}")[0] == 200
    assert marked(other)
    assert one.ask("PUT", "/api/v1/ontologies/company", TURTLE)[1]["changed"]


def test_flower_lists_the_workers(machines):
    port = free_port()
    command = [sys.executable, "-m", "celery", "-A", "sameas.cluster.app", "flower", "--address=127.0.0.1"]
    environment = {**machines.workers[0].environment(), "FLOWER_UNAUTHENTICATED_API": "true"}
    flower = subprocess.Popen(
        [*command, f"--port={port}"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def workers():
        try:
            asked = f"http://127.0.0.1:{port}/api/workers?refresh=1"
            with urllib.request.urlopen(asked, timeout=20.0) as reply:
                return [name for name in json.loads(reply.read()) if name.startswith("sameas-")]
        except OSError:
            return []

    try:
        assert until(lambda: len(found := workers()) >= 2 and found, within=2 * WITHIN)
    finally:
        flower.terminate()
        flower.wait(WITHIN)


@contextmanager
def house(postgres, s3, model):
    """An API node and a worker with all records in PostgreSQL, and a broker of their own."""
    with ExitStack() as stack:
        broker = stack.enter_context(RedisServer(appendonly="always"))
        settings = {
            "SAMEAS_STORE": postgres.url,
            "SAMEAS_DATABASE": postgres.url,
            "SAMEAS_OBJECTS": s3.url,
            "SAMEAS_BROKER": broker.url,
            "SAMEAS_MODELS": model.address("tiny"),
            **s3.credentials,
        }
        node, worker = ApiNode(settings), WorkerNode(settings)
        for one in (node, worker):
            stack.callback(one.close)
            one.start()
        yield node


def test_runs_end_with_their_results_while_objects_are_slow_and_refused_now_and_then():
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        model = stack.enter_context(ModelServer(ORACLE))
        postgres, s3 = stack.enter_context(PostgresServer()), stack.enter_context(S3Server())
        faults = stack.enter_context(HttpFaults(port=s3.port))
        objects = SimpleNamespace(url=s3.url, credentials={**s3.credentials, "AWS_ENDPOINT_URL": faults.url})
        with house(postgres, objects, model) as node:
            assert node.ask("PUT", "/api/v1/ontologies/company", TURTLE)[0] == 201
            faults.each, faults.seconds = 3, 0.02
            asked = [request(sentence(number)) for number in (910, 911)]
            keys = [node.ask("POST", "/api/v1/extract", body)[1]["idempotencyKey"] for body in asked]
            for number, key in enumerate(keys, 910):
                assert status_of(node, key) == "complete"
                assert f"Person{number} Stone" in node.ask("GET", f"/api/v1/runs/{key}/graph?format=turtle")[1]
            assert faults.refused > 10
        assert len(model.calls) == 2 * len(keys)


def test_a_dump_and_a_copy_of_the_objects_are_a_backup(tmp_path):
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        model = stack.enter_context(ModelServer(ORACLE))
        first, copied = stack.enter_context(PostgresServer()), stack.enter_context(PostgresServer())
        objects, copies = stack.enter_context(S3Server()), stack.enter_context(S3Server())
        with house(first, objects, model) as node:
            assert node.ask("PUT", "/api/v1/ontologies/company", TURTLE)[0] == 201
            status, before = node.ask("POST", "/api/v1/extract", request(document(3)))
            assert (status, before["cacheHit"]) == (200, False)
            # The tables first: what they name is in the objects then.
            _tool("pg_dump", "--no-owner", f"--file={tmp_path}/dump.sql", _plain(first.url))
            shutil.copytree(objects.folder / "buckets", copies.folder / "buckets", dirs_exist_ok=True)
        calls = len(model.calls)
        _tool("psql", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={tmp_path}/dump.sql", _plain(copied.url))
        with house(copied, copies, model) as node:
            status, after = node.ask("POST", "/api/v1/extract", request(document(3)))
            assert (status, after["cacheHit"]) == (200, True)
            same = ("idempotencyKey", "ontologyVersion", "entities", "relations")
            assert [after[name] for name in same] == [before[name] for name in same]
            key = before["idempotencyKey"]
            assert "Person1 Stone" in node.ask("GET", f"/api/v1/runs/{key}/graph?format=turtle")[1]
            # And it goes on from there.
            assert node.ask("POST", "/api/v1/extract", request(sentence(901)))[1]["status"] == "complete"
        assert len(model.calls) == calls + 2


def _plain(url):
    return url.replace("postgresql+psycopg://", "postgresql://")


def _tool(name, *arguments):
    done = subprocess.run(
        [str(postgres_programs() / name), *arguments], env=os.environ, capture_output=True, text=True, timeout=WITHIN
    )
    assert done.returncode == 0, done.stderr
