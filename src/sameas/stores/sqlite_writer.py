"""The writes of tasks to a SQLite file: one thread makes them, and those that wait share the next transaction.

A transaction waits for the disk once, however many statements it holds: many callers cost little more than one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from time import monotonic
from typing import Any, Final

from sameas.once.errors import StoreUnavailable
from sameas.stores.sql import Statement

# The statements, and since when the first of their callers waits.
Write = Callable[[Sequence[Statement], float], list[Any]]

# Callers in one transaction at most, so that none waits long for the others.
_TOGETHER: Final = 100


class _Job:
    """The statements of one caller, and what came of them."""

    __slots__ = ("answered", "asked_at", "error", "loop", "replies", "statements")

    def __init__(self, statements: Sequence[Statement], loop: asyncio.AbstractEventLoop) -> None:
        self.statements = statements
        self.loop = loop
        self.asked_at = monotonic()
        self.answered: asyncio.Future[None] = loop.create_future()
        self.replies: list[Any] = []
        self.error: Exception | None = None


class SqliteWriter:
    """A queue before `write`, which makes all of some statements in one transaction, or raises and makes none."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = Lock()
        self._waiting: deque[_Job] = deque()
        self._is_busy = False
        self._thread = ThreadPoolExecutor(1, "sameas-sqlite")

    async def ask(self, statements: Sequence[Statement]) -> list[Any]:
        """Make some statements; the reply of one that failed is its error."""
        job = _Job(statements, asyncio.get_running_loop())
        with self._lock:
            self._waiting.append(job)
            starts, self._is_busy = not self._is_busy, True
        if starts:
            try:
                self._thread.submit(self._work)
            except RuntimeError:
                # It was closed by another thread a moment ago.
                raise StoreUnavailable("The store was closed.", maybe_applied=False) from None
        # Who is cancelled here and cleans up comes after what it asked for before: the thread keeps to the order.
        await job.answered
        if job.error is not None:
            raise job.error
        return job.replies

    def close(self) -> None:
        """Finish what was asked."""
        self._thread.shutdown()

    def _work(self) -> None:
        while jobs := self._next():
            try:
                replies = self._write([statement for job in jobs for statement in job.statements], jobs[0].asked_at)
            except Exception as error:
                for job in jobs:
                    job.error = error
            else:
                at = 0
                for job in jobs:
                    job.replies = replies[at : at + len(job.statements)]
                    at += len(job.statements)
            for loop in {job.loop for job in jobs}:
                # A loop that was closed has nobody left who waits.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_tell, [job for job in jobs if job.loop is loop])

    def _next(self) -> list[_Job]:
        with self._lock:
            jobs = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            self._is_busy = bool(jobs)
        return jobs


def _tell(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        if not job.answered.done():
            job.answered.set_result(None)
