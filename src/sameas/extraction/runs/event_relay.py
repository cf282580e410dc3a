"""Telling a caller what happens in a run: its own run, or the one of somebody else that it waits for.

Rule: the caller's function is called in the caller's own event loop, and never makes the run wait: one's own
events come through a bounded queue, another's out of the journal. A function that raises is not called again.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from sameas.extraction.events.bus import Bus, Subscription
from sameas.extraction.events.events import Event
from sameas.extraction.events.journal import JournalTail
from sameas.extraction.runs.folder import RunFolder

OnEvent = Callable[[Event], None]
OnWait = Callable[[], None]

_LOG = logging.getLogger("sameas")
_LOOK_EVERY = 0.05


class EventRelay:
    """The events of one extraction for one caller."""

    def __init__(self, on_event: OnEvent | None, folder: RunFolder, *, on_wait: OnWait | None = None) -> None:
        self._on_event = on_event
        self._on_wait = on_wait
        self._folder = folder
        self._tail: JournalTail | None = None
        self._watching: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Follow whoever works on the run, until `leave`."""
        if self._on_event is not None or self._on_wait is not None:
            self._watching = asyncio.create_task(self._watch())

    async def leave(self) -> None:
        """End the watching; what the journal has beyond the last look is told first."""
        watching, self._watching = self._watching, None
        if watching is None:
            return
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        self._emit_new()

    def hear(self, bus: Bus, *, after: int) -> None:
        """Listen to one's own run."""
        if self._on_event is not None:
            self._hearing = asyncio.create_task(self._hear(bus.subscribe(after=after)))

    async def end(self) -> None:
        """One's own run has ended: tell what is left of it."""
        hearing, self._hearing = self._hearing, None
        if hearing is not None:
            await hearing

    def emit(self, event: Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            _LOG.exception("the function that is told of events failed at %s; it is not called again", event.type)
            self._on_event = None

    async def _hear(self, subscription: Subscription) -> None:
        async for event in subscription:
            self.emit(event)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self._tail is None:
                metadata = self._folder.peek()
                if metadata is None or not metadata.is_under_way:
                    continue
                self._tail = JournalTail(self._folder.journal_path, after=metadata.first_event - 1)
                if self._on_wait is not None:
                    self._on_wait()
            self._emit_new()

    def _emit_new(self) -> None:
        if self._tail is None:
            return
        try:
            events = self._tail.read()
        except ValueError:
            # A damaged journal is found and named by whoever reads the run; here it only ends the news.
            self._tail = None
            return
        for event in events:
            self.emit(event)
