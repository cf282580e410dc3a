"""Servers that are killed, stopped and started again, and several at one home: what one does, all know."""

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from sameas.server.tenants.broadcast import EVERY
from tests.servers.port import free_port
from tests.unit.server import held_server
from tests.unit.server.house import LONG, REQUEST, SLOW, TURTLE, WITHIN, read_events, with_company

pytest_plugins = ["tests.servers.fixtures"]

# A server is forked off a process that has loaded everything: it starts at once, and shares nothing with this one.
SERVERS = multiprocessing.get_context("forkserver")
SERVERS.set_forkserver_preload(["tests.unit.server.held_server"])
SLOW_REQUEST = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW}
CHANGED = TURTLE.replace(b'"sodium"@en', b'"soda"@en')


@contextmanager
def server(home, *, store="", lease=1.0, grace=5.0):
    """A server in a process of its own; killed at the end if it still runs."""
    port = free_port()
    process = SERVERS.Process(target=held_server.main, args=(home, port, store, lease, grace))
    process.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WITHIN) as client:
            _until(lambda: _answers(client), process)
            yield client, process
    finally:
        process.kill()
        process.join(WITHIN)


def _answers(client):
    try:
        return client.get("/health/ready").status_code == 200
    except httpx.TransportError:
        return False


def _until(condition, process=None, within=WITHIN):
    ends_at = time.monotonic() + within
    while not condition():
        assert process is None or process.is_alive(), "the server ended"
        assert time.monotonic() < ends_at, "it did not happen in time"
        time.sleep(0.01)


def _under_way(client):
    """How many requests are, this one among them."""
    found = [line for line in client.get("/metrics").text.splitlines() if line.startswith("sameas_requests_under_way ")]
    return float(found[0].split()[1])


def begin(client, home):
    """A run that is held in its middle."""
    (home / "hold").touch()
    accepted = client.post("/api/v1/extract", json=SLOW_REQUEST, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    _until(lambda: (home / "reached").exists())
    return accepted.json()["idempotencyKey"]


def some_events(client, key, count):
    with client.stream("GET", f"/api/v1/runs/{key}/events") as stream:
        events = read_events(stream.iter_lines())
        return [next(events) for _ in range(count)]


def events_after(client, key, number):
    with client.stream("GET", f"/api/v1/runs/{key}/events", headers={"Last-Event-ID": str(number)}) as stream:
        assert stream.status_code == 200
        return list(read_events(stream.iter_lines()))


def check_whole(seen, rest):
    numbers = [number for number, _, _ in (*seen, *rest)]
    assert numbers == list(range(1, len(numbers) + 1)), "there is a gap or a repeat"
    assert rest[-1][1] == "extraction_completed"


def test_a_killed_server_is_started_again_and_its_run_goes_on_without_a_gap(tmp_path):
    home = with_company(tmp_path)
    with server(home) as (client, process):
        key = begin(client, home)
        seen = some_events(client, key, 6)
        process.kill()
        process.join(WITHIN)
    (home / "hold").unlink()
    with server(home) as (client, _):
        check_whole(seen, events_after(client, key, 6))
        run = client.get(f"/api/v1/runs/{key}").json()
        assert (run["status"], run["attempt"]) == ("complete", 2)
        assert client.post("/api/v1/extract", json=SLOW_REQUEST).json()["idempotencyKey"] == key
        _until(lambda: not list((home / "requests").rglob("*.json")))


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["plain", "client-key"])
def test_a_run_is_written_down_before_it_is_accepted(tmp_path, headers):
    home = with_company(tmp_path)
    promised = []
    for number in range(3):
        with server(home) as (client, process):
            request = {**REQUEST, "text": f"Anna Stone works for Acme{number} Ltd."}
            accepted = client.post("/api/v1/extract", json=request, headers={"Prefer": "respond-async", **headers})
            process.kill()
        assert accepted.status_code == 202
        promised.append(accepted.json()["idempotencyKey"])
        headers = {name: value + "x" for name, value in headers.items()}
    with server(home) as (client, process):
        for key in promised:
            _until(lambda key=key: client.get(f"/api/v1/runs/{key}").json().get("status") == "complete", process)


def test_a_server_that_is_stopped_hands_its_run_over_to_another_at_once(tmp_path):
    home = with_company(tmp_path)
    # A lease that no test waits for: the claim must have been given back.
    with server(home, lease=600.0, grace=0.0) as (first, process):
        key = begin(first, home)
        seen = some_events(first, key, 6)
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(first.post, "/api/v1/extract", json=SLOW_REQUEST)
            _until(lambda: _under_way(first) > 1)
            process.terminate()
            process.join(WITHIN)
            assert process.exitcode == 0
            # Whoever waited is told to come back, as whoever comes now.
            assert waiting.result(WITHIN).json()["type"] == "urn:sameas:problem:stopping"
            assert waiting.result().headers["retry-after"]
    (home / "hold").unlink()
    with server(home, lease=600.0) as (second, _):
        check_whole(seen, events_after(second, key, 6))


@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"SAMEAS_STORE": "redis://127.0.0.1:1/0"}, 5, "Redis cannot answer"),
        ({"SAMEAS_HOME": "/proc/nowhere"}, 2, "/proc/nowhere"),
        ({}, 7, "is in use by another program"),
        ({"SAMEAS_STORE": "nonsense://x"}, 2, "SAMEAS_STORE: store must be a URL, such as"),
        ({"SAMEAS_DATABASE": "mysql://localhost/x"}, 2, "SAMEAS_DATABASE: database must be a URL, such as"),
        ({"SAMEAS_HOST": "192.0.2.1", "SAMEAS_ALLOW_REMOTE": "true"}, 2, "cannot listen on 192.0.2.1"),
    ],
    ids=["store", "home", "port", "no-store", "no-database", "address"],
)
def test_a_refusal_to_start_is_one_line_and_a_code_of_its_own(tmp_path, environment, code, said):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = subprocess.run(
            [sys.executable, "-m", "sameas", "serve", "--port", str(taken.getsockname()[1])],
            env={**os.environ, "SAMEAS_HOME": str(tmp_path), **environment},
            capture_output=True,
            text=True,
            timeout=4 * WITHIN,
            check=False,
        )
    assert (ended.returncode, "Traceback" in ended.stderr) == (code, False)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("sameas: ")
    assert said in last


def test_a_server_that_is_stopped_lets_its_runs_finish(tmp_path):
    home = with_company(tmp_path)
    with server(home, grace=WITHIN) as (client, process):
        key = begin(client, home)
        process.terminate()
        (home / "hold").unlink()
        process.join(WITHIN)
        assert process.exitcode == 0
    metadata = json.loads((home / "runs" / key / "metadata.json").read_bytes())
    assert (metadata["status"], metadata["attempt"]) == ("complete", 1)


def test_a_running_server_takes_over_what_another_left(tmp_path):
    home = with_company(tmp_path)
    with server(home) as (first, process), server(home) as (second, _):
        key = begin(first, home)
        seen = some_events(second, key, 4)
        process.kill()
        (home / "hold").unlink()
        check_whole(seen, events_after(second, key, 4))


def test_a_run_of_another_process_is_cancelled(tmp_path):
    home = with_company(tmp_path)
    with server(home, lease=60.0) as (first, _), server(home, lease=60.0) as (second, _):
        key = begin(first, home)
        answer = second.post(f"/api/v1/runs/{key}/cancel")
        assert (answer.status_code, answer.json()["outcome"]) == (202, "requested")
        assert events_after(second, key, 0)[-1][1] == "extraction_cancelled"


@pytest.mark.parametrize("fixture", [None, "redis_url", "postgres_url"], ids=["sqlite", "redis", "postgres"])
def test_an_ontology_updated_in_one_process_is_new_in_the_other(fixture, tmp_path, request):
    store = (
        "" if fixture is None else request.getfixturevalue(fixture).replace("postgresql://", "postgresql+psycopg://")
    )
    home = with_company(tmp_path)
    wanted = {**REQUEST, "ontologyId": "co"}
    with ExitStack() as stack:
        one, other = (stack.enter_context(server(home, store=store))[0] for _ in range(2))
        old = one.put("/api/v1/ontologies/co", content=TURTLE).json()["version"]
        _until(lambda: other.get("/api/v1/ontologies/co").status_code == 200)
        for client in (one, other, other):
            assert client.post("/api/v1/extract", json=wanted).json()["ontologyVersion"] == old
        new = one.put("/api/v1/ontologies/co", content=CHANGED).json()["version"]
        assert new != old
        # The bound that is stated, and what a loaded machine may add to it.
        _until(lambda: other.post("/api/v1/extract", json=wanted).json()["ontologyVersion"] == new, within=EVERY + 5.0)
        assert one.post("/api/v1/extract", json=wanted).json()["ontologyVersion"] == new
        assert other.delete("/api/v1/ontologies/co").status_code == 200
        _until(lambda: one.post("/api/v1/extract", json=wanted).status_code == 404, within=EVERY + 5.0)
