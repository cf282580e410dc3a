"""Extraction, once: the same text, ontology, extractor and settings are worked on one time, and every caller gets that
result.

Rule: the once engine decides who works. The folder of the run holds the result and is checked whenever it is read. Only
a complete outcome completes the record: a partial one is returned as partial and its claim is given back, so that the
next request does what is missing; callers who waited meanwhile share it. A damaged folder is set aside and done again.
"""

import asyncio
import io
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.extraction.events.events import Event
from sameas.extraction.extractors.confidence import SureGraph, least_confidence, sure_part
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.graph.model import Graph, KnowledgeGraph, in_memory
from sameas.extraction.outputs import DEFAULT_BASE, OutputContext, OutputFormat, Writable, write_about, write_graph
from sameas.extraction.runs.caches import RecentResults, RunCaches
from sameas.extraction.runs.checkpoint_file import DEFAULT_BYTES, CheckpointFile
from sameas.extraction.runs.checkpoint_tables import CheckpointTables
from sameas.extraction.runs.folder import RunDamagedError, RunReplacedError, Stored, tenant_folder
from sameas.extraction.runs.library import Run, Runs
from sameas.extraction.runs.metadata import GRAPH, RunMetadata
from sameas.extraction.runs.record import (
    SCOPE,
    RunRecords,
    RunSummary,
    ontology_tag,
    record_options,
    run_policy,
)
from sameas.extraction.runs.results import AuditLine, ResultTables
from sameas.extraction.runs.run_objects import LiveEvents, RunObjects
from sameas.extraction.runs.shared_runs import EventRelay, OnEvent, OnWait, SharedRuns
from sameas.extraction.runs.work import ExtractionWork, PartialRunError, cache_hit
from sameas.extraction.text.document import DocumentPlaces, DocumentSource
from sameas.extraction.text.source import SourceText
from sameas.identity.key import IdempotencyKey, compute_idempotency_key
from sameas.objects import Objects
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import StoreError
from sameas.once.observe import Observer
from sameas.once.policy import Policy
from sameas.once.store import AsyncStore
from sameas.ontology.model import Ontology

if TYPE_CHECKING:
    from sameas.extraction.pipeline.pipeline import Pipeline
    from sameas.extraction.pipeline.run import RunPart
    from sameas.extraction.pipeline.settings import PipelineSettings

_LOG = logging.getLogger("sameas")

# Tries after a damaged folder or a takeover by another worker; if it happens more often, something else is wrong.
_TRIES = 5
_PIPELINES_KEPT = 8
_SHORT = 100_000
_NAMELESS = "urn:sameas:ontology:"


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a service: sizes on disk, and how runs are recorded."""

    max_bytes: int = 10 << 30
    checkpoint_bytes: int = DEFAULT_BYTES
    shared_checkpoints: bool = False
    """Checkpoints are kept in the database, where every node that uses it finds them, instead of a file."""
    policy: Policy = run_policy()
    finish_alone: bool = False
    """A run goes on to its end although everybody who asked for it has left."""


class Extraction(msgspec.Struct, frozen=True, dict=True):
    """The result of an extraction, and where it came from."""

    key: IdempotencyKey
    replayed: bool
    """Whether the result was there already: nothing was extracted."""
    shared: bool
    """Whether another caller was extracting the same at the same time, and this one waited for it."""
    metadata: RunMetadata
    found: Graph
    """The graph as it was found or read; for a long text it is not in memory as a whole."""
    folder: Path
    stored: bool = True
    """Whether the record was completed, too; if the store was away, the next call for the run completes it."""

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """What was found, in memory."""
        return in_memory(self.found)

    def sure(self, min_confidence: float | None = None) -> "Extraction":
        """Only what is sure enough: by this confidence, or by the one that suits the extractor."""
        least = least_confidence(self.metadata.extractor.name, min_confidence)
        return msgspec.structs.replace(self, found=sure_part(self.found, least)) if least > 0 else self


class ExtractionService:
    """Extracts for one tenant. `home` holds the run folders and the caches, `store` the records. `memo_tenant` is the
    tenant under whose name replies of models are kept, if it is another.
    """

    def __init__(
        self,
        *,
        home: Path,
        store: AsyncStore,
        tenant: str = "",
        memo_tenant: str | None = None,
        database: str | None = None,
        objects: Objects | None = None,
        live: LiveEvents | None = None,
        settings: ServiceSettings | None = None,
        clock: Callable[[], float] = time.time,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._settings = settings or ServiceSettings()
        self._tenant = tenant
        self._clock = clock
        policy = self._settings.policy
        self._engine = AsyncEngine(store, policies={SCOPE: policy}, observers=observers)
        self._tables = None if database is None else ResultTables(database, tenant=tenant, clock=clock)
        folder = home / "runs"
        self._checkpoints = self._open_checkpoints(home, database)
        records = RunRecords(store.backend, tenant=tenant, policy=policy, clock=clock)
        memo_tenant = tenant if memo_tenant is None else memo_tenant
        self._runs = Runs(
            folder / tenant_folder(tenant) if tenant else folder,
            records=records,
            tables=self._tables,
            caches=RunCaches(self._checkpoints, records.engine, memo_tenant=memo_tenant),
            objects=None if objects is None else RunObjects(objects, tenant=tenant, live=live),
            clock=clock,
        )
        self._recent = RecentResults()
        self._shared_runs = SharedRuns(finish_alone=self._settings.finish_alone)
        # Ontology and extractor are kept with their pipeline, so that their `id()` is not reused.
        self._lock = threading.Lock()
        self._pipelines: OrderedDict[tuple[int, int, int], tuple[Any, Pipeline]] = OrderedDict()

    @property
    def runs(self) -> Runs:
        return self._runs

    def close(self) -> None:
        """Close the connections to the database; the store is its opener's. Blocking."""
        self.connections()

    @property
    def connections(self) -> Callable[[], None]:
        """A function that closes them even after the service itself is gone; calling it twice is harmless."""
        return partial(_close, self._tables, self._checkpoints)

    def _open_checkpoints(self, home: Path, database: str | None) -> CheckpointFile | CheckpointTables:
        max_bytes = self._settings.checkpoint_bytes
        if not self._settings.shared_checkpoints:
            path = home / "cache" / "checkpoints" / f"{tenant_folder(self._tenant)}.db"
            return CheckpointFile(path, max_bytes=max_bytes)
        if database is None:
            raise ValueError("shared_checkpoints needs a database that all nodes see: give database= too")
        return CheckpointTables(database, tenant=self._tenant, max_bytes=max_bytes, clock=self._clock)

    def key_of(
        self,
        text: str,
        *,
        ontology: Ontology,
        extractor: Extractor,
        settings: "PipelineSettings | None" = None,
        base: str = DEFAULT_BASE,
    ) -> IdempotencyKey:
        """The key that `extract` would use; nothing is run."""
        params = {**self._pipeline(ontology, extractor, settings).key_params(), "base": base}
        return compute_idempotency_key(
            text, ontology_id=_id_of(ontology), ontology_version=ontology.version, extraction_params=params
        )

    async def extract(
        self,
        text: str | Iterable[str],
        *,
        ontology: Ontology,
        extractor: Extractor,
        settings: "PipelineSettings | None" = None,
        document: str = "",
        base: str = DEFAULT_BASE,
        on_event: OnEvent | None = None,
        on_wait: OnWait | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> Extraction:
        """Extract the graph of a text now, or return what was extracted the first time.

        on_event: called in this event loop with each event of the run, from its beginning.
        on_wait: called if another process works on the run, or died at it: then this call waits, at most for its lease.
        A cancelled caller leaves the run to the others that wait for it in this process; the last one ends it.

        A run that ended early is returned with a partial outcome, not raised. Raises what the extractor raises, and:
        RunCancelledError, RunDamagedError (the folder was damaged several times in a row), InProgress (waited in vain)
        and StoreUnavailable.
        """
        pipeline = self._pipeline(ontology, extractor, settings)
        params = {**pipeline.key_params(), "base": base}
        source = await self._source(text, ontology, params)
        heard = _Heard(on_event)

        async def extract() -> Extraction:
            work = ExtractionWork(
                pipeline=pipeline,
                source=source,
                ontology=ontology,
                extractor=extractor,
                settings=params,
                base=base,
                document=document,
                audit=audit or {},
                runs=self._runs,
                tables=self._tables,
                retention=self._settings.policy.retention,
                clock=self._clock,
            )
            return await self._once(work, heard.emit if on_event is not None else None, on_wait)

        return await self._shared_runs.share(source.key.key, extract, on_leave=heard.leave, on_end=source.close)

    async def help(
        self,
        key: str,
        text: str,
        *,
        ontology: Ontology,
        extractor: Extractor,
        settings: "PipelineSettings",
        part: "RunPart",
    ) -> int | None:
        """Do a part of the chunks of a run that goes on elsewhere. Returns their number, or None if another worker does
        that part.
        """
        from sameas.extraction.runs.help import PartWork

        if self._runs.objects is None:
            raise ValueError("helping needs objects that all nodes see: give objects= too")
        pipeline = self._pipeline(ontology, extractor, settings)
        work = PartWork(pipeline=pipeline, text=text, key=key, part=part, runs=self._runs, objects=self._runs.objects)
        return await work.do_once(self._engine, tenant=self._tenant, lease=self._settings.policy.lease)

    def note_shared(self, key: str, *, ontology_id: str, waited: float, audit: Mapping[str, Any]) -> None:
        """Note in the audit log of the database that a caller waited for another's run of this key. Blocking."""
        if self._tables is None:
            return
        about = {"waitTime": round(waited * 1000)}
        try:
            self._tables.log(key, ontology_id=ontology_id, event="concurrent_deduplicated", about=about, audit=audit)
        except StoreError as trouble:
            _LOG.warning("the use of run %s could not be noted: %s", key, trouble)

    def cancel(self, key: str) -> bool:
        """End a run for all callers who wait for it in this process; they get RunCancelledError. What is done of it is
        kept. Returns False if there are none.
        """
        return self._shared_runs.cancel(key)

    def remove(self, key: str) -> None:
        """Delete everything of a run. Blocking. Raises RunNotFoundError if there is nothing."""
        self._recent.forget(key)
        self._runs.remove(key)

    def render(
        self,
        extraction_or_run: Extraction | Run,
        to: OutputFormat,
        *,
        sources: Sequence[DocumentSource] = (),
        places: DocumentPlaces | None = None,
        reviewed: KnowledgeGraph | None = None,
    ) -> bytes:
        """A finished run in any format, as `write` writes it."""
        whole = io.BytesIO()
        self.write(extraction_or_run, whole, to=to, sources=sources, places=places, reviewed=reviewed)
        return whole.getvalue()

    def write(
        self,
        extraction_or_run: Extraction | Run,
        target: Writable,
        *,
        to: OutputFormat,
        sources: Sequence[DocumentSource] = (),
        places: DocumentPlaces | None = None,
        reviewed: KnowledgeGraph | None = None,
    ) -> None:
        """A finished run in any format, in pieces, with what the caller knows of the document. With `reviewed` that
        graph is written instead of the one that was found.
        """
        metadata = extraction_or_run.metadata
        is_whole = isinstance(extraction_or_run, Run) or not isinstance(extraction_or_run.found, SureGraph)
        context = OutputContext(
            key=metadata.idempotency_key,
            base=metadata.base,
            text_hash=metadata.text_hash,
            sources=tuple(sources),
            times=(metadata.started_at, metadata.completed_at or ""),
            places=places,
            ontology="" if metadata.ontology_id.startswith(_NAMELESS) else metadata.ontology_id,
            extractor=metadata.extractor.name,
            extractor_version=metadata.extractor.version,
        )
        if reviewed is not None:
            write_graph(reviewed, target, to=to, context=context)
            return
        graph = extraction_or_run.graph() if isinstance(extraction_or_run, Run) else extraction_or_run.found
        if to == "turtle" and GRAPH in metadata.files and is_whole:
            target.write(self._runs.at(metadata.idempotency_key).read(GRAPH, metadata))
            write_about(graph, target, context=context)
            return
        write_graph(graph, target, to=to, context=context)

    def remove_ontology(self, ontology_id: str, *, version: str | None = None) -> None:
        """Delete what the database has of an ontology, or of one version of it; blocking."""
        if self._tables is not None:
            self._tables.remove_ontology(ontology_id, version=version)

    async def invalidate_ontology(
        self,
        ontology_id: str,
        old_version: str | None,
        new_version: str,
        *,
        audit: Mapping[str, Any] | None = None,
    ) -> int:
        """Forget the records of an ontology that was updated and mark its runs; returns the number of records."""
        forgotten = await self._engine.forget_where(tenant=self._tenant, scope=SCOPE, tag=ontology_tag(ontology_id))
        await asyncio.to_thread(self._runs.supersede, ontology_id, new_version=new_version)
        if self._tables is not None:
            await asyncio.to_thread(
                self._tables.invalidate,
                ontology_id,
                old_version=old_version,
                new_version=new_version,
                audit=audit or {},
            )
        return forgotten

    async def _once(self, work: ExtractionWork, on_event: OnEvent | None, on_wait: OnWait | None) -> Extraction:
        key = work.plan.key
        options = record_options(key, tenant=self._tenant, ontology_id=work.plan.ontology_id, audit=work.audit)
        for _ in range(_TRIES):
            relay = EventRelay(on_event, self._runs.at(key), on_wait=on_wait)
            relay.watch()
            try:
                record = await self._engine.record(partial(work.do, relay=relay), **options)
            except PartialRunError as ended:
                if ended.shared:
                    await asyncio.to_thread(self._note, work, shared=True)
                return self._answer(work, Stored(ended.metadata, ended.graph), shared=ended.shared)
            except RunReplacedError:
                continue
            finally:
                await relay.leave()
            if not record.was_replay and work.done is not None:
                await asyncio.to_thread(self._runs.bound, key, max_bytes=self._settings.max_bytes)
                return self._answer(work, work.done, replayed=work.found, stored=record.stored)
            shared = record.waited > 0
            try:
                stored = self._at_hand(work, record.result)
                if stored is None:
                    stored = await asyncio.to_thread(self._replay, work, record.result, shared=shared)
            except RunDamagedError as damage:
                work.note_damage(str(damage))
                await asyncio.to_thread(self._runs.set_aside, key, fence=record.fence)
                continue
            relay.emit(cache_hit(stored.metadata, shared=shared, now=self._clock()))
            return self._answer(work, stored, replayed=True, shared=shared)
        raise RunDamagedError(f"the run {key} was damaged or taken over {_TRIES} times in a row; look at its folder")

    def _replay(self, work: ExtractionWork, summary: RunSummary, *, shared: bool) -> Stored:
        """The accepted result, and a note that it was used."""
        stored = self.read(work.plan.key, summary)
        self._note(work, shared=shared)
        return stored

    def read(self, key: str, summary: RunSummary) -> Stored:
        """An accepted result, checked, from the folder or, where that is gone, from the database; blocking. Raises
        `RunDamagedError` where it is not what was accepted.
        """
        folder = self._runs.at(key)
        self._runs.refresh(key, place=summary.place)
        if not folder.exists():
            self._runs.restore(key)
        stored = self._recent.find(folder, digest=summary.digest)
        if stored is None:
            try:
                stored = self._recent.read(folder, digest=summary.digest)
            except RunDamagedError:
                if not summary.place:
                    raise
                # The copy is damaged, and not what it is a copy of.
                self._runs.refresh(key, place=summary.place, anew=True)
                stored = self._recent.read(folder, digest=summary.digest)
        return stored

    def _at_hand(self, work: ExtractionWork, summary: RunSummary) -> Stored | None:
        """The accepted result if it is in memory; None if files or the database are needed, which takes a thread."""
        if self._tables is not None:
            return None
        stored = self._recent.find(self._runs.at(work.plan.key), digest=summary.digest)
        if stored is not None:
            self._note(work, shared=False)
        return stored

    def _note(self, work: ExtractionWork, *, shared: bool) -> None:
        """Note that the result was used."""
        key = work.plan.key
        try:
            self._runs.touch(key)
            if self._tables is not None:
                event: AuditLine = "concurrent_deduplicated" if shared else "cache_hit"
                self._tables.log(key, ontology_id=work.plan.ontology_id, event=event, audit=work.audit)
        except (StoreError, OSError) as trouble:
            # A full disk refuses new work, not what is there.
            _LOG.warning("the use of run %s could not be noted: %s", key, trouble)

    def _answer(
        self, work: ExtractionWork, found: Stored, *, replayed: bool = False, shared: bool = False, stored: bool = True
    ) -> Extraction:
        folder = self._runs.at(work.plan.key).path
        return Extraction(work.key, replayed, shared, found.metadata, found.graph, folder, stored)

    async def _source(self, text: str | Iterable[str], ontology: Ontology, params: Mapping[str, Any]) -> SourceText:
        make = partial(SourceText, text, ontology_id=_id_of(ontology), ontology_version=ontology.version, params=params)
        # The key of a short text takes less time than starting a thread.
        is_short = isinstance(text, str) and len(text) <= _SHORT
        return make() if is_short else await asyncio.to_thread(make)

    def _pipeline(self, ontology: Ontology, extractor: Extractor, settings: "PipelineSettings | None") -> "Pipeline":
        """The pipeline of these three; building one for a large ontology takes longer than a replay."""
        from sameas.extraction.pipeline.pipeline import Pipeline
        from sameas.ontology.index import OntologyIndex

        parts = (ontology, extractor, settings)
        ids = (id(ontology), id(extractor), id(settings))
        with self._lock:
            known = self._pipelines.get(ids)
            if known is None:
                pipeline = Pipeline(
                    index=OntologyIndex(ontology),
                    extractor=extractor,
                    settings=settings,
                    checkpoints=self._checkpoints,
                )
                known = self._pipelines[ids] = (parts, pipeline)
            self._pipelines.move_to_end(ids)
            while len(self._pipelines) > _PIPELINES_KEPT:
                self._pipelines.popitem(last=False)
        return known[1]


class _Heard:
    """Passes events to a caller until it leaves."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event

    def emit(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def leave(self) -> None:
        self._on_event = None


def results_id(iri: str, version: str) -> str:
    """The id under which results of an ontology are stored; without an IRI it is made from the version."""
    return iri or _NAMELESS + version


def _id_of(ontology: Ontology) -> str:
    return results_id(ontology.iri, ontology.version)


def _close(tables: ResultTables | None, checkpoints: CheckpointFile | CheckpointTables) -> None:
    if tables is not None:
        tables.close()
    if isinstance(checkpoints, CheckpointTables):
        checkpoints.close()
