"""A value takes the datatype that a property wants, and is never stretched."""

import pytest

from sameas.extraction.extractors.lexicon.cues import build_cues
from sameas.extraction.extractors.lexicon.dates import XSD
from sameas.extraction.extractors.lexicon.fitting import Fitting
from sameas.extraction.extractors.lexicon.inflection import active_forms, passive_forms, verb_forms
from sameas.extraction.extractors.lexicon.values import ValueFit
from sameas.extraction.graph.model import Mention
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology

HEAD = """
@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def index_of(body: str) -> OntologyIndex:
    return OntologyIndex(read_ontology((HEAD + body).encode(), extension=".ttl"))


def literal(value: str, datatype: str) -> Mention:
    return Mention(0, len(value), value, kind="literal", value=value, datatype=XSD + datatype)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        ("1999-05-01", "date", "date", "1999-05-01"),
        ("1999-05-01", "date", "dateTime", "1999-05-01T00:00:00"),
        ("1999-05-01", "date", "gYear", "1999"),
        ("1999-05-01", "date", "gYearMonth", "1999-05"),
        ("1999-05-01T10:00:00", "dateTime", "date", "1999-05-01"),
        ("1999", "gYear", "date", "1999"),
        ("1999-05", "gYearMonth", "date", "1999-05"),
        ("1999", "gYear", "dateTime", None),
        ("1999", "gYear", "integer", "1999"),
        ("7", "integer", "decimal", "7"),
        ("7.5", "decimal", "integer", None),
        ("7.5", "decimal", "double", "7.5"),
        ("7", "integer", "int", "7"),
        ("0", "integer", "positiveInteger", None),
        ("0", "integer", "nonNegativeInteger", "0"),
        ("-1", "integer", "nonNegativeInteger", None),
        ("1999-05-01", "date", "string", "1999-05-01"),
        ("https://e/x", "string", "anyURI", "https://e/x"),
        ("word", "string", "anyURI", None),
        ("word", "string", "date", None),
    ],
)
def test_a_value_is_fitted(value: str, source: str, target: str, expected: str | None) -> None:
    index = index_of(f":p a owl:DatatypeProperty ; rdfs:range xsd:{target} .")
    fitted = ValueFit(index).fit(literal(value, source), "http://e/p")
    assert (fitted.value if fitted else None) == expected


def test_a_property_without_a_range_takes_what_its_label_speaks_of() -> None:
    index = index_of(
        ':p rdfs:label "publication date" ; a owl:ObjectProperty . :q rdfs:label "nickname" ; a owl:ObjectProperty .'
    )
    fit = ValueFit(index)
    assert fit.fit(literal("1999", "gYear"), "http://e/p") is not None
    assert fit.fit(literal("7", "integer"), "http://e/p") is None
    assert fit.fit(literal("Joe", "string"), "http://e/q") is not None
    assert fit.fit(literal("1999", "gYear"), "http://e/q") is None
    assert not fit.takes_things("http://e/p")
    assert fit.takes_things("http://e/q")
    assert fit.takes_values("http://e/q")


def test_a_name_fits_where_text_is_wanted() -> None:
    index = index_of(":p a owl:DatatypeProperty ; rdfs:range xsd:string .")
    fitted = Fitting(index).target(Mention(0, 5, "Alice"), "http://e/p")
    assert fitted is not None
    assert (fitted.kind, fitted.value) == ("literal", "Alice")


def test_a_shape_that_contradicts_a_class_does_not_fit() -> None:
    index = index_of(
        ':City a owl:Class ; rdfs:label "city" . :Man a owl:Class ; rdfs:label "man" .'
        ":p a owl:ObjectProperty ; rdfs:domain :City ; rdfs:range [ owl:unionOf ( :City :Man ) ] ."
    )
    fitting = Fitting(index)
    stone = Mention(0, 5, "Stone", looks_like="person")
    assert fitting.subject(stone, "http://e/p") is None
    fitted = fitting.target(stone, "http://e/p")
    assert fitted is not None
    assert fitted.types == ("http://e/Man",)


def test_a_pattern_with_words_around_it_needs_them() -> None:
    index = index_of(
        '@prefix s: <https://sameas.dev/ns#> . :p a owl:ObjectProperty ; s:pattern "from {subject} into {object} flows" .'
        ':q a owl:ObjectProperty ; s:pattern "broken {subject}" .'
    )
    cues = {phrase: cue for phrase, cue in build_cues(index) if cue.is_pattern}
    assert list(cues) == ["into"]
    assert (cues["into"].before, cues["into"].after) == ("from", "flows")


def test_a_verb_and_its_passive_are_cues_that_lie_the_other_way_round() -> None:
    index = index_of(
        ':p a owl:ObjectProperty ; rdfs:label "acquired" . :q a owl:ObjectProperty ; rdfs:label "made by" .'
    )
    cues = {(phrase, cue.property[-1]): cue.form for phrase, cue in build_cues(index)}
    assert cues["acquired", "p"] == cues["acquire", "p"] == "subject_first"
    assert cues["acquired by", "p"] == "object_first"
    assert cues["made by", "q"] == "subject_first"
    assert cues["makes", "q"] == "object_first"


def test_what_somebody_found_is_not_what_somebody_founds() -> None:
    assert "found" not in verb_forms("founded")


def test_a_range_that_classes_restrict_is_used_where_the_property_has_none() -> None:
    index = index_of(
        ":Man a owl:Class ; rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :born ; owl:allValuesFrom xsd:date ] ."
        ":born a owl:DatatypeProperty ."
    )
    fit = ValueFit(index)
    assert fit.fit(literal("1999-05-01", "date"), "http://e/born") is not None
    assert fit.fit(literal("word", "string"), "http://e/born") is None


def test_verbs_are_bent() -> None:
    assert {"acquire", "acquires", "acquired", "acquiring"} <= set(verb_forms("acquired"))
    assert set(verb_forms("works")) == {"work", "works", "worked", "working"}
    assert {"wrote", "written", "writes"} <= set(verb_forms("writes"))
    assert {"carry", "carries", "carried"} <= set(verb_forms("carried"))
    assert list(passive_forms("director")) == ["directed by"]
    assert list(passive_forms("author")) == ["written by"]
    assert {"directed", "directs"} <= set(active_forms("director"))
    assert list(passive_forms("genre")) == []


def test_a_year_stays_a_year_where_a_date_is_asked_for() -> None:
    index = index_of(":p a owl:DatatypeProperty ; rdfs:range xsd:date .")
    fitted = ValueFit(index).fit(literal("1999", "gYear"), "http://e/p")
    assert fitted is not None
    assert fitted.datatype == XSD + "gYear"
