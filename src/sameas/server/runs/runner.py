"""Runs that belong to the service and not to whoever asked for them.

Rule: a run is a task of the background loop; a caller that leaves does not end it, `cancel` does. One task for one key
and space, whoever asks. Its promise is on the disk before it begins and before anybody is told that it was accepted.
Promises that nobody works on are taken up (`Takeover`). When the service stops, what is not finished in time is handed
over: its claim is given back, its promise stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal

from sameas.cluster.broker import Priority
from sameas.extraction.runs.record import SCOPE
from sameas.llm.models import ModelError
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import Superseded
from sameas.once.observe import CallEnded, CallStarted, Event
from sameas.once.record import Lease, Record, State
from sameas.once.rollout import Rollout
from sameas.once.store import AsyncStore
from sameas.server.bodies import BodyMemory
from sameas.server.logs import ExtractionLog, asked_for
from sameas.server.problems import Problem
from sameas.server.runs.answers import Done, EndedRuns, cancelled, done_of, identity_of, replayed
from sameas.server.runs.chunk_tasks import Helpers
from sameas.server.runs.day_accounts import DayAccounts, Reserved, Spent
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.elsewhere import RunsElsewhere
from sameas.server.runs.long_tasks import AWAY
from sameas.server.runs.long_work import LongWork, Preparer, Suspects, holder_of
from sameas.server.runs.models import ALLOWED
from sameas.server.runs.pending_runs import PendingObjects, PendingRuns
from sameas.server.runs.preparation import Prepared, asks_model
from sameas.server.runs.promises import Promises
from sameas.server.runs.run_budgets import RunBudgets
from sameas.server.runs.takeover import Takeover
from sameas.server.schemas import ExtractRequest
from sameas.server.shares import SHORT_TEXT, RunQueue
from sameas.server.tenants.workspaces import Workspaces, tenant_of

_LOG = logging.getLogger("sameas.server")
_FAILURES_KEPT = 1_000
# Long texts that are read here at once: one interpreter reads them all, so that more would be no sooner done, and short
# work would wait for each of them again and again.
_READ_AT_ONCE = 2
# What says nothing about the work: the store or the disk was away, or somebody else was at it.
_AWAY = (*AWAY, OSError)


class Runner:
    """The runs of this process. Lives in the background loop; `is_running` may be called from anywhere."""

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        preparer: Preparer,
        long_work: LongWork | None,
        pending_runs: PendingRuns | PendingObjects,
        dispatch: Dispatch | None = None,
        is_worker: bool = False,
        engine: AsyncEngine,
        base: str,
        lease: float,
        at_once: int,
        divided: bool,
        chunks_per_task: int,
        body_memory: BodyMemory,
        accounts: DayAccounts,
        request_limit: Spent,
        without_price: Collection[str] = (),
        rollout: Rollout,
        min_confidence: float | None = None,
        observe: Callable[[Event], None] = lambda _: None,
        hear: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._workspaces = workspaces
        self._preparer = preparer
        self._long_work = long_work
        self._pending_runs = pending_runs
        # Of a worker: those who do parts of its runs, and whose parts it does.
        self.helpers: Helpers | None = None
        self._engine = engine
        self._base = base
        self._run_queue = RunQueue(at_once, divided=divided)
        self._reading = RunQueue(_READ_AT_ONCE, divided=divided)
        self._body_memory = body_memory
        self.budgets = RunBudgets(
            accounts,
            workspaces,
            request_limit=request_limit,
            chunks_per_task=0 if dispatch is None else chunks_per_task,
            estimate=preparer.estimate,
            without_price=without_price,
        )
        self._promises = Promises(
            pending_runs, budgets=self.budgets, workspaces=workspaces, base=base, is_worker=is_worker, clock=clock
        )
        # With it, workers elsewhere do what is written down here.
        self._elsewhere: RunsElsewhere | None = None
        if dispatch is not None:
            self._elsewhere = RunsElsewhere(
                dispatch,
                promises=self._promises,
                preparer=preparer,
                workspaces=workspaces,
                ended_runs=EndedRuns(workspaces, min_confidence=min_confidence),
                record=self.record,
                replay=lambda prepared, audit: self._extract(prepared, audit, None),
                hear=hear,
            )
        # What was promised, and is begun by nobody's request.
        self.takeover = Takeover(
            self,
            pending_runs,
            dispatch=dispatch,
            body_memory=body_memory,
            lease=lease,
            clock=clock,
        )
        self._rollout = rollout
        self._min_confidence = min_confidence
        self._observe = observe
        self._tasks: dict[tuple[str, str], asyncio.Task[Done]] = {}
        # Of the runs under way: set when a run is written down.
        self._written: dict[tuple[str, str], asyncio.Event] = {}
        self._failures: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._suspects = Suspects(divided=divided)
        self.handing_over = False

    @property
    def places(self) -> Collection[tuple[str, str]]:
        """The space and the key of every run under way here."""
        return self._tasks.keys()

    def is_running(self, space: str, key: str) -> bool:
        return (space, key) in self._tasks

    def failure(self, space: str, key: str) -> str | None:
        """Why the last run of a key in this process could not even begin or go on."""
        return self._failures.get((space, key))

    def forget(self, space: str, key: str) -> None:
        """The run was deleted: why it failed is nobody's business any more."""
        self._failures.pop((space, key), None)
        self.takeover.forget(space, key)

    @property
    def store(self) -> AsyncStore:
        """Where the records of runs are."""
        return self._engine.store

    @property
    def running(self) -> int:
        return len(self._tasks) + (0 if self.helpers is None else self.helpers.helping)

    async def prepare(self, space: str, request: ExtractRequest) -> Prepared:
        """Resolve the ontology and the extractor, and compute the key."""
        return await self._preparer.prepare(space, request)

    async def record(self, space: str, key: str) -> Record | None:
        """The record of a run in the once engine."""
        return await self._engine.read(SCOPE, key, tenant=space, namespace="content")

    async def is_accepted(self, space: str, key: str) -> bool:
        """Whether a run is written down: a promise on the disk, or a claim or a result in the store."""
        if await self._promises.has(space, key):
            return True
        return await self.record(space, key) is not None

    async def extract(
        self,
        prepared: Prepared,
        audit: Mapping[str, Any],
        *,
        accepted: Callable[[], object] = lambda: None,
        priority: Priority = "interactive",
        log: ExtractionLog | None = None,
    ) -> Done:
        """The result, of a run that goes on whether the caller waits or not; `accepted` is called once the run is
        written down. `log` is that of a request which was told of already.
        """
        log = log or ExtractionLog.of(prepared, audit)
        before = await self._put_aside(prepared)
        while True:
            asked_at = time.monotonic()
            began = asked_at if self.is_running(prepared.space, prepared.key.key) else None
            task = self.start(prepared, audit, priority=priority)
            try:
                if await self._is_written(prepared, task):
                    accepted()
                done = await asyncio.shield(task)
                if before is not None:
                    await self._compare(prepared, before, log)
                if began is not None:
                    # No engine was told of this caller: it waited here for the same work.
                    seconds = time.monotonic() - began
                    self._observe(replayed(prepared.space, prepared.key.key, seconds, waited=seconds))
                    await self.note_shared(prepared, audit, seconds)
                if began is not None or done.shared:
                    log.deduplicated(time.monotonic() - asked_at)
                    log.hit("execution-cache", done.computed_at)
                elif done.cache_hit:
                    log.hit("result-cache", done.computed_at)
                return done
            except Superseded:
                # Its claim was released or forgotten while it worked: the work is to be done again, by whoever asks.
                if self._tasks.get((prepared.space, prepared.key.key)) is task:
                    raise
            except asyncio.CancelledError:
                if task.cancelled():
                    raise cancelled() from None
                raise

    def can_submit(self, prepared: Prepared) -> bool:
        """Whether workers elsewhere do the run, and nothing is compared with what comes of it."""
        mode = self._rollout.mode_of(tenant_of(prepared.space), SCOPE, prepared.key.key)
        return self._elsewhere is not None and mode == "enforce"

    async def submit(
        self, prepared: Prepared, audit: Mapping[str, Any], *, priority: Priority = "interactive"
    ) -> Done | None:
        """The result where it is there; None once the run is written down. Nothing here waits for it after that."""
        place = (prepared.space, prepared.key.key)
        assert self._elsewhere is not None
        record = await self.record(*place)
        if record is not None and record.state is State.DONE:
            return await self.extract(prepared, audit, priority=priority)
        log = ExtractionLog.of(prepared, audit)
        if (task := self._tasks.get(place)) is not None:
            # Somebody waits for it here.
            if not await self._is_written(prepared, task):
                return await asyncio.shield(task)
        elif await self._elsewhere.accept(prepared, audit, priority=priority):
            log.missed()
            return None
        log.deduplicated(0.0)
        return None

    async def _put_aside(self, prepared: Prepared) -> Record | None:
        """Where keys of content are not in force, forget the result that stands, so that the work is done again; gives
        the record where it is to be compared.
        """
        space, key = prepared.space, prepared.key.key
        mode = self._rollout.mode_of(tenant_of(space), SCOPE, key)
        if mode == "enforce" or self.is_running(space, key):
            return None
        record = await self.record(space, key)
        if record is None or record.state is not State.DONE:
            return None
        await self._engine.forget(SCOPE, key, tenant=space, namespace="content")
        return record if mode == "shadow" else None

    async def _compare(self, prepared: Prepared, before: Record, log: ExtractionLog) -> None:
        """In shadow: say whether the result that stood would have been the same."""
        record = await self.record(prepared.space, prepared.key.key)
        if record is not None and record.outcome is not None and before.outcome is not None:
            log.shadowed("replayed", is_same=record.outcome.data == before.outcome.data)

    async def note_shared(self, prepared: Prepared, audit: Mapping[str, Any], seconds: float) -> None:
        """Write down that a caller waited for somebody else's work and did not ask for the run itself."""
        await asyncio.to_thread(
            self._workspaces.get(prepared.space).note_shared,
            prepared.key.key,
            ontology_id=prepared.key.components.ontology_id,
            waited=seconds,
            audit=audit,
        )

    def start(
        self, prepared: Prepared, audit: Mapping[str, Any], *, priority: Priority = "interactive"
    ) -> asyncio.Task[Done]:
        """Begin the run, or join the one under way."""
        place = (prepared.space, prepared.key.key)
        task = self._tasks.get(place)
        if task is None:
            self._failures.pop(place, None)
            if self._elsewhere is not None:
                self._elsewhere.begin(*place)
            self._written[place] = asyncio.Event()
            # Of a run that nobody waits for the text stays until its turn has come.
            size = sys.getsizeof(prepared.request.text)
            tenant = tenant_of(prepared.space)
            self._body_memory.hold(size, tenant)
            task = self._tasks[place] = asyncio.create_task(self._work(prepared, audit, priority))
            task.add_done_callback(lambda done: self._ended(place, done))
            task.add_done_callback(lambda _: self._body_memory.give_back(size, tenant))
        return task

    async def cancel(
        self, space: str, key: str, *, tell: Callable[[], Awaitable[object]] | None = None
    ) -> Literal["cancelled", "elsewhere", "ended"]:
        """End a run that is under way here; say whether it is under way elsewhere, after `tell` has told everybody."""
        task = self._tasks.get((space, key))
        if task is not None and self._elsewhere is None:
            task.cancel()
            await asyncio.wait({task})
            return "cancelled"
        if self._elsewhere is not None:
            self._elsewhere.cancel(space, key)
        record = await self.record(space, key)
        is_held = record is not None and record.state is State.HELD
        # Otherwise another process may have it waiting for its turn.
        pending_run = None if is_held else await asyncio.to_thread(self._pending_runs.read, space, key)
        if not is_held and pending_run is None:
            return "ended"
        if tell is not None:
            # First: who finds that the request is gone must find why, too.
            await tell()
        if pending_run is not None:
            await self.end(space, key, pending_run.reserved)
        return "elsewhere"

    def hear_cancelled(self, space: str, key: str) -> None:
        """Another process says that a run is cancelled: nobody here has it done again."""
        if self._elsewhere is not None:
            self._elsewhere.cancel(space, key)

    async def wait(self, seconds: float) -> int:
        """Let runs finish for so long; returns how many are left."""
        self.takeover.stop()
        if self._elsewhere is not None:
            # They go on without this process.
            await self._elsewhere.close()
            for task in self._tasks.values():
                task.cancel()
            if self._tasks:
                await asyncio.wait(set(self._tasks.values()))
            return 0
        if self.helpers is not None:
            await self.helpers.close()
        if self._tasks and seconds > 0:
            await asyncio.wait(set(self._tasks.values()), timeout=seconds)
        return len(self._tasks)

    async def hand_over(self) -> None:
        """Give back the claims of what is not finished, for another server to go on; this process must end next."""
        self.handing_over = True
        ours = {_us()}
        if self._long_work is not None:
            ours |= await self._long_work.kill()
        for space, key in list(self._tasks):
            record = await self.record(space, key)
            if record is not None and record.state is State.HELD and record.about.owner in ours:
                await self._engine.store.release(Lease(record.identity, record.fence, record.attempt_id))

    async def _work(self, prepared: Prepared, audit: Mapping[str, Any], priority: Priority) -> Done:
        space, key = prepared.space, prepared.key.key
        promised, reserved = False, None
        log = ExtractionLog(space, key, audit)
        try:
            record = await self.record(space, key)
            if record is None or record.state is not State.DONE:
                log.missed()
                reserved = await self._promises.make(prepared, audit)
                promised = True
                # Whoever deleted the ontology meanwhile has not seen this run.
                await self._preparer.present(space, prepared.request)
            self._written[space, key].set()
            await self._workspaces.note(space)
            if promised and self._elsewhere is not None:
                return await self._elsewhere.finish(prepared, audit, priority=priority)
            if promised:
                log.started(asked_for(prepared.request, prepared.key.components.ontology_id))
            if promised and self.helpers is not None:
                await self.helpers.call(prepared, reserved)
            done = await self._extract(prepared, audit, reserved)
            if not done.cache_hit and not done.shared:
                log.completed(entities=done.entities, relations=done.relations, status=done.status)
            done = done.named(await self._preparer.names(prepared))
        except _AWAY:
            # The promise stays, and is taken up when the store or the disk is back.
            raise
        except BaseException:
            if promised and not self.handing_over and self._elsewhere is None:
                await self.end(space, key, reserved)
            raise
        # What the store does not know yet is told to it by whoever takes the promise up.
        if done.stored and not self.handing_over:
            await self.end(space, key, reserved)
        return done

    async def end(self, space: str, key: str, reserved: Reserved | None) -> None:
        """Take back a promise, and count what its run has spent."""
        await self._promises.end(space, key, reserved)

    async def _extract(self, prepared: Prepared, audit: Mapping[str, Any], reserved: Reserved | None) -> Done:
        if prepared.means is None:
            assert self._long_work is not None
            began = time.monotonic()
            try:
                async with self._suspects.turn(prepared):
                    extracted = await self._long_work.extract(prepared, audit, allowed=self.budgets.allowed(reserved))
            except ChildProcessError as error:
                raise self._suspects.ended(prepared, error) from error
            # The engine of the other process has told nobody here.
            identity = identity_of(prepared.space, prepared.key.key)
            self._observe(CallEnded(CallStarted(identity, {}), extracted.how, time.monotonic() - began, 0.0))
            return extracted.done()
        ALLOWED.set(self.budgets.allowed(reserved))
        async with self.place(prepared):
            extraction = await self._workspaces.get(prepared.space).extract(
                prepared.request.text,
                ontology=prepared.means.ontology,
                extractor=prepared.means.extractor,
                settings=prepared.settings,
                document=prepared.request.document,
                base=self._base,
                audit=audit,
            )
        return done_of(extraction, min_confidence=self._min_confidence)

    @asynccontextmanager
    async def place(self, prepared: Prepared) -> AsyncIterator[None]:
        """A place among the runs that are worked on here, when it is this one's turn."""
        tenant, is_long = tenant_of(prepared.space), len(prepared.request.text) > SHORT_TEXT
        async with AsyncExitStack() as places:
            if is_long and not asks_model(prepared.request):
                await places.enter_async_context(self._reading.turn(tenant))
            await places.enter_async_context(self._run_queue.turn(tenant, is_long=is_long))
            yield

    async def _is_written(self, prepared: Prepared, task: asyncio.Task[Done]) -> bool:
        """Whether a run was written down, as soon as that is known."""
        event = self._written[prepared.space, prepared.key.key]
        written = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({task, written}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            written.cancel()
        return event.is_set()

    def _ended(self, place: tuple[str, str], task: asyncio.Task[Done]) -> None:
        self._tasks.pop(place, None)
        self._written.pop(place, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, _AWAY):
            self.takeover.rest(*place)
        else:
            self.takeover.forget(*place)
            self._suspects.forget(*place)
        if error is not None:
            # These say nothing of the text.
            why = str(error) if isinstance(error, (Problem, ModelError)) else type(error).__name__
            _LOG.warning("the run %s ended with %s", place[1], why)
            self._failures[place] = f"{type(error).__name__}: {error}"
            while len(self._failures) > _FAILURES_KEPT:
                self._failures.popitem(last=False)


def _us() -> str:
    return holder_of(os.getpid())
