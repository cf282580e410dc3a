"""Where the runs of a tenant, or of one case of a tenant, live apart from all others.

Rule: a space has its own results, run folders and records; nothing found in one is ever given out in another. A case's
space is only reached by a request whose principal is a member of the case. The cases in which anything was done are
written down in the store, so that what concerns a whole tenant reaches them from every process.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from sameas.extraction.runs.record import run_policy
from sameas.extraction.runs.run_objects import LiveEvents
from sameas.extraction.runs.service import ExtractionService, ServiceSettings
from sameas.identity.scope import ScopeContext
from sameas.objects import Objects
from sameas.once.async_engine import AsyncEngine
from sameas.once.observe import Observer
from sameas.once.policy import DAY
from sameas.once.store import AsyncStore, Query
from sameas.settings import Settings

if TYPE_CHECKING:
    from sameas.cluster.live_events import EventReader

_KEPT = 256
_OF_CASE = "~case~"
_CASES = "sameas.cases"
_PAGE = 500


def workspace_of(ctx: ScopeContext) -> str:
    """The name of the space that a hop works in."""
    return ctx.tenant_id if ctx.case_id is None else f"{ctx.tenant_id}{_OF_CASE}{ctx.case_id}"


def tenant_of(space: str) -> str:
    """The tenant that a space belongs to."""
    return space.partition(_OF_CASE)[0]


def _stored(tenant: str) -> str:
    """Where the cases of a tenant are written down: apart from the records that it may list and forget."""
    return f"~cases~{tenant}"


def open_live_events(settings: Settings) -> LiveEvents | None:
    """Where runs tell what happens, if workers elsewhere do them."""
    if not settings.broker or not settings.events_url:
        return None
    from sameas.cluster.live_events import RedisEvents

    return RedisEvents(settings.events_url)


def open_event_reader(settings: Settings, *, on_ended: Callable[[str, str], None]) -> EventReader | None:
    """What reads there what workers elsewhere tell."""
    if not settings.events_url:
        return None
    from sameas.cluster.live_events import EventReader

    reader = EventReader(settings.events_url, on_ended=on_ended)
    reader.start()
    return reader


class Workspaces:
    """The extraction services of the spaces that were asked for; those not used for longest are let go."""

    def __init__(
        self,
        home: Path,
        store: AsyncStore,
        *,
        database: str | None,
        lease: float,
        retention: float = 7 * DAY,
        objects: Objects | None = None,
        live: LiveEvents | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._home = home
        self._store = store
        self._database = database
        self._objects = objects
        self._live = live
        # Machines with homes of their own go on from each other's checkpoints.
        shared = objects is not None and database is not None
        policy = run_policy(lease=lease, retention=retention)
        self._settings = ServiceSettings(policy=policy, shared_checkpoints=shared)
        self._observers = tuple(observers)
        self._lock = Lock()
        self._open: OrderedDict[str, ExtractionService] = OrderedDict()
        self._engine = AsyncEngine(store)
        self._noted: set[str] = set()
        # Filled wherever the last reference goes, and so by nothing that could wait.
        self._let_go: deque[Callable[[], None]] = deque()

    def get(self, space: str) -> ExtractionService:
        # Both loops ask for spaces.
        with self._lock:
            service = self._open.get(space)
            if service is None:
                service = self._open[space] = ExtractionService(
                    home=self._home,
                    store=self._store,
                    tenant=space,
                    memo_tenant=tenant_of(space),
                    database=self._database,
                    objects=self._objects,
                    live=self._live,
                    settings=self._settings,
                    observers=self._observers,
                )
                # Runs may still be under way in one that is let go: its connections are closed when nobody has it.
                weakref.finalize(service, self._let_go.append, service.connections).atexit = False
                while len(self._open) > _KEPT:
                    self._open.popitem(last=False)
            self._open.move_to_end(space)
        self._close_let_go()
        return service

    def close(self) -> None:
        """Close the connections of all; blocking."""
        with self._lock:
            services = [*self._open.values()]
            self._open.clear()
        for service in services:
            service.close()
        self._close_let_go()

    def _close_let_go(self) -> None:
        while self._let_go:
            self._let_go.popleft()()

    async def note(self, space: str) -> None:
        """Write down that something is done in a case; in the background loop."""
        tenant = tenant_of(space)
        if space == tenant or space in self._noted:
            return
        await self._engine.run(
            lambda _: "", scope=_CASES, key=space, tenant=_stored(tenant), namespace="content", retention=None
        )
        self._noted.add(space)

    async def of_tenant(self, tenant: str) -> list[tuple[str, ExtractionService]]:
        """The tenant's own space and those of its cases, whoever worked in them; in the background loop."""
        workspaces, after = [tenant], None
        while True:
            page = await self._store.find(Query(tenant=_stored(tenant), scope=_CASES, limit=_PAGE, after=after))
            workspaces += [record.identity.key for record in page.records]
            after = page.next
            if after is None:
                return [(space, self.get(space)) for space in workspaces]

    def all(self) -> list[tuple[str, ExtractionService]]:
        """Those that are open here."""
        with self._lock:
            return list(self._open.items())
