"""The whole collection as a file: a graph for each document, the resolved view, and every piece of evidence."""

import csv
import io
import json

import pyoxigraph
import pytest

from sameas.collections import Source, text_digest
from sameas.collections.exports import EXPORT_FORMATS
from tests.unit.collections.press import NS, company, graph, person, put, says

ALICE, ACME = person("Alice Stone"), company("Acme Ltd")


@pytest.fixture
def filled(collection):
    put(collection, "a.txt", ALICE, ACME, says(ALICE, "worksFor", ACME, quote="Alice is with Acme"))
    put(collection, "b.txt", ALICE, ACME, says(ALICE, "worksFor", ACME, quote="Acme pays Alice"))
    put(collection, "c.txt", person("=Bob"), says(person("=Bob"), "motto", "=1+1"))
    collection.decide("different", "Alice Stone", "Acme Ltd", reason="one pays the other")
    return collection


def _export(collection, to):
    target = io.BytesIO()
    collection.export(target, to=to)
    return target.getvalue()


def test_n_quads_have_a_graph_for_each_document_and_the_resolved_view(filled):
    store = pyoxigraph.Store()
    store.load(_export(filled, "nquads"), format=pyoxigraph.RdfFormat.N_QUADS)
    works = pyoxigraph.NamedNode(NS + "worksFor")
    graphs = {str(quad.graph_name) for quad in store.quads_for_pattern(None, works, None)}
    assert len(graphs) == 3
    assert "DEFAULT" in graphs
    exact = store.query(
        "SELECT ?e { ?s <http://www.w3.org/ns/oa#hasTarget>/<http://www.w3.org/ns/oa#hasSelector>/<http://www.w3.org/ns/oa#exact> ?e }"
    )
    assert {"Alice is with Acme", "Acme pays Alice"} <= {row["e"].value for row in exact}
    derived = store.query(
        f"SELECT ?d {{ ?s <http://www.w3.org/1999/02/22-rdf-syntax-ns#predicate> <{NS}worksFor> ; <http://www.w3.org/ns/prov#wasDerivedFrom> ?d }}"
    )
    assert len({row["d"].value for row in derived}) == 2
    assert store.query("ASK { ?a <http://www.w3.org/2002/07/owl#differentFrom> ?b }")


def test_a_merged_thing_is_the_same_as_what_it_became_and_a_document_says_where_it_lies(filled):
    ids = {one.name: one.id for one in filled.entities()}
    filled.put_document(
        Source(name="d.txt", path="/reports/d.txt", source_time="2026-01-02T03:04:05Z"),
        digest=text_digest("d"),
        said=graph(person("Alicia Stone")),
    )
    alicia = next(one for one in filled.entities() if one.name == "Alicia Stone")
    filled.decide("same", "Alicia Stone", "Alice Stone", reason="she told me")
    store = pyoxigraph.Store()
    store.load(_export(filled, "nquads"), format=pyoxigraph.RdfFormat.N_QUADS)
    base = filled.base
    assert store.query(f"ASK {{ <{alicia.iri}> <http://www.w3.org/2002/07/owl#sameAs> <{base}{ids['Alice Stone']}> }}")
    assert store.query("ASK { ?decision <http://www.w3.org/2000/01/rdf-schema#comment> 'she told me' }")
    assert store.query(
        "ASK { ?d <http://www.w3.org/ns/prov#atLocation> <file:///reports/d.txt> ; <http://purl.org/dc/terms/modified> "
        "'2026-01-02T03:04:05Z'^^<http://www.w3.org/2001/XMLSchema#dateTime> }"
    )


def test_turtle_has_the_resolved_view(filled):
    triples = list(pyoxigraph.parse(_export(filled, "turtle"), format=pyoxigraph.RdfFormat.TURTLE))
    assert sum(triple.predicate.value == NS + "worksFor" for triple in triples) == 1


def test_json_lines_have_documents_entities_statements_and_decisions(filled):
    kinds = [next(iter(json.loads(line))) for line in _export(filled, "jsonl").splitlines()]
    assert {kind: kinds.count(kind) for kind in kinds} == {"document": 3, "entity": 3, "statement": 2, "decision": 1}


def test_csv_holds_no_formula(filled):
    rows = list(csv.DictReader(io.StringIO(_export(filled, "csv").decode())))
    assert len(rows) == 2
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row.values())


def test_the_same_collection_gives_the_same_bytes(filled):
    for to in EXPORT_FORMATS:
        assert _export(filled, to) == _export(filled, to)
