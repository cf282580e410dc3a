"""What is accepted is promised: written down with what is set aside for it, and taken back when it has ended.

Rule: a promise is written before anybody is told of it, and once; what was accepted is finished with what was set aside
for it then. Lives in the background loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from sameas.extraction.runs.metadata import RunMetadata, instant
from sameas.server.runs.answers import cancelled
from sameas.server.runs.day_accounts import Reserved
from sameas.server.runs.pending_runs import PendingObjects, PendingRun, PendingRuns
from sameas.server.runs.preparation import Prepared
from sameas.server.runs.run_budgets import RunBudgets
from sameas.server.tenants.workspaces import Workspaces


class Promises:
    """The promises of a service. A worker makes none of its own."""

    def __init__(
        self,
        pending_runs: PendingRuns | PendingObjects,
        *,
        budgets: RunBudgets,
        workspaces: Workspaces,
        base: str,
        is_worker: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pending_runs = pending_runs
        self._budgets = budgets
        self._workspaces = workspaces
        self._base = base
        self._is_worker = is_worker
        self._clock = clock

    async def has(self, space: str, key: str) -> bool:
        return await asyncio.to_thread(self._pending_runs.has, space, key)

    async def make(self, prepared: Prepared, audit: Mapping[str, Any]) -> Reserved | None:
        """Write a run down with what is set aside for it, unless it is; gives what is."""
        space, key = prepared.space, prepared.key.key
        is_promised = await self.has(space, key)
        known = await asyncio.to_thread(self._pending_runs.read, space, key) if is_promised else None
        if known is not None:
            return known.reserved
        if self._is_worker and not is_promised:
            # It was cancelled after this worker was told of it.
            raise cancelled()
        if is_promised:
            # Another release wrote it, and can read it.
            return await self._budgets.begin(prepared)
        return await self.write(prepared, audit)

    async def write(self, prepared: Prepared, audit: Mapping[str, Any]) -> Reserved | None:
        """Write a new run down."""
        space, key = prepared.space, prepared.key.key
        reserved = await self._budgets.begin(prepared)
        pending_run = PendingRun(
            tenant=space,
            key=key,
            request=prepared.request,
            audit=audit,
            pending=self._pending(prepared),
            reserved=reserved,
        )
        try:
            await asyncio.to_thread(self._pending_runs.keep, pending_run)
        except BaseException:
            await self.end(space, key, reserved)
            raise
        return reserved

    async def end(self, space: str, key: str, reserved: Reserved | None) -> None:
        """Take a promise back, and count what its run has spent."""
        await asyncio.to_thread(self._pending_runs.done, space, key)
        await asyncio.to_thread(self._say_ended, space, key)
        await self._budgets.end(space, key, reserved)

    def _say_ended(self, space: str, key: str) -> None:
        objects = self._workspaces.get(space).runs.objects
        if objects is not None:
            objects.say_ended(key)

    def _pending(self, prepared: Prepared) -> RunMetadata:
        """What can be shown of a run before it begins."""
        parts = prepared.key.components
        return RunMetadata(
            idempotency_key=prepared.key.key,
            status="pending",
            ontology_id=parts.ontology_id,
            ontology_version=parts.ontology_version,
            started_at=instant(self._clock()),
            extractor=prepared.extractor,
            settings={},
            base=self._base,
            document=prepared.request.document,
            text_hash=parts.text_hash,
            extraction_params_hash=parts.extraction_params_hash,
        )
