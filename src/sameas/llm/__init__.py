"""Language models, and the services that keep them under control, each usable alone.

Importing one loads what it needs and no provider's package; importing this loads none of them.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sameas.llm.account import LocalAccount, RateLimits
    from sameas.llm.budget import Preflight, Reservation, SpendingLimit, TokenBudgetService
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
    from sameas.llm.ledger import RunOutcome, UsageReport, UsageRow
    from sameas.llm.limiter import CentralRateLimiterService, Permit
    from sameas.llm.memo import CallMemo
    from sameas.llm.models import Ask, Message, Model, ModelError, Reply, Usage, open_model
    from sameas.llm.prices import Price
    from sameas.llm.signals import Signal
    from sameas.llm.supervisor import Backoff, RequestSupervisor
    from sameas.llm.timeouts import StageName, StageTimedOutError, StageTimeout, StageTimeoutService

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
    "LocalAccount",
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
    "SpendingLimit",
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

# The module of each name.
_HOME_OF = {
    "Ask": "models",
    "Backoff": "supervisor",
    "BudgetSpent": "errors",
    "CallMemo": "memo",
    "CallRefused": "errors",
    "CentralRateLimiterService": "limiter",
    "CircuitBreaker": "circuit",
    "CircuitOpen": "errors",
    "CircuitSettings": "circuit",
    "HeldBack": "errors",
    "LimitsUnreachable": "errors",
    "LocalAccount": "account",
    "Message": "models",
    "Model": "models",
    "ModelError": "models",
    "Permit": "limiter",
    "Preflight": "budget",
    "Price": "prices",
    "RateLimits": "account",
    "Reply": "models",
    "RequestSupervisor": "supervisor",
    "RequestTooLarge": "errors",
    "Reservation": "budget",
    "RunOutcome": "ledger",
    "Signal": "signals",
    "SpendingLimit": "budget",
    "StageName": "timeouts",
    "StageTimedOutError": "timeouts",
    "StageTimeout": "timeouts",
    "StageTimeoutService": "timeouts",
    "TokenBudgetService": "budget",
    "TooManyWaiting": "errors",
    "Usage": "models",
    "UsageReport": "ledger",
    "UsageRow": "ledger",
    "open_model": "models",
}


def __getattr__(name: str) -> Any:
    if name == "LocalWindows":
        warnings.warn("sameas.llm.LocalWindows is called LocalAccount now", DeprecationWarning, stacklevel=2)
        name = "LocalAccount"
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
