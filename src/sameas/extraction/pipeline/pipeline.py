"""From text to graph: the seven stages in order, with events, time limits, checkpoints and cancellation.

Rule: the result depends on the text, the ontology, the extractor and the settings of `key_params`, and on
nothing else: not on concurrency, not on the order in which chunks finish, not on Python's hash seed. A run
that ends early answers with what it has and says so; only a whole one is COMPLETE. The pipeline keeps nothing
itself.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from sameas.extraction.events.bus import Bus
from sameas.extraction.events.events import ErrorReport, ExtractionCancelled, ExtractionFailed
from sameas.extraction.events.journal import NoJournal
from sameas.extraction.extractors.contract import Extractor, extractor_identity
from sameas.extraction.graph.guard import Guard
from sameas.extraction.outputs import DEFAULT_BASE, OutputContext, OutputFormat
from sameas.extraction.pipeline.checkpoints import Checkpoints, NotedCheckpoints, UseNotes
from sameas.extraction.pipeline.outcome import ExtractionResult, failure_code
from sameas.extraction.pipeline.run import PipelineRun, RunPart, RunPlan
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.llm.ledger import SpendingMeter
from sameas.ontology.focus import Focuser
from sameas.ontology.index import OntologyIndex

PIPELINE_VERSION = "7"


class Pipeline:
    """Extracts from any number of texts with one ontology and one extractor."""

    def __init__(
        self,
        *,
        index: OntologyIndex,
        extractor: Extractor,
        settings: PipelineSettings | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        chosen = settings or PipelineSettings()
        focuser = Focuser(index, settings=chosen.focus)
        self._plan = RunPlan(index, extractor, Guard(index), focuser, chosen, checkpoints)

    def key_params(self) -> dict[str, Any]:
        """The parameters that belong in the extraction key, as JSON values."""
        settings = self._plan.settings
        return {
            "pipeline": PIPELINE_VERSION,
            "extractor": extractor_identity(self._plan.extractor),
            "chunking": msgspec.to_builtins(settings.chunking),
            "focus": msgspec.to_builtins(settings.focus),
            "grounding": msgspec.to_builtins(settings.grounding),
        }

    async def run(
        self,
        text: str | Iterable[str],
        *,
        key: str,
        bus: Bus | None = None,
        formats: Sequence[OutputFormat] = ("turtle",),
        base: str = DEFAULT_BASE,
        text_hash: str = "",
        meter: SpendingMeter | None = None,
        used: UseNotes | None = None,
    ) -> ExtractionResult:
        """Extract from a text, or from the pieces of one; the bus is closed when the run has ended.

        `meter` shows what the run spends while it goes on; `used` is told which checkpoints it uses.
        """
        plan = self._noting(used)
        run = PipelineRun(plan, text, key=key, bus=bus or Bus(key, journal=NoJournal()), meter=meter or SpendingMeter())
        output = OutputContext(
            key=key,
            base=base,
            text_hash=text_hash,
            ontology=plan.index.ontology.iri,
            extractor=plan.extractor.name,
            extractor_version=plan.extractor.version,
        )
        # In a task of its own, so that a cancelled call still emits the run's last event before it returns.
        work = asyncio.ensure_future(run.go(text, formats=formats, output=output))
        try:
            await asyncio.wait({work})
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
                run.end(ExtractionCancelled, reason="cancelled by its owner")
        error = None if work.cancelled() else work.exception()
        if work.cancelled():
            run.end(ExtractionCancelled, reason="cancelled from within")
        elif error is not None:
            report = ErrorReport(code=failure_code(error), message=str(error), recoverable=False)
            run.end(ExtractionFailed, error=report)
        run.bus.close()
        return work.result()

    async def help(self, text: str, part: RunPart, *, key: str, meter: SpendingMeter, used: UseNotes) -> int:
        """Leave checkpoints of a part of the chunks to a run that goes on elsewhere; returns how many there are."""
        plan, bus = self._noting(used), Bus(key, journal=NoJournal())
        try:
            return await PipelineRun(plan, text, key=key, bus=bus, meter=meter).help(text, part)
        finally:
            bus.close()

    def _noting(self, used: UseNotes | None) -> RunPlan:
        plan = self._plan
        if used is None or plan.checkpoints is None:
            return plan
        return replace(plan, checkpoints=NotedCheckpoints(plan.checkpoints, used))
