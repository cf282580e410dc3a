"""Where the service works on questions to collections: threads and processes of their own, a bound on who waits.

Rule: a query may take seconds, and nobody who asks for something else waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sameas.collections.collection import Collection
from sameas.questions.desk import QuestionDesk
from sameas.questions.limits import QueryLimits
from sameas.questions.runner import QueryRunner
from sameas.server.problems import Problem
from sameas.settings import Settings

T = TypeVar("T")
_AT_ONCE = 2
_WAITING = 32


class QuestionRoom:
    """The questions of all callers; in the serving loop."""

    def __init__(self, settings: Settings) -> None:
        self.folder: Path = settings.cache / "questions"
        self._limits = QueryLimits(seconds=settings.query_seconds, rows=settings.query_rows)
        self._runner = QueryRunner(processes=_AT_ONCE)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "sameas-questions")
        self._inside = 0

    async def ask(self, collection: Collection, work: Callable[[QuestionDesk], T]) -> T:
        """Have work done at the desk of a collection; refused where too many wait already."""
        if self._inside >= _WAITING:
            raise Problem(503, "too-many-queries", "too many queries wait; ask again in a moment", retry_after=2.0)
        desk = self.desk(collection)
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, desk)
        finally:
            self._inside -= 1

    def desk(self, collection: Collection) -> QuestionDesk:
        """Where questions to a collection are asked; its methods block."""
        return QuestionDesk(collection, folder=self.folder, runner=self._runner, limits=self._limits)

    def close(self) -> None:
        """End what runs; blocking."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._runner.close()
