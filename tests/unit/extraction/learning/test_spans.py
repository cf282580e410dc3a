"""Candidates cover names whole and in part, quoted strings, values, and what the sentence opens with."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.extractors.learning.spans import DATE, QUANTITY, QUOTED, find_spans
from sameas.extraction.extractors.learning.tokens import tokenize


def _texts(sentence: str) -> set[str]:
    tokens = tokenize(sentence)
    return {span.form or tokens.slice(span.first, span.last) for span in find_spans(tokens)}


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("It won the Academy Award for Best Actress in 1990.", "Academy Award for Best Actress"),
        ("General Lester L. Lyles is a former officer.", "Lester L. Lyles"),
        ("Boris Grigorevich Kolker is a teacher.", "Boris Kolker"),
        ("The northern fur seal is the largest member.", "northern fur seal"),
        ("The genus Panthera pardus was named.", "Panthera pardus"),
        ("Songs by Ludwig van Beethoven were played.", "Ludwig van Beethoven"),
        ("Urusei Yatsura 2: Beautiful Dreamer is a film.", "Urusei Yatsura 2: Beautiful Dreamer"),
        ("People 's Action Party won.", "People 's Action Party"),
        ("It was released. The Hollow Crown was next.", "The Hollow Crown"),
        ("He was president of Chile.", "president of Chile"),
        ("They saw Who Killed the Electric Car? at noon.", "Who Killed the Electric Car?"),
    ],
)
def test_names_of_many_shapes_are_candidates(sentence: str, name: str) -> None:
    assert name in _texts(sentence)


@pytest.mark.parametrize(
    "marks", ['""', "“”", "„“", "„”", "‘’", "''", "``''", "«»", "»«", "‹›", "›‹", "””", "‚‘", "「」", "『』", "《》"]
)
def test_quoted_strings_are_candidates_whatever_the_marks(marks: str) -> None:
    half = len(marks) // 2
    tokens = tokenize(f"the motto {marks[:half]}dare to ask{marks[half:]}.")
    quoted = [tokens.slice(span.first, span.last) for span in find_spans(tokens) if span.kinds & QUOTED]
    assert quoted == ["dare to ask"]


def test_the_day_and_the_length_are_read_as_values() -> None:
    tokens = tokenize("On 4 July 1971 it was 2,777 metres long.")
    found = {tokens.slice(span.first, span.last): span.kinds for span in find_spans(tokens) if span.value is not None}
    assert found["4 July 1971"] & DATE
    assert found["2,777"] & QUANTITY
    assert found["2,777 metres"] & QUANTITY


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("王小明1970年5月4日出生于北京。", {"王小明", "1970年5月4日", "北京"}),
        ("ゲーテはフランクフルトで生まれた。", {"ゲーテ", "フランクフルト"}),
        ("ولد أحمد في القاهرة.", {"أحمد", "القاهرة"}),
        ("מרים כהן נולדה בחיפה.", {"מרים כהן"}),
        ("राम दिल्ली में रहता है।", {"राम", "दिल्ली"}),
    ],
)
def test_a_script_without_capitals_has_candidates(sentence: str, names: set[str]) -> None:
    assert names <= _texts(sentence)


def test_a_name_in_katakana_is_not_cut() -> None:
    assert not {"ゲー", "ーテ", "フランク"} & _texts("ゲーテはフランクフルトで生まれた。")


@given(st.text(max_size=300))
def test_any_text_gives_spans_inside_it(text: str) -> None:
    tokens = tokenize(text)
    for span in find_spans(tokens):
        assert 0 <= span.first < span.last <= len(tokens)
        assert tokens.slice(span.first, span.last) in text
