"""Promised runs that nobody works on: taken up now, from time to time, and when a message asks for one.

Rule: a promise is taken up when its server died, or when the store or the disk that ended it is back; every server of
one home looks, and the once engine lets one of them work. What fails again and again is taken up less and less often.
Whatever is wrong with one promise keeps neither a server from starting nor the others from being done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sameas.once.errors import StoreUnavailable
from sameas.once.record import State
from sameas.server.bodies import BodyMemory
from sameas.server.problems import Problem
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.pending_runs import PendingObjects, PendingRun, PendingRuns

if TYPE_CHECKING:
    from sameas.server.runs.runner import Runner

_LOG = logging.getLogger("sameas.server")
# Seconds between two tries at what the disk or the store ended.
_LONGEST_REST = 60.0
# The ontology is gone, or another one by now. What this process alone cannot do is left for one that can.
_OVERTAKEN = (404, 409)
# A store or a disk is away: it says nothing about the work.
TRY_AGAIN = (StoreUnavailable, OSError)


class _Rest(NamedTuple):
    """Until when a promise rests, by the monotonic clock, and for how long."""

    until: float
    pause: float


_RESTED = _Rest(0.0, 0.25)


class Takeover:
    """Looks for promises. Lives in the background loop."""

    def __init__(
        self,
        runner: Runner,
        pending_runs: PendingRuns | PendingObjects,
        *,
        dispatch: Dispatch | None,
        body_memory: BodyMemory,
        lease: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._runner = runner
        self._pending_runs = pending_runs
        self._dispatch = dispatch
        self._body_memory = body_memory
        self._lease = lease
        self._clock = clock
        # Of promises that the store or the disk ended: not to be taken up before.
        self._rests: dict[tuple[str, str], _Rest] = {}
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what a dead server left, now and from time to time."""
        if self._dispatch is None:
            await self.take_over()
        self._looking = asyncio.create_task(self._look())

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    def rest(self, space: str, key: str) -> None:
        """The store or the disk ended a run: leave it alone for a while, longer each time."""
        pause = min(2 * self._rests.get((space, key), _RESTED).pause, _LONGEST_REST)
        self._rests[space, key] = _Rest(time.monotonic() + pause, pause)

    def forget(self, space: str, key: str) -> None:
        """A run has ended otherwise, or was deleted."""
        self._rests.pop((space, key), None)

    async def take_over(self) -> int:
        """Begin every promised run that nobody works on; returns how many."""
        if self._dispatch is not None:
            return await self._dispatch.reap()
        assert isinstance(self._pending_runs, PendingRuns)
        begun, ours = 0, {self._pending_runs.path(*place) for place in self._runner.places}
        for path in await asyncio.to_thread(self._pending_runs.paths):
            if self._runner.handing_over or self._body_memory.is_full:
                # What there is no room for now is found at the next look.
                break
            if path in ours:
                continue
            pending_run = await asyncio.to_thread(self._pending_runs.read_file, path)
            if pending_run is None or self._runner.is_running(pending_run.tenant, pending_run.key):
                continue
            if time.monotonic() < self._rests.get((pending_run.tenant, pending_run.key), _RESTED).until:
                continue
            if not await self._is_held(pending_run.tenant, pending_run.key):
                begun += await self._take_up(pending_run) is not None
        return begun

    async def work_on(self, space: str, key: str) -> str:
        """Do a run that was sent to this worker, to its end; says what became of it. One of `TRY_AGAIN` is raised where
        a store or a disk ended it.
        """
        if self._runner.is_running(space, key):
            return "is done here already"
        pending_run = await asyncio.to_thread(self._pending_runs.read, space, key)
        if pending_run is None:
            return "was not waiting any longer"
        if await self._is_held(space, key):
            return "is held by another"
        task = await self._take_up(pending_run, raises=TRY_AGAIN)
        if task is None:
            return "could not be taken up"
        await asyncio.wait({task})
        if not task.cancelled() and isinstance(error := task.exception(), TRY_AGAIN):
            raise error
        return "has ended"

    async def _is_held(self, space: str, key: str) -> bool:
        record = await self._runner.record(space, key)
        return record is not None and record.state is State.HELD and record.lease_until / 1e6 > self._clock()

    async def _take_up(
        self, pending_run: PendingRun, *, raises: tuple[type[Exception], ...] = ()
    ) -> asyncio.Task[object] | None:
        """The run as it goes on; None if it cannot or need not go on. Errors of `raises` are the caller's."""
        space, key = pending_run.tenant, pending_run.key
        try:
            prepared = await self._runner.prepare(space, pending_run.request)
        except raises:
            raise
        except Exception as trouble:
            # Whatever is wrong with one promise must not keep a server from starting, or from the others.
            _LOG.warning("the promised run %s cannot be taken up: %s", key, trouble)
            if isinstance(trouble, Problem) and trouble.status in _OVERTAKEN:
                await self._runner.end(space, key, pending_run.reserved)
            return None
        if prepared.key.key != key:
            asked, pending = prepared.key.components, pending_run.pending
            if pending is not None and pending.ontology_version == asked.ontology_version:
                # Another release has another key for the same work, and whoever asked knows that one.
                _LOG.warning("the promised run %s has a key of another release and is left to that", key)
                return None
            # The ontology was updated meanwhile: the old run has nobody to answer to.
            await self._runner.end(space, key, pending_run.reserved)
            return None
        return self._runner.start(prepared, pending_run.audit)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(max(0.2, self._lease / 3))
            try:
                await self.take_over()
            except Exception as trouble:
                # Whatever it was: who looks no more takes nothing over.
                _LOG.warning("promised runs could not be looked for: %s", trouble)
