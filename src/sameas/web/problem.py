"""Refusals, as `application/problem+json` (RFC 9457). A problem says what to do, and repeats no key and no credential.

| status | when |
|---|---|
| 400 | no key where one is required; a key that is none; JSON that cannot be compared |
| 401, 403 | the authenticator or the scope contract refuses |
| 406 | the kept answer has an encoding that the client does not accept and nobody here can unpack |
| 409 | in progress; an answer that could not be kept |
| 413 | a body over the limit |
| 422 | the key was used for another request, or with another credential; names the fields that differ |
| 500 | nobody knows whether what was done was kept; a kept record that cannot be read; a user like any other |
| 503 | the store does not answer, or the disk has no room for the body: the handler did not run |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from math import ceil
from random import random
from typing import Any, Final

import msgspec

from sameas.identity.scope import ScopeError
from sameas.once.errors import (
    InProgress,
    KeyReused,
    NotEncodable,
    OutcomeUnknown,
    Reentered,
    ResultDoesNotFit,
    ResultNotKept,
    SameasError,
    StoredFailure,
    StoreError,
    StoreFull,
    StoreUnavailable,
    Superseded,
)
from sameas.web.capture import Spool
from sameas.web.encoding import NotPacked, codings_of, decode
from sameas.web.response import Headers

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

MEDIA_TYPE: Final = "application/problem+json"
_URN: Final = "urn:sameas:problem:"
# None of ours is longer.
_LARGEST: Final = 65_536

TITLES: Final[Mapping[int, str]] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    424: "Failed Dependency",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
UNFORESEEN = "an error that nobody thought of; the log has it under this trace"


class Problem(SameasError):
    """An answer that is a refusal. `code` is its stable name."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after: float | None = None,
        challenge: str = "",
        **members: Any,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after
        self.challenge = challenge
        self.members = members
        super().__init__(detail)

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(
            {
                "type": f"{_URN}{self.code}",
                "title": TITLES.get(self.status, "Error"),
                "status": self.status,
                "detail": self.detail,
                **self.members,
            }
        )

    async def answer(self, send: Send, *, head_only: bool = False) -> None:
        """Send it; a HEAD request gets the headers alone."""
        body = self.body
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % _whole_seconds(self.retry_after)))
        if self.challenge:
            headers.append((b"www-authenticate", self.challenge.encode("latin-1")))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if head_only else body})


def problem_of(error: SameasError) -> Problem:
    """What an error of the engine or of the scope contract is to a client."""
    match error:
        case Problem():
            return error
        case ScopeError():
            return Problem(error.status, error.code, str(error), challenge=getattr(error, "challenge", ""))
        case KeyReused():
            return Problem(422, "key-reused", str(error), fields=list(error.fields))
        case InProgress():
            return Problem(409, "in-progress", str(error), retry_after=error.retry_after)
        case Superseded() | Reentered():
            return Problem(409, "in-progress", str(error), retry_after=1.0)
        case StoreFull():
            return Problem(
                503, "disk-full", "The request was not run: no room on the disk.", retry_after=error.retry_after
            )
        case StoreUnavailable():
            return Problem(
                503, "store-unavailable", "The request was not run; try again later.", retry_after=error.retry_after
            )
        case OutcomeUnknown():
            return Problem(
                500,
                "outcome-unknown",
                "This request was run, but its answer could not be stored. Check its effect before you send it again: "
                "it may then be run once more.",
            )
        case ResultNotKept():
            return Problem(
                409, "answer-not-kept", "This request was run; its answer could not be kept. It is not run again."
            )
        case StoredFailure():
            return Problem(500, "stored-failure", "The request failed before; it can be tried again after a while.")
        case StoreError() | ResultDoesNotFit() | NotEncodable():
            return Problem(500, "record-unreadable", f"The kept answer cannot be given ({type(error).__name__}).")
        case _:
            return Problem(500, "internal", UNFORESEEN)


def is_ours(headers: Headers, body: Spool) -> bool:
    """Whether an answer is a problem of this middleware, given by a server further on and passed on here."""
    kind = next((value for name, value in headers if name == b"content-type"), b"")
    if kind.partition(b";")[0].strip().lower() != MEDIA_TYPE.encode() or body.size > _LARGEST:
        return False
    try:
        # Somebody on the way may have compressed it.
        said = msgspec.json.decode(decode(body.start(body.size), codings_of(headers), limit=_LARGEST), type=_Said)
    except (msgspec.MsgspecError, NotPacked):
        return False
    return said.type.startswith(_URN)


class _Said(msgspec.Struct):
    type: str = ""


def _whole_seconds(seconds: float) -> int:
    # A little apart, so that those who were refused together do not come back together.
    return max(1, ceil(seconds * (1 + random() / 4)))
