"""The log of source document 000, part 8.2, line by line, each with the key, whichever way the request came."""

import io
import json
import logging
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from websockets.sync.client import connect

from sameas.server.logs import JsonFormatter
from tests.unit.server.house import LONG, REQUEST, SLOW, TEXT, TURTLE, Hold, running


class Lines(list):
    """The lines, and what they come out of."""

    def __init__(self):
        super().__init__()
        self.to = io.StringIO()


@contextmanager
def logged():
    """The lines that the service logs meanwhile, as they go out."""
    lines = Lines()
    logger = logging.getLogger("sameas.extraction")
    handler = logging.StreamHandler(lines.to)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        lines += [json.loads(line) for line in lines.to.getvalue().splitlines()]


def post(service, body, **headers):
    return service.client.post("/api/v1/extract", json=body, headers=headers).json()


def call(service, body):
    with connect(service.socket_url) as socket:
        socket.send(json.dumps({"tag": "extraction.streamExtract", "payload": body}))
        while (message := json.loads(socket.recv()))["type"] == "event":
            pass
    return message["result"]


def post_under_a_key(service, body):
    return post(service, body, **{"Idempotency-Key": "mine"})


def test_a_request_is_told_from_its_arrival_to_its_end_and_its_repetition_as_a_hit(tmp_path):
    with running(tmp_path) as service, logged() as lines:
        answer = post(service, {**REQUEST, "extractionParams": {"chunkSize": 500}})
        post(service, {**REQUEST, "extractionParams": {"chunkSize": 500}})
    assert [line["event"] for line in lines] == [
        "Extraction requested",
        "Cache miss, orchestrating extraction",
        "Starting streaming extraction",
        "Extraction complete",
        "Extraction requested",
        "Cache hit",
    ]
    assert {line["idempotencyKey"] for line in lines} == {answer["idempotencyKey"]}
    assert all(line["level"] == "info" and line["timestamp"] and line["traceId"] for line in lines)
    for asked in (lines[0], lines[4]):
        assert (asked["ontologyId"], asked["textLength"]) == (answer["ontologyId"], len(TEXT))
        assert asked["extractionParams"] == {"chunkSize": 500}
    assert (lines[3]["entityCount"], lines[3]["relationCount"]) == (len(answer["entities"]), len(answer["relations"]))
    assert lines[5]["hitSource"] == "result-cache"
    assert lines[5]["cacheAge"] >= 0
    assert not any("Anna" in json.dumps(line) for line in lines)


def test_the_lines_are_the_same_over_rpc_and_under_a_client_s_key(tmp_path):
    with running(tmp_path) as service, logged() as lines:
        call(service, REQUEST)
        for _ in range(2):
            post_under_a_key(service, REQUEST)
        with connect(service.socket_url) as socket:
            socket.send(json.dumps({"tag": "extraction.getResult", "payload": REQUEST}))
            assert json.loads(socket.recv())["result"]["entities"]
    assert [line["event"] for line in lines[:4]] == [
        "Extraction requested",
        "Cache miss, orchestrating extraction",
        "Starting streaming extraction",
        "Extraction complete",
    ]
    assert [line["event"] for line in lines[4:]] == [*["Extraction requested", "Cache hit"] * 2, "Cache hit"]
    assert lines[-1]["cacheAge"] >= 0
    assert len({line["idempotencyKey"] for line in lines}) == 1


@pytest.mark.parametrize("ask", [post, post_under_a_key, call], ids=["plain", "client-key", "rpc"])
def test_who_waits_for_the_same_work_is_told_with_the_time_and_has_a_row(tmp_path, ask):
    hold = Hold()
    request = {**REQUEST, "text": LONG, "extractionParams": SLOW}
    database = tmp_path / "results.db"
    with running(tmp_path, hold=hold, database=f"sqlite:///{database}") as service, logged() as lines:
        with ThreadPoolExecutor(3) as pool:
            first = pool.submit(ask, service, request)
            assert hold.reached.wait(30)
            others = [pool.submit(ask, service, request) for _ in range(2)]
            while lines.to.getvalue().count("Extraction requested") < 3:
                time.sleep(0.01)
            hold.let_go()
            keys = {one.result()["idempotencyKey"] for one in (first, *others)}
    told = [line for line in lines if line["event"] == "Concurrent request deduplicated"]
    assert {line["idempotencyKey"] for line in told} == keys
    assert len(told) == 2
    assert all(line["waitTime"] >= 0 for line in told)
    assert [line["hitSource"] for line in lines if line["event"] == "Cache hit"] == ["execution-cache"] * 2
    with closing(sqlite3.connect(database)) as rows:
        query = (
            "SELECT idempotency_key, metadata FROM extraction_audit_log WHERE event_type = 'concurrent_deduplicated'"
        )
        found = rows.execute(query).fetchall()
    assert [key for key, _ in found] == [*keys] * 2
    assert all(json.loads(about)["waitTime"] >= 0 for _, about in found)


def test_an_invalidation_is_a_warning_with_both_versions(tmp_path):
    with running(tmp_path) as service:
        place = "/api/v1/ontologies/co"
        old = service.client.put(place, content=TURTLE).json()
        post(service, {**REQUEST, "ontologyId": "co"})
        with logged() as lines:
            new = service.client.put(place, content=TURTLE.replace(b'"sodium"@en', b'"soda"@en')).json()
    (line,) = lines
    assert (line["level"], line["event"]) == ("warning", "Ontology cache invalidation")
    assert (line["ontologyId"], line["oldVersion"], line["newVersion"]) == (old["id"], old["version"], new["version"])
    assert line["entriesInvalidated"] == 1
