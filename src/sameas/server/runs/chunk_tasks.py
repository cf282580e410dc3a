"""Chunk tasks: parts of a long run that free workers do while the owner of the run goes through all of it.

Rule: the owner asks for help when the run begins, and waits for none. Help is worth while only if a chunk takes long,
because a model is asked or the reader reads it. A helper ends when the run does. Of the budget of a run that asks a
model, helpers may spend one half and the owner the other, so that the owner could do everything alone; if the budget is
too small for that, nobody helps.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from sameas.cluster.broker import CHUNKS, Broker
from sameas.extraction.extractors.embedded import FITTED, READER
from sameas.extraction.pipeline.run import RunPart
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.library import RunNotFoundError
from sameas.extraction.text.chunking import iter_chunks
from sameas.extraction.text.document import normalized_pieces
from sameas.identity.errors import SameasError
from sameas.server.runs.day_accounts import DayAccounts, Reserved, total
from sameas.server.runs.long_work import LongWork
from sameas.server.runs.models import ALLOWED
from sameas.server.runs.pending_runs import PendingObjects, PendingRun
from sameas.server.runs.preparation import Prepared
from sameas.server.tenants.workspaces import Workspaces

if TYPE_CHECKING:
    from sameas.server.runs.runner import Runner

_LOG = logging.getLogger("sameas.server")
# More would take every worker from everybody else.
_HELPERS_AT_MOST = 15
_LOOK_EVERY = 1.0
ASKS_MODELS = "model:"


async def helpers_for(extractor: str, text: str, settings: PipelineSettings, *, chunks_per_task: int) -> int:
    """How many helpers a run should have: none if its chunks are few, or take no time."""
    # Each window has one boundary, so there cannot be more chunks than this.
    most = len(text) // settings.chunking.window + 1
    if not chunks_per_task or most <= chunks_per_task or not extractor.startswith((ASKS_MODELS, READER, FITTED)):
        return 0
    chunks = await asyncio.to_thread(
        lambda: sum(1 for _ in iter_chunks(normalized_pieces((text,)), settings=settings.chunking))
    )
    return min(_HELPERS_AT_MOST, (chunks - 1) // chunks_per_task)


class Helpers:
    """Asks for helpers, and helps. Lives in the background loop of a worker."""

    def __init__(
        self,
        broker: Broker,
        *,
        runner: Runner,
        chunks_per_task: int,
        workspaces: Workspaces,
        pending_runs: PendingObjects,
        long_work: LongWork | None,
        accounts: DayAccounts,
    ) -> None:
        self._broker = broker
        self._runner = runner
        self._chunks_per_task = chunks_per_task
        self._workspaces = workspaces
        self._pending_runs = pending_runs
        self._long_work = long_work
        self._accounts = accounts
        self._tasks: set[asyncio.Task[int | None]] = set()

    @property
    def helping(self) -> int:
        """How many parts this worker is working on."""
        return len(self._tasks)

    async def call(self, prepared: Prepared, reserved: Reserved | None) -> None:
        """Ask others to do parts of a run that begins here; if the broker is down, there is no help."""
        name = prepared.extractor.name
        if prepared.request.extraction_params.batch:
            return
        if name.startswith(ASKS_MODELS):
            helpers = 0 if reserved is None else reserved.helpers
        else:
            text, settings = prepared.request.text, prepared.settings
            helpers = await helpers_for(name, text, settings, chunks_per_task=self._chunks_per_task)
        try:
            for number in range(1, helpers + 1):
                place = (prepared.space, prepared.key.key, number, helpers + 1)
                await asyncio.to_thread(self._broker.send, CHUNKS, *place, priority="chunks")
        except SameasError as trouble:
            _LOG.warning("the run %s is done without help: %s", prepared.key.key, trouble)

    async def help(self, space: str, key: str, part: RunPart) -> str:
        """Do a part of a run that another worker owns; returns what became of it, for the log."""
        pending_run = await asyncio.to_thread(self._pending_runs.read, space, key)
        if pending_run is None:
            return "was over already"
        task = asyncio.create_task(self._do(pending_run, part))
        self._tasks.add(task)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK_EVERY)
                if not task.done() and not await asyncio.to_thread(self._pending_runs.has, space, key):
                    task.cancel()
                    await asyncio.wait({task})
        finally:
            self._tasks.discard(task)
            await self._tidy(pending_run)
        if task.cancelled():
            return "ended meanwhile"
        if (error := task.exception()) is not None:
            return f"could not be helped: {type(error).__name__}: {error}"
        done = task.result()
        return "is helped with that part by another" if done is None else f"was helped with {done} chunks"

    async def dismiss(self) -> None:
        """Stop helping; the owners of the runs do what is missing."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def close(self) -> None:
        await self.dismiss()
        await asyncio.to_thread(self._broker.close)

    async def _do(self, pending_run: PendingRun, part: RunPart) -> int | None:
        prepared = await self._runner.prepare(pending_run.tenant, pending_run.request)
        if prepared.key.key != pending_run.key:
            # The ontology was updated meanwhile.
            return None
        allowed = self._runner.budgets.allowed(pending_run.reserved, to_helper=True)
        if prepared.means is None:
            assert self._long_work is not None
            return await self._long_work.help(prepared, part, allowed=allowed)
        ALLOWED.set(allowed)
        async with self._runner.place(prepared):
            return await self._workspaces.get(prepared.space).help(
                prepared.key.key,
                prepared.request.text,
                ontology=prepared.means.ontology,
                extractor=prepared.means.extractor,
                settings=prepared.settings,
                part=part,
            )

    async def _tidy(self, pending_run: PendingRun) -> None:
        """After the end of a run, count and remove what its owner did not see."""
        space, key = pending_run.tenant, pending_run.key
        service = self._workspaces.get(space)
        objects = service.runs.objects
        try:
            if objects is None or await self._runner.is_accepted(space, key):
                return
            if not await asyncio.to_thread(objects.names, key):
                # It was deleted, and what was noted after that with it.
                with suppress(RunNotFoundError):
                    await asyncio.to_thread(service.remove, key)
                return
            spent = await asyncio.to_thread(objects.take_spending, key)
            if spent and pending_run.reserved is not None:
                await self._accounts.add(pending_run.reserved, total(spent))
        except (SameasError, OSError) as trouble:
            _LOG.warning("what a helper of the run %s left behind could not be counted: %s", key, trouble)
