"""A text of several statements may change its subject, and the learner notices."""

import pytest

from sameas.extraction.extractors.learning.clauses import clause_features, find_clauses
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.lists import find_lists
from sameas.extraction.extractors.learning.schema import Property, Schema
from sameas.extraction.extractors.learning.spans import WordSpan, find_spans
from sameas.extraction.extractors.learning.tokens import tokenize
from sameas.extraction.extractors.learning.train import learn

SCHEMA = Schema(
    (
        Property(id="height", label="height", domain="Tower", range=None, datatype=None),
        Property(id="architect", label="architect", domain="Tower", range="Person", datatype=None),
    ),
    {"Tower": "tower", "Person": "person"},
)
TOWERS = ("Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Haven", "Ivory", "Jetty", "Karst", "Larch")
PEOPLE = ("Ann Lee", "Bo Orr", "Cy Fox", "Di Ray", "Ed Poe", "Flo Day")


def examples() -> list[Example]:
    made = []
    for number, name in enumerate(TOWERS):
        tower, person, height = f"{name} Tower", PEOPLE[number % len(PEOPLE)], str(101 + 7 * number)
        text = (
            f"{tower} was designed by {person}. It is {height} metres high."
            if number % 2
            else f"{tower} is {height} metres high. It was designed by {person}."
        )
        made.append(Example(text, (Triple(tower, "architect", person), Triple(tower, "height", height))))
    return made


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Acme makes cars. It is old.", ["Acme", "It"]),
        ("J. Smith left. Acme stayed.", ["J", "Acme"]),
        ("Acme makes cars; the firm is old.", ["Acme", "the"]),
        ("Acme makes cars, and it is old.", ["Acme", "it"]),
        ("Acme makes cars, and Globex sells them.", ["Acme", "Globex"]),
        ("Acme and Globex make cars.", ["Acme"]),
        ("Acme makes cars, Globex makes tea.", ["Acme", "Globex"]),
        ("Acme makes cars and Globex makes tea.", ["Acme", "Globex"]),
        ("Acme is in Ulm, Globex in Bonn.", ["Acme", "Globex"]),
        ("Acme earned 5 million and Globex 7 million.", ["Acme", "Globex"]),
        ("On Monday, Acme made cars.", ["On"]),
        ("Founded by Smith, Acme makes cars.", ["Founded"]),
        ("Acme bought Globex, Smith and tea.", ["Acme"]),
        ("", []),
    ],
)
def test_clauses_begin_after_stops_and_where_a_joined_one_has_its_own_subject(text: str, starts: list[str]) -> None:
    tokens = tokenize(text)
    names = [(at, at + 1) for at, said in enumerate(tokens.words) if said in ("Acme", "Globex", "Smith")]
    number = find_clauses(tokens, names).number
    assert [tokens.words[at] for at in range(len(tokens)) if at == 0 or number[at] != number[at - 1]] == starts


def test_a_subject_of_the_own_clause_differs_from_one_of_another() -> None:
    tokens = tokenize("Acme makes cars. Globex makes tea.")
    clauses = find_clauses(tokens, [(0, 1), (4, 5)])
    acme, globex, tea = (WordSpan(at, at + 1, 0, None, None) for at in (0, 4, 6))
    assert not set(clause_features(clauses, acme, tea)) & set(clause_features(clauses, globex, tea))


def test_a_member_of_the_list_that_the_object_is_in_differs_from_another_name() -> None:
    tokens = tokenize("Acme and Globex bought Smith.")
    spans = find_spans(tokens)
    clauses = find_clauses(tokens, [(0, 1), (2, 3), (4, 5)], find_lists(tokens, spans))
    acme, globex, smith = (WordSpan(at, at + 1, 0, None, None) for at in (0, 2, 4))
    assert set(clause_features(clauses, acme, globex)) - set(clause_features(clauses, acme, smith))


def test_each_fact_of_a_text_has_the_subject_of_its_own_sentence() -> None:
    model = learn(examples(), SCHEMA)
    text = "Quartz Tower was designed by Ann Lee. Raven Tower is 350 metres high."
    # The best guess of a property comes last in this order, and stays.
    best = {triple.property: triple.subject.value for triple in reversed(model.extract(text))}
    assert best == {"architect": "Quartz Tower", "height": "Raven Tower"}


def test_a_name_ends_where_its_sentence_does() -> None:
    tokens = tokenize("It was designed by Ann Lee. Raven Tower, by J. Orr of St. Ives, is old.")
    found = {tokens.slice(span.first, span.last) for span in find_spans(tokens)}
    assert {"Ann Lee", "Raven Tower", "J. Orr", "St. Ives"} <= found
    assert "Ann Lee. Raven Tower" not in found
