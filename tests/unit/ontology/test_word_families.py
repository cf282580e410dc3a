"""Words that mean one thing and do not look alike."""

from collections import Counter

import pytest

from sameas.ontology import word_families
from sameas.ontology.word_families import ROOT, root_of


def test_no_word_is_at_home_in_two_families() -> None:
    homes = Counter(root for words in word_families._FAMILIES for root in {word[:ROOT] for word in words.split()})
    assert [root for root, count in homes.items() if count > 1] == []


def test_every_family_joins_roots_that_are_not_the_same_already() -> None:
    for words in word_families._FAMILIES:
        assert len({word[:ROOT] for word in words.split()}) > 1, words


@pytest.mark.parametrize(
    ("said", "called"),
    [("born", "birth"), ("wrote", "author"), ("employed", "work"), ("film", "movie"), ("founded", "founder")],
)
def test_what_texts_say_and_what_terms_are_called_meet(said: str, called: str) -> None:
    assert root_of(said) == root_of(called)


@pytest.mark.parametrize(("one", "other"), [("start", "star"), ("end", "member"), ("sport", "spouse")])
def test_words_that_only_look_alike_do_not(one: str, other: str) -> None:
    assert root_of(one) != root_of(other)
