"""The calls that one run may have under way: so many at once, and a little apart.

Rule: a turn is over when the reply is kept, so that who is killed makes no more calls again than were under way. Calls
that begin together are answered together, and then their answers wait for each other, wave after wave: each begins a
moment after the one before it, as long as that moment is short beside the calls themselves.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sameas.llm.timeouts import paused

# Longer moments gain no time, and a processor that rests between two replies is slower for both.
APART = 0.003
# All of them together, before it is known how long calls take.
FIRST_TOGETHER = 0.1


class Turns:
    """The turns of one run; with None for `at_once` everybody has one."""

    def __init__(self, at_once: int | None) -> None:
        if at_once is not None and at_once < 1:
            raise ValueError("at_once must be at least 1")
        self._free = None if at_once is None else asyncio.Semaphore(at_once)
        self._apart = min(APART, FIRST_TOGETHER / (at_once or 1))
        # All of them together are apart by no more than half a call.
        self._share = 0.5 / (at_once or 1)
        self._latest = -math.inf
        # The loop's; a turn may be given back when that is closed.
        self._clock: Callable[[], float] = time.monotonic

    async def take(self) -> float:
        """Wait for a turn; when it began, by the clock of the loop."""
        if self._free is None:
            return 0.0
        self._clock = asyncio.get_running_loop().time
        with paused():
            await self._free.acquire()
            now = self._clock()
            apart = self._apart
            begins = self._latest = max(now, self._latest + apart)
            try:
                if begins > now:
                    await asyncio.sleep(begins - now)
            except BaseException:
                # The moment that it does not use is the next one's.
                self._latest -= apart
                self._free.release()
                raise
        return begins

    def give_back(self, began: float) -> None:
        if self._free is not None:
            self._apart = min(APART, (self._clock() - began) * self._share)
            self._free.release()


class Turn:
    """The turn of one call, which may be tried several times."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._began: float | None = None

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Waits for a turn, which stays after the block unless that failed."""
        self._began = await self._turns.take()
        try:
            yield
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        if self._began is not None:
            began, self._began = self._began, None
            self._turns.give_back(began)
