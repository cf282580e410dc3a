"""Bodies of requests and responses, held: in memory up to a bound, then in a file without a name.

A request's body is read before anything is claimed. Its size is bounded while it arrives: what is over the limit is
refused before it fills memory or disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import IO, Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

# What is held in memory; the rest goes to disk.
IN_MEMORY: Final = 256 * 1_024
CHUNK: Final = 64 * 1_024


class TooLarge(Exception):
    """More bytes than are allowed."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"more than {limit} bytes")


class Disconnected(Exception):
    """The client went away before its request was here."""


class Spool:
    """Bytes that are written once and read as often as needed."""

    __slots__ = ("_file", "_held", "_map", "size")

    def __init__(self, data: bytes = b"") -> None:
        self._held: list[bytes] = [data] if data else []
        self._file: IO[bytes] | None = None
        self._map: mmap | None = None
        self.size = len(data)

    def write(self, data: bytes) -> None:
        if not data:
            return
        self.size += len(data)
        if self._file is None:
            self._held.append(data)
            if self.size <= IN_MEMORY:
                return
            self._file = TemporaryFile(prefix="sameas-")  # noqa: SIM115  it lives as long as the spool
            data = b"".join(self._held)
            self._held = []
        self._file.write(data)

    @property
    def on_disk(self) -> bool:
        return self._file is not None

    def view(self) -> bytes | mmap:
        """All of it, to search and to hash; from the disk without reading it into memory."""
        if self._file is not None:
            if self._map is None:
                self._file.flush()
                self._map = mmap(self._file.fileno(), 0, access=ACCESS_READ)
            return self._map
        if len(self._held) > 1:
            self._held = [b"".join(self._held)]
        return self._held[0] if self._held else b""

    def start(self, size: int) -> bytes:
        """The first bytes of it."""
        return self.view()[:size]

    def chunks(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        if self._file is None:
            yield from self._held
            return
        whole = self.view()
        for at in range(0, self.size, CHUNK):
            yield whole[at : at + CHUNK]

    def digest(self) -> bytes:
        """SHA-256."""
        if self._file is None:
            return hashlib.sha256(self.view()).digest()
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.digest()

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file is not None:
            self._file.close()


async def read_body(receive: Receive, *, limit: int, declared: bytes = b"") -> Spool:
    """The whole body of a request; `declared` is its Content-Length, if it has one."""
    # So many digits are over any limit, and int() refuses more than a few thousand.
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise TooLarge(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body = message.get("body", b"")
        if len(body) > limit:
            raise TooLarge(limit)
        return Spool(body)
    spool = Spool()
    try:
        await _read_into(spool, message, receive, limit)
    except BaseException:
        spool.close()
        raise
    return spool


async def _read_into(spool: Spool, message: Message, receive: Receive, limit: int) -> None:
    while message["type"] == "http.request":
        spool.write(message.get("body", b""))
        if spool.size > limit:
            raise TooLarge(limit)
        if not message.get("more_body"):
            return
        message = await receive()
    raise Disconnected
