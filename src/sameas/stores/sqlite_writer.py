"""The writes of tasks to a SQLite file: one thread makes them, and those that wait share the next transaction.

A transaction waits for the disk once, however many statements it holds: many callers cost little more than one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final

from sameas.once.errors import StoreClosed
from sameas.stores.sql import Statement
from sameas.stores.sqlite_file import file_locked

Begin = Callable[[], Sequence[Statement]]
# The statements, since when the first of their callers waits, and what to ask for those that are still wanted once the
# transaction has begun.
Write = Callable[[Sequence[Statement], float, Begin], list[Any]]

# Callers in one transaction at most, so that none waits long for the others.
_TOGETHER: Final = 100


class _Job:
    """The statements of one caller, and what came of them."""

    __slots__ = ("answered", "asked_at", "begun", "error", "given_up", "loop", "replies", "statements")

    def __init__(self, statements: Sequence[Statement], loop: asyncio.AbstractEventLoop) -> None:
        self.statements = statements
        self.loop = loop
        self.asked_at = monotonic()
        self.answered: asyncio.Future[None] = loop.create_future()
        self.replies: list[Any] = []
        self.error: Exception | None = None
        # Its caller may give up until it is begun.
        self.begun = self.given_up = False


class SqliteWriter:
    """A queue before `write`, which makes all of some statements in one transaction, or raises and makes none."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._lock = Lock()
        self._waiting: deque[_Job] = deque()
        self._is_busy = False
        self._thread = ThreadPoolExecutor(1, "sameas-sqlite")

    async def ask(self, statements: Sequence[Statement], at_most: float | None = None) -> list[Any]:
        """Make some statements; the reply of one that failed is its error. If another transaction holds the file,
        give up after `at_most` seconds."""
        loop = asyncio.get_running_loop()
        job = _Job(statements, loop)
        with self._lock:
            self._waiting.append(job)
            starts, self._is_busy = not self._is_busy, True
        if starts:
            try:
                self._thread.submit(self._work)
            except RuntimeError:
                # It was closed by another thread a moment ago.
                raise StoreClosed from None
        timer = None if at_most is None else loop.call_later(at_most, self._give_up, job)
        try:
            # Who is cancelled here and cleans up comes after what it asked for before: the thread keeps to the order.
            await job.answered
        finally:
            if timer is not None:
                timer.cancel()
        if job.given_up:
            return [file_locked() for _ in statements]
        if job.error is not None:
            raise job.error
        return job.replies

    def close(self) -> None:
        """Finish what was asked."""
        self._thread.shutdown()

    def _work(self) -> None:
        while jobs := self._next():
            try:
                replies = self._write(_statements(jobs), jobs[0].asked_at, partial(self._begin, jobs))
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

    def _begin(self, jobs: list[_Job]) -> Sequence[Statement]:
        """Leave out those whose callers gave up."""
        with self._lock:
            jobs[:] = [job for job in jobs if not job.given_up]
            for job in jobs:
                job.begun = True
        return _statements(jobs)

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if job.begun or job.answered.done():
                return
            job.given_up = True
            with suppress(ValueError):
                self._waiting.remove(job)
        job.answered.set_result(None)

    def _next(self) -> list[_Job]:
        with self._lock:
            jobs = [self._waiting.popleft() for _ in range(min(_TOGETHER, len(self._waiting)))]
            self._is_busy = bool(jobs)
        return jobs


def _statements(jobs: Sequence[_Job]) -> list[Statement]:
    return [statement for job in jobs for statement in job.statements]


def _tell(jobs: Sequence[_Job]) -> None:
    for job in jobs:
        if not job.answered.done():
            job.answered.set_result(None)
