"""Refusals, as `application/problem+json` (RFC 9457). A problem says what to do, and repeats no key and no credential.

| status | when |
|---|---|
| 400 | no key where one is required; a key that is none; JSON that cannot be compared |
| 401, 403 | the authenticator or the scope contract refuses |
| 409 | in progress; an answer that was too large to keep |
| 413 | a body over the limit |
| 422 | the key was used for another request; names the fields that differ |
| 500 | the work was done, but nobody knows whether it was kept; a kept record that cannot be read |
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
    OutcomeUnknown,
    Reentered,
    SameasError,
    StoredFailure,
    StoreUnavailable,
    Superseded,
)

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

MEDIA_TYPE: Final = "application/problem+json"

TITLES: Final[Mapping[int, str]] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    409: "Conflict",
    413: "Content Too Large",
    422: "Unprocessable Content",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Problem(Exception):
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
                "type": f"urn:sameas:problem:{self.code}",
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


def problem_of(error: SameasError | ScopeError) -> Problem:
    """What an error of the engine or of the scope contract is to a client."""
    match error:
        case ScopeError():
            return Problem(error.status, error.code, str(error), challenge=getattr(error, "challenge", ""))
        case KeyReused():
            return Problem(422, "key-reused", str(error), fields=list(error.fields))
        case InProgress():
            return Problem(409, "in-progress", str(error), retry_after=error.retry_after)
        case Superseded() | Reentered():
            return Problem(409, "in-progress", str(error), retry_after=1.0)
        case StoreUnavailable():
            return Problem(
                503, "store-unavailable", "The request was not run; try again later.", retry_after=error.retry_after
            )
        case OutcomeUnknown():
            return Problem(500, "outcome-unknown", str(error))
        case StoredFailure():
            return Problem(500, "stored-failure", "The request failed before; it can be tried again after a while.")
        case _:
            return Problem(500, "record-unreadable", f"The kept answer cannot be given ({type(error).__name__}).")


def _whole_seconds(seconds: float) -> int:
    # A little apart, so that those who were refused together do not come back together.
    return max(1, ceil(seconds * (1 + random() / 4)))
