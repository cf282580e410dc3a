"""Reading a request's body, while it comes, up to a bound of bytes and of time."""

from __future__ import annotations

import asyncio
from typing import Any

from sameas.server.problems import Problem

# Seconds for a whole body: one that trickles in would keep its place among the requests under way for good.
WITHIN = 120.0


class ClientGone(Exception):
    """The client left before its request was whole; nobody waits for an answer."""


async def read_body(scope: Any, receive: Any, *, at_most: int) -> bytes:
    """The whole body; refused as soon as it is known to be too long."""
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
