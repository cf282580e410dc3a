"""The texts that wait in collections, read by the service.

Rule: a text was written down before its sender was told that it was accepted; every server takes up what waits, the
once engine lets one of them work, and putting it into the collection is one transaction that changes nothing where the
text was replaced meanwhile. What cannot be read is kept with the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from sameas.collections import Caller, Collection, Collections, Source, text_digest
from sameas.collections.model import Change
from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.errors import DocumentError
from sameas.extraction.text.inputs.reader import TEXT, read_bytes
from sameas.identity.canonical import sha256_hex
from sameas.once.errors import SameasError, StoreError
from sameas.server.problems import Problem, problem_of
from sameas.server.runs.deletion import Deletion
from sameas.server.runs.long_tasks import AWAY
from sameas.server.runs.runner import Runner
from sameas.server.schemas import ExtractionParams, ExtractRequest
from sameas.server.tenants.workspaces import Workspaces

_LOG = logging.getLogger("sameas.server")
# What another server of the same database wrote down is found at the latest after so many seconds.
_LOOK_EVERY = 5.0
_AT_A_TIME = 64
# What is to be asked for again: a day's account that others hold or have spent, a store or a disk that is away.
_LATER = (429, 503)


class ReadingOptions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How a text that waits is to be read, and for whom (source document 004, part 8)."""

    extractor: str | None = None
    model: str | None = None
    audit_meta: Mapping[str, Any] = {}

    def params(self) -> ExtractionParams:
        given = {name: value for name in ("extractor", "model") if (value := getattr(self, name)) is not None}
        return msgspec.convert(given, ExtractionParams)


class CollectionWork:
    """Reads what waits. Lives in the background loop; `wake` may be called from anywhere in it."""

    def __init__(
        self,
        collections: Collections,
        *,
        runner: Runner,
        workspaces: Workspaces,
        deletion: Deletion,
        at_once: int,
        min_confidence: float | None,
    ) -> None:
        self._collections = collections
        self._runner = runner
        self._workspaces = workspaces
        self._deletion = deletion
        self._slots = asyncio.Semaphore(at_once)
        self._min_confidence = min_confidence
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._work())

    async def wake(self) -> None:
        """Something waits."""
        self._awake.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            self._awake.clear()
            try:
                did_some = await self._look()
            except (SameasError, OSError) as trouble:
                _LOG.warning("what waits in collections could not be read: %s", trouble)
                did_some = False
            if not did_some:
                try:
                    await asyncio.wait_for(self._awake.wait(), _LOOK_EVERY)
                except TimeoutError:
                    continue

    async def _look(self) -> bool:
        """Read what waits now; whether there was anything that could be done."""
        did_some = False
        for tenant, id_ in await asyncio.to_thread(self._collections.waiting):
            caller = Caller(tenant, "service", everything=True)
            collection = await asyncio.to_thread(self._collections.open, id_, caller=caller)
            names = await asyncio.to_thread(collection.waiting, limit=_AT_A_TIME)
            did = await asyncio.gather(*(self._in_slot(tenant, collection, name) for name in names))
            did_some = did_some or any(did)
        return did_some

    async def _in_slot(self, space: str, collection: Collection, name: str) -> bool:
        async with self._slots:
            waiting = await asyncio.to_thread(collection.waiting_source, name)
            if waiting is None:
                return False
            source, content, options = waiting
            expected = sha256_hex(content)
            try:
                await self._read(space, collection, source, content, options)
            except (*AWAY, StoreError, ConnectionError) as trouble:
                # It says nothing about the text, which goes on waiting.
                _LOG.warning("%s of collection %s waits on: %s", name, collection.id, trouble)
                return False
            except Exception as error:
                problem = problem_of(error)
                if problem.status in _LATER:
                    return False
                if problem.status == 500:
                    _LOG.exception("a document of collection %s could not be read", collection.id)
                said = str(error) if isinstance(error, DocumentError) else problem.detail
                await asyncio.to_thread(collection.note_failure, source, said, expecting=expected)
            return True

    async def _read(self, space: str, collection: Collection, source: Source, content: bytes, options: str) -> None:
        document = await asyncio.to_thread(_document, source, content)
        if not document.text.strip():
            raise Problem(422, "document-empty", "the document is empty; send one with some text in it")
        reading = msgspec.json.decode(options, type=ReadingOptions)
        request = ExtractRequest(
            text=document.text,
            ontology_id=collection.opened_as.ontology_id,
            ontology_version=collection.opened_as.ontology_version,
            extraction_params=reading.params(),
            document=source.name[:1024],
        )
        prepared = await self._runner.prepare(space, request)
        done = await self._runner.extract(prepared, reading.audit_meta, priority="batch")
        change = await asyncio.to_thread(self._put, space, collection, source, document, done.key, sha256_hex(content))
        if change.names_erased:
            await self._deletion.run(space, done.key)

    def _put(
        self, space: str, collection: Collection, source: Source, document: Document, key: str, expected: str
    ) -> Change:
        from sameas.collections.filling import Places

        run = self._workspaces.get(space).runs.find(key)
        least = least_confidence(run.metadata.extractor.name, self._min_confidence)
        return collection.put_document(
            msgspec.structs.replace(source, media_type=document.media_type),
            digest=text_digest(document.text),
            said=sure_part(run.graph(), least) if least > 0 else run.graph(),
            run=key,
            complete=run.metadata.status == "complete",
            locate=Places(document),
            expecting=expected,
        )


def _document(source: Source, content: bytes) -> Document:
    kind = source.media_type or TEXT
    return read_bytes(content, name=source.name, media_type=kind)
