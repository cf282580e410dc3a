"""Whose run is next: so many at a time, tenants one after the other, and short work not behind long.

Rule: of those who wait, each tenant has one turn before any has a second, however many runs it asked for, and none has
more places than its share. Long runs leave some places to short ones, where there is more than one place; where both
wait they take turns, so that neither waits for good. Lives in one loop.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sameas.server.shares import Shares

# A run of so many characters takes well below a second.
SHORT_TEXT = 10_000
# One place in so many, and one at least, is for short work.
_FOR_SHORT = 4


class RunQueue:
    """The places of runs that are worked on."""

    def __init__(self, at_once: int, *, divided: bool = False) -> None:
        self._shares = Shares(at_once, divided=divided)
        self._long_at_most = max(1, at_once - max(1, at_once // _FOR_SHORT))
        self._long = 0
        # By whether they are long: the tenants that wait, the next one first, and their runs in order.
        self._lines: dict[bool, OrderedDict[str, deque[asyncio.Future[None]]]] = {
            False: OrderedDict(),
            True: OrderedDict(),
        }
        self._long_is_next = False

    @asynccontextmanager
    async def turn(self, tenant: str, *, is_long: bool = False) -> AsyncIterator[None]:
        """Wait for a place, and have it until the block ends."""
        await self._take(tenant, is_long=is_long)
        try:
            yield
        finally:
            self._give_back(tenant, is_long=is_long)

    async def _take(self, tenant: str, *, is_long: bool) -> None:
        if tenant not in self._lines[is_long] and self._has_place(tenant, is_long=is_long):
            self._begin(tenant, is_long=is_long)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines[is_long].setdefault(tenant, deque()).append(place)
        self._call_next()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # It was its turn at the very moment.
                self._give_back(tenant, is_long=is_long)
            raise

    def _give_back(self, tenant: str, *, is_long: bool) -> None:
        self._shares.give_back(tenant)
        self._long -= is_long
        self._call_next()

    def _has_place(self, tenant: str, *, is_long: bool) -> bool:
        return self._shares.has_place(tenant) and not (is_long and self._long >= self._long_at_most)

    def _begin(self, tenant: str, *, is_long: bool) -> None:
        self._shares.take(tenant)
        self._long += is_long

    def _call_next(self) -> None:
        while self._shares.free > 0:
            order = (self._long_is_next, not self._long_is_next)
            found = next((kind for kind in order if self._pop(is_long=kind)), None)
            if found is None:
                return
            self._long_is_next = not found

    def _pop(self, *, is_long: bool) -> bool:
        """Give the place to the first who still waits in a line and may have it; False where nobody does."""
        line = self._lines[is_long]
        for tenant in list(line):
            if not self._has_place(tenant, is_long=is_long):
                continue
            waiting = line.pop(tenant)
            while waiting:
                place = waiting.popleft()
                if not place.done():
                    if waiting:
                        line[tenant] = waiting
                    self._begin(tenant, is_long=is_long)
                    place.set_result(None)
                    return True
        return False
