"""How many of so many places one tenant may have: of the runs that are worked on, and of the requests under way.

Rule: a tenant may take a free place while it has at most `_TIMES` as many as would stay free (the dynamic threshold of
shared buffers in network switches). A tenant alone has most of the places, several have fewer each, and one that has
none finds a place however many another asks for. Where there is only one tenant, all places are its own.
"""

from __future__ import annotations

from collections import Counter

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
