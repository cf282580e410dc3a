"""How many of so many places one tenant may have, and whose turn is next: of runs that are worked on, of requests.

Rule: a tenant may take a free place while it has at most `_TIMES` as many as would stay free (the dynamic threshold of
shared buffers in network switches). A tenant alone has most of the places, several have fewer each, and one that has
none finds a place however many another asks for. Where there is only one tenant, all places are its own. Of those who
wait for a turn, each tenant has one before any has a second. Long runs leave some places to short ones, where there is
more than one place; where both wait they take turns, so that neither waits for good.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sameas.server.problems import Problem

_TIMES = 3
# Requests of which nobody knows yet whose they are: nothing of them was read but their heads.
_AT_DOOR = 2_000


def may_have(own: int, *, free: int) -> bool:
    """Whether a tenant may have so much while so much stays free."""
    return own <= _TIMES * free


class Shares:
    """So many places, and who has them. Not for several threads."""

    def __init__(self, places: int, *, divided: bool) -> None:
        self._divided = divided
        self._owners: Counter[str] = Counter()
        self.free = places

    def has_place(self, tenant: str) -> bool:
        if self.free <= 0:
            return False
        return not self._divided or may_have(self._owners[tenant], free=self.free - 1)

    def take(self, tenant: str) -> None:
        self.free -= 1
        self._owners[tenant] += 1

    def give_back(self, tenant: str) -> None:
        self.free += 1
        self._owners[tenant] -= 1
        if not self._owners[tenant]:
            del self._owners[tenant]


class Requests:
    """The requests under way. Those whose tenant is not known yet, and those that need none, have a bound of their own,
    so that a flood at the door does not shut it for others. Lives in the serving loop.
    """

    def __init__(self, at_most: int, *, divided: bool) -> None:
        self._at_most = at_most
        self.shares = Shares(at_most, divided=divided)
        self.at_door = 0

    @property
    def under_way(self) -> int:
        return self.at_door + self._at_most - self.shares.free

    @property
    def is_full(self) -> bool:
        return self.at_door > max(_AT_DOOR, self._at_most)

    def begin(self) -> RequestPlace:
        return RequestPlace(self)


class RequestPlace:
    """A request's place among those under way."""

    def __init__(self, requests: Requests) -> None:
        self._requests: Requests | None = requests
        self._tenant: str | None = None
        requests.at_door += 1

    def take_share(self, tenant: str) -> None:
        """Count the request as its tenant's, or refuse it where the tenant has its share under way."""
        if self._requests is None or self._tenant is not None:
            return
        shares = self._requests.shares
        if shares.free <= 0:
            raise overloaded()
        if not shares.has_place(tenant):
            raise Problem(
                429, "too-many-requests", "this tenant has its share of requests under way; ask again", retry_after=1.0
            )
        shares.take(tenant)
        self._requests.at_door -= 1
        self._tenant = tenant

    def leave(self) -> None:
        """Give it up; a second time changes nothing."""
        requests, self._requests = self._requests, None
        if requests is None:
            return
        if self._tenant is None:
            requests.at_door -= 1
        else:
            requests.shares.give_back(self._tenant)


def overloaded() -> Problem:
    return Problem(503, "overloaded", "too many requests are under way; ask again later", retry_after=1.0)


# A run of so many characters takes well below a second.
SHORT_TEXT = 10_000
# One place in so many, and one at least, is for short work.
_FOR_SHORT = 4


class RunQueue:
    """Places, and whose turn it is to have one. Lives in one loop."""

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
