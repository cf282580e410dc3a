"""The HTTP client under every provider's own: it reads a reply whole, within a bound, and mends its count of tokens.

Rule: what a server says about usage never costs a reply. The clients above stumble over a usage that is missing,
negative or no number; here it becomes zero, which `sameas.llm.usage` takes for not told. A body beyond the bound is
cut, packed or not, and then is no JSON.
"""

from collections.abc import Mapping
from functools import cache
from ssl import SSLContext
from typing import Any

import msgspec
from httpx2 import AsyncClient, Request, Response, create_ssl_context

# The longest replies of today's models are about 128,000 tokens, a megabyte as escaped JSON.
MAX_REPLY_BYTES = 16 << 20

# By each interface: where usage is, what else tells that this is a reply of it, and the counts that must be there.
_USAGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("usage", "choices", ("prompt_tokens", "completion_tokens", "total_tokens")),
    ("usage", "content", ("input_tokens", "output_tokens")),
    ("usageMetadata", "candidates", ("promptTokenCount", "candidatesTokenCount")),
)
# The body was unpacked and may have changed.
_STALE_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


@cache
def tls() -> SSLContext:
    """Whom this process trusts: reading the certificates takes longer than a call to a model next door."""
    return create_ssl_context()


class ReplyClient(AsyncClient):
    """A client whose replies are read when they are handed over."""

    async def send(self, request: Request, *, stream: bool = False, **options: Any) -> Response:
        """Send a request; the reply is whole even where a stream was asked for."""
        response = await super().send(request, stream=True, **options)
        try:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_REPLY_BYTES:
                    break
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _STALE_HEADERS]
        content = bytes(body[:MAX_REPLY_BYTES])
        if response.is_success:
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            content = mended_events(content) if is_stream else mended(content)
        return Response(response.status_code, headers=headers, content=content, request=request)


def mended(body: bytes) -> bytes:
    """The body with a usage that the clients can read; unchanged where it has one or is no reply."""
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    if not isinstance(reply, dict):
        return body
    for place, mark, counts in _USAGES:
        if mark in reply and not _is_whole(reply.get(place), counts):
            return msgspec.json.encode({**reply, place: dict.fromkeys(counts, 0)})
        if mark in reply:
            break
    return body


def mended_events(body: bytes) -> bytes:
    """A stream of OpenAI's events, of which any that has a usage has one that the clients can read."""
    return b"\n".join(_mended_line(line) for line in body.split(b"\n"))


def _mended_line(line: bytes) -> bytes:
    if not line.startswith(b"data:") or b'"usage"' not in line:
        return line
    try:
        event = msgspec.json.decode(line.removeprefix(b"data:"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return line
    place, mark, counts = _USAGES[0]
    if not isinstance(event, dict) or mark not in event or event.get(place) is None:
        return line
    if _is_whole(event[place], counts):
        return line
    return b"data: " + msgspec.json.encode({**event, place: dict.fromkeys(counts, 0)})


def _is_whole(usage: Any, counts: tuple[str, ...]) -> bool:
    """Whether every count is there and a count, and nothing in it is negative."""
    return isinstance(usage, dict) and all(_is_count(usage.get(name)) for name in counts) and _has_no_negative(usage)


def _has_no_negative(usage: Mapping[str, Any]) -> bool:
    return all(
        _has_no_negative(value) if isinstance(value, dict) else not isinstance(value, int | float) or value >= 0
        for value in usage.values()
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
