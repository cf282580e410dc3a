"""What speaks for a fact, which facts stand beside each other, and which narrower property a class decides for."""

import asyncio

import pytest

from sameas.extraction.extractors.reader.extractor import ReaderExtractor
from sameas.extraction.extractors.reader.foreign_words import english_roots, language_of
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from sameas.ontology.word_families import root_of
from tests.unit.extraction.reader.test_extractor import Told

PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Firm a owl:Class ; rdfs:label "firm" . :Person a owl:Class ; rdfs:label "person" .
:Food a owl:Class ; rdfs:label "food" . :Dish a owl:Class ; rdfs:subClassOf :Food ; rdfs:label "dish" .
:Topping a owl:Class ; rdfs:subClassOf :Food ; rdfs:label "topping" .
:founder a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Person ; rdfs:label "founder" .
:chief a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Person ; rdfs:label "chief" .
:staff a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:integer ; rdfs:label "staff" .
:shops a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:integer ; rdfs:label "number of shops" .
:isOpen a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:boolean ; rdfs:label "is open" .
:ingredient a owl:ObjectProperty ; rdfs:domain :Food ; rdfs:range :Food ; rdfs:label "has ingredient" .
:topping a owl:ObjectProperty ; rdfs:subPropertyOf :ingredient ; rdfs:domain :Dish ; rdfs:range :Topping ; rdfs:label "has topping" .
"""


@pytest.fixture(scope="module")
def index():
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def facts(index, told, text, sure=lambda signs: 0.9 if signs.score > 1 else 0.6):
    extractor = ReaderExtractor(index, told, digest="d", judge_signs=lambda signs, iri: sure(signs))
    result = asyncio.run(Pipeline(index=index, extractor=extractor).run(text, key="k", formats=())).found
    names = {entity.id: entity.name for entity in result.entities}
    return {
        (names[one.subject], one.predicate.removeprefix(PREFIX), one.value.value if one.value else names[one.object])
        for one in result.relations
    }


def signs_of(index, told, text):
    kept = []

    def note(signs):
        kept.append(signs)
        return 0.9

    facts(index, told, text, note)
    return kept


def test_a_number_is_of_one_fact(index):
    told = Told(("Kolb", "staff", "30", 0.9), ("Kolb", "number of shops", "30", 0.4))
    assert facts(index, told, "Kolb and its staff of 30.") == {("Kolb", "staff", "30")}


def test_two_ends_are_joined_by_one_property_unless_the_words_say_both(index):
    told = Told(("Kolb", "founder", "Anna", 0.9), ("Kolb", "chief", "Anna", 0.4))
    assert facts(index, told, "The founder of Kolb was Anna.") == {("Kolb", "founder", "Anna")}
    assert facts(index, told, "The founder and chief of Kolb is Anna.") == {
        ("Kolb", "founder", "Anna"),
        ("Kolb", "chief", "Anna"),
    }


def test_what_the_text_takes_back_rules_out_nothing(index):
    told = Told(("Kolb", "chief", "Otto", 0.9), ("Kolb", "founder", "Otto", 0.4))
    text = "Otto is not the chief of Kolb. The founder of Kolb is Otto."
    assert ("Kolb", "chief", "Otto") not in facts(index, told, text)


def test_a_yes_is_what_the_words_do_not_deny_where_both_are_likely(index):
    told = Told(("Kolb", "is open", True, 0.4), ("Kolb", "is open", False, 0.45))
    assert facts(index, told, "Kolb is open on Sundays.") == {("Kolb", "isOpen", "true")}
    assert facts(index, told, "Kolb is not open on Sundays.") == {("Kolb", "isOpen", "false")}


def test_the_class_of_an_object_decides_for_the_narrower_property(index):
    kinds = {("Roma", "dish"): 0.95, ("capers", "topping"): 0.95}
    told = Told(("Roma", "has ingredient", "capers", 0.9), kinds=kinds)
    assert facts(index, told, "The Roma comes with capers.") == {("Roma", "topping", "capers")}
    kinds = {("Roma", "dish"): 0.95, ("capers", "dish"): 0.95}
    told = Told(("Roma", "has ingredient", "capers", 0.9), kinds=kinds)
    assert facts(index, told, "The Roma comes with capers.") == {("Roma", "ingredient", "capers")}


def test_a_wider_property_that_the_words_name_stays(index):
    kinds = {("Roma", "dish"): 0.95, ("capers", "topping"): 0.95}
    told = Told(("Roma", "has ingredient", "capers", 0.9), kinds=kinds)
    assert facts(index, told, "An ingredient of the Roma is capers.") == {("Roma", "ingredient", "capers")}


def test_words_of_another_language_are_those_that_labels_use(index):
    (signs,) = signs_of(index, Told(("Kolb", "founder", "Anna", 0.9)), "Die Firma Kolb wurde von der Anna gegründet.")
    assert signs.cue == 1.0
    (signs,) = signs_of(index, Told(("Kolb", "founder", "Anna", 0.9)), "The Kolb is fond of Anna and the sea.")
    assert signs.cue == 0.0


def test_what_stands_near_a_number_speaks_for_it(index):
    told = Told(("Kolb", "staff", "30", 0.9))
    (near,) = signs_of(index, told, "Kolb has a staff of 30 in two shops.")
    (far,) = signs_of(index, told, "The staff of Kolb came on a rainy day, when 30 cars stood there.")
    assert near.close > far.close > 0


def test_a_key_before_a_colon_names_the_property(index):
    told = Told(("Kolb", "staff", "30", 0.9))
    (signs,) = signs_of(index, told, "Kolb\n- Staff: 30\n")
    (other,) = signs_of(index, told, "Kolb\n- Number of shops: 30\n")
    assert signs.key > 0 > other.key


def test_members_of_a_list_share_what_is_said_of_one(index):
    told = Told(("Kolb", "founder", "Anna", 0.9), ("Kolb", "founder", "Bert", 0.3))
    signs = signs_of(index, told, "Kolb was founded by Anna, Carl and Bert.")
    assert [one.mate > 0 for one in signs] == [True, True]
    signs = signs_of(index, told, "Kolb was founded by Anna. Later came Bert.")
    assert not any(one.mate for one in signs)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Firma wurde von der Stadt gegründet.", "de"),
        ("La société a été fondée par la ville.", "fr"),
        ("La empresa fue fundada por el banco.", "es"),
        ("The firm was founded by the town.", ""),
        ("Kolb 1988", ""),
    ],
)
def test_small_words_tell_the_language(text, language):
    assert language_of(text) == language


def test_a_foreign_word_stands_for_english_ones_in_its_own_language_alone():
    assert root_of("founder") in english_roots("gegründet", "de")
    assert root_of("founder") in english_roots("fundada", "es")
    assert english_roots("fondness", "") == frozenset()
