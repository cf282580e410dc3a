"""Runs that workers elsewhere do: sent to them, waited for, and sent again when their message is gone.

Rule: a run is written down before it is sent, so that a broker that is away or loses a message costs time only. Whether
a run has ended is said by what was written down; word of it over Redis makes that quicker. A run that nobody holds
and for which no message waits is sent again, by every server that looks: of two messages one finds the claim taken.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sameas.cluster.broker import RUN, Broker, Priority, QueueState
from sameas.identity.errors import SameasError
from sameas.once.record import Record, State
from sameas.server.runs.pending_runs import PendingObjects

_LOG = logging.getLogger("sameas.server")
# Seconds: a run that was seen waiting for so long may have lost its message.
_SETTLES = 3.0
# A message may wait behind others for as long as this before it is taken for lost.
_LOST_AFTER = 600.0
_SENT_AGAIN_AFTER = 15.0
# Seconds between two looks at what is written down, without word of ends and with it; and how much longer than a look.
_LOOK_EVERY, _LOOK_WITH_WORD = 0.3, 2.0
_TIMES_ITSELF = 20


class _Waiting(NamedTuple):
    """Since when this process knows that a run waits, and when it last sent it, by the monotonic clock."""

    since: float
    sent_at: float
    priority: Priority = "batch"


class Dispatch:
    """Sends runs to workers. Lives in the background loop."""

    def __init__(
        self,
        broker: Broker,
        pending_runs: PendingObjects,
        *,
        record: Callable[[str, str], Awaitable[Record | None]],
        hears_ends: Callable[[], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._broker = broker
        self._pending_runs = pending_runs
        self._record = record
        self._hears_ends = hears_ends
        self._clock = clock
        self._known: dict[tuple[str, str], _Waiting] = {}
        self._ends: defaultdict[tuple[str, str], set[asyncio.Event]] = defaultdict(set)
        self._looking: asyncio.Task[None] | None = None
        self.queue = QueueState(0, 0)
        self.oldest_seconds = 0.0

    @property
    def waiting(self) -> int:
        """How many runs were written down and have not ended, at the last look."""
        return len(self._known)

    async def do(self, space: str, key: str, *, priority: Priority) -> None:
        """Have a run done by whoever is free. Returns when it has a result, or nothing is written down of it any
        longer: it has ended without one, or was cancelled.
        """
        heard = asyncio.Event()
        # Before it is sent: a worker may be quick.
        self._ends[space, key].add(heard)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            await self._send(space, key, priority)
            while True:
                await heard.wait()
                heard.clear()
                try:
                    record = await self._record(space, key)
                    is_done = record is not None and record.state is State.DONE
                    if is_done or not await asyncio.to_thread(self._pending_runs.has, space, key):
                        self._known.pop((space, key), None)
                        return
                except SameasError as trouble:
                    _LOG.warning("whether the run %s has ended cannot be told yet: %s", key, trouble)
        finally:
            events = self._ends[space, key]
            events.discard(heard)
            if not events:
                del self._ends[space, key]

    async def _send(self, space: str, key: str, priority: Priority) -> None:
        """Send a run; a broker that is away is told later."""
        now = time.monotonic()
        self._known[space, key] = _Waiting(now, now, priority)
        try:
            await asyncio.to_thread(self._broker.send, RUN, space, key, priority=priority)
        except SameasError as trouble:
            self._known[space, key] = _Waiting(now, now - _SENT_AGAIN_AFTER, priority)
            _LOG.warning("the run %s is sent to workers later: %s", key, trouble)

    def hear_end(self, space: str, key: str) -> None:
        """A run has ended somewhere."""
        for event in self._ends.get((space, key), ()):
            event.set()

    async def _look(self) -> None:
        """Wake up those who wait for what is not written down any more, whether word of it came or not: with one look
        for all of them, however many they are.
        """
        took = 0.0
        while True:
            await asyncio.sleep(max(_LOOK_WITH_WORD if self._hears_ends() else _LOOK_EVERY, _TIMES_ITSELF * took))
            if not self._ends:
                continue
            # Whoever begins to wait from here on is not taken for ended.
            waited_for, began = set(self._ends), time.monotonic()
            try:
                there = {place for place, _ in await asyncio.to_thread(self._pending_runs.places)}
            except SameasError as trouble:
                _LOG.warning("which runs have ended cannot be told yet: %s", trouble)
                continue
            took = time.monotonic() - began
            for place in waited_for - there:
                self.hear_end(*place)

    async def reap(self) -> int:
        """Send again what waits, is held by nobody and has no message; returns how many."""
        self.queue = await asyncio.to_thread(self._broker.look)
        places = await asyncio.to_thread(self._pending_runs.places)
        now, sent = time.monotonic(), 0
        self._known = {place: self._known.get(place, _Waiting(now, now - _SENT_AGAIN_AFTER)) for place, _ in places}
        begun = [self._clock() - modified_at for _, modified_at in places]
        self.oldest_seconds = max(0.0, max(begun, default=0.0))
        for (space, key), known in list(self._known.items()):
            if now - known.since < _SETTLES or now - known.sent_at < _SENT_AGAIN_AFTER:
                continue
            if self.queue.waiting and now - known.sent_at < _LOST_AFTER:
                continue
            record = await self._record(space, key)
            if record is not None and record.state is State.HELD and record.lease_until / 1e6 > self._clock():
                continue
            await asyncio.to_thread(self._broker.send, RUN, space, key, priority=known.priority)
            self._known[space, key] = known._replace(sent_at=now)
            sent += 1
        return sent

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await asyncio.to_thread(self._broker.close)
