"""Language models, and the services that keep them under control. Importing it loads no provider's package."""

from sameas.llm.budget import Preflight, Reservation, TokenBudgetService
from sameas.llm.circuit import CircuitBreaker, CircuitSettings
from sameas.llm.errors import (
    BudgetSpent,
    CallRefused,
    CircuitOpen,
    HeldBack,
    LimitsUnreachable,
    RequestTooLarge,
    TooManyWaiting,
)
from sameas.llm.ledger import UsageReport, UsageRow
from sameas.llm.limiter import CentralRateLimiterService, Permit
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Message, Model, ModelError, Reply, Usage, open_model
from sameas.llm.outcomes import RunOutcome
from sameas.llm.prices import Price
from sameas.llm.signals import Signal
from sameas.llm.supervisor import Backoff, RequestSupervisor
from sameas.llm.timeouts import StageName, StageTimedOutError, StageTimeout, StageTimeoutService
from sameas.llm.windows import LocalWindows, RateLimits

__all__ = [
    "Ask",
    "Backoff",
    "BudgetSpent",
    "CallMemo",
    "CallRefused",
    "CentralRateLimiterService",
    "CircuitBreaker",
    "CircuitOpen",
    "CircuitSettings",
    "HeldBack",
    "LimitsUnreachable",
    "LocalWindows",
    "Message",
    "Model",
    "ModelError",
    "Permit",
    "Preflight",
    "Price",
    "RateLimits",
    "Reply",
    "RequestSupervisor",
    "RequestTooLarge",
    "Reservation",
    "RunOutcome",
    "Signal",
    "StageName",
    "StageTimedOutError",
    "StageTimeout",
    "StageTimeoutService",
    "TokenBudgetService",
    "TooManyWaiting",
    "Usage",
    "UsageReport",
    "UsageRow",
    "open_model",
]
