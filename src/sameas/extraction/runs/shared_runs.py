"""The callers of a run: those of this process who share it, and what each of them hears of its events.

Rule: a run goes on as long as a caller in this process wants it, or to its end if the service says so. It stops when
the last caller leaves, or when it is cancelled, which reaches all of them. Its checkpoints are kept either way. A
caller's function for events is called in the caller's own event loop and never makes the run wait.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from sameas.extraction.events.bus import Bus, Subscription
from sameas.extraction.events.events import Event
from sameas.extraction.events.journal import JournalTail
from sameas.extraction.runs.folder import RunFolder
from sameas.identity.errors import SameasError

T = TypeVar("T")


class RunCancelledError(SameasError):
    """The run was cancelled; what is done of it is kept, and the next request goes on from there."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the run {key} was cancelled; what is done of it is kept: ask again to go on")


class SharedRuns:
    """The callers of each run in this process. Thread-safe; a caller waits only for runs of its own event loop."""

    def __init__(self, *, finish_alone: bool = False) -> None:
        self._finish_alone = finish_alone
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[asyncio.Task[Any], bool]] = {}

    def is_wanted(self, key: str) -> bool:
        """Whether a caller in this process waits for the run."""
        with self._lock:
            return any(self._tasks.get(key, {}).values())

    async def share(
        self,
        key: str,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        on_leave: Callable[[], None],
        on_end: Callable[[], None],
    ) -> T:
        """Await the result of the work, which outlives this caller if others want it. `on_leave` is called if the
        caller leaves before the end, `on_end` when the work is over, whether it was begun or not.

        Raises what the work raises, and RunCancelledError if the run was cancelled.
        """
        task = asyncio.create_task(work())
        task.add_done_callback(lambda _: on_end())
        with self._lock:
            self._tasks.setdefault(key, {})[task] = True
        task.add_done_callback(lambda done: self._over(key, done))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            on_leave()
            unwanted = self._leave(key, task)
            for one in unwanted:
                one.cancel()
            if unwanted:
                # The claim is given back before the cancelled caller goes on.
                await asyncio.wait(unwanted)
            raise
        if task.cancelled():
            raise RunCancelledError(key)
        return task.result()

    def cancel(self, key: str) -> bool:
        """End the run for all callers of this process. Returns False if none is waiting for it."""
        with self._lock:
            tasks = [task for task in self._tasks.get(key, {}) if not task.done()]
        for task in tasks:
            task.get_loop().call_soon_threadsafe(task.cancel)
        return bool(tasks)

    def _leave(self, key: str, task: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
        """Remove a caller; returns the tasks that no caller wants any more."""
        with self._lock:
            tasks = self._tasks.get(key, {})
            if task in tasks:
                tasks[task] = False
            loop = task.get_loop()
            here = {one: wanted for one, wanted in tasks.items() if one.get_loop() is loop}
            if self._finish_alone or any(here.values()):
                return []
            return [one for one in here if not one.done()]

    def _over(self, key: str, task: asyncio.Task[Any]) -> None:
        with self._lock:
            tasks = self._tasks.get(key, {})
            wanted = tasks.pop(task, False)
            if not tasks:
                self._tasks.pop(key, None)
        if not wanted and not task.cancelled():
            # Nobody will read it; an error is in the run's folder.
            task.exception()


OnEvent = Callable[[Event], None]
OnWait = Callable[[], None]

_LOG = logging.getLogger("sameas")
_LOOK_EVERY = 0.05


class EventRelay:
    """Passes the events of a run to one caller, whether the run is its own or another's that it waits for.

    Events of its own run come through a bounded queue, those of another out of the journal. If the caller's function
    raises, it is not called again.
    """

    def __init__(self, on_event: OnEvent | None, folder: RunFolder, *, on_wait: OnWait | None = None) -> None:
        self._on_event = on_event
        self._on_wait = on_wait
        self._folder = folder
        self._tail: JournalTail | None = None
        self._watching: asyncio.Task[None] | None = None
        self._hearing: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Follow another worker's run until `leave`."""
        if self._on_event is not None or self._on_wait is not None:
            self._watching = asyncio.create_task(self._watch())

    async def leave(self) -> None:
        """Stop following, after the rest of the journal was passed on."""
        watching, self._watching = self._watching, None
        if watching is None:
            return
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        self._emit_new()

    def hear(self, bus: Bus, *, after: int) -> None:
        """Listen to the caller's own run."""
        if self._on_event is not None:
            self._hearing = asyncio.create_task(self._hear(bus.subscribe(after=after)))

    async def end(self) -> None:
        """The caller's own run has ended: pass on what is left of it."""
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
            # Reading the run will find and name the damage; here it only ends the news.
            self._tail = None
            return
        for event in events:
            self.emit(event)
