"""Results as bytes and back. What a caller gets is always `decode(encode(result))`, the first time too; pickle is
never used.

A kept result is framed: a version, the compression, a checksum. A frame that was damaged, or written by a version
that this one does not know, is an error; it is never taken for a missing result.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import lru_cache
from struct import Struct as Layout
from typing import Any, Final, Protocol, get_type_hints

import msgspec

from sameas.once.errors import NotEncodable, RecordDamaged
from sameas.once.record import Outcome, Unframed

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
BYTES: Final = "application/octet-stream"

# Below this a result fits the frame of a packet and compressing it saves nothing.
COMPRESS_FROM = 2_048
# A frame that claims more than this is not one of ours.
MAX_UNPACKED = 1 << 30

_VERSION = 1
_PLAIN, _ZLIB = 0, 1
_PLAIN_FRAME = bytes((_VERSION, _PLAIN))
_HEAD = Layout(">BBIQ")
_HEAD_SIZE = _HEAD.size


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
    """JSON types, text and bytes; the media type tells which."""

    def encode(self, result: Any) -> tuple[bytes, str]:
        if type(result) in _FAST:
            fast = _fast_json(result)
            if fast is not None:
                return fast[0], JSON
        if isinstance(result, bytes | bytearray | memoryview):
            return bytes(result), BYTES
        try:
            if isinstance(result, str):
                return result.encode(), TEXT
            _refuse_odd_names(result)
            return _TO_JSON(result).encode(), JSON
        except (TypeError, ValueError, RecursionError) as error:
            raise NotEncodable(f"The result cannot be kept: {error}. {_WHAT_TO_DO}") from error

    def decode(self, data: bytes, media_type: str) -> Any:
        if media_type == JSON:
            return _FROM_JSON(data)
        if media_type == TEXT:
            return data.decode()
        if media_type == BYTES:
            return data
        raise RecordDamaged(f"A stored result has the media type {media_type!r}, which this scope does not read.")


class TypedCodec:
    """Results of one declared type: a dataclass or msgspec struct, or anything that pydantic can validate."""

    def __init__(self, result_type: Any) -> None:
        self.result_type = result_type
        if is_dataclass(result_type) or _is_struct(result_type):
            self._encode: Callable[[Any], bytes] = msgspec.json.Encoder(decimal_format="string").encode
            self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(result_type).decode
        else:
            self._encode, self._decode = _pydantic_codec(result_type)

    def encode(self, result: Any) -> tuple[bytes, str]:
        try:
            return self._encode(result), JSON
        except Exception as error:
            raise NotEncodable(
                f"The result is not kept: {error}. It must be a {self.result_type!r}, as declared."
            ) from error

    def decode(self, data: bytes, media_type: str) -> Any:
        try:
            return self._decode(data)
        except Exception as error:
            raise RecordDamaged(
                f"A stored result no longer fits {self.result_type!r}: {error}. Forget it, or read it by its old type."
            ) from error


PLAIN: Final = PlainCodec()
_WHAT_TO_DO = "Return JSON types, text or bytes, or name the type with result_type."


@lru_cache(maxsize=256)
def codec_for(result_type: Any) -> Codec:
    """The codec of a declared result type; None and the JSON types need none of their own."""
    if result_type in (None, Any, str, bytes, int, float, bool, list, dict, type(None)):
        return PLAIN
    return TypedCodec(result_type)


def declared_result(function: Callable[..., Any]) -> Any:
    """The class a function says it returns, where that class has to be rebuilt from bytes; else None."""
    try:
        declared = get_type_hints(function).get("return")
    except (NameError, TypeError):
        return None
    if isinstance(declared, type) and (
        is_dataclass(declared) or _is_struct(declared) or hasattr(declared, "__pydantic_validator__")
    ):
        return declared
    return None


def pack(result: Any, codec: Codec | OutcomeCodec) -> tuple[Outcome, Any]:
    """A result as it is kept, and as every caller gets it."""
    if codec is PLAIN and type(result) in _FAST:
        # What is decoded to see that it comes back equal is what the caller gets.
        fast = _fast_json(result)
        if fast is not None:
            return Outcome(frame(fast[0]), JSON), fast[1]
    if isinstance(codec, OutcomeCodec):
        return codec.pack(result)
    data, media_type = codec.encode(result)
    return Outcome(frame(data), media_type), codec.decode(data, media_type)


def unpack(outcome: Outcome, codec: Codec | OutcomeCodec) -> Any:
    """The result of a stored outcome."""
    if isinstance(codec, OutcomeCodec):
        return codec.unpack(outcome)
    data = outcome.inside if type(outcome) is Unframed else unframe(outcome.data)
    if codec is PLAIN and outcome.media_type == JSON:
        return _FROM_JSON(data)
    return codec.decode(data, outcome.media_type)


def opened(outcome: Outcome) -> Outcome:
    """An outcome that will be unpacked often, its frame checked now; one that is compressed, damaged or without a frame
    stays as it is."""
    if outcome.data[:2] != _PLAIN_FRAME:
        return outcome
    try:
        return Unframed(outcome.data, outcome.media_type, outcome.meta, unframe(outcome.data))
    except RecordDamaged:
        return outcome


def frame(data: bytes) -> bytes:
    """Version, compression, checksum of what follows, size, and the bytes."""
    body, compression = data, _PLAIN
    if len(data) >= COMPRESS_FROM:
        small = zlib.compress(data, 1)
        if len(small) < len(data):
            body, compression = small, _ZLIB
    return _HEAD.pack(_VERSION, compression, zlib.crc32(body), len(data)) + body


def unframe(framed: bytes) -> bytes:
    """The bytes of a frame, checked to be what was framed."""
    if len(framed) < _HEAD_SIZE:
        raise RecordDamaged("A stored result is shorter than its head; forget the record to have the work done again.")
    version, compression, checksum, size = _HEAD.unpack_from(framed)
    if version != _VERSION or compression not in (_PLAIN, _ZLIB):
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


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__qualname__} is not a JSON type")


_TO_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_refuse).encode
_FAST_TO_JSON: Final = msgspec.json.Encoder().encode
_FROM_JSON: Final = msgspec.json.Decoder().decode


_FAST: Final = frozenset({dict, list, type(None)})


def _fast_json(result: Any) -> tuple[bytes, Any] | None:
    """A result as JSON, and as it is read again; None where that is not the same, and it must go the strict way.

    The fast encoder writes more than JSON has types for.
    """
    try:
        data = _FAST_TO_JSON(result)
        decoded = _FROM_JSON(data)
    except (TypeError, ValueError, RecursionError):
        return None
    return (data, decoded) if decoded == result else None


def _refuse_odd_names(value: object) -> None:
    """JSON has only strings for names; turning others into strings could make two of them one."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(name, str):
                raise TypeError(f"a name of type {type(name).__qualname__} is not a JSON name")
            _refuse_odd_names(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_odd_names(item)


def _is_struct(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, msgspec.Struct)


def _pydantic_codec(declared: Any) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    try:
        from pydantic import TypeAdapter
    except ImportError:
        raise NotEncodable(
            f"{declared!r} is no dataclass; results of other types need pydantic: pip install 'sameas[pydantic]'."
        ) from None
    adapter: TypeAdapter[Any] = TypeAdapter(declared)
    return adapter.dump_json, adapter.validate_json
