"""The part of a graph that is sure enough: a filter of the answer, never of what is kept, and no part of the key.

A relation stays from a confidence on; so does an entity, and each that a relation which stays speaks of.
"""

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import Generic, TypeVar

from sameas.extraction.extractors.embedded import FITTED, READER
from sameas.extraction.graph.model import Entity, Graph, Rejection, Relation

T = TypeVar("T")
# Where validation domains show four of five facts to be right; see docs/reader.md. The scores of others are no
# probabilities, or were filtered before.
READ_FROM = 0.5
_BY_EXTRACTOR = {READER: READ_FROM, FITTED: READ_FROM}


def least_confidence(extractor: str, asked: float | None) -> float:
    """What is asked for, or else what suits the extractor of this name."""
    return _BY_EXTRACTOR.get(extractor, 0.0) if asked is None else asked


class SureGraph:
    """A graph without what is less sure."""

    def __init__(self, whole: Graph, least: float) -> None:
        self._whole = whole
        self._least = least

    @property
    def entities(self) -> Collection[Entity]:
        return _Kept(self._whole.entities, lambda one: one.confidence >= self._least or one.id in self._ends)

    @property
    def relations(self) -> Collection[Relation]:
        return _Kept(self._whole.relations, lambda one: one.confidence >= self._least)

    @property
    def rejected(self) -> Collection[Rejection]:
        return self._whole.rejected

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """With how much is left out."""
        missing = len(self._whole.relations) - len(self.relations)
        if not missing:
            return self._whole.notes
        facts = "1 relation is" if missing == 1 else f"{missing} relations are"
        left_out = f"{facts} left out, below confidence {self._least:g}; --min-confidence 0 shows all."
        return (*self._whole.notes, left_out)

    @cached_property
    def _ends(self) -> frozenset[str]:
        return frozenset(end for one in self.relations for end in (one.subject, one.object) if end)


class _Kept(Collection[T], Generic[T]):
    def __init__(self, whole: Collection[T], stays: Callable[[T], bool]) -> None:
        self._whole = whole
        self._stays = stays

    def __iter__(self) -> Iterator[T]:
        return (one for one in self._whole if self._stays(one))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, one: object) -> bool:
        return any(one == each for each in self)


def sure_part(graph: Graph, least: float) -> Graph:
    """The graph from a confidence on."""
    return SureGraph(graph, least) if least > 0 else graph
