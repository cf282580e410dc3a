"""The stretches of a text that digits stand in: all of it that a search for dates and numbers needs to see.

Rule: a stretch reaches far enough to both sides for the longest month or unit, and digits nearer to each other
than that share one, so that nothing written with digits is cut.
"""

import re
from collections.abc import Iterator

from sameas.extraction.graph import Span

_REACH = 48
_DIGITS = re.compile(rf"\d+(?:\D{{1,{2 * _REACH}}}\d+)*")


def around_digits(text: str) -> Iterator[Span]:
    """The stretches from left to right; they do not overlap."""
    for match in _DIGITS.finditer(text):
        yield Span(max(0, match.start() - _REACH), min(len(text), match.end() + _REACH))
