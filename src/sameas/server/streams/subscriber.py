"""A listener to the events of a run.

Rule: who falls behind misses discovery and progress events and is told how many, never a lifecycle or stage event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from operator import attrgetter

from sameas.extraction.events.bus import Backpressure, EventQueue
from sameas.extraction.events.events import BackpressureWarning
from sameas.identity.ids import uuid7
from sameas.server.streams.lines import Line, line_of_event


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
