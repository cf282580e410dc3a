"""Records in Redis: each operation is one script of `redis.lua` on one key, and so one round trip.

The server's clock decides and the server's memory is the truth; what it must be set to is in `redis_health`.

Listing, and forgetting by tenant, scope or tag, walk through all keys with SCAN and read the first bytes of
each record, some 100,000 a second: there is no index that a cluster could keep in step with the records.
Expired records go by themselves, so there is nothing to prune.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from sameas.once.errors import RecordDamaged, StoreError, StoreMisconfigured, StoreUnavailable
from sameas.once.record import (
    LOST,
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    ClaimRequest,
    Identity,
    Lease,
    Mismatch,
    Outcome,
    Record,
    Replay,
)
from sameas.once.script import Command, Script
from sameas.once.store import Backend, Page, Query, Selection, first_of, fits, page_of
from sameas.stores.redis_async_link import AsyncServerLink
from sameas.stores.redis_commands import AsyncLink, Clock, Heads, Link, Lua, Scan, Source, sources
from sameas.stores.redis_health import QUESTIONS, Finding, is_cluster, judge
from sameas.stores.redis_link import ServerLink
from sameas.stores.redis_record import DONE, FAILED, head_size, names_of, outcome_of, record_of
from sameas.stores.redis_waker import RedisWaker

if TYPE_CHECKING:
    from sameas.stores.redis_cluster import ClusterLink

PREFIX: Final = "sameas:"
TIMEOUT: Final = 2.0
MAX_CONNECTIONS: Final = 64

# What one step through the keys looks at.
_SCANNED: Final = 500
# A record goes a little after it expired: a claim still finds the fence of what just did. `GRACE` of redis.lua.
_GRACE_MS: Final = 1_000
# Most records say who, what and how in less; the others are asked again.
_USUAL_HEAD: Final = 1_024


class Many(Struct, frozen=True):
    """Scripts in one go; the reply to one that failed is its error."""

    commands: Sequence[Lua]


class RedisBackend(Backend):
    """The scripts of the Redis store. `skew_micros` moves the clock, for tests."""

    poll_at_most = 1.0

    def __init__(
        self,
        link: Link,
        async_link: AsyncLink,
        *,
        waker: RedisWaker | None = None,
        prefix: str = PREFIX,
        wait: int = 0,
        skew_micros: int = 0,
    ) -> None:
        self.waker: RedisWaker | None = waker
        self.skew_micros = skew_micros
        self._link = link
        self._async_link = async_link
        self._prefix = prefix.encode()
        self._forgotten = self._prefix + b"forgotten"
        self._wait = wait
        scripts = sources()
        self._claim, self._settle = scripts["claim"], scripts["settle"]
        self._renew, self._release = scripts["renew"], scripts["release"]
        self._forget, self._read = scripts["forget"], scripts["read"]

    def claim(self, request: ClaimRequest) -> Script[Claim]:
        retain_for = request.retain_for
        args = (names_of(request), b"%d" % request.lease_for, b"%d" % retain_for, _lasting(retain_for))
        reply = yield self._command(self._claim, request.identity, args)
        if type(reply) is int:
            return Acquired(reply, 1)
        if type(reply) is bytes:
            return Replay(record_of(reply, request.identity))
        match reply[0]:
            case 0:
                return Acquired(reply[1], reply[2])
            case 1:
                return Busy(reply[1], reply[2])
            case _:
                return Mismatch(record_of(reply[1], request.identity).fingerprint)

    def renew(self, lease: Lease, lease_for: int, retain_for: int) -> Script[Answer]:
        args = (b"%d" % lease.fence, lease.attempt_id.encode(), b"%d" % lease_for, b"%d" % retain_for)
        return _answer((yield self._command(self._renew, lease.identity, args)))

    def complete(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settled(DONE, lease, outcome, retain_for)

    def fail(self, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        return self._settled(FAILED, lease, outcome, retain_for)

    def release(self, lease: Lease) -> Script[Answer]:
        args = (b"%d" % lease.fence, lease.attempt_id.encode())
        return _answer((yield self._command(self._release, lease.identity, args)))

    def forget(self, identity: Identity) -> Script[Answer]:
        return _answer((yield self._command(self._forget, identity, (self._forgotten,))))

    def read(self, identity: Identity) -> Script[Record | None]:
        reply = yield self._command(self._read, identity, ())
        return None if reply is None else record_of(reply, identity)

    def forget_where(self, selection: Selection) -> Script[int]:
        wanted = Query(tenant=selection.tenant, scope=selection.scope, tag=selection.tag)
        gone = 0
        step: Scan | None = self._first_step()
        while step is not None:
            step, records = yield from self._step(step)
            fitting = [record for record in records if fits(record, wanted)]
            if fitting:
                replies = yield Many(
                    [self._command(self._forget, record.identity, (self._forgotten,)) for record in fitting]
                )
                for reply in replies:
                    if isinstance(reply, StoreError):
                        raise reply
                gone += sum(reply != 0 for reply in replies)
        return gone

    def find(self, query: Query) -> Script[Page]:
        now = (yield Clock()) + self.skew_micros
        found: list[Record] = []
        step: Scan | None = self._first_step()
        while step is not None:
            step, records = yield from self._step(step)
            # A walk may meet a record twice.
            fitting = {record.identity.digest: record for record in found}
            for record in records:
                if (record.expires_at <= now) is query.expired and fits(record, query):
                    fitting[record.identity.digest] = record
            found = first_of(fitting.values(), query)
        return page_of(found, query)

    def prune(self, limit: int) -> Script[int]:
        """Nothing: the server removes what has expired."""
        yield from ()
        return 0

    def perform(self, command: Command) -> Any:
        return _send(self._link, command)

    def aperform(self, command: Command) -> Coroutine[Any, Any, Any]:
        return _send(self._async_link, command)  # type: ignore[no-any-return]

    def perform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        return self._link.call_many(commands)

    async def aperform_many(self, commands: Sequence[Command]) -> Sequence[Any]:
        return await self._async_link.call_many(commands)

    def close(self) -> None:
        if self.waker is not None:
            self.waker.close()
        self._link.close()

    async def aclose(self) -> None:
        self.close()
        await self._async_link.close()

    def _command(self, source: Source, identity: Identity, args: tuple[bytes, ...], wait: int = 0) -> Lua:
        if self.skew_micros:
            args = (*args, b"%d" % self.skew_micros)
        return Lua(source, self._prefix + identity.digest.hex().encode(), args, wait)

    def _settled(self, state: bytes, lease: Lease, outcome: Outcome, retain_for: int) -> Script[Answer]:
        holder = b"%d" % lease.fence, lease.attempt_id.encode()
        args = (*holder, b"%d" % retain_for, state, outcome_of(outcome), _lasting(retain_for))
        reply = yield self._command(self._settle, lease.identity, args, self._wait)
        return Accepted(reply, reply + retain_for) if type(reply) is int and reply else _answer(reply)

    def _first_step(self) -> Scan:
        escaped = re.sub(rb"([*?\[\]\\])", rb"\\\1", self._prefix)
        return Scan(escaped + b"?" * 64, _SCANNED)

    def _step(self, step: Scan) -> Script[tuple[Scan | None, list[Record]]]:
        """Records without their bytes, and where to go on. What cannot be read is left out: a listing must
        not fail because of one record, or of those of a newer release."""
        position, keys = yield step
        heads: dict[bytes, bytes] = {}
        wanted = dict.fromkeys(keys, _USUAL_HEAD)
        while wanted:
            told = dict(zip(wanted, (yield Heads(list(wanted.items()))), strict=True))
            heads.update(told)
            whole = {key: head_size(head) for key, head in told.items() if len(head) == wanted[key]}
            wanted = {key: size for key, size in whole.items() if size > wanted[key]}
        records = []
        for key, head in heads.items():
            try:
                records.append(record_of(head, digest=bytes.fromhex(key[len(self._prefix) :].decode())))
            except (RecordDamaged, ValueError):
                continue
        return None if position is None else Scan(step.match, step.count, position), records


def _lasting(micros: int) -> bytes:
    """The native expiry, in milliseconds, of what is kept for so long."""
    return b"%d" % ((micros + 999) // 1_000 + _GRACE_MS)


def _answer(reply: Any) -> Answer:
    return LOST if reply == 0 else Accepted(*reply)


def open_backend(
    url: str,
    *,
    strict: bool = True,
    wait: int = 0,
    prefix: str = PREFIX,
    timeout: float = TIMEOUT,
    max_connections: int = MAX_CONNECTIONS,
    skew_micros: int = 0,
) -> RedisBackend:
    """The records of a server (`redis://`, `rediss://`) or of a cluster (`redis+cluster://`, or where it says
    so).

    `strict` refuses a server that evicts records or keeps nothing on disk: now if it can be reached, else as
    soon as it can. `wait` is the number of replicas that must have a result before it counts. `timeout`
    bounds one try of a call, in seconds; there are at most two.
    """
    if wait < 0 or timeout <= 0 or max_connections < 1:
        raise ValueError("wait must not be negative; timeout and max_connections must be positive")
    plain, is_cluster_url = _plain(url)
    bounds: dict[str, Any] = {"timeout": timeout, "at_most": max_connections}
    server = ServerLink(plain, **bounds, strict=strict)
    link: ServerLink | ClusterLink = server
    async_link: AsyncLink
    if is_cluster_url or _says_cluster(server):
        from sameas.stores.redis_cluster import AsyncClusterLink, ClusterLink

        if wait:
            raise StoreMisconfigured("A cluster cannot be asked for replicas with wait=: leave it out.")
        server.close()
        link = ClusterLink(plain, **bounds, strict=strict)
        async_link = AsyncClusterLink(plain, **bounds)
        with suppress(StoreUnavailable):
            link.check()
    else:
        async_link = AsyncServerLink(plain, **bounds, strict=strict)
    waker = RedisWaker(link.connection, prefix=prefix.encode())
    return RedisBackend(link, async_link, waker=waker, prefix=prefix, wait=wait, skew_micros=skew_micros)


def health(url: str, *, timeout: float = TIMEOUT) -> list[Finding]:
    """What is to be said about a server's settings, for people. Of a cluster, the node of the URL is
    asked."""
    link = ServerLink(_plain(url)[0], timeout=timeout, at_most=1, strict=False)
    try:
        return judge(link.exchange(QUESTIONS))
    finally:
        link.close()


def _plain(url: str) -> tuple[str, bool]:
    """The URL as redis-py knows it, and whether it asked for a cluster."""
    scheme, _, rest = url.partition("://")
    kind, _, form = scheme.partition("+")
    if form not in ("", "cluster"):
        raise ValueError(f"{scheme!r} is no way to Redis: use redis, rediss, redis+cluster or rediss+cluster")
    database = urlsplit(url).path.strip("/")
    if database and not database.isdecimal():
        raise ValueError(
            f"{database!r} is no database of Redis: end the URL with its number, such as redis://host:6379/0"
        )
    return f"{kind}://{rest}", form == "cluster"


def _says_cluster(server: ServerLink) -> bool:
    """Whether the server is part of a cluster. One that cannot be reached now is taken for a server of its
    own."""
    try:
        (told,) = server.exchange([(b"INFO", b"server")])
    except StoreUnavailable:
        return False
    return is_cluster(told)


def _send(link: Any, command: Command) -> Any:
    """Have a link do what a command says; what comes back is the reply, or for tasks what is to be awaited for it."""
    kind = type(command)
    if kind is Lua:
        return link.call(command)
    if kind is Many:
        return link.call_many(command.commands)
    if kind is Scan:
        return link.scan(command)
    if kind is Heads:
        return link.heads(command.keys)
    return link.clock()
