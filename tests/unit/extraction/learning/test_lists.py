"""What is said of one member of a list is said of the others, where the examples say so."""

import pytest

from sameas.extraction.extractors.learning import Example, Triple
from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple
from sameas.extraction.extractors.learning.lists import OBJECT, SUBJECT, carry, find_lists
from sameas.extraction.extractors.learning.schema import Property, Schema
from sameas.extraction.extractors.learning.spans import WordSpan, find_spans
from sameas.extraction.extractors.learning.tokens import tokenize
from sameas.extraction.extractors.learning.train import learn

SCHEMA = Schema(
    (
        Property(id="bought", label="bought", domain="Firm", range="Firm"),
        Property(id="seat", label="seat", domain="Firm", range="Town"),
    ),
    {"Firm": "firm", "Town": "town"},
)
FIRMS = "Altar Bryne Cendro Dovan Elvar Fenra Gavel Hexan Inova Jasen Keldo Lumen Morva Nexor".split()
TOWNS = "Lyon Porto Graz Turin Leeds Ghent Split".split()


def _examples(*, is_whole: bool) -> list[Example]:
    """Firms that bought two others and sit somewhere in pairs; every fact is told, or one of several."""
    made = []
    for number, name in enumerate(FIRMS):
        second, third = FIRMS[number - 1], FIRMS[number - 2]
        town = TOWNS[number % len(TOWNS)]
        bought = (Triple(name, "bought", second), Triple(name, "bought", third))
        seat = (Triple(name, "seat", town), Triple(third, "seat", town))
        made.append(Example(f"{name} bought {second} and {third}.", bought if is_whole else bought[:1]))
        made.append(Example(f"{name} and {third} are based in {town}.", seat if is_whole else seat[:1]))
    return made


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("Acme bought Bolt, Corex and Dune.", [["Bolt", "Corex", "Dune"]]),
        ("Acme bought Bolt, Corex, and Dune in May.", [["Bolt", "Corex", "Dune"]]),
        ("Acme and Bolt are based in Ulm.", [["Acme", "Bolt"]]),
        ("The children of Ann Lee are Bo Lee, Cy Lee and Di Lee.", [["Bo Lee", "Cy Lee", "Di Lee"]]),
        ("Acme makes Bolt and Corex makes Dune.", []),
        ("Acme bought Bolt in May and 20 cars.", []),
        ("Acme bought Bolt.", []),
        ("", []),
    ],
)
def test_a_list_is_closed_by_a_conjunction_and_shares_its_place(text: str, members: list[list[str]]) -> None:
    tokens = tokenize(text)
    found = {
        tuple(tokens.slice(span.first, span.last) for span in listed)
        for listed in find_lists(tokens, find_spans(tokens)).found.values()
    }
    assert sorted(found) == [tuple(one) for one in members]


def test_every_member_of_a_list_is_an_object_and_a_subject() -> None:
    model = learn(_examples(is_whole=True), SCHEMA)
    bought = {(t.subject.value, t.object.value) for t in model.extract("Wexon bought Quist, Rilke and Solvi.")}
    assert bought == {("Wexon", "Quist"), ("Wexon", "Rilke"), ("Wexon", "Solvi")}
    seats = {(t.subject.value, t.object.value) for t in model.extract("Quist, Rilke and Solvi are based in Leeds.")}
    assert seats == {("Quist", "Leeds"), ("Rilke", "Leeds"), ("Solvi", "Leeds")}


def test_what_holds_between_two_members_of_a_list_is_not_carried_over() -> None:
    tokens = tokenize("Ann, Bo and Cy sang in Ulm.")
    spans = find_spans(tokens)
    carried = frozenset((name, end) for name in ("knows", "town") for end in (SUBJECT, OBJECT))

    def mention(span: WordSpan, _: str | None = None) -> LearnedMention:
        start, end = tokens.starts[span.first], tokens.ends[span.last - 1]
        return LearnedMention(tokens.text[start:end], start, end)

    by_text = {mention(span).text: mention(span) for span in spans}
    facts = [
        LearnedTriple("knows", by_text["Ann"], by_text["Bo"], 0.9),
        LearnedTriple("town", by_text["Ann"], by_text["Ulm"], 0.9),
    ]
    made = carry(facts, find_lists(tokens, spans), carried, tokens=tokens, mention=mention)
    assert {(fact.subject.text, fact.property, fact.object.text) for fact in made} == {
        ("Ann", "knows", "Bo"),
        ("Ann", "town", "Ulm"),
        ("Bo", "town", "Ulm"),
        ("Cy", "town", "Ulm"),
    }
    assert all(fact.confidence < 0.9 for fact in made[len(facts) :])


def test_examples_that_tell_one_fact_of_several_carry_nothing_over() -> None:
    assert learn(_examples(is_whole=True), SCHEMA).content.carried
    assert not learn(_examples(is_whole=False), SCHEMA).content.carried
