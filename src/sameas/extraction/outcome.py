"""How a run ended: what it found, and whether that is all there is.

Rule: only a run in which nothing was cut short is COMPLETE; every other outcome is a checkpoint on the way there.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from sameas.extraction.graph import KnowledgeGraph
from sameas.extraction.outputs import OutputFormat

RunOutcome: TypeAlias = Literal["COMPLETE", "PARTIAL_ENTITY_ONLY", "PARTIAL_EARLY_EXIT", "FALLBACK_CACHE", "EMPTY"]


class ExtractionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The graph, how the run ended, and the graph's files."""

    graph: KnowledgeGraph
    outcome: RunOutcome
    outputs: Mapping[OutputFormat, bytes]
    chunks: int
    chunks_from_checkpoints: int
    chunks_ended_early: int
    duration_ms: int

    def __repr__(self) -> str:
        return f"<ExtractionResult {self.outcome} {self.graph!r}>"


def outcome_of(graph: KnowledgeGraph, *, ended_early: bool) -> RunOutcome:
    """The outcome of a run that has this to show."""
    if not ended_early:
        return "COMPLETE"
    if not graph.entities:
        return "EMPTY"
    return "PARTIAL_EARLY_EXIT" if graph.relations else "PARTIAL_ENTITY_ONLY"
