"""From names and numbers to mentions and claims: everything has a place, and the guard still decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.extractors.prompted.reading import ReplyReader, locate, nearest, places, read_things
from sameas.extraction.extractors.prompted.replies import Agreed
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import Chunk, sentence_spans
from sameas.extraction.text.document import Span
from tests.unit.extraction.company import EX, company_index

INDEX = company_index()
READER = ReplyReader(INDEX)
GUARD = Guard(INDEX)
TEXT = "Alice Stone works for Acme Robotics. Acme Robotics was founded in 1999 and employs 3,400 people in France."


def chunk(text: str = TEXT) -> Chunk:
    return Chunk(0, 0, len(text), text)


def named(name: str, kind: str, confidence: float | None = None) -> Agreed[tuple[str, str]]:
    return Agreed((name, EX + kind), confidence, "rule" if confidence is None else "agreement")


PEOPLE = [named("Alice Stone", "Person"), named("Acme Robotics", "Company"), named("France", "Country")]


def test_a_name_is_a_mention_at_each_of_its_places() -> None:
    read = READER.mentions(chunk(), PEOPLE, (), with_values=False)
    assert [(one.text, one.types) for one in read.mentions] == [
        ("Alice Stone", (EX + "Person",)),
        ("Acme Robotics", (EX + "Company",)),
        ("Acme Robotics", (EX + "Company",)),
        ("France", (EX + "Country",)),
    ]
    assert all(TEXT[one.start : one.end] == one.text for one in read.mentions)


def test_an_individual_of_the_ontology_is_known_by_its_label() -> None:
    france = READER.mentions(chunk(), PEOPLE, (), with_values=False).mentions[-1]
    assert (france.kind, france.individual) == ("individual", EX + "France")


def test_a_name_that_is_not_there_is_refused_with_a_reason() -> None:
    read = READER.mentions(
        chunk(), [named("Bob", "Person"), named("Alice", "Person"), *PEOPLE, named("", "Person")], (), with_values=False
    )
    assert {(one.subject, one.code) for one in read.rejected} == {
        ("Bob", "not_in_text"),
        ("Alice", "duplicate"),
        ("", "empty_name"),
    }


def test_values_are_read_by_their_form_and_named_ones_are_texts() -> None:
    read = READER.mentions(chunk(), PEOPLE, ["was founded", "nowhere"], with_values=True)
    values = {one.text: (one.value, one.datatype.rpartition("#")[2]) for one in read.mentions if one.kind == "literal"}
    assert values["1999"] == ("1999", "gYear")
    assert values["was founded"] == ("was founded", "string")
    assert "nowhere" not in values


def test_two_classes_that_exclude_each_other_are_not_both_believed() -> None:
    both = [named("Alice Stone", "Person"), named("Alice Stone", "Organization"), named("Alice Stone", "Agent")]
    (mention,) = READER.mentions(chunk("Alice Stone left."), both, (), with_values=False).mentions
    assert mention.types == (EX + "Person", EX + "Agent")


def claims(*facts: tuple[int, str, int]):
    read = READER.mentions(chunk(), PEOPLE, (), with_values=True)
    found = READER.claims(
        chunk(), read_things(read.mentions), [Agreed((s, EX + p, o), None, "rule") for s, p, o in facts]
    )
    return GUARD.claims(chunk(), found, mentions=GUARD.mentions(chunk(), read.mentions).kept)


def things() -> dict[str, int]:
    read = READER.mentions(chunk(), PEOPLE, (), with_values=True)
    return {thing.mention.text: number for number, thing in enumerate(read_things(read.mentions), 1)}


def test_a_fact_rests_on_the_places_that_are_nearest() -> None:
    known = things()
    (claim,) = claims((known["Alice Stone"], "worksFor", known["Acme Robotics"])).kept
    assert TEXT[claim.evidence.start : claim.evidence.end] == "Alice Stone works for Acme Robotics."
    assert claim.confidence == 0.9


def test_a_value_takes_the_datatype_that_the_property_wants() -> None:
    known = things()
    (claim,) = claims((known["Acme Robotics"], "inception", known["1999"])).kept
    assert (claim.object.value, claim.object.datatype.rpartition("#")[2]) == ("1999", "gYear")


def test_a_wrong_direction_is_turned_by_the_guard() -> None:
    known = things()
    (claim,) = claims((known["Acme Robotics"], "worksFor", known["Alice Stone"])).kept
    assert claim.subject.text == "Alice Stone"


def test_numbers_that_were_not_offered_and_forbidden_facts_are_refused() -> None:
    known = things()
    alice, acme, france = known["Alice Stone"], known["Acme Robotics"], known["France"]
    checked = claims(
        (alice, "worksFor", 99), (0, "worksFor", acme), (alice, "no such", acme), (alice, "capital", france)
    )
    assert checked.kept == ()
    assert [one.code for one in checked.rejected] == [
        "unresolved_end",
        "unresolved_end",
        "unknown_relation",
        "domain_mismatch",
    ]
    (same,) = claims((alice, "worksFor", alice)).rejected
    assert same.code == "self_relation"


def test_a_joint_answer_types_an_end_that_only_a_fact_names() -> None:
    facts = [Agreed(("Alice Stone", EX + "worksFor", "Acme Robotics"), None, "rule")]
    read, found = READER.joint(chunk(), [named("Alice Stone", "Person")], facts)
    kept = GUARD.mentions(chunk(), read.mentions).kept
    assert {(one.text, one.types) for one in kept if one.kind != "literal"} == {
        ("Alice Stone", (EX + "Person",)),
        ("Acme Robotics", (EX + "Organization",)),
    }
    assert len(GUARD.claims(chunk(), found, mentions=kept).kept) == 1


def test_things_are_listed_once_in_the_order_of_the_text() -> None:
    mentions = [Mention(20, 24, "Acme", types=("c",)), Mention(0, 4, "Acme", types=("c",)), Mention(5, 8, "Bob")]
    assert [(thing.mention.text, len(thing.places)) for thing in read_things(mentions)] == [("Acme", 2), ("Bob", 1)]


def said(text: str, name: str) -> list[str]:
    return [text[span.start : span.end] for span in places(text, name)]


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("Acme and Acme.", "Acme", ["Acme", "Acme"]),
        ("The party is over.", "art", []),
        ("Alice\n  Stone left.", "Alice Stone", ["Alice\n  Stone"]),
        ("ACME grew.", "Acme", ["ACME"]),
        ("Acme grew, ACME shrank.", "Acme", ["Acme"]),
        ("李明出生于北京。", "北京", ["北京"]),
        ("C++ is old.", "C++", ["C++"]),
        ("Acme's staff", "Acme", ["Acme"]),
        ("anything", "  ", []),
        ("a.c", "abc", []),
    ],
)
def test_a_name_is_found_as_a_whole_word(text: str, name: str, found: list[str]) -> None:
    assert said(text, name) == found


def test_a_longer_name_keeps_its_place() -> None:
    found = locate("Paris Hilton was in Paris.", ["Paris", "Paris Hilton"])
    assert found == {"Paris Hilton": (Span(0, 12),), "Paris": (Span(20, 25),)}


def test_a_whole_sentence_does_not_take_the_places_of_names() -> None:
    text = "Alice works for Acme. Bob left."
    found = locate(text, ["Alice works for Acme", "Alice", "Acme"], sentences=list(sentence_spans(text)))
    assert {name for name, spans in found.items() if spans} == {"Alice", "Acme"}


@given(st.text(alphabet="ab .\n", max_size=40), st.lists(st.text(alphabet="ab .", max_size=6), max_size=6))
def test_places_are_in_the_text_and_do_not_overlap(text: str, names: list[str]) -> None:
    taken: set[int] = set()
    for name, spans in locate(text, names).items():
        for span in spans:
            here = set(range(span.start, span.end))
            assert " ".join(text[span.start : span.end].split()).lower() == " ".join(name.split()).lower()
            assert not here & taken
            taken |= here


def test_the_nearest_two_places_are_taken() -> None:
    assert nearest([Span(0, 3), Span(50, 53)], [Span(60, 65), Span(10, 12)]) == (Span(0, 3), Span(10, 12))
    assert nearest([Span(0, 3)], [Span(1, 2)]) is None
