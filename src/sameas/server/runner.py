"""Runs that belong to the service and not to whoever asked for them.

Rule: a run is a task of the workshop; a caller that leaves does not end it, `cancel` does. One task for one key and
space, whoever asks. Its promise is on the disk before it begins; promises that nobody works on, because their server
died, are taken up by every server that looks, and the once engine lets one of them work. When the service stops, what
is not finished in time is handed over: its claim is given back, its promise stays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from sameas.extraction.extractor import Extractor
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.extraction.run_record import SCOPE
from sameas.identity.errors import NotCanonical
from sameas.identity.key import IdempotencyKey, record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import Superseded
from sameas.once.observe import CallEnded, CallStarted, Event, KeyFailed
from sameas.once.record import Identity, Lease, Record, State
from sameas.ontology.model import Ontology
from sameas.server.answers import Done, done_of
from sameas.server.extractors import Extractors
from sameas.server.ontologies import ContentGone, Ontologies, Registered
from sameas.server.problems import Problem, not_found
from sameas.server.promises import Promise, Promises
from sameas.server.spaces import Spaces, tenant_of
from sameas.server.wire import ExtractRequest

_LOG = logging.getLogger("sameas.server")
_FAILURES_KEPT = 1_000
# The ontology is gone, or another one by now. What this process alone cannot do is left for one that can.
_OVERTAKEN = (404, 409)


class Prepared(NamedTuple):
    """A request with everything that it stands for; its key is computed once."""

    space: str
    request: ExtractRequest
    found: Registered
    ontology: Ontology
    extractor: Extractor
    settings: PipelineSettings
    key: IdempotencyKey


class Runner:
    """The runs of this process. Lives in the workshop's loop; `is_running` may be called from anywhere."""

    def __init__(
        self,
        spaces: Spaces,
        *,
        ontologies: Ontologies,
        extractors: Extractors,
        promises: Promises,
        engine: AsyncEngine,
        base: str,
        lease: float,
        at_once: int,
        observe: Callable[[Event], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._spaces = spaces
        self._ontologies = ontologies
        self._extractors = extractors
        self._promises = promises
        self._engine = engine
        self._base = base
        self._lease = lease
        self._slots = asyncio.Semaphore(at_once)
        self._observe = observe
        self._clock = clock
        self._tasks: dict[tuple[str, str], asyncio.Task[Done]] = {}
        self._failures: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._handing_over = False
        self._looking: asyncio.Task[None] | None = None

    def is_running(self, space: str, key: str) -> bool:
        return (space, key) in self._tasks

    def failure(self, space: str, key: str) -> str | None:
        """Why the last run of a key in this process could not even begin or go on."""
        return self._failures.get((space, key))

    @property
    def running(self) -> int:
        return len(self._tasks)

    async def prepare(self, space: str, request: ExtractRequest) -> Prepared:
        """Resolve the ontology and the extractor, and compute the key."""
        try:
            found = await self._present(space, request)
            ontology = await self._ontologies.load(found)
        except ContentGone as gone:
            # It was put anew elsewhere, and the word of it has not come yet.
            await self._ontologies.refresh(gone.owner)
            found = await self._present(space, request)
            ontology = await self._ontologies.load(found)
        extractor = self._extractors.extractor(ontology, found, request.extraction_params, tenant=tenant_of(space))
        settings = self._extractors.settings(request.extraction_params)
        service = self._spaces.get(space)
        try:
            key = service.key_of(
                request.text, ontology=ontology, extractor=extractor, settings=settings, base=self._base
            )
        except NotCanonical as error:
            self._observe(KeyFailed(SCOPE, error))
            raise
        return Prepared(space, request, found, ontology, extractor, settings, key)

    async def record(self, space: str, key: str) -> Record | None:
        """The record of a run in the once engine."""
        return await self._engine.read(SCOPE, key, tenant=space, namespace="content")

    async def extract(self, prepared: Prepared, audit: Mapping[str, Any]) -> Done:
        """The result, of a run that goes on whether the caller waits or not."""
        while True:
            began = time.monotonic() if self.is_running(prepared.space, prepared.key.key) else None
            task = self.start(prepared, audit)
            try:
                done = await asyncio.shield(task)
                if began is not None:
                    # No engine was told of this caller: it waited here for the same work.
                    seconds = time.monotonic() - began
                    self._observe(replayed(prepared.space, prepared.key.key, seconds, waited=seconds))
                return done
            except Superseded:
                # Its claim was released or forgotten while it worked: the work is to be done again, by whoever asks.
                if self._tasks.get((prepared.space, prepared.key.key)) is task:
                    raise
            except asyncio.CancelledError:
                if task.cancelled():
                    raise _cancelled() from None
                raise

    def start(self, prepared: Prepared, audit: Mapping[str, Any]) -> asyncio.Task[Done]:
        """Begin the run, or join the one under way."""
        place = (prepared.space, prepared.key.key)
        task = self._tasks.get(place)
        if task is None:
            self._failures.pop(place, None)
            task = self._tasks[place] = asyncio.create_task(self._work(prepared, audit))
            task.add_done_callback(lambda done: self._ended(place, done))
        return task

    async def cancel(self, space: str, key: str) -> Literal["cancelled", "elsewhere", "ended"]:
        """End a run that is under way here; say whether it is under way elsewhere."""
        task = self._tasks.get((space, key))
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            return "cancelled"
        record = await self.record(space, key)
        if record is not None and record.state is State.HELD:
            return "elsewhere"
        if await asyncio.to_thread(self._promises.has, space, key):
            await asyncio.to_thread(self._promises.done, space, key)
            # Another process may have it waiting for its turn.
            return "elsewhere"
        return "ended"

    async def watch(self) -> None:
        """Take up what a dead server left, now and from time to time."""
        await self.take_over()
        self._looking = asyncio.create_task(self._look())

    async def take_over(self) -> int:
        """Begin every promised run that nobody works on; returns how many."""
        begun = 0
        for promise in await asyncio.to_thread(lambda: list(self._promises.all())):
            if (promise.tenant, promise.key) in self._tasks or self._handing_over:
                continue
            record = await self.record(promise.tenant, promise.key)
            if record is not None and record.state is State.HELD and record.lease_until / 1e6 > self._clock():
                continue
            begun += await self._take_up(promise)
        return begun

    async def wait(self, seconds: float) -> int:
        """Let runs finish for so long; returns how many are left."""
        if self._looking is not None:
            self._looking.cancel()
        if self._tasks and seconds > 0:
            await asyncio.wait(set(self._tasks.values()), timeout=seconds)
        return len(self._tasks)

    async def hand_over(self) -> None:
        """Give back the claims of what is not finished, for another server to go on; this process must end next."""
        self._handing_over = True
        for space, key in list(self._tasks):
            record = await self.record(space, key)
            if record is not None and record.state is State.HELD and record.about.owner == _us():
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

    async def _work(self, prepared: Prepared, audit: Mapping[str, Any]) -> Done:
        space, key = prepared.space, prepared.key.key
        promised = False
        try:
            record = await self.record(space, key)
            if record is None or record.state is not State.DONE:
                promise = Promise(tenant=space, key=key, request=prepared.request, audit=audit)
                promised = True
                await asyncio.to_thread(self._promises.keep, promise)
            await self._spaces.note(space)
            async with self._slots:
                extraction = await self._spaces.get(space).extract(
                    prepared.request.text,
                    ontology=prepared.ontology,
                    extractor=prepared.extractor,
                    settings=prepared.settings,
                    document=prepared.request.document,
                    base=self._base,
                    audit=audit,
                )
            return done_of(extraction)
        finally:
            if promised and not self._handing_over:
                self._promises.done(space, key)

    async def _take_up(self, promise: Promise) -> bool:
        try:
            prepared = await self.prepare(promise.tenant, promise.request)
        except Exception as trouble:
            # Whatever is wrong with one promise must not keep a server from starting, or from the others.
            _LOG.warning("the promised run %s cannot be taken up: %s", promise.key, trouble)
            if isinstance(trouble, Problem) and trouble.status in _OVERTAKEN:
                await asyncio.to_thread(self._promises.done, promise.tenant, promise.key)
            return False
        if prepared.key.key != promise.key:
            # The ontology was updated meanwhile: the old run has nobody to answer to.
            await asyncio.to_thread(self._promises.done, promise.tenant, promise.key)
            return False
        self.start(prepared, promise.audit)
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
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _LOG.warning("the run %s ended with %s", place[1], type(error).__name__)
            self._failures[place] = f"{type(error).__name__}: {error}"
            while len(self._failures) > _FAILURES_KEPT:
                self._failures.popitem(last=False)


def replayed(space: str, key: str, seconds: float, *, waited: float = 0.0) -> CallEnded:
    """What observers are told of a result that came from this process's memory, or from a run that was joined."""
    identity = Identity(record_digest(space, SCOPE, key, "content"), space, SCOPE, key)
    return CallEnded(CallStarted(identity, {}), "shared" if waited else "replay", seconds, waited)


def _cancelled() -> Problem:
    return Problem(409, "run-cancelled", "the run was cancelled; extract again to go on with it")


def _us() -> str:
    """The name under which the once engine notes this process as a holder."""
    return f"{socket.gethostname()}:{os.getpid()}"
