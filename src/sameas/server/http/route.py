"""One endpoint: its method and path, what it does, what its users are told about it, and the form of its answers.

Rule: what an endpoint publishes stands beside what it does, and the OpenAPI document is made of nothing else. JSON goes
out as msgspec writes it. What may be large lies in a file without a name until it was sent, so that a
client that reads slowly holds neither memory nor a thread. A query parameter that is not known, or cannot be what it
says, is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from io import SEEK_END
from tempfile import SpooledTemporaryFile
from types import MappingProxyType
from typing import IO, Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sameas.server.problems import Problem
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
    deletes: bool = False
    """It deletes, as all with the method DELETE do."""


JSON = "application/json"
# A page with the viewer has scripts: in a browser it is a file to be saved, and none of ours.
PAGE_HEADERS = {
    "Content-Disposition": 'attachment; filename="graph.html"',
    "Content-Security-Policy": "sandbox",
    "X-Content-Type-Options": "nosniff",
}
# Bytes of an answer that are kept in memory, and how many are sent at a time.
_IN_MEMORY = 1 << 20
_BLOCK = 1 << 18
_encode = msgspec.json.Encoder().encode


def json_reply(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encode(value), status_code=status, media_type=JSON, headers=dict(headers or {}))


class FileReply(Response):
    """An answer that lies in a file, which is closed when it was sent."""

    def __init__(self, file: IO[bytes], *, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        self._file = file
        size = file.seek(0, SEEK_END)
        super().__init__(media_type=media_type, headers={**(headers or {}), "Content-Length": str(size)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._file.seek(0)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while block := await asyncio.to_thread(self._file.read, _BLOCK):
                await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._file.close()


async def file_reply(
    asked: Asked,
    write: Callable[[IO[bytes]], object],
    *,
    media_type: str,
    headers: Mapping[str, str] | None = None,
    is_long: bool = True,
) -> FileReply:
    """An answer that is written when it is the tenant's turn, and sent when it is whole."""

    def work() -> IO[bytes]:
        file = SpooledTemporaryFile(_IN_MEMORY, prefix="sameas-answer-")  # noqa: SIM115 - the reply closes it
        try:
            write(file)
        except BaseException:
            file.close()
            raise
        return file

    file = await asked.slowly(work, is_long=is_long)
    return FileReply(file, media_type=media_type, headers=headers)


def problem_reply(problem: Problem) -> Response:
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after)))
    if problem.challenge:
        headers["WWW-Authenticate"] = problem.challenge
    return Response(problem.body, status_code=problem.status, media_type="application/problem+json", headers=headers)


def query_of(request: Request, *known: str) -> dict[str, str]:
    """The query parameters, each at most once and each one that is known."""
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise Problem(
                400, "parameter-unknown", f"{name[:100]!r} is not a parameter here: {', '.join(known) or 'none'}"
            )
        if name in given:
            raise Problem(400, "parameter-repeated", f"the parameter {name} was given twice")
        given[name] = value
    return given


def whole_number(text: str | None, *, name: str, default: int, least: int = 0, most: int = 1_000_000_000) -> int:
    """A number that a query parameter gives."""
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
        raise Problem(400, "parameter-invalid", f"{name} must be a whole number from {least} to {most}")
    return int(text)


def time_of(text: str | None, *, name: str) -> float | None:
    """The seconds since 1970 of a time that a query parameter gives; one without a zone is UTC."""
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise Problem(400, "parameter-invalid", f"{name} must be a time such as 2026-01-31T12:00:00.000Z") from None


def flag(text: str | None, *, name: str) -> bool:
    """A yes or no that a query parameter gives."""
    if text not in (None, "true", "false"):
        raise Problem(400, "parameter-invalid", f"{name} must be true or false")
    return text == "true"
