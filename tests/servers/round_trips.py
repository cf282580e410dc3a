"""Requests counted where they arrive, not where they were meant.

`RoundTrips` counts answered exchanges on the wire, for any protocol behind the fault proxy. `RedisRequests`
lists the commands that clients sent to a Redis, as the server's own MONITOR tells them; what a script calls
is not among them.
"""

import uuid
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import redis
from redis.client import Monitor

from tests.servers.proxy import FaultProxy

# What redis-py sends once per connection, before the first request of its user.
CONNECTION_SETUP = frozenset({"AUTH", "HELLO", "CLIENT", "SELECT", "READONLY", "COMMAND"})


class RoundTrips:
    """Counts the exchanges through a proxy during a `with` block."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._before = proxy.counts
        self._after = proxy.counts

    @property
    def count(self) -> int:
        """How often the server answered after a client spoke."""
        return (self._after - self._before).exchanges

    def __enter__(self) -> Self:
        self._before = self._proxy.counts
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._after = self._proxy.counts


@dataclass(frozen=True, slots=True)
class Request:
    """One command as the server received it."""

    name: str
    text: str


class RedisRequests:
    """Lists the commands of all clients of a Redis during a `with` block; read them after it."""

    def __init__(self, url: str, *, ignoring: Iterable[str] = CONNECTION_SETUP) -> None:
        self._client = redis.Redis.from_url(url)
        self._monitor: Monitor | None = None
        self._ignored = frozenset(name.upper() for name in ignoring)
        self._stack = ExitStack()
        self._requests: tuple[Request, ...] = ()

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every command, in the order of the server."""
        return self._requests

    @property
    def names(self) -> "Counter[str]":
        """How often each command was sent."""
        return Counter(request.name for request in self._requests)

    def __enter__(self) -> Self:
        self._stack.enter_context(self._client)
        self._client.ping()
        self._monitor = self._stack.enter_context(Monitor(self._client.connection_pool))  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            if kind is None:
                # The server tells commands in order: when the mark is seen, all before it have been.
                mark = uuid.uuid4().hex
                self._client.echo(mark)
                self._requests = tuple(self._read_until(mark))

    def _read_until(self, mark: str) -> Iterable[Request]:
        assert self._monitor is not None
        while True:
            told = self._monitor.next_command() or {}  # type: ignore[no-untyped-call]
            text = str(told.get("command"))
            if mark in text:
                return
            name = text.split(" ", 1)[0].upper()
            if told.get("client_type") != "lua" and name not in self._ignored:
                yield Request(name=name, text=text)
