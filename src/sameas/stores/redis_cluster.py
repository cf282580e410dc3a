"""Talking to a Redis Cluster through redis-py's own routing; each script has one key, so any of them can be
moved.

Commands go one by one to the node of their key. redis-py follows a moved key and asks for the map again by
itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import redis.asyncio.cluster
import redis.cluster
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError
from redis.retry import Retry

from sameas.once.errors import StoreClosed, StoreError, StoreMisconfigured
from sameas.once.forks import renew_after_fork
from sameas.stores.redis_commands import Lua, Position, Scan, head_request, in_full, remembered, translated
from sameas.stores.redis_health import QUESTIONS, refuse

_BROKEN = (RedisError, RedisClusterException, OSError)


def _settings(timeout: float, at_most: int) -> dict[str, Any]:
    return {"socket_timeout": timeout, "socket_connect_timeout": timeout, "max_connections": at_most}


class ClusterLink:
    """A cluster, for threads."""

    def __init__(self, url: str, *, timeout: float, at_most: int, strict: bool) -> None:
        self._url = url
        self._settings = _settings(timeout, at_most)
        self._unchecked = strict
        self._closed = False
        self._client: Any = None
        self._opening = Lock()
        self._inherited: list[Any] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._inherited.append(self._client)
        self._client = None
        self._opening = Lock()

    def check(self) -> None:
        """Find the nodes, and refuse them if they must be."""
        try:
            self._opened()
        except _BROKEN as error:
            raise translated(error) from error

    def connection(self) -> Any:
        """A new connection to some node, not yet open: pub/sub reaches every node."""
        pool = self._opened().get_random_node().redis_connection.connection_pool
        return pool.connection_class(**pool.connection_kwargs)

    def call(self, command: Lua) -> Any:
        _no_wait(command)
        try:
            client = self._opened()
            try:
                return client.execute_command(*remembered(command))
            except NoScriptError:
                return client.execute_command(*in_full(command))
        except _BROKEN as error:
            raise translated(error) from error

    def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        return [_kept(self.call, command) for command in commands]

    def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        try:
            client = self._opened()
            return [_bytes(_answer(client, head_request(key, size))) for key, size in keys]
        except _BROKEN as error:
            raise translated(error) from error

    def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        number, position = step.position
        try:
            nodes = _in_order(self._opened().get_primaries())
            positions, keys = self._opened().scan(
                b"%d" % position, match=step.match, count=b"%d" % step.count, target_nodes=nodes[number]
            )
        except _BROKEN as error:
            raise translated(error) from error
        return _next(number, len(nodes), positions), keys

    def clock(self) -> int:
        try:
            client = self._opened()
            seconds, micros = client.time(target_nodes=client.get_random_node())
        except _BROKEN as error:
            raise translated(error) from error
        return int(seconds) * 1_000_000 + int(micros)

    def close(self) -> None:
        self._closed = True
        if self._client is not None:
            self._client.close()
            self._client = None

    def _opened(self) -> Any:
        if self._closed:
            raise StoreClosed
        with self._opening:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> Any:
        client: Any = redis.cluster.RedisCluster.from_url(
            self._url, protocol=2, retry=Retry(NoBackoff(), 2), **self._settings
        )
        if self._unchecked:
            for node in client.get_primaries():
                refuse([_answer(node.redis_connection, question) for question in QUESTIONS])
            self._unchecked = False
        return client


class AsyncClusterLink:
    """A cluster, for tasks; its settings were checked when the store was opened. Each event loop has its own
    client: close the store in each."""

    def __init__(self, url: str, *, timeout: float, at_most: int) -> None:
        self._url = url
        self._settings = _settings(timeout, at_most)
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[Any]] = WeakKeyDictionary()
        self._inherited: list[Any] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._inherited.append(self._clients)
        self._clients = WeakKeyDictionary()

    async def call(self, command: Lua) -> Any:
        _no_wait(command)
        client = await self._ready()
        try:
            try:
                return await client.execute_command(*remembered(command))
            except NoScriptError:
                return await client.execute_command(*in_full(command))
        except _BROKEN as error:
            raise translated(error) from error

    async def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        calls = (self.call(command) for command in commands)
        return list(await asyncio.gather(*calls, return_exceptions=True))

    async def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        client = await self._ready()
        asked = (client.execute_command(*head_request(key, size)) for key, size in keys)
        try:
            return [_bytes(reply) for reply in await asyncio.gather(*asked, return_exceptions=True)]
        except _BROKEN as error:
            raise translated(error) from error

    async def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        number, position = step.position
        client = await self._ready()
        try:
            nodes = _in_order(client.get_primaries())
            positions, keys = await client.scan(
                b"%d" % position, match=step.match, count=b"%d" % step.count, target_nodes=nodes[number]
            )
        except _BROKEN as error:
            raise translated(error) from error
        return _next(number, len(nodes), positions), keys

    async def clock(self) -> int:
        client = await self._ready()
        try:
            seconds, micros = await client.time(target_nodes=client.get_random_node())
        except _BROKEN as error:
            raise translated(error) from error
        return int(seconds) * 1_000_000 + int(micros)

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        opening = self._clients.pop(loop, None)
        if opening is not None and opening.done() and opening.exception() is None:
            await opening.result().aclose()

    async def _ready(self) -> Any:
        """The client of this loop. The first caller opens it and the others wait: redis-py's own opening is not made
        for several tasks at once."""
        loop = asyncio.get_running_loop()
        if loop in self._closed:
            raise StoreClosed
        opening = self._clients.get(loop)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._clients[loop] = loop.create_task(self._open())
        try:
            return await asyncio.shield(opening)
        except _BROKEN as error:
            raise translated(error) from error

    async def _open(self) -> Any:
        client: Any = redis.asyncio.cluster.RedisCluster.from_url(
            self._url, protocol=2, retry=Retry(NoBackoff(), 2), **self._settings
        )
        return await client.initialize()


def _no_wait(command: Lua) -> None:
    if command.wait:
        raise StoreMisconfigured("A cluster is asked for replicas node by node, which wait= cannot do: leave it out.")


def _in_order(nodes: Sequence[Any]) -> list[Any]:
    """The nodes in an order that stays, so that a position means the same at the next step."""
    return sorted(nodes, key=lambda node: str(node.name))


def _next(number: int, nodes: int, positions: dict[str, int]) -> Position | None:
    (position,) = positions.values()
    if position:
        return number, int(position)
    return (number + 1, 0) if number + 1 < nodes else None


def _kept(call: Any, command: Lua) -> Any:
    try:
        return call(command)
    except StoreError as error:
        return error


def _answer(client: Any, question: Sequence[Any]) -> Any:
    try:
        return client.execute_command(*question)
    except ResponseError as error:
        return error


def _bytes(reply: Any) -> bytes:
    """A string, or nothing for a key of another type."""
    if isinstance(reply, bytes):
        return reply
    if isinstance(reply, ResponseError):
        return b""
    raise reply
