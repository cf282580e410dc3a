"""What the services that control a model tell while they work; the layer above turns it into the events of a run.

Rule: a signal is frozen and small. Whoever listens must not raise; if it does, that is logged and changes nothing.
"""

import logging
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

LimitReason: TypeAlias = Literal["tokens", "requests", "concurrent", "server"]
"""What a call waits for; `server` is one that failed too often and is left alone for a while."""

_log = logging.getLogger("sameas.llm")


class RateLimited(msgspec.Struct, frozen=True, kw_only=True):
    """A call waits for the limiter. `wait_ms` is the least it will take, as far as is known when the wait begins: 0
    where it depends on when another call ends.
    """

    run_id: str
    wait_ms: int
    reason: LimitReason
    asked_by_server: bool = False


class BudgetWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A stage, or the whole request (`total`, `cost`), has used most of what it may, or was refused more."""

    stage: str
    used: int
    limit: int
    message: str


class CircuitOpened(msgspec.Struct, frozen=True, kw_only=True):
    """Too many calls failed; nobody calls until the time has passed."""

    failures: int
    retry_after_ms: int


class CircuitClosed(msgspec.Struct, frozen=True):
    """The server answers again."""


class Retrying(msgspec.Struct, frozen=True, kw_only=True):
    """A call failed and is made again after the wait."""

    stage: str
    attempt: int
    wait_ms: int
    code: str
    message: str


class MemoHit(msgspec.Struct, frozen=True, kw_only=True):
    """A call was not made, because the same one was answered before."""

    stage: str
    model: str
    tokens: int


Signal: TypeAlias = RateLimited | BudgetWarning | CircuitOpened | CircuitClosed | Retrying | MemoHit
Listener: TypeAlias = Callable[[Signal], None]


def emit(listener: Listener | None, signal: Signal) -> None:
    """Tell whoever listens."""
    if listener is None:
        return
    try:
        listener(signal)
    except Exception:
        _log.exception("a listener failed at %s", type(signal).__name__)
