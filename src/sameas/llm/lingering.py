"""Calls that were sent before somebody pressed Ctrl-C: what is paid for is kept, where the provider answers in time.

Rule: an interruption ends whatever has not been sent, at once. A call that was sent goes on by itself, so that its
reply comes into the memo, until it is answered or whoever interrupted has waited long enough. Other cancellations, such
as that of a stage whose time is up, end a call as ever.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class _SentCall:
    """One call, with its retries; `is_sent` while the provider has it."""

    is_sent = False


_current: ContextVar[_SentCall | None] = ContextVar("sameas_call_sent", default=None)


@contextmanager
def sent_call() -> Iterator[None]:
    """The provider has the call that is made inside."""
    call = _current.get()
    if call is None:
        yield
        return
    call.is_sent = True
    try:
        yield
    finally:
        call.is_sent = False


class LingeringCalls:
    """The calls of one program that may outlive an interruption of it."""

    def __init__(self) -> None:
        self._is_interrupted = False
        self._left: set[asyncio.Task[Any]] = set()

    @property
    def count(self) -> int:
        """How many are still waited for."""
        return len(self._left)

    def interrupt(self) -> None:
        """From now on a cancellation is that of the person who asked, and spares what was sent."""
        self._is_interrupted = True

    async def see_through(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a call; where its caller is interrupted after it was sent, it goes on."""
        call = _SentCall()
        token = _current.set(call)
        try:
            task = asyncio.get_running_loop().create_task(work)
        finally:
            _current.reset(token)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done() and self._is_interrupted and call.is_sent:
                self._left.add(task)
                task.add_done_callback(self._forget)
            else:
                task.cancel()
                await asyncio.wait([task])
            raise

    async def wait(self, seconds: float) -> int:
        """Wait for those that were left behind; how many were not answered in time, and are given up."""
        left = set(self._left)
        _, late = await asyncio.wait(left, timeout=seconds) if left else (left, set())
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return len(late)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._left.discard(task)
        if not task.cancelled():
            # Nobody is there to be told of a failure.
            task.exception()
