"""Talking to one Redis server, for threads: bounded connections, one immediate try on a new connection, errors
translated once.

redis-py opens the connections (TLS, passwords, URLs); its own retries are off, because they would report
one's own write as lost. Sending again is safe here: every script knows the attempt that asks. Only a release
or a forget that was applied without an answer says "lost" the second time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import redis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from sameas.once.errors import StoreClosed, StoreMisconfigured, StoreUnavailable
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
from sameas.stores.redis_connection import RedisConnection, Request, pack
from sameas.stores.redis_health import QUESTIONS, refuse

# Whatever the URL says: replies are bytes, and arrive only when asked for.
ALWAYS: Final = {"protocol": 2, "decode_responses": False}
ALL_IN_USE: Final = "All {} connections to Redis are in use; raise max_connections, or try again later."


def database_as_text(pool: Any) -> str:
    """The database of a pool of redis-py, which would hand its number to hiredis (see `pack`); the first needs no
    word."""
    return str(pool.connection_kwargs.get("db") or "")


def made(make: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """A connection of redis-py, which finds out only here what a URL asks of it."""
    try:
        return make(**settings)
    except (TypeError, ValueError) as error:
        raise StoreMisconfigured(f"The URL of Redis has an option that cannot be used: {error}.") from error


class ServerLink:
    """Connections to one server for threads: kept for reuse, one per caller at a time, at most so many."""

    def __init__(self, url: str, *, timeout: float, at_most: int, strict: bool) -> None:
        pool = redis.ConnectionPool.from_url(url, retry=None, socket_timeout=timeout, socket_connect_timeout=timeout)
        self._make: Callable[..., Any] = pool.connection_class
        self._settings = {**pool.connection_kwargs, **ALWAYS, "db": database_as_text(pool)}
        self._timeout = timeout
        self._wait_ms = int(timeout * 500)
        self._at_most = at_most
        self._strict = self._unchecked = strict
        self._closed = False
        self._idle: list[RedisConnection] = []
        self._inherited: list[list[RedisConnection]] = []
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
        return made(self._make, self._settings)

    def call(self, command: Lua) -> Any:
        # What nearly always happens is said here at once: an idle connection, a script that the server knows.
        if command.wait or not self._idle:
            return self._call_twice(command)
        try:
            wire = self._idle.pop()
        except IndexError:
            return self._call_twice(command)
        try:
            reply = wire.ask(pack((b"EVALSHA", command.source.sha, b"1", command.key, *command.args)))
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
        replies = self.exchange([head_request(key, size) for key, size in keys])
        return [reply if isinstance(reply, bytes) else b"" for reply in replies]

    def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        return scanned(self.exchange([scan_request(step)]))

    def clock(self) -> int:
        return micros(self.exchange([(b"TIME",)]))

    def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """Many requests in one go; the reply to one that was refused is its error."""
        try:
            return self._exchange(self._take(), requests)
        except UNCERTAIN:
            self._drop_idle()
        except RedisError as error:
            raise translated(error) from error
        try:
            return self._exchange(self._take(), requests)
        except (RedisError, OSError) as error:
            raise translated(error) from error

    def close(self) -> None:
        self._closed = True
        # For ever: who gives a connection back has to look, and it is closed then.
        self._waiting += 1
        self._drop_idle()

    def _call_after(self, error: BaseException, wire: RedisConnection, command: Lua) -> Any:
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
            waiting = wait_request(command.wait, self._wait_ms)
            replies = self._exchange(self._take(), [remembered(command), waiting])
            if isinstance(replies[0], NoScriptError):
                replies = self._exchange(self._take(), [in_full(command), waiting])
            return acknowledged(command, replies)
        wire = self._take()
        try:
            try:
                reply = wire.ask(pack((b"EVALSHA", command.source.sha, b"1", command.key, *command.args)))
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

    def _exchange(self, wire: RedisConnection, requests: Sequence[Request]) -> list[Any]:
        try:
            replies = wire.ask_many(requests)
        except BaseException:
            self._discard(wire)
            raise
        self._give_back(wire)
        return replies

    def _take(self) -> RedisConnection:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        if self._closed:
            raise StoreClosed
        with self._freed:
            if self._open >= self._at_most:
                self._wait_for_one()
            # Others take from the list without the lock, so it is asked, not looked at.
            with suppress(IndexError):
                return self._idle.pop()
            self._open += 1
        wire = None
        try:
            wire = RedisConnection(self.connection())
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
                    raise StoreUnavailable(ALL_IN_USE.format(self._at_most))
        finally:
            self._waiting -= 1

    def _give_back(self, wire: RedisConnection) -> None:
        self._idle.append(wire)
        if self._waiting:
            self._tell_one()

    def _tell_one(self) -> None:
        if self._closed:
            self._drop_idle()
        with self._freed:
            self._freed.notify()

    def _discard(self, wire: RedisConnection | None) -> None:
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
