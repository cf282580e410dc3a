"""What a provider did wrong, as a `ModelError`: the one place where a client's exceptions are translated.

Rule: the message says what happened and what to do, and holds no secret: providers repeat the key that they were sent.
The client's exception is not kept either, because the request hangs on it, and the key on the request.
"""

import re
from http import HTTPStatus
from typing import Any

from pydantic_ai import exceptions as provided

from sameas.llm.address import ModelAddress
from sameas.llm.models import Code, ModelError, Usage

# More of what a server said than this is a page of HTML.
MAX_MESSAGE = 300
# A wait that nobody meant; it is bounded so that a wrong clock at the other end does not stop a run for a year.
MAX_RETRY_AFTER = 3_600.0

_NO_SUCH_MODEL: tuple[Code, str] = ("not_found", "there is no such model or path: check the name and the address")
_NO_CONNECTION: tuple[Code, str] = (
    "network",
    "the connection failed: check the address and that the server runs",
)
# What a server of files says to a question, as where an address leads to a web site.
_NO_PLACE_FOR_QUESTIONS = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
# First match wins: the special ones come first.
_CODES: tuple[tuple[type[Exception], Code, str], ...] = (
    (provided.ModelRateLimitError, "rate_limited", "too many requests"),
    (provided.ModelQuotaExceededError, "auth", "the account has no credit left: top it up"),
    (provided.ModelUnavailableError, "overloaded", "the server is overloaded"),
    (provided.ModelServerError, "server", "the server failed"),
    (provided.ModelTimeoutError, "timeout", "no answer in time"),
    (provided.ModelRequestTimeout, "timeout", "no answer in time"),
    (provided.ModelConnectionError, *_NO_CONNECTION),
    (provided.ModelAuthenticationError, "auth", "the key was refused: check it and what it may use"),
    (provided.ModelNotFoundError, *_NO_SUCH_MODEL),
    (
        provided.ModelContextWindowExceededError,
        "bad_request",
        "the text is too long for this model: use smaller chunks",
    ),
    (provided.ModelRequestRejectedError, "bad_request", "the request was refused"),
    (provided.UserError, "bad_request", "this model cannot be asked this"),
)
_BY_STATUS: tuple[tuple[range, Code, str], ...] = (
    (range(404, 405), *_NO_SUCH_MODEL),
    (range(408, 409), "timeout", "no answer in time"),
    (range(429, 430), "rate_limited", "too many requests"),
    (range(503, 504), "overloaded", "the server is overloaded"),
    (range(500, 600), "server", "the server failed"),
    (range(400, 500), "bad_request", "the request was refused"),
)
# The server may have worked, and may charge, for these; the others were turned away.
_MAY_COST: frozenset[Code] = frozenset({"timeout", "network", "malformed"})
_NOT_SENT = ("pool", "connect")
# Several providers say so with a 400.
_NAMES_NO_MODEL = re.compile(
    r"""\bmodel\b[^.;]{0,80}\b(?:not\s+exist|not\s+found)\b | \bnot\s+a\s+valid\s+model\b
    | \b(?:unknown|invalid|no\s+such)\s+model(?:\s+(?:name|id))?\s*(?:[:.'"`]|$)""",
    re.IGNORECASE | re.VERBOSE,
)


def translate(error: Exception, *, address: ModelAddress, api_key: str | None, spent: Usage) -> ModelError:
    """The `ModelError` of a client's exception. `spent` is what the request took, if the server got it."""
    code, meaning = _classified(error)
    message = _hidden(_server_message(error), api_key)
    cost = spent if code in _MAY_COST and getattr(error, "phase", None) not in _NOT_SENT else None
    asked = f"{address.name} at {address.host}" if code in ("network", "not_found") else address.name
    return ModelError(
        f"{asked}: {meaning}" + (f" ({message})" if message else ""),
        code=code,
        retry_after=_retry_after(error),
        usage=cost,
    )


def _classified(error: Exception) -> tuple[Code, str]:
    status = getattr(error, "status_code", None)
    if status in _NO_PLACE_FOR_QUESTIONS:
        return _NO_SUCH_MODEL
    if status == HTTPStatus.BAD_REQUEST and _NAMES_NO_MODEL.search(_server_message(error)):
        return _NO_SUCH_MODEL
    if getattr(error, "phase", None) == "connect":
        return _NO_CONNECTION
    for kind, code, meaning in _CODES:
        if isinstance(error, kind):
            return code, meaning
    if isinstance(status, int):
        for statuses, code, meaning in _BY_STATUS:
            if status in statuses:
                return code, meaning
    # The clients take the first choice without looking whether there is one.
    if isinstance(error, IndexError):
        return "malformed", "the answer holds no choice"
    return "malformed", "the answer is not one of a model"


def _retry_after(error: Exception) -> float | None:
    """Seconds to wait, as the server asked: a number, or a date by this machine's clock."""
    asked = getattr(error, "retry_after", None)
    if asked is None:
        asked = _from_header((getattr(error, "headers", None) or {}).get("retry-after"))
    if asked is None:
        asked = _from_details(getattr(error, "body", None))
    return None if asked is None else min(max(0.0, float(asked)), MAX_RETRY_AFTER)


def _from_header(text: str | None) -> float | None:
    """Fractions of a second, which the client does not read."""
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _from_details(body: Any) -> float | None:
    """What Google says in the body of its reply, such as `"retryDelay": "7s"`."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    details = inner.get("details") if isinstance(inner, dict) else None
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return _from_header(delay.removesuffix("s"))
    return None


def _server_message(error: Exception) -> str:
    """The server's own words, or at least the kind of error."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    words = inner.get("message") if isinstance(inner, dict) else None
    status = getattr(error, "status_code", None)
    text = words if isinstance(words, str) else ("" if status else f"{type(error).__name__}: {error}")
    one_line = " ".join(text.split())
    cut = one_line if len(one_line) <= MAX_MESSAGE else one_line[:MAX_MESSAGE] + "..."
    return f"status {status}" + (f": {cut}" if cut else "") if status else cut


def _hidden(text: str, secret: str | None) -> str:
    return text.replace(secret, "***") if secret else text
