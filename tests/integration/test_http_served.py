"""The middleware on real uvicorn servers: huge bodies, clients and servers that go away."""

import contextlib
import signal
import socket
import threading

import httpx
import pytest

from sameas import open_store
from sameas.once.record import State
from sameas.once.store import Query
from tests.servers.every_observer import read_observed
from tests.unit.web.serving import Served, head, received, status, wait_until

KEY = {"Idempotency-Key": '"order-1"'}


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("http")
    served = Served(folder, f"sqlite:///{folder}/records.db")
    try:
        yield served.ready()
    finally:
        served.stop()


def test_a_gigabyte_is_refused_at_once_where_it_is_announced_and_while_it_streams_where_it_is_not(server):
    httpx.post(f"{server.url}/orders", json={"item": "warm"}, headers={"Idempotency-Key": '"warm"'})
    before, runs = server.memory(), server.runs("create")
    assert status(server.raw(head(f"Content-Length: {1 << 30}", 'Idempotency-Key: "big"'))) == 413
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    highest, sent = before, 0
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(head("Transfer-Encoding: chunked", 'Idempotency-Key: "big"'))
        with contextlib.suppress(ConnectionError):
            while sent < (1 << 30):
                connection.sendall(piece)
                sent += 65_536
                if sent % (1 << 24) == 0:
                    highest = max(highest, server.memory())
                if readable(connection):
                    break
        answer = received(connection)
    assert status(answer) in (413, None)
    assert sent < 200_000_000
    assert max(highest, server.memory()) - before < 32_000_000
    assert server.runs("create") == runs


def readable(connection):
    import select

    return bool(select.select([connection], [], [], 0)[0])


def test_a_large_body_that_is_allowed_goes_by_the_disk(server):
    size = 100_000_000

    def pieces():
        for _ in range(size // 100_000):
            yield b"y" * 100_000

    httpx.post(f"{server.url}/upload", content=b"warm")
    before = server.memory()
    highest = [before]
    done = threading.Event()

    def watch():
        while not done.wait(0.02):
            highest.append(server.memory())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        first = httpx.post(f"{server.url}/upload", content=pieces(), headers=KEY, timeout=60)
        again = httpx.post(f"{server.url}/upload", content=pieces(), headers=KEY, timeout=60)
    finally:
        done.set()
        watching.join()
    assert first.json() == {"size": size}
    assert (again.json(), again.headers["x-idempotency-replayed"]) == ({"size": size}, "true")
    assert server.runs("upload") == 2  # the warm one and one
    assert max(highest) - before < 32_000_000


def test_a_client_that_goes_away_leaves_a_result_behind(server):
    server.gate.unlink(missing_ok=True)
    before = server.runs("slow")
    request = head("Content-Length: 0", 'Idempotency-Key: "gone"', path="/slow")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        wait_until(lambda: server.runs("slow") == before + 1)
    server.gate.touch()
    again = httpx.post(f"{server.url}/slow", headers={"Idempotency-Key": '"gone"'}, timeout=20)
    assert (again.json(), again.headers["x-idempotency-replayed"]) == ({"slow": True}, "true")
    assert server.runs("slow") == before + 1


def test_clients_that_do_not_read_do_not_hold_up_the_others(server):
    request = head("Content-Length: 0", 'Idempotency-Key: "large"', path="/large")
    slow = []
    try:
        for _ in range(60):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.sendall(request)
            slow.append(connection)
        for connection in slow:
            assert connection.recv(1)
        with httpx.Client(timeout=20) as http:
            for number in range(50):
                key = {"Idempotency-Key": f'"quick-{number}"'}
                assert http.post(f"{server.url}/orders", json={"item": "a"}, headers=key).status_code == 201
        # All of them are still in the middle of their answers.
        for connection in slow:
            assert connection.recv(1)
    finally:
        for connection in slow:
            connection.close()
    assert server.runs("large") == 1


def test_a_chunked_answer_and_a_connection_that_is_kept_alive(server):
    with httpx.Client(timeout=20) as http:
        key = {"Idempotency-Key": '"chunked"'}
        first = http.post(f"{server.url}/large", headers=key)
        second = http.post(f"{server.url}/large", headers=key)
    assert first.content == second.content == b"x" * 65_536 * 64
    assert second.headers["content-length"] == str(65_536 * 64)


def test_a_server_that_is_told_to_stop_finishes_what_it_began(folder):
    store = f"sqlite:///{folder}/records.db"
    server = Served(folder, store)
    try:
        server.ready()
        replies = []
        asking = threading.Thread(
            target=lambda: replies.append(httpx.post(f"{server.url}/slow", headers=KEY, timeout=30))
        )
        asking.start()
        wait_until(lambda: server.runs("slow") == 1)
        server.process.send_signal(signal.SIGTERM)
        server.gate.touch()
        asking.join()
        server.process.wait(20)
        assert replies[0].headers["x-idempotency-replayed"] == "false"
    finally:
        server.stop()
    with open_store(store) as records:
        (record,) = records.find(Query()).records
    assert (record.state, record.outcome.meta["status"]) == (State.DONE, 200)


def test_two_servers_on_one_redis_run_a_request_once(folder, redis_server, redis_url):
    servers = [Served(folder, redis_url, name=name) for name in ("one", "two")]
    try:
        for server in servers:
            server.ready()
        replies = []

        def ask(number):
            url = servers[number % 2].url
            replies.append(httpx.post(f"{url}/slow", headers=KEY, timeout=30))

        asking = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
        for thread in asking:
            thread.start()
        wait_until(lambda: servers[0].runs("slow") == 1)
        servers[0].gate.touch()
        for thread in asking:
            thread.join()
        assert {reply.content for reply in replies} == {b'{"slow":true}'}
        assert sorted(reply.headers["x-idempotency-replayed"] for reply in replies) == ["false"] + ["true"] * 9
        assert servers[0].runs("slow") == 1
        redis_server.kill()
        refused = httpx.post(f"{servers[0].url}/orders", json={"item": "a"}, headers=KEY, timeout=30)
        assert (refused.status_code, servers[0].runs("create")) == (503, 0)
        assert int(refused.headers["retry-after"]) >= 1
    finally:
        for server in servers:
            server.stop()
        redis_server.start()


def test_no_cookie_credential_or_key_is_written_where_it_does_not_belong(server):
    headers = {
        "Idempotency-Key": '"key-canary"',
        "Authorization": "Bearer bearer-canary",
        "Cookie": "session=request-cookie-canary",
    }
    for _ in range(2):
        reply = httpx.post(f"{server.url}/orders", json={"item": "body-canary"}, headers=headers)
        assert reply.status_code == 201
    assert "set-cookie" not in reply.headers
    assert httpx.post(f"{server.url}/orders", json={"item": "other"}, headers=headers).status_code == 422
    wrong = {**headers, "Content-Type": "application/json"}
    assert httpx.post(f"{server.url}/orders", content=b"{", headers=wrong).status_code == 400
    stored = b"".join(path.read_bytes() for path in server.folder.glob("records.db*"))
    assert b"key-canary" in stored
    assert b"body-canary" in stored
    for canary in (b"bearer-canary", b"cookie-canary"):
        assert canary not in stored
    log = server.log.read_bytes()
    assert b"POST /orders" in log
    assert b"canary" not in log
    observed = read_observed(server.folder / "observed")
    assert [kind for kind, text in observed.items() if "create_order" not in text] == []
    assert [kind for kind, text in observed.items() if "canary" in text] == []
