"""Offsets come back to the very characters of the original."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.extraction.text.document import Document, OffsetMap, SourcePlace, Span, normalized_pieces
from sameas.identity.key import normalize_text

TEXTS = st.text(alphabet="ab \t\r\n\u00a0\u0301é👩\u200d🚀東שلx", max_size=80) | st.text(max_size=60)


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_every_character_of_the_normalised_text_is_found_in_the_original(original: str) -> None:
    normal = normalize_text(original)
    offsets = OffsetMap(original)
    assert offsets.length == len(normal)
    for at, sign in enumerate(normal):
        there = original[offsets.offset(at)]
        assert there == sign or (sign == "\n" and there == "\r")


@given(st.lists(TEXTS, max_size=6))
@settings(max_examples=400, deadline=None)
def test_normalising_a_stream_equals_normalising_the_whole(pieces: list[str]) -> None:
    assert "".join(normalized_pieces(pieces)) == normalize_text("".join(pieces))


@pytest.mark.parametrize(
    ("original", "name"),
    [
        ("  One\r\n\ttwo  \r\n\r\nAlice Stone  \r\nend", "Alice Stone"),
        ("tab\t\t \nRene\u0301 Dupont \r\nx", "Rene\u0301 Dupont"),
        ("crew: 👩\u200d🚀 \r\n 李明出生于北京。\r\n", "李明"),
        ("الكاتب نجيب محفوظ  \r\nوُلد", "نجيب محفوظ"),
        ("one\rtwo \rthree Bob", "Bob"),
    ],
)
def test_a_span_maps_to_exactly_its_words(original: str, name: str) -> None:
    normal = normalize_text(original)
    start = normal.index(name)
    span = OffsetMap(original).span(Span(start, start + len(name)))
    assert original[span.start : span.end] == name


def test_a_span_over_a_line_end_covers_what_was_taken_out() -> None:
    original = "Alice  \r\nStone"
    assert OffsetMap(original).span(Span(0, len("Alice\nStone"))) == Span(0, len(original))


def test_an_offset_outside_the_text_is_refused() -> None:
    with pytest.raises(IndexError, match="outside"):
        OffsetMap("abc").offset(4)


def test_a_plain_document_is_its_own_source() -> None:
    document = Document(" x Alice")
    assert document.places(Span(2, 7)) == (SourcePlace("text", 0, 3, 8),)


def test_a_megabyte_of_blanks_maps_in_linear_time() -> None:
    text = "a" + " " * 1_000_000 + "b"
    assert OffsetMap(text).length == len(text)
