"""Bytes in a frame: a version, the compression, a checksum, the size. What was damaged, or written by a version that
this one does not know, is an error; it is never taken for a missing result.

Version 1 is read by every release. Version 2 marks forms that came later, so that a release which does not know them
refuses them and does not misread them.
"""

from __future__ import annotations

import zlib
from struct import Struct as Layout

from sameas.once.errors import RecordDamaged

# Below this a result fits the frame of a packet and compressing it saves nothing.
COMPRESS_FROM = 2_048
# A frame that claims more than this is not one of ours.
MAX_UNPACKED = 1 << 30

FIRST, SECOND = 1, 2
_PLAIN, _ZLIB = 0, 1
PLAIN_HEAD = bytes((FIRST, _PLAIN))
_HEAD = Layout(">BBIQ")
_HEAD_SIZE = _HEAD.size


def frame(data: bytes, version: int = FIRST) -> bytes:
    """Version, compression, checksum of what follows, size, and the bytes."""
    body, compression = data, _PLAIN
    if len(data) >= COMPRESS_FROM:
        small = zlib.compress(data, 1)
        if len(small) < len(data):
            body, compression = small, _ZLIB
    return _HEAD.pack(version, compression, zlib.crc32(body), len(data)) + body


def unframe(framed: bytes) -> bytes:
    """The bytes of a frame, checked to be what was framed."""
    if len(framed) < _HEAD_SIZE:
        raise RecordDamaged("A stored result is shorter than its head; forget the record to have the work done again.")
    version, compression, checksum, size = _HEAD.unpack_from(framed)
    if version not in (FIRST, SECOND) or compression not in (_PLAIN, _ZLIB):
        raise RecordDamaged(f"A stored result has version {version}.{compression}, which this release does not know.")
    if size > MAX_UNPACKED:
        raise RecordDamaged(f"A stored result claims {size} bytes, beyond the limit of {MAX_UNPACKED}.")
    body = framed[_HEAD_SIZE:]
    if zlib.crc32(body) != checksum:
        raise RecordDamaged(
            "A stored result does not match its checksum; forget the record to have the work done again."
        )
    data = body if compression == _PLAIN else _inflate(body, size)
    if len(data) != size:
        raise RecordDamaged(f"A stored result has {len(data)} bytes or more instead of {size}.")
    return data


def _inflate(data: bytes, size: int) -> bytes:
    try:
        # One byte more than promised tells a bomb from a result.
        return zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise RecordDamaged(f"A stored result cannot be decompressed: {error}.") from error
