"""Answers that are made of bytes or of files, and the reading of bodies and query parameters.

Rule: JSON goes out as msgspec writes it. What may be large lies in a file without a name until it was sent, so that a
client that reads slowly holds neither memory nor a thread. A query parameter that is not known, or cannot be what it
says, is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from io import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sameas.server.http.route import Asked
from sameas.server.problems import Problem

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
