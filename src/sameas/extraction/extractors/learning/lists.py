"""Lists in a sentence: `A, B and C` share what is said of one of them, so `A bought B, C and D` are three facts.

Rule: a list is closed by a conjunction before its last member, its members look alike, and it either opens its sentence
or ends where a phrase may end; `Acme makes cars and Globex makes tea` is no list. Whether what is said of one member is
said of the others is learned for each property and each of its ends: many examples state one fact of several.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple
from sameas.extraction.extractors.learning.examples import Triple
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
from sameas.extraction.extractors.learning.tokens import Tokens, fold, word_set

_CLOSING = word_set("and or & und oder et ou y o e och 和 及 と")
_ARTICLES = word_set("the a an der die das la le les el los by in of")
_ENDS = word_set(
    ", . ; : ! ? ( ) ] \" \u201d \u2019 ' » 。 in on at for from by of to with as and or since after before during "
    "until while who which when where today together respectively"
)
_SURE = NAME | QUOTED | KNOWN | PLAIN
_LONGEST = 12

Members = tuple[WordSpan, ...]

SUBJECT, OBJECT = "subject", "object"
_MOSTLY = 0.5
# Said of a member because it is said of its neighbour.
_CARRIED = 0.9

Carried = frozenset[tuple[str, str]]


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


class ListCounter:
    """Counts over the examples how often what is said of one member is said of all."""

    def __init__(self) -> None:
        self._all: Counter[tuple[str, str]] = Counter()
        self._shared: Counter[tuple[str, str]] = Counter()
        self._texts = self._full = 0

    def note(self, triples: Sequence[Triple], lists: Lists, tokens: Tokens) -> None:
        """Note the facts of an example whose text has these lists."""
        self._texts += 1
        self._full += len(triples) > 1
        for triple in triples if lists.found else ():
            self._note(triple, triples, lists, tokens)

    def _note(self, triple: Triple, triples: Sequence[Triple], lists: Lists, tokens: Tokens) -> None:
        objects, subjects = set(), set()
        for other in triples:
            if other.property == triple.property:
                if other.subject == triple.subject:
                    objects.add(fold(other.object))
                if other.object == triple.object:
                    subjects.add(fold(other.subject))
        for end, value, said in ((OBJECT, triple.object, objects), (SUBJECT, triple.subject, subjects)):
            wanted = fold(value)
            for (first, last), members in lists.found.items():
                if fold(tokens.slice(first, last)) == wanted:
                    key = (triple.property, end)
                    self._all[key] += 1
                    self._shared[key] += all(fold(tokens.slice(span.first, span.last)) in said for span in members)
                    break

    def carried(self, properties: Iterable[str]) -> Carried:
        """The ends of properties that lists share. One that no example has in a list does as the others do, and where
        none has any, it depends on whether the examples state several facts of a text.
        """
        found = set()
        for end in (OBJECT, SUBJECT):
            seen = sum(count for key, count in self._all.items() if key[1] == end)
            shared = sum(count for key, count in self._shared.items() if key[1] == end)
            usual = shared >= _MOSTLY * seen if seen else self._full >= _MOSTLY * self._texts
            for name in properties:
                count = self._all[(name, end)]
                if self._shared[(name, end)] >= _MOSTLY * count if count else usual:
                    found.add((name, end))
        return frozenset(found)


def carry(
    facts: Sequence[LearnedTriple],
    lists: Lists,
    carried: Carried,
    *,
    tokens: Tokens,
    mention: Callable[[WordSpan, str | None], LearnedMention],
) -> list[LearnedTriple]:
    """The facts, and those that are true of the other members of a list as well.

    `mention` makes a member an object of a property, or a subject where none is given.
    """

    def place(said: LearnedMention) -> tuple[int, int]:
        return bisect_left(tokens.starts, said.start), bisect_right(tokens.ends, said.end)

    def others(end: str, fact: LearnedTriple, said: LearnedMention) -> tuple[WordSpan, ...]:
        return lists.beside(*place(said)) if (fact.property, end) in carried else ()

    made = list(facts)
    known = {(fact.property, fold(fact.subject.value), fold(fact.object.value)) for fact in facts}
    for fact in facts:
        # What holds between two members of a list does not hold between any two.
        if lists.has_both(place(fact.subject), place(fact.object)):
            continue
        objects = [fact.object, *(mention(span, fact.property) for span in others(OBJECT, fact, fact.object))]
        subjects = [fact.subject, *(mention(span, None) for span in others(SUBJECT, fact, fact.subject))]
        for subject, value in product(subjects, objects):
            key = (fact.property, fold(subject.value), fold(value.value))
            if key not in known and not subject.overlaps(value):
                known.add(key)
                made.append(LearnedTriple(fact.property, subject, value, fact.confidence * _CARRIED))
    return made
