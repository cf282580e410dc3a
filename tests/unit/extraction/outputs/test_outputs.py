"""Every format is read back by somebody else's parser, hostile names included."""

import csv
import io
import json
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import cast
from xml.sax.saxutils import escape

import pyoxigraph
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.extraction.outputs import FORMATS, OutputContext, OutputFormat, render
from sameas.extraction.outputs.rdf import OWL, PREFIXES, RDF, TurtleTerms, write_lines
from sameas.extraction.text.document import DocumentSource, Span
from tests.unit.extraction.cypher import Token, tokenize

XSD = "http://www.w3.org/2001/XMLSchema#"
BASE = "https://example.org/kg/"
HOSTILE = [
    'quote " and \\ back',
    "o'Brien'; MATCH (n) DETACH DELETE n; //",
    "line\nbreak\r\ttab",
    "]]> </node> <x> & amp",
    "=1+1",
    "@cmd",
    "`back` \\u0060 tick",
    "شركة 東京 👩\u200d🚀 e\u0301",
    "null\x00 bell\x07 \x85 \u2028",
    '"""triple""" <http://evil> .',
    "lone \ud800 surrogate",
]


def graph_of(name: str, value: str = "v") -> KnowledgeGraph:
    return KnowledgeGraph.of(
        entities=[
            Entity(
                "a-1",
                name,
                ("http://e/Type`x",) if "`" in name else ("http://e/Type",),
                (f"{name}!",),
                (Evidence(0, 4, name),),
            ),
            Entity("b-2", "Plain", ("http://e/Type",), individual="http://e/known"),
        ],
        relations=[
            Relation("a-1", "http://e/p", "b-2", evidence=(Evidence(0, 9, name),), subject_spans=(Span(0, 4),)),
            Relation("a-1", "http://e/q", value=Value(value, XSD + "string"), evidence=(Evidence(1, 9, name),)),
            Relation("a-1", "http://e/r", value=Value("-3.5", XSD + "decimal", "km")),
        ],
    )


CONTEXT = OutputContext(
    key="sha256-abc", base=BASE, ontology="http://e/onto", extractor="lexicon", extractor_version="1"
)


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def parsed(graph: KnowledgeGraph, format: OutputFormat) -> rdflib.Graph:
    names = {"turtle": "turtle", "jsonld": "json-ld", "nquads": "nquads"}
    flat = rdflib.Graph()
    with warnings.catch_warnings():
        # rdflib's own parsers still use what it deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        dataset = rdflib.Dataset()
        dataset.parse(data=render(graph, to=format, context=CONTEXT), format=names[format])
        for subject, predicate, object, _ in dataset.quads():
            flat.add((subject, predicate, object))
    return flat


@pytest.mark.parametrize("format", ["turtle", "jsonld", "nquads"])
@pytest.mark.parametrize("name", [name for name in HOSTILE if "`" not in name and "\x00" not in name])
def test_rdf_says_the_same_in_every_notation(format: OutputFormat, name: str) -> None:
    found = parsed(graph_of(name, name), format)
    one, other = rdflib.URIRef(BASE + "a-1"), rdflib.URIRef(BASE + "b-2")
    assert (one, rdflib.RDFS.label, rdflib.Literal(clean(name))) in found
    assert (one, rdflib.URIRef("http://e/p"), other) in found
    assert (other, rdflib.OWL.sameAs, rdflib.URIRef("http://e/known")) in found
    values = [str(value) for value in found.objects(one, rdflib.URIRef("http://e/q"))]
    assert values == [clean(name)]


def test_rdf_tells_where_in_the_text_a_fact_stands() -> None:
    found = parsed(graph_of("Alice"), "turtle")
    asked = """
        PREFIX oa: <http://www.w3.org/ns/oa#> PREFIX prov: <http://www.w3.org/ns/prov#>
        PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
        SELECT ?start ?end ?exact ?agent WHERE {
            ?fact a rdf:Statement ; rdf:predicate <http://e/p> ; oa:hasTarget ?target ; prov:wasGeneratedBy ?run .
            ?target oa:hasSource ?source ; oa:hasSelector ?position, ?quote .
            ?position a oa:TextPositionSelector ; oa:start ?start ; oa:end ?end .
            ?quote a oa:TextQuoteSelector ; oa:exact ?exact .
            ?run a prov:Activity ; prov:used ?source, <http://e/onto> ; prov:wasAssociatedWith ?agent .
        }"""
    ((start, end, exact, agent),) = [
        tuple(map(str, row)) for row in cast("Iterable[rdflib.query.ResultRow]", found.query(asked))
    ]
    assert (start, end, exact, agent) == ("0", "9", "Alice", BASE + "extractor-lexicon")


def test_a_unit_is_said_of_the_statement() -> None:
    found = parsed(graph_of("Alice"), "nquads")
    assert [str(unit) for unit in found.objects(None, rdflib.URIRef("https://sameas.dev/ns#unit"))] == ["km"]


def test_quads_keep_facts_apart_from_what_is_said_about_them() -> None:
    lines = render(graph_of("Alice"), to="nquads", context=CONTEXT).decode().splitlines()
    facts = [line for line in lines if line.endswith(f"<{BASE}graph-sha256-abc> .")]
    assert any("<http://e/p>" in line for line in facts)
    assert not any("TextPositionSelector" in line for line in facts)


@pytest.mark.parametrize("name", HOSTILE)
def test_graphml_is_whole_xml(name: str) -> None:
    root = ET.fromstring(render(graph_of(name, name), to="graphml", context=CONTEXT))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    nodes = {node.get("id"): node for node in root.iter(f"{space}node")}
    edges = list(root.iter(f"{space}edge"))
    assert len(edges) == 3
    assert all(edge.get("source") in nodes and edge.get("target") in nodes for edge in edges)
    label = next(data.text for data in nodes["a-1"] if data.get("key") == "node-label")
    legal = "".join(
        sign if sign in "\t\n\r" or (sign >= " " and not "\ud800" <= sign <= "\udfff") else "\ufffd" for sign in name
    )
    assert label == legal


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_rows_come_back_and_never_are_formulas(name: str) -> None:
    data = render(graph_of(name, name), to="csv", context=CONTEXT).decode()
    rows = list(csv.DictReader(io.StringIO(data, newline=""), strict=True))
    assert [row["kind"] for row in rows] == ["entity", "entity", "relation", "relation", "relation"]
    safe = name.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
    assert rows[0]["subject_name"] in (safe, f"'{safe}")
    assert rows[4]["value"] == "-3.5"
    for row in rows:
        for column in ("subject_name", "object_name", "evidence"):
            assert not row[column].startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("name", HOSTILE)
def test_cypher_holds_names_in_strings_only(name: str) -> None:
    data = render(graph_of(name, name), to="cypher", context=CONTEXT).decode()
    tokens = tokenize(data)
    words = {token.text for token in tokens if token.kind == "word"}
    allowed = {"MERGE", "MATCH", "SET", "CASE", "WHEN", "IS", "NULL", "OR", "THEN", "ELSE", "END"}
    allowed |= {"CREATE", "CONSTRAINT", "INDEX", "IF", "NOT", "EXISTS", "FOR", "REQUIRE", "UNIQUE", "ON"}
    allowed |= {"a", "d", "e", "i", "n", "o", "r", "s", "t"}
    fields = {"iri", "name", "text", "predicate", "statement", "confidence"}
    assert {word for word in words if not word.startswith("sameas_")} <= allowed | fields
    assert tokens[-1] == Token("sign", ";")
    strings = [token.text for token in tokens if token.kind == "string"]
    assert name.replace("\ud800", "\ufffd") in strings


@given(st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_name_breaks_any_format(name: str) -> None:
    graph = graph_of(name or "x", name)
    ET.fromstring(render(graph, to="graphml", context=CONTEXT))
    tokenize(render(graph, to="cypher", context=CONTEXT).decode())
    json.loads(render(graph, to="json", context=CONTEXT))
    list(csv.reader(io.StringIO(render(graph, to="csv", context=CONTEXT).decode(), newline=""), strict=True))


def test_json_is_the_graph_with_its_key() -> None:
    whole = json.loads(render(graph_of("Alice"), to="json", context=CONTEXT))
    assert whole["idempotencyKey"] == "sha256-abc"
    assert [entity["name"] for entity in whole["entities"]] == ["Alice", "Plain"]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_names_all_names_of_a_document(format: OutputFormat) -> None:
    names = ("first.txt", "second & <third>.txt", "fünfte.txt")
    sources = tuple(DocumentSource(name=name, title=f"Title {number}") for number, name in enumerate(names))
    context = OutputContext(key="sha256-abc", text_hash="ab", sources=sources)
    written = render(graph_of("Alice"), to=format, context=context).decode()
    if format == "graphml":
        (data,) = [one for one in ET.fromstring(written).iter() if one.get("key") == "graph-sources"]
        assert [one["name"] for one in json.loads(data.text or "")] == list(names)
    for number, name in enumerate(names):
        told = {"graphml": escape(name)}.get(format, name)
        assert told in written, format
        assert f"Title {number}" in written, format


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_graph_can_be_written(format: OutputFormat) -> None:
    render(KnowledgeGraph(), to=format, context=CONTEXT)


@pytest.mark.parametrize("format", FORMATS)
def test_writing_twice_gives_the_same_bytes(format: OutputFormat) -> None:
    assert render(graph_of("A"), to=format, context=CONTEXT) == render(graph_of("A"), to=format, context=CONTEXT)


@pytest.mark.parametrize("base", ["", "relative/", "http://e/x", "http://e/ space/", 'http://e/">/', "http://e/\n#"])
def test_a_base_that_is_no_base_is_refused(base: str) -> None:
    with pytest.raises(ValueError, match="base"):
        OutputContext(key="k", base=base)


def test_an_iri_that_is_none_is_never_written() -> None:
    graph = KnowledgeGraph.of(entities=[Entity("a", "A", ("not an iri> <x",))])
    with pytest.raises(ValueError, match="IRI"):
        render(graph, to="turtle", context=CONTEXT)


def test_a_base_like_a_known_namespace_is_written_out() -> None:
    context = OutputContext(key="k", base="http://www.w3.org/")
    graph = rdflib.Graph().parse(data=render(graph_of("A"), to="turtle", context=context), format="turtle")
    assert (rdflib.URIRef("http://www.w3.org/a-1"), rdflib.RDFS.label, rdflib.Literal("A")) in graph


def test_a_document_is_known_by_its_text_and_not_by_its_run() -> None:
    one, other = OutputContext(key="k", text_hash="ab"), OutputContext(key="another", text_hash="ab")
    assert one.document == other.document == "urn:sameas:document-sha256-ab"
    assert one.run != other.run


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="turtle"):
        render(KnowledgeGraph(), to="word", context=CONTEXT)  # type: ignore[arg-type]


@given(
    text=st.text(),
    datatype=st.sampled_from(["", *(f"{XSD}{name}" for name in ("string", "integer", "decimal", "date"))]),
)
def test_turtle_writes_a_literal_as_the_serialiser_does(text: str, datatype: str) -> None:
    clean = text.encode("utf-8", "replace").decode()
    terms = TurtleTerms(PREFIXES)
    literal = (
        pyoxigraph.Literal(clean, datatype=pyoxigraph.NamedNode(datatype)) if datatype else pyoxigraph.Literal(clean)
    )
    node = pyoxigraph.NamedNode("urn:x")
    lines = [("<urn:x>", "<urn:x>", terms.literal(clean, datatype))]
    assert _written(lines, terms) == _serialised([pyoxigraph.Triple(node, node, literal)])


@pytest.mark.parametrize(
    "iri",
    [
        OWL + "Thing",
        OWL,
        OWL + "a.b",
        OWL + "-x",
        OWL + "x/y",
        OWL + "é",
        OWL + "x%20y",
        OWL + "a~b",
        "urn:a:b",
        RDF + "type",
    ],
)
def test_turtle_writes_an_iri_as_the_serialiser_does(iri: str) -> None:
    terms = TurtleTerms(PREFIXES)
    node = pyoxigraph.NamedNode(iri)
    said = terms.node(iri)
    triples = [pyoxigraph.Triple(node, node, node), pyoxigraph.Triple(node, node, pyoxigraph.Literal("x"))]
    assert _written([(said, said, said), (said, said, '"x"')], terms) == _serialised(triples)


def test_turtle_refuses_an_iri_that_is_none() -> None:
    with pytest.raises(ValueError, match="IRI"):
        TurtleTerms(PREFIXES).node("no iri")


def _written(lines: list[tuple[str, str, str]], terms: TurtleTerms) -> list[bytes]:
    whole = io.BytesIO()
    write_lines(lines, whole, terms=terms)
    return sorted(whole.getvalue().split(b"\n"))


def _serialised(triples: list[pyoxigraph.Triple]) -> list[bytes]:
    # The order of the prefixes differs from process to process.
    whole = pyoxigraph.serialize(triples, format=pyoxigraph.RdfFormat.TURTLE, prefixes=PREFIXES)
    assert whole is not None
    return sorted(whole.split(b"\n"))
