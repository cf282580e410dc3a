"""Canonical JSON the quick way, for what most payloads are: bytes that are provably those of RFC 8785, or no answer.

Three C functions prove it. `marshal` takes no subclass of a JSON type. What `msgspec` wrote and reads back as an equal
value holds nothing but JSON's own types, each with a text that stands for it alone. Its text differs from RFC 8785's
only in numbers with an exponent, a fraction of zero or sixteen digits, and in the order of names beyond U+D7FF; those
are looked for and left to the strict way. So is a tuple, which is read back as a list.
"""

from __future__ import annotations

import marshal
import re
from typing import Any, Final

import msgspec

# Each opens an object or a list; the strict way knows how deep is too deep.
_MAX_BRACKETS: Final = 200
_ODD_NUMBER: Final = re.compile(rb"[0-9](?:e|\.0(?![0-9])|[0-9]{15})").search
# Every digit as a zero: a search for a few bytes is many times as quick as a pattern.
_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG: Final = b"0" * 16
# All that may follow a number as a comma.
_ENDS: Final = bytes.maketrans(b"]}", b",,")
# What three searches add up to that found nothing.
_NOWHERE: Final = -3
# The first bytes of characters from U+E000 on: UTF-16 sorts those among them that it writes as pairs below the others.
_HIGH: Final = re.compile(rb"[\xee-\xf4]").search

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def _has_odd_number(form: bytes) -> bool:
    """Whether a number that is written in more than one way is there, and not only in a string."""
    # What is between the strings: every second piece, once no quote is left inside of one.
    bare = form if b"\\" not in form else form.replace(b"\\\\", b"").replace(b'\\"', b"")
    return _ODD_NUMBER(b"".join(bare.split(b'"')[::2])) is not None


def told_apart(value: Any) -> bytes | None:
    """Bytes that no other value has, of a value of Python's own types; None for most others. An equal value may have
    other bytes, and they mean nothing in another process. What has a buffer, such as a number of numpy, is told as
    bytes: `told_of` gives those back."""
    try:
        return marshal.dumps(value)
    except ValueError:
        return None


def told_of(told: bytes) -> Any:
    """The value of Python's own types that these bytes of `told_apart` stand for."""
    return marshal.loads(told)  # noqa: S302  (this process wrote them itself)


def quick_form(value: Any) -> bytes | None:
    """The RFC 8785 form of a value; None where it takes the strict way to make it, or to refuse the value."""
    return None if told_apart(value) is None else quick_form_of_plain(value)


def quick_form_of_plain(value: Any) -> bytes | None:
    """`quick_form`, of a value that `told_apart` has proved to be of Python's own types."""
    if type(value) is float:
        return None
    try:
        form = _encode(value)
        zeros = form.translate(_ZEROS).find
        seems_odd = zeros(b"0e") + zeros(_LONG) + form.translate(_ENDS).find(b".0,") > _NOWHERE
        if seems_odd and _has_odd_number(form):
            return None
        if not form.isascii() and _HIGH(form) is not None:
            return None
        if len(form) > 2 * _MAX_BRACKETS and form.count(b"{") + form.count(b"[") > _MAX_BRACKETS:
            return None
        return form if _decode(form) == value else None
    except (ValueError, TypeError, OverflowError, RecursionError, BytesWarning, msgspec.MsgspecError):
        return None
