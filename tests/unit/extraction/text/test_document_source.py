"""Every output tells where a fact comes from: the document, its names, and page and paragraph of each place."""

import csv
import io
import json
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pyoxigraph
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.extraction.outputs import FORMATS, OutputContext, OutputFormat, render
from sameas.extraction.text.document import Document, DocumentPlaces, DocumentSource, Segment, TextPlace, is_iri
from sameas.extraction.text.inputs.reader import read_bytes

TEXT = "Ada met Bob.\n\nAda met Bob again."
XSD = "http://www.w3.org/2001/XMLSchema#"
SOURCE = DocumentSource(
    name="diary.md",
    location="file:///home/ada/diary.md",
    title="A diary",
    media_type="text/markdown",
    size=33,
    modified_at="2026-01-02T03:04:05Z",
)
READ = ("2026-02-03T04:05:06.000Z", "2026-02-03T04:05:07.000Z")
GRAPH = KnowledgeGraph.of(
    entities=[
        Entity("ada", "Ada", ("http://e/Person",), (), (Evidence(0, 3, "Ada"), Evidence(14, 17, "Ada"))),
        Entity("bob", "Bob", ("http://e/Person",), (), (Evidence(8, 11, "Bob"),)),
    ],
    relations=[
        Relation("ada", "http://e/met", "bob", evidence=(Evidence(0, 12, TEXT[:12]), Evidence(14, 32, TEXT[14:]))),
        Relation("ada", "http://e/age", value=Value("36", XSD + "integer"), evidence=(Evidence(0, 12, TEXT[:12]),)),
    ],
)


def context(**changes: object) -> OutputContext:
    known: dict[str, object] = {
        "key": "sha256-run",
        "text_hash": "ab" * 32,
        "sources": (SOURCE,),
        "times": READ,
        "places": DocumentPlaces(Document(TEXT)),
    }
    return OutputContext(**(known | changes))  # type: ignore[arg-type]


DOCUMENT = "urn:sameas:document-sha256-" + "ab" * 32


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_names_the_document_and_what_is_known_of_it(format: OutputFormat) -> None:
    written = render(GRAPH, to=format, context=context()).decode()
    said = written.replace(":document-", "urn:sameas:document-") if format == "turtle" else written
    for part in (DOCUMENT, "diary.md", "file:///home/ada/diary.md", "A diary", "text/markdown", "2026-01-02T03:04:05Z"):
        assert part in said
    assert "33" in said
    assert "2026-02-03T04:05:06" in said or format == "csv"


def test_rdf_tells_the_document_in_prov_and_dublin_core() -> None:
    found = rdflib.Graph().parse(data=render(GRAPH, to="turtle", context=context()), format="turtle")
    asked = """
        PREFIX oa: <http://www.w3.org/ns/oa#> PREFIX prov: <http://www.w3.org/ns/prov#>
        PREFIX dcterms: <http://purl.org/dc/terms/> PREFIX sameas: <https://sameas.dev/ns#>
        PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
        SELECT ?document ?name ?where ?title ?type ?size ?changed ?began ?paragraph WHERE {
            ?fact rdf:predicate <http://e/met> ; oa:hasTarget ?target ; prov:wasGeneratedBy ?run .
            ?run prov:used ?document ; prov:startedAtTime ?began .
            ?target oa:hasSource ?document ; sameas:paragraph ?paragraph .
            ?document dcterms:title ?title ; prov:wasDerivedFrom ?source .
            ?source rdfs:label ?name ; prov:atLocation ?where ; dcterms:format ?type ; dcterms:extent ?size ;
                dcterms:modified ?changed .
        } ORDER BY ?paragraph"""
    rows = [tuple(str(cell) for cell in row) for row in found.query(asked)]  # type: ignore[union-attr]
    known = (DOCUMENT, "diary.md", SOURCE.location, "A diary", "text/markdown", "33")
    assert [row[:6] for row in rows] == [known, known]
    assert [row[8] for row in rows] == ["1", "2"]
    assert {row[6:8] for row in rows} == {("2026-01-02T03:04:05+00:00", "2026-02-03T04:05:06+00:00")}


def test_all_evidence_has_document_and_place_in_json_csv_and_graphml() -> None:
    whole = json.loads(render(GRAPH, to="json", context=context()))
    met = next(one for one in whole["relations"] if one["predicate"] == "http://e/met")
    assert [(one["document"], one["paragraph"]) for one in met["evidence"]] == [(DOCUMENT, 1), (DOCUMENT, 2)]
    assert whole["document"]["sources"][0]["name"] == "diary.md"
    rows = list(csv.DictReader(io.StringIO(render(GRAPH, to="csv", context=context()).decode(), newline="")))
    placed = [(row["kind"], row["document"], row["paragraph"]) for row in rows if row["predicate"] == "http://e/met"]
    assert placed == [("relation", DOCUMENT, "1"), ("evidence", DOCUMENT, "2")]
    assert [row["kind"] for row in rows][:3] == ["document", "entity", "entity"]
    root = ET.fromstring(render(GRAPH, to="graphml", context=context()))
    places = [json.loads(str(one.text)) for one in root.iter() if one.get("key") == "edge-places"]
    assert [(one["document"], one["paragraph"]) for one in places[1]] == [(DOCUMENT, 1), (DOCUMENT, 2)]


def test_one_text_under_another_name_or_run_is_one_document() -> None:
    other = context(key="sha256-other", sources=(DocumentSource(name="copy.md"),))
    both = rdflib.Graph()
    for one in (context(), other):
        both.parse(data=render(GRAPH, to="turtle", context=one), format="turtle")
    names = both.query("SELECT ?n { ?d <http://www.w3.org/ns/prov#wasDerivedFrom> ?s . ?s rdfs:label ?n }")
    assert sorted(str(row[0]) for row in cast("Iterable[rdflib.query.ResultRow]", names)) == ["copy.md", "diary.md"]
    assert len(set(both.objects(None, rdflib.URIRef("http://www.w3.org/ns/oa#hasSource")))) == 1


def test_places_are_pages_or_paragraphs_as_the_input_has_them() -> None:
    pages = Document("one two\n\nthree", unit="page", segments=(Segment(0, 7, 0, 7, 1), Segment(9, 14, 0, 5, 2)))
    assert [DocumentPlaces(pages).of(*span) for span in ((0, 3), (9, 14))] == [TextPlace(page=1), TextPlace(page=2)]
    html = read_bytes(b"<title>Two &amp; two</title><p>One.</p><p>Two.</p>", name="page.html")
    assert html.title == "Two & two"
    assert [DocumentPlaces(html).of(*span) for span in ((0, 4), (6, 10))] == [TextPlace(None, 1), TextPlace(None, 2)]
    markdown = read_bytes(b"# The *first* heading\n\nBody.\n\n# Next", name="page.md")
    assert markdown.title == "The first heading"
    assert DocumentPlaces(markdown).of(markdown.normalized.index("Body"), 25).paragraph == 2


def test_a_file_tells_its_name_place_size_and_time(tmp_path: Path) -> None:
    file = tmp_path / "a b.txt"
    file.write_text("Ada.")
    source = DocumentSource.of_file(file)
    assert (source.name, source.location, source.size) == ("a b.txt", file.as_uri(), 4)
    assert source.modified_at.endswith("Z")


@pytest.mark.parametrize(
    ("metadata", "name", "location"),
    [
        ({"source": "/docs/report.pdf", "page": 3}, "report.pdf", "file:///docs/report.pdf"),
        ({"file_path": "report.txt", "file_name": "Report"}, "Report", ""),
        ({"source": "https://example.org/a/page.html"}, "page.html", "https://example.org/a/page.html"),
        ({"url": "https://example.org/not an iri"}, "not an iri", ""),
        ({}, "", ""),
    ],
)
def test_other_libraries_metadata_are_understood(metadata: dict[str, object], name: str, location: str) -> None:
    source = DocumentSource.of_metadata(metadata)
    assert (source.name, source.location) == (name, location)


def test_a_location_that_is_no_iri_is_refused() -> None:
    with pytest.raises(ValueError, match="not an IRI"):
        DocumentSource(location="https://example.org/> <x:y> <x:z")


@pytest.mark.parametrize("format", ["turtle", "nquads", "jsonld"])
def test_hostile_names_and_titles_stay_text(format: OutputFormat) -> None:
    hostile = 'a" . <x:s> <x:p> <x:o> # \\ \n \u2028 \ud800'
    written = render(GRAPH, to=format, context=context(sources=(DocumentSource(name=hostile, title=hostile),)))
    names = {"turtle": "turtle", "nquads": "nquads", "jsonld": "json-ld"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = rdflib.Dataset()
        found.parse(data=written, format=names[format])
        subjects = {str(quad[0]) for quad in found.quads()}
    assert "x:s" not in subjects
    assert hostile.replace("\ud800", "\ufffd") in {str(quad[2]) for quad in found.quads()} or format != "turtle"


_PIECES = [
    *("http", ":", "/", "//", "#", "?", "%", "%20", "%zz", "[", "]", "[::1]", "@", "a", "b:", "80", ".", "-", "1", " "),
    *(
        "\u00e9",
        "\u202e",
        "\ue000",
        "\ufffe",
        "\U0001fffe",
        "\U0001f600",
        "\U000e0001",
        "\x7f",
        "\x85",
        "|",
        "\\",
        "..",
    ),
]


@given(
    st.sampled_from(["http://", "urn:", "file:///", ""]), st.lists(st.sampled_from(_PIECES), max_size=8).map("".join)
)
def test_what_is_taken_for_an_iri_can_be_written(start: str, rest: str) -> None:
    if is_iri(start + rest):
        pyoxigraph.NamedNode(start + rest)


@pytest.mark.parametrize(
    "name", ["http://[::1", "http://a/%zz", "file:///%zz", "http://a/\ue000", "urn:a b", "http://a:b/"]
)
def test_a_name_that_only_looks_like_an_address_is_a_name(name: str) -> None:
    source = DocumentSource.of_name(name)
    assert source.location == ""
    for to in FORMATS:
        render(GRAPH, to=to, context=OutputContext(key="k", text_hash="0", sources=(source,)))
    with pytest.raises(ValueError, match="is not an IRI"):
        DocumentSource(location=name)
    with pytest.raises(ValueError, match="is not an absolute IRI"):
        OutputContext(key="k", base=f"{name}/")
