"""What is said of one member of a list is said of the others: `A bought B, C and D` are three facts.

Whether it is so is learned for each property and each of its ends: many examples state one fact of several.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple
from sameas.extraction.extractors.learning.examples import Triple
from sameas.extraction.extractors.learning.lists import Lists
from sameas.extraction.extractors.learning.spans import WordSpan
from sameas.extraction.extractors.learning.tokens import Tokens, fold

SUBJECT, OBJECT = "subject", "object"
_MOSTLY = 0.5
# Said of a member because it is said of its neighbour.
_CARRIED = 0.9

Carried = frozenset[tuple[str, str]]


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
