"""How a run ended: what it found, and whether that is all there is.

Rule: only a run in which nothing was cut short is COMPLETE; every other outcome is a checkpoint on the way there.
"""

from functools import cached_property

import msgspec

from sameas.extraction.graph.model import Graph, KnowledgeGraph, in_memory
from sameas.extraction.outputs import SpooledOutputs
from sameas.llm.errors import BudgetSpent, RequestTooLarge
from sameas.llm.ledger import RunOutcome, UsageRow, name_outcome
from sameas.once.errors import StoreError

TIMED_OUT, DEADLINE = "timed_out", "deadline"
# Limits that every caller sets for itself: where one had to end, another may go on.
_OWN_LIMITS = frozenset({TIMED_OUT, DEADLINE, BudgetSpent.code, RequestTooLarge.code})


class MissingChunk(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """A stretch of the text that a stage could not do, and why; the next request does it again."""

    start: int
    end: int
    stage: str
    code: str
    chunk_index: int

    @property
    def is_for_own_limit(self) -> bool:
        """Whether it is missing for a limit of the one who worked on it."""
        return self.code in _OWN_LIMITS


class ExtractionResult(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What was found, how the run ended, and the graph's files."""

    found: Graph
    """The graph as the run left it, too large for memory where the text was long."""
    outcome: RunOutcome
    outputs: SpooledOutputs
    chunks: int
    chunks_from_checkpoints: int
    chunks_ended_early: int
    duration_ms: int
    missing: tuple[MissingChunk, ...] = ()
    usage: tuple[UsageRow, ...] = ()
    """What was spent on models in this run, and what the memo of calls saved."""

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """What was found, in memory."""
        return in_memory(self.found)

    def __repr__(self) -> str:
        return f"<ExtractionResult {self.outcome} {self.found!r}>"


def outcome_of(graph: Graph, *, ended_early: bool, usage: tuple[UsageRow, ...] | None = None) -> RunOutcome:
    """The outcome of a run that has this to show; `usage` is given by a run that asks models.

    FALLBACK_CACHE: something is missing, and everything that is there was known before, because no call was answered.
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
    """The error's own code where it has one, such as `auth`; else the kind of error that it is."""
    code = getattr(error, "code", None)
    if isinstance(code, str) and code:
        return code
    if isinstance(error, StoreError):
        return STORE
    return INVALID if isinstance(error, ValueError) else INTERNAL
