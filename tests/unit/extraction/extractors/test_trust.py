"""The lexicon speaks beside a learned model where the examples bear it out, and only there."""

from importlib.resources import files
from pathlib import Path

from sameas.extraction.extractors.learned import schema_of
from sameas.extraction.extractors.learning import read_examples
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.trust import trusted_properties
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology

EXAMPLE = Path(str(files("sameas.example").joinpath("company.ttl"))).parent
INDEX = OntologyIndex(load_ontology(EXAMPLE / "company.ttl"))
GIVEN = read_examples(EXAMPLE / "examples.jsonl", schema_of(INDEX))


def test_an_ontology_with_good_cues_is_trusted():
    trusted = {iri.partition("#")[2] for iri in trusted_properties(GIVEN, INDEX)}
    assert {"founder", "acquired", "headquarters", "foundingDate"} <= trusted


def test_what_the_examples_contradict_is_not():
    (founder,) = [iri for iri in INDEX.properties if iri.endswith("#founder")]
    others = [
        Example(example.text, tuple(Triple(t.object, t.property, t.subject) for t in example.triples))
        for example in GIVEN
        if any(triple.property == founder for triple in example.triples)
    ]
    kept = [example for example in GIVEN if all(triple.property != founder for triple in example.triples)]
    assert len(others) > 2
    trusted = trusted_properties([*kept, *others], INDEX)
    assert founder not in trusted
    assert trusted


def test_a_few_statements_tell_nothing():
    assert trusted_properties(GIVEN[:1], INDEX) == []
