"""Waiting for a wake-up, in a thread or in a task."""

from __future__ import annotations

import asyncio
import threading
from threading import Event, get_ident
from typing import Protocol


class Listener(Protocol):
    """Something that waits and can be woken from any thread. A wake-up before the wait counts."""

    def wake(self) -> None: ...
    def clear(self) -> None: ...


class ThreadListener:
    """A thread that waits."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = Event()

    def wake(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event.clear()

    def wait(self, seconds: float) -> None:
        self._event.wait(min(seconds, threading.TIMEOUT_MAX))


class TaskListener:
    """A task that waits. It may be woken from any thread; from its own loop that costs no system call."""

    __slots__ = ("_loop", "_thread", "_waiter", "_woken")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if get_ident() == self._thread:
            self._wake_here()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_here)

    def clear(self) -> None:
        self._woken = False

    async def wait(self, seconds: float) -> None:
        if self._woken:
            return
        self._waiter = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._end_wait)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake_here(self) -> None:
        self._woken = True
        self._end_wait()

    def _end_wait(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
