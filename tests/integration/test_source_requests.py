"""The requests and events of the source documents, as they are written there."""

import json
import time

import pytest
from websockets.sync.client import connect

from tests.integration.model_path import ORACLE
from tests.servers.model_server import ModelServer
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, TURTLE, Hold, read_events, running


@pytest.fixture
def service(tmp_path):
    with running(tmp_path) as service:
        yield service


def post(service, body, **headers):
    return service.client.post("/api/v1/extract", json=body, headers=headers)


def call(service, payload, tag="extraction.streamExtract"):
    """The messages of a call."""
    with connect(service.socket_url) as socket:
        socket.send(json.dumps({"tag": tag, "payload": payload}))
        messages = [json.loads(socket.recv())]
        while messages[-1]["type"] == "event":
            messages.append(json.loads(socket.recv()))
    return messages


def test_the_request_of_000_part_2_names_a_model_and_a_temp(tmp_path):
    request = {
        "text": "Cristiano Ronaldo plays for Al-Nassr",
        "ontologyId": "http://example.org/sports-ontology",
        "extractionParams": {"model": "claude-3-5-sonnet", "temp": 0.0},
    }
    with ModelServer(ORACLE) as model, running(tmp_path, models=model.address("claude-3-5-sonnet")) as service:
        service.client.put("/api/v1/ontologies/http://example.org/sports-ontology", content=TURTLE)
        first = post(service, request)
        assert first.status_code == 200, first.text
        assert {*first.json()} >= {"idempotencyKey", "entities", "relations", "cacheHit", "computedAt"}
        longer = {"model": "claude-3-5-sonnet", "temperature": 0.0}
        assert post(service, {**request, "extractionParams": longer}).json()["cacheHit"] is True
        warm = post(service, {**request, "extractionParams": {"model": "claude-3-5-sonnet", "temp": 0.5}}).json()
        assert warm["idempotencyKey"] != first.json()["idempotencyKey"]
        named = {"llmModel": "claude-3-5-sonnet"}
        assert post(service, {**request, "extractionParams": {**named, "temp": 0.0}}).json()["cacheHit"] is True
        for more in ({"temp": 0.5}, {"llmModel": "another"}):
            both = post(service, {**request, "extractionParams": {**longer, **more}})
            assert both.json()["type"] == "urn:sameas:problem:params-contradict"
        asked = {name: request[name] for name in ("text", "ontologyId")}
        given = json.dumps({"model": "claude-3-5-sonnet", "temp": 0.5})
        told = service.client.get("/api/v1/debug/idempotency-key", params={**asked, "extractionParams": given}).json()
        assert told["key"] == warm["idempotencyKey"]


def test_the_requests_of_001_name_foaf(service):
    for text in ("test", "long text..."):
        messages = call(service, {"text": text, "ontologyId": "foaf"})
        assert messages[-1]["type"] == "result"
        assert messages[-1]["result"]["ontologyNames"] == ["foaf"]


def test_the_calls_of_001_part_2_1_go_by_their_names_there(service):
    version = service.client.get("/api/v1/ontologies/company").json()["version"]
    params = {"chunkSize": 500, "includeConfidence": True}
    payload = {"text": TEXT, "ontologyId": "company", "ontologyVersion": version, "params": params}
    result = call(service, payload, tag="ExtractFromText")[-1]["result"]
    assert result["entities"]
    (known,) = call(service, {"idempotencyKey": result["idempotencyKey"]}, tag="GetCachedResult")
    assert known["result"]["entities"] == result["entities"]
    (nothing,) = call(service, {"idempotencyKey": "sha256-" + "0" * 64}, tag="GetCachedResult")
    assert nothing["result"] is None
    headers = {"Idempotency-Key": "mine"}
    for name in ("params", "extractionParams"):
        answer = post(service, {"text": TEXT, "ontologyId": "company", name: params}, **headers)
        assert answer.status_code == 200, answer.text
    both = post(service, {**REQUEST, "params": params, "extractionParams": {"chunkSize": 400}})
    assert both.json()["type"] == "urn:sameas:problem:params-contradict"


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "mine"}], ids=["plain", "client-key"])
def test_confidences_are_given_unless_they_are_not_wanted(service, headers):
    def found(**params):
        named = {name: f"{value}-{params['includeConfidence']}" for name, value in headers.items()}
        answer = post(service, {**REQUEST, "extractionParams": params}, **named)
        assert answer.status_code == 200, answer.text
        return answer.json()["entities"] + answer.json()["relations"]

    with_them, without = found(includeConfidence=True), found(includeConfidence=False)
    assert any("confidence" in one for one in with_them)
    assert not any("confidence" in one or "confidenceFrom" in one for one in without)
    assert [one.get("name") for one in without] == [one.get("name") for one in with_them]
    streamed = call(service, {**REQUEST, "extractionParams": {"includeConfidence": False}})[-1]["result"]
    assert streamed["entities"] + streamed["relations"] == without


def test_a_known_run_ends_with_extraction_completed_and_a_cache_hit_of_now(service):
    first = call(service, REQUEST)
    began = time.time() * 1000
    hit, completed, result = call(service, REQUEST)
    assert (hit["event"]["type"], completed["event"]["type"]) == ("cache_hit", "extraction_completed")
    assert began - 1 <= hit["event"]["timestamp"] <= time.time() * 1000 + 1
    assert hit["event"]["computedAt"] == result["result"]["computedAt"]
    summary = completed["event"]["summary"]
    assert summary == first[-2]["event"]["summary"] | {"durationMs": summary["durationMs"]}
    assert summary["entityCount"] == len(result["result"]["entities"])


def test_the_first_event_says_how_many_chunks_there_are(service):
    messages = call(service, {**REQUEST, "text": LONG, "extractionParams": {"chunkSize": 100}})
    (chunking,) = [
        one["event"]
        for one in messages[:-1]
        if one["event"]["type"] == "stage_completed" and one["event"]["stage"] == "chunking"
    ]
    assert messages[0]["event"]["totalChunks"] == chunking["itemCount"] > 1


def test_a_run_that_is_ended_tells_what_it_had_found(tmp_path):
    hold = Hold(after=5)
    with running(tmp_path, hold=hold) as service:
        request = {**REQUEST, "text": LONG, "extractionParams": SLOW}
        place = post(service, request, Prefer="respond-async").headers["location"]
        assert hold.reached.wait(30)
        service.client.post(f"{place}/cancel")
        with service.client.stream("GET", f"{place}/events") as reply:
            events = [(kind, json.loads(data)) for _, kind, data in read_events(reply.iter_lines())]
        kind, last = events[-1]
        assert kind == "extraction_cancelled"
        names = {entity["name"] for entity in last["partialResult"]["entities"]}
        assert any(name.startswith("Anna0") for name in names)


class _Failing(Hold):
    """Breaks where others are held."""

    def is_held(self, asked):
        if asked > self.after:
            raise ValueError("it broke")
        return False


def test_a_run_that_fails_tells_what_it_had_found(tmp_path):
    with running(tmp_path, hold=_Failing(after=5)) as service:
        messages = call(service, {**REQUEST, "text": LONG, "extractionParams": SLOW})
        last = [one["event"] for one in messages if one["type"] == "event"][-1]
        assert (last["type"], last["error"]["recoverable"]) == ("extraction_failed", False)
        assert any(entity["name"].startswith("Anna0") for entity in last["partialResult"]["entities"])


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "mine"}], ids=["plain", "client-key"])
def test_every_answer_says_whether_it_is_a_replay(service, headers):
    body = {**REQUEST, "text": f"{TEXT} Again."}
    said = [post(service, body, **headers).headers["x-idempotency-replayed"] for _ in range(3)]
    assert said == ["false", "true", "true"]


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "mine"}], ids=["plain", "client-key"])
def test_an_answer_that_a_run_was_accepted_says_that_it_is_no_replay(tmp_path, headers):
    with running(tmp_path, hold=Hold()) as service:
        body = {**REQUEST, "text": LONG, "extractionParams": SLOW}
        answers = [post(service, body, Prefer="respond-async", **headers) for _ in range(2)]
        said = [(answer.status_code, answer.headers.get("x-idempotency-replayed")) for answer in answers]
        assert said == [(202, "false")] * 2
