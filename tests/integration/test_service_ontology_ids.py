"""An ontology has one id and any number of names: either works everywhere, and results belong to the id alone."""

import json
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

from tests.unit.server.house import REQUEST, TEXT, TURTLE, running

CHANGED = TURTLE.replace(b'"sodium"@en', b'"soda"@en')
NAMELESS = b"""@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<urn:x:Person> a owl:Class ; rdfs:label "person"@en . """


@pytest.fixture
def service(tmp_path):
    with running(tmp_path) as service:
        (tmp_path / "ontologies" / "company.ttl").unlink()
        yield service


def path(named):
    return f"/api/v1/ontologies/{quote(named, safe='')}"


def put(service, named, data=TURTLE):
    reply = service.client.put(path(named), content=data, headers={"Content-Type": "text/turtle"})
    assert reply.status_code in (200, 201), reply.text
    return reply.json()


def extract(service, named, text=TEXT):
    reply = service.client.post("/api/v1/extract", json={**REQUEST, "text": text, "ontologyId": named})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_the_id_of_an_answer_works_wherever_the_name_does(service):
    assert put(service, "company")["names"] == ["company"]
    answer = extract(service, "company")
    one = answer["ontologyId"]
    assert answer["ontologyNames"] == ["company"]
    by_id = extract(service, one)
    assert (by_id["idempotencyKey"], by_id["cacheHit"]) == (answer["idempotencyKey"], True)
    for named in ("company", one):
        entry = service.client.get(path(named)).json()
        assert (entry["id"], entry["names"]) == (one, ["company"])
        runs = service.client.get("/api/v1/runs", params={"ontologyId": named}).json()["runs"]
        assert [(run["ontologyId"], run["ontologyNames"]) for run in runs] == [(one, ["company"])]
        asked = {"text": TEXT, "ontologyId": named}
        debug = service.client.get("/api/v1/debug/idempotency-key", params=asked).json()
        assert (debug["key"], debug["known"]) == (answer["idempotencyKey"], "complete")
        assert (debug["components"]["ontologyId"], debug["ontologyNames"]) == (one, ["company"])
        assert service.client.post("/api/v1/estimate", json=asked).json()["cacheHit"] is True
        with connect(service.socket_url) as socket:
            socket.send(json.dumps({"tag": "extraction.getResult", "payload": asked}))
            result = json.loads(socket.recv())["result"]
        assert (result["ontologyId"], result["ontologyNames"]) == (one, ["company"])
    run = service.client.get(f"/api/v1/runs/{answer['idempotencyKey']}").json()
    assert (run["ontologyId"], run["ontologyNames"]) == (one, ["company"])


def test_a_collection_is_made_by_either_and_told_with_both(service):
    one = put(service, "company")["id"]
    for name, named in (("a", "company"), ("b", one)):
        wish = {"name": name, "ontologyId": named}
        made = service.client.post("/api/v1/collections", json=wish).json()
        shown = service.client.get(f"/api/v1/collections/{name}").json()
        listed = service.client.get("/api/v1/collections").json()["collections"][-1]
        for info in (made, shown, listed):
            assert (info["name"], info["ontologyId"], info["ontologyNames"]) == (name, one, ["company"])


def test_a_second_name_shares_the_results_and_its_deletion_leaves_them(service):
    put(service, "company")
    one = extract(service, "company")["ontologyId"]
    second = put(service, "firm")
    assert (second["created"], second["changed"], second["names"]) == (True, False, ["company", "firm"])
    assert extract(service, "firm")["cacheHit"] is True
    assert service.client.delete(path("firm")).json() == {"entriesInvalidated": 0}
    assert service.client.get(path("firm")).status_code == 404
    assert extract(service, "company")["cacheHit"] is True
    assert service.client.delete(path("company")).json()["entriesInvalidated"] == 1
    assert service.client.get(path(one)).status_code == 404
    assert service.client.get("/api/v1/runs").json()["runs"] == []


def test_deleting_an_id_deletes_the_ontology_with_all_its_names_and_results(service):
    put(service, "company")
    put(service, "firm")
    one = extract(service, "company")["ontologyId"]
    assert service.client.delete(path(one)).json()["entriesInvalidated"] == 1
    for named in ("company", "firm", one):
        assert service.client.get(path(named)).status_code == 404


def test_a_new_version_under_one_name_or_the_id_is_the_version_of_all(service):
    put(service, "company")
    put(service, "firm")
    one = extract(service, "firm")["ontologyId"]
    changed = put(service, one, CHANGED)
    assert (changed["created"], changed["changed"], changed["entriesInvalidated"]) == (False, True, 1)
    for named in ("company", "firm", one):
        assert service.client.get(path(named)).json()["version"] == changed["version"]
        assert extract(service, named)["ontologyVersion"] == changed["version"]


def test_a_name_that_comes_to_stand_for_another_ontology_takes_no_results_of_the_first(service):
    put(service, "company")
    put(service, "firm")
    first = extract(service, "company")
    other = TURTLE.replace(first["ontologyId"].encode(), b"urn:example:other")
    assert other != TURTLE
    moved = put(service, "firm", other)
    assert (moved["id"], moved["changed"], moved["entriesInvalidated"]) == ("urn:example:other", True, 0)
    assert extract(service, "company")["cacheHit"] is True
    assert service.client.get(path("company")).json()["names"] == ["company"]


def test_a_name_that_is_another_s_id_is_refused(service):
    put(service, "company")
    one = service.client.get(path("company")).json()["id"]
    other = TURTLE.replace(one.encode(), b"urn:example:other")
    refused = service.client.put(path(one), content=other)
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:sameas:problem:ontology-ambiguous"


def test_an_ontology_without_an_iri_has_an_id_too(service):
    made = put(service, "plain", NAMELESS)
    assert made["id"].startswith("urn:sameas:ontology:")
    assert extract(service, made["id"])["ontologyNames"] == ["plain"]
    assert put(service, "also", NAMELESS)["id"] == made["id"]
    assert service.client.delete(path("also")).json() == {"entriesInvalidated": 0}
    assert extract(service, "plain")["cacheHit"] is True


def test_foaf_can_be_named_without_being_put(service):
    answer = extract(service, "foaf", "Alice knows Bob Miller.")
    assert answer["ontologyId"] == "http://xmlns.com/foaf/0.1/"
    assert "foaf" in answer["ontologyNames"]
    assert extract(service, "http://xmlns.com/foaf/0.1/", "Alice knows Bob Miller.")["cacheHit"] is True
    listed = {entry["id"]: entry for entry in service.client.get("/api/v1/ontologies").json()["ontologies"]}
    assert listed["http://xmlns.com/foaf/0.1/"]["source"] == "published"
    assert {name for entry in listed.values() for name in entry["names"]} == {"foaf", "prov", "schema", "skos"}
    assert service.client.delete(path("foaf")).status_code == 404


def test_one_s_own_foaf_comes_before_the_published_one_and_leaves_with_its_own_results(service):
    published = extract(service, "foaf", "Alice knows Bob Miller.")
    own = TURTLE.replace(service_iri(service), b"http://xmlns.com/foaf/0.1/")
    put(service, "my-foaf", own)
    mine = extract(service, "foaf")
    assert mine["ontologyVersion"] != published["ontologyVersion"]
    assert mine["ontologyNames"] == ["foaf", "my-foaf"]
    assert service.client.delete(path("my-foaf")).json()["entriesInvalidated"] == 1
    assert extract(service, "foaf", "Alice knows Bob Miller.")["cacheHit"] is True


def service_iri(service):
    put(service, "company")
    return service.client.get(path("company")).json()["id"].encode()


def test_files_of_the_folder_are_found_by_id_and_told_apart_by_name(tmp_path):
    with running(tmp_path) as service:
        one = extract(service, "company")["ontologyId"]
        assert extract(service, one)["cacheHit"] is True
        (tmp_path / "ontologies" / "copy.ttl").write_bytes(TURTLE)
        entry = service.client.get("/api/v1/ontologies").json()["ontologies"]
        assert [found["names"] for found in entry if found["id"] == one] == [["company", "copy"]]
        (tmp_path / "ontologies" / "other.ttl").write_bytes(CHANGED)
        assert extract(service, "other")["ontologyVersion"] != extract(service, "company")["ontologyVersion"]
        refused = service.client.get(path(one))
        assert (refused.status_code, "company, copy, other" in refused.json()["detail"]) == (409, True)
