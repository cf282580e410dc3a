"""Where the clauses of a text end, and what a subject in one says about an object in another.

A text of several statements often changes its subject: the name that opens the object's own clause is the likely
one, and where a pronoun opens it, the name that opened the clause before.
"""

from __future__ import annotations

from dataclasses import dataclass

from sameas.extraction.learning.hashing import mix, salt, word
from sameas.extraction.learning.spans import Span, sentence_starts
from sameas.extraction.learning.tokens import Tokens, word_set

_JOINING = word_set("and while whereas but und et y")
_PRONOUNS = word_set("it he she they its his her their this these er sie es il elle")
_FARTHEST = 3
_GAP, _GAP_OPENING, _GAP_FIRST, _ALL = (salt(f"c.{name}") for name in ("gap", "gapo", "gapf", "all"))


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clause that each token is in, how each clause opens, and the first name of each, by its token."""

    number: tuple[int, ...]
    openings: tuple[int, ...]
    firsts: tuple[int, ...]


def find_clauses(tokens: Tokens, names: list[tuple[int, int]]) -> Clauses:
    """The clauses of a text whose outermost names are given, from left to right."""
    starts = {first for first, _ in names}
    begins = sentence_starts(tokens)
    words, count = tokens.words, len(tokens)
    number: list[int] = []
    opens = [0]
    for at in range(count):
        if at and (at in begins or _begins(words, at, starts)):
            opens.append(at)
        number.append(len(opens) - 1)
    if not count:
        return Clauses((), (), ())
    openings = tuple(_opening(tokens, at, starts) for at in opens)
    bounds = [*opens[1:], count]
    firsts = tuple(
        next((first for first, _ in names if begin <= first < end), -1)
        for begin, end in zip(opens, bounds, strict=True)
    )
    return Clauses(tuple(number), openings, firsts)


def _begins(words: tuple[str, ...], at: int, names: set[int]) -> bool:
    before, here = words[at - 1], words[at]
    if before == ";":
        return True
    # ", and Acme makes": a joined clause with a subject of its own.
    return (
        before.lower() in _JOINING and at > 1 and (here.lower() in _PRONOUNS or (words[at - 2] == "," and at in names))
    )


def _opening(tokens: Tokens, at: int, names: set[int]) -> int:
    first = tokens.lower[at]
    if first in _PRONOUNS:
        return word("pronoun")
    if at in names:
        return word("name")
    return word("the") if first == "the" else word("other")


def clause_features(clauses: Clauses, subject: Span, target: Span) -> list[int]:
    """Features of how far the subject's clause is from the object's, and how each of them opens."""
    there, here = clauses.number[subject.first], clauses.number[target.first]
    gap = max(-_FARTHEST, min(_FARTHEST, here - there)) + _FARTHEST
    opening = clauses.openings[here]
    first = subject.first <= clauses.firsts[there] < subject.last
    return [
        mix(_GAP, gap),
        mix(_GAP_OPENING, mix(gap, opening)),
        mix(_GAP_FIRST, mix(gap, first)),
        mix(_ALL, mix(mix(gap, opening), first)),
    ]
