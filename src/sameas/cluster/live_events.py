"""Live events of runs over Redis Streams, from the worker to every node whose clients listen.

Rule: this is a shortcut. Every line was stored as an object before it is published here; line numbers show what is
missing, and a listener that finds a gap, or no Redis, reads the objects. A stream expires an hour after its last line.

    {prefix}:events:{tenant}:{key}   stream: n = number of the first line, f = fence of the writer, d = lines
    {prefix}:ended                   stream: t = tenant, k = key, of runs that have ended
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import redis
import redis.asyncio
from redis.exceptions import RedisError

from sameas.stores.redis_connection import Request
from sameas.stores.redis_link import database_as_text

_LOG = logging.getLogger("sameas.cluster")
PREFIX = "sameas"
_ENDED = f"{PREFIX}:ended"
# As words: see `sameas.stores.redis_connection.pack`.
_KEPT_SECONDS = "3600"
_LINES_AT_MOST = "20000"
_ENDED_AT_MOST = "10000"
_WITHIN = 2.0
# Milliseconds for which a read blocks; a new listener waits no longer than this.
_BLOCK_MS = 200
_REST = 0.5


class RedisEvents:
    """Publishes events, from any thread. A failure is logged, at most once in `_REST` seconds, and raises nothing."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: redis.Redis | None = None
        self._process = 0
        self._lock = threading.Lock()
        self._silent_until = 0.0

    def publish(self, tenant: str, key: str, first: int, lines: list[bytes], *, fence: int) -> None:
        name = stream_name(tenant, key)
        self._do(
            _add(name, _LINES_AT_MOST, "n", str(first), "f", str(fence), "d", b"\n".join(lines)),
            ("EXPIRE", name, _KEPT_SECONDS),
        )

    def ended(self, tenant: str, key: str) -> None:
        self._do(_add(_ENDED, _ENDED_AT_MOST, "t", tenant, "k", key))

    def _do(self, *commands: Request) -> None:
        if time.monotonic() < self._silent_until:
            return
        try:
            with self._connected().pipeline(transaction=False) as pipe:
                for command in commands:
                    pipe.execute_command(*command)
                pipe.execute()
        except (RedisError, OSError) as trouble:
            self._silent_until = time.monotonic() + _REST
            _LOG.warning("live events cannot be published, listeners read the objects: %s", trouble)

    def _connected(self) -> redis.Redis:
        with self._lock:
            # A forked child must not use its parent's connection.
            if self._client is None or self._process != os.getpid():
                self._client = redis.Redis.from_url(
                    self._url, socket_timeout=_WITHIN, socket_connect_timeout=_WITHIN, retry=None, protocol=2
                )
                pool: Any = self._client.connection_pool
                pool.connection_kwargs["db"] = database_as_text(pool)
                self._process = os.getpid()
            return self._client


Heard = Callable[[int, list[bytes], int], None]


class EventReader:
    """Reads all streams that a process listens to, in one task of one event loop."""

    def __init__(self, url: str, *, on_ended: Callable[[str, str], None]) -> None:
        self._client = redis.asyncio.Redis.from_url(
            url, socket_timeout=_WITHIN + _BLOCK_MS / 1000, socket_connect_timeout=_WITHIN
        )
        self._on_ended = on_ended
        self._heard: dict[str, Heard] = {}
        # The id of the last entry that was read, by stream.
        self._places: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.is_hearing = False
        """Whether the last read succeeded, so that new events arrive within moments."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            # A client that is closing a broken connection at this moment keeps the cancellation to itself: about one in
            # fifty, where connections are cut all the time. The loop ends by itself then.
            await asyncio.wait({self._task})
        await self._client.aclose()

    def listen(self, tenant: str, key: str, heard: Heard) -> None:
        """Call `heard` with the number of the first line, the lines, and the fence of their writer, from the beginning
        of the stream; the fence is 0 if an earlier release wrote them.
        """
        name = stream_name(tenant, key)
        self._heard[name] = heard
        self._places[name] = "0"

    def leave(self, tenant: str, key: str) -> None:
        name = stream_name(tenant, key)
        self._heard.pop(name, None)
        self._places.pop(name, None)

    async def _read(self) -> None:
        while not self._is_closed:
            try:
                if _ENDED not in self._places:
                    self._places[_ENDED] = await self._last_end()
                found: Any = await self._client.xread(dict(self._places), count=200, block=_BLOCK_MS)  # type: ignore[arg-type]
            except (RedisError, OSError) as trouble:
                self.is_hearing = False
                _LOG.warning("live events cannot be received, they are read from the objects: %s", trouble)
                await asyncio.sleep(_REST)
                continue
            self.is_hearing = True
            for stream, entries in found or ():
                name = stream.decode()
                if name not in self._places:
                    continue
                for id_, fields in entries:
                    self._places[name] = id_.decode()
                    try:
                        self._deliver(name, fields)
                    except (KeyError, ValueError) as trouble:
                        _LOG.warning("an entry of the stream %s cannot be read: %r", name, trouble)

    async def _last_end(self) -> str:
        """The id of the last entry by now. `$` would mean another one at each read, and an entry between two reads
        would be in neither.
        """
        newest: Any = await self._client.xrevrange(_ENDED, count=1)
        return newest[0][0].decode() if newest else "0"

    def _deliver(self, name: str, fields: dict[bytes, bytes]) -> None:
        if name == _ENDED:
            self._on_ended(fields[b"t"].decode(), fields[b"k"].decode())
        elif (heard := self._heard.get(name)) is not None:
            heard(int(fields[b"n"]), fields[b"d"].split(b"\n"), int(fields.get(b"f", b"0")))


def _add(stream: str, at_most: str, *fields: str | bytes) -> Request:
    return ("XADD", stream, "MAXLEN", "~", at_most, "*", *fields)


def stream_name(tenant: str, key: str) -> str:
    return f"{PREFIX}:events:{tenant}:{key}"
