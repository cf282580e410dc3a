"""Answers that are made of bytes, and the reading of bodies and query parameters.

Rule: JSON goes out as msgspec writes it. A query parameter that is not known, or cannot be what it says, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sameas.server.problems import Problem

JSON = "application/json"
# A page with the viewer has scripts: in a browser it is a file to be saved, and none of ours.
PAGE_HEADERS = {
    "Content-Disposition": 'attachment; filename="graph.html"',
    "Content-Security-Policy": "sandbox",
    "X-Content-Type-Options": "nosniff",
}
_encode = msgspec.json.Encoder().encode


def json_reply(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encode(value), status_code=status, media_type=JSON, headers=dict(headers or {}))


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
