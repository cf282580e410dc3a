"""The parts of a multipart body (RFC 2046), found without copying them.

The boundary is new in every request, so that two equal uploads differ as bytes. What does not follow the syntax to its
end is refused; nothing is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from mmap import mmap

from msgspec import Struct

MAX_PARTS = 1_000
MAX_HEAD = 16 * 1_024

_BOUNDARY = re.compile(rb'(?:^|;)[ \t]*boundary=(?:"([^"\r\n]{1,70})"|([^\s";,]{1,70}))', re.IGNORECASE)
_NAME = re.compile(rb'(?:^|[;\s])name="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


class MalformedMultipart(ValueError):
    """The body is not the multipart that its type says."""


class Part(Struct, frozen=True):
    """One part: its name, its head with the names of headers in lower case, and where its content lies."""

    name: str
    head: bytes
    start: int
    end: int


def boundary_of(content_type: bytes) -> bytes:
    """The boundary that a Content-Type names."""
    found = _BOUNDARY.search(content_type.partition(b";")[2])
    if found is None or content_type.lower().count(b"boundary") != 1:
        raise MalformedMultipart("The Content-Type must name one boundary.")
    return found[1] or found[2]


def parts_of(body: bytes | mmap, boundary: bytes) -> Iterator[Part]:
    """The parts, in order."""
    mark = b"--" + boundary
    begin = 0 if body[: len(mark)] == mark else _find(body, b"\r\n" + mark, 0) + 2
    # Some readers find parts in what comes before the first boundary or after the last, which counts nowhere here.
    if body.find(mark, 0, begin) >= 0:
        raise MalformedMultipart("A boundary of the multipart body does not begin a line.")
    at = begin + len(mark)
    for _ in range(MAX_PARTS):
        if body[at : at + 2] == b"--":
            if body.find(mark, at) >= 0:
                raise MalformedMultipart("The multipart body goes on after its end.")
            return
        line_end = _find(body, b"\r\n", at)
        if body[at:line_end].strip(b" \t"):
            raise MalformedMultipart("A boundary of the multipart body is followed by something else.")
        head_at = line_end + 2
        if body[head_at : head_at + 2] == b"\r\n":
            head, start = b"", head_at + 2
        else:
            head_end = _find(body, b"\r\n\r\n", head_at, head_at + MAX_HEAD)
            head, start = body[head_at:head_end], head_end + 4
        # An empty part ends where it begins: the line break before the boundary is also the one after the head.
        end = _find(body, b"\r\n" + mark, start - 2)
        yield Part(_name(head), _normal(head), start, max(start, end))
        at = end + 2 + len(mark)
    raise MalformedMultipart(f"The multipart body has more than {MAX_PARTS} parts.")


def _find(body: bytes | mmap, what: bytes, start: int, end: int | None = None) -> int:
    at = body.find(what, start) if end is None else body.find(what, start, end)
    if at < 0:
        raise MalformedMultipart("The multipart body ends too early.")
    return at


def _name(head: bytes) -> str:
    for line in head.split(b"\r\n"):
        field, _, value = line.partition(b":")
        if field.strip().lower() == b"content-disposition" and (found := _NAME.search(value)):
            return found[1].decode("utf-8", "replace")
    return ""


def _normal(head: bytes) -> bytes:
    lines = []
    for line in head.split(b"\r\n"):
        field, _, value = line.partition(b":")
        lines.append(field.strip().lower() + b":" + value.strip())
    return b"\r\n".join(sorted(lines))
