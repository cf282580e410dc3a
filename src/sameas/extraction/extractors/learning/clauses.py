"""Where the clauses of a text end, and what a subject in one says about an object in another.

A text of several statements often changes its subject: the name that opens the object's own clause is the likely
one, and where a pronoun opens it, the name that opened the clause before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sameas.extraction.extractors.learning.hashing import lead, salt, slot, word
from sameas.extraction.extractors.learning.lists import Lists
from sameas.extraction.extractors.learning.spans import WordSpan, sentence_starts
from sameas.extraction.extractors.learning.tokens import Tokens, word_set

_JOINING = word_set("and while whereas but und et y")
_BREAKS = _JOINING | {";"}
# What may follow a name in a list, in an address or before its own description: none of these is a verb.
_NO_VERB = word_set("and or of the who which whose where und oder et y & s aged near , . ; : ( ) \" \u201d \u2019 '")
_PRONOUNS = word_set("it he she they its his her their this these er sie es il elle")
_SUBJECTS = _PRONOUNS | {"the"}
_FARTHEST = 3
_GAP, _GAP_OPENING, _GAP_FIRST, _ALL = (slot(f"c.{name}") for name in ("gap", "gapo", "gapf", "all"))
_LISTED = salt("c.list")


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clause that each token is in, how each clause opens, and the first name of each, by its token."""

    number: tuple[int, ...]
    openings: tuple[int, ...]
    firsts: tuple[int, ...]
    lists: Lists


def find_clauses(tokens: Tokens, names: list[tuple[int, int]], lists: Lists | None = None) -> Clauses:
    """The clauses of a text whose outermost names are given, from left to right, and its lists."""
    starts = dict(names)
    begins = sentence_starts(tokens)
    count = len(tokens)
    number: list[int] = []
    opens = [0]
    for at in range(count):
        near = at in starts or tokens.lower[at - 1] in _BREAKS
        if at and (at in begins or (near and _begins(tokens, at, opens[-1], starts))):
            opens.append(at)
        number.append(len(opens) - 1)
    if not count:
        return Clauses((), (), (), Lists({}))
    openings = tuple(_opening(tokens, at, starts) for at in opens)
    bounds = [*opens[1:], count]
    firsts = tuple(
        next((first for first, _ in names if begin <= first < end), -1)
        for begin, end in zip(opens, bounds, strict=True)
    )
    return Clauses(tuple(number), openings, firsts, lists or Lists({}))


def _begins(tokens: Tokens, at: int, opened: int, names: Mapping[int, int]) -> bool:
    before, here = tokens.lower[at - 1], tokens.lower[at]
    if before == ";" or (before in _JOINING and here in _PRONOUNS):
        return True
    if at not in names:
        return False
    if before in _JOINING and tokens.lower[at - 2 : at - 1] == (",",):
        # ", and Acme makes": a joined clause with a subject of its own.
        return True
    return (before == "," or before in _JOINING) and _acts(tokens, names[at]) and _is_whole(tokens, opened, at, names)


def _acts(tokens: Tokens, end: int) -> bool:
    """Whether a plain word that can be a verb, or a number, stands behind a name: `Acme makes`, `Acme 12 million`."""
    follower = tokens.words[end : end + 1]
    return bool(follower) and (not follower[0][0].isalpha() or follower[0].islower()) and follower[0] not in _NO_VERB


def _is_whole(tokens: Tokens, opened: int, end: int, names: Mapping[int, int]) -> bool:
    """Whether a clause has a subject that opens it and something to say of it: neither `On Monday` nor `Ann and`."""
    if tokens.lower[opened] in _JOINING:
        opened += 1
    verb = names.get(opened, opened + 1 if tokens.lower[opened] in _SUBJECTS else end)
    return any(
        said.islower() and said not in _NO_VERB and said not in _JOINING for said in tokens.words[verb : end - 1]
    )


def _opening(tokens: Tokens, at: int, names: Mapping[int, int]) -> int:
    first = tokens.lower[at]
    if first in _PRONOUNS:
        return word("pronoun")
    if at in names:
        return word("name")
    return word("the") if first == "the" else word("other")


def clause_features(clauses: Clauses, subject: WordSpan, target: WordSpan) -> tuple[int, ...]:
    """Features of how far the subject's clause is from the object's, and how each of them opens."""
    there, here = clauses.number[subject.first], clauses.number[target.first]
    gap = max(-_FARTHEST, min(_FARTHEST, here - there)) + _FARTHEST
    first = subject.first <= clauses.firsts[there] < subject.last
    listed = clauses.lists.has_both((subject.first, subject.last), (target.first, target.last))
    return _features(gap, clauses.openings[here], first=first, listed=listed)


@lru_cache(maxsize=4096)
def _features(gap: int, opening: int, *, first: bool, listed: bool) -> tuple[int, ...]:
    led = lead(gap)
    return (
        *((_LISTED,) if listed else ()),
        _GAP ^ gap,
        _GAP_OPENING ^ led ^ opening,
        _GAP_FIRST ^ led ^ first,
        _ALL ^ lead(led ^ opening) ^ first,
    )
