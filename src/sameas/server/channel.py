"""The journal of a run, read once for everybody who listens to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from sameas.server.lines import Line, Tail
from sameas.server.subscriber import Subscriber

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
