"""How a run ended: what it found, and whether that is all there is.

Rule: only a run in which nothing was cut short is COMPLETE; every other outcome is a checkpoint on the way there.
"""

from functools import cached_property

import msgspec

from sameas.extraction.graph.model import Graph, KnowledgeGraph, in_memory
from sameas.extraction.outputs import OutputSpool
from sameas.llm.errors import BudgetSpent, RequestTooLarge
from sameas.llm.ledger import RunOutcome, UsageRow, name_outcome
from sameas.once.errors import StoreError

TIMED_OUT, DEADLINE = "timed_out", "deadline"
# Limits that every caller sets for itself: another caller may go on.
_OWN_LIMITS = frozenset({TIMED_OUT, DEADLINE, BudgetSpent.code, RequestTooLarge.code})


class MissingChunk(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """A stretch of the text that a stage could not do, and why; the next request tries it again."""

    start: int
    end: int
    stage: str
    code: str
    chunk_index: int

    @property
    def is_for_own_limit(self) -> bool:
        """Whether it is missing because of a limit that the caller of that run had set."""
        return self.code in _OWN_LIMITS


class ExtractionResult(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What was found, how the run ended, and the graph's files."""

    found: Graph
    """The graph as the run left it; for a long text it is not in memory as a whole."""
    outcome: RunOutcome
    outputs: OutputSpool
    chunks: int
    chunks_from_checkpoints: int
    chunks_ended_early: int
    duration_ms: int
    missing: tuple[MissingChunk, ...] = ()
    usage: tuple[UsageRow, ...] = ()
    """What this run spent on models, and what the memo of calls saved."""

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """What was found, in memory."""
        return in_memory(self.found)

    def __repr__(self) -> str:
        return f"<ExtractionResult {self.outcome} {self.found!r}>"


def outcome_of(graph: Graph, *, ended_early: bool, usage: tuple[UsageRow, ...] | None = None) -> RunOutcome:
    """The outcome of a run that found this graph; `usage` is given by a run that asks models.

    FALLBACK_CACHE means that something is missing and everything found was known before: no call was answered.
    """
    was_known = usage is not None and not any(one.calls > one.failed for one in usage)
    return name_outcome(
        entities=len(graph.entities),
        relations=len(graph.relations),
        ended_early=ended_early,
        is_fallback=ended_early and bool(graph.entities) and was_known,
    )


INTERNAL, INVALID, STORE = "internal_error", "validation_error", "store_error"


def failure_code(error: BaseException) -> str:
    """The error's own code, such as `auth`, if it has one; otherwise its kind."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code:
        return code
    if isinstance(error, StoreError):
        return STORE
    return INVALID if isinstance(error, ValueError) else INTERNAL
