"""Runs that belong to the service and not to whoever asked for them.

Rule: a run is a task of the background loop; a caller that leaves does not end it, `cancel` does. One task for one key
and space, whoever asks. Its promise is on the disk before it begins and before anybody is told that it was accepted.
Promises that nobody works on, because their server died or because the store was away, are taken up by every server
that looks, and the once engine lets one of them work. When the service stops, what is not finished in time is handed
over: its claim is given back, its promise stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from sameas.cluster.broker import Priority
from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.graph.model import in_memory
from sameas.extraction.runs.metadata import ExtractorName, RunMetadata, SpendingFile, instant
from sameas.extraction.runs.record import SCOPE
from sameas.identity.key import record_digest
from sameas.llm.budget import TOKENS_PER_CHUNK
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError, Superseded
from sameas.once.observe import CallEnded, CallStarted, Event
from sameas.once.record import Identity, Lease, Record, State
from sameas.once.rollout import Rollout
from sameas.once.store import AsyncStore
from sameas.server.bodies import BodyMemory
from sameas.server.problems import Problem, not_found
from sameas.server.runs.answers import Done, done_of, parts
from sameas.server.runs.day_accounts import DayAccounts, Reserved, Spent, total
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.extraction_log import ExtractionLog, asked_for
from sameas.server.runs.helpers import ASKS_MODELS, Helpers, helpers_for
from sameas.server.runs.long_tasks import AWAY
from sameas.server.runs.long_work import LongWork, holder_of
from sameas.server.runs.models import ALLOWED, ModelEstimate
from sameas.server.runs.pending_runs import PendingObjects, PendingRun, PendingRuns
from sameas.server.runs.preparation import LONG_TEXT, Prepared, Preparing, asks_model, estimate_of, is_long
from sameas.server.runs.run_queue import SHORT_TEXT, RunQueue
from sameas.server.schemas import ExtractRequest
from sameas.server.tenants.ontologies import ContentGone, Ontologies, Registered
from sameas.server.tenants.workspaces import Workspaces, tenant_of

_LOG = logging.getLogger("sameas.server")
_FAILURES_KEPT = 1_000
# Long texts that are read here at once: one interpreter reads them all, so that more would be no sooner done, and short
# work would wait for each of them again and again.
_READ_AT_ONCE = 2
# Requests whose keys are computed at once: of those who wait, tenants take turns.
_KEYED_AT_ONCE = 8
# What ended its process so often needs more than this machine has.
_ENDS_AT_MOST = 3
# Seconds between two tries at what the disk or the store ended.
_LONGEST_REST = 60.0
# The ontology is gone, or another one by now. What this process alone cannot do is left for one that can.
_OVERTAKEN = (404, 409)
# What says nothing about the work: the store or the disk was away, or somebody else was at it.
_AWAY = (*AWAY, OSError)
# How often a run is sent to workers that do not begin it.
_SENT_AT_MOST = 5
_UNWANTED_KEPT = 1_000


class _Rest(NamedTuple):
    """Until when a promise rests, by the monotonic clock, and for how long."""

    until: float
    pause: float


_RESTED = _Rest(0.0, 0.25)


class Runner:
    """The runs of this process. Lives in the background loop; `is_running` may be called from anywhere."""

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        ontologies: Ontologies,
        preparing: Preparing,
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
        asks_here: bool,
        rollout: Rollout,
        min_confidence: float | None = None,
        observe: Callable[[Event], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._workspaces = workspaces
        self._ontologies = ontologies
        self._preparing = preparing
        self._long_work = long_work
        self._pending_runs = pending_runs
        # With it, workers elsewhere do what is written down here.
        self._dispatch = dispatch
        self._is_worker = is_worker
        self._chunks_per_task = chunks_per_task
        # Of a worker: those who do parts of its runs, and whose parts it does.
        self.helpers: Helpers | None = None
        self._engine = engine
        self._base = base
        self._lease = lease
        self._run_queue = RunQueue(at_once, divided=divided)
        self._reading = RunQueue(_READ_AT_ONCE, divided=divided)
        self._keying = RunQueue(_KEYED_AT_ONCE, divided=divided)
        self._body_memory = body_memory
        self._accounts = accounts
        self._request_limit = request_limit
        # Whether models are asked in this process and not in one of their own.
        self._asks_here = asks_here
        self._rollout = rollout
        self._min_confidence = min_confidence
        self._observe = observe
        self._clock = clock
        self._tasks: dict[tuple[str, str], asyncio.Task[Done]] = {}
        # Of the runs under way: set when a run is written down.
        self._written: dict[tuple[str, str], asyncio.Event] = {}
        self._failures: OrderedDict[tuple[str, str], str] = OrderedDict()
        # How often the process of a long run ended under it. Which of several ended it nobody knows: those that it may
        # have been are tried one at a time, so that none is taken for another again. Models have their own process.
        self._ends: Counter[tuple[str, str]] = Counter()
        self._suspects = {asks: RunQueue(1, divided=divided) for asks in (False, True)}
        # Of promises that the store or the disk ended: not to be taken up before.
        self._rests: dict[tuple[str, str], _Rest] = {}
        # Of runs that workers do: cancelled, wherever that was asked.
        self._unwanted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._handing_over = False
        self._looking: asyncio.Task[None] | None = None

    def is_running(self, space: str, key: str) -> bool:
        return (space, key) in self._tasks

    def failure(self, space: str, key: str) -> str | None:
        """Why the last run of a key in this process could not even begin or go on."""
        return self._failures.get((space, key))

    def forget(self, space: str, key: str) -> None:
        """The run was deleted: why it failed is nobody's business any more."""
        self._failures.pop((space, key), None)
        self._rests.pop((space, key), None)

    @property
    def store(self) -> AsyncStore:
        """Where the records of runs are."""
        return self._engine.store

    @property
    def running(self) -> int:
        return len(self._tasks) + (0 if self.helpers is None else self.helpers.helping)

    async def prepare(self, space: str, request: ExtractRequest) -> Prepared:
        """Resolve the ontology and the extractor, and compute the key."""
        try:
            return await self._prepare(space, request, await self._present(space, request))
        except ContentGone as gone:
            # It was put anew elsewhere, and the word of it has not come yet.
            await self._ontologies.refresh(gone.owner)
            return await self._prepare(space, request, await self._present(space, request))

    async def estimate(self, prepared: Prepared) -> ModelEstimate | None:
        """What a model would be asked about a request; None where none is."""
        if prepared.means is not None or self._long_work is None or not asks_model(prepared.request):
            return await estimate_of(prepared)
        return await self._long_work.estimate(prepared)

    async def record(self, space: str, key: str) -> Record | None:
        """The record of a run in the once engine."""
        return await self._engine.read(SCOPE, key, tenant=space, namespace="content")

    async def is_accepted(self, space: str, key: str) -> bool:
        """Whether a run is written down: a promise on the disk, or a claim or a result in the store."""
        if await asyncio.to_thread(self._pending_runs.has, space, key):
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
        log = log or log_request(prepared, audit)
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
                    raise _cancelled() from None
                raise

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
            self._unwanted.pop(place, None)
            self._written[place] = asyncio.Event()
            # Of a run that nobody waits for the text stays until its turn has come.
            size = sys.getsizeof(prepared.request.text)
            tenant = tenant_of(prepared.space)
            self._body_memory.hold(size, tenant)
            task = self._tasks[place] = asyncio.create_task(self._work(prepared, audit, priority))
            task.add_done_callback(lambda done: self._ended(place, done))
            task.add_done_callback(lambda _: self._body_memory.give_back(size, tenant))
        return task

    async def cancel(self, space: str, key: str) -> Literal["cancelled", "elsewhere", "ended"]:
        """End a run that is under way here; say whether it is under way elsewhere."""
        task = self._tasks.get((space, key))
        if task is not None and self._dispatch is None:
            task.cancel()
            await asyncio.wait({task})
            return "cancelled"
        if self._dispatch is not None:
            self._unwanted[space, key] = None
            while len(self._unwanted) > _UNWANTED_KEPT:
                self._unwanted.popitem(last=False)
            self._dispatch.hear_end(space, key)
        record = await self.record(space, key)
        if record is not None and record.state is State.HELD:
            return "elsewhere"
        pending_run = await asyncio.to_thread(self._pending_runs.read, space, key)
        if pending_run is not None:
            await self._end(space, key, pending_run.reserved)
            # Another process may have it waiting for its turn.
            return "elsewhere"
        return "ended"

    async def watch(self) -> None:
        """Take up what a dead server left, now and from time to time."""
        if self._is_worker:
            # It does what it is sent.
            return
        if self._dispatch is None:
            await self.take_over()
        self._looking = asyncio.create_task(self._look())

    async def take_over(self) -> int:
        """Begin every promised run that nobody works on; returns how many."""
        if self._dispatch is not None:
            return await self._dispatch.reap()
        assert isinstance(self._pending_runs, PendingRuns)
        begun, ours = 0, {self._pending_runs.path(*place) for place in self._tasks}
        for path in await asyncio.to_thread(self._pending_runs.paths):
            if self._handing_over or self._body_memory.is_full:
                # What there is no room for now is found at the next look.
                break
            if path in ours:
                continue
            pending_run = await asyncio.to_thread(self._pending_runs.read_file, path)
            if pending_run is None or (pending_run.tenant, pending_run.key) in self._tasks:
                continue
            if time.monotonic() < self._rests.get((pending_run.tenant, pending_run.key), _RESTED).until:
                continue
            record = await self.record(pending_run.tenant, pending_run.key)
            if record is not None and record.state is State.HELD and record.lease_until / 1e6 > self._clock():
                continue
            begun += await self._take_up(pending_run)
        return begun

    async def work_on(self, space: str, key: str) -> str:
        """Do a run that was sent to this worker, to its end; says what became of it."""
        if (space, key) in self._tasks:
            return "is done here already"
        pending_run = await asyncio.to_thread(self._pending_runs.read, space, key)
        if pending_run is None:
            return "was not waiting any longer"
        record = await self.record(space, key)
        if record is not None and record.state is State.HELD and record.lease_until / 1e6 > self._clock():
            return "is held by another"
        if not await self._take_up(pending_run):
            return "could not be taken up"
        task = self._tasks.get((space, key))
        if task is not None:
            await asyncio.wait({task})
        return "has ended"

    async def wait(self, seconds: float) -> int:
        """Let runs finish for so long; returns how many are left."""
        if self._looking is not None:
            self._looking.cancel()
        if self._dispatch is not None:
            # They go on without this process.
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
        self._handing_over = True
        ours = {_us()}
        if self._long_work is not None:
            ours |= await self._long_work.kill()
        for space, key in list(self._tasks):
            record = await self.record(space, key)
            if record is not None and record.state is State.HELD and record.about.owner in ours:
                await self._engine.store.release(Lease(record.identity, record.fence, record.attempt_id))

    async def _present(self, space: str, request: ExtractRequest) -> Registered:
        found = await self._ontologies.find(tenant_of(space), request.ontology_id)
        if found is None:
            raise not_found(f"ontology {request.ontology_id!r}", todo="put it first, or list those that are there")
        if request.ontology_version not in (None, found.entry.version):
            raise Problem(
                409,
                "ontology-version-differs",
                "the ontology has another version by now; leave ontologyVersion out or take the present one",
                version=found.entry.version,
            )
        return found

    async def _prepare(self, space: str, request: ExtractRequest, found: Registered) -> Prepared:
        elsewhere = self._long_work is not None and (
            not self._asks_here if asks_model(request) else is_long(request, found)
        )
        async with self._keying.turn(tenant_of(space), is_long=is_long(request, found)):
            if self._long_work is None or not elsewhere:
                return await self._preparing.prepare(space, request, found)
            keyed = await self._long_work.prepare(space, request, found)
        who = ExtractorName(*keyed.extractor)
        return Prepared(space, request, found, self._preparing.settings(request), keyed.whole(), who, None)

    async def _work(self, prepared: Prepared, audit: Mapping[str, Any], priority: Priority) -> Done:
        space, key = prepared.space, prepared.key.key
        promised, reserved = False, None
        log = ExtractionLog(space, key, audit)
        try:
            record = await self.record(space, key)
            if record is None or record.state is not State.DONE:
                log.missed()
                reserved = await self._reserve(prepared)
                await self._promise(prepared, audit, reserved)
                promised = True
                if self._dispatch is not None:
                    return await self._elsewhere(prepared, audit, priority, self._dispatch)
                # Whoever deleted the ontology meanwhile has not seen this run.
                await self._present(space, prepared.request)
            self._written[space, key].set()
            await self._workspaces.note(space)
            if promised:
                log.started(asked_for(prepared.request, prepared.key.components.ontology_id))
            if promised and self.helpers is not None:
                await self.helpers.call(prepared, reserved)
            done = await self._extract(prepared, audit, reserved)
            if not done.cache_hit and not done.shared:
                log.completed(entities=done.entities, relations=done.relations, status=done.status)
            done = done.named(await self._ontologies.names(tenant_of(space), prepared.key.components.ontology_id))
        except _AWAY:
            # The promise stays, and is taken up when the store or the disk is back.
            raise
        except BaseException:
            if promised and not self._handing_over and self._dispatch is None:
                await self._end(space, key, reserved)
            raise
        # What the store does not know yet is told to it by whoever takes the promise up.
        if done.stored and not self._handing_over:
            await self._end(space, key, reserved)
        return done

    async def _elsewhere(
        self, prepared: Prepared, audit: Mapping[str, Any], priority: Priority, dispatch: Dispatch
    ) -> Done:
        """The result of a run that a worker elsewhere does."""
        space, key = prepared.space, prepared.key.key
        await self._present(space, prepared.request)
        self._written[space, key].set()
        await self._workspaces.note(space)
        await dispatch.send(space, key, priority=priority)
        for _ in range(_SENT_AT_MOST):
            await dispatch.wait(space, key)
            record = await self.record(space, key)
            if record is not None and record.state is State.DONE:
                done: Done | None = (await self._extract(prepared, audit, None))._replace(cache_hit=False)
            else:
                done = await asyncio.to_thread(self._ended_in_part, space, key)
            if done is not None:
                break
            if (space, key) in self._unwanted:
                raise _cancelled()
            # It was taken back by nobody and did not begin: it is written down and sent again.
            await self._present(space, prepared.request)
            await self._promise(prepared, audit, await self._reserve(prepared))
            await dispatch.send(space, key, priority=priority)
        else:
            raise Problem(409, "run-overtaken", "the run ended before it began; extract again to have it done")
        return done.named(await self._ontologies.names(tenant_of(space), prepared.key.components.ontology_id))

    def _ended_in_part(self, space: str, key: str) -> Done | None:
        """What is there of a run that has ended elsewhere without a whole result; None if it has not begun."""
        runs = self._workspaces.get(space).runs
        runs.refresh(key)
        metadata = runs.at(key).peek()
        if metadata is None or metadata.is_under_way:
            return None
        if metadata.outcome == "CANCELLED":
            raise _cancelled()
        if metadata.status == "failed":
            said = metadata.errors[-1].message if metadata.errors else "the run failed"
            raise Problem(500, "run-failed", said)
        least = least_confidence(metadata.extractor.name, self._min_confidence)
        graph = in_memory(sure_part(runs.at(key).graph(metadata), least))
        head, tail = parts(metadata, graph.entities, graph.relations, notes=graph.notes)
        return Done(
            key,
            metadata.status,
            cache_hit=False,
            head=head,
            tail=tail,
            computed_at=metadata.completed_at or "",
            entities=metadata.entity_count,
            relations=metadata.relation_count,
        )

    async def _reserve(self, prepared: Prepared) -> Reserved | None:
        """Set aside what a new run may spend on models."""
        space, key = prepared.space, prepared.key.key
        if not prepared.extractor.name.startswith(ASKS_MODELS):
            return None
        pending_run = await asyncio.to_thread(self._pending_runs.read, space, key)
        if pending_run is not None:
            # What was accepted is finished with what was set aside for it.
            return pending_run.reserved
        before = await asyncio.to_thread(self._spent, space, key, starts_over=True)
        chunks = len(prepared.request.text) // prepared.settings.chunking.limit + 1
        usual, most = Spent(TOKENS_PER_CHUNK * chunks), self._request_limit
        likely = usual
        if len(prepared.request.text) <= LONG_TEXT and (found := await self.estimate(prepared)) is not None:
            # A call sets aside as much as its reply may have, so that the likely use alone would begin nothing.
            least = max(usual.tokens, found.input_tokens + found.output_tokens) if found.calls else 0
            dearest = found.most_cost or Decimal(0)
            likely = Spent(least, max(found.cost or Decimal(0), dearest * least / max(1, found.most_tokens)))
            most = Spent(max(usual.tokens, found.most_tokens), dearest).at_most(most)
        helpers = 0
        if self._dispatch is not None and not prepared.request.extraction_params.batch:
            helpers = await helpers_for(
                prepared.extractor.name,
                prepared.request.text,
                prepared.settings,
                chunks_per_task=self._chunks_per_task,
            )
        twice = most.plus(most)
        if not helpers or not twice.fits(self._request_limit):
            return await self._accounts.begin(tenant_of(space), likely=likely.at_most(most), most=most, before=before)
        reserved = await self._accounts.begin(tenant_of(space), likely=likely.at_most(most), most=twice, before=before)
        is_whole = twice.tokens <= reserved.most.tokens and (twice.cost <= reserved.most.cost or not self._limits_cost)
        return replace(reserved, helpers=helpers) if is_whole else reserved

    async def _end(self, space: str, key: str, reserved: Reserved | None) -> None:
        """Take back a promise, and count what its run has spent."""
        await asyncio.to_thread(self._pending_runs.done, space, key)
        await asyncio.to_thread(self._say_ended, space, key)
        if reserved is None:
            return
        try:
            spent = await asyncio.to_thread(self._spent, space, key)
            await self._accounts.end(reserved, spent.less(reserved.before))
        except (SameasError, OSError) as trouble:
            # What was set aside stays so.
            _LOG.warning("what the run %s spent could not be counted: %s", key, trouble)

    def _say_ended(self, space: str, key: str) -> None:
        objects = self._workspaces.get(space).runs.objects
        if objects is not None:
            objects.say_ended(key)

    def _spent(self, space: str, key: str, *, starts_over: bool = False) -> Spent:
        """What the attempts at a run have spent; one that is complete begins anew."""
        folder = self._workspaces.get(space).runs.at(key)
        metadata = folder.peek()
        if metadata is None or (starts_over and metadata.status == "complete"):
            return Spent()
        return total(SpendingFile(folder.path).read(metadata.usage))

    def allowed(self, reserved: Reserved | None, *, to_helper: bool = False) -> tuple[int, Decimal | None] | None:
        """What a run may spend in all, its earlier attempts included, or one who helps it."""
        if reserved is None:
            return None
        most = (reserved.allowed_to_helper() if to_helper else reserved.allowed()).at_most(self._request_limit)
        return max(1, most.tokens), most.cost if self._limits_cost else None

    @property
    def _limits_cost(self) -> bool:
        return self._request_limit.cost.is_finite() or self._accounts.limits_cost

    async def _extract(self, prepared: Prepared, audit: Mapping[str, Any], reserved: Reserved | None) -> Done:
        if prepared.means is None:
            assert self._long_work is not None
            began = time.monotonic()
            try:
                async with self._suspicion(prepared):
                    extracted = await self._long_work.extract(prepared, audit, allowed=self.allowed(reserved))
            except ChildProcessError as error:
                raise self._ended_process(prepared, error) from error
            # The engine of the other process has told nobody here.
            identity = _identity(prepared.space, prepared.key.key)
            self._observe(CallEnded(CallStarted(identity, {}), extracted.how, time.monotonic() - began, 0.0))
            return extracted.done()
        ALLOWED.set(self.allowed(reserved))
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

    @asynccontextmanager
    async def _suspicion(self, prepared: Prepared) -> AsyncIterator[None]:
        """The turn of a run that may have ended its process; at once for every other."""
        if not self._ends[prepared.space, prepared.key.key] or prepared.request.extraction_params.batch:
            yield
            return
        async with self._suspects[asks_model(prepared.request)].turn(tenant_of(prepared.space), is_long=False):
            yield

    def _ended_process(self, prepared: Prepared, error: ChildProcessError) -> Exception:
        """What a run is told whose process ended: to be taken up again, until that has happened too often."""
        place = (prepared.space, prepared.key.key)
        self._ends[place] += 1
        if self._ends[place] < _ENDS_AT_MOST:
            return error
        return Problem(
            422, "run-too-large", f"the run has ended its process {_ENDS_AT_MOST} times: send the text in parts"
        )

    async def _is_written(self, prepared: Prepared, task: asyncio.Task[Done]) -> bool:
        """Whether a run was written down, as soon as that is known."""
        event = self._written[prepared.space, prepared.key.key]
        written = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({task, written}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            written.cancel()
        return event.is_set()

    async def _promise(self, prepared: Prepared, audit: Mapping[str, Any], reserved: Reserved | None) -> None:
        """Write the run down, unless it is."""
        space, request, key = prepared.space, prepared.request, prepared.key
        if await asyncio.to_thread(self._pending_runs.has, space, key.key):
            return
        if self._is_worker:
            # It was cancelled after this worker was told of it.
            raise _cancelled()
        pending = RunMetadata(
            idempotency_key=key.key,
            status="pending",
            ontology_id=key.components.ontology_id,
            ontology_version=key.components.ontology_version,
            started_at=instant(self._clock()),
            extractor=prepared.extractor,
            settings={},
            base=self._base,
            document=request.document,
            text_hash=key.components.text_hash,
            extraction_params_hash=key.components.extraction_params_hash,
        )
        pending_run = PendingRun(
            tenant=space, key=key.key, request=request, audit=audit, pending=pending, reserved=reserved
        )
        try:
            await asyncio.to_thread(self._pending_runs.keep, pending_run)
        except BaseException:
            await self._end(space, key.key, reserved)
            raise

    async def _take_up(self, pending_run: PendingRun) -> bool:
        try:
            prepared = await self.prepare(pending_run.tenant, pending_run.request)
        except Exception as trouble:
            # Whatever is wrong with one promise must not keep a server from starting, or from the others.
            _LOG.warning("the promised run %s cannot be taken up: %s", pending_run.key, trouble)
            if isinstance(trouble, Problem) and trouble.status in _OVERTAKEN:
                await self._end(pending_run.tenant, pending_run.key, pending_run.reserved)
            return False
        if prepared.key.key != pending_run.key:
            # The ontology was updated meanwhile: the old run has nobody to answer to.
            await self._end(pending_run.tenant, pending_run.key, pending_run.reserved)
            return False
        self.start(prepared, pending_run.audit)
        return True

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(max(0.2, self._lease / 3))
            try:
                await self.take_over()
            except Exception as trouble:
                # Whatever it was: who looks no more takes nothing over.
                _LOG.warning("promised runs could not be looked for: %s", trouble)

    def _ended(self, place: tuple[str, str], task: asyncio.Task[Done]) -> None:
        self._tasks.pop(place, None)
        self._written.pop(place, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, _AWAY):
            # What fails again and again is taken up less and less often.
            pause = min(2 * self._rests.get(place, _RESTED).pause, _LONGEST_REST)
            self._rests[place] = _Rest(time.monotonic() + pause, pause)
        else:
            self._rests.pop(place, None)
            self._ends.pop(place, None)
        if error is not None:
            _LOG.warning("the run %s ended with %s", place[1], type(error).__name__)
            self._failures[place] = f"{type(error).__name__}: {error}"
            while len(self._failures) > _FAILURES_KEPT:
                self._failures.popitem(last=False)


def log_request(prepared: Prepared, audit: Mapping[str, Any]) -> ExtractionLog:
    """The log of a request, which begins here."""
    log = ExtractionLog(prepared.space, prepared.key.key, audit)
    log.requested(asked_for(prepared.request, prepared.key.components.ontology_id))
    return log


def replayed(space: str, key: str, seconds: float, *, waited: float = 0.0) -> CallEnded:
    """What observers are told of a result that came from this process's memory, or from a run that was joined."""
    return CallEnded(CallStarted(_identity(space, key), {}), "shared" if waited else "replay", seconds, waited)


def _identity(space: str, key: str) -> Identity:
    return Identity(record_digest(space, SCOPE, key, "content"), space, SCOPE, key)


def _cancelled() -> Problem:
    return Problem(409, "run-cancelled", "the run was cancelled; extract again to go on with it")


def _us() -> str:
    return holder_of(os.getpid())
