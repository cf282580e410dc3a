"""Labels and examples that a user's own texts propose for an ontology."""

import asyncio

from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.extractors.suggestions import suggest
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Person a owl:Class ; rdfs:label "person" . :Company a owl:Class ; rdfs:label "company" .
:worksFor a owl:ObjectProperty ; rdfs:domain :Person ; rdfs:range :Company ; rdfs:label "employee of" .
"""


def suggested(text):
    index = OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))
    result = asyncio.run(Pipeline(index=index, extractor=LexiconExtractor(index)).run(text, key="k", formats=()))
    return suggest([(text, result.found)], index)


def test_words_between_two_names_are_proposed_as_a_label_with_their_sentences():
    found = suggested("Anna Berg moonlights for Acme Ltd. Otto Kern moonlights for Bolt Ltd.")
    assert [(one.property, one.phrase, len(one.sentences)) for one in found.labels] == [
        (PREFIX + "worksFor", "moonlights for", 2)
    ]
    assert found.examples[0].triples == (("Anna Berg", PREFIX + "worksFor", "Acme Ltd"),)


def test_what_is_said_the_other_way_round_is_an_example_and_no_label():
    found = suggested("Acme Ltd pays Anna Berg.")
    assert found.labels == ()
    assert found.examples[0].triples == (("Anna Berg", PREFIX + "worksFor", "Acme Ltd"),)


def test_nothing_is_proposed_for_what_was_read_or_has_no_words():
    assert suggested("Anna Berg is an employee of Acme Ltd.").labels == ()
    assert suggested("Anna Berg, Acme Ltd.").labels == ()
    assert suggested("It rained.").examples == ()
