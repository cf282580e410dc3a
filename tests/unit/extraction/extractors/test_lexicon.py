"""The extractor that needs no model finds what the ontology names."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from sameas.extraction.extractors.contract import Extractor, extractor_identity
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import local_name
from sameas.ontology.load import load_ontology, read_ontology
from tests.shared_data import shared
from tests.unit.extraction.company import EX, company_index

INDEX = company_index()
EXTRACTOR = LexiconExtractor(INDEX)


def extract(text: str, *, index: OntologyIndex = INDEX) -> tuple[tuple[Mention, ...], tuple[Claim, ...]]:
    extractor = EXTRACTOR if index is INDEX else LexiconExtractor(index)
    chunk = Chunk(0, 0, len(text), text)
    focus = Focuser(index).focus(text)
    guard = Guard(index)
    mentions = guard.mentions(chunk, asyncio.run(extractor.extract_entities(chunk, focus)).items).kept
    found = asyncio.run(extractor.extract_relations(chunk, mentions, focus)).items
    return mentions, guard.claims(chunk, found, mentions=mentions).kept


def triples(text: str, *, index: OntologyIndex = INDEX) -> set[tuple[str, str, str]]:
    return {
        (claim.subject.text, claim.predicate.removeprefix(EX), claim.object.value or claim.object.text)
        for claim in extract(text, index=index)[1]
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice Stone works for Acme Ltd.", {("Alice Stone", "worksFor", "Acme Ltd")}),
        ("Alice Stone worked for Acme Ltd.", {("Alice Stone", "worksFor", "Acme Ltd")}),
        ("Alice Stone was employed by Acme Ltd.", {("Alice Stone", "worksFor", "Acme Ltd")}),
        ("Acme Ltd was founded by Alice Stone.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("Alice Stone founded Acme Ltd.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("Alice Stone is the founder of Acme Ltd.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("The founder of Acme Ltd is Alice Stone.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("Acme Ltd's founder, Alice Stone, left.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("Acme Ltd founder Alice Stone left.", {("Acme Ltd", "founder", "Alice Stone")}),
        ("Founder Alice Stone left Acme Ltd.", set()),
        ("Paris is the capital of France.", {("France", "capital", "Paris")}),
        ("Berlin, the capital of Germany, is large.", {("Germany", "capital", "Berlin")}),
        (
            "Alice Stone was born in Paris on 1 May 1980.",
            {("Alice Stone", "bornIn", "Paris"), ("Alice Stone", "birthDate", "1980-05-01")},
        ),
        ("In 1999 Acme Ltd was established.", {("Acme Ltd", "inception", "1999")}),
        ("Acme Ltd was established on 3 March 1999.", {("Acme Ltd", "inception", "1999")}),
        ("Acme Ltd has 3,400 employees.", {("Acme Ltd", "employees", "3400")}),
        ("Acme Ltd employs 3,400 people.", {("Acme Ltd", "employees", "3400")}),
        ('The motto of Acme Ltd is "Be good".', {("Acme Ltd", "motto", "Be good")}),
        ("李明出生于北京。", {("李明", "bornIn", "北京")}),
        (
            "Acme Ltd was founded by Alice Stone, Bob Miller and Eve Hill.",
            {("Acme Ltd", "founder", name) for name in ("Alice Stone", "Bob Miller", "Eve Hill")},
        ),
        (
            "Alice Stone and Bob Miller work for Acme Ltd.",
            {(name, "worksFor", "Acme Ltd") for name in ("Alice Stone", "Bob Miller")},
        ),
        (
            "Alice Stone was born in Ulm. She works for Acme Ltd.",
            {("Alice Stone", "bornIn", "Ulm"), ("Alice Stone", "worksFor", "Acme Ltd")},
        ),
        ("Acme Ltd works for nobody.", set()),
        ("The weather was fine.", set()),
    ],
)
def test_a_sentence_says_this(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert triples(text) == expected


def test_a_known_individual_keeps_its_name_in_every_language() -> None:
    for text in ("She left France.", "Sie verließ Frankreich."):
        mentions, _ = extract(text)
        assert [mention.individual for mention in mentions if mention.individual] == [f"{EX}France"]


def test_an_individual_inside_a_longer_name_gives_way() -> None:
    mentions, _ = extract("She flew with Air France Ltd.")
    assert [(mention.text, mention.individual) for mention in mentions] == [("Air France Ltd", "")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The company Globex grew.", "Company"),
        ("Globex is a large company.", "Company"),
        ("Globex, an old company, grew.", "Company"),
        ("They saw Stanford City.", "City"),
        ("They met Dr. Stone.", "Person"),
    ],
)
def test_a_class_is_seen_beside_a_name(text: str, kind: str) -> None:
    mentions, _ = extract(text)
    assert [mention.types for mention in mentions if mention.kind == "name"] == [(EX + kind,)]


def test_every_mention_stands_where_it_says() -> None:
    text = "Ms Stone\u00a0works\nfor ACME\tLtd; İstanbul’s firm Globex, a company, grew 5 % in May 2001 — “wow”."
    mentions, _ = extract(text)
    assert mentions
    assert all(text[mention.start : mention.end] == mention.text for mention in mentions)


def test_relations_of_a_subclass_are_allowed() -> None:
    assert ("Globex", "founder", "Hank Scorpio") in triples("The founder of the company Globex is Hank Scorpio.")


def test_an_ontology_without_words_is_answered_with_what_to_add() -> None:
    silent = b"""
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    <http://e/C1> a owl:Class . <http://e/P57> a owl:ObjectProperty .
    """
    index = OntologyIndex(read_ontology(silent, extension=".ttl"))
    chunk = Chunk(0, 0, 12, "Alice Stone.")
    found = asyncio.run(LexiconExtractor(index).extract_entities(chunk, Focuser(index).focus(chunk.text)))
    assert any("skos:altLabel" in note and "{subject}" in note for note in found.notes)
    assert any("rdfs:label" in note for note in found.notes)


def test_an_ontology_with_words_gives_no_note() -> None:
    chunk = Chunk(0, 0, 12, "Alice Stone.")
    assert asyncio.run(EXTRACTOR.extract_entities(chunk, Focuser(INDEX).focus(chunk.text))).notes == ()


def test_it_keeps_the_contract() -> None:
    assert isinstance(EXTRACTOR, Extractor)
    assert extractor_identity(EXTRACTOR) == {"name": "lexicon", "version": EXTRACTOR.version, "settings": {}}


# In a process of its own, where nothing counts lines meanwhile.
A_SENTENCE = """
import asyncio, time
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.ontology.focus import Focuser
from tests.unit.extraction.company import company_index

index = company_index()
extractor = LexiconExtractor(index)
sentence = "Alice Stone was born in Paris on 1 May 1980 and works for Acme Robotics Ltd with 3,400 people. "
text = (sentence * 200).strip()
chunk = Chunk(0, 0, len(text), text)
focus = Focuser(index).focus(text)
began = time.process_time()
mentions = asyncio.run(extractor.extract_entities(chunk, focus)).items
kept = [mention for mention in mentions if mention.types or mention.kind == "literal"]
asyncio.run(extractor.extract_relations(chunk, kept, focus))
print((time.process_time() - began) / 200)
"""


def test_a_sentence_takes_under_a_millisecond() -> None:
    root = Path(__file__).resolve().parents[4]
    done = subprocess.run([sys.executable, "-c", A_SENTENCE], cwd=root, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.001


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("schemaorg.ttl", "Alice Stone knows Bob Miller, who works for Acme Ltd in Paris.", {"knows", "worksFor"}),
        ("foaf.rdf", "Alice Stone knows Bob Miller.", {"knows"}),
        ("pizza.owl", "The pizza Aurora has topping Cheddar.", {"hasTopping"}),
        ("wine.rdf", "The wine Dawn is located in the region Freedonia.", {"locatedIn"}),
        ("prov-o.ttl", "The entity Dawn was attributed to Alice Stone.", {"wasAttributedTo"}),
        ("skos.rdf", "The concept Dawn is a narrower match of the concept Day.", {"narrowMatch"}),
    ],
)
def test_real_ontologies_give_only_what_they_allow(name: str, text: str, said: set[str]) -> None:
    index = OntologyIndex(load_ontology(shared("data", "ontologies", name)))
    mentions, claims = extract(text, index=index)
    assert mentions
    assert {local_name(claim.predicate) for claim in claims} == said
    assert all(iri in index.classes for mention in mentions for iri in mention.types if "owl#" not in iri)
    assert all(claim.predicate in index.properties for claim in claims)


SHIPYARD = OntologyIndex(
    read_ontology(
        b"""
@prefix : <http://example.org/company#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
<http://example.org/company> a owl:Ontology .
:Person a owl:Class ; rdfs:label "person" .
:Place a owl:Class ; rdfs:label "place" .
:Island a owl:Class ; rdfs:subClassOf :Place ; rdfs:label "isle" .
:Organization a owl:Class ; rdfs:label "organization" .
:Ship a owl:Class ; rdfs:label "ship" .
:calledAt a owl:ObjectProperty ; rdfs:label "called at" ; rdfs:domain :Ship ; rdfs:range :Island .
:investedIn a owl:ObjectProperty ; rdfs:label "invested in" ; rdfs:domain :Person ; rdfs:range :Organization .
:harbourMaster a owl:ObjectProperty ; rdfs:label "harbour master" ; rdfs:domain :Island ; rdfs:range :Person .
:master a owl:ObjectProperty ; rdfs:label "master" ; rdfs:domain :Ship ; rdfs:range :Person .
""",
        extension=".ttl",
    )
)


def test_a_shape_takes_the_narrower_class_that_a_property_asks_for() -> None:
    mentions, claims = extract("The ship Aurora called at Skye Island.", index=SHIPYARD)
    assert [claim.predicate for claim in claims] == [f"{EX}calledAt"]
    assert {mention.text: mention.types for mention in mentions}["Skye Island"] == (f"{EX}Island",)


def test_a_shape_that_no_property_asks_about_has_its_general_class() -> None:
    mentions, _ = extract("It rained over Skye Island.", index=SHIPYARD)
    assert [(mention.text, mention.types) for mention in mentions] == [("Skye Island", (f"{EX}Place",))]


def test_a_preposition_does_not_make_an_organisation_a_place() -> None:
    assert triples("Dr. Stone invested in Globex.", index=SHIPYARD) == {("Stone", "investedIn", "Globex")}
    mentions, _ = extract("It rained in Skye.", index=SHIPYARD)
    assert [(mention.text, mention.types) for mention in mentions] == [("Skye", (f"{EX}Place",))]


def test_a_legal_form_after_a_comma_belongs_to_the_name() -> None:
    assert triples("Alice Stone works for Acme Robotics, Inc. in Paris.") == {
        ("Alice Stone", "worksFor", "Acme Robotics, Inc.")
    }


def test_a_longer_cue_that_gives_nothing_does_not_hide_a_shorter_one() -> None:
    text = "The harbour master of the ship Aurora is Dr. Stone."
    assert triples(text, index=SHIPYARD) == {("Aurora", "master", "Stone")}
    text = "The harbour master of Skye Island is Dr. Stone."
    assert triples(text, index=SHIPYARD) == {("Skye Island", "harbourMaster", "Stone")}


FILMS = """
@prefix : <http://example.org/company#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Film a owl:Class ; rdfs:label "film" .
:Person a owl:Class ; rdfs:label "person" .
:director a owl:ObjectProperty ; rdfs:label "director" ; rdfs:domain :Film ; rdfs:range :Person .
:writer a owl:ObjectProperty ; rdfs:label "written by" ; rdfs:domain :Film ; rdfs:range :Person .
:producer a owl:ObjectProperty ; rdfs:label "producer" ; rdfs:domain :Film ; rdfs:range :Person .
"""


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("The film Dawn was written and directed by Jane Doe.", {"writer", "director"}),
        ("The film Dawn was directed and written by Jane Doe.", {"writer", "director"}),
        ("Dawn is a film written, produced and directed by Jane Doe.", {"writer", "producer", "director"}),
        ("Dawn is a film shot and directed by Jane Doe.", {"director"}),
        ("The film Dawn was written off, and directed by Jane Doe.", {"director"}),
    ],
)
def test_cues_that_share_their_last_word_are_all_heard(text: str, properties: set[str]) -> None:
    index = OntologyIndex(read_ontology(FILMS.encode(), extension=".ttl"))
    assert triples(text, index=index) == {("Dawn", name, "Jane Doe") for name in properties}
