"""How good a grouping is against the truth: of all pairs of entities of documents, which are rightly one thing."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Mention = tuple[str, str]
"""A document's name and the id of an entity in it."""


class Judged(NamedTuple):
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def __str__(self) -> str:
        return f"precision {self.precision:.4f}, recall {self.recall:.4f}, F1 {self.f1:.4f}"


def judge(found: Mapping[Mention, object], truth: Mapping[Mention, int]) -> Judged:
    """Pairwise precision and recall, from the sizes of the cells that the two groupings share."""
    both = Counter((found[one], truth[one]) for one in truth)
    ours, theirs = Counter(found[one] for one in truth), Counter(truth.values())
    right = _pairs(both.values())
    return Judged(right / max(1, _pairs(ours.values())), right / max(1, _pairs(theirs.values())))


def _pairs(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def partition(found: Mapping[Mention, object]) -> frozenset[frozenset[Mention]]:
    """The groups without their names, to compare two groupings."""
    groups: dict[object, set[Mention]] = {}
    for one, group in found.items():
        groups.setdefault(group, set()).add(one)
    return frozenset(frozenset(members) for members in groups.values())
