"""Blocking work that may take long: graphs that are written, files that are read, queries that are worked out.

Rule: so much of it at a time, in threads of its own, and tenants take turns. Whoever asks for something short finds a
thread, and nobody waits for all that another tenant has asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from sameas.collections.collection import Collection
from sameas.questions.desk import QuestionDesk
from sameas.questions.limits import QueryLimits
from sameas.questions.runner import QueryRunner
from sameas.server.problems import Problem
from sameas.server.shares import RunQueue, Shares
from sameas.settings import Settings

T = TypeVar("T")
# One interpreter does it all: more at once would be no sooner done.
_AT_ONCE = 4
_QUERIES_AT_ONCE = 2
_QUERIES_WAITING = 32


class SlowWork:
    """So many threads, and who is next. Lives in one loop."""

    def __init__(self, name: str, *, at_once: int = _AT_ONCE, divided: bool) -> None:
        self._threads = ThreadPoolExecutor(at_once, f"sameas-{name}")
        self._turns = RunQueue(at_once, divided=divided)

    async def do(self, tenant: str, work: Callable[[], T], *, is_long: bool = False) -> T:
        """The result of blocking work, when it is the tenant's turn; long work leaves a place to short."""
        async with self._turns.turn(tenant, is_long=is_long):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class QuestionRoom:
    """The questions of all callers to collections, worked out in processes; in the serving loop."""

    def __init__(self, settings: Settings, *, divided: bool) -> None:
        self.folder: Path = settings.cache / "questions"
        self._limits = QueryLimits(seconds=settings.query_seconds, rows=settings.query_rows)
        self._runner = QueryRunner(processes=_QUERIES_AT_ONCE)
        self._work = SlowWork("questions", at_once=_QUERIES_AT_ONCE, divided=divided)
        self._inside = Shares(_QUERIES_WAITING, divided=divided)

    async def ask(self, tenant: str, collection: Collection, work: Callable[[QuestionDesk], T]) -> T:
        """Have work done at the desk of a collection; refused where too many of the tenant's wait already."""
        if not self._inside.has_place(tenant):
            raise Problem(503, "too-many-queries", "too many queries wait; ask again in a moment", retry_after=2.0)
        self._inside.take(tenant)
        try:
            return await self._work.do(tenant, partial(work, self.desk(collection)))
        finally:
            self._inside.give_back(tenant)

    def desk(self, collection: Collection) -> QuestionDesk:
        """Where questions to a collection are asked; its methods block."""
        return QuestionDesk(collection, folder=self.folder, runner=self._runner, limits=self._limits)

    def close(self) -> None:
        """End what runs; blocking."""
        self._work.close()
        self._runner.close()
