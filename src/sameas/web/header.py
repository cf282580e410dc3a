"""The Idempotency-Key header: a structured-field String, `"abc"`; a bare token means the same, and so does a bare UUID.

What is not one of these, or was sent twice, is refused, and nothing is guessed. A UUID is accepted bare because most
clients send it so, and ten times out of sixteen it begins with a digit and is no token. Parameters are refused: they
would be a part of the header that is not a part of the key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Beyond this a value is not looked at; the longest key that any pattern may allow is far shorter.
MAX_RAW = 1_024

_STRING = re.compile(rb'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_ESCAPE = re.compile(rb'\\(["\\])')
_TOKEN = re.compile(rb"[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")


class MalformedKey(ValueError):
    """The header is not a key; the message says what it should be and never repeats it."""


def parse_key(values: Sequence[bytes]) -> str:
    """The key in the raw values of the header, which must be one."""
    if len(values) != 1:
        raise MalformedKey("Idempotency-Key was sent more than once; send it once.")
    raw = values[0].strip(b" ")
    if len(raw) > MAX_RAW:
        raise MalformedKey(f"Idempotency-Key has {len(raw)} bytes, beyond any limit.")
    if string := _STRING.fullmatch(raw):
        text = string[1]
        return (_ESCAPE.sub(rb"\1", text) if b"\\" in text else text).decode("ascii")
    if _TOKEN.fullmatch(raw) or _UUID.fullmatch(raw):
        return raw.decode("ascii")
    raise MalformedKey(
        'Idempotency-Key must be a quoted string of printable ASCII, such as "order-1", or a bare token.'
    )
