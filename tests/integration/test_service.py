"""The service as its clients see it, over real sockets."""

import asyncio
import json
import socket
import threading

import httpx
import pytest

from sameas.extraction.runs.folder import RunFolder
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, TURTLE, WITHIN, Hold, read_events, running

FINAL = {"extraction_completed", "extraction_failed", "extraction_cancelled"}
SLOW_REQUEST = {"text": LONG, "ontologyId": "company", "extractionParams": SLOW}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running(tmp_path_factory.mktemp("service")) as one:
        yield one


def extract(service, request=REQUEST, **options):
    return service.client.post("/api/v1/extract", json=request, **options)


def events_of(service, key, **options):
    with service.client.stream("GET", f"/api/v1/runs/{key}/events", **options) as stream:
        assert stream.status_code == 200
        return list(read_events(stream.iter_lines()))


def test_the_second_time_is_a_hit_with_the_same_graph(service):
    first, second = extract(service).json(), extract(service).json()
    assert (first.pop("cacheHit"), second.pop("cacheHit")) == (False, True)
    assert first == second
    assert {entity["name"] for entity in first["entities"]} >= {"Anna Stone", "Acme Ltd"}
    assert set(first) >= {"idempotencyKey", "entities", "relations", "computedAt", "status"}


def test_many_equal_requests_at_once_make_one_run_and_equal_answers(tmp_path):
    hold = Hold(after=1)
    with running(tmp_path, hold=hold) as service:

        async def ask_all():
            async with httpx.AsyncClient(
                base_url=service.url, timeout=WITHIN, limits=httpx.Limits(max_connections=200)
            ) as client:
                asking = [asyncio.create_task(client.post("/api/v1/extract", json=SLOW_REQUEST)) for _ in range(200)]
                await asyncio.to_thread(hold.reached.wait, WITHIN)
                while service.app.service.runner.running and len(service.server.server_state.tasks) < 200:
                    await asyncio.sleep(0.01)
                hold.let_go()
                return await asyncio.gather(*asking)

        answers = asyncio.run(ask_all())
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        chunks = service.client.get(f"/api/v1/runs/{answers[0].json()['idempotencyKey']}").json()["chunks"]
        assert hold.asked == chunks
        found = _metrics(service)
        # Those who came while the run went on shared its result, and waited for it.
        assert found["sameas_execution_cache_hits_total"] == 199
        assert found["sameas_deduplication_wait_time_seconds_count"] == 199
        assert found["sameas_execution_cache_hit_rate"] == 199 / 200


def test_an_async_run_is_listened_to_from_its_beginning_without_a_gap(service):
    accepted = extract(service, {**REQUEST, "text": TEXT + " So."}, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    assert accepted.headers["location"] == accepted.json()["run"]
    events = events_of(service, accepted.json()["idempotencyKey"])
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[0][1] == "extraction_started"
    assert [kind for _, kind, _ in events if kind in FINAL] == ["extraction_completed"]


def test_a_stream_is_resumed_exactly_after_the_last_event(service):
    key = extract(service).json()["idempotencyKey"]
    whole = events_of(service, key)
    assert events_of(service, key, headers={"Last-Event-ID": "7"}) == whole[7:]
    assert events_of(service, key, params={"after": 7}) == whole[7:]
    over = service.client.get(f"/api/v1/runs/{key}/events", headers={"Last-Event-ID": str(len(whole))})
    assert over.status_code == 204


def test_a_run_whose_journal_is_gone_says_that_its_result_is_there(tmp_path):
    with running(tmp_path) as service:
        key = extract(service).json()["idempotencyKey"]
        (tmp_path / "runs" / key / "events.jsonl").unlink()
        told = [(number, kind) for number, kind, _ in events_of(service, key)]
        assert told == [(None, "cache_hit"), (None, "extraction_completed")]


def test_a_client_that_leaves_does_not_stop_the_run(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service:
        with pytest.raises(httpx.ReadTimeout):
            service.client.post("/api/v1/extract", json=SLOW_REQUEST, timeout=0.5)
        assert hold.reached.wait(WITHIN)
        hold.let_go()
        key = service.client.get("/api/v1/runs").json()["runs"][0]["idempotencyKey"]
        assert events_of(service, key)[-1][1] == "extraction_completed"


def test_cancelling_ends_the_run_and_those_who_wait_are_told(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service:
        answers = []
        waiting = threading.Thread(target=lambda: answers.append(extract(service, SLOW_REQUEST)))
        waiting.start()
        assert hold.reached.wait(WITHIN)
        key = service.client.get("/api/v1/runs").json()["runs"][0]["idempotencyKey"]
        cancelled = service.client.post(f"/api/v1/runs/{key}/cancel")
        assert cancelled.json() == {"idempotencyKey": key, "outcome": "cancelled"}
        waiting.join(WITHIN)
        assert (answers[0].status_code, answers[0].json()["type"]) == (409, "urn:sameas:problem:run-cancelled")
        assert events_of(service, key)[-1][1] == "extraction_cancelled"
        assert service.client.post(f"/api/v1/runs/{key}/cancel").json()["outcome"] == "ended"


@pytest.mark.parametrize(
    ("format_", "media_type", "begins"),
    [
        ("turtle", "text/turtle", b"@prefix"),
        ("jsonld", "application/ld+json", b""),
        ("nquads", "application/n-quads", b"<"),
        ("graphml", "application/graphml+xml", b"<?xml"),
        ("csv", "text/csv", b"kind,"),
        ("cypher", "application/x-cypher-query", b""),
        ("json", "application/json", b"{"),
    ],
)
def test_a_graph_is_given_in_every_format_by_name_and_by_accept(service, format_, media_type, begins):
    key = extract(service).json()["idempotencyKey"]
    named = service.client.get(f"/api/v1/runs/{key}/graph", params={"format": format_})
    accepted = service.client.get(f"/api/v1/runs/{key}/graph", headers={"Accept": f"{media_type}, */*;q=0.1"})
    assert named.content == accepted.content
    assert named.content.startswith(begins)
    assert named.headers["content-type"].startswith(media_type)


def test_a_format_that_cannot_be_given_is_refused(service):
    key = extract(service).json()["idempotencyKey"]
    assert service.client.get(f"/api/v1/runs/{key}/graph", headers={"Accept": "image/png"}).status_code == 406
    assert service.client.get(f"/api/v1/runs/{key}/graph", params={"format": "png"}).status_code == 400


def test_runs_are_listed_page_by_page_and_deleted(tmp_path):
    with running(tmp_path) as service:
        keys = [extract(service, {**REQUEST, "text": f"{TEXT} {n}"}).json()["idempotencyKey"] for n in range(3)]
        first = service.client.get("/api/v1/runs", params={"limit": 2}).json()
        second = service.client.get("/api/v1/runs", params={"limit": 2, "after": first["next"]}).json()
        assert {run["idempotencyKey"] for run in (*first["runs"], *second["runs"])} == set(keys)
        assert second["next"] is None
        assert service.client.delete(f"/api/v1/runs/{keys[0]}").status_code == 204
        assert service.client.get(f"/api/v1/runs/{keys[0]}").status_code == 404
        assert extract(service, {**REQUEST, "text": f"{TEXT} 0"}).json()["cacheHit"] is False


def test_a_client_key_gives_the_first_answer_again_and_refuses_another_request(service):
    headers = {"Idempotency-Key": '"order-1"'}
    request = {**REQUEST, "text": TEXT + " Really."}
    first, second = extract(service, request, headers=headers), extract(service, request, headers=headers)
    assert first.content == second.content
    replayed = [answer.headers["x-idempotency-replayed"] for answer in (first, second)]
    assert replayed == ["false", "true"]
    other = extract(service, {**REQUEST, "text": "Something else."}, headers=headers)
    assert (other.status_code, other.json()["fields"]) == (422, ["text"])
    also = {**headers, "Prefer": "respond-async"}
    assert extract(service, {**REQUEST, "text": "Something else."}, headers=also).status_code == 422
    assert extract(service, request, headers={"Idempotency-Key": "a b"}).status_code == 400


def test_a_client_that_waits_for_a_while_under_its_key_is_told_that_the_run_goes_on(tmp_path):
    hold = Hold()
    request = {**REQUEST, "text": LONG, "extractionParams": SLOW}
    with running(tmp_path, hold=hold) as service:
        for wait in ("wait=0", "respond-async, wait=1"):
            accepted = extract(service, request, headers={"Idempotency-Key": "mine", "Prefer": wait})
            assert accepted.status_code == 202
        hold.let_go()
        done = extract(service, request, headers={"Idempotency-Key": "mine", "Prefer": "wait=30"})
        assert (done.status_code, done.headers["preference-applied"]) == (200, "wait=30")
        assert done.json()["idempotencyKey"] == accepted.json()["idempotencyKey"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/v1/ontologies/company", "DELETE, GET, HEAD, PUT"),
        ("PATCH", "/api/v1/runs/sha256-" + "a" * 64, "DELETE, GET, HEAD"),
        ("GET", "/api/v1/extract", "POST"),
        ("DELETE", "/openapi.json", "GET, HEAD"),
    ],
)
def test_a_method_that_is_not_answered_is_told_all_that_are(service, method, path, allowed):
    refused = service.client.request(method, path)
    assert (refused.status_code, refused.headers["allow"]) == (405, allowed)


def test_neither_metrics_nor_a_short_page_read_every_run(tmp_path, monkeypatch):
    with running(tmp_path) as service:
        for number in range(5):
            extract(service, {**REQUEST, "text": f"Anna Stone works for Acme{number} Ltd."})
        newest = service.client.get("/api/v1/runs").json()["runs"]
        read = []
        peek = RunFolder.peek
        monkeypatch.setattr(RunFolder, "peek", lambda folder: read.append(folder.key) or peek(folder))
        page = service.client.get("/api/v1/runs", params={"limit": 1}).json()
        # One is shown, and the next one says that there is a next page.
        assert len(read) == 2
        assert (page["runs"], page["next"]) == (newest[:1], newest[0]["idempotencyKey"])
        read.clear()
        metrics = service.client.get("/metrics").text.splitlines()
        assert [line for line in metrics if "cached_results" in line and line.endswith(" 5.0")]
        assert read == []
        after = service.client.get("/api/v1/runs", params={"limit": 2, "after": page["next"]}).json()
        assert after["runs"] == newest[1:3]


def test_the_debug_endpoint_names_the_key_and_runs_nothing(service):
    request = {"text": "Only asked about.  \r\n", "ontologyId": "company"}
    said = service.client.get("/api/v1/debug/idempotency-key", params=request).json()
    assert said["components"]["text"] == "Only asked about."
    assert said["known"] is None
    assert service.client.get(f"/api/v1/runs/{said['key']}").status_code == 404
    assert extract(service, request).json()["idempotencyKey"] == said["key"]


def test_an_estimate_says_what_a_run_would_take(service):
    said = service.client.post("/api/v1/estimate", json={"text": LONG * 3, "ontologyId": "company"}).json()
    assert (said["cacheHit"], said["inputTokens"], said["cost"]) == (False, 0, 0.0)
    assert said["chunks"] > 1


def test_ready_names_each_dependency_and_live_answers(service):
    assert service.client.get("/health/live").json()["status"] == "ok"
    assert service.client.get("/health/ready").json()["dependencies"] == {"store": "ok", "home": "ok"}


def _metrics(service):
    """The values of `/metrics`, those of the scope of extractions where there are several."""
    found = {}
    for line in service.client.get("/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        if not line.startswith("#") and ("{" not in name or name.endswith('{scope="extraction"}')):
            found[name.partition("{")[0]] = float(value)
    return found


def test_metrics_say_what_was_done(tmp_path):
    with running(tmp_path) as service:
        assert [extract(service).json()["cacheHit"] for _ in range(4)] == [False, True, True, True]
        found = _metrics(service)
        assert found["sameas_cache_hit_rate"] == 3 / 4
        assert found["sameas_cache_lookup_latency_seconds_count"] >= 1
        assert found["sameas_cache_store_latency_seconds_count"] == 1
        assert found["sameas_total_cached_results"] == 1
        assert found["sameas_cache_lookup_errors_total"] == 0
        service.client.post("/api/v1/cache/clear", json={"reason": "to count"})
        found = _metrics(service)
        assert (found["sameas_invalidations_total"], found["sameas_total_cached_results"]) == (1, 0)


def test_every_metric_of_the_source_document_is_given(service):
    extract(service)
    metrics = service.client.get("/metrics").text
    for name in (
        "cache_hit_rate",
        "execution_cache_hit_rate",
        "cache_lookup_latency_seconds",
        "cache_store_latency_seconds",
        "deduplication_wait_time_seconds",
        "total_cached_results",
        "cache_evictions",
        "invalidations",
        "idempotency_key_computation_errors",
        "cache_lookup_errors",
    ):
        assert f"# HELP sameas_{name}" in metrics, name


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 422),
        (b"[]", 422),
        (b'{"text":"","ontologyId":"company"}', 422),
        (b'{"text":"  ","ontologyId":"company"}', 422),
        (b'{"text":"a","ontologyId":"nobody"}', 404),
        (b'{"text":"a","ontologyId":"company","more":1}', 422),
        (b'{"text":"a","ontologyId":"company","ontologyVersion":"sha256:00"}', 409),
        (b'{"text":"a","ontologyId":"company","extractionParams":{"model":"nobody"}}', 422),
        (b'{"text":"a","ontologyId":"company","extractionParams":{"temperature":0.5}}', 422),
        (b'{"text":"\\ud800","ontologyId":"company"}', 400),
    ],
)
def test_what_cannot_be_extracted_is_refused_with_a_problem(service, body, status):
    answer = service.client.post("/api/v1/extract", content=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "sent",
    [
        b"this is no HTTP\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: a\r\nX-A: b\x00c\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
    ids=["words", "a zero byte", "a negative length", "TLS"],
)
def test_what_is_no_http_is_refused_with_a_problem_too(service, sent):
    url = service.client.base_url
    with socket.create_connection((url.host, url.port), timeout=WITHIN) as connection:
        connection.sendall(sent)
        head, body = b"".join(iter(lambda: connection.recv(4096), b"")).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/problem+json" in head
    assert json.loads(body)["type"] == "urn:sameas:problem:request-malformed"
    assert service.client.get("/health/live").status_code == 200


def test_bodies_headers_and_hosts_have_bounds(tmp_path):
    with running(tmp_path, max_body=2048) as service:
        assert extract(service, {**REQUEST, "text": "a" * 4096}).status_code == 413

        def pieces():
            for _ in range(100):
                yield b"a" * 100

        assert service.client.post("/api/v1/extract", content=pieces()).status_code == 413
        assert service.client.get("/api/v1/runs", headers={"X-Long": "a" * 40_000}).status_code == 431
        assert service.client.get("/api/v1/runs", headers={"Host": "evil.example"}).status_code == 400


def test_a_page_of_another_origin_can_neither_change_anything_nor_read_an_answer(tmp_path):
    with running(tmp_path, cors_origins="https://app.example") as service:
        elsewhere, ours = {"Origin": "https://evil.example"}, {"Origin": "https://app.example"}
        clear = "/api/v1/cache/clear"
        assert service.client.post(clear, json={"reason": "x"}, headers=elsewhere).status_code == 403
        assert service.client.post(clear, json={"reason": "x"}, headers={"Origin": service.url}).status_code == 200
        allowed = extract(service, headers=ours)
        assert allowed.status_code == 200
        read = service.client.get("/api/v1/runs", headers=elsewhere)
        assert "access-control-allow-origin" not in read.headers
        read = service.client.get("/api/v1/runs", headers=ours)
        assert read.headers["access-control-allow-origin"] == "https://app.example"


def test_bodies_have_a_bound_in_all_and_runs_that_wait_count(tmp_path):
    hold = Hold()
    long = {**REQUEST, "text": LONG * 25, "extractionParams": SLOW}
    other = {**REQUEST, "text": LONG * 25 + " Other."}
    with running(tmp_path, hold=hold, max_body=90_000, max_bodies=100_000) as service:
        assert len(long["text"]) > 50_000
        accepted = extract(service, long, headers={"Prefer": "respond-async"})
        assert accepted.status_code == 202
        refused = extract(service, other)
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:sameas:problem:no-room")
        assert refused.headers["retry-after"]
        assert service.client.get(accepted.headers["location"]).status_code == 200
        assert service.client.delete(accepted.headers["location"]).status_code == 204
        assert extract(service, other).status_code == 200
        assert "sameas_bytes_of_bodies 0.0" in service.client.get("/metrics").text


def test_short_work_does_not_share_the_interpreter_with_many_long_texts(tmp_path):
    with running(tmp_path) as service:
        texts = ("\n\n".join(f"Anna{n}x{p} Stone works for Acme{p} Ltd." for p in range(300)) for n in range(8))
        request = {**REQUEST, "extractionParams": {"extractor": "lexicon"}}
        begun = [extract(service, {**request, "text": text}, headers={"Prefer": "respond-async"}) for text in texts]
        assert {answer.status_code for answer in begun} == {202}
        runs = []
        for answer in begun:
            events_of(service, answer.json()["idempotencyKey"])
            runs.append(service.client.get(answer.headers["location"]).json())
        assert {run["status"] for run in runs} == {"complete"}
        times = [(run["startedAt"], run["completedAt"]) for run in runs]
        at_once = [sum(began <= start < ended for began, ended in times) for start, _ in times]
        assert max(at_once) <= 2


def test_requests_beyond_the_bound_are_refused_while_others_wait(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold, max_requests=1) as service:
        waiting = threading.Thread(target=lambda: extract(service, SLOW_REQUEST))
        waiting.start()
        assert hold.reached.wait(WITHIN)
        refused = service.client.get("/api/v1/runs")
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        assert service.client.get("/health/live").status_code == 200
        hold.let_go()
        waiting.join(WITHIN)


def test_ontologies_are_put_listed_read_and_deleted(tmp_path):
    with running(tmp_path) as service:
        place = "/api/v1/ontologies/http://example.org/sports"
        first = service.client.put(place, content=TURTLE, headers={"Content-Type": "text/turtle"})
        again = service.client.put(place, content=TURTLE + b"\n# a remark\n", headers={"Content-Type": "text/turtle"})
        assert (first.status_code, first.json()["changed"]) == (201, True)
        assert (again.status_code, again.json()["changed"]) == (200, False)
        assert again.json()["version"] == first.json()["version"]
        listed = service.client.get("/api/v1/ontologies").json()["ontologies"]
        names = ["company", "http://example.org/sports"]
        assert [entry["source"] for entry in listed if entry["names"] == names] == ["registry"]
        assert service.client.get(place, params={"content": "true"}).content == TURTLE
        request = {**REQUEST, "ontologyId": "http://example.org/sports"}
        assert extract(service, request).json()["cacheHit"] is False
        (tmp_path / "ontologies" / "company.ttl").unlink()
        assert service.client.delete(place).json()["entriesInvalidated"] == 1
        assert service.client.get(place).status_code == 404
        assert extract(service, request).status_code == 404
        assert service.client.get("/api/v1/runs").json()["runs"] == []


def test_an_updated_ontology_deletes_results_and_is_written_to_the_audit_log(tmp_path):
    with running(tmp_path) as service:
        place = "/api/v1/ontologies/co"
        service.client.put(place, content=TURTLE)
        request = {**REQUEST, "ontologyId": "co"}
        before = extract(service, request).json()
        extract(service, request)
        changed = TURTLE.replace(b'"sodium"@en', b'"soda"@en')
        assert changed != TURTLE
        put = service.client.put(place, content=changed).json()
        assert (put["changed"], put["entriesInvalidated"]) == (True, 1)
        after = extract(service, request).json()
        assert after["cacheHit"] is False
        assert after["ontologyVersion"] == put["version"] != before["ontologyVersion"]
        assert after["idempotencyKey"] != before["idempotencyKey"]
        lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
        assert lines[-1]["event"] == "ontology-updated"
        assert lines[-1]["oldVersion"] == before["ontologyVersion"]
        assert (lines[-1]["newVersion"], lines[-1]["actor"]) == (put["version"], "local")


def test_a_bad_ontology_is_reported_with_its_place_and_not_kept(service):
    bad = b"@prefix owl: <http://www.w3.org/2002/07/owl#> .\n<urn:a> a owl:Class ;;; nonsense .\n"
    report = service.client.post("/api/v1/ontologies/validate", content=bad).json()
    assert (report["valid"], report["line"]) == (False, 2)
    assert service.client.put("/api/v1/ontologies/bad", content=bad).status_code == 422
    assert service.client.get("/api/v1/ontologies/bad").status_code == 404
    typed = service.client.put("/api/v1/ontologies/bad", content=TURTLE, headers={"Content-Type": "text/html"})
    assert typed.status_code == 415


def test_the_whole_cache_is_cleared_with_a_reason(tmp_path):
    with running(tmp_path) as service:
        extract(service)
        assert service.client.post("/api/v1/cache/clear", json={}).status_code == 422
        cleared = service.client.post("/api/v1/cache/clear", json={"reason": "a test"})
        assert cleared.json() == {"entriesInvalidated": 1}
        assert extract(service).json()["cacheHit"] is False
        assert '"reason":"a test"' in (tmp_path / "audit.jsonl").read_text()


def test_keys_are_listed_explained_and_forgotten_with_a_reason(tmp_path):
    with running(tmp_path) as service:
        for n in range(3):
            extract(service, {**REQUEST, "text": f"{TEXT} {n}"})
        key = extract(service).json()["idempotencyKey"]
        extract(service)
        page = service.client.get("/api/v1/keys", params={"scope": "extraction", "state": "done", "limit": 3}).json()
        rest = service.client.get("/api/v1/keys", params={"scope": "extraction", "limit": 3, "after": page["next"]})
        assert (len(page["keys"]), len(rest.json()["keys"])) == (3, 1)
        said = service.client.get("/api/v1/keys/explain", params={"key": key[7:20]}).json()
        assert (said["key"], said["nextCaller"]) == (key, "gets this result again, nothing is run")
        assert service.client.post("/api/v1/keys/forget", json={"key": key}).status_code == 422
        wanted = {"key": key, "reason": "it is wrong"}
        assert service.client.post("/api/v1/keys/release", json=wanted).status_code == 409
        assert service.client.post("/api/v1/keys/forget", json=wanted).json()["done"] == "forgotten"
        assert extract(service).json()["cacheHit"] is False
        assert '"reason":"it is wrong"' in (tmp_path / "audit.jsonl").read_text()


def test_a_held_key_is_released_for_the_next_caller(tmp_path):
    hold = Hold()
    with running(tmp_path, hold=hold) as service:
        extract(service, SLOW_REQUEST, headers={"Prefer": "respond-async"})
        assert hold.reached.wait(WITHIN)
        (held,) = service.client.get("/api/v1/keys", params={"state": "held"}).json()["keys"]
        released = service.client.post(
            "/api/v1/keys/release", json={"key": held["key"], "reason": "its worker is dead"}
        )
        assert released.json()["done"] == "released"
        hold.let_go()
        assert extract(service, SLOW_REQUEST).json()["status"] == "complete"


def test_strings_that_would_leave_the_folder_never_do(tmp_path):
    home = tmp_path / "home"
    secret = tmp_path / "metadata.json"
    secret.write_text('{"secret": true}')
    with running(home) as service:
        key = extract(service).json()["idempotencyKey"]
        before = {path for path in tmp_path.rglob("*") if "home" not in path.parts}
        client = service.client
        for text in _traversals(key):
            path = "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
            answer = client.get(f"/api/v1/runs/{path}")
            assert answer.status_code in {400, 404, 405, 431}, (text, answer.status_code)
            assert b"secret" not in answer.content
        assert {path for path in tmp_path.rglob("*") if "home" not in path.parts} == before
        names = {path.name for path in (home / "runs").iterdir()}
        assert names == {key, ".used", ".started", ".ontologies"}


def _traversals(key):
    """A few thousand ways to name a file that is not a run's."""
    dots = ["..", "../", "..\\", "%2e%2e/", "..%2f", "....//", "..;/", "\u2025/", "%c0%ae%c0%ae/", "..\x00/"]
    ends = ["metadata.json", "etc/passwd", "", key, f"{key}/../../metadata.json", "sameas.db", "\x00", "~", "C:\\x"]
    for dot in dots:
        for depth in range(1, 13):
            for end in ends:
                yield dot * depth + end
                yield f"{key}/{dot * depth}{end}"
    for code in (*range(1, 48), *range(58, 97), 127, 0xFF0F, 0x2215, 0x29F8):
        yield chr(code) * 64
        yield f"sha256-{chr(code) * 64}"
        yield f"{key}{chr(code)}"
        yield f"{key[:-1]}{chr(code)}"


def test_ids_of_ontologies_are_checked_before_anything_is_looked_for(service):
    for text in ("a b", "<x>", "a\x00b", "a\nb", "x" * 2000, "{x}"):
        path = "".join(f"%{byte:02x}" for byte in text.encode())
        assert service.client.get(f"/api/v1/ontologies/{path}").status_code == 404
        assert service.client.put(f"/api/v1/ontologies/{path}", content=TURTLE).status_code == 404
    assert service.client.get("/api/v1/ontologies/..%2fcompany").status_code == 404
