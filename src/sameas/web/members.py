"""The members of a JSON object, each as canonical bytes: the quick way for what most requests send.

Its rule: the bytes are those of `canonical_json([name, value])`, or there is no answer. It answers for plain ASCII
without escapes and numbers that every encoder writes alike; whatever else comes is left to the strict way, which also
finds what is to be refused. A member that is named twice is lost in decoding: then the lengths do not match.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

# Each opens an object or a list; the strict way knows how deep is too deep.
_MAX_BRACKETS: Final = 150
_NUMBER = rb"-?[1-9][0-9]{0,14}(?:\.[0-9]{0,14}[1-9])?|0|-?0\.(?!000)[0-9]{0,14}[1-9]"
_USUAL = re.compile(rb'(?:"[^"\\]*+"|[\[\]{},:\s]++|true|false|null|(?:' + _NUMBER + rb")(?=[\s,\]}]))*+")
_BLANKS: Final = b" \t\r\n"

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def usual_members(body: bytes) -> dict[str, bytes] | None:
    """Name and canonical bytes of each member; None where the body is not of the usual kind."""
    if not body.isascii() or not _USUAL.fullmatch(body) or body.count(b"{") + body.count(b"[") > _MAX_BRACKETS:
        return None
    try:
        value = _decode(body)
    except msgspec.DecodeError:
        return None
    if type(value) is not dict or not value:
        return None
    members = {item[0]: _encode(item) for item in value.items()}
    # A pair has brackets and one comma, a member has one colon and its comma; blanks count nowhere.
    kept = len(b"".join(members.values()).translate(None, _BLANKS)) - len(members) + 1
    return members if kept == len(body.translate(None, _BLANKS)) else None
