"""The steps of the Dockerfile are done, and what comes of them runs: without an engine, in root folders of their own. So do
the commands, probes and settings of the manifests for Kubernetes, on real servers.
"""

import json
import socket
import time
import urllib.request
from contextlib import ExitStack

import pytest

from sameas.cluster.broker import Broker
from tests.servers.image import Image, NoNamespacesError
from tests.servers.port import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.program import program_or_skip
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer
from tests.servers.s3 import S3Server
from tests.unit.deploy.test_kubernetes import CONFIG, container

WITHIN = 60.0
OPEN = {"SAMEAS_ALLOW_REMOTE": "true", "SAMEAS_EXTRACTOR": "lexicon"}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    try:
        with Image(tmp_path_factory.mktemp("image")) as built:
            yield built
    except NoNamespacesError as trouble:
        pytest.skip(str(trouble))


def until(happened):
    ends_at = time.monotonic() + WITHIN
    while not (found := happened()):
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.2)
    return found


ASK = """
import json, sys, urllib.request
method, path, kind, body = sys.argv[1:]
asked = urllib.request.Request("http://127.0.0.1:8080" + path, method=method, data=body.encode() or None,
                               headers={"Content-Type": kind})
with urllib.request.urlopen(asked, timeout=30) as reply:
    sys.stdout.write(reply.read().decode())
"""


def test_a_container_of_the_image_starts_is_well_extracts_and_ends_as_it_is_told(image):
    with image.container(env=OPEN, own_network=True) as started:
        until(lambda: started.execute(*started.healthcheck()).returncode == 0)

        def ask(method, path, kind="application/json", body=""):
            done = started.execute("python", "-c", ASK, method, path, kind, body)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        assert ask("GET", "/health/ready")["status"] == "ok"
        turtle = """
            @prefix : <https://sameas.dev/test#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
            @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
            <https://sameas.dev/test> a owl:Ontology .
            :Person a owl:Class . :Company a owl:Class .
            :worksFor a owl:ObjectProperty ; rdfs:domain :Person ; rdfs:range :Company .
        """
        ask("PUT", "/api/v1/ontologies/test", "text/turtle", turtle)
        body = json.dumps({"text": "Ada Long works for Initech Robotics.", "ontologyId": "test"})
        assert ask("POST", "/api/v1/extract", body=body)["status"] == "complete"
        assert ask("POST", "/api/v1/extract", body=body)["cacheHit"]
        assert started.stop(WITHIN) == 0, started.log


def test_what_runs_is_a_user_without_rights_that_writes_its_own_folders_only(image):
    said = "import os; print(os.getuid(), os.getgid(), os.getgroups())"
    tried = "import sys; open(sys.argv[1], 'w').close()"
    with image.container(env=OPEN, own_network=True) as started:
        assert started.execute("python", "-c", said).stdout.split() == ["10001", "10001", "[]"]
        rights = started.execute("cat", "/proc/self/status").stdout
        assert {line.split()[1] for line in rights.splitlines() if line.startswith("Cap")} == {"0" * 16}
        written = {path: started.execute("python", "-c", tried, path).returncode for path in (
            "/data/x", "/tmp/x", "/x", "/opt/sameas/x", "/opt/sameas/lib/python3.11/site-packages/sameas/x", "/usr/x",
        )}  # fmt: skip
    assert [path for path, code in written.items() if code == 0] == ["/data/x", "/tmp/x"]


def test_the_reader_is_in_the_image_and_nothing_of_tests(image):
    with image.container(env=OPEN, own_network=True) as started:
        found = "from sameas.extraction.extractors.embedded import find_weights; print(find_weights() is not None)"
        assert started.execute("python", "-c", found).stdout.strip() == "True"
        assert started.execute("python", "-c", "import pytest").returncode == 1
        assert started.execute("python", "-c", "import sameas; print(sameas.__file__)").stdout.startswith(
            "/opt/sameas/"
        )


def test_a_setting_that_is_wrong_ends_the_container_with_what_to_do(image):
    with image.container(env={}, own_network=True) as started:
        # Anybody could reach it, and nobody said that this is meant.
        until(lambda: started.has_ended)
        assert started.stop(WITHIN) == 2
        assert "say allow_remote" in started.log


@pytest.fixture(scope="module")
def secret(image):
    """What the manifests take from the secret `sameas`: where the servers are, and who may speak to them."""
    with ExitStack() as stack:
        stack.enter_context(program_or_skip())
        redis, broker, postgres, objects = (
            stack.enter_context(server)
            for server in (RedisServer(appendonly="always"), RabbitMQServer(), PostgresServer(), S3Server())
        )
        yield {
            "SAMEAS_STORE": redis.url,
            "SAMEAS_EVENTS": redis.url,
            "SAMEAS_DATABASE": postgres.url,
            "SAMEAS_BROKER": broker.url,
            "SAMEAS_OBJECTS": objects.url,
            "SAMEAS_API_KEY_SECRET": "only-for-this-test",
            **objects.credentials,
        }


def env_of(name, secret, **own):
    """The environment of a pod. Only its ports are others, since this machine has one network for all."""
    given = {one["name"]: one["value"] for one in container(name).get("env", ())}
    return {**CONFIG, **secret, **given, "HOSTNAME": socket.gethostname(), **own}


def test_the_probes_of_the_manifests_find_a_server_well_and_its_signal_ends_it(image, secret):
    port = free_port()
    said = container("api")
    with image.container(*said["args"], env=env_of("api", secret, SAMEAS_PORT=str(port))) as started:

        def answers(probe):
            assert not started.has_ended
            path = said[probe]["httpGet"]["path"]
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5.0) as reply:
                    return reply.status == 200
            except OSError:
                return False

        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            until(lambda probe=probe: answers(probe))
        assert started.execute(*said["lifecycle"]["preStop"]["exec"]["command"]).returncode == 0
        assert started.stop(WITHIN) == 0, started.log


def test_the_probe_and_the_drain_of_the_manifests_are_understood_by_a_worker(image, secret):
    said, broker = container("worker"), Broker(secret["SAMEAS_BROKER"])
    port = free_port()
    with image.container(*said["args"], env=env_of("worker", secret, SAMEAS_METRICS_PORT=str(port))) as started:

        def is_well(probe):
            return started.execute(*said[probe]["exec"]["command"]).returncode == 0

        assert not is_well("startupProbe")
        until(lambda: started.has_ended or is_well("startupProbe"))
        assert not started.has_ended
        assert is_well("readinessProbe")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5.0) as reply:
            assert "sameas_worker_slots" in reply.read().decode()
        assert broker.look().consumers == 1
        assert started.execute(*said["lifecycle"]["preStop"]["exec"]["command"]).returncode == 0
        until(lambda: broker.look().consumers == 0)
        assert started.stop(WITHIN) == 0, started.log
    broker.close()
