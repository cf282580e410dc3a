"""Results as bytes and back. What a caller gets is always `decode(encode(result))`, the first time too; pickle is
never used.

A result that has no bytes is kept as just that: the work is done, and why there is no result. It was an effect, and it
must not happen again because of what it answered.

Bytes are kept in a frame: a version, the compression, a checksum, the size. What was damaged, or written by a version
that this one does not know, is an error, never a missing result. Version 1 is read by every release; version 2 marks
forms that came later, so that a release that does not know them refuses them instead of misreading them.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, Final, Protocol

import msgspec

from sameas.once import values
from sameas.once.errors import NotEncodable, RecordDamaged, ResultDoesNotFit, ResultNotKept
from sameas.once.record import Outcome, Unframed
from sameas.once.typed import BYTES, JSON, TEXT, TYPED, TypedCodec, declared_result

__all__ = [
    "BYTES",
    "JSON",
    "NOT_KEPT",
    "PLAIN",
    "TEXT",
    "Codec",
    "OutcomeCodec",
    "PlainCodec",
    "TypedCodec",
    "codec_for",
    "declared_result",
    "frame",
    "nothing_kept",
    "opened",
    "pack",
    "unframe",
    "unpack",
    "why_not_kept",
]

NOT_KEPT: Final = "application/vnd.sameas.not-kept"
# Enough to find the place in one's own code.
_LONGEST_REASON = 500

# Below this a result fits the frame of a packet and compressing it saves nothing.
COMPRESS_FROM = 2_048
# A frame that claims more than this is not one of ours.
MAX_UNPACKED = 1 << 30

FIRST, SECOND = 1, 2
_PLAIN, _ZLIB = 0, 1
PLAIN_HEAD = bytes((FIRST, _PLAIN))
_HEAD = Layout(">BBIQ")
_HEAD_SIZE = _HEAD.size
_SECOND_FRAME: Final = bytes((SECOND,))


class Codec(Protocol):
    """How results of one kind are kept."""

    def encode(self, result: Any) -> tuple[bytes, str]:
        """The bytes and their media type."""
        ...

    def decode(self, data: bytes, media_type: str) -> Any: ...


class OutcomeCodec:
    """How results are kept that are more than bytes and a media type, such as an HTTP response with its status."""

    def pack(self, result: Any) -> tuple[Outcome, Any]:
        """What is kept, its bytes framed, and the result as every caller gets it."""
        raise NotImplementedError

    def unpack(self, outcome: Outcome) -> Any:
        raise NotImplementedError


class PlainCodec:
    """Python's own scalars and containers, text and bytes; the media type tells which."""

    def encode(self, result: Any) -> tuple[bytes, str]:
        if type(result) in _FAST:
            fast = _fast_json(result)
            if fast is not None:
                return fast[0], JSON
        if isinstance(result, bytes | bytearray | memoryview):
            return bytes(result), BYTES
        try:
            if isinstance(result, str):
                try:
                    return result.encode(), TEXT
                except UnicodeEncodeError:
                    # A lone surrogate has no UTF-8; it goes the long way.
                    pass
            tagging = values.Tagging()
            data = tagging.encode(result)
            return data, values.MEDIA_TYPE if tagging.is_tagged else JSON
        except (TypeError, ValueError, RecursionError) as error:
            raise NotEncodable(f"The result cannot be kept: {error}. {_WHAT_TO_DO}") from error

    def decode(self, data: bytes, media_type: str) -> Any:
        try:
            if media_type in (JSON, TYPED):
                return _FROM_JSON(data)
            if media_type == values.MEDIA_TYPE:
                return values.decode(data)
        except (ValueError, RecursionError) as error:
            raise RecordDamaged(f"A stored result cannot be read: {error}.") from error
        if media_type == TEXT:
            return data.decode()
        if media_type == BYTES:
            return data
        raise RecordDamaged(f"A stored result has the media type {media_type!r}, which this scope does not read.")


PLAIN: Final = PlainCodec()
_WHAT_TO_DO = "Return scalars, containers, dates, text or bytes, or name the type with result_type."


@lru_cache(maxsize=256)
def codec_for(result_type: Any) -> Codec:
    """The codec of a declared result type; None and the JSON types need none of their own."""
    if result_type in (None, Any, str, bytes, int, float, bool, list, dict, type(None)):
        return PLAIN
    return TypedCodec(result_type)


def pack(result: Any, codec: Codec | OutcomeCodec) -> tuple[Outcome, Any]:
    """A result as it is kept, and as every caller gets it."""
    if codec is PLAIN and type(result) in _FAST:
        # What is decoded to see that it comes back equal is what the caller gets.
        fast = _fast_json(result)
        if fast is not None:
            return Outcome(frame(_bounded(fast[0])), JSON), fast[1]
    if isinstance(codec, OutcomeCodec):
        return codec.pack(result)
    if type(codec) is TypedCodec:
        data, media_type, found = codec.both_ways(result)
    else:
        data, media_type = codec.encode(result)
        found = codec.decode(data, media_type)
    version = SECOND if media_type == values.MEDIA_TYPE else FIRST
    return Outcome(frame(_bounded(data), version), media_type), found


def unpack(outcome: Outcome, codec: Codec | OutcomeCodec) -> Any:
    """The result of a stored outcome."""
    if outcome.media_type == NOT_KEPT and (reason := why_not_kept(outcome)):
        raise ResultNotKept(reason=reason)
    if isinstance(codec, OutcomeCodec):
        return codec.unpack(outcome)
    data = outcome.inside if type(outcome) is Unframed else unframe(outcome.data)
    if codec is PLAIN and outcome.media_type == JSON:
        return _FROM_JSON(data)
    return codec.decode(data, outcome.media_type)


def nothing_kept(error: Exception) -> Outcome:
    """Work that is done, whose result could not be kept because of this error."""
    known = isinstance(error, NotEncodable | ResultDoesNotFit)
    reason = ((known and str(error)) or type(error).__name__).encode("utf-8", "backslashreplace").decode()
    return Outcome(frame(reason[:_LONGEST_REASON].encode(), SECOND), NOT_KEPT)


def why_not_kept(outcome: Outcome) -> str:
    """Why there is no result; empty if there is one."""
    # The frame decides, too: a media type may be a caller's own.
    if outcome.media_type != NOT_KEPT or outcome.data[:1] != _SECOND_FRAME:
        return ""
    return unframe(outcome.data).decode()


def opened(outcome: Outcome) -> Outcome:
    """An outcome that will be unpacked often, its frame checked now; one that is compressed, damaged or without a frame
    stays as it is."""
    if outcome.data[:2] != PLAIN_HEAD:
        return outcome
    try:
        return Unframed(outcome.data, outcome.media_type, outcome.meta, unframe(outcome.data))
    except RecordDamaged:
        return outcome


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_UNPACKED:
        raise NotEncodable(f"The result has {len(data)} bytes; at most {MAX_UNPACKED} can be kept.")
    return data


_FAST_TO_JSON: Final = msgspec.json.Encoder().encode
_FROM_JSON: Final = msgspec.json.Decoder().decode
_FAST: Final = frozenset({dict, list, type(None)})


def _fast_json(result: Any) -> tuple[bytes, Any] | None:
    """A result as JSON, and as it is read again; None if that is not the same, and it must go the strict way.

    The fast encoder writes more than JSON has types for.
    """
    try:
        data = _FAST_TO_JSON(result)
        decoded = _FROM_JSON(data)
        return (data, decoded) if decoded == result else None
    except (TypeError, ValueError, RecursionError, OverflowError):
        return None


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
