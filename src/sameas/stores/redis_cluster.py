"""Talking to a Redis Cluster through redis-py's own routing; each script has one key, so any of them can be
moved.

A command goes to the node of its key; redis-py follows a moved one and asks for the map again by itself. Of many
commands each node gets its own in one go, on one connection; what it does not have any more, or does not answer,
has one more chance when redis-py has looked for it. At most so many callers talk to the cluster at once, each on one
connection to a node; the others wait for their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from threading import Lock, Semaphore
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import redis.asyncio.cluster
import redis.cluster
from msgspec import Struct
from redis.asyncio.cluster import PipelineCommand
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterDownError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from sameas.once.errors import StoreClosed, StoreMisconfigured, StoreUnavailable
from sameas.once.forks import renew_after_fork
from sameas.once.script import Script, arun, run
from sameas.stores.redis_commands import Lua, Position, Scan, head_request, in_full, remembered, translated
from sameas.stores.redis_connection import Request, pack
from sameas.stores.redis_health import QUESTIONS, refuse
from sameas.stores.redis_link import ALL_IN_USE

_BROKEN = (RedisError, RedisClusterException, OSError)
# Replies that say that it is somewhere else, or that nobody was there.
_ELSEWHERE = (AskError, TryAgainError, ClusterDownError, RedisClusterException, redis.ConnectionError)
_ELSEWHERE_OR_SILENT = (*_ELSEWHERE, redis.TimeoutError, OSError)
# For redis-py's own questions about the map.
_SPARE: Final = 1


class Asked(Struct, frozen=True):
    """A request and the key that says which node it is for; `in_full` is for a node that does not know its script."""

    key: bytes
    request: Request
    in_full: Request | None = None


class Together(Struct, frozen=True):
    """Requests, those of each node in one go; the reply to one that was refused or got none is its error."""

    asked: Sequence[Asked]


def _of(command: Lua) -> Asked:
    _no_wait(command)
    return Asked(command.key, remembered(command), in_full(command))


def _head_of(key: bytes, size: int) -> Asked:
    return Asked(key, head_request(key, size))


def _all(asked: Sequence[Asked]) -> Script[list[Any]]:
    """The replies to many: in one go, and what is somewhere else now once more."""
    replies: list[Any] = list((yield Together(asked)))
    elsewhere = [number for number, reply in enumerate(replies) if isinstance(reply, _ELSEWHERE_OR_SILENT)]
    if elsewhere:
        first, *others = elsewhere
        # redis-py finds out for one, and has a new map then.
        replies[first] = yield asked[first]
        if not isinstance(replies[first], _ELSEWHERE_OR_SILENT):
            again = yield Together([asked[number] for number in others])
            for number, reply in zip(others, again, strict=True):
                replies[number] = reply
    unknown = [number for number, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        again = yield Together([Asked(asked[number].key, asked[number].in_full or ()) for number in unknown])
        for number, reply in zip(unknown, again, strict=True):
            replies[number] = reply
    # A slot that is just on its way has some keys here and some there.
    for number, reply in enumerate(replies):
        if isinstance(reply, (AskError, TryAgainError)):
            replies[number] = yield asked[number]
    return replies


class ClusterLink:
    """A cluster, for threads."""

    def __init__(self, url: str, *, timeout: float, at_most: int, strict: bool) -> None:
        self._url = url
        self._timeout = timeout
        self._at_most = at_most
        self._unchecked = strict
        self._closed = False
        self._client: Any = None
        self._opening = Lock()
        self._places = Semaphore(at_most)
        self._inherited: list[Any] = []
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._inherited.append(self._client)
        self._client = None
        self._opening = Lock()
        self._places = Semaphore(self._at_most)

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
        asked = _of(command)
        with self._place():
            return _alone(self._opened(), asked)

    def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        return [_told(reply) for reply in self._replies([_of(command) for command in commands])]

    def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        return [_head(reply) for reply in self._replies([_head_of(key, size) for key, size in keys])]

    def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        number, position = step.position
        with self._place():
            nodes = _in_order(self._opened().get_primaries())
            positions, keys = self._opened().scan(
                b"%d" % position, match=step.match, count=b"%d" % step.count, target_nodes=nodes[number]
            )
        return _next(number, len(nodes), positions), keys

    def clock(self) -> int:
        with self._place():
            client = self._opened()
            seconds, micros = client.time(target_nodes=client.get_random_node())
        return int(seconds) * 1_000_000 + int(micros)

    def close(self) -> None:
        self._closed = True
        if self._client is not None:
            self._client.close()
            self._client = None

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A place among those who talk to the cluster; what goes wrong there is translated."""
        places = self._places
        if not places.acquire(timeout=self._timeout):
            raise StoreUnavailable(ALL_IN_USE.format(self._at_most))
        try:
            yield
        except _BROKEN as error:
            raise translated(error) from error
        finally:
            places.release()

    def _replies(self, asked: Sequence[Asked]) -> list[Any]:
        with self._place():
            return run(_all(asked), self._perform)

    def _perform(self, command: Together | Asked) -> Any:
        client = self._opened()
        if isinstance(command, Together):
            return _each_node(client, command.asked)
        try:
            return _alone(client, command)
        except _BROKEN as error:
            return error

    def _opened(self) -> Any:
        if self._closed:
            raise StoreClosed
        with self._opening:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> Any:
        client: Any = redis.cluster.RedisCluster.from_url(self._url, **_settings(self._timeout, self._at_most))
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
        self._timeout = timeout
        self._at_most = at_most
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()
        self._inherited: list[Any] = []
        self._renew()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._inherited.append(self._clients)
        self._renew()

    def _renew(self) -> None:
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Future[Any]] = WeakKeyDictionary()
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def call(self, command: Lua) -> Any:
        asked = _of(command)
        async with self._client() as client:
            return await _alone_async(client, asked)

    async def call_many(self, commands: Sequence[Lua]) -> list[Any]:
        return [_told(reply) for reply in await self._replies([_of(command) for command in commands])]

    async def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]:
        return [_head(reply) for reply in await self._replies([_head_of(key, size) for key, size in keys])]

    async def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]:
        number, position = step.position
        async with self._client() as client:
            nodes = _in_order(client.get_primaries())
            positions, keys = await client.scan(
                b"%d" % position, match=step.match, count=b"%d" % step.count, target_nodes=nodes[number]
            )
        return _next(number, len(nodes), positions), keys

    async def clock(self) -> int:
        async with self._client() as client:
            seconds, micros = await client.time(target_nodes=client.get_random_node())
        return int(seconds) * 1_000_000 + int(micros)

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        opening = self._clients.pop(loop, None)
        if opening is not None and opening.done() and opening.exception() is None:
            await opening.result().aclose()

    async def _replies(self, asked: Sequence[Asked]) -> list[Any]:
        async with self._client() as client:

            async def perform(command: Together | Asked) -> Any:
                if isinstance(command, Together):
                    return await _each_node_async(client, command.asked)
                try:
                    return await _alone_async(client, command)
                except _BROKEN as error:
                    return error

            return await arun(_all(asked), perform)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[Any]:
        """The client of this loop, and a place among those who talk to the cluster; what goes wrong is translated."""
        loop = asyncio.get_running_loop()
        places = self._places.get(loop)
        if places is None:
            places = self._places[loop] = asyncio.Semaphore(self._at_most)
        try:
            async with asyncio.timeout(self._timeout):
                await places.acquire()
        except TimeoutError:
            raise StoreUnavailable(ALL_IN_USE.format(self._at_most)) from None
        try:
            yield await self._ready(loop)
        except _BROKEN as error:
            raise translated(error) from error
        finally:
            places.release()

    async def _ready(self, loop: asyncio.AbstractEventLoop) -> Any:
        """The client of this loop. The first caller opens it and the others wait: redis-py's own opening is not made
        for several tasks at once."""
        if loop in self._closed:
            raise StoreClosed
        opening = self._clients.get(loop)
        if opening is None or (opening.done() and opening.exception() is not None):
            opening = self._clients[loop] = loop.create_task(self._open())
        return await asyncio.shield(opening)

    async def _open(self) -> Any:
        client: Any = redis.asyncio.cluster.RedisCluster.from_url(self._url, **_settings(self._timeout, self._at_most))
        return await client.initialize()


def _settings(timeout: float, at_most: int) -> dict[str, Any]:
    return {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 2),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "max_connections": at_most + _SPARE,
    }


def _alone(client: Any, asked: Asked) -> Any:
    try:
        return client.execute_command(*asked.request)
    except NoScriptError:
        return client.execute_command(*asked.in_full or ())


async def _alone_async(client: Any, asked: Asked) -> Any:
    try:
        return await client.execute_command(*asked.request)
    except NoScriptError:
        return await client.execute_command(*asked.in_full or ())


def _by_node(client: Any, asked: Sequence[Asked], replies: list[Any]) -> dict[Any, list[int]]:
    """The numbers of the requests for each node; one for nobody has its error."""
    of_node: dict[Any, list[int]] = {}
    for number, each in enumerate(asked):
        try:
            of_node.setdefault(client.get_node_from_key(each.key), []).append(number)
        except _BROKEN as error:
            replies[number] = error
    return of_node


def _each_node(client: Any, asked: Sequence[Asked]) -> list[Any]:
    """All nodes are told before one is heard: a slow one keeps no lease of another waiting."""
    replies: list[Any] = [None] * len(asked)
    speaking: list[tuple[Any, Any, list[int]]] = []
    heard = 0
    try:
        for node, numbers in _by_node(client, asked, replies).items():
            try:
                pool = client.get_redis_connection(node).connection_pool
                connection = pool.get_connection()
                speaking.append((pool, connection, numbers))
                connection.send_packed_command([b"".join(pack(asked[number].request) for number in numbers)])
            except _BROKEN as error:
                for number in numbers:
                    replies[number] = error
        for _, connection, numbers in speaking:
            for number in numbers:
                if replies[number] is None:
                    replies[number] = _heard(connection)
            heard += 1
        return replies
    finally:
        for at, (pool, connection, _) in enumerate(speaking):
            if at >= heard:
                # Replies are still to come, which must not meet the next caller.
                connection.disconnect()
            pool.release(connection)


def _heard(connection: Any) -> Any:
    try:
        return connection.read_response()
    except _BROKEN as error:
        return error


async def _each_node_async(client: Any, asked: Sequence[Asked]) -> list[Any]:
    replies: list[Any] = [None] * len(asked)

    async def tell(node: Any, numbers: list[int]) -> None:
        commands = [PipelineCommand(number, *asked[number].request) for number in numbers]
        try:
            await node.execute_pipeline(commands)
        except _BROKEN as error:
            for number in numbers:
                replies[number] = error
        else:
            for command in commands:
                replies[command.position] = command.result

    await asyncio.gather(*(tell(*each) for each in _by_node(client, asked, replies).items()))
    return replies


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


def _told(reply: Any) -> Any:
    return translated(reply) if isinstance(reply, _BROKEN) else reply


def _answer(client: Any, question: Sequence[Any]) -> Any:
    try:
        return client.execute_command(*question)
    except ResponseError as error:
        return error


def _head(reply: Any) -> bytes:
    """A string, or nothing for a key of another type."""
    if isinstance(reply, bytes):
        return reply
    if isinstance(reply, ResponseError):
        return b""
    raise translated(reply) from reply
