"""Where the class of an object decides which narrower property is meant: a pizza's topping is no mere ingredient.

Rule: a property gives way to one below it whose range is narrower, if what the object most likely is lies in that range
and the subject may have it. The words go first: where they name the wider property itself, it stays.
"""

from collections.abc import Collection, Sequence

from sameas.extraction.extractors.reader.ends import ReadEnds
from sameas.extraction.extractors.reader.rivals import Fact, name_of
from sameas.extraction.extractors.reader.weighing import ChunkSigns
from sameas.ontology.index import OntologyIndex


class Narrowing:
    """Narrows properties for one ontology."""

    def __init__(self, index: OntologyIndex, ends: ReadEnds) -> None:
        self._index, self._ends = index, ends
        self._below: dict[str, tuple[str, ...]] = {}

    def narrowed(self, facts: Sequence[Fact], asked: Collection[str], signs: ChunkSigns) -> list[Fact]:
        """The facts, each by the narrowest property that the class of its object decides for."""
        best: dict[tuple[object, ...], Fact] = {}
        for fact in facts:
            if fact.object is not None and (below := self._for(fact, asked)) and not signs.is_named(fact):
                fact = fact._replace(property=below)
            key = (fact.property, fact.subject.name, name_of(fact.object), fact.truth)
            if key not in best or fact.score > best[key].score:
                best[key] = fact
        return list(best.values())

    def _for(self, fact: Fact, asked: Collection[str]) -> str:
        fitting = [
            iri
            for iri in self._narrower(fact.property)
            if iri in asked
            and fact.object is not None
            and self._ends.is_likely(fact.object, self._index.expected_range(iri))
            and (not self._index.domain(iri) or self._ends.is_likely(fact.subject, self._index.domain(iri)))
        ]
        return fitting[0] if len(fitting) == 1 else ""

    def _narrower(self, iri: str) -> tuple[str, ...]:
        """The properties below one whose ranges are narrower than its own."""
        known = self._below.get(iri)
        if known is None:
            index = self._index
            own = index.expected_range(iri)
            known = self._below[iri] = tuple(
                other
                for other in sorted(index.properties)
                if other != iri
                and iri in index.property_tree.above(other)
                and (reach := index.expected_range(other))
                and reach != own
                and not any(index.is_datatype(name) for group in reach for name in group)
            )
        return known
