"""Why a call was not made, as one tree below `SameasError`. A docstring is the default message.

CallRefused             the call was not made; `code` is for programs, `retry_after` in seconds where waiting helps
|-- BudgetSpent         the request may not spend so much
|-- RequestTooLarge     no window will ever be large enough for it
|-- CircuitOpen         the server failed too often of late
|-- TooManyWaiting      the limiter's queue is full
|-- LimitsUnreachable   the limits are shared in a store that does not answer
`-- HeldBack            the server asked for a longer pause than anybody should wait for
"""

from decimal import Decimal
from typing import ClassVar

from sameas.once.errors import SameasError


class CallRefused(SameasError):
    """The call was not made."""

    code: ClassVar[str] = "call_refused"

    def __init__(self, message: str | None = None, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class BudgetSpent(CallRefused):
    """The budget of this request does not allow the call."""

    code = "budget_spent"

    def __init__(
        self, message: str, *, stage: str, needed: int, left: int, cost: Decimal = Decimal(0), cost_left: Decimal | None
    ) -> None:
        self.stage = stage
        self.needed = needed
        self.left = left
        self.cost = cost
        self.cost_left = cost_left
        super().__init__(message)


class RequestTooLarge(CallRefused):
    """The call needs more tokens than the limiter allows in a minute."""

    code = "request_too_large"

    def __init__(self, tokens: int, *, limit: int) -> None:
        self.tokens = tokens
        self.limit = limit
        super().__init__(
            f"A call of {tokens} tokens never fits into {limit} tokens per minute: make chunks smaller, ask for fewer "
            "output tokens, or raise tokens_per_minute."
        )


class CircuitOpen(CallRefused):
    """The server failed too often of late, so it is not asked."""

    code = "circuit_open"

    def __init__(self, *, retry_after: float, is_probing: bool = False, down_for: float = 0.0) -> None:
        # Another call is finding out just now, so that waiting for it is worth while.
        self.is_probing = is_probing
        # Since when it has not been closed, in seconds.
        self.down_for = down_for
        super().__init__(
            f"The model's server failed too often of late, so it is not asked for another {retry_after:.0f} s; "
            "try again after that.",
            retry_after=retry_after,
        )


class TooManyWaiting(CallRefused):
    """Too many calls wait for the limiter already; try again later."""

    code = "too_many_waiting"


class LimitsUnreachable(CallRefused):
    """The store in which nodes share their limits does not answer, so that nobody knows whether a call is allowed."""

    code = "limits_unreachable"


class HeldBack(CallRefused):
    """The server asked for a longer pause than is waited for."""

    code = "held_back"

    def __init__(self, *, retry_after: float, longest: float) -> None:
        super().__init__(
            f"The model's server asked for a pause that still lasts {retry_after:.0f} s, and longest_pause is "
            f"{longest:.0f} s; try again after that.",
            retry_after=retry_after,
        )
