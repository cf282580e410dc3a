"""The five names of how a request ended, and the one rule that gives them.

Rule: only a request in which nothing was cut short is COMPLETE. Every other outcome is a checkpoint on the way there;
FALLBACK_CACHE is one that shows only what was known before, because nothing new was answered.
"""

from typing import Literal, TypeAlias

RunOutcome: TypeAlias = Literal["COMPLETE", "PARTIAL_ENTITY_ONLY", "PARTIAL_EARLY_EXIT", "FALLBACK_CACHE", "EMPTY"]


def name_outcome(*, entities: int, relations: int, ended_early: bool, is_fallback: bool = False) -> RunOutcome:
    """The outcome of a request that has so much to show."""
    if is_fallback:
        return "FALLBACK_CACHE"
    if not ended_early:
        return "COMPLETE"
    if not entities:
        return "EMPTY"
    return "PARTIAL_EARLY_EXIT" if relations else "PARTIAL_ENTITY_ONLY"
