"""The HTTP client under every provider's own: it reads a reply whole, within a bound, and mends its count of tokens.

Rule: what a server says about usage never costs a reply. The clients above stumble over a usage that is missing,
negative or no number; here it becomes zero, which `sameas.llm.tokens` takes for not reported. A body beyond the bound
is cut, packed or not, and then is no JSON. A page for people, or a way to another address, is what a server answers
that is none of models: it becomes a 404, because asking it again would be in vain.
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
_LONGEST_LOCATION = 200
# An answer may take minutes; a server that is there takes a connection, or ends what it does not understand, at once.
CONNECT_WITHIN = 10.0
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
        _bound_connecting(request)
        response = await super().send(request, stream=True, **options)
        try:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_REPLY_BYTES:
                    break
        finally:
            await response.aclose()
        if (reason := _is_elsewhere(response)) is not None:
            return Response(404, json={"error": {"message": reason, "type": "not_found"}}, request=request)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _STALE_HEADERS]
        content = bytes(body[:MAX_REPLY_BYTES])
        if response.is_success:
            is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
            content = mended_events(content) if is_stream else mended(content)
        return Response(response.status_code, headers=headers, content=content, request=request)


def _bound_connecting(request: Request) -> None:
    """However long an answer may take: nobody waits as long for a connection."""
    limits = request.extensions.get("timeout")
    if isinstance(limits, dict):
        connect = limits.get("connect")
        request.extensions["timeout"] = {**limits, "connect": min(connect or CONNECT_WITHIN, CONNECT_WITHIN)}


def _is_elsewhere(response: Response) -> str | None:
    """Why this is no server of models; None if it may be one."""
    if response.is_redirect:
        return f"the server sends to {response.headers['location'][:_LONGEST_LOCATION]}; give that address"
    if response.is_success and response.headers.get("content-type", "").startswith("text/html"):
        return "the server answered with a web page"
    return None


def mended(body: bytes) -> bytes:
    """The body with a usage that the clients can read; unchanged where it has one or is no reply."""
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body
    if not isinstance(reply, dict):
        return body
    for field, mark, counts in _USAGES:
        if mark in reply and not _is_whole(reply.get(field), counts):
            return msgspec.json.encode({**reply, field: dict.fromkeys(counts, 0)})
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
    field, mark, counts = _USAGES[0]
    if not isinstance(event, dict) or mark not in event or event.get(field) is None:
        return line
    if _is_whole(event[field], counts):
        return line
    return b"data: " + msgspec.json.encode({**event, field: dict.fromkeys(counts, 0)})


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
