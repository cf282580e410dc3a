"""The events of runs, from their journals to everybody who listens, on server-sent events and WebSockets alike.

Rule: each journal is read once, however many listen, and each event is handed out as the same bytes. A subscriber that
falls behind misses discovery and progress events and is told how many, never a lifecycle or stage event; it slows
nobody. Whoever comes late gets the run from its beginning, whoever comes back gets it from the number it names, and the
last event is always delivered. Lives in the serving loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Literal

from sameas.extraction.events.bus import Backpressure, EventQueue
from sameas.extraction.events.events import BackpressureWarning, ErrorReport, ExtractionFailed
from sameas.identity.ids import uuid7
from sameas.server.streams.admissions import Admission
from sameas.server.streams.lines import JournalDamaged, Line, Tail, line_of_event

# Listeners that are served before others have their turn.
_AT_ONCE = 20
# Bytes that are handed out at a time, well below what fills a queue, and how often in one look.
SLICE = 1 << 16
_SLICES = 4


class Channel:
    """One run's journal and those who listen to it."""

    def __init__(self, space: str, key: str, journal: Path) -> None:
        self.space = space
        self.key = key
        self.journal = journal
        self.subscribers: set[Subscriber] = set()
        self._tail = Tail(journal)
        # What is there already is read by each listener at its own pace.
        self._last = self._tail.skip()
        self.active_at = self.nudged_at = time.monotonic()
        self.asked_at = 0.0

    @property
    def number(self) -> int:
        return self._tail.number

    async def look(self) -> bool:
        """Read and hand out what was added; whether there was anything."""
        slices = 0
        while slices < _SLICES and (lines := self._tail.read(at_most=SLICE)):
            slices += 1
            await self._hand_out(lines)
            if sum(len(line.data) + 1 for line in lines) < SLICE:
                break
            # A burst must not look like a listener that is slow: whoever is quick takes this before more comes.
            await asyncio.sleep(0)
        return slices > 0

    async def _hand_out(self, lines: Sequence[Line]) -> None:
        self._last = lines[-1]
        self.active_at = self.nudged_at = time.monotonic()
        # Who comes meanwhile is beyond these events already; who leaves does not mind.
        for number, subscriber in enumerate(tuple(self.subscribers), 1):
            subscriber.offer(lines)
            if number % _AT_ONCE == 0:
                # A few at a time: all of them at once would keep everybody else waiting.
                await asyncio.sleep(0)

    @property
    def at_final(self) -> bool:
        """Whether the last event that was read ends a run."""
        return self._last is not None and self._last.final

    def end(self, last: Line | None = None) -> None:
        for subscriber in self.subscribers:
            if last is not None:
                subscriber.offer([last])
            subscriber.end()


# Seconds between two looks at the journals: deliveries within it are coalesced.
TICK = 0.04
# A look must not take more than this part of the time.
_SHARE = 4
_PER_SUBSCRIBER = 0.000_2
_IDLE_LOOK = 0.5

_LOG = logging.getLogger("sameas.server")

# How a run stands for those who listen: it goes on, it has ended, or its journal goes on with another attempt.
Standing = Literal["going", "ended", "lost"]
Ask = Callable[[str, str, int], Standing]


class Hub:
    """All channels of this process; one task looks after them."""

    def __init__(
        self,
        *,
        standing: Ask,
        failure: Callable[[str, str], str | None],
        is_alive: Callable[[str, str], Awaitable[bool]],
        settings: Backpressure | None = None,
        lease: float = 30.0,
        keep_alive: float = 15.0,
    ) -> None:
        self._standing = standing
        self._failure = failure
        self._is_alive = is_alive
        self._settings = settings or Backpressure()
        self._lease = lease
        self._keep_alive = keep_alive
        self._channels: dict[tuple[str, str], Channel] = {}
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self.closed = False
        self.missed = 0
        self.delivered = 0

    @property
    def subscribers(self) -> int:
        return sum(len(channel.subscribers) for channel in self._channels.values())

    def start(self) -> None:
        self._task = asyncio.create_task(self._serve())

    async def close(self) -> None:
        """End every subscription; what was not delivered can be had again by its number."""
        self.closed = True
        for channel in self._channels.values():
            for subscriber in channel.subscribers:
                subscriber.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def listen(
        self, space: str, key: str, journal: Path, *, after: int = 0, admission: Admission | None = None
    ) -> AsyncGenerator[list[Line], None]:
        """The events of a run from number `after` on, as they come; an empty list now and then while nothing does. It
        ends early where the one who listens may not any longer.
        """
        if self.closed:
            return
        channel = self._channels.get((space, key))
        if channel is None:
            try:
                channel = self._channels[space, key] = Channel(space, key, journal)
            except JournalDamaged:
                yield [_unreadable(key)]
                return
        subscriber = Subscriber(key, after=after, settings=self._settings)
        # From here on the channel is looked after, also while this listener reads what was before it.
        channel.subscribers.add(subscriber)
        if admission is not None:
            admission.on_refused(subscriber.close)
        self._wanted.set()
        try:
            past = Tail(journal, after=after)
            position = channel.number
            while past.number < position and (lines := past.read(at_most=SLICE)):
                # What the queue took meanwhile is in the file too, and is left out there.
                batch = [line for line in lines if line.number <= position]
                self.delivered += len(batch)
                yield batch
                if subscriber.closed:
                    return
            async for live in subscriber.batches():
                self.delivered += len(live)
                yield live
        except JournalDamaged:
            yield [_unreadable(key)]
        finally:
            self.missed += subscriber.missed_in_all
            channel.subscribers.discard(subscriber)
            if admission is not None:
                admission.forget(subscriber.close)
            if not channel.subscribers and self._channels.get((space, key)) is channel:
                del self._channels[space, key]

    async def _serve(self) -> None:
        while True:
            if not self._channels:
                self._wanted.clear()
                await self._wanted.wait()
            began = time.perf_counter()
            for channel in list(self._channels.values()):
                try:
                    await self._look(channel)
                except Exception as trouble:
                    self._give_up(channel, trouble)
            took = time.perf_counter() - began
            # With many listeners the batches grow, not the number of deliveries in a second.
            await asyncio.sleep(max(TICK, took * _SHARE, self.subscribers * _PER_SUBSCRIBER))

    async def _look(self, channel: Channel) -> None:
        await channel.look()
        now = time.monotonic()
        if now - channel.nudged_at > self._keep_alive:
            channel.nudged_at = now
            for subscriber in channel.subscribers:
                subscriber.nudge()
        if not channel.at_final and now - max(channel.active_at, channel.asked_at) < _IDLE_LOOK:
            return
        channel.asked_at = now
        # Sure of the end only when nothing was added since: a later attempt may have gone on in the same journal.
        match self._standing(channel.space, channel.key, channel.number):
            case "ended" if not await channel.look():
                self._end(channel)
            case "lost" if now - channel.active_at > self._lease and not await self._is_alive(
                channel.space, channel.key
            ):
                channel.end()
            case _:
                pass

    def _give_up(self, channel: Channel, trouble: Exception) -> None:
        """What is wrong with one run must not silence the others: its listeners are sent away, and may come back."""
        _LOG.warning("the events of the run %s cannot be given: %s", channel.key, trouble, exc_info=trouble)
        self._channels.pop((channel.space, channel.key), None)
        channel.end(_unreadable(channel.key) if isinstance(trouble, JournalDamaged) else None)

    def _end(self, channel: Channel) -> None:
        failed = self._failure(channel.space, channel.key) if not channel.at_final else None
        if failed is None:
            channel.end()
            return
        channel.end(_failed(channel.key, ErrorReport(code="run_failed", message=failed, recoverable=True)))


def _unreadable(key: str) -> Line:
    said = "the journal of the run is damaged; delete the run and extract again"
    return _failed(key, ErrorReport(code="journal_damaged", message=said, recoverable=False))


def _failed(key: str, error: ErrorReport) -> Line:
    """A last word that is in no journal."""
    event = ExtractionFailed(
        event_id=str(uuid7()), request_id=key, timestamp=int(time.time() * 1000), progress=0.0, error=error
    )
    return line_of_event(event)


class Subscriber:
    """One listener's bounded queue of lines. Iterate it once; it ends after the run's last event, or when closed."""

    def __init__(self, key: str, *, after: int, settings: Backpressure) -> None:
        self.key = key
        self._after = after
        self._settings = settings
        self._queue: EventQueue[Line] = EventQueue(
            settings, is_droppable=attrgetter("droppable"), is_sampled=attrgetter("sampled")
        )
        self._waiter: asyncio.Future[None] | None = None
        self._nudged = False
        self.over = False
        self.closed = False

    @property
    def missed_in_all(self) -> int:
        return self._queue.missed_in_all

    def offer(self, lines: Sequence[Line]) -> None:
        """Take what there is room for; never waits."""
        if self.over or self.closed:
            return
        if lines[0].number and lines[0].number <= self._after:
            lines = [line for line in lines if line.number > self._after]
            if not lines:
                return
        self._after = max(self._after, lines[-1].number)
        self._queue.offer(lines)
        self._wake()

    def end(self) -> None:
        """The run has ended: what is queued can still be read."""
        self.over = True
        self._wake()

    def close(self) -> None:
        """The service stops: nothing more is read."""
        self.closed = True
        self._wake()

    def nudge(self) -> None:
        """Nothing has come for a while: give an empty batch, so that whoever is gone is noticed."""
        if self._waiter is not None:
            self._nudged = True
            self._wake()

    async def batches(self) -> AsyncIterator[list[Line]]:
        """What has come, all of it at a time; an empty list after a nudge."""
        loop = asyncio.get_running_loop()
        while not self.closed:
            if batch := self._take():
                yield batch
            elif self.over:
                return
            elif self._nudged:
                self._nudged = False
                yield []
            else:
                # A bare future, without a timer or a task: there are many subscribers and many batches.
                self._waiter = loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self) -> list[Line]:
        batch = self._queue.take()
        if missed := self._queue.take_missed():
            warning = line_of_event(self._warning(missed))
            # The last event stays the last.
            batch.insert(len(batch) - (1 if batch and batch[-1].final else 0), warning)
        return batch

    def _warning(self, missed: int) -> BackpressureWarning:
        return BackpressureWarning(
            event_id=str(uuid7()),
            request_id=self.key,
            timestamp=int(time.time() * 1000),
            progress=0.0,
            dropped=missed,
            queue_size=self._settings.queue_size,
        )
