"""What goes wrong on the disk, in the store or with the clock of others: only documented refusals, and a way back."""

import errno
import json
import socket
import time

import pytest

from sameas import AsyncEngine, open_async_store
from sameas.once.errors import StoreUnavailable
from sameas.server import bodies, reserve, serving
from sameas.server import service as service_module
from sameas.server.notices import Notices
from sameas.server.runs.pending_runs import PendingRun, PendingRuns
from sameas.server.schemas import ExtractRequest
from sameas.server.tenants.broadcast import AppendLog
from sameas.server.tenants.ontologies import Ontologies
from tests.servers.full_disk import small_disk
from tests.servers.program import program_or_skip
from tests.servers.redis import RedisServer
from tests.storm.store_away import HOWS, store_away
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, TURTLE, WITHIN, Hold, read_events, running, with_company
from tests.unit.server.test_ontologies import CHANGED

KEY = "sha256-" + "a" * 64
SLOW_REQUEST = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW}
ACCEPTED, AWAY = 32, 5.0
WANTED = {**REQUEST, "ontologyId": "co"}


def extract(service, request=REQUEST, **headers):
    return service.client.post("/api/v1/extract", json=request, headers=headers)


def test_a_server_starts_among_promises_that_cannot_be_kept(tmp_path):
    home = with_company(tmp_path)
    folder = home / "requests" / "_"
    folder.mkdir(parents=True)
    (folder / f"{KEY}.json").write_bytes(b"\x00garbage")
    bad = ExtractRequest(text=TEXT, ontology_id="broken")
    PendingRuns(home).keep(PendingRun(tenant="", key="sha256-" + "b" * 64, request=bad))
    (home / "ontologies" / "broken.ttl").write_text("this is no turtle")
    gone = ExtractRequest(text=TEXT, ontology_id="nobody")
    PendingRuns(home).keep(PendingRun(tenant="", key="sha256-" + "c" * 64, request=gone))
    with running(home) as service:
        assert extract(service).status_code == 200
        left = sorted(path.name for path in folder.iterdir())
        assert left == [f"{KEY}.json.unreadable", "sha256-" + "b" * 64 + ".json"]


async def _put_elsewhere(home, data, nonce):
    """What another process does, whose word has not come yet."""
    store = open_async_store(f"sqlite:///{home}/sameas.db")
    try:
        registry = Ontologies(AsyncEngine(store), folder=None, cache=home / "cache-of-another")
        put = await registry.put("", "co", data, media_type="text/turtle", audit={}, nonce=nonce)
        return put.entry.version
    finally:
        await store.close()


@pytest.mark.anyio
async def test_an_ontology_that_is_replaced_while_a_request_comes_in_is_used_in_its_new_version(tmp_path):
    with running(tmp_path) as service:
        put = service.client.put("/api/v1/ontologies/co", content=TURTLE)
        assert put.status_code == 201
        assert service.client.get("/api/v1/ontologies/co").status_code == 200
        version = await _put_elsewhere(tmp_path, CHANGED, "elsewhere")
        service.app.service.ontologies._parsed.clear()
        assert service.client.get("/api/v1/ontologies/co", params={"content": "true"}).status_code in (200, 503)
        answer = extract(service, WANTED)
        assert (answer.status_code, answer.json().get("ontologyVersion")) == (200, version)


def test_a_registry_that_could_not_be_read_when_it_was_updated_is_read_before_it_is_used(tmp_path, monkeypatch):
    with running(tmp_path) as service:
        first = service.client.put("/api/v1/ontologies/co", content=TURTLE).json()["version"]
        assert extract(service, WANTED).json()["ontologyVersion"] == first
        inner = service.app.service
        read = AppendLog.read

        async def broken(chain, number):
            if chain._scope == "sameas.ontology-log":
                raise StoreUnavailable("gone for a moment")
            return await read(chain, number)

        monkeypatch.setattr(AppendLog, "read", broken)
        inner._background_loop.submit(Notices(inner).refresh("")).result(5)
        refused = extract(service, {**WANTED, "text": "Another text by Anna Stone."})
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:store-unavailable")
        monkeypatch.undo()
        assert extract(service, WANTED).json()["ontologyVersion"] == first


def test_a_full_disk_is_said_to_be_full_and_replays_are_still_given(tmp_path, monkeypatch):
    with running(tmp_path) as service:
        assert extract(service).status_code == 200

        def full(promises, promise):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(PendingRuns, "keep", full)
        refused = extract(service, {**REQUEST, "text": "Carl Young works for Acme Ltd."})
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:disk-full")
        assert refused.headers["retry-after"]
        assert extract(service).json()["cacheHit"] is True
        monkeypatch.undo()
        assert extract(service, {**REQUEST, "text": "Carl Young works for Acme Ltd."}).status_code == 200


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["plain", "client-key"])
def test_nothing_is_accepted_on_a_full_disk(tmp_path, monkeypatch, headers):
    with running(tmp_path, hold=Hold()) as service:

        def full(promises, promise):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(PendingRuns, "keep", full)
        for prefers in ("respond-async", "wait=0"):
            refused = extract(service, SLOW_REQUEST, Prefer=prefers, **headers)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:disk-full")


def test_a_disk_that_is_really_full_refuses_new_work_and_gives_replays(tmp_path):
    with small_disk(tmp_path, size=48 << 20) as disk, running(with_company(tmp_path)) as service:
        assert extract(service).status_code == 200
        assert extract(service, **{"Idempotency-Key": "before"}).status_code == 200
        disk.fill()
        new = {**REQUEST, "text": "Carl Young works for Acme Ltd."}
        for headers in ({}, {"Idempotency-Key": "new"}, {"Prefer": "respond-async"}):
            refused = extract(service, new, **headers)
            assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:disk-full"), headers
            assert refused.headers["retry-after"]
        assert extract(service).json()["cacheHit"] is True
        again = extract(service, **{"Idempotency-Key": "before"})
        assert (again.status_code, again.headers["x-idempotency-replayed"]) == (200, "true")
        disk.make_room()
        assert extract(service, new, **{"Idempotency-Key": "new"}).status_code == 200


def test_runs_are_deleted_from_a_disk_that_is_really_full(tmp_path):
    texts = [f"Zyxwvut{number} Stone works for Acme Ltd." for number in range(4)]
    with small_disk(tmp_path, size=64 << 20) as disk, running(with_company(tmp_path)) as service:
        keys = [
            extract(service, {**REQUEST, "text": text}, **{"Idempotency-Key": f"k{number}"}).json()["idempotencyKey"]
            for number, text in enumerate(texts)
        ]
        _until(lambda: (tmp_path / ".reserve").stat().st_size == reserve.SIZE)
        for number, key in enumerate(keys):
            # What the one before has freed is taken, too.
            disk.fill()
            deleted = service.client.delete(f"/api/v1/runs/{key}")
            assert deleted.status_code == 204, deleted.text
            again = extract(service, {**REQUEST, "text": texts[number]}, **{"Idempotency-Key": f"k{number}"})
            assert (again.status_code, again.json()["type"]) == (410, "urn:sameas:problem:result-deleted")
            assert service.client.get(f"/api/v1/runs/{key}").status_code == 404
        # A deletion costs what it writes, and not what could not be taken back in one piece.
        assert (tmp_path / ".reserve").stat().st_size > reserve.SIZE * 3 // 4
        disk.fill()
        refused = extract(service, {**REQUEST, "text": "Carl Young works for Acme Ltd."})
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:disk-full")
        cleared = service.client.post("/api/v1/cache/clear", json={"reason": "the disk is full"})
        assert cleared.status_code == 200, cleared.text
        lines = (tmp_path / "audit.jsonl").read_text().splitlines()
        assert [json.loads(line)["event"] for line in lines] == ["run-removed"] * 4 + ["cache-cleared"]
        disk.make_room()
        assert extract(service, {**REQUEST, "text": "Carl Young works for Acme Ltd."}).status_code == 200


def test_a_run_that_waits_for_its_turn_is_shown_as_pending(tmp_path):
    with running(tmp_path, hold=Hold(0), max_runs=1) as service:
        assert extract(service, SLOW_REQUEST, Prefer="respond-async").status_code == 202
        waiting = extract(service, {**SLOW_REQUEST, "text": TEXT}, Prefer="respond-async")
        shown = service.client.get(waiting.headers["location"])
        assert (shown.status_code, shown.json()["status"]) == (200, "pending")


def _until(condition):
    ends_at = time.monotonic() + 2 * WITHIN
    while not condition():
        assert time.monotonic() < ends_at, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}], ids=["plain", "client-key"])
def test_what_was_accepted_is_finished_when_the_store_is_back(tmp_path, headers):
    hold = Hold(0)
    with (
        program_or_skip(),
        RedisServer(appendonly="always") as redis,
        running(tmp_path, hold=hold, store=redis.url, lease=1.0) as service,
    ):
        places = []
        for number in range(ACCEPTED):
            request = {**SLOW_REQUEST, "text": f"{TEXT} Number {number}."}
            named = {name: f"{value}{number}" for name, value in headers.items()}
            accepted = extract(service, request, Prefer="respond-async", **named)
            assert accepted.status_code == 202
            places.append(accepted.headers["location"])
        assert service.app.service.runner.running > 0
        redis.kill()
        hold.let_go()
        # Longer than a lease, so that nobody can go on as if nothing had been.
        time.sleep(AWAY)
        redis.start()

        def states():
            listed = service.client.get("/api/v1/keys", params={"scope": "extraction", "limit": "100"})
            return [key["state"] for key in listed.json().get("keys", ())]

        _until(lambda: states() == ["done"] * ACCEPTED)
        assert [service.client.get(place).json()["status"] for place in places] == ["complete"] * ACCEPTED
        _until(lambda: not list((tmp_path / "requests").glob("*/*.json")))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_runs_that_ask_a_model_end_once_when_the_store_was_away_under_them(tmp_path, kind, how):
    with program_or_skip():
        report = store_away(tmp_path, kind=kind, how=how, seconds=4.0, runs=12)
    assert report.is_clean, report


def test_expired_records_are_removed_and_counted(tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "sameas")
    monkeypatch.setattr(service_module, "PRUNE_EVERY", 0.02)
    with running(tmp_path) as service:
        inner = service.app.service

        async def expire():
            await inner.engine.run(lambda _: "x", scope="short", key="k", lease=0.3, retention=0.3)

        inner._background_loop.submit(expire()).result(5)
        ends_at = time.monotonic() + WITHIN
        while "sameas_cache_evictions_total 1.0" not in service.client.get("/metrics").text:
            assert time.monotonic() < ends_at, "nothing was removed"
            time.sleep(0.02)
    assert "expired records removed: 1" in caplog.messages


def test_the_audit_log_says_who_why_and_under_which_trace(tmp_path):
    trace = "0af7651916cd43dd8448eb211c80319c"
    sent = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    # What a server that was killed left of its last line.
    (tmp_path / "audit.jsonl").write_bytes(b'{"time":"20')
    (tmp_path / "audit.jsonl").chmod(0o600)
    with running(tmp_path) as service:
        calls = service.client
        calls.put("/api/v1/ontologies/co", content=TURTLE, headers=sent)
        calls.delete("/api/v1/ontologies/co", headers=sent)
        key = extract(service).json()["idempotencyKey"]
        for path in ("/api/v1/keys/forget", "/api/v1/keys/forget-many", "/api/v1/cache/clear"):
            body = {"reason": f"because of {path}"}
            body |= {"key": key} if path.endswith("forget") else {"scope": "extract"} if "many" in path else {}
            assert calls.post(path, json=body, headers=sent).status_code == 200, path
        extract(service)
        assert calls.delete(f"/api/v1/runs/{key}", headers=sent).status_code == 204
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_bytes().splitlines()[1:]]
    assert [line["event"] for line in lines] == [
        "ontology-updated",
        "ontology-deleted",
        "key-forgotten",
        "keys-forgotten",
        "cache-cleared",
        "run-removed",
    ]
    for line in lines:
        assert (line["traceId"], line["tenant"]) == (trace, "")
        assert line["actor"]
        assert line["invocationId"]
        assert line["time"]
    assert [line["reason"] for line in lines[2:5]] == [
        "because of /api/v1/keys/forget",
        "because of /api/v1/keys/forget-many",
        "because of /api/v1/cache/clear",
    ]
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0


def _connect(service, data):
    connection = socket.create_connection(("127.0.0.1", service.client.base_url.port))
    connection.settimeout(WITHIN)
    connection.sendall(data)
    return connection


def test_a_head_that_trickles_in_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "WITHIN", 0.3)
    with running(tmp_path) as service:
        silent = _connect(service, b"")
        slow = _connect(service, b"GET /health/live HTTP/1.1\r\nHost: localh")
        again = _connect(service, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(65536).startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /health/live HT")
        for connection in (silent, slow, again):
            # Nothing but the end of the connection.
            while connection.recv(65536):
                pass
            connection.close()
        # Who has said what it wants is not hurried.
        assert service.client.get("/health/live").status_code == 200


def test_a_body_that_trickles_in_is_refused_and_leaves_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(bodies, "WITHIN", 0.2)
    with running(tmp_path) as service:
        head = b"POST /api/v1/extract HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        with _connect(service, head + b"{") as slow:
            assert slow.recv(65536).startswith(b"HTTP/1.1 408")


def test_a_run_that_is_deleted_before_its_turn_is_gone_and_its_listeners_are_told(tmp_path):
    hold = Hold(after=0)
    with running(tmp_path, hold=hold, max_runs=1) as service:
        keys = [
            extract(service, {**SLOW_REQUEST, "text": f"{LONG} {name}"}, Prefer="respond-async").json()[
                "idempotencyKey"
            ]
            for name in ("first", "second")
        ]
        assert hold.reached.wait(WITHIN)
        for key in reversed(keys):
            with service.client.stream("GET", f"/api/v1/runs/{key}/events") as stream:
                lines = stream.iter_lines()
                next(lines)
                assert service.client.delete(f"/api/v1/runs/{key}").status_code == 204
                last = [kind for _, kind, _ in read_events(lines)][-1]
                assert last in {"extraction_cancelled", "extraction_failed"}
            assert service.client.get(f"/api/v1/runs/{key}").status_code == 404
            assert service.client.delete(f"/api/v1/runs/{key}").status_code == 404
        assert not list((tmp_path / "requests").rglob("*.json"))
