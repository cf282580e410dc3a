"""Graphs against shapes, given and derived."""

import socket
import sys
from pathlib import Path

import pytest

from sameas.ontology import (
    Ontology,
    OntologyExtraError,
    OntologyRefusedError,
    OntologySyntaxError,
    ShapeReport,
    load_ontology,
    read_ontology,
    validate_graph,
)
from tests.shared_data import shared

from .samples import COMPANY, PREFIXES

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def company() -> Ontology:
    return read_ontology(COMPANY.encode())


def report(text: str, ontology: Ontology, shapes: bytes | Path | None = None) -> ShapeReport:
    return validate_graph((PREFIXES + text).encode(), ontology=ontology, shapes=shapes)


GOOD = """
:alice a :Person ; :worksFor :acme .
:acme a :Startup ; :hasHead :alice ; :founded "2001-02-03"^^xsd:date ; :headcount 7 ; :size :small ; :status "open" ;
  :employs :alice .
"""


def test_a_graph_that_obeys_the_ontology_conforms(company: Ontology) -> None:
    found = report(GOOD, company)
    assert found.conforms
    assert not [one for one in found.results if one.severity == "violation"]


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        (":x a :Place ; :worksFor :y . :y a :Company .", "OrConstraintComponent"),
        (":x a :Person ; :worksFor :y . :y a :Place .", "OrConstraintComponent"),
        (':x a :Company ; :founded "soon" .', "OrConstraintComponent"),
        (':x a :Company ; :founded "soon"^^xsd:date .', "OrConstraintComponent"),
        (":x a :Company ; :hasHead :y , :z . :y a :Person . :z a :Person .", "MaxCountConstraintComponent"),
        (":x a :Person , :Organization .", "NotConstraintComponent"),
        (':x :status "unknown" .', "InConstraintComponent"),
        (":x a :Company ; :employs :y . :y a :Place .", "OrConstraintComponent"),
    ],
)
def test_domain_range_datatype_number_and_disjointness_are_derived(
    company: Ontology, text: str, constraint: str
) -> None:
    found = report(text, company)
    assert not found.conforms
    assert constraint in {one.constraint for one in found.results if one.severity == "violation"}


def test_what_a_text_leaves_out_is_a_warning(company: Ontology) -> None:
    found = report(":x a :Company .", company)
    assert found.conforms
    assert {one.severity for one in found.results} == {"warning"}


SHAPES = (
    PREFIXES
    + """
@prefix sh: <http://www.w3.org/ns/shacl#> .
:Named a sh:NodeShape ; sh:targetClass :Agent ; sh:property [ sh:path rdfs:label ; sh:minCount 1 ; sh:message "needs a name" ] .
"""
).encode()


def test_given_shapes_are_used_instead_and_know_the_subclasses(company: Ontology, tmp_path: Path) -> None:
    path = tmp_path / "shapes.ttl"
    path.write_bytes(SHAPES)
    for shapes in (SHAPES, path):
        found = report(":x a :Startup .", company, shapes)
        assert [(one.focus[-1], one.message) for one in found.results] == [("x", "needs a name")]
        assert report(':x a :Startup ; rdfs:label "x" .', company, shapes).conforms


def test_a_report_is_the_same_every_time(company: Ontology) -> None:
    text = ":x a :Place ; :worksFor :y . :y a :Place ; :hasHead :z ."
    assert report(text, company) == report(text, company)


@pytest.mark.parametrize(
    "trap",
    [
        ':S sh:sparql [ sh:select "SELECT $this WHERE { SERVICE <http://example.org/> { $this ?p ?o } }" ] .',
        ':S sh:js [ sh:jsFunctionName "f" ; sh:jsLibrary [ sh:jsLibraryURL "http://example.org/x.js" ] ] .',
    ],
)
def test_shapes_that_reach_outside_are_refused(company: Ontology, trap: str) -> None:
    shapes = (PREFIXES + "@prefix sh: <http://www.w3.org/ns/shacl#> ." + trap).encode()
    with pytest.raises(OntologyRefusedError):
        report(":x a :Person .", company, shapes)


def test_nothing_is_fetched_for_imports_in_graph_or_shapes(company: Ontology, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    imports = " <> a owl:Ontology ; owl:imports <http://example.org/x> ."
    assert report(GOOD + imports, company, SHAPES + imports.encode()) is not None


def test_a_malformed_graph_is_reported_with_its_place(company: Ontology) -> None:
    with pytest.raises(OntologySyntaxError, match="graph, line"):
        report(":x :y", company)


def test_a_missing_extra_says_what_to_install(company: Ontology, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyshacl", None)
    with pytest.raises(OntologyExtraError, match=r"sameas\[shacl\]"):
        report(GOOD, company)


@pytest.mark.parametrize("name", ["foaf.rdf", "pizza.owl", "prov-o.ttl", "skos.rdf", "wine.rdf"])
def test_shapes_derived_from_the_reference_ontologies_are_valid_shapes(name: str) -> None:
    ontology = load_ontology(shared("data", "ontologies", name))
    assert validate_graph(b"", ontology=ontology).conforms
