"""Lists of names: `A, B and C` share what is said of one of them.

Rule: a list is closed by a conjunction before its last member. A name after it that has a verb of its own opens a
clause and is no member. Members joined by `or` are alternatives: which of them it is, nobody says.
"""

# ruff: noqa: RUF001 (the marks of other scripts are the data here)

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sameas.extraction.extractors.lexicon.values import STRING
from sameas.extraction.graph.model import Mention

_AND = re.compile(
    r"\s*(?:,\s*)?(?P<word>and|or|nor|&|noch|und|oder|et|ou|y|o|e|as\s+well\s+as|和|及|、)\s*(?:(?:the|by|in|der|die|das|la|le)\s+)?\Z",
    re.IGNORECASE,
)
_COMMA = re.compile(r"\s*[,、]\s*(?:(?:the|by|in)\s+)?\Z", re.IGNORECASE)
_OR = frozenset(("or", "oder", "ou", "o"))
# What may follow the last member: the end, a sign, or a small word; anything else may be the verb of a new clause.
_ENDS = re.compile(
    r"[\"”“»’]?\s*(?:[.,;:!?)\]。，；]|\Z|\s(?:in|on|at|for|from|by|of|to|with|as|and|or|since|after|before|during|until|while|who"
    r"|which|when|where|today|together|respectively|im|am|seit|und|mit|für|en|depuis|desde)\b|\([^)]*\))"
)
_LIMIT = 50


class Listed(NamedTuple):
    """The other members of a list that a name belongs to, and whether only one of them is meant."""

    others: tuple[Mention, ...] = ()
    is_choice: bool = False


def listed_after(text: str, mentions: Sequence[Mention], first: Mention) -> Listed:
    """The members that follow a name or a text; what is said of one number or date is not said of the next."""
    if first.kind == "literal" and first.datatype != STRING:
        return Listed()
    at = bisect_left(mentions, first.start, key=lambda one: one.start)
    found: list[Mention] = []
    closed, edge, is_choice = 0, first, False
    for other in mentions[at + 1 : at + 1 + _LIMIT]:
        between = text[edge.end : other.start]
        joined = _AND.fullmatch(between)
        if other.kind != first.kind or not (joined or _COMMA.fullmatch(between)):
            break
        if joined and not _ENDS.match(text, other.end):
            break
        found.append(other)
        edge = other
        if joined:
            closed = len(found)
            is_choice = is_choice or joined["word"].lower() in _OR
    return Listed(tuple(found[:closed]), is_choice)


def listed_before(text: str, mentions: Sequence[Mention], last: Mention) -> Listed:
    """The members that a name closes the list of, from the nearest on."""
    at = bisect_left(mentions, last.start, key=lambda one: one.start)
    found: list[Mention] = []
    edge, is_choice = last, False
    for other in reversed(mentions[max(0, at - _LIMIT) : at]):
        between = text[other.end : edge.start]
        joined = _AND.fullmatch(between)
        if other.kind != last.kind or not (joined or (found and _COMMA.fullmatch(between))):
            break
        found.append(other)
        edge = other
        is_choice = is_choice or (joined is not None and joined["word"].lower() in _OR)
    return Listed(tuple(found), is_choice)
