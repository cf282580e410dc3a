"""Reading a request's body, while it comes, up to a bound of bytes and of time."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sameas.identity.normalize import normalize_unproved
from sameas.identity.scope import ScopeContext
from sameas.server.problems import Problem
from sameas.server.shares import RequestPlace, may_have
from sameas.server.tenants.access import Caller


class Note(msgspec.Struct):
    """Filled in by whoever knows."""

    headers: Sequence[tuple[bytes, bytes]] = ()
    route: str = ""
    caller: Caller | None = None
    unproved: ScopeContext | None = None
    """The hop of a request that nobody was let in with."""
    key: str = ""
    hit: bool | None = None
    status: int = 0
    about: Mapping[str, Any] = {}
    body_memory: int = 0
    """Bytes of its body, which it gives back at its end."""
    place: RequestPlace | None = None
    """Its place among the requests under way."""

    @property
    def hop(self) -> ScopeContext:
        """Its trace and its own id, whether or not anybody was let in with it."""
        if self.caller is not None:
            return self.caller.ctx
        if self.unproved is None:
            self.unproved = normalize_unproved({"headers": self.headers}, tenant_id="", allow_any_tenant=True)
        return self.unproved

    @property
    def tenant(self) -> str:
        return "" if self.caller is None else self.caller.ctx.tenant_id

    def leave(self) -> None:
        """Give up the place; for streams, which have a bound of their own."""
        if self.place is not None:
            self.place.leave()


class BodyMemory:
    """So many bytes; `of_one` is the largest body where tenants share them."""

    def __init__(self, size: int, *, of_one: int | None = None) -> None:
        self._size = size
        self._of_one = of_one
        self._lock = threading.Lock()
        self._owners: Counter[str] = Counter()
        self._used = 0

    @property
    def used(self) -> int:
        return self._used

    @property
    def is_full(self) -> bool:
        return self._used >= self._size

    def take(self, count: int, tenant: str = "") -> None:
        """Take so much, or refuse."""
        with self._lock:
            free, own = self._size - self._used - count, self._owners[tenant] + count
            if free < 0 or (self._of_one is not None and own > self._of_one and not may_have(own, free=free)):
                raise Problem(
                    503,
                    "no-room",
                    "the bodies of other requests take all the memory there is for them",
                    retry_after=2.0,
                )
            self._add(count, tenant)

    def hold(self, count: int, tenant: str = "") -> None:
        """Count what is there already; it is not refused any more."""
        with self._lock:
            self._add(count, tenant)

    def give_back(self, count: int, tenant: str = "") -> None:
        with self._lock:
            self._add(-count, tenant)

    def _add(self, count: int, tenant: str) -> None:
        self._used += count
        self._owners[tenant] += count
        if not self._owners[tenant]:
            del self._owners[tenant]


# Seconds for a whole body: one that trickles in would keep its place among the requests under way for good.
WITHIN = 120.0


class ClientGone(Exception):
    """The client left before its request was whole; nobody waits for an answer."""


async def read_body(scope: Any, receive: Any, *, at_most: int, body_memory: BodyMemory | None = None) -> bytes:
    """The whole body; refused as soon as it is known to be too long, or that there is no room for it. What it takes of
    the room is noted with the request, and given back at the end of that.
    """
    if body_memory is not None:
        receive = _counting(receive, body_memory, scope["sameas.note"])
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > at_most:
            raise too_large(at_most)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > at_most:
            raise too_large(at_most)
        return body
    try:
        async with asyncio.timeout(WITHIN):
            return await _rest(receive, body, at_most=at_most)
    except TimeoutError:
        raise Problem(408, "body-too-slow", f"the body did not come within {WITHIN:g} seconds; send it again") from None


def _counting(receive: Any, body_memory: BodyMemory, note: Note) -> Any:
    async def counted() -> Any:
        message = await receive()
        size = len(message.get("body", b""))
        body_memory.take(size, note.tenant)
        note.body_memory += size
        return message

    return counted


async def _rest(receive: Any, first: bytes, *, at_most: int) -> bytes:
    parts, size, more = [first], len(first), True
    while more:
        if size > at_most:
            raise too_large(at_most)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
    if size > at_most:
        raise too_large(at_most)
    return b"".join(parts)


def too_large(at_most: int) -> Problem:
    return Problem(413, "body-too-large", f"the body has more than {at_most} bytes; send less at a time")
