"""FastAPI on real uvicorn servers: answers without a body, WebSockets, and a server that sleeps past its lease."""

import signal
import threading

import httpx
import pytest
from websockets.sync.client import connect

from tests.unit.web.serving import Served, wait_until

KEY = {"Idempotency-Key": '"order-1"'}


@pytest.fixture(scope="module", params=["h11", "httptools"])
def server(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fastapi")
    served = Served(folder, f"sqlite:///{folder}/records.db", app="served_fastapi", parser=request.param)
    try:
        yield served.ready()
    finally:
        served.stop()


@pytest.mark.parametrize(
    ("method", "path", "name", "status", "kept"),
    [
        ("HEAD", "/orders/7", "look", 200, {"content-length": "1234", "etag": '"1"'}),
        ("HEAD", "/orders", "look_at_all", 200, {"content-length": None, "content-type": "text/plain; charset=utf-8"}),
        ("DELETE", "/orders/7", "remove", 204, {"content-length": None}),
        ("PUT", "/orders/7", "unchanged", 304, {"content-length": None, "etag": '"1"'}),
    ],
)
def test_answers_without_a_body_are_replayed_without_one(server, method, path, name, status, kept):
    # One connection for all: a byte too many would be the start of the next answer.
    with httpx.Client(base_url=server.url, timeout=20) as http:
        replies = [http.request(method, path, headers=KEY) for _ in range(3)]
        assert http.get("/ping").json()["pid"] == server.process.pid
    assert [reply.headers["x-idempotency-replayed"] for reply in replies] == ["false", "true", "true"]
    for reply in replies:
        assert (reply.status_code, reply.content) == (status, b"")
        assert {header: reply.headers.get(header) for header in kept} == kept
    assert server.runs(name) == 1


def test_a_websocket_goes_through_untouched_whatever_its_headers_say(server):
    url = server.url.replace("http", "ws", 1) + "/echo"
    for _ in range(2):
        with connect(url, additional_headers={"Idempotency-Key": "not, a key"}) as socket:
            assert socket.response.headers["x-key"] == "not, a key"
            assert "x-idempotency-replayed" not in socket.response.headers
            socket.send("hello")
            assert socket.recv(timeout=20) == "hello"


class Asked(threading.Thread):
    """A request in a thread of its own; what it has got so far, and how it ended."""

    def __init__(self, url):
        super().__init__()
        self.url = url
        self.text = ""
        self.headers = {}
        self.error = None

    def run(self):
        try:
            with httpx.stream("POST", self.url, headers=KEY, timeout=60) as reply:
                self.headers = reply.headers
                for piece in reply.iter_text():
                    self.text += piece
        except httpx.RemoteProtocolError as error:
            self.error = error


def test_a_server_that_sleeps_past_its_lease_gives_only_what_was_accepted(tmp_path, redis_url):
    servers = [Served(tmp_path, redis_url, name=name, app="served_fastapi") for name in ("one", "two")]
    one, two = servers
    asleep = False
    try:
        for server in servers:
            server.ready()
        held, stream = asked = [Asked(f"{one.url}{path}") for path in ("/held", "/stream")]
        for each in asked:
            each.start()
        wait_until(lambda: one.runs("held") == one.runs("stream") == 1 and stream.text)
        one.process.send_signal(signal.SIGSTOP)
        asleep = True
        one.gate.touch()
        # They wait until the lease is over, and take over.
        accepted = [httpx.post(f"{two.url}{path}", headers=KEY, timeout=60) for path in ("/held", "/stream")]
        assert [reply.headers["x-idempotency-replayed"] for reply in accepted] == ["false", "false"]
        one.process.send_signal(signal.SIGCONT)
        asleep = False
        for each in asked:
            each.join(60)
        assert two.process.pid != one.process.pid
        assert held.text == accepted[0].text == f'{{"pid":{two.process.pid}}}'
        assert (held.headers["x-idempotency-replayed"], held.error) == ("true", None)
        # It is known as incomplete, however much of it came before the server heard of its loss.
        assert stream.text.startswith(f"begun by {one.process.pid}; ")
        assert stream.error is not None
        pid = two.process.pid
        assert accepted[1].text == f"begun by {pid}; ended by {pid}"
        again = httpx.post(f"{one.url}/stream", headers=KEY, timeout=60)
        assert (again.text, again.headers["x-idempotency-replayed"]) == (accepted[1].text, "true")
        assert (one.runs("held"), one.runs("stream")) == (2, 2)
    finally:
        if asleep:
            one.process.send_signal(signal.SIGCONT)
        for server in servers:
            server.stop()
