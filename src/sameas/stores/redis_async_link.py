"""Talking to one Redis server, for tasks; see `redis_link`. Each event loop has connections of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import redis.asyncio
from redis.exceptions import NoScriptError, RedisError

from sameas.once.errors import StoreClosed, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.stores.redis_commands import (
    UNCERTAIN,
    Lua,
    Position,
    Scan,
    acknowledged,
    head_request,
    in_full,
    micros,
    remembered,
    scan_request,
    scanned,
    taught,
    translated,
    wait_request,
)
from sameas.stores.redis_connection import AsyncRedisConnection, Request, pack
from sameas.stores.redis_health import QUESTIONS, refuse
from sameas.stores.redis_link import ALL_IN_USE, ALWAYS, made


class _Loop:
    """The connections of one event loop."""

    def __init__(self, running: asyncio.AbstractEventLoop) -> None:
        self.running = running
        self.idle: list[AsyncRedisConnection] = []
        self.open = 0
        self.closed = False
        self.waiting: deque[asyncio.Future[None]] = deque()

    def freed(self) -> None:
        """Let one of those who wait look again."""
        while self.waiting:
            waiter = self.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


class AsyncServerLink:
    """Connections to one server for tasks. Each event loop has its own; close the store in each."""

    def __init__(self, url: str, *, timeout: float, at_most: int, strict: bool) -> None:
        pool = redis.asyncio.ConnectionPool.from_url(
            url, retry=None, socket_timeout=timeout, socket_connect_timeout=timeout
        )
        self._make: Callable[..., Any] = pool.connection_class
        self._settings = {**pool.connection_kwargs, **ALWAYS}
        self._timeout = timeout
        self._wait_ms = int(timeout * 500)
        self._at_most = at_most
        self._strict = self._unchecked = strict
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()
        self._last: _Loop | None = None
        self._inherited: list[Any] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._inherited.append(self._loops)
        self._loops = WeakKeyDictionary()
        self._last = None

    async def call(self, command: Lua) -> Any:
        loop = self._loop()
        try:
            # What nearly always happens is said here at once: an idle connection, a script that the server knows.
            if command.wait or not loop.idle:
                return await self._call(loop, command)
            wire = loop.idle.pop()
            try:
                packed = pack((b"EVALSHA", command.source.sha, b"1", command.key, *command.args))
                (reply,) = await wire.ask(packed, within=self._timeout)
            finally:
                self._give_back(loop, wire)
            if not isinstance(reply, RedisError):
                return reply
            if isinstance(reply, NoScriptError):
                return await self._call(loop, command)
            raise reply
        except UNCERTAIN:
            self._drop_idle(loop)
        except RedisError as error:
            raise translated(error) from error
        try:
            return await self._call(loop, command)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    async def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        replies = await self.exchange([remembered(command) for command in commands])
        unknown = [number for number, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            again = await self.exchange(taught([commands[number] for number in unknown]))
            for number, reply in zip(unknown, again, strict=True):
                replies[number] = reply
        return [translated(reply) if isinstance(reply, RedisError) else reply for reply in replies]

    async def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        replies = await self.exchange([head_request(key, size) for key, size in keys])
        return [reply if isinstance(reply, bytes) else b"" for reply in replies]

    async def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        return scanned(await self.exchange([scan_request(step)]))

    async def clock(self) -> int:
        return micros(await self.exchange([(b"TIME",)]))

    async def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """Many requests in one go; the reply to one that was refused is its error."""
        loop = self._loop()
        try:
            return await self._exchange(loop, requests)
        except UNCERTAIN:
            self._drop_idle(loop)
        except RedisError as error:
            raise translated(error) from error
        try:
            return await self._exchange(loop, requests)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    async def close(self) -> None:
        loop = self._loop()
        loop.closed = True
        self._drop_idle(loop)
        # The loop closes a socket in the turn after it was told to.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def _loop(self) -> _Loop:
        running = asyncio.get_running_loop()
        # The loop that asked last is nearly always the only one: looking it up costs more than the rest.
        if self._last is not None and self._last.running is running:
            return self._last
        loop = self._loops.get(running)
        if loop is None:
            loop = self._loops[running] = _Loop(running)
        self._last = loop
        return loop

    async def _call(self, loop: _Loop, command: Lua) -> Any:
        waiting = [wait_request(command.wait, self._wait_ms)] if command.wait else []
        replies = await self._exchange(loop, [remembered(command), *waiting])
        if isinstance(replies[0], NoScriptError):
            replies = await self._exchange(loop, [in_full(command), *waiting])
        if waiting:
            return acknowledged(command, replies)
        if isinstance(replies[0], RedisError):
            raise replies[0]
        return replies[0]

    async def _exchange(self, loop: _Loop, requests: Sequence[Request]) -> list[Any]:
        wire = await self._take(loop)
        try:
            return await wire.ask(b"".join(map(pack, requests)), within=self._timeout, count=len(requests))
        finally:
            self._give_back(loop, wire)

    async def _take(self, loop: _Loop) -> AsyncRedisConnection:
        try:
            async with asyncio.timeout(self._timeout):
                while not loop.idle and loop.open >= self._at_most:
                    await self._wait_for_one(loop)
        except TimeoutError:
            raise StoreUnavailable(ALL_IN_USE.format(self._at_most)) from None
        if loop.idle:
            return loop.idle.pop()
        if loop.closed:
            raise StoreClosed
        loop.open += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._connect()
        except BaseException:
            loop.open -= 1
            loop.freed()
            raise

    async def _wait_for_one(self, loop: _Loop) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        loop.waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            # It may have been told just now: then it is the next one's turn.
            if waiter.done() and not waiter.cancelled():
                loop.freed()
            raise

    async def _connect(self) -> AsyncRedisConnection:
        wire = await AsyncRedisConnection.open(made(self._make, self._settings))
        try:
            if self._unchecked:
                questions = b"".join(map(pack, QUESTIONS))
                refuse(await wire.ask(questions, within=self._timeout, count=len(QUESTIONS)))
                self._unchecked = False
        except BaseException:
            wire.close()
            raise
        return wire

    def _give_back(self, loop: _Loop, wire: AsyncRedisConnection) -> None:
        if wire.usable and not loop.closed:
            loop.idle.append(wire)
        else:
            wire.close()
            loop.open -= 1
        if loop.waiting:
            loop.freed()

    def _drop_idle(self, loop: _Loop) -> None:
        self._unchecked = self._strict
        while loop.idle:
            loop.idle.pop().close()
            loop.open -= 1
        loop.freed()
