"""One open connection to Redis, spoken to directly: bytes out, bytes in, hiredis between.

redis-py makes the connection (TLS, passwords, time-outs); what its client and connection do around each
command takes longer than the socket and the server together. A wire carries one caller's requests at a time;
one that broke, or whose caller went away before the reply, is not used again.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, cast

import hiredis
import redis
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError, ResponseError

Request = tuple[bytes | str, ...]

# Never a number: hiredis 3.5 ends the process if a signal's handler raises while it packs a number.
pack = cast(Callable[[Request], bytes], hiredis.pack_command)

_READ_SIZE: Final = 65_536
_CLOSED: Final = "the server closed the connection"
_TOO_LATE: Final = "no answer in time"
_CLASSES: Final = {"NOSCRIPT": NoScriptError, "READONLY": ReadOnlyError}


class RedisConnection:
    """A connection of redis-py that is open, and all that is needed to talk over it."""

    __slots__ = ("_buffer", "_connection", "_reader", "_socket")

    def __init__(self, connection: Any) -> None:
        connection.connect()
        self._connection = connection
        self._socket = connection._sock
        _wait_in_the_kernel(self._socket)
        self._reader: Any = _new_reader()
        self._buffer = bytearray(_READ_SIZE)

    def ask(self, packed: bytes) -> Any:
        """One request and its reply; a refusal is raised."""
        reader, buffer, peer = self._reader, self._buffer, self._socket
        try:
            peer.sendall(packed)
            reply = False
            while reply is False:
                size = peer.recv_into(buffer)
                if size == 0:
                    raise redis.ConnectionError(_CLOSED)
                reader.feed(buffer, 0, size)
                reply = reader.gets()
        except BlockingIOError:
            raise redis.TimeoutError(_TOO_LATE) from None
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def ask_many(self, requests: Sequence[Request]) -> list[Any]:
        """Requests in one go; the reply to one that was refused is its error."""
        try:
            self._socket.sendall(b"".join(map(pack, requests)))
            return [self._read() for _ in requests]
        except BlockingIOError:
            raise redis.TimeoutError(_TOO_LATE) from None

    def close(self) -> None:
        self._connection.disconnect()

    def _read(self) -> Any:
        reply = self._reader.gets()
        # In this version of the protocol no reply is false.
        while reply is False:
            size = self._socket.recv_into(self._buffer)
            if size == 0:
                raise redis.ConnectionError(_CLOSED)
            self._reader.feed(self._buffer, 0, size)
            reply = self._reader.gets()
        return reply


class AsyncRedisConnection(asyncio.Protocol):
    """`RedisConnection`, for tasks: the event loop hands what arrives straight to hiredis."""

    def __init__(self, connection: Any) -> None:
        self._loop = asyncio.get_running_loop()
        # Kept, because a stream that is thrown away closes its transport.
        self._stream = connection._writer
        self._transport: Any = connection._writer.transport
        connection._writer = connection._reader = None
        self._reader: Any = _new_reader()
        self._replies: list[Any] = []
        self._wanted = 0
        self._answered: asyncio.Future[list[Any]] | None = None
        self._due = 0.0
        self._watching = False
        self.broken = False
        self._transport.set_protocol(self)

    @classmethod
    async def open(cls, connection: Any) -> Self:
        try:
            await connection.connect()
            return cls(connection)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    @property
    def usable(self) -> bool:
        """Whether another may have it: a reply that is still to come must not meet the next caller."""
        return not self.broken and self._answered is None

    def ask(self, packed: bytes, *, within: float, count: int = 1) -> asyncio.Future[list[Any]]:
        """So many requests, and the replies to come; the reply to one that was refused is its error."""
        if self.broken:
            raise redis.ConnectionError(_CLOSED)
        loop = self._loop
        self._answered = answered = loop.create_future()
        self._replies, self._wanted = [], count
        self._due = loop.time() + within
        # One timer for all that is asked meanwhile: to set and unset one each time takes longer than to look again.
        if not self._watching:
            self._watching = True
            loop.call_later(within, self._look)
        self._transport.write(packed)
        return answered

    def close(self) -> None:
        self.broken = True
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        replies, reader = self._replies, self._reader
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                replies.append(reply)
        except RedisError as error:
            self._fail(error)
            return
        answered = self._answered
        if answered is not None and len(replies) >= self._wanted and not answered.done():
            self._answered = None
            answered.set_result(replies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(redis.ConnectionError(_CLOSED if exc is None else str(exc)))

    def _look(self) -> None:
        self._watching = False
        if self._answered is None or self.broken:
            return
        left = self._due - self._loop.time()
        if left > 0:
            self._watching = True
            self._loop.call_later(left, self._look)
        else:
            self._fail(redis.TimeoutError(_TOO_LATE))

    def _fail(self, error: Exception) -> None:
        self.broken = True
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(error)


def _wait_in_the_kernel(peer: Any) -> None:
    """Leave the time-out of a plain socket to the kernel; Python's own is a further system call before each other."""
    seconds = peer.gettimeout()
    if type(peer) is not socket.socket or seconds is None:
        return
    whole, part = divmod(round(seconds * 1_000_000), 1_000_000)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        peer.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", whole, part))
    peer.settimeout(None)


def _new_reader() -> Any:
    return hiredis.Reader(protocolError=redis.ConnectionError, replyError=refused)


def refused(said: str) -> ResponseError:
    """A server's refusal, with its word still in front."""
    return _CLASSES.get(said.partition(" ")[0], ResponseError)(said)
