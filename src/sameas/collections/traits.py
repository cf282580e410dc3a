"""What an ontology says that tells things apart: functional properties, keys, families of classes, disjointness."""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, TypeAlias

from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology

TypeRelation: TypeAlias = Literal["fits", "siblings", "disjoint"]


class Traits:
    """Look-ups for the resolution of one collection."""

    def __init__(self, ontology: Ontology) -> None:
        self.index = OntologyIndex(ontology)
        self._families: dict[str, str] = {}

    @cached_property
    def functional(self) -> frozenset[str]:
        """Properties with at most one value, those below one too."""
        return self._with_trait("functional")

    @cached_property
    def inverse_functional(self) -> frozenset[str]:
        """Properties whose value belongs to one thing only."""
        return self._with_trait("inverse_functional")

    @cached_property
    def keys(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Class and properties of every `owl:hasKey`."""
        return tuple((one.iri, key) for one in self.index.ontology.classes for key in one.keys)

    def _with_trait(self, trait: str) -> frozenset[str]:
        named = {one.iri for one in self.index.ontology.properties if getattr(one, trait)}
        return frozenset(iri for iri in self.index.properties if not named.isdisjoint(self._above(iri)))

    def _above(self, iri: str) -> frozenset[str]:
        return self.index.property_tree.above(iri)

    def family(self, types: Iterable[str]) -> str:
        """The class near the top that a thing's first class is below; things of two families do not share a name."""
        first = next(iter(types), "")
        if first not in self._families:
            self._families[first] = self._family(first)
        return self._families[first]

    def _family(self, iri: str) -> str:
        above = self.index.class_tree.above(iri) if iri else frozenset()
        return min(above & self._tops, default=iri)

    @cached_property
    def _tops(self) -> frozenset[str]:
        """The uppermost classes that tell something: below a single root they are its children."""
        tops = set(self.index.roots)
        seen: set[str] = set()
        while len(tops) == 1 and (children := self.index.children(next(iter(tops)))) and not tops & seen:
            seen |= tops
            tops = set(children)
        return frozenset(tops)

    def relation(self, one: Iterable[str], other: Iterable[str]) -> TypeRelation:
        """How the classes of two things go together."""
        left, right = tuple(one), tuple(other)
        if not left or not right:
            return "fits"
        if any(self.index.are_disjoint(a, b) for a in left for b in right):
            return "disjoint"
        subclass = self.index.is_subclass
        return "fits" if any(subclass(a, b) or subclass(b, a) for a in left for b in right) else "siblings"

    def disjoint_pairs(self, types: Iterable[str]) -> list[tuple[str, str]]:
        """Which of these classes exclude each other."""
        ordered = sorted(set(types))
        return [
            (one, other)
            for place, one in enumerate(ordered)
            for other in ordered[place + 1 :]
            if self.index.are_disjoint(one, other)
        ]

    def is_under(self, types: Iterable[str], broad: str) -> bool:
        return any(self.index.is_subclass(one, broad) for one in types)
