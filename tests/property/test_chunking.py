"""Chunk boundaries are local, exact and the same for a stream; nothing but blanks is ever left out."""

import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sameas.extraction.text.chunking import ChunkSettings, chunk_text, iter_chunks
from sameas.identity.key import normalize_text

SMALL = ChunkSettings(window=80, limit=400)
WORDS = "river stone Anna moved to Paris in 1999 because the company grew Ünïcode 東京 مدينة 👩‍🚀 re\u0301sume\u0301".split()


def prose(seed: int, *, sentences: int) -> str:
    chance = random.Random(seed)
    parts = []
    for _ in range(sentences):
        words = [chance.choice(WORDS) for _ in range(chance.randint(3, 14))]
        parts.append(" ".join(words) + chance.choice([".", "!", "?", "。", "؟"]))
        parts.append(chance.choice([" ", " ", " ", "\n", "\n\n"]))
    return normalize_text("".join(parts))


@given(
    seed=st.integers(0, 10_000),
    at=st.floats(0, 1),
    removed=st.integers(0, 30),
    inserted=st.text(alphabet="ab .\n。X", max_size=40),
)
@settings(max_examples=150, deadline=None)
def test_an_edit_changes_only_the_chunks_around_it(seed: int, at: float, removed: int, inserted: str) -> None:
    text = prose(seed, sentences=120)
    place = int(at * len(text))
    edited = text[:place] + inserted + text[place + removed :]
    reach = 2 * SMALL.limit + SMALL.window + 200
    old = chunk_text(text, settings=SMALL)
    new = chunk_text(edited, settings=SMALL)
    before = [(chunk.start, chunk.digest) for chunk in old if chunk.end < place - reach]
    assert before == [(chunk.start, chunk.digest) for chunk in new[: len(before)]]
    after = [(len(text) - chunk.end, chunk.digest) for chunk in old if chunk.start > place + removed + reach]
    kept = new[len(new) - len(after) :]
    assert after == [(len(edited) - chunk.end, chunk.digest) for chunk in kept]


@given(seed=st.integers(0, 10_000), cuts=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_stream_gives_the_same_chunks_whatever_its_pieces(seed: int, cuts: int) -> None:
    chance = random.Random(cuts)
    # Lists, some of them indented farther than anybody does.
    blanks = " " * chance.choice([0, 2, 29, 30, 31, 97, 200])
    text = (prose(seed, sentences=200) + f"\n{blanks}- item\n{blanks}12. other ") * 8
    pieces = []
    place = 0
    while place < len(text):
        size = chance.choice([1, 7, 300, 5000, 70_000])
        pieces.append(text[place : place + size])
        place += size
    assert list(iter_chunks(pieces, settings=SMALL)) == chunk_text(text, settings=SMALL)


@given(text=st.text(max_size=1500) | st.text(alphabet="a. \n。é\u0301👩\u200d🚀", max_size=4000))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_chunks_are_exact_bounded_and_leave_out_only_blanks(text: str) -> None:
    normal = normalize_text(text)
    place = 0
    for number, chunk in enumerate(chunk_text(normal, settings=SMALL)):
        assert chunk.index == number
        assert normal[chunk.start : chunk.end] == chunk.text
        assert 0 < len(chunk.text) <= SMALL.limit
        assert not normal[place : chunk.start].strip()
        place = chunk.end
    assert not normal[place:].strip()


@given(seed=st.integers(0, 10_000), sentences=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_no_chunk_at_an_end_is_a_scrap(seed: int, sentences: int) -> None:
    text = prose(seed, sentences=sentences)
    chunks = chunk_text(text, settings=ChunkSettings(window=80, limit=10_000))
    if len(text) < 2 * 80:
        assert len(chunks) == 1
    # Blanks at a boundary belong to nobody.
    assert len(chunks) == 1 or min(len(chunks[0].text), len(chunks[-1].text)) >= 80 - 2


@pytest.mark.parametrize(
    "text", ["a" * 5000, "a. " * 3000, "。" * 3000, "\U0001f469\u200d\U0001f680" * 900, "." * 5000]
)
def test_text_without_rhythm_is_still_bounded(text: str) -> None:
    chunks = chunk_text(normalize_text(text), settings=SMALL)
    assert max(len(chunk.text) for chunk in chunks) <= SMALL.limit
    assert "".join(chunk.text for chunk in chunks).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("sign", [".", "。", "!)", "\n", "a\n", "\x0b", "“"])
def test_a_long_run_of_one_sign_takes_linear_time(sign: str) -> None:
    text = normalize_text("x" + sign * 300_000 + "x")
    began = time.process_time()
    chunk_text(text)
    assert time.process_time() - began < 5
