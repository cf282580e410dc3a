"""Places that lie in one another answer as the plain reading of each question does."""

from itertools import combinations
from random import Random

import pytest

from sameas.extraction.extractors.learning.object_features import Names

_COUNT = 7
_ALL = list(combinations(range(_COUNT + 1), 2))


@pytest.mark.parametrize("seed", range(20))
def test_each_question_is_answered_as_by_looking_at_all_places(seed: int) -> None:
    chosen = Random(seed)
    places = sorted(chosen.sample(_ALL, chosen.randrange(9)))
    names = Names(places, _COUNT)
    outermost = [x for x in places if not any(y != x and y[0] <= x[0] and x[1] <= y[1] for y in places)]
    assert names.outermost == outermost
    for a, b in _ALL:
        assert names.holds(a, b) == any(x <= a and b <= y for x, y in places)
        assert names.holds_from_before(a, b) == any(x < a and b <= y for x, y in places)
        assert names.holds_beyond(a, b) == any(x <= a and b < y for x, y in places)
        assert names.holds_more(a, b) == any(x <= a and b <= y and (x, y) != (a, b) for x, y in places)
        assert names.is_around(a, b) == any(a <= x and y <= b and (x, y) != (a, b) for x, y in places)
        assert names.between(a, b) == sum(a <= x and y <= b for x, y in outermost)


def test_a_sentence_without_names_has_none_anywhere() -> None:
    names = Names([], 2)
    assert names.outermost == []
    assert not names.holds(0, 2)
    assert not names.is_around(0, 2)
    assert names.between(0, 2) == 0
