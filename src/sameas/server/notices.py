"""What this process does when another one tells it something.

Rule: what was deleted, superseded or updated elsewhere is so here, too, where folders and memory may be others; what
cannot be done now is done before it is next used.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from sameas.extraction.runs.service import ExtractionService
from sameas.once.errors import SameasError
from sameas.server.tenants.broadcast import Notice
from sameas.server.tenants.ontologies import SHARED

if TYPE_CHECKING:
    from sameas.server.service import Service

_LOG = logging.getLogger("sameas.server")


class Notices:
    """Hears every notice of any process. Lives in the background loop."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def hear(self, notice: Notice) -> None:
        """In the background loop, once for every notice of any process."""
        match notice.type:
            case "cancel-run":
                self._service.runner.hear_cancelled(notice.tenant, notice.key)
                self._service.later(self._cancel(notice.tenant, notice.key))
            case "ontology-updated" | "ontology-deleted":
                if notice.new_version is not None and self._service.dispatch is not None:
                    self._service.later(self._supersede(notice, notice.new_version))
                owner = SHARED if notice.shared else notice.tenant
                # What was deleted may be in the cache of this home, whether its registry was looked at or not.
                if notice.type == "ontology-deleted" or self._service.ontologies.has(owner):
                    self._service.later(self.refresh(owner))
                if notice.type == "ontology-deleted":
                    self._service.later(self._sweep(notice))
            case "run-deleted" | "cache-cleared":
                self._service.drop_answers()
                self._service.later(self._sweep(notice))
            case "unreadable":
                self._service.later(self._start_afresh())
            case _:
                self._service.drop_answers()

    async def _cancel(self, space: str, key: str) -> None:
        try:
            await self._service.runner.cancel(space, key)
        except (SameasError, OSError) as trouble:
            _LOG.warning("the run %s could not be cancelled: %s", key, trouble)

    async def _sweep(self, notice: Notice) -> None:
        """Delete here what was deleted on another server, whose folders may be others."""
        try:
            if notice.type == "run-deleted":
                await self._service.deletion.sweep(notice.tenant, key=notice.key)
                return
            for space, _ in await self._spaces(notice):
                await self._service.deletion.sweep(space, ontology_id=notice.ontology_id or None)
        except (SameasError, OSError) as trouble:
            _LOG.warning("what was deleted elsewhere could not be deleted here: %s", trouble)

    async def _spaces(self, notice: Notice) -> list[tuple[str, ExtractionService]]:
        """Those that a notice is about."""
        workspaces = self._service.workspaces
        return workspaces.all() if notice.shared else await workspaces.of_tenant(notice.tenant)

    async def _supersede(self, notice: Notice, new_version: str) -> None:
        """Mark here what was superseded on another server."""
        try:
            for _, space in await self._spaces(notice):
                supersede = partial(space.runs.supersede, notice.ontology_id, new_version=new_version, tell=False)
                await asyncio.to_thread(supersede)
        except (SameasError, OSError) as trouble:
            _LOG.warning("what was superseded elsewhere could not be marked here: %s", trouble)

    async def refresh(self, owner: str) -> None:
        """Read an owner's registry of ontologies, or have it read when it is next used."""
        try:
            await self._service.ontologies.refresh(owner)
        except SameasError as trouble:
            _LOG.warning("the registry of ontologies could not be read: %s; it is read when it is next used", trouble)
            await self._service.ontologies.let_go(owner)
        self._service.drop_answers()

    async def _start_afresh(self) -> None:
        await self._service.ontologies.let_go()
        self._service.drop_answers()
