"""Runs that workers do: sent to them, waited for, and sent again when their message is gone.

Rule: the request of a run is stored before the run is sent, so that a broker that is down or loses a message costs time
only. A run has ended when it has a result or its request is gone; a notice over Redis only makes that known sooner. A
run that nobody holds and that has no message is sent again, by every server that looks: of two messages one finds the
claim taken.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sameas.cluster.broker import RUN, Broker, Priority, QueueState
from sameas.identity.errors import SameasError
from sameas.once.record import Record, State
from sameas.server.runs.pending_runs import PendingObjects

_LOG = logging.getLogger("sameas.server")
# Seconds after which a waiting run may have lost its message.
_SETTLES = 3.0
# Seconds that a message may wait behind others before it counts as lost.
_LOST_AFTER = 600.0
_SENT_AGAIN_AFTER = 15.0
# Seconds for messages that are on their way when a node stops.
_SENT_WITHIN = 5.0
# Seconds between two listings of the requests, without notices of ends and with them; and how many times as long as a
# listing takes.
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
        # What is to be sent, in a thread of its own: a slow broker keeps no other blocking work waiting.
        self._outbox: dict[tuple[str, str], Priority] = {}
        self._posting: asyncio.Task[None] | None = None
        self._sender = ThreadPoolExecutor(1, thread_name_prefix="sameas-broker")
        self.queue = QueueState(0, 0)
        self.oldest_seconds = 0.0

    @property
    def waiting(self) -> int:
        """How many accepted runs had not ended at the last look."""
        return len(self._known)

    def post(self, space: str, key: str, *, priority: Priority) -> None:
        """Send a run soon, and wait for nothing; if the broker is down, `reap` sends it later."""
        now = time.monotonic()
        self._known[space, key] = _Waiting(now, now, priority)
        self._outbox[space, key] = priority
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post())

    async def _post(self) -> None:
        loop = asyncio.get_running_loop()
        while self._outbox:
            messages, self._outbox = self._outbox, {}
            left = await loop.run_in_executor(self._sender, self._send, messages)
            for place in left:
                if (known := self._known.get(place)) is not None:
                    self._known[place] = known._replace(sent_at=known.sent_at - _SENT_AGAIN_AFTER)

    def _send(self, messages: Mapping[tuple[str, str], Priority]) -> list[tuple[str, str]]:
        """Send runs; gives those that the broker did not take."""
        left = []
        for (space, key), priority in messages.items():
            try:
                self._broker.send(RUN, space, key, priority=priority)
            except SameasError as trouble:
                left.append((space, key))
                _LOG.warning("the run %s is sent to workers later: %s", key, trouble)
        return left

    async def do(self, space: str, key: str, *, priority: Priority) -> Record | None:
        """Have any free worker do a run. Returns when it has a result, with the record of it, or when its request is
        gone because it ended without one or was cancelled.
        """
        heard = asyncio.Event()
        # Before it is sent: a worker may be done at once.
        self.watch(space, key, heard)
        try:
            self.post(space, key, priority=priority)
            while True:
                await heard.wait()
                heard.clear()
                try:
                    record = await self._record(space, key)
                    is_done = record is not None and record.state is State.DONE
                    if is_done or not await asyncio.to_thread(self._pending_runs.has, space, key):
                        self._known.pop((space, key), None)
                        return record
                except SameasError as trouble:
                    _LOG.warning("whether the run %s has ended cannot be told yet: %s", key, trouble)
        finally:
            self.leave(space, key, heard)

    def watch(self, space: str, key: str, wanted: asyncio.Event) -> None:
        """Set an event when a run may have ended, until `leave`."""
        self._ends[space, key].add(wanted)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())

    def leave(self, space: str, key: str, wanted: asyncio.Event) -> None:
        """Somebody waits no longer."""
        events = self._ends[space, key]
        events.discard(wanted)
        if not events:
            del self._ends[space, key]

    def hear_end(self, space: str, key: str) -> None:
        """A notice says that a run has ended."""
        for event in self._ends.get((space, key), ()):
            event.set()

    async def _look(self) -> None:
        """Wake up the callers of runs whose request is gone, whether a notice came or not, with one listing for all of
        them.
        """
        took = 0.0
        while True:
            await asyncio.sleep(max(_LOOK_WITH_WORD if self._hears_ends() else _LOOK_EVERY, _TIMES_ITSELF * took))
            if not self._ends:
                continue
            # A request that is stored from here on may not be in the listing.
            waited_for, began = set(self._ends), time.monotonic()
            try:
                there = {place for place, _ in await asyncio.to_thread(self._pending_runs.places)}
            except Exception as trouble:
                # Whatever it was: this is the only task that looks.
                _LOG.warning("which runs have ended cannot be told yet: %s", trouble)
                continue
            took = time.monotonic() - began
            for place in waited_for - there:
                self.hear_end(*place)

    async def reap(self) -> int:
        """Send runs again that wait, are held by nobody and have no message; returns how many."""
        self.queue = await asyncio.to_thread(self._broker.look)
        places = await asyncio.to_thread(self._pending_runs.places)
        now, again = time.monotonic(), dict[tuple[str, str], Priority]()
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
            again[space, key] = known.priority
            self._known[space, key] = known._replace(sent_at=now)
        left = await asyncio.get_running_loop().run_in_executor(self._sender, self._send, again)
        for place in left:
            self._known[place] = self._known[place]._replace(sent_at=now - _SENT_AGAIN_AFTER)
        return len(again) - len(left)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._posting is not None:
            # What it does not take by then is sent by whoever finds it.
            await asyncio.wait({self._posting}, timeout=_SENT_WITHIN)
        self._sender.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._broker.close)
