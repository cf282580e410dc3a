"""The members of a JSON object, each as canonical bytes: the quick way for what most requests send.

Its rule: the bytes are those of `canonical_json([name, value])`, or there is no answer. It answers for plain ASCII
without escapes and numbers that every encoder writes alike, and for members that can be told apart by their names;
whatever else comes is left to the strict way, which also finds what is to be refused. A member that is named twice is
lost in decoding: then the lengths do not match.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

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
    """The members' names, and canonical bytes of each in their order; None where the body is not of the usual kind."""
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
