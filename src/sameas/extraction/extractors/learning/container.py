"""A file of numbers and names that can be trusted: a mark, a digest, and compressed MessagePack. Never
pickle.

A file that is cut short, changed, of another kind or of a newer layout is refused with what to do.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from sameas.identity.errors import SameasError

_DIGEST = 32
_LARGEST = 64 * 1024 * 1024
Content = TypeVar("Content", bound=msgspec.Struct)


class ContainerError(SameasError, ValueError):
    """The file is not what it should be."""


def digest_of(content: msgspec.Struct) -> str:
    """The digest of a content, equal for equal content."""
    return hashlib.sha256(msgspec.msgpack.encode(content)).hexdigest()


def pack(content: msgspec.Struct, *, mark: bytes) -> bytes:
    """The bytes of a file with this content."""
    payload = msgspec.msgpack.encode(content)
    return mark + hashlib.sha256(payload).digest() + zlib.compress(payload, 9)


def unpack(data: bytes, kind: type[Content], *, mark: bytes, source: str) -> Content:
    """The content of a file's bytes."""
    if not data.startswith(mark):
        raise ContainerError(f"{source} is not a file of this kind, or of another version of it; learn it again")
    digest = data[len(mark) : len(mark) + _DIGEST]
    inflater = zlib.decompressobj()
    try:
        payload = inflater.decompress(data[len(mark) + _DIGEST :], _LARGEST)
    except zlib.error as error:
        raise ContainerError(f"{source} is damaged ({error}); learn it again") from error
    if not inflater.eof or hashlib.sha256(payload).digest() != digest:
        raise ContainerError(f"{source} is damaged or cut short: its digest does not match; learn it again")
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except msgspec.MsgspecError as error:
        raise ContainerError(f"{source} has an unknown layout ({error}); learn it again") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
