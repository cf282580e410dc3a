"""Where names stand: as they are written, as whole words, never twice in one place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.extractors.prompted.locating import locate, nearest, places
from sameas.extraction.text.chunking import sentence_spans
from sameas.extraction.text.document import Span


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
