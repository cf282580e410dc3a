"""The members of a JSON object, each as canonical bytes: the quick way for what most requests send.

Its rule: the bytes are those of `canonical_json([name, value])`, or there is no answer. It answers for plain ASCII
without escapes and numbers that every encoder writes alike, and for members that can be told apart by their names;
whatever else comes is left to the strict way, which also finds what is to be refused. A member that is named twice is
lost in decoding: then the lengths do not match.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from sameas.identity.key import MAX_NAMED_FIELDS

# A member whose name is longer is not told apart: what a client makes up must not fill the record.
MAX_NAME: Final = 128
# Each opens an object or a list; the strict way knows how deep is too deep.
_MAX_BRACKETS: Final = 150
# Escapes, and what could be a number that encoders write in more than one way; also where it stands in a text.
_ODD: Final = re.compile(rb"\\|[0-9](?:[eE]|\.[0-9]*0(?![0-9]))|[0-9]{16}|(?<![0-9])0\.000|-0(?![.0-9])").search
_BLANKS: Final = b" \t\r\n"

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def usual_members(body: bytes) -> dict[str, bytes] | None:
    """Name and canonical bytes of each member; None where the body is not of the usual kind."""
    if not body.isascii() or _ODD(body) or body.count(b"{") + body.count(b"[") > _MAX_BRACKETS:
        return None
    try:
        value = _decode(body)
    except msgspec.DecodeError:
        return None
    if type(value) is not dict or not 0 < len(value) <= MAX_NAMED_FIELDS:
        return None
    names = "".join(value)
    # A colon in front is for the fields of the request line.
    if ":" in names or (len(names) > MAX_NAME and max(map(len, value)) > MAX_NAME):
        return None
    members = {item[0]: _encode(item) for item in value.items()}
    # A pair has brackets and one comma, a member has one colon and its comma; blanks count nowhere.
    kept = len(b"".join(members.values()).translate(None, _BLANKS)) - len(members) + 1
    return members if kept == len(body.translate(None, _BLANKS)) else None
