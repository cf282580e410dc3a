"""The loop in which runs work and the store is spoken to, in a thread of its own.

Rule: the serving loop never works on a text and never waits for a disk or a database; it asks here and awaits the
answer. A caller that is cancelled does not cancel what it asked for, unless it asked with `BackgroundLoop.task`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_THREADS = 32


def waiting_threads() -> ThreadPoolExecutor:
    """Threads for what blocks: it waits for disks and servers, and the number of processors says nothing about how many
    may.
    """
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="sameas-blocking")


class BackgroundLoop:
    """An event loop in a thread. Start it before the first `do`, close it after the last."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(waiting_threads())
        self._frozen = False
        self._thread = threading.Thread(target=self._run, name="sameas-background-loop", daemon=True)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def start(self) -> None:
        self._thread.start()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine that runs there to its end, whether the caller stays or not."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(work)))

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine there; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def freeze(self) -> None:
        """Stop where everything stands, without cancelling anything: the process is about to end."""
        self._frozen = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def close(self) -> None:
        """End the loop; what still runs in it is cancelled and waited for."""
        if not self._thread.is_alive():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            if self._frozen:
                return
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            if not self._frozen:
                self._loop.close()
