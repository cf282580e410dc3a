"""Bodies of requests and responses, held: in memory up to a bound, then in a file without a name.

A request's body is read before anything is claimed. Its size is bounded while it arrives: what is over the limit is
refused before it fills memory or disk.
"""

from __future__ import annotations

import asyncio
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


class NoRoom(OSError):
    """There is no room for a piece of a body; `message` is the one that could not be held."""

    def __init__(self, message: Message) -> None:
        self.message = message
        super().__init__("no room for a body")


class Disconnected(Exception):
    """The client went away before its request was here."""


class Spool:
    """Bytes that are written once and read as often as needed. `is_whole` says that whoever sends them has sent all."""

    __slots__ = ("_file", "_held", "_map", "is_whole", "size")

    def __init__(self, data: bytes = b"") -> None:
        self._held: list[bytes] = [data] if data else []
        self._file: IO[bytes] | None = None
        self._map: mmap | None = None
        self.is_whole = False
        self.size = len(data)

    def write(self, data: bytes) -> None:
        if not data:
            return
        if type(data) is not bytes:
            # A view of memory that its owner may use again as soon as this returns.
            data = bytes(data)
        if self._file is None:
            if self.size + len(data) <= IN_MEMORY:
                self._held.append(data)
                self.size += len(data)
                return
            self._to_disk()
        assert self._file is not None
        _write_all(self._file, data)
        self.size += len(data)

    def _to_disk(self) -> None:
        # Without a buffer, so that what there is no room for is known at once.
        file = TemporaryFile(prefix="sameas-", buffering=0)  # noqa: SIM115  it lives as long as the spool
        try:
            _write_all(file, b"".join(self._held))
        except BaseException:
            file.close()
            raise
        self._file = file
        self._held = []

    @property
    def on_disk(self) -> bool:
        return self._file is not None

    def view(self) -> bytes | mmap:
        """All of it, to search and to hash; from the disk without reading it into memory."""
        if self._file is not None:
            if self._map is None:
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
            yield whole[at : min(at + CHUNK, self.size)]

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


def _write_all(file: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


class GivenBody:
    """A body that was read, given to a handler as a server would give it; then nothing, until the answer is out.

    Where `after` is given, it is what comes after the body, and the rest of one that is not whole; `unheld` is a
    message that came before that.
    """

    __slots__ = ("_after", "_answered", "_is_answered", "_is_given", "_pieces", "_spool", "_unheld")

    def __init__(self, spool: Spool, *, after: Receive | None = None, unheld: Message | None = None) -> None:
        self._spool = spool
        self._after = after
        self._unheld = unheld
        self._pieces: Iterator[bytes] | None = None
        self._is_given = False
        self._is_answered = False
        self._answered: asyncio.Event | None = None

    async def receive(self) -> Message:
        """The next message for the handler."""
        spool = self._spool
        if not self._is_given:
            if not spool.on_disk and spool.is_whole:
                self._is_given = True
                return {"type": "http.request", "body": spool.view(), "more_body": False}
            self._pieces = self._pieces or spool.chunks()
            piece = next(self._pieces, None)
            if piece is not None:
                return {"type": "http.request", "body": piece, "more_body": True}
            self._is_given = True
            if spool.is_whole:
                return {"type": "http.request", "body": b"", "more_body": False}
        if self._unheld is not None:
            message, self._unheld = self._unheld, None
            return message
        if self._after is not None:
            return await self._after()
        if self._answered is None:
            self._answered = asyncio.Event()
            if self._is_answered:
                self._answered.set()
        await self._answered.wait()
        return {"type": "http.disconnect"}

    def answered(self) -> None:
        """The answer is out: a handler that still listens hears that nobody is there any more."""
        self._is_answered = True
        if self._answered is not None:
            self._answered.set()

    def close(self) -> None:
        self._spool.close()


async def read_body(spool: Spool, receive: Receive, *, limit: int, declared: bytes = b"") -> None:
    """Read the body of a request, up to a limit; `declared` is its Content-Length, if it has one."""
    # So many digits are over any limit, and int() refuses more than a few thousand.
    if declared.isdigit() and (len(declared) > 18 or int(declared) > limit):
        raise TooLarge(limit)
    while not spool.is_whole:
        message = await receive()
        if message["type"] != "http.request":
            raise Disconnected
        try:
            spool.write(message.get("body", b""))
        except OSError as error:
            raise NoRoom(message) from error
        spool.is_whole = not message.get("more_body")
        if spool.size > limit:
            raise TooLarge(limit)
