"""What is asked of Redis, and what its errors mean: scripts on one key, and the few plain commands beside
them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Protocol

import redis
from msgspec import Struct
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from sameas.once.errors import RecordDamaged, StoreError, StoreMisconfigured, StoreUnavailable
from sameas.stores.redis_connection import Request

_SECTION: Final = re.compile(r"^-- script: (\w+)\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"^ *--.*\n", re.MULTILINE)
# Replies that say "not now"; the rest of what a server refuses is for people to look at. Older servers wrap
# what a script met in a message of their own; redis-py takes the word away where it has a class for it.
_NOT_NOW: Final = re.compile(r"\b(OOM|MISCONF|READONLY|LOADING|BUSY|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN)\b")
_NO_DATABASE: Final = re.compile(r"DB index|SELECT is not allowed", re.IGNORECASE)
_NO_RIGHT: Final = (AuthenticationError, AuthorizationError, NoPermissionError)
_NOT_NOW_CLASSES: Final = (OutOfMemoryError, ReadOnlyError, ClusterDownError, TryAgainError)

# What leaves open whether a request was carried out; READONLY comes from a server that is no longer the
# master.
UNCERTAIN: Final = (redis.ConnectionError, redis.TimeoutError, ReadOnlyError, OSError)
Position = tuple[int, int]


class Source(Struct, frozen=True):
    """A script and the name under which a server remembers it."""

    text: bytes
    sha: bytes


class Lua(Struct, frozen=True, gc=False):
    """One script, run on one key. `wait` says how many replicas must have its write."""

    source: Source
    key: bytes
    args: tuple[bytes, ...]
    wait: int = 0


class Heads(Struct, frozen=True):
    """The first bytes of each key, up to its size."""

    keys: Sequence[tuple[bytes, int]]


class Scan(Struct, frozen=True):
    """One step through all keys that fit; answers where to go on (None at the end) and the keys."""

    match: bytes
    count: int
    position: Position = (0, 0)


class Clock(Struct, frozen=True):
    """The server's time in microseconds."""


class Link(Protocol):
    """A way to one server or a cluster, for threads."""

    def call(self, command: Lua) -> Any: ...
    def call_many(self, commands: Sequence[Lua]) -> list[Any]: ...
    def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]: ...
    def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]: ...
    def clock(self) -> int: ...
    def close(self) -> None: ...


class AsyncLink(Protocol):
    """A way to one server or a cluster, for tasks."""

    async def call(self, command: Lua) -> Any: ...
    async def call_many(self, commands: Sequence[Lua]) -> list[Any]: ...
    async def heads(self, keys: Sequence[tuple[bytes, int]]) -> list[bytes]: ...
    async def scan(self, step: Scan) -> tuple[Position | None, list[bytes]]: ...
    async def clock(self) -> int: ...
    async def close(self) -> None: ...


@lru_cache
def sources() -> dict[str, Source]:
    """The scripts of redis.lua by name."""
    return scripts_of(files("sameas.stores").joinpath("redis.lua").read_text("utf-8"))


def scripts_of(lua: str) -> dict[str, Source]:
    """The scripts of a file by name, each with the prelude before it."""
    _, *parts = _SECTION.split(lua)
    texts = {name: _COMMENT.sub("", text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    prelude = texts.pop("prelude")
    made = {}
    for name, text in texts.items():
        whole = (prelude + text).encode()
        made[name] = Source(whole, hashlib.sha1(whole, usedforsecurity=False).hexdigest().encode())
    return made


def remembered(command: Lua) -> Request:
    return ("EVALSHA", command.source.sha, b"1", command.key, *command.args)


def in_full(command: Lua) -> Request:
    return ("EVAL", command.source.text, b"1", command.key, *command.args)


def taught(commands: Sequence[Lua]) -> list[Request]:
    """Requests that need nothing to be known: each script in full the first time, by its name after that."""
    known: set[bytes] = set()
    requests = []
    for command in commands:
        requests.append((remembered if command.source.sha in known else in_full)(command))
        known.add(command.source.sha)
    return requests


def translated(error: BaseException) -> StoreError:
    """What a driver's error means to callers."""
    said = str(error) or "no answer in time"
    if isinstance(error, _NO_RIGHT) or said.startswith(("NOPERM", "NOAUTH", "WRONGPASS")):
        return StoreMisconfigured(f"Redis refuses this user: {said}. Check the user name and password in the URL.")
    if _NO_DATABASE.search(said):
        return StoreMisconfigured(
            f"This Redis has no such database: {said}. Its number is at the end of the URL and must be below the "
            "server's setting `databases`, 16 if nothing is said; a cluster has only 0."
        )
    if "Cluster mode is not enabled" in said:
        return StoreMisconfigured("This Redis is no part of a cluster: open it with redis:// in the URL.")
    if isinstance(error, AskError) or said.startswith(("MOVED", "ASK")):
        return StoreMisconfigured("This Redis is part of a cluster: open it with redis+cluster:// in the URL.")
    if isinstance(error, ResponseError) and not isinstance(error, _NOT_NOW_CLASSES) and not _NOT_NOW.search(said):
        if "SAMEAS-DAMAGED" in said or "WRONGTYPE" in said:
            return RecordDamaged(
                f"A stored record is damaged or of an unknown version ({said}); forget it to have the work done again."
            )
        return StoreError(f"Redis refuses the command: {said}")
    return StoreUnavailable(f"Redis cannot answer now: {said}. Try again later.")


def acknowledged(command: Lua, replies: Sequence[Any]) -> Any:
    """The reply to a script that replicas had to confirm."""
    reply, replicas = replies
    for answer in replies:
        if isinstance(answer, Exception):
            raise answer
    # 0 is a write that was not taken: there is nothing to confirm.
    if reply != 0 and replicas < command.wait:
        raise StoreUnavailable(
            f"The result is on the master, but only {replicas} of {command.wait} replicas confirmed it "
            "in time; a failover now could lose it. Try again later."
        )
    return reply


def head_request(key: bytes, size: int) -> Request:
    """The first bytes of a record."""
    return ("GETRANGE", key, b"0", b"%d" % (size - 1))


def wait_request(replicas: int, milliseconds: int) -> Request:
    """Wait until so many replicas have what was written on this connection."""
    return (b"WAIT", b"%d" % replicas, b"%d" % milliseconds)


def scan_request(step: Scan) -> Request:
    """One step through the keys."""
    return (b"SCAN", b"%d" % step.position[1], b"MATCH", step.match, b"COUNT", b"%d" % step.count)


def scanned(replies: Sequence[Any]) -> tuple[Position | None, list[bytes]]:
    """Where to go on, and the keys that were met."""
    position, keys = _only(replies)
    return (0, int(position)) if int(position) else None, keys


def micros(replies: Sequence[Any]) -> int:
    """The server's clock."""
    seconds, micros = _only(replies)
    return int(seconds) * 1_000_000 + int(micros)


def _only(replies: Sequence[Any]) -> Any:
    (reply,) = replies
    if isinstance(reply, RedisError):
        raise translated(reply) from reply
    return reply
