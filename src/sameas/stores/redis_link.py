"""Talking to one Redis server: bounded connections, one immediate try on a new connection, errors translated
once.

redis-py opens the connections (TLS, passwords, URLs); its own retries are off, because they would report
one's own write as lost. Sending again is safe here: every script knows the attempt that asks. Only a release
or a forget that was applied without an answer says "lost" the second time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from redis.exceptions import NoScriptError, RedisError, ResponseError

from sameas.once.errors import StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.stores.redis_commands import (
    UNCERTAIN,
    Lua,
    Position,
    Scan,
    acknowledged,
    in_full,
    remembered,
    taught,
    translated,
)
from sameas.stores.redis_health import QUESTIONS, refuse
from sameas.stores.redis_wire import AsyncWire, Request, Wire, pack

# Whatever the URL says: replies are bytes, and arrive only when asked for.
_ALWAYS: Final = {"protocol": 2, "decode_responses": False}
_ALL_IN_USE: Final = "All {} connections to Redis are in use; raise max_connections, or try again later."


class ServerLink:
    """Connections to one server for threads: kept for reuse, one per caller at a time, at most so many."""

    def __init__(self, url: str, *, timeout: float, at_most: int, strict: bool) -> None:
        pool = redis.ConnectionPool.from_url(url, retry=None, socket_timeout=timeout, socket_connect_timeout=timeout)
        self._make: Callable[..., Any] = pool.connection_class
        self._settings = {**pool.connection_kwargs, **_ALWAYS}
        self._timeout = timeout
        self._wait_ms = int(timeout * 500)
        self._at_most = at_most
        self._strict = self._unchecked = strict
        self._idle: list[Wire] = []
        self._inherited: list[list[Wire]] = []
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        # Not even closed: a parent's connection must not be touched by its child.
        self._inherited.append(self._idle)
        self._renew()

    def _renew(self) -> None:
        self._idle = []
        self._freed = threading.Condition()
        self._waiting = 0
        self._open = 0

    def connection(self) -> Any:
        """A new connection, not yet open, for whoever wants one of their own."""
        return self._make(**self._settings)

    def call(self, command: Lua) -> Any:
        # What nearly always happens is said here at once: an idle connection, a script that the server knows.
        if command.wait or not self._idle:
            return self._call_twice(command)
        try:
            wire = self._idle.pop()
        except IndexError:
            return self._call_twice(command)
        try:
            reply = wire.ask(pack((b"EVALSHA", command.source.sha, 1, command.key, *command.args)))
        except BaseException as error:
            return self._call_after(error, wire, command)
        self._idle.append(wire)
        # Whoever waits counted itself before it looked, so this is not missed.
        if self._waiting:
            self._tell_one()
        return reply

    def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        replies = self.exchange([remembered(command) for command in commands])
        unknown = [number for number, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        if unknown:
            again = self.exchange(taught([commands[number] for number in unknown]))
            for number, reply in zip(unknown, again, strict=True):
                replies[number] = reply
        return [translated(reply) if isinstance(reply, RedisError) else reply for reply in replies]

    def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        replies = self.exchange([(b"GETRANGE", key, 0, size - 1) for key, size in keys])
        return [reply if isinstance(reply, bytes) else b"" for reply in replies]

    def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        return _scanned(self.exchange([_scan(step)]))

    def clock(self) -> int:
        return _micros(self.exchange([(b"TIME",)]))

    def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """Many requests in one go; the reply to one that was refused is its error."""
        try:
            return self._exchange(self._take(), requests)
        except UNCERTAIN:
            self._drop_idle()
        try:
            return self._exchange(self._take(), requests)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    def close(self) -> None:
        self._drop_idle()

    def _call_after(self, error: BaseException, wire: Wire, command: Lua) -> Any:
        """What there is still to try after an error on an idle connection."""
        if isinstance(error, UNCERTAIN):
            self._discard(wire)
            self._drop_idle()
            return self._call_once(command)
        if not isinstance(error, ResponseError):
            self._discard(wire)
            raise error
        self._give_back(wire)
        if isinstance(error, NoScriptError):
            return self._call_twice(command)
        raise translated(error) from error

    def _call_twice(self, command: Lua) -> Any:
        try:
            return self._call(command)
        except UNCERTAIN:
            self._drop_idle()
        except RedisError as error:
            raise translated(error) from error
        return self._call_once(command)

    def _call_once(self, command: Lua) -> Any:
        try:
            return self._call(command)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    def _call(self, command: Lua) -> Any:
        if command.wait:
            waiting = ("WAIT", command.wait, self._wait_ms)
            replies = self._exchange(self._take(), [remembered(command), waiting])
            if isinstance(replies[0], NoScriptError):
                replies = self._exchange(self._take(), [in_full(command), waiting])
            return acknowledged(command, replies)
        wire = self._take()
        try:
            try:
                reply = wire.ask(pack((b"EVALSHA", command.source.sha, 1, command.key, *command.args)))
            except NoScriptError:
                reply = wire.ask(pack(in_full(command)))
        except ResponseError:
            self._give_back(wire)
            raise
        except BaseException:
            self._discard(wire)
            raise
        self._give_back(wire)
        return reply

    def _exchange(self, wire: Wire, requests: Sequence[Request]) -> list[Any]:
        try:
            replies = wire.ask_many(requests)
        except BaseException:
            self._discard(wire)
            raise
        self._give_back(wire)
        return replies

    def _take(self) -> Wire:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        with self._freed:
            if self._open >= self._at_most:
                self._wait_for_one()
            # Others take from the list without the lock, so it is asked, not looked at.
            with suppress(IndexError):
                return self._idle.pop()
            self._open += 1
        wire = None
        try:
            wire = Wire(self.connection())
            if self._unchecked:
                refuse(wire.ask_many(QUESTIONS))
                self._unchecked = False
        except BaseException:
            self._discard(wire)
            raise
        return wire

    def _wait_for_one(self) -> None:
        deadline = monotonic() + self._timeout
        self._waiting += 1
        try:
            while not self._idle and self._open >= self._at_most:
                left = deadline - monotonic()
                if left <= 0 or not self._freed.wait(left):
                    raise StoreUnavailable(_ALL_IN_USE.format(self._at_most))
        finally:
            self._waiting -= 1

    def _give_back(self, wire: Wire) -> None:
        self._idle.append(wire)
        if self._waiting:
            self._tell_one()

    def _tell_one(self) -> None:
        with self._freed:
            self._freed.notify()

    def _discard(self, wire: Wire | None) -> None:
        if wire is not None:
            wire.close()
        with self._freed:
            self._open -= 1
            self._freed.notify()

    def _drop_idle(self) -> None:
        """After a broken connection the others are probably broken too, and the server may be another one."""
        self._unchecked = self._strict
        while self._idle:
            try:
                wire = self._idle.pop()
            except IndexError:
                return
            self._discard(wire)


class _Loop:
    """The connections of one event loop."""

    def __init__(self, running: asyncio.AbstractEventLoop) -> None:
        self.running = running
        self.idle: list[AsyncWire] = []
        self.open = 0
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
        self._settings = {**pool.connection_kwargs, **_ALWAYS}
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
                packed = pack((b"EVALSHA", command.source.sha, 1, command.key, *command.args))
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
        replies = await self.exchange([(b"GETRANGE", key, 0, size - 1) for key, size in keys])
        return [reply if isinstance(reply, bytes) else b"" for reply in replies]

    async def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        return _scanned(await self.exchange([_scan(step)]))

    async def clock(self) -> int:
        return _micros(await self.exchange([(b"TIME",)]))

    async def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """Many requests in one go; the reply to one that was refused is its error."""
        loop = self._loop()
        try:
            return await self._exchange(loop, requests)
        except UNCERTAIN:
            self._drop_idle(loop)
        try:
            return await self._exchange(loop, requests)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    async def close(self) -> None:
        self._drop_idle(self._loop())
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
        waiting = [("WAIT", command.wait, self._wait_ms)] if command.wait else []
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

    async def _take(self, loop: _Loop) -> AsyncWire:
        try:
            async with asyncio.timeout(self._timeout):
                while not loop.idle and loop.open >= self._at_most:
                    await self._wait_for_one(loop)
        except TimeoutError:
            raise StoreUnavailable(_ALL_IN_USE.format(self._at_most)) from None
        if loop.idle:
            return loop.idle.pop()
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

    async def _connect(self) -> AsyncWire:
        wire = await AsyncWire.open(self._make(**self._settings))
        try:
            if self._unchecked:
                questions = b"".join(map(pack, QUESTIONS))
                refuse(await wire.ask(questions, within=self._timeout, count=len(QUESTIONS)))
                self._unchecked = False
        except BaseException:
            wire.close()
            raise
        return wire

    def _give_back(self, loop: _Loop, wire: AsyncWire) -> None:
        if wire.usable:
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


def _scan(step: Scan) -> Request:
    return (b"SCAN", step.position[1], b"MATCH", step.match, b"COUNT", step.count)


def _scanned(replies: Sequence[Any]) -> tuple[Position | None, list[bytes]]:
    position, keys = _only(replies)
    return (0, int(position)) if int(position) else None, keys


def _micros(replies: Sequence[Any]) -> int:
    seconds, micros = _only(replies)
    return int(seconds) * 1_000_000 + int(micros)


def _only(replies: Sequence[Any]) -> Any:
    (reply,) = replies
    if isinstance(reply, RedisError):
        raise translated(reply) from reply
    return reply
