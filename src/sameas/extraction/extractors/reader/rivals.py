"""The facts of a chunk beside each other, as the reader scores them: which says the same better, or another thing."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sameas.extraction.extractors.reader.confidence import logit
from sameas.extraction.extractors.reader.ends import Place
from sameas.ontology.index import OntologyIndex

# A yes that is so many times as likely as a no is one whatever the words deny.
_BY_FAR = 3.0


class Fact(NamedTuple):
    """A fact between two places of a chunk; no object but a truth where the property is of yes and no."""

    property: str
    subject: Place
    object: Place | None
    truth: bool | None
    score: float
    against: float


class Rivals:
    """The scores of facts beside each other."""

    def __init__(self, facts: Sequence[Fact], index: OntologyIndex) -> None:
        self._facts = facts
        self._index = index
        self.facts = facts
        every = [place for fact in facts for place in (fact.subject, fact.object) if place is not None]
        self.places = list({(place.start, place.end): place for place in every}.values())

    def by_property(self, fact: Fact) -> float:
        return self._best(one.score for one in self._others(fact))

    def properties(self, fact: Fact) -> set[str]:
        """What else may join the same two ends."""
        return {one.property for one in self._others(fact)}

    def _others(self, fact: Fact) -> Iterator[Fact]:
        """Facts of other properties between the same ends."""
        for one in self._facts:
            if one.property != fact.property and {name_of(one.subject), name_of(one.object)} == ends_of(fact):
                yield one

    def by_subject(self, fact: Fact) -> float:
        return self._best(
            one.score
            for one in self._facts
            if one.property == fact.property
            and name_of(one.object) == name_of(fact.object)
            and name_of(one.subject) != name_of(fact.subject)
        )

    def by_object(self, fact: Fact) -> float:
        return self._best(
            one.score
            for one in self._facts
            if one.property == fact.property
            and name_of(one.subject) == name_of(fact.subject)
            and (name_of(one.object), one.truth) != (name_of(fact.object), fact.truth)
        )

    def siblings(self, fact: Fact) -> int:
        """How many facts the property may have of the subject, this one too."""
        name = name_of(fact.subject)
        return sum(one.property == fact.property and name_of(one.subject) == name for one in self._facts)

    def is_weaker_truth(self, fact: Fact, *, is_denied: bool) -> bool:
        """Whether the opposite is likelier: by far the better score, or else what a denial in the words says."""
        if fact.object is not None:
            return False
        other = next(
            (
                one.score
                for one in self._facts
                if one.object is None
                and one.property == fact.property
                and one.truth != fact.truth
                and name_of(one.subject) == name_of(fact.subject)
            ),
            0.0,
        )
        if max(other, fact.score) >= _BY_FAR * min(other, fact.score):
            return other > fact.score
        return bool(fact.truth) == is_denied

    def is_weaker_twin(self, fact: Fact) -> bool:
        """Whether the same is said better: the inverse, the other way round, or by a narrower property."""
        index = self._index
        known = index.properties[fact.property]
        for one in self._facts:
            if one is fact or one.object is None or fact.object is None:
                continue
            same = (name_of(one.subject), name_of(one.object)) == (name_of(fact.subject), name_of(fact.object))
            turned = (name_of(one.subject), name_of(one.object)) == (name_of(fact.object), name_of(fact.subject))
            if turned and one.score > fact.score:
                other = index.properties[one.property]
                if one.property == fact.property or one.property in known.inverses or known.iri in other.inverses:
                    return True
            if (
                same
                and one.score > fact.score
                and fact.property in index.property_tree.above(one.property) - {one.property}
            ):
                return True
        return False

    def _best(self, scores: Iterable[float]) -> float:
        return logit(max(scores, default=0.0))


def name_of(place: Place | None) -> str | None:
    """What places of one spelling share."""
    return None if place is None else place.name


def ends_of(fact: Fact) -> set[str | None]:
    """The names of both ends."""
    return {name_of(fact.subject), name_of(fact.object)}
