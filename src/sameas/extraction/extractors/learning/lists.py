"""Lists in a sentence: `A, B and C` share what is said of one of them.

Rule: a list is closed by a conjunction before its last member, its members look alike, and it either opens its
sentence or ends where a phrase may end; `Acme makes cars and Globex makes tea` is no list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sameas.extraction.extractors.learning.spans import (
    KNOWN,
    NAME,
    PHRASE,
    PLAIN,
    QUOTED,
    WordSpan,
    is_single,
    sentence_starts,
)
from sameas.extraction.extractors.learning.tokens import Tokens, word_set

_CLOSING = word_set("and or & und oder et ou y o e och 和 及 と")
_ARTICLES = word_set("the a an der die das la le les el los by in of")
_ENDS = word_set(
    ", . ; : ! ? ( ) ] \" \u201d \u2019 ' » 。 in on at for from by of to with as and or since after before during "
    "until while who which when where today together respectively"
)
_SURE = NAME | QUOTED | KNOWN | PLAIN
_LONGEST = 12

Members = tuple[WordSpan, ...]


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of a sentence, by the place of each member."""

    found: dict[tuple[int, int], Members]

    def beside(self, first: int, last: int) -> Members:
        """The other members of the list that these tokens are one of."""
        return tuple(span for span in self.found.get((first, last), ()) if (span.first, span.last) != (first, last))

    def has_both(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two places are members of one list."""
        return one in self.found and any((span.first, span.last) == other for span in self.found[one])


def find_lists(tokens: Tokens, spans: Sequence[WordSpan]) -> Lists:
    """The lists of names and plain things among the candidates; numbers and dates have none."""
    if _CLOSING.isdisjoint(tokens.lower):
        return Lists({})
    single = [
        span
        for span in spans
        if span.kinds & (_SURE | PHRASE)
        and span.form is None
        and span.value is None
        and is_single(tokens, span.first, span.last)
    ]
    starting: dict[int, WordSpan] = {}
    ending: dict[int, WordSpan] = {}
    # A phrase may be more than a name: it counts where nothing surer is there.
    for span in sorted(single, key=lambda span: (bool(span.kinds & _SURE), span.last - span.first)):
        starting[span.first] = span
        ending[span.last] = span
    begins = sentence_starts(tokens)
    found: dict[tuple[int, int], Members] = {}
    for at, said in enumerate(tokens.lower):
        if said in _CLOSING:
            members = _around(tokens, at, begins, starting, ending)
            if members and _is_closed(tokens, members, begins):
                found.update(((span.first, span.last), members) for span in members)
    return Lists(found)


def _around(
    tokens: Tokens, at: int, begins: frozenset[int], starting: dict[int, WordSpan], ending: dict[int, WordSpan]
) -> Members:
    """The members on both sides of a conjunction."""
    lower = tokens.lower
    right = at + 1
    while right < len(lower) and right not in starting and lower[right] in _ARTICLES:
        right += 1
    last = starting.get(right)
    left = at - 1 if at and lower[at - 1] == "," else at
    members: list[WordSpan] = []
    while last is not None and len(members) < _LONGEST:
        member = ending.get(left)
        if member is None or not _is_alike(tokens, member, last, begins):
            break
        members.insert(0, member)
        left = member.first
        while left > 0 and lower[left - 1] in _ARTICLES:
            left -= 1
        if left == 0 or lower[left - 1] not in (",", "、"):
            break
        left -= 1
    return (*members, last) if last is not None and members else ()


def _is_alike(tokens: Tokens, one: WordSpan, other: WordSpan, begins: frozenset[int]) -> bool:
    """Whether both have a capital or neither has; that of a sentence's first word says nothing."""
    if one.first == 0 or one.first in begins:
        return True
    return tokens.words[one.first][0].islower() == tokens.words[other.first][0].islower()


def _is_closed(tokens: Tokens, members: Members, begins: frozenset[int]) -> bool:
    end, start = members[-1].last, members[0].first
    if end == len(tokens) or tokens.lower[end] in _ENDS:
        return True
    while start > 0 and tokens.lower[start - 1] in _ARTICLES:
        start -= 1
    return start == 0 or start in begins
