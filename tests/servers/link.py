"""One connection through the fault proxy: a client's socket, the server's socket, and a pump each way.

A link lives in the proxy's event loop only. It fails once: cut and reset end it, half-open leaves it dead.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, fields
from typing import Literal, Protocol

Side = Literal["client", "server"]
Action = Literal["cut", "reset", "half_open"]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES = 1 << 16
# Linger for zero seconds: closing sends RST instead of FIN.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Counts:
    """What passed; `exchanges` counts the times that the server answered after a client spoke."""

    connections: int = 0
    client_messages: int = 0
    server_messages: int = 0
    client_bytes: int = 0
    server_bytes: int = 0
    exchanges: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, field.name) - getattr(other, field.name) for field in fields(self)))


@dataclass(slots=True, eq=False)
class Trigger:
    """A fault to come: after `left` more messages of the side (None is either)."""

    side: Side | None
    left: int
    action: Action
    everywhere: bool = False
    forwards: bool = False


class Faults(Protocol):
    """What a link asks of its proxy."""

    def count(self, seen: Counts) -> None: ...
    def due(self, side: Side) -> Trigger | None: ...
    def break_off(self, action: Action) -> None: ...
    async def hold_back(self) -> None: ...


class Link:
    """A client's connection and the server connection made for it."""

    def __init__(self, faults: Faults, *, client: Streams, target: tuple[str, int]) -> None:
        self._faults = faults
        self._target = target
        self._streams: dict[Side, Streams] = {"client": client}
        self._is_half_open = False
        self._ended: set[Side] = set()
        self._last_spoke: Side = "server"
        self._over = asyncio.Event()

    async def carry(self, mode: Action | None) -> None:
        """Pass bytes until both sides have ended or a fault ends the link."""
        if mode is not None:
            self.fail(mode)
        elif not await self._connect():
            return
        over = asyncio.create_task(self._until_over())
        pumps = [asyncio.create_task(self._pump(side)) for side in self._streams]
        both = asyncio.create_task(_until_done(pumps))
        try:
            await asyncio.wait((over, both), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (over, both, *pumps):
                task.cancel()
            await asyncio.gather(over, both, *pumps, return_exceptions=True)

    def fail(self, action: Action) -> None:
        """Take the fault; what was in flight is lost."""
        if action == "half_open":
            self._is_half_open = True
            return
        if action == "reset":
            self._set_reset()
        self.close()

    def end_if_deserted(self) -> None:
        """A dead link whose client is gone has nobody left to deceive."""
        if self._is_half_open and "client" in self._ended:
            self.close()

    def close(self) -> None:
        """Close both sockets without waiting for what was not yet sent."""
        self._over.set()
        for _, writer in self._streams.values():
            writer.transport.abort()

    async def _connect(self) -> bool:
        try:
            self._streams["server"] = await asyncio.open_connection(*self._target)
        except OSError:
            self.fail("reset")
            return False
        for _, writer in self._streams.values():
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A message counts as passed on only when the kernel has all of it.
            writer.transport.set_write_buffer_limits(high=0)
        # A fault may have come while the connection was being made.
        if self._over.is_set():
            self.close()
            return False
        return True

    async def _pump(self, side: Side) -> None:
        reader, _ = self._streams[side]
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await self._pass_on(side, chunk)
        except ConnectionError:
            if not self._is_half_open:
                self.fail("reset")
        self._ended.add(side)
        if self._is_half_open:
            # The other side must not learn of it.
            await self._until_over()
        _, writer = self._streams[_other(side)]
        # A half-close is part of some protocols, so it is carried as such.
        with contextlib.suppress(OSError, RuntimeError):
            if not writer.is_closing():
                writer.write_eof()

    async def _pass_on(self, side: Side, chunk: bytes) -> None:
        self._faults.count(self._seen(side, chunk))
        trigger = None if self._is_half_open else self._faults.due(side)
        if trigger is None or trigger.forwards:
            await self._faults.hold_back()
            await self._forward(side, chunk)
        if trigger is not None:
            if trigger.everywhere:
                self._faults.break_off(trigger.action)
            else:
                self.fail(trigger.action)

    async def _forward(self, side: Side, chunk: bytes) -> None:
        # Asked only now: the fault may have come while the message was held back.
        if self._is_half_open or self._over.is_set():
            return
        _, writer = self._streams[_other(side)]
        writer.write(chunk)
        await writer.drain()

    def _seen(self, side: Side, chunk: bytes) -> Counts:
        answered = side == "server" and self._last_spoke == "client"
        self._last_spoke = side
        if side == "client":
            return Counts(client_messages=1, client_bytes=len(chunk))
        return Counts(server_messages=1, server_bytes=len(chunk), exchanges=int(answered))

    async def _until_over(self) -> None:
        await self._over.wait()

    def _set_reset(self) -> None:
        for _, writer in self._streams.values():
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


async def _until_done(pumps: list[asyncio.Task[None]]) -> None:
    await asyncio.wait(pumps)


def _other(side: Side) -> Side:
    return "server" if side == "client" else "client"
