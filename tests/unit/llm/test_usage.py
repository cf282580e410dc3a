"""Usage as a server reports it: believed where it can be true, replaced where it cannot."""

import pytest

from sameas.llm.models import Usage
from sameas.llm.usage import believable, count_input, own_usage
from tests.unit.llm.asks import an_ask

TEXT = '{"entities":["Acme","Berlin"]}'


def count(text):
    return -(-len(text) // 4)


def judged(input_tokens, output_tokens, *, ask=None, text=TEXT):
    return believable(ask or an_ask(), text, input_tokens=input_tokens, output_tokens=output_tokens, count=count)


@pytest.mark.parametrize("reported", [(20, 8), (60, 12), (9, 4), (700, 100)])
def test_a_count_that_can_be_true_is_believed(reported):
    assert judged(*reported) == Usage(*reported, reported=True)


@pytest.mark.parametrize(
    "reported",
    [(0, 0), (20, 0), (0, 8), (-5, 8), (20, -1), (10**9, 8), (20, 10**9), (20, 100 + 17)],
    ids=["nothing", "no output", "no input", "negative in", "negative out", "huge in", "huge out", "over the limit"],
)
def test_a_count_that_cannot_be_is_replaced_by_our_own(reported):
    assert judged(*reported) == own_usage(an_ask(), TEXT, count=count)
    assert not judged(*reported).reported


def test_a_long_text_cannot_have_come_in_one_token():
    long = "word " * 1_000
    assert not judged(1, 8, ask=an_ask(long)).reported
    assert judged(1_100, 8, ask=an_ask(long)).reported


def test_a_long_reply_cannot_have_come_out_as_one_token():
    assert not judged(20, 1, text=TEXT * 20).reported


def test_a_server_that_overlooks_the_limit_is_believed_when_the_text_is_there():
    long = TEXT * 100
    assert judged(20, count(long), text=long).reported


def test_a_refusal_without_words_may_have_no_output():
    assert judged(20, 0, text="").reported


def test_the_schema_is_part_of_what_goes_in():
    bare = an_ask(schema={})
    assert count_input(an_ask(), count=count) > count_input(bare, count=count)
