"""Where sentences end, in several scripts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.extraction.text.chunking import (
    Chunk,
    ChunkSettings,
    chunk_text,
    find_sentence,
    most_sentences,
    sentence_spans,
)


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Stone met Ms. Miller. They left.", 2),
        ("J. R. R. Tolkien wrote it. He was old.", 2),
        ("It cost 3.5 million. Nobody paid!", 2),
        ("See e.g. Paris. Really?", 2),
        ("On 5 Jan. 1999 it rained. Then not.", 2),
        ("Roger (c. 1245 - d. 1305) sailed. He won.", 2),
        ("「はい。」と言った。東京。", 3),
        ("他出生于北京。她在上海！真的？", 3),
        ("ولد في القاهرة. هل تعلم؟ نعم.", 3),
        ("यह एक वाक्य है। यह दूसरा है।", 2),
        ("He said “Stop.” Then he left.", 2),
        ("- one item\n- another item", 2),
        ("no end at all", 1),
        ("", 0),
    ],
)
def test_sentences_are_counted(text: str, count: int) -> None:
    assert len(split(text)) == count


def test_a_paragraph_ends_a_sentence_without_a_stop() -> None:
    assert split("A heading\n\nAnd text.") == ["A heading", "And text."]


def test_a_digest_depends_on_the_text_alone() -> None:
    assert Chunk(0, 0, 3, "abc").digest == Chunk(7, 90, 93, "abc").digest


def test_the_sentence_of_an_offset_is_found() -> None:
    sentences = tuple(sentence_spans("One. Two. Three."))
    assert [find_sentence(sentences, at) for at in (0, 3, 5, 9, 15)] == [0, 0, 1, 1, 2]


def test_useless_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        ChunkSettings(window=100, limit=150)


def test_an_empty_text_has_no_chunk() -> None:
    assert chunk_text("") == []


@given(st.text(st.sampled_from('aB1 .!\n"”)。」-x?‼'), max_size=40), st.integers(0, 40), st.integers(1, 40))
@settings(max_examples=1500, deadline=None)
def test_a_glance_never_sees_fewer_sentences_than_there_are(text: str, start: int, length: int) -> None:
    sentences = tuple(sentence_spans(text))
    end = min(len(text), start + length)
    if start >= end or not text[start].isalnum():
        return
    found = find_sentence(sentences, end - 1) - find_sentence(sentences, start) + 1
    assert most_sentences(text, start, end) >= found
