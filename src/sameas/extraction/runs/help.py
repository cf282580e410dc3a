"""Help for a run: a part of its chunks, done on another machine, and what that spent.

Rule: a helper leaves only checkpoints and replies behind. The owner of the run does whatever is missing, so a helper
that is late, lost or doubled costs nothing but time. One worker does a part, under a claim of the once engine. It
reports what it spends as an object while it works; the owner counts that when the run ends.
"""

import asyncio
import logging
from functools import partial
from typing import Final

from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.run import RunPart
from sameas.extraction.runs.library import Runs
from sameas.extraction.runs.run_objects import RunObjects
from sameas.identity.ids import uuid7
from sameas.llm.ledger import SpendingMeter, UsageRow
from sameas.llm.memo import NOTE_CALL
from sameas.objects import ObjectsUnavailable
from sameas.once.async_engine import AsyncEngine
from sameas.once.context import Context
from sameas.once.errors import InProgress

SCOPE: Final = "extraction-part"
_LOG = logging.getLogger("sameas")
# A part that was done is known for as long as its run may be sent again.
_KEPT = 3_600.0
_REPORT_EVERY = 0.3


class PartWork:
    """The work on one part of a run's chunks."""

    def __init__(
        self, *, pipeline: Pipeline, text: str, key: str, part: RunPart, runs: Runs, objects: RunObjects
    ) -> None:
        self._pipeline = pipeline
        self._text = text
        self._key = key
        self._part = part
        self._runs = runs
        self._spending = _PartSpending(objects, key, part)

    async def do_once(self, engine: AsyncEngine, *, tenant: str, lease: float) -> int | None:
        """The number of chunks that were done now; None if another worker does, or did, this part."""
        try:
            record = await engine.record(
                self._do,
                scope=SCOPE,
                key=f"{self._key}:{self._part.number}/{self._part.parts}",
                tenant=tenant,
                namespace="content",
                lease=lease,
                retention=_KEPT,
                on_busy="refuse",
                result_type=int,
            )
        except InProgress:
            return None
        return None if record.was_replay else record.result

    async def _do(self, _: Context) -> int:
        used = self._runs.noting(self._key)
        noting = NOTE_CALL.set(used.call)
        reporting = asyncio.create_task(self._spending.follow())
        try:
            if (beginning := used.begin()) is not None:
                await beginning
            meter = SpendingMeter(on_spent=self._spending.note)
            return await self._pipeline.help(self._text, self._part, key=self._key, meter=meter, used=used)
        finally:
            reporting.cancel()
            await asyncio.gather(reporting, return_exceptions=True)
            await asyncio.shield(self._spending.report())
            NOTE_CALL.reset(noting)
            used.close()


class _PartSpending:
    """Reports what a helper has spent so far, as an object."""

    def __init__(self, objects: RunObjects, key: str, part: RunPart) -> None:
        self._write = partial(objects.tell_spending, key, f"{part.number}-{uuid7()}")
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._reported: tuple[UsageRow, ...] = ()

    def note(self, row: UsageRow) -> None:
        self._rows[row.stage, row.model] = row

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_EVERY)
            await self.report()

    async def report(self) -> None:
        rows = tuple(self._rows.values())
        if rows == self._reported:
            return
        try:
            await asyncio.to_thread(self._write, rows)
            self._reported = rows
        except ObjectsUnavailable as trouble:
            _LOG.warning("what a helper has spent could not be reported yet: %s", trouble)
