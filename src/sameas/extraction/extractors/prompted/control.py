"""Under which control a model is asked: who limits it, what remembers its answers, what a run may spend, and how its
signals become events of the run.

Rule: nothing here changes an answer, so nothing here is in a key. A limit that somebody set holds for a document over
all attempts at it. Where nobody set one, a run begins with the source document's tokens for each chunk and gets more
for whatever its questions take, one repair each included: no document ends for a limit that nobody asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import assert_never

import msgspec

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import BudgetWarning, CacheHit, ErrorRecoverable, ErrorReport, RateLimited
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.llm import signals
from sameas.llm.budget import OTHER, SHARES, TOKENS_PER_CHUNK, SpendingLimit, TokenBudgetService
from sameas.llm.ledger import UsageRow
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.lingering import LingeringCalls
from sameas.llm.memo import CallMemo
from sameas.llm.signals import Listener
from sameas.llm.supervisor import Backoff


def announce(signal: signals.Signal, bus: Bus) -> None:
    """Emit what a signal means to those who follow the run; a circuit that closes again is not news to them."""
    match signal:
        case signals.RateLimited():
            asked = signal.asked_by_server
            bus.emit(RateLimited, wait_ms=signal.wait_ms, reason=signal.reason, asked_by_server=asked)
        case signals.BudgetWarning():
            bus.emit(BudgetWarning, stage=signal.stage, used=signal.used, limit=signal.limit, message=signal.message)
        case signals.Retrying():
            report = ErrorReport(
                code=signal.code, message=signal.message, recoverable=True, retry_after_ms=signal.wait_ms
            )
            bus.emit(ErrorRecoverable, error=report, stage=signal.stage)
        case signals.CircuitOpened():
            message = f"the model's server failed {signal.failures} times in a row and is not asked for a while"
            report = ErrorReport(
                code="circuit_open", message=message, recoverable=True, retry_after_ms=signal.retry_after_ms
            )
            bus.emit(ErrorRecoverable, error=report)
        case signals.MemoHit():
            bus.emit(CacheHit, source="model_call", key=signal.model, items=signal.tokens)
        case signals.CircuitClosed():
            pass
        case _:
            assert_never(signal)


_ENTITIES, _RELATIONS, _GROUNDING = "entity_extraction", "relation_extraction", "grounding"


class ModelControl(msgspec.Struct, frozen=True, kw_only=True):
    """The services that a model's calls go through. A limiter is shared by every run that uses the same account."""

    limiter: CentralRateLimiterService
    second_limiter: CentralRateLimiterService | None = None
    """That of the second model, where it is of another account than the first."""
    memo: CallMemo | None = None
    max_tokens: int | None = None
    """For a whole run, over all of its attempts; by default as many as its questions take."""
    max_cost: Decimal | None = None
    """In US dollars, for a whole run, over all of its attempts."""
    spending: SpendingLimit | None = None
    """Money for several runs together, in place of `max_cost`."""
    allowed: Callable[[], tuple[int, Decimal | None] | None] | None = None
    """What the run that begins may spend, in place of `max_tokens` and `max_cost`, if it says so."""
    retries: int = 2
    backoff: Backoff = Backoff()
    attempt_seconds: float | None = None
    """How long one attempt may take; by default until its stage's soft limit."""

    lingering: LingeringCalls | None = None
    """What sees calls through that were sent before an interruption."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError("max_tokens must be at least 1")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise ValueError("max_cost must not be negative")
        if self.max_cost is not None and self.spending is not None:
            raise ValueError("spending has a limit of its own: give one of the two")

    def budget(
        self,
        settings: PromptSettings,
        *,
        chunks: int,
        with_second: bool,
        spent: Iterable[UsageRow] = (),
        on_signal: Listener | None = None,
    ) -> TokenBudgetService:
        """The budget of a run; `spent` is what earlier attempts at it used, which counts against what was set."""
        shares = shares_of(settings, with_second=with_second)
        allowed = None if self.allowed is None else self.allowed()
        max_tokens, max_cost = (self.max_tokens, self.max_cost) if allowed is None else allowed
        budget = TokenBudgetService(
            max_tokens or TOKENS_PER_CHUNK * (max(1, chunks) + 1),
            shares=shares,
            cost_limit=max_cost,
            spending=self.spending,
            order=[stage for stage in shares if stage != OTHER],
            grows=max_tokens is None,
            on_signal=on_signal,
        )
        for row in spent:
            tokens = 0 if max_tokens is None else row.tokens
            budget.record_usage(
                row.stage, tokens, cost=(row.cost or Decimal(0)) if self.spending is None else Decimal(0)
            )
        return budget


def shares_of(settings: PromptSettings, *, with_second: bool) -> Mapping[str, float | Decimal]:
    """The shares of the stages that ask, in their order; those of the others are spread over them."""
    asks: Sequence[str] = (_ENTITIES,) if settings.mode == "joint" else (_ENTITIES, _RELATIONS)
    shares = {stage: SHARES[stage] for stage in asks}
    if settings.mode == "joint":
        # Two questions in one.
        shares[_ENTITIES] += SHARES[_RELATIONS]
    if with_second:
        shares[_GROUNDING] = SHARES[_GROUNDING]
    whole = Fraction(sum(shares.values()))
    return {
        **{stage: Decimal(int(Fraction(share) / whole * 10_000)) / 10_000 for stage, share in shares.items()},
        OTHER: Decimal(0),
    }
