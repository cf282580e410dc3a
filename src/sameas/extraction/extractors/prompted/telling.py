"""The signals of the control services as events of the run."""

from typing import assert_never

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import BudgetWarning, CacheHit, ErrorRecoverable, ErrorReport, RateLimited
from sameas.llm import signals


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
