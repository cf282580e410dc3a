"""Which facts of a chunk stand beside each other: the surest first, and none that one of those rules out.

Rule: what is sure says what a thing is for all that is said of it. A number is of one fact, two ends are joined by one
property, the narrowest that is likely. What the text takes back rules out nothing; the guard refuses it with a reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sameas.extraction.extractors.reader.ends import BOOLEAN, Place, ReadEnds
from sameas.extraction.extractors.reader.rivals import Fact
from sameas.extraction.graph.guard import Guard
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.graph.stance import clause_around
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex

# What is so many times as sure rules another out: of another subject, by another property between the same ends, of the
# same number, and of another number of the same property.
_SUBJECT, _PROPERTY, _VALUE, _NUMBER = 2.0, 1.0, 1.0, 1.0
_NARROW, _NARROW_FROM = 0.5, 0.35
_MANY_NUMBERS = frozenset(("date", "dateTime", "gYear", "gYearMonth", "string", "boolean"))


BothSaid = Callable[[str, str, Mention, Mention], bool]
"""Whether the words say two properties in one breath of a subject and an object."""


class Offer(NamedTuple):
    """A fact with its ends, and how sure it is."""

    confidence: float
    fact: Fact
    subject: Mention
    target: Mention


class Joining:
    """Joins facts for one ontology."""

    def __init__(self, index: OntologyIndex, ends: ReadEnds) -> None:
        self._index, self._ends = index, ends
        self._guard = Guard(index)

    def claims(self, chunk: Chunk, offers: Sequence[Offer], *, are_both_said: BothSaid) -> list[Claim]:
        """What is stated, and what the guard will refuse; `are_both_said` knows `its founder and chief executive`."""
        ordered = sorted(
            self._narrowest(offers),
            key=lambda one: (-one.confidence, one.fact.property, one.subject.order, one.target.order),
        )
        known: dict[str, Mention] = {}
        places: dict[str, Place] = {}
        taken: list[Mention] = []
        single: dict[tuple[str, str], str] = {}
        surest: dict[tuple[object, ...], Claim] = {}
        made: list[Claim] = []
        refused: list[Claim] = []
        for confidence, fact, *ends in ordered:
            both = []
            for end in ends:
                sure = msgspec.structs.replace(end, confidence=max(end.confidence, confidence))
                both.append(self._ends.together(known.get(key_of(end)), sure))
            subject, target = both
            if subject is None or target is None or any(_cuts(end, other) for end in both if end for other in taken):
                continue
            claim = _claim(chunk, fact.property, subject, target, confidence)
            if self._guard.stance(chunk, claim):
                refused.append(claim)
                continue
            beside = [(surest.setdefault(key, claim), most) for key, most in _beside(fact.property, subject, target)]
            if any(
                other.confidence > most * confidence
                and not are_both_said(other.predicate, fact.property, subject, target)
                for other, most in beside
            ):
                continue
            if self._index.properties[fact.property].functional:
                value = target.value or key_of(target)
                if single.setdefault((key_of(subject), fact.property), value) != value:
                    continue
            for end, place in ((subject, fact.subject), (target, fact.object)):
                taken.append(end)
                if end.kind != "literal" and place is not None:
                    known[key_of(end)] = end
                    places.setdefault(key_of(end), place)
            made.append(claim)
        types = {key: self._ends.guessed(end, places[key]).types for key, end in known.items()}
        made += (
            one for one in refused if not any(_cuts(end, other) for end in (one.subject, one.object) for other in taken)
        )
        return [
            msgspec.structs.replace(claim, subject=typed(claim.subject, types), object=typed(claim.object, types))
            for claim in made
        ]

    def one_way(self, claims: Iterable[Claim]) -> list[Claim]:
        """Of the same said the other way round, or by the inverse, the surer."""
        kept: list[Claim] = []
        for claim in sorted(claims, key=lambda one: -one.confidence):
            known = self._index.properties[claim.predicate]
            twins = {claim.predicate, *known.inverses}
            if not any(
                (one.predicate in twins or claim.predicate in self._index.properties[one.predicate].inverses)
                and key_of(one.subject) == key_of(claim.object)
                and key_of(one.object) == key_of(claim.subject)
                for one in kept
            ):
                kept.append(claim)
        return kept

    def _narrowest(self, offers: Sequence[Offer]) -> Iterator[Offer]:
        """Without what a narrower property says nearly as surely between the same ends."""
        above = self._index.property_tree.above
        for offer in offers:
            if not any(
                one.fact.property != offer.fact.property
                and one.confidence >= max(_NARROW_FROM, _NARROW * offer.confidence)
                and key_of(one.subject) == key_of(offer.subject)
                and key_of(one.target) == key_of(offer.target)
                and offer.fact.property in above(one.fact.property)
                for one in offers
            ):
                yield offer


def _beside(iri: str, subject: Mention, target: Mention) -> Iterator[tuple[tuple[object, ...], float]]:
    """What a claim is the only one of, and by how much another must be surer to rule it out."""
    yield (iri, "", key_of(target), target.value), _SUBJECT
    yield (key_of(subject), key_of(target), target.value), _PROPERTY
    if target.kind == "literal" and target.datatype.rpartition("#")[2] not in _MANY_NUMBERS:
        yield (target.start, target.end), _VALUE
        yield (iri, key_of(subject), "number"), _NUMBER


def _claim(chunk: Chunk, iri: str, subject: Mention, target: Mention, confidence: float) -> Claim:
    low, high = min(subject.start, target.start), max(subject.end, target.end)
    first, last = (find_sentence(chunk.sentences, at) for at in (low, high - 1))
    evidence = (
        clause_around(chunk.text, chunk.sentences[first], subject.span, target.span)
        if first == last
        else Span(chunk.sentences[first].start, chunk.sentences[last].end)
    )
    return Claim(subject, iri, target, evidence, confidence, "model", last - first + 1)


def key_of(end: Mention) -> str:
    """What mentions of one spelling share."""
    return end.text.casefold()


def typed(end: Mention, types: Mapping[str, tuple[str, ...]]) -> Mention:
    """A thing with the classes that are known of its name."""
    found = types.get(key_of(end))
    return end if end.kind == "literal" or found is None else msgspec.structs.replace(end, types=found)


def overlap(one: Mention, other: Mention) -> bool:
    return one.start < other.end and other.start < one.end


def _cuts(one: Mention, other: Mention) -> bool:
    """Whether two names share words and are not the same."""
    if BOOLEAN in (one.datatype, other.datatype) or one.span == other.span:
        return False
    return overlap(one, other)
