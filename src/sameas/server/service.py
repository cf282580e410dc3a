"""The service as a whole: its store, its tenants' spaces, its runs and its listeners, opened and closed together.

Rule: what touches the store or a text lives in the workshop's loop and is asked with `Service.do`; what touches a
client lives in the serving loop. Closing goes from the outside in: no new work, listeners are sent away, runs finish or
are handed over, the store closes last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry
from starlette.websockets import WebSocket

from sameas.connections import open_async_store
from sameas.extraction.runs import RunNotFoundError, Runs
from sameas.identity.ids import uuid7
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError, StoreUnavailable
from sameas.once.observe import Event, Observer
from sameas.once.pruning import keep_pruned
from sameas.once.store import AsyncStore
from sameas.server.answers import Answers
from sameas.server.audit import AuditLog
from sameas.server.door import CaseDirectory, Door, Visitor
from sameas.server.extractors import Extractors, ModelExtractors
from sameas.server.hub import Hub, Standing
from sameas.server.models import Models
from sameas.server.notices import Notice, Notices
from sameas.server.ontologies import SHARED, Ontologies
from sameas.server.promises import Promises
from sameas.server.runner import Runner
from sameas.server.spaces import Spaces
from sameas.server.workshop import Workshop
from sameas.settings import Settings
from sameas.tenancy.authenticator import Authenticator

T = TypeVar("T")
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
    registry: CollectorRegistry
    metrics: Observer | None = None
    """Also told of the replays that come from memory and reach no engine."""


class Service:
    """Everything behind the routes. `start` and `close` are called in the serving loop."""

    def __init__(self, settings: Settings, options: ServiceOptions) -> None:
        self.settings = settings
        self.door = Door(options.authenticator, any_tenant=options.single_tenant, directory=options.directory)
        self.answers = Answers()
        self.registry = options.registry
        self._models = Models(settings)
        self._stop_by = 0.0
        self.stopping = False
        # The open WebSockets, to be closed with a word when the service stops.
        self.sockets: set[WebSocket] = set()
        self._options = options
        self._workshop = Workshop()
        self._serving: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    async def start(self) -> None:
        self.settings.home.mkdir(parents=True, exist_ok=True)
        self._serving = asyncio.get_running_loop()
        self._audit = AuditLog(self.settings.home / "audit.jsonl")
        self._workshop.start()
        await self.do(self._open())
        self.hub = Hub(
            standing=self._standing,
            failure=self._failure,
            is_alive=self._is_alive,
            lease=self.settings.lease,
        )
        self.hub.start()

    async def send_away(self) -> None:
        """Take no new work and end every stream; the first thing to do when the service stops."""
        if not self.stopping:
            self.stopping = True
            self._stop_by = time.monotonic() + self.settings.grace
        await self.hub.close()
        closing = [socket.close(code=_RESTART, reason="the server stops; come back") for socket in self.sockets]
        await asyncio.gather(*closing, return_exceptions=True)

    async def close(self) -> int:
        """Stop; returns how many runs were handed over. After that the process must end without cancelling them."""
        await self.send_away()
        left = await self.do(self.runner.wait(max(0.0, self._stop_by - time.monotonic())))
        if left:
            await self.do(self.runner.hand_over())
            # Not a step further: what a replaced worker still did would only confuse those who listen.
            await asyncio.to_thread(self._workshop.freeze)
            _LOG.warning("%d runs are handed over to the next server", left)
            return left
        await self.do(self._shut())
        await asyncio.to_thread(self._workshop.close)
        self._audit.close()
        return 0

    async def take_over(self) -> int:
        """Begin every promised run that nobody works on; a store that cannot answer is asked again later."""
        try:
            return await self.do(self.runner.take_over())
        except (SameasError, OSError) as trouble:
            _LOG.warning("promised runs could not be looked for: %s", trouble)
            return 0

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work in the workshop; it goes on when the caller leaves."""
        return await self._workshop.do(work)

    def observe(self, event: Event) -> None:
        """Count what no engine was told: a replay from memory, a text without a key, results that were removed."""
        if self._options.metrics is not None:
            self._options.metrics.on(event)

    def cached_results(self) -> int:
        """How many runs there are in the spaces that are open here; blocking."""
        return sum(len(service.runs.list(status="complete")) for service in self.spaces.all())

    def gauges(self) -> dict[str, float]:
        return {
            "runs_under_way": self.runner.running,
            "event_subscribers": self.hub.subscribers,
            "answers_in_memory": len(self.answers),
        }

    def counters(self) -> dict[str, float]:
        return {"events_delivered": self.hub.delivered, "events_missed": self.hub.missed}

    def runs(self, space: str) -> Runs:
        """The run folders of a space; its methods block."""
        return self.spaces.get(space).runs

    async def publish(self, **fields: Any) -> None:
        """Tell every process; in the workshop's loop."""
        notice = Notice(id=str(uuid7()), timestamp=int(time.time() * 1000), **fields)
        await self.notices.publish(notice)

    def audit(self, visitor: Visitor, event: str, *, reason: str = "", **about: Any) -> None:
        """Write down who changed what, and why; on the disk before the answer goes out."""
        self._audit.write(event, visitor, reason=reason, **about)

    async def check_database(self) -> None:
        """Raise where the database of results cannot answer."""
        with suppress(RunNotFoundError):
            await asyncio.to_thread(self.runs(SHARED).find, "0" * 64)

    async def check_store(self) -> None:
        """Raise where the store cannot answer."""
        await self.engine.read("sameas.health", "ready", namespace="client")

    async def _open(self) -> None:
        settings, options = self.settings, self._options
        self.store: AsyncStore = open_async_store(settings.store_url)
        self.engine = AsyncEngine(self.store, observers=options.observers)
        plain = AsyncEngine(self.store)
        self.ontologies = Ontologies(
            plain,
            folder=settings.ontologies if options.single_tenant else None,
            cache=settings.cache / "ontologies",
        )
        self.spaces = Spaces(
            settings.home,
            self.store,
            database=settings.database or None,
            lease=settings.lease,
            observers=options.observers,
        )
        self.promises = Promises(settings.home)
        self.runner = Runner(
            self.spaces,
            ontologies=self.ontologies,
            extractors=Extractors(
                concurrency=settings.concurrency, engine=plain, models=options.models or self._models
            ),
            promises=self.promises,
            engine=plain,
            base=settings.base,
            lease=settings.lease,
            at_once=settings.max_runs,
            observe=self.observe,
        )
        self.notices = Notices(plain, self._heard)
        await self.notices.start()
        await self.runner.watch()
        self._later(keep_pruned(self.engine, every=PRUNE_EVERY))

    async def _shut(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.notices.close()
        await self._models.close()
        await self.store.close()

    def _heard(self, notice: Notice) -> None:
        """In the workshop's loop, once for every notice of any process."""
        match notice.type:
            case "cancel-run":
                self._later(self._cancel(notice.tenant, notice.key))
            case "ontology-updated" | "ontology-deleted":
                owner = SHARED if notice.shared else notice.tenant
                if self.ontologies.has(owner):
                    self._later(self._refresh(owner))
            case "unreadable":
                self._later(self._start_afresh())
            case _:
                self._drop_answers()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancel(self, space: str, key: str) -> None:
        try:
            await self.runner.cancel(space, key)
        except (SameasError, OSError) as trouble:
            _LOG.warning("the run %s could not be cancelled: %s", key, trouble)

    async def _refresh(self, owner: str) -> None:
        try:
            await self.ontologies.refresh(owner)
        except SameasError as trouble:
            _LOG.warning("the registry of ontologies could not be read: %s; it is read when it is next used", trouble)
            await self.ontologies.let_go(owner)
        self._drop_answers()

    async def _start_afresh(self) -> None:
        await self.ontologies.let_go()
        self._drop_answers()

    def _drop_answers(self) -> None:
        if self._serving is not None and not self._serving.is_closed():
            self._serving.call_soon_threadsafe(self.answers.drop)

    def _standing(self, space: str, key: str, number: int) -> Standing:
        if self.runner.is_running(space, key):
            return "going"
        metadata = self.runs(space).at(key).peek()
        if metadata is not None and metadata.is_under_way:
            return "lost"
        if metadata is not None and metadata.first_event > number + 1:
            return "going"
        return "lost" if self.promises.has(space, key) else "ended"

    def _failure(self, space: str, key: str) -> str | None:
        """Why a run ended without a word of its end."""
        failed = self.runner.failure(space, key)
        if failed is None and self.runs(space).at(key).peek() is None:
            return "the run was deleted, or ended before it began; extract again to have it done"
        return failed

    async def _is_alive(self, space: str, key: str) -> bool:
        """Whether somebody works on a run, or has promised to."""
        if self.promises.has(space, key):
            return True
        try:
            return await self.do(self.runner.record(space, key)) is not None
        except StoreUnavailable:
            return True
