"""The SPARQL protocol of a collection, as rdflib and SPARQLWrapper speak it; and what it does not give away."""

import json
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import rdflib
from rdflib.plugins.stores.sparqlstore import SPARQLStore
from SPARQLWrapper import JSON, POST, SPARQLWrapper

from sameas.client import Client
from sameas.questions.query_text import read_query
from sameas.server.http.routes import questions
from tests.unit.server.house import running

ONTOLOGY = b"""@prefix : <https://example.org/company#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<https://example.org/company> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person" . :Company a owl:Class ; rdfs:label "company" .
:worksFor a owl:ObjectProperty ; rdfs:label "works for" ; rdfs:domain :Person ; rdfs:range :Company .
"""
NAMES = "SELECT ?name { ?who :worksFor ?where . ?who rdfs:label ?name } ORDER BY ?name"


@pytest.fixture(scope="module")
def home(tmp_path_factory: Any) -> Path:
    return Path(tmp_path_factory.mktemp("sparql"))


@pytest.fixture(scope="module")
def service(home: Path) -> Iterator[Any]:
    with running(home, extractor="lexicon", query_seconds=2.0, query_rows=500) as one:
        client = one.client
        put = client.put("/api/v1/ontologies/firm", content=ONTOLOGY, headers={"Content-Type": "text/turtle"})
        assert put.status_code in (200, 201), put.text
        for name, person in (("press", "Alice Stone"), ("other", "Carol Flint")):
            made = client.post("/api/v1/collections", json={"name": name, "ontologyId": "firm"})
            assert made.status_code == 201, made.text
            texts = [{"name": f"{name}.txt", "text": f"{person} works for Acme Robotics."}]
            assert client.post(f"/api/v1/collections/{name}/documents", json={"documents": texts}).status_code == 202
        for name in ("press", "other"):
            ends_at = time.monotonic() + 60
            while client.get(f"/api/v1/collections/{name}/sync").json()["complete"] < 1:
                assert time.monotonic() < ends_at
                time.sleep(0.05)
        yield one


@pytest.fixture
def endpoint(service: Any) -> str:
    return f"{service.url}/api/v1/collections/press/sparql"


def test_rdflib_reads_a_collection_as_a_graph(endpoint: str) -> None:
    graph = rdflib.Graph(SPARQLStore(endpoint))
    works_for = rdflib.URIRef("https://example.org/company#worksFor")
    ((who, where),) = list(graph.subject_objects(works_for))
    assert str(next(graph.objects(who, rdflib.RDFS.label))) == "Alice Stone"
    rows = graph.query("SELECT ?name { ?s <http://www.w3.org/2000/01/rdf-schema#label> ?name } ORDER BY ?name")
    assert [str(row[0]) for row in cast("Iterable[rdflib.query.ResultRow]", rows)] == [
        "Acme Robotics",
        "Alice Stone",
        "press.txt",
    ]


@pytest.mark.parametrize("method", ["GET", POST])
def test_sparqlwrapper_asks_by_get_and_post(endpoint: str, method: str) -> None:
    wrapper = SPARQLWrapper(endpoint)
    wrapper.setQuery(NAMES)
    wrapper.setMethod(method)
    wrapper.setReturnFormat(JSON)
    found: Any = wrapper.query().convert()
    assert [row["name"]["value"] for row in found["results"]["bindings"]] == ["Alice Stone"]


def test_a_query_may_be_the_whole_body_and_its_answer_any_notation(service: Any, endpoint: str) -> None:
    headers = {"Content-Type": "application/sparql-query", "Accept": "text/csv"}
    assert service.client.post(endpoint, content=NAMES, headers=headers).text == "name\r\nAlice Stone\r\n"
    graph = service.client.get(endpoint, params={"query": "CONSTRUCT WHERE { ?s :worksFor ?o }"})
    assert graph.headers["content-type"].startswith("text/turtle")
    assert "worksFor" in graph.text


def test_nothing_but_the_collection_is_there(service: Any, endpoint: str) -> None:
    def rows(query: str, **more: str) -> list[Any]:
        reply = service.client.get(endpoint, params={"query": query, **more})
        assert reply.status_code == 200, reply.text
        return reply.json()["results"]["bindings"]

    assert "Carol" not in str(rows("SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"))
    other = service.client.get("/api/v1/collections/other/documents").json()["documents"][0]["iri"]
    assert rows(f"SELECT * FROM <{other}> {{ ?s ?p ?o }}") == []
    assert rows("SELECT * { ?s ?p ?o }", **{"default-graph-uri": other}) == []
    assert service.client.get(endpoint.replace("press", "nowhere"), params={"query": NAMES}).status_code == 404


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [
        ({"query": "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"}, 400, "query-invalid"),
        ({"query": "LOAD <http://127.0.0.1:1/>"}, 400, "query-invalid"),
        ({"query": "SELECT"}, 400, "query-invalid"),
        ({"query": "SELECT * { SERVICE:x { ?s ?p ?o } }"}, 400, "query-invalid"),
        ({"query": NAMES, "default-graph-uri": "no iri"}, 400, "query-invalid"),
        ({"query": NAMES, "named-graph-uri": "<>"}, 400, "query-invalid"),
        ({"update": "CLEAR ALL"}, 403, "read-only"),
        ({}, 400, "query-missing"),
        ({"query": "ASK {}", "else": "1"}, 400, "parameter-unknown"),
        (
            {"query": f"SELECT (COUNT(*) AS ?n) {{ {' '.join(f'?a{i} ?b{i} ?c{i} .' for i in range(12))} }}"},
            422,
            "query-too-large",
        ),
        ({"query": "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"}, 422, "query-too-large"),
    ],
)
def test_what_is_more_than_a_query_is_refused(
    service: Any, endpoint: str, parameters: Any, status: int, code: str
) -> None:
    reply = service.client.get(endpoint, params=parameters)
    assert (reply.status_code, reply.json()["type"]) == (status, f"urn:sameas:problem:{code}")


def test_updates_in_a_form_and_other_bodies_are_refused(service: Any, endpoint: str) -> None:
    assert service.client.post(endpoint, data={"update": "CLEAR ALL"}).status_code == 403
    assert service.client.post(endpoint, json={"query": NAMES}).status_code == 415
    assert service.client.get(endpoint, params={"query": NAMES}, headers={"Accept": "image/png"}).status_code == 406


def test_a_long_query_is_not_looked_at_where_everybody_is_served(endpoint: str, monkeypatch: Any) -> None:
    threads: list[str] = []

    def read(text: str) -> Any:
        threads.append(threading.current_thread().name)
        return read_query(text)

    monkeypatch.setattr(questions, "read_query", read)
    answer = httpx.post(endpoint, data={"query": NAMES})
    assert (answer.status_code, len(threads)) == (200, 1)
    assert threads[0].startswith("sameas-serving")


def test_things_are_found_and_connected(service: Any) -> None:
    folder = "/api/v1/collections/press"
    hits = service.client.get(f"{folder}/find", params={"q": "alice ston"}).json()["hits"]
    assert hits[0]["matched"] == "Alice Stone"
    path = service.client.get(f"{folder}/path", params={"a": "Alice Stone", "b": "Acme Robotics"}).json()["path"]
    assert [one["evidence"][0]["text"] for one in path] == ["Alice Stone works for Acme Robotics."]


def test_what_is_erased_is_not_in_the_index_any_more(service: Any, home: Path) -> None:
    client, folder = service.client, "/api/v1/collections/other"
    query = {"query": "ASK { ?s rdfs:label 'Carol Flint' }"}
    assert client.get(f"{folder}/sparql", params=query).json()["boolean"]
    id_ = client.get(f"{folder}/find", params={"q": "Carol Flint"}).json()["hits"][0]["id"]
    assert client.request("DELETE", f"{folder}/entities/{id_}", json={"reason": "asked for"}).status_code == 200
    assert not client.get(f"{folder}/sparql", params=query).json()["boolean"]
    assert [
        file
        for file in (home / "cache" / "questions").rglob("*")
        if file.is_file() and b"Carol Flint" in file.read_bytes()
    ] == []


def test_the_client_asks_too(service: Any) -> None:
    with Client(service.url) as client:
        found = json.loads(client.collections.query("press", NAMES))
        assert [row["name"]["value"] for row in found["results"]["bindings"]] == ["Alice Stone"]
        assert b"worksFor" in client.collections.query("press", "CONSTRUCT WHERE { ?s :worksFor ?o }")
        (step,) = client.collections.path("press", "Alice Stone", "Acme Robotics")
        assert step.object_name == "Acme Robotics"
