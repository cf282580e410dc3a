"""All reference ontologies load, quickly, and say what an independent parser says they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import rdflib
from rdflib import OWL, RDF, RDFS, SKOS

from sameas.ontology import (
    Ontology,
    OntologyExtraError,
    OntologyIndex,
    OntologySyntaxError,
    load_ontology,
    read_ontology,
)
from sameas.ontology.notation import detect_notation
from tests.shared_data import shared

from .samples import COMPANY, EX, EXTENSIONS, FORMATS, PREFIXES, quads, write

FILES = ["foaf.rdf", "pizza.owl", "prov-o.ttl", "schemaorg.ttl", "skos.rdf", "wine.rdf"]
BENCH = [
    *("1_movie", "2_music", "3_sport", "4_book", "5_military"),
    *("6_computer", "7_space", "8_politics", "9_nature", "10_culture"),
]


def rdflib_graph(path: Path) -> rdflib.Graph:
    return rdflib.Graph().parse(path, format="turtle" if path.suffix == ".ttl" else "xml")


def of_types(graph: rdflib.Graph, *types: rdflib.URIRef) -> set[str]:
    found = {s for one in types for s in graph.subjects(RDF.type, one) if isinstance(s, rdflib.URIRef)}
    return {str(s) for s in found if not str(s).startswith((str(OWL), str(RDF), str(RDFS)))}


MEASURE = """
import sys, time
from sameas.ontology import load_ontology
times = []
for _ in range(6):
    start = time.process_time()
    load_ontology(sys.argv[1], cache_dir=sys.argv[2] or None)
    times.append(time.process_time() - start)
print(min(times))
"""


def seconds(path: Path, cache: Path | None = None) -> float:
    """The best of some loads, in a process of its own: neither other work nor a tracer counts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), str(cache or "")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)


@pytest.mark.parametrize("name", FILES)
def test_reference_ontologies_have_the_classes_that_rdflib_finds(name: str) -> None:
    path = shared("data", "ontologies", name)
    ontology = load_ontology(path)
    declared = {one.iri for one in ontology.classes if one.declared} | {one.iri for one in ontology.datatypes}
    expected = of_types(rdflib_graph(path), OWL.Class, RDFS.Class) - {"https://schema.org/DataType"}
    assert declared == expected


@pytest.mark.parametrize("name", FILES)
def test_reference_ontologies_have_the_properties_that_rdflib_finds(name: str) -> None:
    path = shared("data", "ontologies", name)
    graph = rdflib_graph(path)
    expected = of_types(graph, OWL.ObjectProperty, OWL.DatatypeProperty, RDF.Property)
    notes = of_types(graph, OWL.AnnotationProperty) - of_types(graph, OWL.ObjectProperty, OWL.DatatypeProperty)
    notes -= {str(s) for p in (RDFS.domain, RDFS.range) for s in graph.subjects(p)}
    assert {one.iri for one in load_ontology(path).properties} == expected - notes


@pytest.mark.parametrize("name", FILES)
def test_labels_and_parents_are_those_that_rdflib_finds(name: str) -> None:
    path = shared("data", "ontologies", name)
    graph = rdflib_graph(path)
    for one in load_ontology(path).classes:
        subject = rdflib.URIRef(one.iri)
        labels = {*graph.objects(subject, RDFS.label), *graph.objects(subject, SKOS.prefLabel)}
        assert {(text.value, text.lang) for text in one.labels} == {
            (str(label), (label.language or "").lower()) for label in labels if isinstance(label, rdflib.Literal)
        }
        named = {str(o) for o in graph.objects(subject, RDFS.subClassOf) if isinstance(o, rdflib.URIRef)}
        assert {iri for iri in named if not iri.startswith((str(OWL), str(RDFS)))} <= set(one.parents)


@pytest.mark.parametrize("name", FILES)
def test_what_is_above_a_class_holds_all_that_rdflib_finds_above_it(name: str) -> None:
    path = shared("data", "ontologies", name)
    graph = rdflib_graph(path)
    index = OntologyIndex(load_ontology(path))
    for iri in index.classes:
        found = {str(o) for o in graph.transitive_objects(rdflib.URIRef(iri), RDFS.subClassOf)}
        assert index.class_tree.above(iri) >= found & index.classes.keys()


def test_what_is_above_a_class_is_exactly_what_rdflib_finds_where_no_class_has_an_equal() -> None:
    path = shared("data", "ontologies", "prov-o.ttl")
    graph = rdflib_graph(path)
    index = OntologyIndex(load_ontology(path))
    for iri in index.classes:
        found = {str(o) for o in graph.transitive_objects(rdflib.URIRef(iri), RDFS.subClassOf)}
        assert index.class_tree.above(iri) == found & index.classes.keys()


@pytest.mark.parametrize("name", BENCH)
def test_text2kgbench_turtle_files_load_with_a_label_for_every_term(name: str) -> None:
    ontology = load_ontology(shared("data", "text2kgbench", "ontologies", "owl", f"ont_{name}.ttl"))
    assert ontology.classes
    assert ontology.properties
    assert all(one.labels for one in ontology.classes if one.declared)
    assert all(one.labels for one in ontology.properties)


@pytest.mark.parametrize("name", BENCH)
def test_text2kgbench_json_files_load_into_the_same_model(name: str) -> None:
    folder = shared("data", "text2kgbench", "ontologies")
    from_json = load_ontology(folder / f"{name}_ontology.json")
    from_turtle = load_ontology(folder / "owl" / f"ont_{name}.ttl")
    turtle = {one.iri: one for one in from_turtle.properties}
    shared_terms = [one for one in from_json.properties if one.iri in turtle]
    assert shared_terms
    for one in shared_terms:
        assert one.kind == turtle[one.iri].kind


@pytest.mark.parametrize("name", ["1_movie", "4_book", "7_space", "8_politics", "9_nature", "10_culture"])
def test_text2kgbench_has_the_same_version_in_both_forms(name: str) -> None:
    folder = shared("data", "text2kgbench", "ontologies")
    turtle = load_ontology(folder / "owl" / f"ont_{name}.ttl")
    assert load_ontology(folder / f"{name}_ontology.json").version == turtle.version


def test_text2kgbench_takes_labels_for_domain_and_range() -> None:
    data = b"""{"id": "o", "concepts": [{"qid": "Q1", "label": "film"}],
      "relations": [{"pid": "P1", "label": "sequel", "domain": "film", "range": "Q1"},
                    {"pid": "P2", "label": "date", "domain": "Q1", "range": ""}]}"""
    sequel, date = read_ontology(data).properties
    assert sequel.domain == sequel.range == (("https://cenguix.github.io/Text2KGBench/o/concepts#Q1",),)
    assert date.range == ()


def test_text2kgbench_terms_that_are_listed_twice_keep_both_names_and_either_end() -> None:
    data = b"""{"id": "o", "concepts": [{"qid": "Q1", "label": "season"}, {"qid": "Q1", "label": "year"},
      {"qid": "Q2", "label": "league"}], "relations": [{"pid": "P1", "label": "in", "domain": "Q1", "range": "Q1"},
      {"pid": "P1", "label": "in", "domain": "Q1", "range": "Q2"}]}"""
    ontology = read_ontology(data)
    assert [text.value for text in ontology.classes[0].labels] == ["season", "year"]
    (only,) = ontology.properties
    assert [iri[-2:] for iri in only.range[0]] == ["Q1", "Q2"]


def test_text2kgbench_json_with_a_part_missing_says_what_to_give() -> None:
    with pytest.raises(OntologySyntaxError, match="qid") as caught:
        read_ontology(b'{"id": "o", "concepts": [{"label": "film"}], "relations": []}', file="o.json")
    assert caught.value.file == "o.json"


def test_a_missing_parser_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    with pytest.raises(OntologyExtraError, match=r"sameas\[ontology\]"):
        read_ontology(COMPANY.encode())


def test_schema_org_loads_in_half_a_second() -> None:
    path = shared("data", "ontologies", "schemaorg.ttl")
    ontology = load_ontology(path)
    assert sum(one.declared for one in ontology.classes) + len(ontology.datatypes) + 1 == 1010
    assert seconds(path) < 0.5  # noqa: PLR2004


def test_schema_org_loads_from_the_cache_in_30_milliseconds(tmp_path: Path) -> None:
    path = shared("data", "ontologies", "schemaorg.ttl")
    first = load_ontology(path, cache_dir=tmp_path)
    assert load_ontology(path, cache_dir=tmp_path) == first
    assert seconds(path, tmp_path) < 0.03  # noqa: PLR2004


@pytest.mark.parametrize("notation", FORMATS)
@pytest.mark.parametrize("extension", ["its own", ".owl", ".rdf", "", ".xml", ".json"])
def test_a_notation_is_told_by_extension_or_content(notation: str, extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"o{EXTENSIONS[notation] if extension == 'its own' else extension}"
    path.write_bytes(write(quads(COMPANY.encode()), notation))
    assert load_ontology(path).version == read_ontology(COMPANY.encode(), extension=".ttl").version


@pytest.mark.parametrize(
    ("data", "notation"),
    [
        (b"<a:b> <a:c> <a:d> .", "trig"),
        (b"<a:b> <a:c> <a:d> <a:g> .", "nquads"),
        (b'# remark\n<a:b> <a:c> "x"@en <a:g> .', "nquads"),
        (b"\xef\xbb\xbf{}", "jsonld"),
        (b"[{}]", "jsonld"),
        (b"[] a <a:b> .", "trig"),
        (b"{ <a:b> <a:c> <a:d> }", "trig"),
        (b"<!-- x --><rdf:RDF/>", "rdfxml"),
        (b'<rdf:RDF xmlns:rdf="x"/>', "rdfxml"),
        (b'{"concepts": [], "relations": []}', "text2kgbench"),
        (b"", "trig"),
    ],
)
def test_first_characters_tell_the_notation(data: bytes, notation: str) -> None:
    assert detect_notation(data) == notation


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_rdfxml_is_read_in_the_usual_encodings(codec: str) -> None:
    declared = codec.removesuffix("-sig")
    text = (
        f'<?xml version="1.0" encoding="{declared}"?>\n<rdf:RDF xmlns:rdf="{RDF}" xmlns:rdfs="{RDFS}" xmlns:owl="{OWL}">'
        '<owl:Class rdf:about="http://example.org/C"><rdfs:label>Café</rdfs:label></owl:Class></rdf:RDF>'
    )
    (only,) = read_ontology(text.encode(codec)).classes
    assert only.labels[0].value == "Café"


def company() -> Ontology:
    return read_ontology(COMPANY.encode())


def test_labels_of_all_languages_and_kinds_are_kept() -> None:
    classes = {one.iri: one for one in company().classes}
    person, organization = classes[EX + "Person"], classes[EX + "Organization"]
    assert {(text.lang, text.value) for text in person.labels} == {
        ("de", "Person"),
        ("en", "person"),
        ("fr", "personne"),
    }
    assert [text.value for text in person.alt_labels] == ["human being"]
    assert [text.value for text in organization.labels] == ["organization"]
    assert [text.value for text in organization.alt_labels] == ["outfit"]
    assert [text.value for text in organization.comments] == ["People together."]


def test_pattern_annotations_are_kept() -> None:
    properties = {one.iri: one for one in company().properties}
    assert [text.value for text in properties[EX + "worksFor"].patterns] == ["{subject} joined {object}"]


def test_datatypes_carry_their_base_and_facets() -> None:
    (count,) = company().datatypes
    assert count.base == "http://www.w3.org/2001/XMLSchema#integer"
    assert count.facets == (("http://www.w3.org/2001/XMLSchema#minInclusive", "0"),)


def test_named_graphs_are_read_as_one() -> None:
    text = PREFIXES + ':g1 { :A a owl:Class } :g2 { :A rdfs:label "a" }'
    (only,) = read_ontology(text.encode()).classes
    assert only.labels[0].value == "a"


def test_a_term_that_is_only_used_is_a_class_that_is_not_declared() -> None:
    ontology = read_ontology((PREFIXES + ":p rdfs:domain :A ; rdfs:range :B . :i a :C .").encode())
    assert [(one.iri[-1], one.declared) for one in ontology.classes] == [
        ("A", False),
        ("B", False),
        ("C", False),
    ]


def test_the_model_is_frozen() -> None:
    ontology = company()
    with pytest.raises(AttributeError):
        ontology.iri = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ontology.classes[0].iri = "other"  # type: ignore[misc]
