"""The program of a process for long work: tasks come in on its input, answers go out on its output.

Rule: it ends when its input does, as the server does that started it; what it was at is taken up by whoever looks at
promises.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import NoReturn

import msgspec

from sameas.connections import open_async_store
from sameas.objects import open_objects
from sameas.once.async_engine import AsyncEngine
from sameas.server.logs import configure_logging
from sameas.server.runs.answers import done_of
from sameas.server.runs.background_loop import waiting_threads
from sameas.server.runs.long_tasks import (
    LENGTH_BYTES,
    Begin,
    Cancel,
    Describe,
    EstimateTask,
    Extracted,
    ExtractTask,
    Failed,
    HelpTask,
    Keyed,
    LookAtModels,
    Prepare,
    Question,
    Task,
    TaskAnswer,
)
from sameas.server.runs.models import ALLOWED, Models
from sameas.server.runs.preparation import Extractors, Prepared, Preparing, TimeLimits, estimate_of
from sameas.server.tenants.ontologies import Ontologies
from sameas.server.tenants.ontology_files import describe
from sameas.server.tenants.workspaces import Workspaces, open_live_events
from sameas.settings import Settings

_BUFFER = 1 << 20
_TIDIES_WITHIN = 3.0

_tasks = msgspec.msgpack.Decoder(Task)
_encode = msgspec.msgpack.Encoder().encode


class LongProcess:
    """Does tasks side by side, and answers each."""

    def __init__(self, settings: Settings, writer: asyncio.StreamWriter) -> None:
        engine = AsyncEngine(open_async_store(settings.store_url))
        self._cache = settings.cache / "ontologies"
        self._base = settings.base
        self._models = Models(settings)
        self._min_confidence = settings.min_confidence
        self._workspaces = Workspaces(
            settings.home,
            engine.store,
            database=settings.database or None,
            lease=settings.lease,
            retention=settings.result_ttl,
            objects=open_objects(settings.objects) if settings.objects else None,
            live=open_live_events(settings),
        )
        self._preparing = Preparing(
            self._workspaces,
            ontologies=Ontologies(engine, folder=None, cache=self._cache),
            extractors=Extractors(
                concurrency=settings.concurrency,
                engine=engine,
                models=self._models,
                limits=TimeLimits.of(settings),
                default=settings.extractor,
            ),
            base=settings.base,
        )
        self._writer = writer
        self._writing = asyncio.Lock()
        self._under_way: dict[int, asyncio.Task[None]] = {}

    def take(self, task: Question | Cancel) -> None:
        if isinstance(task, Cancel):
            going = self._under_way.get(task.number)
            if going is not None:
                going.cancel()
            return
        doing = self._under_way[task.number] = asyncio.create_task(self._answer(task))
        doing.add_done_callback(lambda _: self._under_way.pop(task.number, None))

    @property
    def is_idle(self) -> bool:
        return not self._under_way

    async def close(self) -> None:
        """Tidy up after models that were asked, for a few seconds at most."""
        with suppress(Exception):
            await asyncio.wait_for(self._models.close(), _TIDIES_WITHIN)

    async def _answer(self, task: Question) -> None:
        try:
            answer = await self._do(task)
        except BaseException as error:
            answer = TaskAnswer(number=task.number, failed=Failed.of(error))
        data = _encode(answer)
        async with self._writing:
            self._writer.writelines((len(data).to_bytes(LENGTH_BYTES, "big"), data))
            await self._writer.drain()

    async def _do(self, task: Question) -> TaskAnswer:
        match task:
            case Describe():
                found = await asyncio.to_thread(describe, task.source, cache=self._cache)
                return TaskAnswer(number=task.number, described=found)
            case Prepare():
                return TaskAnswer(number=task.number, keyed=_keyed(await self._prepare(task)))
            case EstimateTask():
                return TaskAnswer(number=task.number, estimated=await estimate_of(await self._prepare(task)))
            case ExtractTask():
                return TaskAnswer(number=task.number, extracted=await self._extract(task))
            case HelpTask():
                return TaskAnswer(number=task.number, helped=await self._help(task))
            case LookAtModels():
                return TaskAnswer(number=task.number, states=tuple(await self._models.states()))

    async def _prepare(self, task: Prepare | EstimateTask | ExtractTask | HelpTask) -> Prepared:
        return await self._preparing.prepare(task.space, task.request, task.found.registered())

    async def _help(self, task: HelpTask) -> int | None:
        prepared = await self._prepare(task)
        assert prepared.means is not None
        ALLOWED.set(task.allowed)
        return await self._workspaces.get(task.space).help(
            prepared.key.key,
            task.request.text,
            ontology=prepared.means.ontology,
            extractor=prepared.means.extractor,
            settings=prepared.settings,
            part=task.part,
        )

    async def _extract(self, task: ExtractTask) -> Extracted:
        prepared = await self._prepare(task)
        assert prepared.means is not None
        ALLOWED.set(task.allowed)
        extraction = await self._workspaces.get(task.space).extract(
            task.request.text,
            ontology=prepared.means.ontology,
            extractor=prepared.means.extractor,
            settings=prepared.settings,
            document=task.request.document,
            base=self._base,
            audit=task.audit,
        )
        done = await asyncio.to_thread(done_of, extraction, min_confidence=self._min_confidence)
        how = "shared" if extraction.shared else "replay" if extraction.replayed else "fresh"
        return Extracted(
            key=done.key,
            status=done.status,
            cache_hit=done.cache_hit,
            head=done.head,
            tail=done.tail,
            how=how,
            stored=done.stored,
            shared=done.shared,
            computed_at=done.computed_at,
            entities=done.entities,
            relations=done.relations,
        )


def _keyed(prepared: Prepared) -> Keyed:
    parts = prepared.key.components
    return Keyed(
        key=prepared.key.key,
        text_hash=parts.text_hash,
        ontology_id=parts.ontology_id,
        ontology_version=parts.ontology_version,
        extraction_params_hash=parts.extraction_params_hash,
        extractor=(prepared.extractor.name, prepared.extractor.version),
    )


async def _serve(output: int) -> NoReturn:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(waiting_threads())
    reader = asyncio.StreamReader(limit=_BUFFER)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(output, "wb")
    )
    process: LongProcess | None = None
    try:
        while True:
            size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
            task = _tasks.decode(await reader.readexactly(size))
            if isinstance(task, Begin):
                settings = msgspec.convert(dict(task.settings), Settings, dec_hook=lambda kind, value: kind(value))
                process = LongProcess(settings, asyncio.StreamWriter(transport, protocol, reader, loop))
            elif process is not None:
                process.take(task)
    except (asyncio.IncompleteReadError, BrokenPipeError):
        # The server has gone, and what is under way is its: no word more.
        if process is not None and process.is_idle:
            await process.close()
        os._exit(0)


def main() -> None:
    """Work until the input ends."""
    # Answers have the output to themselves: what anybody prints goes where errors go.
    output = os.dup(1)
    os.dup2(2, 1)
    # What is told of requests is told by the process that serves.
    configure_logging(level="WARNING")
    asyncio.run(_serve(output))


if __name__ == "__main__":
    main()
