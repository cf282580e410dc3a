"""Money that one request may spend, or several together.

Rule: what a call may cost at most is set aside before it and settled with what it did cost. A purse without a limit
counts and never refuses.
"""

import asyncio
from decimal import Decimal

_NOTHING = Decimal(0)


class Purse:
    """So many US dollars; None is no limit. Give one purse to several budgets and they spend from it together."""

    def __init__(self, limit: Decimal | None = None) -> None:
        if limit is not None and not limit >= 0:
            raise ValueError("cost_limit must not be negative")
        self.limit = limit
        self.used = _NOTHING
        self.reserved = _NOTHING
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def left(self) -> Decimal | None:
        """What nobody has spent or set aside; never below 0, None without a limit."""
        return None if self.limit is None else max(_NOTHING, self.limit - self.used - self.reserved)

    def can_pay(self, cost: Decimal) -> bool:
        return self.limit is None or self.used + self.reserved + cost <= self.limit

    def reserve(self, cost: Decimal) -> None:
        self.reserved += cost

    def settle(self, reserved: Decimal, cost: Decimal) -> None:
        """Give back what was set aside and count what was paid."""
        self.reserved -= reserved
        self.used += cost
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def next_settled(self) -> None:
        """Until one of the calls under way is over."""
        over = asyncio.get_running_loop().create_future()
        self._waiting.append(over)
        await over
