"""The class tree as text, and what a review says."""

import pytest

from sameas.ontology import load_ontology, read_ontology, review_ontology, show_ontology
from tests.shared_data import shared

from .samples import COMPANY, EX, PREFIXES


def show(text: str) -> list[str]:
    return show_ontology(read_ontology((PREFIXES + text).encode()))


def test_the_tree_shows_classes_with_their_own_and_inherited_properties() -> None:
    lines = show_ontology(read_ontology(COMPANY.encode()))
    start = lines.index(f"agent <{EX}Agent>")
    assert lines[start : start + 3] == [
        f"agent <{EX}Agent>",
        "  - related to -> agent (symmetric)",
        f"  organization <{EX}Organization>",
    ]
    assert "    - head -> person (functional)" in lines
    assert "    from agent: related to" in lines
    assert f"    company <{EX}Company> = Firm" in lines
    assert any(line == "      from organization: based in, founded, headcount, size" for line in lines)
    assert "any class" in lines
    assert "  - status -> string" in lines


def test_the_head_says_what_it_is() -> None:
    lines = show_ontology(read_ontology(COMPANY.encode()))
    assert lines[0] == "Company"
    assert lines[1] == "10 classes, 10 properties, 3 individuals, 1 datatype"
    assert lines[2].startswith("version sha256:")


def test_a_class_below_two_others_is_written_out_once() -> None:
    lines = show(":A a owl:Class . :B a owl:Class . :C a owl:Class ; rdfs:subClassOf :A , :B . :D rdfs:subClassOf :C .")
    assert sum(line.strip().startswith("C <") for line in lines) == 2  # noqa: PLR2004
    assert sum(line.endswith("(above)") for line in lines) == 1
    assert sum(line.strip().startswith("D <") for line in lines) == 1


def test_a_range_that_a_class_restricts_is_shown() -> None:
    lines = show(
        ":A a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:allValuesFrom :B ] ."
        ":B a owl:Class . :p a owl:ObjectProperty . :q a owl:ObjectProperty ."
    )
    assert lines[lines.index(f"A <{EX}A>") + 1] == "  - p -> B"
    assert lines[-2:] == ["  - p -> B", "  - q -> anything"]


def test_circles_are_shown_as_one_class() -> None:
    lines = show(":A a owl:Class ; rdfs:subClassOf :B . :B a owl:Class ; rdfs:subClassOf :A . :C rdfs:subClassOf :B .")
    assert f"A <{EX}A> = B" in lines
    assert f"  C <{EX}C> (not declared)" in lines


def test_a_lattice_of_many_paths_is_short() -> None:
    levels = "".join(
        f":L{n} a owl:Class ; rdfs:subClassOf :L{n - 1} , :R{n - 1} . :R{n} a owl:Class ; rdfs:subClassOf :L{n - 1} , :R{n - 1} ."
        for n in range(1, 60)
    )
    assert len(show(":L0 a owl:Class . :R0 a owl:Class ." + levels)) < 400  # noqa: PLR2004


def test_an_unresolved_import_is_shown() -> None:
    lines = show("<> a owl:Ontology ; owl:imports <https://example.org/x> .")
    assert any("https://example.org/x: not found" in line for line in lines)


@pytest.mark.parametrize("name", ["foaf.rdf", "pizza.owl", "prov-o.ttl", "schemaorg.ttl", "skos.rdf", "wine.rdf"])
def test_every_class_of_the_reference_ontologies_is_shown(name: str) -> None:
    ontology = load_ontology(shared("data", "ontologies", name))
    text = "\n".join(show_ontology(ontology))
    equal = {iri for one in ontology.classes for iri in (*one.equivalents, one.iri) if one.equivalents}
    assert all(
        f"<{one.iri}>" in text for one in ontology.classes if one.iri not in equal and not _circular(one.iri, text)
    )


def _circular(iri: str, text: str) -> bool:
    return f"<{iri}>" not in text and f" = {iri.rsplit('#', 1)[-1].rsplit('/', 1)[-1]}" in text


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        (":C a owl:Class .", "no-label", "C"),
        (":p a owl:ObjectProperty .", "no-label", "p"),
        (":p rdfs:domain :A ; rdfs:range :B .", "undeclared-class", "B"),
        (":p a owl:ObjectProperty .", "no-domain", "p"),
        (":p a owl:ObjectProperty .", "no-range", "p"),
        (":p rdfs:domain :A , :B .", "several-domains", "p"),
        (":p rdfs:range :A , :B .", "several-ranges", "p"),
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :A .", "circle", "A"),
        (":A rdfs:subClassOf :B , :C . :B owl:disjointWith :C .", "impossible-class", "A"),
        (':p a owl:ObjectProperty ; sameas:pattern "{subject} knows" .', "pattern", "p"),
        (
            ":A a owl:Class ; rdfs:subClassOf [ owl:onProperty :q ; owl:minCardinality 1 ] .",
            "undeclared-property",
            "q",
        ),
    ],
)
def test_a_review_names_what_an_author_would_want_to_know(text: str, code: str, name: str) -> None:
    findings = review_ontology(read_ontology((PREFIXES + text).encode()))
    assert (code, EX + name) in {(finding.code, finding.iri) for finding in findings}


def test_an_empty_ontology_is_said_to_be_empty() -> None:
    assert [finding.code for finding in review_ontology(read_ontology(b""))] == ["empty"]


def test_an_equivalence_is_no_circle() -> None:
    text = ':A a owl:Class ; rdfs:label "a" ; owl:equivalentClass :B . :B a owl:Class ; rdfs:label "b" .'
    assert review_ontology(read_ontology((PREFIXES + text).encode())) == ()
