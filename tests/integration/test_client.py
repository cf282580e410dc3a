"""The client against a running service, also when the connection between them breaks."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

from sameas.client import AsyncClient, Client, ServiceError, ServiceUnreachable
from sameas.extraction.events.events import ExtractionCancelled, ExtractionCompleted, ExtractionStarted, ProgressEvent
from sameas.server.schemas import ExtractAnswer, RunAccepted
from tests.servers.proxy import FaultProxy
from tests.unit.server.house import LONG, SLOW, TEXT, TURTLE, WITHIN, Hold, Running, running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service")) as one:
        yield one


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with Client(service.url) as one:
        yield one


def port_of(service: Running) -> int:
    port = urlsplit(service.url).port
    assert port is not None
    return port


def test_a_text_becomes_a_graph_once(client: Client) -> None:
    text = f"{TEXT} Once."
    first, second = (client.extract(text, ontology="company", document="a.txt") for _ in range(2))
    assert (first.cache_hit, second.cache_hit) == (False, True)
    assert (first.entities, first.relations) == (second.entities, second.relations)
    assert {entity.name for entity in first.entities} >= {"Anna Stone", "Acme Ltd"}
    assert client.run(first.idempotency_key)["status"] == "complete"
    assert b"Anna Stone" in client.graph(first.idempotency_key)
    assert client.graph(first.idempotency_key, output="jsonld").startswith(b"[{")
    assert first.idempotency_key in {run["idempotencyKey"] for run in client.runs().runs}
    assert client.key_of(text, ontology="company").key == first.idempotency_key
    assert client.estimate(text, ontology="company").cache_hit
    client.delete(first.idempotency_key)
    with pytest.raises(ServiceError) as refused:
        client.run(first.idempotency_key)
    assert refused.value.status == 404


def test_a_key_of_ones_own_is_honoured(client: Client) -> None:
    first = client.extract(f"{TEXT} Mine.", ontology="company", idempotency_key="order-1")
    assert client.extract(f"{TEXT} Mine.", ontology="company", idempotency_key="order-1") == first
    with pytest.raises(ServiceError) as refused:
        client.extract(f"{TEXT} Other.", ontology="company", idempotency_key="order-1")
    assert refused.value.status == 422


def test_ontologies_come_and_go(client: Client) -> None:
    put = client.put_ontology("mine", TURTLE)
    assert (put.created, put.names) == (True, ("mine",))
    assert not client.put_ontology("mine", TURTLE).changed
    assert client.ontology("mine").version == put.version
    assert "mine" in {name for entry in client.ontologies() for name in entry.names}
    assert client.ontology(put.id).version == put.version
    assert client.validate_ontology(TURTLE).valid
    assert not client.validate_ontology(b"this is no Turtle").valid
    client.delete_ontology("mine")
    assert "mine" not in {name for entry in client.ontologies() for name in entry.names}


def test_a_stream_gives_every_event_of_a_run(client: Client) -> None:
    events = list(client.stream(f"{TEXT} Stream.", ontology="company"))
    assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1], ExtractionCompleted)
    key = events[0].request_id
    assert list(client.events(key, after=5)) == events[5:]
    assert list(client.events(key, after=len(events))) == []
    assert isinstance(client.start(f"{TEXT} Stream.", ontology="company"), ExtractAnswer)


def test_a_stream_goes_on_after_dropped_connections(tmp_path: Path) -> None:
    hold = Hold(after=1)
    with running(tmp_path, hold=hold) as service, FaultProxy(port=port_of(service)) as proxy:
        with Client(proxy.url_of(service.url), tries=20) as client:
            started = client.start(LONG, ontology="company", params=SLOW)
            assert isinstance(started, RunAccepted)
            events: list[ProgressEvent] = []
            for event in client.events(started.idempotency_key):
                events.append(event)
                if len(events) in (3, 40):
                    proxy.reset()
                    threading.Timer(0.2, proxy.heal).start()
                    hold.let_go()
            assert [event.sequence_number for event in events] == list(range(1, len(events) + 1))
            assert isinstance(events[-1], ExtractionCompleted)
            assert list(client.events(started.idempotency_key)) == events


def test_a_run_is_cancelled_and_keeps_what_it_has(tmp_path: Path) -> None:
    hold = Hold()
    with running(tmp_path, hold=hold) as service, Client(service.url) as client:
        started = client.start(LONG, ontology="company", params=SLOW)
        assert hold.reached.wait(WITHIN)
        assert client.cancel(started.idempotency_key).outcome == "cancelled"
        assert isinstance(list(client.events(started.idempotency_key))[-1], ExtractionCancelled)


def test_tasks_have_the_same_client(service: Running) -> None:
    async def use() -> None:
        async with AsyncClient(service.url) as client:
            text = f"{TEXT} Tasks."
            events = [event async for event in client.stream(text, ontology="company")]
            assert isinstance(events[-1], ExtractionCompleted)
            answer = await client.extract(text, ontology="company")
            assert answer.cache_hit
            assert [event async for event in client.events(answer.idempotency_key, after=5)] == events[5:]
            assert (await client.graph(answer.idempotency_key, output="csv")).startswith(b"kind,subject")
            with pytest.raises(ServiceError):
                await client.run("sha256-" + "f" * 64)

    asyncio.run(use())


def test_a_service_that_is_not_there_is_named(service: Running) -> None:
    with FaultProxy(port=port_of(service)) as proxy, Client(proxy.url_of(service.url), tries=2) as client:
        proxy.cut()
        with pytest.raises(ServiceUnreachable, match="Is it running"):
            client.ontologies()
        with pytest.raises(ServiceUnreachable, match="Ask for them again"):
            list(client.events("sha256-" + "0" * 64))


def remote(service: Running, *arguments: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "sameas.cli", "remote", *arguments, "--server", service.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **variables},
    )
    assert done.returncode == code, done.stderr
    return done


def test_the_command_line_uses_a_service_elsewhere(service: Running, tmp_path: Path) -> None:
    (tmp_path / "mine.ttl").write_bytes(TURTLE)
    assert "new " in remote(service, "put", "afar", str(tmp_path / "mine.ttl")).stdout
    assert "unchanged" in remote(service, "put", "afar", str(tmp_path / "mine.ttl")).stdout
    done = remote(service, "extract", f"{TEXT} Afar.", "--ontology", "afar")
    assert "Anna Stone" in done.stdout
    assert "complete, run " in done.stderr
    (key,) = {run["idempotencyKey"] for run in service.client.get("/api/v1/runs").json()["runs"][:1]}
    lines = remote(service, "events", key).stdout.splitlines()
    assert '"extraction_completed"' in lines[-1]
    assert remote(service, "cancel", key).stdout == "ended\n"


def test_the_command_line_says_what_a_service_refused(service: Running) -> None:
    assert "404" in remote(service, "extract", TEXT, "--ontology", "unheard-of", code=1).stderr
    both = {"SAMEAS_SERVICE_TOKEN": "a", "SAMEAS_SERVICE_KEY": "b"}
    assert "Unset one" in remote(service, "cancel", "x", code=2, **both).stderr


class _Answering(BaseHTTPRequestHandler):
    """Says what it was told to, one answer for each request, the last again and again."""

    answers: ClassVar[list[tuple[int, bytes]]] = []
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("last-event-id", ""))
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def answering(*answers: tuple[int, bytes]) -> Iterator[Client]:
    _Answering.answers, _Answering.asked = list(answers), []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            with Client(f"http://127.0.0.1:{server.server_address[1]}", tries=3) as client:
                yield client
        finally:
            server.shutdown()


def _frame(number: int, kind: type[ExtractionStarted] | type[ExtractionCancelled]) -> bytes:
    more: dict[str, Any] = {"reason": "r"} if kind is ExtractionCancelled else {}
    event = kind(event_id="e", request_id="k", timestamp=0, progress=0.0, sequence_number=number, **more)
    return b"id: %d\ndata: %s\n\n" % (number, event.to_json())


def test_a_service_that_is_being_restarted_is_asked_again_for_the_rest_of_a_stream() -> None:
    first, last = _frame(1, ExtractionStarted), _frame(2, ExtractionCancelled)
    with answering((503, b"{}"), (200, first + last[:-9]), (502, b"bad gateway"), (200, first + last)) as client:
        assert [event.sequence_number for event in client.events("k")] == [1, 2]
        assert _Answering.asked == ["", "", "1", "1"]


@pytest.mark.parametrize("answer", [(503, b"{}"), (200, b""), (200, b": alive\n\n")])
def test_a_stream_that_never_goes_on_is_given_up(answer: tuple[int, bytes]) -> None:
    with answering(answer) as client, pytest.raises(ServiceUnreachable):
        list(client.events("k"))
    assert len(_Answering.asked) == 3


@pytest.mark.parametrize("answer", [(404, b"{}"), (302, b""), (200, b"data: {\n\n")])
def test_a_stream_that_is_refused_or_nonsense_is_an_error_at_once(answer: tuple[int, bytes]) -> None:
    with answering(answer) as client, pytest.raises(ServiceError):
        list(client.events("k"))
    assert len(_Answering.asked) == 1


def test_a_run_whose_events_are_gone_is_said_to_be_there_and_complete_once(tmp_path: Path) -> None:
    with running(tmp_path) as service, Client(service.url) as client:
        key = client.extract(TEXT, ontology="company").idempotency_key
        (tmp_path / "runs" / key / "events.jsonl").unlink()
        assert [event.type for event in client.events(key)] == ["cache_hit", "extraction_completed"]
