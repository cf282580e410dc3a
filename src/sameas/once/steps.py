"""What a call asks of its driver, beside the commands of its back end: to run the work, and to wait to be woken.

Work that was handed over and not begun (a coroutine that nobody awaited, a generator that nobody asked for anything) is
no result: its caller is told, and the next one may run it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from threading import Event, get_ident
from typing import Any, Final, Protocol

from msgspec import Struct

from sameas.once.context import Context
from sameas.once.policy import Policy

_WHAT_TO_DO: Final = {
    "coroutine": "use AsyncEngine or AsyncIdempotentProcessor, which await it",
    "generator": "return a list of what it gives",
    "async generator": "return a list of what it gives",
}


class Work(Struct, frozen=True):
    """Run the caller's function under this context."""

    function: Callable[[Context], Any]
    context: Context
    policy: Policy
    # Whether there is a lease to renew; in the caller's transaction the row lock holds instead.
    leased: bool = True


class Pause(Struct, frozen=True):
    """Wait until the listener is woken, for at most `seconds`."""

    seconds: float
    listener: Listener | None = None


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


def refuse_async(function: Callable[..., Any], instead: str) -> None:
    """Refuse an async function if nobody would await it."""
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{getattr(function, '__qualname__', function)} is async: {instead}")


def refuse_unbegun(result: Any) -> None:
    """Refuse what the work gave, if it is work that has yet to be done."""
    kind = _kind_of(result)
    if not kind:
        return
    if kind != "async generator":
        # Nobody will ever await it, and Python need not say so once more.
        result.close()
    article = "an" if kind.startswith("a") else "a"
    raise TypeError(
        f"the work gave {article} {kind} that was not begun, so nothing was done and nothing is kept:"
        f" {_WHAT_TO_DO[kind]}"
    )


def _kind_of(result: Any) -> str:
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        return "coroutine"
    if inspect.isgenerator(result) and inspect.getgeneratorstate(result) == inspect.GEN_CREATED:
        return "generator"
    return "async generator" if inspect.isasyncgen(result) else ""
