"""Deleting runs: all that there is of them, everywhere.

Rule: who works on a run is stopped first, so that nothing is written after it was deleted. Then go the answers under
clients' keys (a tombstone stays), what was promised, what the caches hold, the rows, the record and the folder, which
goes last because it says what to delete: whoever is interrupted deletes again.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from sameas.extraction.runs.library import RunNotFoundError
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.runs.service import ExtractionService
from sameas.once.record import State
from sameas.once.store import Query
from sameas.server.runs.answers import ClientKeys
from sameas.server.runs.pending_runs import PendingObjects, PendingRuns
from sameas.server.runs.runner import Runner
from sameas.server.tenants.broadcast import Broadcast, notice
from sameas.server.tenants.workspaces import Workspaces

# Seconds in which another process ends a run that it was told to cancel; after that it is fenced and deleted anyway.
_ENDS_WITHIN = 5.0
_LOOK_EVERY = 0.05
_PAGE = 500


class Deletion:
    """Deletes runs. Lives in the background loop."""

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        runner: Runner,
        pending_runs: PendingRuns | PendingObjects,
        client_keys: ClientKeys,
        broadcast: Broadcast,
    ) -> None:
        self._workspaces = workspaces
        self._runner = runner
        self._pending_runs = pending_runs
        self._client_keys = client_keys
        self._broadcast = broadcast

    async def run(self, space: str, key: str) -> bool:
        """Delete a run, whether it has ended or not; False where there is none."""
        # First, because who waits under a key of their own gives it back when the run ends.
        await self._client_keys.delete(space, key)
        cancelling = notice("cancel-run", tenant=space, key=key)
        outcome = await self._runner.cancel(space, key, tell=lambda: self._broadcast.publish(cancelling))
        if outcome == "elsewhere":
            await self._ended_elsewhere(space, key)
        await self._client_keys.delete(space, key)
        await asyncio.to_thread(self._pending_runs.remove, space, key)
        self._runner.forget(space, key)
        try:
            await asyncio.to_thread(self._workspaces.get(space).remove, key)
        except RunNotFoundError:
            # One that was ended before it had anything to show is as gone as one that had.
            if outcome == "ended":
                return False
        await self._broadcast.publish(notice("run-deleted", tenant=space, key=key))
        return True

    async def sweep(self, space: str, *, key: str | None = None, ontology_id: str | None = None) -> None:
        """Delete what this home has of runs that another server deleted: of one, of an ontology's or of all, those that
        have no record any more and that nobody works on.
        """
        service = self._workspaces.get(space)
        # Objects that are gone name no run any more; the copies of this home do.
        keys = [key] if key is not None else await asyncio.to_thread(service.runs.here, ontology=ontology_id)
        for one in keys:
            if self._runner.is_running(space, one) or await self._runner.is_accepted(space, one):
                continue
            # Whoever deleted it elsewhere has looked at the runs of its own home only.
            await self._client_keys.delete(space, one)
            with suppress(RunNotFoundError):
                await asyncio.to_thread(service.remove, one)
        if key is None:
            await asyncio.to_thread(service.runs.clear_ontologies)

    async def of_ontology(
        self, space: str, service: ExtractionService, ontology_id: str, *, version: str | None = None
    ) -> int:
        """Delete the results of an ontology in a space, or of one version of it, with what is under way or promised,
        and what the database has of the ontology itself.
        """
        removed = 0
        for key in await asyncio.to_thread(self._unfinished, space, service, ontology_id, version):
            removed += await self.run(space, key)
        removed += await self._all(space, service, ontology_id, version)
        await asyncio.to_thread(service.remove_ontology, ontology_id, version=version)
        return removed

    async def everything(self, space: str, service: ExtractionService) -> int:
        """Delete every result of a space and all that was kept to make more; gives how many runs went. What somebody
        works on goes on.
        """
        removed = await self._all(space, service, None, None)
        await self._client_keys.delete_all(space)
        await asyncio.to_thread(service.runs.clear_quarantine)
        await asyncio.to_thread(service.runs.clear_caches)
        return removed + await self._forget_ended(space)

    async def _forget_ended(self, space: str) -> int:
        """Forget the records of a space whose folders are gone, but none that somebody holds."""
        store, count = self._runner.store, 0
        for state in (State.DONE, State.FAILED):
            query = Query(tenant=space, scope=SCOPE, state=state, limit=_PAGE)
            while (page := await store.find(query)).records:
                for record in page.records:
                    await store.forget(record.identity)
                count += len(page.records)
        return count

    def _unfinished(self, space: str, service: ExtractionService, ontology_id: str, version: str | None) -> set[str]:
        """The runs of an ontology that are under way or promised; blocking."""
        promised = (one.pending for one in self._pending_runs.all() if one.tenant == space)
        known = [*(one for one in promised if one is not None), *service.runs.list(ontology=ontology_id)]
        return {
            one.idempotency_key
            for one in known
            if one.is_under_way and one.ontology_id == ontology_id and version in (None, one.ontology_version)
        }

    async def _all(self, space: str, service: ExtractionService, ontology_id: str | None, version: str | None) -> int:
        removed = 0
        for metadata in await asyncio.to_thread(service.runs.list, ontology=ontology_id):
            key = metadata.idempotency_key
            if version not in (None, metadata.ontology_version):
                continue
            if metadata.is_under_way and await self._is_held(space, key):
                continue
            await self._client_keys.delete(space, key)
            try:
                await asyncio.to_thread(service.remove, key)
            except RunNotFoundError:
                continue
            removed += 1
        await asyncio.to_thread(service.runs.clear_ontologies)
        return removed

    async def _ended_elsewhere(self, space: str, key: str) -> None:
        ends_at = time.monotonic() + _ENDS_WITHIN
        # The other process says it to the store, and to nobody else.
        while time.monotonic() < ends_at and await self._is_held(space, key):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY)

    async def _is_held(self, space: str, key: str) -> bool:
        record = await self._runner.record(space, key)
        return record is not None and record.state is State.HELD
