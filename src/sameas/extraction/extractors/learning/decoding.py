"""From scored guesses to the facts of a sentence.

The best guess of a sentence has a lower bar than the others, because most sentences state something. Of two
guesses of one property whose objects overlap only the better stays, unless they share the object and differ
in the subject.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec


class LearnedMention(msgspec.Struct, frozen=True):
    """Characters of the sentence, and the normal form that they stand for where it differs."""

    text: str
    start: int
    end: int
    form: str | None = None

    @property
    def value(self) -> str:
        """The normal form, or the text where there is none."""
        return self.text if self.form is None else self.form

    def overlaps(self, other: LearnedMention) -> bool:
        """Whether the two share a character."""
        return self.start < other.end and other.start < self.end


class LearnedTriple(msgspec.Struct, frozen=True):
    """A fact read from a sentence: both ends have their place in it."""

    property: str
    subject: LearnedMention
    object: LearnedMention
    confidence: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The confidence that the best guess of a sentence needs, and that of any other."""

    best: float = 0.02
    other: float = 0.25


def _excludes(kept: LearnedTriple, other: LearnedTriple) -> bool:
    if kept.property != other.property or not kept.object.overlaps(other.object):
        return False
    same_object = (kept.object.start, kept.object.end) == (other.object.start, other.object.end)
    return not same_object or kept.object.form != other.object.form or kept.subject.overlaps(other.subject)


def choose(guesses: Sequence[LearnedTriple], thresholds: Thresholds) -> list[LearnedTriple]:
    """The guesses that stay, best first."""
    ordered = sorted(guesses, key=_order)
    kept: list[LearnedTriple] = []
    for guess in ordered:
        if guess.confidence < (thresholds.other if kept else thresholds.best):
            break
        if not any(_excludes(other, guess) for other in kept):
            kept.append(guess)
    return kept


def _order(guess: LearnedTriple) -> tuple[float, str, int, int, int, int]:
    return (
        -guess.confidence,
        guess.property,
        guess.object.start,
        guess.object.end,
        guess.subject.start,
        guess.subject.end,
    )
