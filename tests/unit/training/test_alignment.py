"""Gold facts find their places in the text, and rewritten sentences assert nothing."""

import random

import pytest

from sameas.extraction.extractors.reader.labels import describe_class, describe_property
from sameas.extraction.extractors.reader.lessons import find_end, find_values, without_nested
from sameas.extraction.extractors.reader.tokenizer import Tokenizer, _byte_letters
from sameas.ontology import OntologyIndex, load_ontology
from training.augmentation import joined, renamed, taken_back
from training.prep import align, describe_ontology
from training.sources import Sample, property_names
from training.stances import rewrite_inside

TURTLE = """
@prefix : <https://bench.example/x#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
:Agent a owl:Class . :Company a owl:Class ; rdfs:subClassOf :Agent ; rdfs:label "company"@en , "Firma"@de .
:Bank a owl:Class ; rdfs:subClassOf :Company . :Place a owl:Class ; rdfs:label "place"@en .
:basedIn a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Place ; rdfs:label "based in"@en , "sitzt in"@de ;
  skos:altLabel "head office"@en ; rdfs:comment "Where it is."@en .
:founded a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:date .
:isListed a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:boolean .
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("ontology") / "ontology.ttl"
    path.write_text(TURTLE, encoding="utf-8")
    return OntologyIndex(load_ontology(path))


def sample(text, *triples, kinds=()):
    return Sample("corpus", "corpus:x", "train", text, triples, kinds)


def aligned(index, one):
    tokenizer = Tokenizer(_byte_letters(), [])
    return align(one, describe_ontology(index, tokenizer), property_names(index), tokenizer)


def test_facts_names_types_and_truth_values_are_aligned(index):
    text = "Acme Ltd, founded on 12 May 1994, is based in Ulm. Acme Ltd is not listed."
    document, lost = aligned(
        index,
        sample(
            text,
            ("Acme Ltd", "basedIn", "Ulm"),
            ("Acme Ltd", "founded", "1994-05-12"),
            ("Acme Ltd", "isListed", "false"),
        ),
    )
    assert lost == 0
    said = {
        (int(name), text[document["starts"][first] : document["ends"][last]]) for name, first, last in document["spans"]
    }
    assert said == {(0, "Acme Ltd"), (1, "Ulm"), (2, "12 May 1994")}
    # basedIn, founded, isListed in alphabetical order; -2 is false.
    assert document["facts"].tolist() == [[0, 0, 1], [0, 1, 2], [0, 2, -2]]
    classes = describe_ontology(index, Tokenizer(_byte_letters(), []))["classes"]
    assert {classes[number] for number in document["types"][0]} == {"Company", "Agent"}
    assert document["stance"][0] == 0


def test_a_fact_whose_end_is_not_in_the_text_is_counted_and_left_out(index):
    document, lost = aligned(index, sample("It is based in Ulm.", ("Acme", "basedIn", "Ulm")))
    assert lost == 1
    assert document["facts"].size == 0


def test_a_number_is_not_taken_from_a_date():
    text = "On 12 May 1994 it had 12 shops."
    assert [text[a:b] for a, b in find_end("12", text, find_values(text), "integer")] == ["12"]
    assert find_end("12", text, find_values(text), "integer")[0][0] == text.index("12 shops")


def test_a_place_inside_a_longer_name_is_no_place_of_its_own():
    assert without_nested([(0, 0, 13), (1, 8, 13), (1, 20, 25)]) == [(0, 0, 13), (1, 20, 25)]


def test_label_texts_show_names_ends_and_comment(index):
    iri = "https://bench.example/x#"
    assert (
        describe_property(index, iri + "basedIn") == "company | based in; head office; sitzt in | place : Where it is."
    )
    assert describe_property(index, iri + "basedIn", style="short") == "company | based in | place"
    assert describe_property(index, iri + "basedIn", style="foreign", language="de") == "Firma | sitzt in | place"
    assert describe_property(index, iri + "founded", style="short") == "company | founded | date"
    assert describe_class(index, iri + "Company", style="english") == "type: company"


def test_what_is_taken_back_has_no_facts_and_a_stance():
    made = taken_back([sample("Acme is based in Ulm.", ("Acme", "basedIn", "Ulm"))], random.Random(1))
    assert len(made) == 3
    assert all(not one.triples and one.stances[0][2] != "asserted" and one.source == "stance" for one in made)


def test_a_denied_boolean_is_a_fact_and_is_not_rewritten():
    assert taken_back([sample("Acme is listed.", ("Acme", "isListed", "true"))], random.Random(1)) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Acme is in Ulm.", "en"),
        ("Acme ist in Ulm.", "de"),
        ("Acme est à Ulm.", "fr"),
        ("Acme está en Ulm.", "es"),
        ("Acme acquired Ulm.", "en"),
    ],
)
def test_verbs_are_taken_back_in_four_languages(text, language):
    found = rewrite_inside(text, "Acme", language, random.Random(2))
    assert found is not None
    assert found[0] != text
    assert found[1] != "asserted"


def test_exchanged_names_stand_in_text_and_facts():
    some = [
        sample("Acme sits in Ulm.", ("Acme", "basedIn", "Ulm")),
        sample("Bolt sits in Bonn.", ("Bolt", "basedIn", "Bonn")),
    ]
    made = renamed(some, {"basedIn": ("Company", "Place")}, random.Random(0))
    assert made
    assert all(name in one.text for one in made for s, _, o in one.triples for name in (s, o))


def test_joined_texts_keep_both_golds():
    some = [
        sample("Acme sits in Ulm.", ("Acme", "basedIn", "Ulm")),
        sample("Bolt sits in Bonn.", ("Bolt", "basedIn", "Bonn")),
    ]
    made = joined(some, some, 20, random.Random(0))
    assert made
    assert all(len(one.triples) == 2 for one in made)
