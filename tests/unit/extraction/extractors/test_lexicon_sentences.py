"""What the lexicon makes of plain sentences about companies and people, with the bundled ontology: what is stated, what
is refused and why, and nothing else.
"""

import asyncio
from pathlib import Path

import pytest

import sameas.example
from sameas.extraction.extractors.lexicon import LexiconExtractor
from sameas.extraction.graph.guard import Guard
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology, read_ontology
from tests.shared_data import shared

BUNDLED = OntologyIndex(load_ontology(Path(sameas.example.__file__).with_name("company.ttl")))
READERS = {id(BUNDLED): (LexiconExtractor(BUNDLED), Focuser(BUNDLED), Guard(BUNDLED))}
SHORT = {
    "Weser Glas GmbH": "W",
    "Nord Stahl AG": "N",
    "Anker Bau AG": "B",
    "Alster Holz GmbH": "H",
    "Alster Capital": "C",
    "Otto Brandt": "otto",
    "Anna Keller": "anna",
}
"""Weser Glas GmbH is W below, Nord Stahl AG is N, and so on."""


def read(text: str, *, index: OntologyIndex = BUNDLED) -> tuple[set[str], set[str]]:
    """What is stated, as `subject property object`, and what is refused, with its code before it."""
    extractor, focuser, guard = READERS.get(id(index)) or (LexiconExtractor(index), Focuser(index), Guard(index))
    chunk = Chunk(0, 0, len(text), text)
    focus = focuser.focus(text)
    seen = asyncio.run(extractor.extract_entities(chunk, focus))
    mentions = guard.mentions(chunk, seen.items).kept
    found = asyncio.run(extractor.extract_relations(chunk, mentions, focus))
    claims = guard.claims(chunk, found.items, mentions=mentions)
    assert not claims.rejected
    stated = {
        _line(claim.subject.text, claim.predicate, claim.object.value or claim.object.text) for claim in claims.kept
    }
    refused = {
        f"{one.code} {_line(one.subject, one.predicate, one.object)}" for one in (*seen.rejected, *found.rejected)
    }
    return stated, refused


def _line(subject: str, predicate: str, target: str) -> str:
    name = predicate[max(predicate.rfind("#"), predicate.rfind("/")) + 1 :]
    return f"{SHORT.get(subject, subject)} {name} {SHORT.get(target, target)}"


def written(text: str) -> str:
    for name, short in SHORT.items():
        text = text.replace(f"<{short}>", name)
    return text


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        # Active and passive.
        ("<N> acquired <W>.", {"N acquired W"}),
        ("<W> was acquired by <N>.", {"N acquired W"}),
        ("<W> has been acquired by <N>.", {"N acquired W"}),
        ("<W> was acquired in 2010 by <N>.", {"N acquired W"}),
        ("<W> was taken over by <N>.", {"N acquired W"}),
        ("<W> is supplied by <N>.", {"N supplierOf W"}),
        ("<N> was backed by <C>.", {"C investedIn N"}),
        ("<W> was acquired from <N>.", set()),
        ("<W> was acquired, <N> said.", set()),
        # Founders and dates, from every side.
        ("<otto> founded <W> in 1950.", {"W founder otto", "W foundingDate 1950"}),
        ("In 1950 <otto> founded <W>.", {"W founder otto", "W foundingDate 1950"}),
        ("<W> was founded in 1950 by <otto>.", {"W founder otto", "W foundingDate 1950"}),
        ("<W> was founded by <otto> and <anna> in 1950.", {"W founder otto", "W founder anna", "W foundingDate 1950"}),
        ("Founded in 1950, <W> grew fast.", {"W foundingDate 1950"}),
        (
            "Founded in 1950 by <otto>, <W> is headquartered in Bremen.",
            {"W founder otto", "W foundingDate 1950", "W headquarters Bremen"},
        ),
        ("<otto> and <anna> founded <W>.", {"W founder otto", "W founder anna"}),
        ("<otto> found <W> attractive.", set()),
        ("<W> was founded in Bremen and moved to Hamburg in 1990.", set()),
        ("In 2010, <N> acquired <W>, founded by <otto>.", {"N acquired W", "W founder otto"}),
        # Whose it is.
        ("The son of <otto> founded <W>.", set()),
        ("<otto>'s brother founded <W>.", set()),
        ("<W> was founded by the father of <anna>.", set()),
        ("<anna> works for a supplier of <W>.", set()),
        ("<N> acquired a stake in <W>.", set()),
        ("<N> acquired <W>'s competitor <B>.", {"N acquired B"}),
        ("<anna> is the daughter of the founder of <W>.", set()),
        ("<anna> is the deputy chief executive of <W>.", set()),
        ("CEO <anna> met <otto> of <N>.", set()),
        ("<N> CEO <anna> was born in Kiel.", {"N chiefExecutive anna", "anna birthPlace Kiel"}),
        ("CEO of <N> is <anna>.", {"N chiefExecutive anna"}),
        ("<anna>, CEO of <N>, was born in Kiel.", {"N chiefExecutive anna", "anna birthPlace Kiel"}),
        # Whom a pronoun means after a sentence that began with it.
        (
            "<N> is based in Kiel. It acquired <W>. It employs 80 people.",
            {"N headquarters Kiel", "N acquired W", "N employees 80"},
        ),
        (
            "<anna> was born in Kiel. She married <otto>. She founded <W>.",
            {"anna birthPlace Kiel", "anna spouse otto", "W founder anna"},
        ),
        (
            "<anna> was born in Kiel. She married <otto>. He founded <W>.",
            {"anna birthPlace Kiel", "anna spouse otto", "W founder otto"},
        ),
        # Clauses.
        ("<W>, which competes with <N>, acquired <B>.", {"W competitorOf N", "W acquired B"}),
        ("<N>, a rival of <W>, is based in Hamburg.", {"N competitorOf W", "N headquarters Hamburg"}),
        ("<N> acquired <B> in 2010 and employs 500 people.", {"N acquired B", "N employees 500"}),
        ("<N> acquired <B>, which employs 500 people.", {"N acquired B", "B employees 500"}),
        (
            "<otto> founded <W>, which competes with <N> and employs 300 people.",
            {"W founder otto", "W competitorOf N", "W employees 300"},
        ),
        ("<N> acquired <W> and <B> supplies <H>.", {"N acquired W", "B supplierOf H"}),
        ("<otto> said <anna> founded <B>.", {"B founder anna"}),
        ("<anna> met <otto>, who was born in Kiel.", {"otto birthPlace Kiel"}),
        ("The founder of <W>, <otto>, was born in Kiel.", {"otto birthPlace Kiel", "W founder otto"}),
        ("Unlike <N>, <W> belongs to <B>.", {"W subsidiaryOf B"}),
        ("A spokesman for <N> works for <W>.", set()),
        ("<W> is the only rival of <N> that was founded by <otto>.", {"W competitorOf N"}),
        ("<otto> is married to <anna>, the founder of <N>.", {"otto spouse anna", "N founder anna"}),
        ("<W> of Bremen acquired <N> of Hamburg.", {"W acquired N"}),
        ("Bremen-based <W> acquired <N>.", {"W acquired N"}),
        # Values.
        ("<W> had a revenue of US$299m in 2020.", {"W revenue 299000000"}),
        ("<W> had a revenue of EUR 1.2m.", {"W revenue 1200000"}),
        ("<W> had a revenue of £4bn.", {"W revenue 4000000000"}),
        ("<W>'s revenue rose by €2 million to €12 million.", set()),
        ("The revenue of <W> fell from €12 million to €10 million.", set()),
        ("<W> had a revenue of €12 million and 300 employees.", {"W revenue 12000000"}),
        ("<W> has about 1,200 employees.", {"W employees 1200"}),
        ("<W> fired 300 employees.", set()),
        ("The motto of <W> is 'Clear as day'.", {"W motto Clear as day"}),
        ("<anna> works for Jasper Robotics Inc.", {"anna worksFor Jasper Robotics Inc."}),
        ("Jasper Robotics Inc. is based in Austin.", {"Jasper Robotics Inc. headquarters Austin"}),
        # What looks like doubt and is none.
        ("<N> not only acquired <W> but also supplies <B>.", {"N acquired W", "N supplierOf B"}),
        ("<N> went on to acquire <W>.", {"N acquired W"}),
        ("<N> said that it acquired <W>.", {"N acquired W"}),
        ("In May 2010 <N> acquired <W>.", {"N acquired W"}),
    ],
)
def test_a_sentence_states_this_and_nothing_else(text: str, stated: set[str]) -> None:
    assert read(written(text)) == (stated, set())


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("<W> is not a subsidiary of <N>.", {"negated W subsidiaryOf N"}),
        ("<W> is no subsidiary of <N>.", {"negated W subsidiaryOf N"}),
        ("<N> never acquired <W>.", {"negated N acquired W"}),
        ("<N> did not acquire <W>.", {"negated N acquired W"}),
        ("<N> didn't acquire <W>.", {"negated N acquired W"}),
        ("<N> grew without acquiring <W>.", {"negated N acquired W"}),
        ("<N> denied that it acquired <W>.", {"negated N acquired W"}),
        ("<N> refused to acquire <W>.", {"negated N acquired W"}),
        ("It is not true that <N> acquired <W>.", {"negated N acquired W"}),
        ("The claim that <N> acquired <W> is false.", {"negated N acquired W"}),
        ("Neither <N> nor <B> acquired <W>.", {"negated N acquired W", "negated B acquired W"}),
        ("<W> belongs to neither <N> nor <B>.", {"negated W subsidiaryOf N", "negated W subsidiaryOf B"}),
        ("<anna> is not the chief executive of <W>.", {"negated W chiefExecutive anna"}),
        ("<W> has no headquarters in Hamburg.", {"negated W headquarters Hamburg"}),
        ("Der Hauptsitz der <W> ist nicht Bremen.", {"negated W headquarters Bremen"}),
        ("<W> wurde nie gegründet von <otto>.", {"negated W founder otto"}),
        ("<anna> no longer works for <W>.", {"no_longer anna worksFor W"}),
        ("<anna> does not work for <W> anymore.", {"no_longer anna worksFor W"}),
        ("<anna> used to work for <W>.", {"no_longer anna worksFor W"}),
        ("<anna> is the former chief executive of <W>.", {"no_longer W chiefExecutive anna"}),
        ("<N> may acquire <W>.", {"hedged N acquired W"}),
        ("<N> plans to acquire <W>.", {"hedged N acquired W"}),
        ("<N> has agreed to acquire <W> for €40m.", {"hedged N acquired W"}),
        ("<N> would acquire <W>.", {"hedged N acquired W"}),
        ("<N> could have acquired <W>.", {"hedged N acquired W"}),
        ("<N> considered acquiring <W>.", {"hedged N acquired W"}),
        ("<N> is said to have acquired <W>.", {"hedged N acquired W"}),
        ("<N> reportedly acquired <W>.", {"hedged N acquired W"}),
        ("<W> was almost acquired by <N>.", {"hedged N acquired W"}),
        ("<W> will be acquired by <N>.", {"hedged N acquired W"}),
        ("If <N> acquired <W>, prices would fall.", {"hedged N acquired W"}),
        ("<N> acquires <W> if the price falls.", {"hedged N acquired W"}),
        ("Had <N> acquired <W>, prices would fall.", {"hedged N acquired W"}),
        ("Did <N> acquire <W>?", {"hedged N acquired W"}),
        ("<otto> claims that <N> acquired <W>.", {"hedged N acquired W"}),
        ("<otto> asked whether <N> acquired <W>.", {"hedged N acquired W"}),
        ("<anna> worked for <W> until 2010.", {"no_longer anna worksFor W"}),
        ("Legend has it that <otto> founded <W>.", {"hedged W founder otto"}),
        ("<anna> was born in Kiel or Ulm.", {"hedged anna birthPlace Kiel", "hedged anna birthPlace Ulm"}),
        ("<N> or <B> acquired <W>.", {"hedged N acquired W", "hedged B acquired W"}),
    ],
)
def test_what_is_denied_or_doubted_is_refused_with_its_reason(text: str, refused: set[str]) -> None:
    assert read(written(text)) == (set(), refused)


@pytest.mark.parametrize(
    ("text", "stated", "refused"),
    [
        ("<N> did not acquire <W> but supplies <B>.", {"N supplierOf B"}, {"negated N acquired W"}),
        ("<C> never invested in <W>, but backed <N>.", {"C investedIn N"}, {"negated C investedIn W"}),
        ("<N> may acquire <W> and supplies <B>.", {"N supplierOf B"}, {"hedged N acquired W"}),
    ],
)
def test_a_denial_reaches_no_further_than_its_clause(text: str, stated: set[str], refused: set[str]) -> None:
    assert read(written(text)) == (stated, refused)


def test_who_goes_with_whom_in_two_lists_is_not_guessed() -> None:
    stated, refused = read(written("<N> and <B> acquired <W> and <H> respectively."))
    assert stated == set()
    assert "hedged N acquired W" in refused


WORKS = OntologyIndex(
    read_ontology(
        b"""
@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix schema: <https://schema.org/> .
:Person a owl:Class ; rdfs:label "person" . :Organization a owl:Class ; rdfs:label "organization" .
:Book a owl:Class ; rdfs:label "book" .
:author a owl:ObjectProperty ; rdfs:label "author" ; rdfs:domain :Book ;
    schema:rangeIncludes :Organization, :Person .
""",
        extension=".ttl",
    )
)


def test_a_name_that_several_classes_fit_is_a_person_by_its_shape_or_nothing() -> None:
    assert read("The author of the book Dawn is Anna Keller.", index=WORKS) == ({"Dawn author anna"}, set())
    assert read("The author of the book Dawn is Acme Ltd.", index=WORKS) == ({"Dawn author Acme Ltd"}, set())
    assert read("The author of the book Dawn is Zorbo.", index=WORKS) == (set(), {"ambiguous_type Dawn author Zorbo"})


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("<anna> works for <W>.", {"anna worksFor W"}),
        ("<anna>'s birth date is 4 May 1970.", {"anna birthDate 1970-05-04"}),
        ("Berlin is the birth place of <anna>.", {"anna birthPlace Berlin"}),
        ("<W> was founded by <otto>.", {"W founder otto"}),
    ],
)
def test_labels_written_as_one_word_are_cues(text: str, stated: set[str]) -> None:
    schema = OntologyIndex(load_ontology(shared("data", "ontologies", "schemaorg.ttl")))
    assert read(written(text), index=schema) == (stated, set())
