"""The Idempotency-Key header: a structured-field String, `"abc"`, or bare what means the same.

Bare is what people send: a UUID with or without hyphens, a ULID, milliseconds, base64, `user/42/pay`; any visible ASCII
but `"`, `,`, `;` and `\\`, which would mean something else. What is neither, or was sent twice, is refused, and nothing
is guessed. Parameters of a string must be well-formed and mean nothing: RFC 8941 has those that nobody defined ignored.
Behind a bare key there are none: who sends `order;a` means all of it, and `order;b` is another key.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sameas.identity.errors import SameasError

# Beyond this a value is not looked at; the longest key that any pattern may allow is far shorter.
MAX_RAW = 1_024

_CHARS = rb'[\x20\x21\x23-\x5b\x5d-\x7e]*+(?:\\["\\][\x20\x21\x23-\x5b\x5d-\x7e]*+)*+'
_TOKEN_TEXT = rb"[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*"
_BARE_ITEM = (
    rb'(?:-?[0-9]{1,15}|-?[0-9]{1,12}\.[0-9]{1,3}|"' + _CHARS + rb'"|' + _TOKEN_TEXT + rb"|:[A-Za-z0-9+/=]*:|\?[01])"
)
_PARAMETERS = rb"(?:; *[a-z*][a-z0-9_.*-]*(?:=" + _BARE_ITEM + rb")?)*"
_STRING = re.compile(rb'"(' + _CHARS + rb')"' + _PARAMETERS)
# What nearly every client sends: a string without blanks and escapes, no longer than any key.
_USUAL = re.compile(rb'"([\x21\x23-\x5b\x5d-\x7e]{1,255})"').fullmatch
_ESCAPE = re.compile(rb'\\(["\\])')
_BARE = re.compile(rb"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+")


class MalformedKey(SameasError, ValueError):
    """The header is not a key; the message says what it should be and never repeats it."""


def parse_key(values: Sequence[bytes]) -> str:
    """The key in the raw values of the header, which must be one."""
    if len(values) != 1:
        raise MalformedKey("Idempotency-Key was sent more than once; send it once.")
    if usual := _USUAL(values[0]):
        return usual[1].decode("ascii")
    raw = values[0].strip(b" ")
    if len(raw) > MAX_RAW:
        raise MalformedKey(f"Idempotency-Key has {len(raw)} bytes, beyond any limit.")
    if string := _STRING.fullmatch(raw):
        text = string[1]
        return (_ESCAPE.sub(rb"\1", text) if b"\\" in text else text).decode("ascii")
    if bare := _BARE.fullmatch(raw):
        return bare[0].decode("ascii")
    raise MalformedKey(
        'Idempotency-Key must be a quoted string of printable ASCII, such as "order-1", or bare any visible ASCII '
        'without ", comma, semicolon and backslash.'
    )
