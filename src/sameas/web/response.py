"""A response as it is kept: status, the headers that may be kept, and the body.

Cookies, credentials and headers of one connection are never kept, whatever a route says. A body over the limit is left
out, and its replay says so; or it is cut short if the deployment chose that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import Struct

from sameas.once.codec import OutcomeCodec, frame, unframe
from sameas.once.errors import RecordDamaged
from sameas.once.record import Outcome

Headers = Sequence[tuple[bytes, bytes]]
Part = Literal["whole", "nothing", "start"]

REPLAYED: Final = b"x-idempotency-replayed"
EXPIRES: Final = b"idempotency-expires"
TRUNCATED: Final = b"x-idempotency-truncated"

# What says something about the body or leads on from it.
USUAL_HEADERS: Final = frozenset(
    {
        "accept-ranges",
        "allow",
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-range",
        "content-type",
        "deprecation",
        "etag",
        "expires",
        "last-modified",
        "link",
        "location",
        "preference-applied",
        "retry-after",
        "sunset",
        "vary",
        "warning",
    }
)
# RFC 9110, 7.6.1, and what belongs to one caller or one connection.
_NEVER: Final = frozenset(
    {
        "connection",
        "date",
        "keep-alive",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-idempotency-replayed",
        "x-idempotency-truncated",
        "idempotency-expires",
    }
)
_SECRET: Final = re.compile(
    r"authoriz|authentic|\bauth\b|cookie|credential|[cx]srf|passw|secret|session|token|api-?key|signature"
)


def may_be_kept(name: str) -> bool:
    """Whether a header of this name may ever be kept."""
    return name not in _NEVER and _SECRET.search(name) is None


def kept_names(more: Iterable[str]) -> frozenset[bytes]:
    """The names of the headers that are kept: the usual ones and `more`."""
    names = {name.lower() for name in more}
    for name in names:
        if not may_be_kept(name):
            raise ValueError(f"the header {name!r} is never kept: it belongs to one caller or one connection")
    return frozenset(name.encode("latin-1") for name in USUAL_HEADERS | names)


class KeptResponse(Struct, frozen=True):
    """What a replay is made of. `size` is the body's, `part` how much of it is here, `why` the reason where it is not
    the size."""

    status: int
    headers: Headers
    body: bytes
    size: int
    part: Part = "whole"
    why: str = ""


class ResponseCodec(OutcomeCodec):
    """Status and headers beside the bytes, where listings and the columns of source document 003 find them."""

    def pack(self, result: Any) -> tuple[Outcome, Any]:
        kept: KeptResponse = result
        media_type = ""
        flat: list[str] = []
        for name, value in kept.headers:
            text = value.decode("latin-1")
            if name == b"content-type":
                media_type = text
            flat += (name.decode("latin-1"), text)
        meta: dict[str, Any] = {"status": kept.status, "headers": flat}
        if kept.part != "whole":
            meta |= {"size": kept.size, "part": kept.part}
        if kept.why:
            meta["why"] = kept.why
        return Outcome(frame(kept.body), media_type, meta), kept

    def unpack(self, outcome: Outcome) -> KeptResponse:
        body = unframe(outcome.data)
        try:
            meta = outcome.meta
            flat = iter(meta["headers"])
            headers = [
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in zip(flat, flat, strict=True)
            ]
            part, why = meta.get("part", "whole"), meta.get("why", "")
            return KeptResponse(meta["status"], headers, body, meta.get("size", len(body)), part, why)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordDamaged("A stored response has no status or headers that can be read.") from error


CODEC: Final = ResponseCodec()


@lru_cache(maxsize=1_024)
def http_date(seconds: int) -> bytes:
    """An instant as HTTP writes it."""
    return formatdate(seconds, usegmt=True).encode()


def with_length(kept: KeptResponse, body: bytes) -> list[tuple[bytes, bytes]]:
    """The kept headers, with the length of the body that is sent if there is one to be said."""
    headers = list(kept.headers)
    if kept.status in (204, 304):
        return headers
    if kept.part == "whole" and len(body) == len(kept.body):
        if not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", b"%d" % len(body)))
        return headers
    headers = [pair for pair in headers if pair[0] != b"content-length"]
    headers.append((b"content-length", b"%d" % len(body)))
    return headers


def with_member(headers: Headers, body: bytes, value: bytes) -> bytes:
    """A JSON object with the member `idempotency_replayed`; anything else as it is."""
    kind = encoding = b""
    for name, text in headers:
        if name == b"content-type":
            kind = text.partition(b";")[0].strip().lower()
        elif name == b"content-encoding":
            encoding = text
    start, end = body.lstrip(), body.rstrip()
    is_object = start.startswith(b"{") and end.endswith(b"}") and b'"idempotency_replayed"' not in body
    if encoding or not is_object or not (kind == b"application/json" or kind.endswith(b"+json")):
        return body
    comma = b"" if not end[:-1].rstrip()[1:].strip() and start[1:].lstrip().startswith(b"}") else b","
    return end[:-1] + comma + b'"idempotency_replayed":' + value + b"}"
