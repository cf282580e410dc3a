"""Places in a sentence that lie in one another: what holds a place, what lies in it, and the outermost of them.

A place is the token where it begins and the one behind its end. Each question is answered from what was summed up
once: a sentence has many candidates, and each of them is asked about.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

Place = tuple[int, int]


class Nesting:
    """The places of one kind in a sentence of so many tokens, ordered."""

    __slots__ = ("_reach",)

    def __init__(self, places: Sequence[Place], count: int) -> None:
        farthest = [0] * (count + 1)
        for first, last in places:
            farthest[first + 1] = max(last, farthest[first + 1])
        # How far those reach that begin before a token.
        self._reach = list(accumulate(farthest, max))

    def holds(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens."""
        return self._reach[first + 1] >= last

    def holds_from_before(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and begins before them."""
        return self._reach[first] >= last

    def holds_beyond(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and ends behind them."""
        return self._reach[first + 1] > last

    def holds_more(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and others."""
        return self._reach[first] >= last or self._reach[first + 1] > last


class Names(Nesting):
    """The names of a sentence, and which of them are the outermost."""

    __slots__ = ("_ends", "_nearest", "_starts", "outermost")

    def __init__(self, places: Sequence[Place], count: int) -> None:
        super().__init__(places, count)
        nearest = [count + 1] * (count + 1)
        for first, last in places:
            nearest[first] = min(last, nearest[first])
        # Where the first of those ends that begin at a token or behind it.
        self._nearest = list(accumulate(reversed(nearest), min))[::-1]
        self.outermost = [place for place in places if not self.holds_more(*place)]
        # None of these holds another: their ends are ordered as their starts are.
        self._starts = [first for first, _ in self.outermost]
        self._ends = [last for _, last in self.outermost]

    def is_around(self, first: int, last: int) -> bool:
        """Whether these tokens hold a name and others."""
        return self._nearest[first] < last or self._nearest[first + 1] <= last

    def between(self, first: int, last: int) -> int:
        """How many of the outermost names these tokens hold."""
        return max(0, bisect_right(self._ends, last) - bisect_left(self._starts, first))
