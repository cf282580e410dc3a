"""Word to every process of the service: an ontology was updated, a run is to be cancelled, a cache was cleared.

Rule: a notice is a document in the store, so it is never lost, and every process reads each once, in order. Where the
store can tell others (Redis by publish, PostgreSQL by NOTIFY), they look at once; beneath it, and everywhere else, they
look every `EVERY` seconds, which bounds how late a notice can be. Notices are kept by the hour, so that old ones go by
themselves; clocks may differ by five minutes. They are an append-only log of numbered records (`AppendLog`), as the
registries of ontologies are: of two that add at once one gets the number.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from sameas.identity.ids import uuid7
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import Codec, TypedCodec, unpack
from sameas.once.errors import RecordDamaged, ResultDoesNotFit, SameasError
from sameas.once.policy import HOUR, MINUTE
from sameas.once.record import State
from sameas.stores.tiered import Announcing

# Seconds after which another process has heard of a notice at the latest, besides the store's own time.
EVERY = 0.25
# However many records are forgotten, the store is not asked more often than this.
_AT_MOST_EVERY = 0.02
_SCOPE = "sameas.notices"
_NOBODY = "~sameas"
_KEPT = 3 * HOUR
_CLOCKS_DIFFER_BY = 5 * MINUTE

_LOG = logging.getLogger("sameas.server")


NoticeType: TypeAlias = Literal[
    "ontology-updated", "ontology-deleted", "cache-cleared", "run-removed", "run-deleted", "cancel-run", "unreadable"
]


class Notice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What happened, for whom; `id` tells two alike apart."""

    type: NoticeType
    id: str
    tenant: str
    timestamp: int
    shared: bool = False
    ontology_id: str = ""
    old_version: str | None = None
    new_version: str | None = None
    key: str = ""
    reason: str = ""


Heard = Callable[[Notice], None]


def notice(kind: NoticeType, **fields: Any) -> Notice:
    """A notice of this moment."""
    return Notice(type=kind, id=str(uuid7()), timestamp=int(time.time() * 1000), **fields)


class Broadcast:
    """Publishes, and tells `heard` of every notice of any process, this one included. Lives in the background loop."""

    def __init__(
        self, engine: AsyncEngine, heard: Heard, *, every: float = EVERY, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._heard = heard
        self._every = every
        self._clock = clock
        # By the hour: the number of the last notice that was read.
        self._places: dict[int, int] = {}
        self._lock = asyncio.Lock()
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stop_watching: Callable[[], None] | None = None

    async def start(self) -> None:
        """Listen from now on; what was said before is of no use to a process that has nothing in memory."""
        await self.look(silently=True)
        self._watch()
        self._task = asyncio.create_task(self._listen())

    async def close(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def publish(self, notice: Notice) -> None:
        """Tell everybody; on return the notice is in the store and this process has heard it."""
        hour = self._hour()
        append_log = self._append_log(hour)
        async with self._lock:
            await self._drain()
            number = self._places.get(hour, 0) + 1
            while (there := await append_log.add(notice, number=number)).id != notice.id:
                self._emit(there)
                number += 1
            self._places[hour] = number
            self._emit(notice)
        await self._notify()

    async def look(self, *, silently: bool = False) -> None:
        """Read what is new."""
        async with self._lock:
            await self._drain(silently=silently)

    async def _drain(self, *, silently: bool = False) -> None:
        for hour in self._hours():
            append_log = self._append_log(hour)
            number = self._places.get(hour, 0)
            while (notice := await self._read(append_log, number + 1)) is not None:
                number += 1
                self._places[hour] = number
                if not silently:
                    self._emit(notice)
        for hour in [hour for hour in self._places if hour < self._hour() - 1]:
            del self._places[hour]

    async def _read(self, append_log: AppendLog[Notice], number: int) -> Notice | None:
        try:
            return await append_log.read(number)
        except (RecordDamaged, ResultDoesNotFit) as trouble:
            # Of another release, or damaged: whatever it said, nothing in memory is believed any longer.
            _LOG.warning("notice %d cannot be read: %s", number, trouble)
            return Notice(type="unreadable", id="", tenant="", timestamp=0)

    async def _listen(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._bell.wait(), self._every)
                await asyncio.sleep(_AT_MOST_EVERY)
            except TimeoutError:
                pass
            self._bell.clear()
            try:
                await self.look()
            except SameasError as trouble:
                _LOG.warning("notices could not be read: %s", trouble)
                await asyncio.sleep(1.0)

    async def _notify(self) -> None:
        """Have a store that tells of forgotten records tell of one."""
        if self._stop_watching is None:
            return
        key = str(uuid7())
        await self._engine.run(lambda _: "", scope=_SCOPE, key=key, tenant=_NOBODY, retention=60.0, namespace="client")
        await self._engine.forget(_SCOPE, key, tenant=_NOBODY, namespace="client")

    def _watch(self) -> None:
        waker: object = self._engine.store.backend.waker
        if isinstance(waker, Announcing):
            loop = asyncio.get_running_loop()

            def drop(_: bytes | None) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(self._bell.set)

            self._stop_watching = waker.watch(drop)

    def _emit(self, notice: Notice) -> None:
        try:
            self._heard(notice)
        except Exception:
            _LOG.exception("a notice of type %s was not acted on", notice.type)

    def _hours(self) -> list[int]:
        """The hours that others may be in: this one, and near its ends the one beside it."""
        now = self._clock()
        return sorted({int(moment // HOUR) for moment in (now - _CLOCKS_DIFFER_BY, now, now + _CLOCKS_DIFFER_BY)})

    def _hour(self) -> int:
        return int(self._clock() // HOUR)

    def _append_log(self, hour: int) -> AppendLog[Notice]:
        return AppendLog(self._engine, Notice, scope=f"{_SCOPE}.{hour}", tenant=_NOBODY, retention=_KEPT)


T = TypeVar("T")


class AppendLog(Generic[T]):
    """The documents of one type under one name of one tenant, numbered from 1 without gaps.

    Number n + 1 is a record of the once engine, so of two processes that add at the same time one gets the number and
    the other reads what is there and takes the next. Nothing is ever changed; reading one number is one round trip in
    every kind of store.
    """

    def __init__(
        self, engine: AsyncEngine, kind: type[T], *, scope: str, tenant: str, retention: float | None = None
    ) -> None:
        self._engine = engine
        self._kind = kind
        self._codec: Codec = TypedCodec(kind)
        self._scope = scope
        self._tenant = tenant
        self._retention = retention

    async def read(self, number: int) -> T | None:
        """The document of a number, if it is there yet."""
        record = await self._engine.read(self._scope, _key(number), tenant=self._tenant, namespace="content")
        if record is None or record.state is not State.DONE or record.outcome is None:
            return None
        document: T = unpack(record.outcome, self._codec)
        return document

    async def last(self) -> tuple[int, T | None]:
        """The highest number and its document, found in as many reads as the number has binary digits, twice; 0 and
        None where there is nothing. Documents that expire make gaps: a chain that is asked this must live longer than
        its use.
        """
        low, last, step = 0, None, 1
        while (found := await self.read(low + step)) is not None:
            low, last, step = low + step, found, 2 * step
        # The last is below `low + step`, which is not there.
        while step > 1:
            step //= 2
            found = await self.read(low + step)
            if found is not None:
                low, last = low + step, found
        return low, last

    async def add(self, document: T, *, number: int) -> T:
        """Put the document under this number; gives what is there in the end, which may be another's."""

        def here(_: object) -> T:
            return document

        found: T = await self._engine.run(
            here,
            scope=self._scope,
            key=_key(number),
            tenant=self._tenant,
            namespace="content",
            retention=self._retention,
            result_type=self._kind,
        )
        return found


def _key(number: int) -> str:
    return f"{number:012d}"
