"""Who wants a run in this process: a caller that leaves does not stop what others wait for.

Rule: a run goes on as long as anybody here wants it, or to its end where the service says so. It stops when the last
one leaves, and when it is cancelled, which reaches everybody. What is done of it stays as checkpoints either way.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sameas.identity.errors import SameasError

T = TypeVar("T")


class RunCancelledError(SameasError):
    """The run was cancelled; what is done of it is kept, and the next request goes on from there."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"the run {key} was cancelled; what is done of it is kept: ask again to go on")


class SharedRuns:
    """The callers of each run. Safe in threads; a caller waits for runs of its own event loop only."""

    def __init__(self, *, finish_alone: bool = False) -> None:
        self._finish_alone = finish_alone
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[asyncio.Task[Any], bool]] = {}

    def is_wanted(self, key: str) -> bool:
        """Whether anybody here waits for the run."""
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
        """The result of the work, which outlives this caller where others want it: `on_leave` is called when the caller
        goes first, `on_end` when the work is over, begun or not.
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
                # Whoever cancels gets the claim back before it goes on.
                await asyncio.wait(unwanted)
            raise
        if task.cancelled():
            raise RunCancelledError(key)
        return task.result()

    def cancel(self, key: str) -> bool:
        """End the run for everybody here; False where nobody here is at it."""
        with self._lock:
            tasks = [task for task in self._tasks.get(key, {}) if not task.done()]
        for task in tasks:
            task.get_loop().call_soon_threadsafe(task.cancel)
        return bool(tasks)

    def _leave(self, key: str, task: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
        """The tasks that nobody wants now."""
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
