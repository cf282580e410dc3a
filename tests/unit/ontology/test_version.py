"""The version follows what extraction uses, and nothing else."""

import random
import re

import msgspec
import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.ontology import Ontology, OntologyError, compute_ontology_version, load_ontology, read_ontology
from sameas.ontology.model import (
    Datatype,
    Individual,
    OntologyClass,
    OntologyProperty,
    Restriction,
    Text,
)
from tests.shared_data import shared

from .samples import COMPANY, EX, EXTENSIONS, FORMATS, PREFIXES, quads, write

DATA = COMPANY.encode()
VERSION = compute_ontology_version(DATA)
STATEMENTS = quads(DATA)
REAL = ["foaf.rdf", "pizza.owl", "prov-o.ttl", "schemaorg.ttl", "skos.rdf", "wine.rdf"]


def version(text: str) -> str:
    return compute_ontology_version((PREFIXES + text).encode())


def renamed(statements: list[ox.Quad], names: random.Random) -> list[ox.Quad]:
    """The same statements in another order, with other names for blank nodes."""
    known: dict[ox.BlankNode, ox.BlankNode] = {}

    def other(node: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> object:
        if isinstance(node, ox.BlankNode):
            return known.setdefault(node, ox.BlankNode(f"n{names.getrandbits(32):x}x{len(known)}"))
        return node

    changed = [ox.Quad(other(q.subject), q.predicate, other(q.object)) for q in statements]  # type: ignore[arg-type]
    names.shuffle(changed)
    return changed


def test_a_version_is_sha256_and_64_hex_digits() -> None:
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", VERSION)


@pytest.mark.parametrize("notation", FORMATS)
def test_every_notation_of_the_same_ontology_has_the_same_version(notation: str) -> None:
    assert compute_ontology_version(write(STATEMENTS, notation)) == VERSION


@pytest.mark.parametrize("name", REAL)
def test_real_ontologies_have_the_same_version_in_turtle_rdfxml_and_jsonld(name: str) -> None:
    path = shared("data", "ontologies", name)
    notation = "turtle" if path.suffix == ".ttl" else "rdfxml"
    expected = compute_ontology_version(path)
    statements = quads(path.read_bytes(), notation)
    for other in ("turtle", "rdfxml", "jsonld"):
        assert compute_ontology_version(write(statements, other)) == expected


@pytest.mark.filterwarnings("ignore:Assertions on:UserWarning")
@pytest.mark.parametrize("form", ["xml", "pretty-xml", "json-ld", "nt"])
@pytest.mark.parametrize("name", ["pizza.owl", "wine.rdf", "prov-o.ttl"])
def test_forms_that_rdflib_writes_have_the_same_version(name: str, form: str) -> None:
    path = shared("data", "ontologies", name)
    graph = rdflib.Graph().parse(path, format="turtle" if path.suffix == ".ttl" else "xml")
    assert compute_ontology_version(graph.serialize(format=form).encode()) == compute_ontology_version(path)


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(FORMATS)))
def test_order_and_blank_node_names_do_not_matter(names: random.Random, notation: str) -> None:
    assert compute_ontology_version(write(renamed(STATEMENTS, names), notation)) == VERSION


def test_a_path_its_bytes_and_its_model_have_the_same_version() -> None:
    path = shared("data", "ontologies", "foaf.rdf")
    ontology = load_ontology(path)
    versions = {
        compute_ontology_version(path),
        compute_ontology_version(str(path)),
        compute_ontology_version(path.read_bytes()),
        compute_ontology_version(ontology),
        ontology.version,
    }
    assert len(versions) == 1


OWL = "http://www.w3.org/2002/07/owl#"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def is_unused(quad: ox.Quad) -> bool:
    """What the version must not depend on: the header, and types that say nothing that is not said otherwise."""
    about_itself = quad.subject == ox.NamedNode("https://example.org/company")
    is_type = quad.predicate.value == RDF_TYPE
    formal = is_type and getattr(quad.object, "value", "") == OWL + "Restriction"
    # An enumeration already makes its members individuals.
    known_otherwise = is_type and getattr(quad.object, "value", "") == OWL + "NamedIndividual"
    return about_itself or formal or known_otherwise


# An object property that is symmetric, or whose range is a class, is one without being told so.
IMPLIED = (
    {(EX + name, OWL + "ObjectProperty") for name in ("worksFor", "hasHead", "relatedTo", "size")}
    | {(EX + "basedIn", RDF_TYPE.replace("type", "Property"))}
    | {(EX + name, OWL + "DatatypeProperty") for name in ("founded", "headcount", "status")}
)


def test_every_used_statement_counts_and_no_other() -> None:
    silent = []
    for position, quad in enumerate(STATEMENTS):
        fewer = STATEMENTS[:position] + STATEMENTS[position + 1 :]
        try:
            changed = compute_ontology_version(write(fewer, "nquads")) != VERSION
        except OntologyError:
            changed = True
        implied = (quad.subject.value, getattr(quad.object, "value", "")) in IMPLIED  # type: ignore[union-attr]
        if changed == (is_unused(quad) or implied):
            silent.append(str(quad))
    assert silent == []


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_changed_label_language_or_name_changes_the_version(data: st.DataObject) -> None:
    used = [n for n, quad in enumerate(STATEMENTS) if not is_unused(quad)]
    position = data.draw(st.sampled_from(used))
    quad = STATEMENTS[position]
    if isinstance(quad.object, ox.Literal):
        if quad.object.datatype.value not in (
            "http://www.w3.org/2001/XMLSchema#string",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
        ):
            return
        extra = data.draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
        changed: ox.Literal | ox.NamedNode = ox.Literal(quad.object.value + extra, language=quad.object.language)
    elif isinstance(quad.object, ox.NamedNode) and quad.object.value.startswith(EX):
        changed = ox.NamedNode(EX + "Changed" + data.draw(st.from_regex(r"[a-z]{1,8}", fullmatch=True)))
    else:
        return
    edited = [
        *STATEMENTS[:position],
        ox.Quad(quad.subject, quad.predicate, changed),
        *STATEMENTS[position + 1 :],
    ]
    assert compute_ontology_version(write(edited, "nquads")) != VERSION


def test_a_language_counts_and_its_case_does_not() -> None:
    english, other = ':C a owl:Class ; rdfs:label "x"@en-GB .', ':C a owl:Class ; rdfs:label "x"@en-gb .'
    assert version(english) == version(other)
    assert version(english) != version(':C a owl:Class ; rdfs:label "x"@de .')


def test_what_extraction_does_not_use_leaves_the_version_alone() -> None:
    plain = ':C a owl:Class ; rdfs:label "c" .'
    assert version(plain) == version(
        plain + '<> a owl:Ontology ; owl:versionInfo "7" . :C rdfs:seeAlso <https://example.org/x> ; :note "hello" .'
    )


def test_it_does_not_matter_on_which_side_a_mutual_fact_is_written() -> None:
    terms = ":A a owl:Class . :B a owl:Class . :p a owl:ObjectProperty . :q a owl:ObjectProperty ."
    for fact in ("{0} owl:disjointWith {1}", "{0} owl:equivalentClass {1}"):
        assert version(f"{terms} {fact.format(':A', ':B')} .") == version(f"{terms} {fact.format(':B', ':A')} .")
    assert version(terms + ":p owl:inverseOf :q .") == version(terms + ":q owl:inverseOf :p .")


def test_the_stored_version_is_not_trusted() -> None:
    ontology = read_ontology(DATA)
    forged = msgspec.structs.replace(ontology, classes=(), version=ontology.version)
    assert compute_ontology_version(forged) != ontology.version


FULL = Ontology(
    classes=(OntologyClass(iri="a:C", restrictions=(Restriction(property="a:p", kind="cardinality"),)),),
    properties=(OntologyProperty(iri="a:p", labels=(Text("p", "en"),)),),
    individuals=(Individual(iri="a:i"),),
    datatypes=(Datatype(iri="a:d"),),
)


def other_values(value: object, name: str) -> object:
    """A value of the same kind that differs."""
    if name in ("domain", "range", "filler"):
        return (("a:other",),)
    if name in ("labels", "alt_labels", "comments", "patterns"):
        return (Text("other"),)
    if name == "facets":
        return (("a:f", "1"),)
    if name == "restrictions":
        return ()
    if name == "kind":
        return "all" if value == "cardinality" else "object"
    match value:
        case bool():
            return not value
        case None:
            return 3
        case int():
            return value + 1
        case str():
            return value + "x"
        case _:
            return ("a:other",)


@pytest.mark.parametrize("group", ["classes", "properties", "individuals", "datatypes"])
def test_every_field_of_every_term_is_part_of_the_version(group: str) -> None:
    expected = compute_ontology_version(FULL)
    term = getattr(FULL, group)[0]
    # Keys are for collections: no extraction depends on them.
    for name in set(term.__struct_fields__) - {"keys"}:
        changed = msgspec.structs.replace(term, **{name: other_values(getattr(term, name), name)})
        ontology = msgspec.structs.replace(FULL, **{group: (changed,)})
        assert compute_ontology_version(ontology) != expected, name


def test_a_key_of_a_class_leaves_the_version_as_it_is() -> None:
    keyed = msgspec.structs.replace(FULL.classes[0], keys=(("a:p",),))
    assert compute_ontology_version(msgspec.structs.replace(FULL, classes=(keyed,))) == compute_ontology_version(FULL)


def test_every_field_of_a_restriction_and_a_text_is_part_of_the_version() -> None:
    expected = compute_ontology_version(FULL)
    restriction, text = FULL.classes[0].restrictions[0], FULL.properties[0].labels[0]
    for name in restriction.__struct_fields__:
        changed = msgspec.structs.replace(restriction, **{name: other_values(getattr(restriction, name), name)})
        one = msgspec.structs.replace(FULL.classes[0], restrictions=(changed,))
        assert compute_ontology_version(msgspec.structs.replace(FULL, classes=(one,))) != expected, name
    for name in text.__struct_fields__:
        label = msgspec.structs.replace(text, **{name: "other"})
        each = msgspec.structs.replace(FULL.properties[0], labels=(label,))
        assert compute_ontology_version(msgspec.structs.replace(FULL, properties=(each,))) != expected, name


@pytest.mark.parametrize("notation", FORMATS)
def test_moving_or_renaming_a_file_does_not_change_its_version(
    notation: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "@prefix owl: <http://www.w3.org/2002/07/owl#> . <> a owl:Ontology . <#Here> a owl:Class ."
    content = write(quads(text.encode()), notation)
    paths = [tmp_path_factory.mktemp("place") / f"{stem}{EXTENSIONS[notation]}" for stem in ("one", "two")]
    for path in paths:
        path.write_bytes(content)
    assert compute_ontology_version(paths[0]) == compute_ontology_version(paths[1])
