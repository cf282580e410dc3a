"""One endpoint: its method and path, what it does, and what its users are told about it.

Rule: what an endpoint publishes stands beside what it does, and the OpenAPI document is made of nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp

from sameas.server.service import Service
from sameas.server.tenants.access import Caller

T = TypeVar("T")


class Asked(msgspec.Struct, frozen=True):
    """A request that was let in."""

    service: Service
    caller: Caller
    request: Request
    body: bytes = b""

    async def slowly(self, work: Callable[[], T], *, is_long: bool = False) -> T:
        """The result of blocking work that may take long, when it is the tenant's turn."""
        return await self.service.slow_work.do(self.caller.ctx.tenant_id, work, is_long=is_long)


Handle = Callable[[Asked], Awaitable[ASGIApp]]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One of the answers of an endpoint, with an example."""

    description: str
    schema: Any = None
    example: Any = None
    media_types: tuple[str, ...] = ("application/json",)
    headers: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Media types of bodies that are not described: files as they were put."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the path, of the query or of the headers."""

    name: str
    place: str = "query"
    description: str = ""
    schema: Mapping[str, Any] = MappingProxyType({"type": "string"})
    example: Any = None
    required: bool = False


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint and its contract. `problems` are the codes of the refusals that are its own."""

    method: str
    path: str
    handle: Handle
    name: str
    summary: str
    tag: str
    replies: Mapping[int, Reply]
    problems: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: Any = None
    body_example: Any = None
    body_media_types: tuple[str, ...] = ("application/json",)
    public: bool = False
