"""What several answers to one question agree on, and how sure that makes us.

Rule: with several samples, confidence is the share of them that say it, and what fewer than the wanted share say is
left out. With one, it is what the model says of itself where it was asked, and a rule's judgement otherwise. Equal
answers in any order give the same result.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from sameas.extraction.graph.model import ConfidenceSource

K = TypeVar("K", bound=Hashable)


class StatedFact(NamedTuple, Generic[K]):
    """One statement of one answer, with the model's own confidence in percent where it gave one."""

    what: K
    confidence: float | None = None


class Agreed(NamedTuple, Generic[K]):
    """A statement that stands; `confidence` is None where a rule has to judge."""

    what: K
    confidence: float | None
    source: ConfidenceSource


def agree(samples: Sequence[Iterable[StatedFact[K]]], *, minimum: float) -> list[Agreed[K]]:
    """The statements of the samples that enough of them make, in the order of their first appearance."""
    ratings: dict[K, list[float | None]] = {}
    for sample in samples:
        # Once for each sample, however often it repeats itself.
        for what, confidence in {one.what: one.confidence for one in sample}.items():
            ratings.setdefault(what, []).append(confidence)
    if len(samples) > 1:
        total = len(samples)
        return [
            Agreed(what, round(len(times) / total, 2), "agreement")
            for what, times in ratings.items()
            if len(times) / total >= minimum
        ]
    return [
        Agreed(what, None, "rule") if sure is None else Agreed(what, round(sure / 100, 4), "model")
        for what, (sure,) in ratings.items()
    ]
