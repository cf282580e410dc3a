"""The service as a whole: its store, its tenants' spaces, its runs and its listeners, opened and closed together.

Rule: what touches the store or a text lives in the background loop and is asked with `Service.do`; what touches a
client lives in the serving loop. Closing goes from the outside in: no new work, listeners are sent away, runs finish or
are handed over, the store closes last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from prometheus_client import CollectorRegistry
from starlette.websockets import WebSocket

from sameas.cluster.broker import Broker
from sameas.collections import Collections, collections_url, open_tables
from sameas.connections import open_async_store
from sameas.extraction.runs.library import Runs
from sameas.objects import open_objects
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError, StoreUnavailable
from sameas.once.observe import Event, Observer
from sameas.once.pruning import keep_pruned
from sameas.once.record import Record
from sameas.once.store import AsyncStore
from sameas.server.bodies import BodyMemory, Note
from sameas.server.leftovers import journal_folders, keep_swept
from sameas.server.logs import AuditLog
from sameas.server.metrics import ClusterMetrics, ModelMetrics
from sameas.server.notices import Notices
from sameas.server.runs.answers import Answers, ClientKeys
from sameas.server.runs.background_loop import BackgroundLoop
from sameas.server.runs.chunk_tasks import Helpers
from sameas.server.runs.collection_work import CollectionWork
from sameas.server.runs.day_accounts import DayAccounts, Spent
from sameas.server.runs.deletion import Deletion
from sameas.server.runs.dispatch import Dispatch
from sameas.server.runs.hourly_counts import HourlyCounts, keep_flushed
from sameas.server.runs.long_work import LongWork, Preparer
from sameas.server.runs.models import AccountState, Models
from sameas.server.runs.pending_runs import PendingObjects, PendingRuns
from sameas.server.runs.preparation import Extractors, ModelExtractors, Preparing, TimeLimits
from sameas.server.runs.runner import Runner
from sameas.server.runs.slow_work import QuestionRoom, SlowWork
from sameas.server.shares import Requests
from sameas.server.streams.admissions import Admission, Admissions
from sameas.server.streams.hub import Hub, Standing
from sameas.server.streams.journal_mirror import JournalMirrors
from sameas.server.streams.lines import Line
from sameas.server.tenants.access import AccessControl, Caller, CaseDirectory, WebSessions
from sameas.server.tenants.broadcast import Broadcast, NoticeType, notice
from sameas.server.tenants.ontologies import Ontologies
from sameas.server.tenants.ontology_files import say_unused
from sameas.server.tenants.workspaces import Workspaces, open_event_reader, open_live_events
from sameas.settings import Settings
from sameas.tenancy.authenticator import Authenticator

if TYPE_CHECKING:
    from sameas.llm.supervisor import RequestSupervisor

T = TypeVar("T")
_IN_MEMORY = "memory"
# RFC 6455's registry: the server restarts, and the client may come back.
_RESTART = 1012
# Seconds, about, between two removals of expired records.
PRUNE_EVERY = 600.0
_LOG = logging.getLogger("sameas.server")


class ServiceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings do not say: who lets people in, who watches, where models come from."""

    authenticator: Authenticator
    single_tenant: bool
    directory: CaseDirectory | None = None
    observers: tuple[Observer, ...] = ()
    models: ModelExtractors | None = None
    is_worker: bool = False
    """It does what it is sent by a broker, and has no doors."""
    registry: CollectorRegistry
    metrics: Observer | None = None
    """Also told of the replays that come from memory and reach no engine."""


class Service:
    """Everything behind the routes. `start` and `close` are called in the serving loop."""

    def __init__(self, settings: Settings, options: ServiceOptions) -> None:
        self.settings = settings
        self.rollout = settings.rollout()
        self.access = AccessControl(
            options.authenticator, any_tenant=options.single_tenant, directory=options.directory
        )
        self.answers = Answers()
        self.web_sessions = WebSessions(lambda: self.engine, self.do)
        self.body_memory = BodyMemory(settings.max_bodies, of_one=None if options.single_tenant else settings.max_body)
        self.admissions = Admissions(self.access, self.web_sessions, per_tenant=settings.max_streams)
        self.requests = Requests(settings.max_requests, divided=not options.single_tenant)
        self.slow_work = SlowWork("slow-work", divided=not options.single_tenant)
        self.registry = options.registry
        self._models = options.models if isinstance(options.models, Models) else Models(settings)
        self._model_metrics = ModelMetrics()
        self.registry.register(self._model_metrics)
        self.dispatch: Dispatch | None = None
        self.registry.register(ClusterMetrics(self._queue, self._slots))
        self._long_work: LongWork | None = None
        self._stop_by = 0.0
        self.stopping = False
        # The open WebSockets, to be closed with a word when the service stops.
        self.sockets: set[WebSocket] = set()
        self._options = options
        self._background_loop = BackgroundLoop()
        self._serving: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    async def start(self) -> None:
        """Open everything, unless it is open."""
        if self._serving is not None:
            return
        self.settings.home.mkdir(parents=True, exist_ok=True)
        self._serving = asyncio.get_running_loop()
        self._audit = AuditLog(self.settings.home / "audit.jsonl")
        self._background_loop.start()
        try:
            await self.do(self._open())
        except BaseException:
            await asyncio.to_thread(self._background_loop.close)
            self._audit.close()
            raise
        self.hub = Hub(
            standing=self._standing,
            failure=self._failure,
            is_alive=self._is_alive,
            lease=self.settings.lease,
        )
        self.hub.start()
        self.admissions.start()

    async def send_away(self) -> None:
        """Take no new work and end every stream; the first thing to do when the service stops."""
        if not self.stopping:
            self.stopping = True
            self._stop_by = time.monotonic() + self.settings.grace
        await self.hub.close()
        await self.admissions.close()
        closing = [socket.close(code=_RESTART, reason="the server stops; come back") for socket in self.sockets]
        await asyncio.gather(*closing, return_exceptions=True)

    async def close(self) -> int:
        """Stop; returns how many runs were handed over. After that the process must end without cancelling them."""
        await self.send_away()
        await self.do(self.collection_work.close())
        left = await self.do(self.runner.wait(max(0.0, self._stop_by - time.monotonic())))
        if left:
            await self.do(self.runner.hand_over())
            await self.do(self._close_counts())
            # Not a step further: what a replaced worker still did would only confuse those who listen.
            await asyncio.to_thread(self._background_loop.freeze)
            _LOG.warning("%d runs are handed over to the next server", left)
            return left
        await self.do(self._shut())
        await asyncio.to_thread(self._background_loop.close)
        self._audit.close()
        return 0

    async def take_over(self) -> int:
        """Begin every promised run that nobody works on; a store that cannot answer is asked again later."""
        try:
            return await self.do(self.runner.takeover.take_over())
        except (SameasError, OSError) as trouble:
            _LOG.warning("promised runs could not be looked for: %s", trouble)
            return 0

    async def enter(self, scope: Mapping[str, Any]) -> Caller:
        """Who makes a request, if they may and their tenant has not its share of requests under way."""
        note: Note = scope["sameas.note"]
        caller = note.caller = await self.access.enter(scope)
        if note.place is not None:
            note.place.take_share(caller.ctx.tenant_id)
        return caller

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work in the background loop; it goes on when the caller leaves."""
        return await self._background_loop.do(work)

    def observe(self, event: Event) -> None:
        """Count what no engine was told: a replay from memory, a text without a key, results that were removed."""
        if self._options.metrics is not None:
            self._options.metrics.on(event)
        self.counts.on(event)

    def cached_results(self) -> int:
        """How many runs are kept in the spaces that are open here; blocking, and no run is read for it."""
        return sum(service.runs.count() for _, service in self.workspaces.all())

    def _queue(self) -> tuple[int, float, int] | None:
        """Messages, age of the oldest run and runs that wait, where workers elsewhere do the work."""
        if self.dispatch is None:
            return None
        return self.dispatch.queue.waiting, self.dispatch.oldest_seconds, self.dispatch.waiting

    def _slots(self) -> tuple[int, int] | None:
        """Used and free places of a worker."""
        if not self._options.is_worker or self._serving is None:
            return None
        used = self.runner.running
        return used, max(0, self.settings.max_runs - used)

    def gauges(self) -> dict[str, float]:
        return {
            "runs_under_way": self.runner.running,
            "event_subscribers": self.hub.subscribers,
            "streams_open": len(self.admissions),
            "bytes_of_bodies": self.body_memory.used,
            "answers_in_memory": len(self.answers),
        }

    @property
    def model_names(self) -> tuple[str, ...]:
        """The models that a request may name."""
        return self._models.names

    async def look_at_models(self) -> None:
        """Have the metrics say how limiters and circuits stand now."""
        self._model_metrics.states = await self.model_states()

    def question_supervisor(self, named: str | None, tenant: str) -> RequestSupervisor:
        """What asks a model about a question; in the background loop."""
        return self._models.supervisor(named, tenant=tenant, engine=AsyncEngine(self.store))

    async def model_states(self) -> list[AccountState]:
        """How the limiters and circuits of the models' accounts stand now."""
        return await self.do(self._model_states())

    async def _model_states(self) -> list[AccountState]:
        elsewhere: tuple[AccountState, ...] = ()
        if self._long_work is not None:
            # A process that has just ended has no limiters.
            with suppress(ChildProcessError):
                elsewhere = await self._long_work.look_at_models()
        return [*elsewhere, *await self._models.states()]

    def counters(self) -> dict[str, float]:
        return {"events_delivered": self.hub.delivered, "events_missed": self.hub.missed}

    async def listen(
        self, space: str, key: str, *, after: int = 0, admission: Admission | None = None
    ) -> AsyncGenerator[list[Line], None]:
        """The events of a run, wherever it is worked on; as `Hub.listen`."""
        if self.dispatch is None or self.hub.closed:
            journal = self.runs(space).at(key).journal_path
            async for batch in self.hub.listen(space, key, journal, after=after, admission=admission):
                yield batch
            return
        objects = self.runs(space).objects
        assert objects is not None
        journal = await self.do(self.mirrors.enter(space, key, objects, is_open=lambda: self._is_open(space, key)))
        try:
            async for batch in self.hub.listen(space, key, journal, after=after, admission=admission):
                yield batch
        finally:
            await self.do(self.mirrors.leave(space, key))

    async def _record(self, space: str, key: str) -> Record | None:
        return await self.runner.record(space, key)

    async def _is_open(self, space: str, key: str) -> bool:
        """Whether a run that workers do has not ended; in the background loop."""
        return await asyncio.to_thread(self.pending_runs.has, space, key)

    def runs(self, space: str) -> Runs:
        """The run folders of a space; its methods block."""
        return self.workspaces.get(space).runs

    async def publish(self, kind: NoticeType, **fields: Any) -> None:
        """Tell every process; in the background loop."""
        await self.broadcast.publish(notice(kind, **fields))

    async def cancel(self, space: str, key: str) -> Literal["cancelled", "elsewhere", "ended"]:
        """End a run, wherever it is worked on; says what became of it."""
        return await self.do(
            self.runner.cancel(space, key, tell=partial(self.publish, "cancel-run", tenant=space, key=key))
        )

    def audit(self, caller: Caller, event: str, *, reason: str = "", **about: Any) -> None:
        """Write down who changed what, and why; on the disk before the answer goes out."""
        self._audit.write(event, caller, reason=reason, **about)

    async def _open(self) -> None:
        settings, options = self.settings, self._options
        self.store: AsyncStore = open_async_store(settings.store_url)
        self.counts = await asyncio.to_thread(HourlyCounts, settings.counts_url)
        observers = (*options.observers, self.counts)
        self.engine = AsyncEngine(self.store, observers=observers)
        plain = AsyncEngine(self.store)
        objects = open_objects(settings.objects) if settings.objects else None
        live = open_live_events(settings)
        self._audit.objects = objects
        if urlsplit(settings.store_url).scheme != _IN_MEMORY:
            # A store in this process's memory is not there for another.
            self._long_work = LongWork(settings, divided=not options.single_tenant)
        self.ontologies = Ontologies(
            plain,
            folder=settings.ontologies if options.single_tenant and not settings.broker else None,
            cache=settings.cache / "ontologies",
            describe_large=None if self._long_work is None else self._long_work.describe,
        )
        self.workspaces = Workspaces(
            settings.home,
            self.store,
            database=settings.database or None,
            lease=settings.lease,
            retention=settings.result_ttl,
            objects=objects,
            live=live,
            observers=observers,
        )
        self.pending_runs: PendingRuns | PendingObjects = PendingRuns(settings.home)
        if settings.broker and objects is not None:
            await asyncio.to_thread(say_unused, settings.ontologies)
            self.pending_runs = PendingObjects(objects)
            if not options.is_worker:
                reader = open_event_reader(settings, on_ended=self._hear_end)
                self.dispatch = Dispatch(
                    Broker(settings.broker),
                    self.pending_runs,
                    record=self._record,
                    hears_ends=lambda: reader is not None and reader.is_hearing,
                )
                self.mirrors = JournalMirrors(journal_folders(settings.home), reader, dispatch=self.dispatch)
        most = Decimal(str(settings.tenant_cost_per_day)) if settings.tenant_cost_per_day else None
        self.accounts = DayAccounts(plain, tokens=settings.tenant_tokens_per_day, cost=most)
        of_request = Decimal(str(settings.request_cost)) if settings.request_cost else Decimal("Infinity")
        preparing = Preparing(
            self.workspaces,
            ontologies=self.ontologies,
            extractors=Extractors(
                concurrency=settings.concurrency,
                engine=plain,
                models=options.models or self._models,
                limits=TimeLimits.of(settings),
                default=settings.extractor,
            ),
            base=settings.base,
            observe=self.observe,
        )
        self.preparer = Preparer(
            preparing,
            ontologies=self.ontologies,
            long_work=self._long_work,
            asks_here=options.models is not None,
            divided=not options.single_tenant,
        )
        self.broadcast = Broadcast(plain, Notices(self).hear)
        self.runner = Runner(
            self.workspaces,
            preparer=self.preparer,
            long_work=self._long_work,
            pending_runs=self.pending_runs,
            dispatch=self.dispatch,
            is_worker=options.is_worker,
            engine=plain,
            base=settings.base,
            lease=settings.lease,
            at_once=settings.max_runs,
            divided=not options.single_tenant,
            chunks_per_task=settings.chunks_per_task,
            body_memory=self.body_memory,
            accounts=self.accounts,
            request_limit=Spent(settings.request_tokens, of_request),
            rollout=self.rollout,
            min_confidence=settings.min_confidence,
            observe=self.observe,
            hear=self.broadcast.look,
        )
        if options.is_worker and isinstance(self.pending_runs, PendingObjects):
            self.runner.helpers = Helpers(
                Broker(settings.broker),
                runner=self.runner,
                chunks_per_task=settings.chunks_per_task,
                workspaces=self.workspaces,
                pending_runs=self.pending_runs,
                long_work=self._long_work,
                accounts=self.accounts,
            )
        self.client_keys = ClientKeys(plain, lease=settings.lease, retention=settings.key_ttl)
        self.deletion = Deletion(
            self.workspaces,
            runner=self.runner,
            pending_runs=self.pending_runs,
            client_keys=self.client_keys,
            broadcast=self.broadcast,
        )
        self.collections = Collections(
            await asyncio.to_thread(open_tables, collections_url(settings.home, settings.database))
        )
        self.questions = QuestionRoom(settings, divided=not options.single_tenant)
        self.collection_work = CollectionWork(
            self.collections,
            runner=self.runner,
            workspaces=self.workspaces,
            deletion=self.deletion,
            at_once=settings.max_runs,
            min_confidence=settings.min_confidence,
        )
        await self.broadcast.start()
        if not options.is_worker:
            # A worker does what it is sent.
            await self.runner.takeover.start()
        if self._long_work is not None and settings.models and options.models is None:
            # Loading a provider's package takes a while, and the first who asks should not wait for it.
            self.later(self._long_work.start_models())
        self.later(keep_pruned(self.engine, every=PRUNE_EVERY, archive=settings.archive_path))
        self.later(keep_swept(settings.home))
        if not options.is_worker:
            self.collection_work.start()
        self.later(keep_flushed(self.counts))

    def _hear_end(self, space: str, key: str) -> None:
        assert self.dispatch is not None
        self.dispatch.hear_end(space, key)

    async def _shut(self) -> None:
        if self.dispatch is not None:
            await self.mirrors.close()
            await self.dispatch.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.broadcast.close()
        self.slow_work.close()
        await asyncio.to_thread(self.questions.close)
        await asyncio.to_thread(self.collections.close)
        if self._long_work is not None:
            await self._long_work.close()
        await self._models.close()
        await asyncio.to_thread(self.workspaces.close)
        await self.store.close()
        await self._close_counts()

    async def _close_counts(self) -> None:
        try:
            await asyncio.to_thread(self.counts.flush)
        except SameasError as trouble:
            _LOG.warning("the last hourly counts could not be written: %s", trouble)
        self.counts.close()

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done, as long as the service is open; in the background loop."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop_answers(self) -> None:
        """Have every answer asked for again; in the background loop."""
        if self._serving is not None and not self._serving.is_closed():
            self._serving.call_soon_threadsafe(self.answers.drop)

    def _standing(self, space: str, key: str, number: int) -> Standing:
        if self.dispatch is not None:
            return "ended" if self.mirrors.is_over(space, key) else "going"
        if self.runner.is_running(space, key):
            return "going"
        metadata = self.runs(space).at(key).peek()
        if metadata is not None and metadata.is_under_way:
            return "lost"
        if metadata is not None and metadata.first_event > number + 1:
            return "going"
        return "lost" if self.pending_runs.has(space, key) else "ended"

    def _failure(self, space: str, key: str) -> str | None:
        """Why a run ended without a word of its end."""
        failed = self.runner.failure(space, key)
        if self.dispatch is not None:
            return failed
        if failed is None and self.runs(space).at(key).peek() is None:
            return "the run was deleted, or ended before it began; extract again to have it done"
        return failed

    async def _is_alive(self, space: str, key: str) -> bool:
        """Whether somebody works on a run, or has promised to."""
        if self.pending_runs.has(space, key):
            return True
        try:
            return await self.do(self.runner.record(space, key)) is not None
        except StoreUnavailable:
            return True
