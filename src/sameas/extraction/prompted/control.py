"""Under which control a model is asked: who limits it, what remembers its answers, and what a run may spend.

Rule: nothing here changes an answer, so nothing here is in a key.
"""

import math
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from sameas.extraction.prompted.settings import PromptSettings
from sameas.llm.budget import OTHER, SHARES, TOKENS_PER_CHUNK, TokenBudgetService
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.signals import Listener
from sameas.llm.supervisor import Backoff

# Two calls in one where both stages have a share.
_ENTITIES, _RELATIONS, _GROUNDING = "entity_extraction", "relation_extraction", "grounding"
JOINT_SHARES: Mapping[str, Decimal] = {
    **SHARES,
    _ENTITIES: SHARES[_ENTITIES] + SHARES[_RELATIONS],
    _RELATIONS: Decimal(0),
}


class ModelControl(msgspec.Struct, frozen=True, kw_only=True):
    """The services that a model's calls go through. The limiter is shared by every run that asks the same server."""

    limiter: CentralRateLimiterService
    memo: CallMemo | None = None
    max_tokens: int | None = None
    """For a whole run; by default as many for each chunk as the source document names, or as the prompts need."""
    max_cost: Decimal | None = None
    """In US dollars, for a whole run."""
    retries: int = 2
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ValueError("max_cost must not be negative")

    def budget(
        self, settings: PromptSettings, *, chunks: int, needed: Mapping[str, int], on_signal: Listener
    ) -> TokenBudgetService:
        """The budget of a run; `needed` are the tokens that a chunk of the usual size takes in each stage."""
        shares = JOINT_SHARES if settings.mode == "joint" else SHARES
        total = self.max_tokens or _enough(needed, shares, chunks=chunks)
        return TokenBudgetService(total, shares=shares, cost_limit=self.max_cost, on_signal=on_signal)


def _enough(needed: Mapping[str, int], shares: Mapping[str, Decimal], *, chunks: int) -> int:
    """The source document's tokens for each chunk; more where a large ontology's prompts alone would take them.

    One chunk's worth is added, because calls at the same time each reserve the most that they may use.
    """
    per_chunk = TOKENS_PER_CHUNK
    for stage, tokens in needed.items():
        share = shares[stage] + (shares[OTHER] if stage == _ENTITIES else Decimal(0))
        per_chunk = max(per_chunk, math.ceil(tokens / share))
    return per_chunk * (max(1, chunks) + 1)
