"""The bodies of requests, taken apart: members of JSON objects, wide integers in them, parts of a multipart body.

`usual_members` is the quick way for what most requests send: each member as canonical bytes. Its rule: the bytes are
those of `canonical_json([name, value])`, or there is no answer. It answers for plain ASCII without escapes and numbers
that every encoder writes alike, and for members that can be told apart by their names; whatever else comes is left to
the strict way, which also finds what is to be refused. A member that is named twice is lost in decoding: then the
lengths do not match.

RFC 8785 has no form for integers that readers of JSON round, such as 64-bit ids and amounts, which many send as
numbers. They are told apart by all of their digits: as texts, beside a tree of the same shape that says where they
stand.

Parts of a multipart body (RFC 2046) are found without copying them. The boundary is new in every request, so that two
equal uploads differ as bytes. What does not follow the syntax to its end is refused; nothing is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from mmap import mmap
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from sameas.identity.canonical import MAX_DEPTH, MAX_SAFE_INTEGER
from sameas.identity.errors import NotCanonical
from sameas.identity.key import MAX_NAMED_FIELDS

# A member whose name is longer is not told apart: what a client makes up must not fill the record.
MAX_NAME: Final = 128
# Each opens an object or a list, and another closes it; the strict way knows how deep is too deep.
_MAX_BRACKETS: Final = 150
# Escapes, and what could be a number that encoders write in more than one way; also where it stands in a text. All of
# it begins with one set of characters, which is what makes a search quick.
_ODD: Final = re.compile(
    rb"[-\\0-9](?:(?<=\\)|(?<=[0-9])(?:[eE]|\.[0-9]*0(?![0-9])|[0-9]{15})"
    rb"|(?<![0-9]0)(?<=0)\.000|(?<=-)0(?![.0-9]))"
).search
_BLANKS: Final = b" \t\r\n"

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode

# Whether a wide integer stands in this place.
_HERE: Final = 1
_NOT_HERE: Final = 0

# What a multipart body may have.
MAX_PARTS = 1_000
MAX_HEAD = 16 * 1_024

_BOUNDARY = re.compile(rb'(?:^|;)[ \t]*boundary=(?:"([^"\r\n]{1,70})"|([^\s";,]{1,70}))', re.IGNORECASE)
_NAME = re.compile(rb'(?:^|[;\s])name="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


class Naming(NamedTuple):
    """The names of fields: in the order in which they count, and a form for what is said before them and of each."""

    order: tuple[str, ...]
    form: str
    is_usual: bool


@lru_cache(maxsize=256)
def naming(names: tuple[str, ...]) -> Naming:
    """What there is to know of some names. A colon in front is for the fields of the request line."""
    order = tuple(sorted(names))
    quoted = (msgspec.json.encode(name).decode().replace("%", "%%") for name in order)
    form = ",".join(["%s", *(f'{name}:"%s"' for name in quoted)])
    return Naming(order, form, may_be_named(names) and ":" not in "".join(names))


def may_be_named(names: Collection[str]) -> bool:
    """Whether fields are told apart: not none, not too many, each by a name of some length."""
    return 0 < len(names) <= MAX_NAMED_FIELDS and max(map(len, names)) <= MAX_NAME


def usual_members(body: bytes) -> tuple[Naming, list[bytes]] | None:
    """The members' names, and canonical bytes of each in their order; None if the body is not of the usual kind."""
    if not body.isascii() or _ODD(body):
        return None
    if len(body) > 2 * _MAX_BRACKETS and body.count(b"{") + body.count(b"[") > _MAX_BRACKETS:
        return None
    try:
        value = _decode(body)
    except msgspec.DecodeError:
        return None
    if type(value) is not dict or len(value) > MAX_NAMED_FIELDS:
        return None
    # Before the names are remembered.
    if value and max(map(len, value)) > MAX_NAME:
        return None
    named = naming(tuple(value))
    if not named.is_usual:
        return None
    members = [_encode((name, value[name])) for name in named.order]
    # A pair has brackets and one comma, a member has one colon and its comma; blanks count nowhere.
    kept = len(b"".join(members).translate(None, _BLANKS)) - len(members) + 1
    return (named, members) if kept == len(body.translate(None, _BLANKS)) else None


def has_wide(value: Any) -> bool:
    """Whether parsed JSON has such an integer anywhere."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is dict:
            waiting.extend(each.values())
        elif type(each) is list:
            waiting.extend(each)
        elif _is_wide(each):
            return True
    return False


def in_digits(value: Any, depth: int = 0) -> Any:
    """Parsed JSON with the digits of such integers in their place."""
    if type(value) is dict:
        return {name: in_digits(item, _deeper(depth)) for name, item in value.items()}
    if type(value) is list:
        return [in_digits(item, _deeper(depth)) for item in value]
    return str(value) if _is_wide(value) else value


def places_of(value: Any) -> Any:
    """The same shape, with 1 where such an integer stands and 0 elsewhere."""
    if type(value) is dict:
        return {name: places_of(item) for name, item in value.items()}
    if type(value) is list:
        return [places_of(item) for item in value]
    return _HERE if _is_wide(value) else _NOT_HERE


def has_wide_place(places: Any) -> bool:
    """Whether a tree of places names any."""
    if type(places) is dict:
        return any(map(has_wide_place, places.values()))
    if type(places) is list:
        return any(map(has_wide_place, places))
    return bool(places == _HERE)


def _is_wide(value: Any) -> bool:
    return type(value) is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise NotCanonical(f"is nested more than {MAX_DEPTH} deep")
    return depth + 1


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
