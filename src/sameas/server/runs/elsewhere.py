"""Runs that workers elsewhere do, as the node sees them that accepted them.

Rule: a run that nobody waits for costs the node nothing once it is written down and its message is on its way: no task,
no timer and no look. Whoever waits is woken by word of the end, or by the one look at all that are waited for
(`Dispatch`). Lives in the background loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sameas.cluster.broker import Priority
from sameas.extraction.runs.folder import RunDamagedError
from sameas.extraction.runs.record import RunSummary
from sameas.once.record import Record
from sameas.server.problems import Problem
from sameas.server.runs.answers import Done, EndedRuns, cancelled
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.long_work import Preparer
from sameas.server.runs.preparation import LONG_TEXT, Prepared
from sameas.server.runs.promises import Promises
from sameas.server.tenants.workspaces import Workspaces

_LOG = logging.getLogger("sameas.server")
# How often a run is sent to workers that do not begin it.
_SENT_AT_MOST = 5
_UNWANTED_KEPT = 1_000

Replay = Callable[[Prepared, Mapping[str, Any]], Awaitable[Done]]


class RunsElsewhere:
    """Has runs done by workers. `replay` gives a result that is there as to anybody who asks for it; after `hear`
    all was heard that was told to every process before.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        *,
        promises: Promises,
        preparer: Preparer,
        workspaces: Workspaces,
        ended_runs: EndedRuns,
        record: Callable[[str, str], Awaitable[Record | None]],
        replay: Replay,
        hear: Callable[[], Awaitable[None]],
    ) -> None:
        self._dispatch = dispatch
        self._promises = promises
        self._preparer = preparer
        self._workspaces = workspaces
        self._ended_runs = ended_runs
        self._record = record
        self._replay = replay
        self._hear = hear
        self._accepting: dict[tuple[str, str], asyncio.Task[bool]] = {}
        # Cancelled, wherever that was asked.
        self._unwanted: OrderedDict[tuple[str, str], None] = OrderedDict()

    def begin(self, space: str, key: str) -> None:
        """Somebody wants a run."""
        self._unwanted.pop((space, key), None)

    def cancel(self, space: str, key: str) -> None:
        """Nobody wants a run any longer: tell those who wait here."""
        self._unwanted[space, key] = None
        while len(self._unwanted) > _UNWANTED_KEPT:
            self._unwanted.popitem(last=False)
        self._dispatch.hear_end(space, key)

    async def accept(self, prepared: Prepared, audit: Mapping[str, Any], *, priority: Priority) -> bool:
        """Write a run down and have it sent, once for all who ask; whether this caller was the first."""
        place = (prepared.space, prepared.key.key)
        task = self._accepting.get(place)
        if task is not None:
            await asyncio.shield(task)
            return False
        task = self._accepting[place] = asyncio.create_task(self._accept(prepared, audit, priority))
        task.add_done_callback(lambda _: self._accepting.pop(place, None))
        return await asyncio.shield(task)

    async def _accept(self, prepared: Prepared, audit: Mapping[str, Any], priority: Priority) -> bool:
        space, key = prepared.space, prepared.key.key
        self.begin(space, key)
        if await self._promises.has(space, key):
            # Whoever wrote it has sent it, or has died, and then it is found.
            return False
        await self._promises.write(prepared, audit)
        # Whoever deleted the ontology meanwhile has not seen this run.
        await self._preparer.present(space, prepared.request)
        await self._workspaces.note(space)
        self._dispatch.post(space, key, priority=priority)
        return True

    async def finish(self, prepared: Prepared, audit: Mapping[str, Any], *, priority: Priority) -> Done:
        """The result of a run that was written down."""
        space, key = prepared.space, prepared.key.key
        for _ in range(_SENT_AT_MOST):
            record = await self._dispatch.do(space, key, priority=priority)
            done = await self._result(prepared, audit, record)
            if done is not None:
                break
            # Who cancels a run tells everybody before the request goes.
            await self._hear()
            if (space, key) in self._unwanted:
                raise cancelled()
            # It was taken back by nobody and did not begin: it is written down and sent again.
            await self._preparer.present(space, prepared.request)
            await self._promises.make(prepared, audit)
        else:
            raise Problem(409, "run-overtaken", "the run ended before it began; extract again to have it done")
        return done.named(await self._preparer.names(prepared))

    async def _result(self, prepared: Prepared, audit: Mapping[str, Any], record: Record | None) -> Done | None:
        """What came of a run that has ended; None if it has not begun."""
        space, key = prepared.space, prepared.key.key
        summary = None if record is None else RunSummary.in_record(record)
        if summary is None:
            return await asyncio.to_thread(self._ended_runs.in_part, space, key)
        if len(prepared.request.text) <= LONG_TEXT:
            try:
                return await asyncio.to_thread(self._ended_runs.whole, space, key, summary)
            except RunDamagedError as damage:
                _LOG.warning("the result of the run %s is asked for as by anybody: %s", key, damage)
        return (await self._replay(prepared, audit))._replace(cache_hit=False)

    async def close(self) -> None:
        """Let those end that are being written down."""
        await asyncio.gather(*self._accepting.values(), return_exceptions=True)
