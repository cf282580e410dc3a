"""Content codings: bodies unpacked within a limit, and kept answers as those can read them who ask for them again.

gzip and deflate are always known; br and zstd where what the application compresses with is installed. An answer that
its client cannot read and nobody here can unpack is not sent.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from msgspec.structs import replace

from sameas.web.capture import CHUNK, Spool, TooLarge
from sameas.web.response import Headers, KeptResponse

# What zlib calls them.
WINDOWS: Final[Mapping[bytes, int]] = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
# A kept answer is a megabyte, packed; this is more than it was.
MOST: Final = 256 * 1_048_576
# Below this it is done where the request is; above, in a thread.
AT_ONCE: Final = 32 * 1_024
_ALIASES: Final = {b"x-gzip": b"gzip", b"x-compress": b"compress"}
# They speak of the packed bytes.
_OF_BYTES: Final = frozenset(
    {b"content-encoding", b"content-length", b"content-md5", b"content-digest", b"repr-digest", b"digest"}
)


class NotPacked(ValueError):
    """The bytes are not what their coding says, or nobody here knows it."""


def unpack(body: Spool, window: int, limit: int) -> Spool:
    """What is inside of a gzip or deflate body."""
    unpacked = Spool()
    try:
        _inflate(body, window, limit, unpacked)
    except zlib.error:
        unpacked.close()
        raise NotPacked("The body is not what its Content-Encoding says.") from None
    except BaseException:
        unpacked.close()
        raise
    return unpacked


def codings_of(headers: Headers) -> list[bytes]:
    """The codings of a body, in the order in which they were applied."""
    said = [value for name, value in headers if name == b"content-encoding"]
    return [coding for coding in _split(b",".join(said)) if coding != b"identity"] if said else []


def accepts(headers: Iterable[tuple[bytes, bytes]], codings: Iterable[bytes]) -> bool:
    """Whether a request accepts all of these. One that says nothing gets what everybody can read."""
    weights = {}
    for name, value in headers:
        if name == b"accept-encoding":
            for item in value.lower().split(b","):
                coding, _, weight = item.partition(b";")
                coding = coding.strip()
                weights[_ALIASES.get(coding, coding)] = weight.replace(b" ", b"").strip(b"q=0.") != b"" or not weight
    return all(weights.get(coding, weights.get(b"*", False)) for coding in codings)


async def decoded(kept: KeptResponse) -> KeptResponse:
    """A kept answer without its codings; NotPacked if that cannot be."""
    codings = codings_of(kept.headers)
    if any(name == b"content-range" for name, _ in kept.headers):
        raise NotPacked("a part of a packed answer cannot be unpacked")
    headers = [_weakened(pair) for pair in kept.headers if pair[0] not in _OF_BYTES]
    if not any(name == b"vary" and b"accept-encoding" in value.lower() for name, value in headers):
        headers.append((b"vary", b"Accept-Encoding"))
    body = kept.body
    if body:
        at_once = len(body) <= AT_ONCE
        body = decode(body, codings) if at_once else await asyncio.to_thread(decode, body, codings)
    return replace(kept, headers=headers, body=body, size=len(body))


def decode(body: bytes, codings: list[bytes], *, limit: int = MOST) -> bytes:
    """A body without the codings that were applied to it; NotPacked if that cannot be."""
    for coding in reversed(codings):
        if coding in WINDOWS:
            try:
                spool = unpack(Spool(body), WINDOWS[coding], limit)
            except TooLarge as error:
                raise NotPacked(str(error)) from None
            body = spool.view()[:]
            spool.close()
        else:
            decompress = _decoder(coding)
            try:
                body = decompress(body)
            except Exception as error:
                # Each library has errors of its own.
                raise NotPacked(f"the body is no {coding.decode('latin-1')}") from error
    return body


def _decoder(coding: bytes) -> Callable[[bytes], bytes]:
    for module in {b"br": ("brotli", "brotlicffi"), b"zstd": ("compression.zstd", "zstandard")}.get(coding, ()):
        try:
            found: Callable[[bytes], bytes] = import_module(module).decompress
        except ImportError:
            continue
        return found
    raise NotPacked(f"nobody here can unpack {coding.decode('latin-1')!r}")


def _weakened(pair: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A strong validator is of the very bytes."""
    name, value = pair
    return (name, b"W/" + value) if name == b"etag" and value.startswith(b'"') else pair


def _split(value: bytes) -> list[bytes]:
    codings = [coding.strip().lower() for coding in value.split(b",")]
    return [_ALIASES.get(coding, coding) for coding in codings if coding]


def _inflate(body: Spool, window: int, limit: int, unpacked: Spool) -> None:
    """Member by member, never more than a piece at a time."""
    inflater: Any = None
    for chunk in body.chunks():
        left = chunk
        while left:
            if inflater is None:
                inflater = zlib.decompressobj(window)
            unpacked.write(inflater.decompress(left, CHUNK))
            if unpacked.size > limit:
                raise TooLarge(limit)
            left = inflater.unconsumed_tail
            if inflater.eof:
                left, inflater = inflater.unused_data, None
    if inflater is not None:
        raise zlib.error("the stream ends too early")
