"""Calls over a WebSocket, and over POST for those who have none."""

import json
import socket
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from sameas.server.http.routes.rpc import MAX_BATCH, MAX_IN_FLIGHT
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, WITHIN, Hold, running

SLOW_PAYLOAD = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("rpc")) as one:
        yield one


@contextmanager
def socket_of(service):
    with connect(service.socket_url, open_timeout=WITHIN, close_timeout=WITHIN, max_queue=None) as socket:
        yield socket


def call(tag, payload, **more):
    return json.dumps({"tag": f"extraction.{tag}", "payload": payload, **more})


def receive(socket):
    return json.loads(socket.recv(timeout=WITHIN))


def until_answered(socket, *names):
    """All messages until each of these calls has its result or error."""
    messages, open_calls = [], set(names)
    while open_calls:
        messages.append(receive(socket))
        if messages[-1]["type"] in {"result", "error"}:
            open_calls.discard(messages[-1]["id"])
    return messages


def test_the_example_of_the_source_document_streams_events_and_the_second_time_is_cached(service):
    payload = {"text": "long text about Anna Stone of Acme Ltd.", "ontologyId": "company"}
    with socket_of(service) as socket:
        socket.send(json.dumps({"tag": "extraction.streamExtract", "payload": payload}))
        first = until_answered(socket, "call-1")
        events = [message["event"] for message in first if message["type"] == "event"]
        assert [event["sequenceNumber"] for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["type"] == "extraction_completed"
        assert first[-1]["result"]["cacheHit"] is False
        socket.send(json.dumps({"tag": "extraction.streamExtract", "payload": payload}))
        second = until_answered(socket, "call-2")
        assert [message["event"]["type"] for message in second[:-1]] == ["cache_hit", "extraction_completed"]
        assert second[-1]["result"]["cacheHit"] is True


def test_the_same_call_by_post_gives_lines(service):
    body = call("streamExtract", {"text": "test", "ontologyId": "company"})
    lines = service.client.post("/api/rpc", content=body).text.splitlines()
    assert json.loads(lines[-1])["type"] == "result"
    assert {json.loads(line)["id"] for line in lines} == {"call-1"}


def test_many_streams_share_a_socket_and_are_told_apart_by_id(service):
    with socket_of(service) as socket:
        for name in ("a", "b", 7):
            payload = {"text": f"{TEXT} For {name}.", "ontologyId": "company"}
            socket.send(call("streamExtract", payload, id=name))
        messages = until_answered(socket, "a", "b", 7)
        for name in ("a", "b", 7):
            own = [message for message in messages if message["id"] == name]
            numbers = [message["event"]["sequenceNumber"] for message in own if message["type"] == "event"]
            assert numbers == list(range(1, len(numbers) + 1))
            assert own[-1]["result"]["status"] == "complete"


def test_a_result_is_had_by_content_or_by_key_and_is_null_where_there_is_none(service):
    key = service.client.post("/api/v1/extract", json=REQUEST).json()["idempotencyKey"]
    with socket_of(service) as socket:
        socket.send(call("getResult", REQUEST, id="content"))
        assert receive(socket)["result"]["idempotencyKey"] == key
        socket.send(call("getResult", {"idempotencyKey": key}, id="key"))
        assert receive(socket)["result"]["idempotencyKey"] == key
        socket.send(call("getResult", {"text": "never seen", "ontologyId": "company"}, id="none"))
        assert receive(socket)["result"] is None


def test_errors_are_messages_and_the_socket_stays_open(service):
    with socket_of(service) as socket:
        for sent, code in (
            ("{", "malformed"),
            ("[]", "batch-too-large"),
            (json.dumps([{"tag": "x"}] * (MAX_BATCH + 1)), "batch-too-large"),
            (json.dumps({"tag": "extraction.nothing"}), "tag-unknown"),
            (call("streamExtract", {"text": "a"}), "invalid"),
            (call("streamExtract", {**REQUEST, "after": -1}), "invalid"),
            (call("streamExtract", {"text": "a", "ontologyId": "nobody"}), "not-found"),
            (call("cancel", {"idempotencyKey": "../x"}), "invalid"),
            (call("getResult", REQUEST, id="x" * 300), "invalid"),
        ):
            socket.send(sent)
            message = receive(socket)
            assert message["type"] == "error", sent
            assert message["error"]["type"] == f"urn:sameas:problem:{code}", sent
        socket.send(call("getResult", REQUEST))
        assert receive(socket)["type"] == "result"


def test_a_run_is_cancelled_and_its_stream_ends_with_the_event(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service, socket_of(service) as socket:
        socket.send(call("streamExtract", SLOW_PAYLOAD, id="run"))
        key = receive(socket)["event"]["requestId"]
        assert hold.reached.wait(WITHIN)
        socket.send(call("cancel", {"idempotencyKey": key}, id="cancel"))
        messages = until_answered(socket, "run", "cancel")
        events = [message["event"]["type"] for message in messages if message["type"] == "event"]
        assert events[-1] == "extraction_cancelled"
        ended = {message["id"]: message for message in messages if message["type"] != "event"}
        assert ended["cancel"]["result"]["outcome"] == "cancelled"
        assert ended["run"]["error"]["type"] == "urn:sameas:problem:run-cancelled"


def test_an_id_in_use_and_too_many_calls_are_refused(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service, socket_of(service) as socket:
        socket.send(call("streamExtract", SLOW_PAYLOAD, id="run"))
        receive(socket)
        socket.send(call("getResult", REQUEST, id="run"))
        assert _first_error(socket)["error"]["type"] == "urn:sameas:problem:id-in-use"
        for number in range(MAX_IN_FLIGHT):
            socket.send(call("streamExtract", SLOW_PAYLOAD, id=f"more-{number}"))
        assert _first_error(socket)["error"]["type"] == "urn:sameas:problem:too-many-calls"


def test_a_stream_is_resumed_after_a_number(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service:
        seen = []
        with socket_of(service) as socket:
            socket.send(call("streamExtract", SLOW_PAYLOAD))
            while len(seen) < 4:
                seen.append(receive(socket)["event"]["sequenceNumber"])
        # The socket is gone, the run is not.
        hold.let_go()
        with socket_of(service) as socket:
            socket.send(call("streamExtract", {**SLOW_PAYLOAD, "after": seen[-1]}, id="again"))
            messages = until_answered(socket, "again")
        numbers = [message["event"].get("sequenceNumber") for message in messages[:-1]]
        assert numbers == list(range(5, 5 + len(numbers))) or numbers == [None]
        assert messages[-1]["result"]["status"] == "complete"


def test_a_message_beyond_the_bound_is_refused(tmp_path):
    with running(tmp_path, max_body=2048) as service, socket_of(service) as socket:
        socket.send(call("getResult", {"text": "a" * 4096, "ontologyId": "company"}))
        assert receive(socket)["error"]["type"] == "urn:sameas:problem:message-too-large"


def _unfinished(service, count, *, fragment):
    """A socket to which so many bytes of a message were sent that does not end."""
    address = service.client.base_url
    connection = socket.create_connection((address.host, address.port))
    connection.settimeout(WITHIN)
    connection.sendall(
        b"GET /api/rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    assert head.startswith(b"HTTP/1.1 101")
    masked = b"\x00\x00\x00\x00"
    if fragment is None:
        connection.sendall(b"\x01\xff" + (2 * count).to_bytes(8, "big") + masked + b" " * count)
    else:
        frames = [b"\x01", *[b"\x00"] * (count // fragment - 1)]
        connection.sendall(b"".join(one + bytes([0x80 | fragment]) + masked + b" " * fragment for one in frames))
    return connection


def _held(service):
    lines = service.client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("sameas_bytes_of_bodies "))


@pytest.mark.parametrize(("size", "fragment"), [(60_000, None), (60_000, 100), (2_000, 1)])
def test_messages_that_are_not_whole_take_room_like_bodies(tmp_path, size, fragment):
    with running(tmp_path, max_body=200_000, max_bodies=300_000) as service, ExitStack() as stack:
        sockets = [stack.enter_context(_unfinished(service, size, fragment=fragment)) for _ in range(3)]
        ends_at = time.monotonic() + WITHIN
        while not 3 * size <= _held(service) <= 300_000:
            assert time.monotonic() < ends_at, "what is not whole is not counted"
        # In a message of two bytes a fragment there are some thirty times as many to be kept.
        sockets += [stack.enter_context(_unfinished(service, size, fragment=fragment)) for _ in range(9)]
        ends_at = time.monotonic() + WITHIN
        closed = 0
        while not closed:
            assert time.monotonic() < ends_at, "there is no end to what is kept"
            for one in sockets:
                one.settimeout(0.02)
                with suppress(TimeoutError):
                    said = one.recv(200)
                    closed += said[2:4] == (1013).to_bytes(2, "big")
        assert _held(service) <= 300_000
        stack.close()
        while _held(service):
            assert time.monotonic() < ends_at, "room is not given back"
            time.sleep(0.01)
        with socket_of(service) as whole:
            whole.send(call("getResult", REQUEST))
            assert receive(whole)["type"] == "result"


def test_a_server_that_stops_ends_streams_and_closes_sockets_with_its_code(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service, socket_of(service) as socket:
        socket.send(call("streamExtract", SLOW_PAYLOAD, id="run"))
        receive(socket)
        assert hold.reached.wait(WITHIN)
        with service.client.stream("GET", "/api/v1/runs") as listed:
            listed.read()
            key = listed.json()["runs"][0]["idempotencyKey"]
        with service.client.stream("GET", f"/api/v1/runs/{key}/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            service.stop()
            # It ends by itself, whole and without a last event of the run.
            assert not [line for line in lines if "extraction_c" in line]
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                receive(socket)
        assert closed.value.rcvd.code == 1012
        hold.let_go()


@pytest.mark.parametrize(
    "headers",
    [{"X-Tenant-ID": "somebody-else"}, {"Origin": "https://evil.example"}],
    ids=["another tenant", "another origin"],
)
def test_a_socket_for_another_tenant_or_from_another_origin_is_not_accepted(service, headers):
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(service.socket_url, additional_headers=headers, open_timeout=WITHIN),
    ):
        pass
    assert refused.value.response.status_code == 403


def _first_error(socket):
    while (message := receive(socket))["type"] != "error":
        pass
    return message
