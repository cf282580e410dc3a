"""Work in processes of its own: large ontologies, long texts and models never hold the interpreter that serves.

Rule: three processes, one for long texts, one for large ontologies and one for all runs that ask a model, which so have
one limiter for each account; none waits for the others. Each is started when it is first needed, keeps what it has
loaded, and is started again when it ended. They have no doors: they are asked over a pipe, work under the leases of the
once engine like everybody else, and end with this process. A run whose process ended is taken up again by whoever looks
at promises.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from typing import Any

import msgspec

from sameas.extraction.pipeline.run import RunPart
from sameas.extraction.runs.metadata import ExtractorName
from sameas.server.problems import Problem, not_found
from sameas.server.runs.long_tasks import (
    LENGTH_BYTES,
    Begin,
    Cancel,
    Describe,
    EstimateTask,
    Extracted,
    ExtractTask,
    HelpTask,
    Keyed,
    LookAtModels,
    Prepare,
    Task,
    TaskAnswer,
    TaskResult,
)
from sameas.server.runs.models import AccountState, ModelEstimate
from sameas.server.runs.preparation import LONG_TEXT, Prepared, Preparing, asks_model, estimate_of, is_long
from sameas.server.schemas import ExtractRequest
from sameas.server.shares import SHORT_TEXT, RunQueue
from sameas.server.tenants.ontologies import ContentGone, Ontologies, Registered
from sameas.server.tenants.ontology_files import Described, Source
from sameas.server.tenants.workspaces import tenant_of
from sameas.settings import Settings

_LOG = logging.getLogger("sameas.server")
_MODULE = "sameas.server.runs.long_process"
_BUFFER = 1 << 20
# Long texts that are worked on side by side; more would only share the same processor.
_TEXTS_AT_ONCE = 2
# Seconds that a process has to end a run that was cancelled, and to end itself.
_ENDS_WITHIN = 10.0
# What ended its process so often needs more than this machine has.
_ENDS_AT_MOST = 3
# Requests whose keys are computed at once: of those who wait, tenants take turns.
_KEYED_AT_ONCE = 8

_encode = msgspec.msgpack.Encoder().encode
_answers = msgspec.msgpack.Decoder(TaskAnswer)


class LongWork:
    """The processes for long work. Lives in the background loop."""

    def __init__(self, settings: Settings, *, divided: bool) -> None:
        begin = Begin(settings=msgspec.to_builtins(settings, enc_hook=str))
        self._texts = _Process(begin, RunQueue(_TEXTS_AT_ONCE, divided=divided))
        self._ontologies = _Process(begin, RunQueue(settings.max_runs, divided=divided))
        self._models = _Process(begin, RunQueue(settings.max_runs, divided=divided))
        # A batch takes up to a day, and nothing meanwhile: who waits for one is in nobody's way.
        self._batches = RunQueue(settings.max_runs, divided=divided)

    async def describe(self, source: Source) -> Described:
        """What is in an ontology."""
        answer = await self._ontologies.ask(lambda number: Describe(number=number, source=source))
        assert answer.described is not None
        return answer.described

    async def prepare(self, space: str, request: ExtractRequest, found: Registered) -> Keyed:
        """The key of a long request."""
        there = TaskResult.of(found)
        answer = await self._for(request).ask(
            lambda number: Prepare(number=number, space=space, request=request, found=there)
        )
        assert answer.keyed is not None
        return answer.keyed

    async def estimate(self, prepared: Prepared) -> ModelEstimate | None:
        """What a model would be asked about a request."""
        request, found = prepared.request, TaskResult.of(prepared.found)
        answer = await self._for(request).ask(
            lambda number: EstimateTask(number=number, space=prepared.space, request=request, found=found)
        )
        return answer.estimated

    async def start_models(self) -> None:
        """Have the process that asks models ready."""
        await self._models.ask(lambda number: LookAtModels(number=number))

    async def look_at_models(self) -> tuple[AccountState, ...]:
        """How limiters and circuits stand; nothing is started for it."""
        if not self._models.is_running:
            return ()
        return (await self._models.ask(lambda number: LookAtModels(number=number))).states

    async def extract(
        self, prepared: Prepared, audit: Mapping[str, Any], *, allowed: tuple[int, Decimal | None] | None = None
    ) -> Extracted:
        """The result of a long run; a caller that is cancelled cancels the run, and waits until that is done."""
        process, found = self._for(prepared.request), TaskResult.of(prepared.found)
        # Where all texts are long, none is longer than the others.
        is_long = process is not self._texts and len(prepared.request.text) > SHORT_TEXT
        run_queue = self._batches if prepared.request.extraction_params.batch else process.run_queue
        async with run_queue.turn(tenant_of(prepared.space), is_long=is_long):
            answer = await process.ask(
                lambda number: ExtractTask(
                    number=number,
                    space=prepared.space,
                    request=prepared.request,
                    found=found,
                    audit=audit,
                    allowed=allowed,
                )
            )
        assert answer.extracted is not None
        return answer.extracted

    async def help(
        self, prepared: Prepared, part: RunPart, *, allowed: tuple[int, Decimal | None] | None = None
    ) -> int | None:
        """Do a part of the chunks of a run that goes on elsewhere."""
        process, found = self._for(prepared.request), TaskResult.of(prepared.found)
        async with process.run_queue.turn(tenant_of(prepared.space), is_long=True):
            answer = await process.ask(
                lambda number: HelpTask(
                    number=number,
                    space=prepared.space,
                    request=prepared.request,
                    found=found,
                    part=part,
                    allowed=allowed,
                )
            )
        return answer.helped

    async def kill(self) -> set[str]:
        """End everything at once, as if by accident; gives the names under which claims were held."""
        return {name for process in self._all if (name := await process.kill())}

    async def close(self) -> None:
        """End the processes; nothing is under way."""
        await asyncio.gather(*(process.close() for process in self._all))

    @property
    def _all(self) -> tuple[_Process, ...]:
        return (self._texts, self._ontologies, self._models)

    def _for(self, request: ExtractRequest) -> _Process:
        if asks_model(request):
            return self._models
        return self._texts if len(request.text) > LONG_TEXT else self._ontologies


class Preparer:
    """From requests to what they stand for, in this process or in one for long work. Lives in the background loop."""

    def __init__(
        self,
        preparing: Preparing,
        *,
        ontologies: Ontologies,
        long_work: LongWork | None,
        asks_here: bool,
        divided: bool,
    ) -> None:
        self._ontologies = ontologies
        self._preparing = preparing
        self._long_work = long_work
        # Whether models are asked in this process and not in one of their own.
        self._asks_here = asks_here
        self._keying = RunQueue(_KEYED_AT_ONCE, divided=divided)

    async def prepare(self, space: str, request: ExtractRequest) -> Prepared:
        """Resolve the ontology and the extractor, and compute the key."""
        try:
            return await self._prepare(space, request, await self.present(space, request))
        except ContentGone as gone:
            # It was put anew elsewhere, and the word of it has not come yet.
            await self._ontologies.refresh(gone.owner)
            return await self._prepare(space, request, await self.present(space, request))

    async def estimate(self, prepared: Prepared) -> ModelEstimate | None:
        """What a model would be asked about a request; None where none is."""
        if prepared.means is not None or self._long_work is None or not asks_model(prepared.request):
            return await estimate_of(prepared)
        return await self._long_work.estimate(prepared)

    async def names(self, prepared: Prepared) -> tuple[str, ...]:
        """The names of the ontology that a request stands for."""
        return await self._ontologies.names(tenant_of(prepared.space), prepared.key.components.ontology_id)

    async def present(self, space: str, request: ExtractRequest) -> Registered:
        """The ontology of a request, in the version that it names."""
        found = await self._ontologies.find(tenant_of(space), request.ontology_id)
        if found is None:
            raise not_found(f"ontology {request.ontology_id!r}", todo="put it first, or list those that are there")
        if request.ontology_version not in (None, found.entry.version):
            raise Problem(
                409,
                "ontology-version-differs",
                "the ontology has another version by now; leave ontologyVersion out or take the present one",
                version=found.entry.version,
            )
        return found

    async def _prepare(self, space: str, request: ExtractRequest, found: Registered) -> Prepared:
        elsewhere = self._long_work is not None and (
            not self._asks_here if asks_model(request) else is_long(request, found)
        )
        async with self._keying.turn(tenant_of(space), is_long=is_long(request, found)):
            if self._long_work is None or not elsewhere:
                return await self._preparing.prepare(space, request, found)
            keyed = await self._long_work.prepare(space, request, found)
        who = ExtractorName(*keyed.extractor)
        return Prepared(space, request, found, self._preparing.settings(request), keyed.whole(), who, None)


class Suspects:
    """Runs under which a process ended. Which of several ended it nobody knows: those that it may have been are tried
    one at a time, so that none is taken for another again. Models have their own process.
    """

    def __init__(self, *, divided: bool) -> None:
        self._ends: Counter[tuple[str, str]] = Counter()
        self._turns = {asks: RunQueue(1, divided=divided) for asks in (False, True)}

    @asynccontextmanager
    async def turn(self, prepared: Prepared) -> AsyncIterator[None]:
        """The turn of a run that may have ended its process; at once for every other."""
        if not self._ends[prepared.space, prepared.key.key] or prepared.request.extraction_params.batch:
            yield
            return
        async with self._turns[asks_model(prepared.request)].turn(tenant_of(prepared.space)):
            yield

    def ended(self, prepared: Prepared, error: ChildProcessError) -> Exception:
        """What a run is told whose process ended: to be taken up again, until that has happened too often."""
        place = (prepared.space, prepared.key.key)
        self._ends[place] += 1
        if self._ends[place] < _ENDS_AT_MOST:
            return error
        return Problem(
            422, "run-too-large", f"the run has ended its process {_ENDS_AT_MOST} times: send the text in parts"
        )

    def forget(self, space: str, key: str) -> None:
        """A run has ended otherwise."""
        self._ends.pop((space, key), None)


class _Process:
    """One process and the tasks that it was given."""

    def __init__(self, begin: Begin, run_queue: RunQueue) -> None:
        self.run_queue = run_queue
        self._begin = begin
        self._starting = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[TaskAnswer]] = {}
        self._count = 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def ask(self, task_of: Callable[[int], Task]) -> TaskAnswer:
        await self._start()
        self._count += 1
        number = self._count
        answer: asyncio.Future[TaskAnswer] = asyncio.get_running_loop().create_future()
        asked = self._asked
        asked[number] = answer
        try:
            await self._send(task_of(number))
            found = await asyncio.shield(answer)
        except asyncio.CancelledError:
            # Its claim is given back before the caller goes on.
            with suppress(OSError):
                await self._send(Cancel(number))
            await asyncio.wait({answer}, timeout=_ENDS_WITHIN)
            raise
        finally:
            asked.pop(number, None)
            if answer.done() and not answer.cancelled():
                answer.exception()
        if found.failed is not None:
            raise found.failed.error()
        return found

    async def kill(self) -> str:
        process = self._process
        if process is None or process.returncode is not None:
            return ""
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return holder_of(process.pid)

    async def close(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        # It ends when its input does.
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _ENDS_WITHIN)
        except TimeoutError:
            await self.kill()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _start(self) -> None:
        async with self._starting:
            if self.is_running:
                return
            # Our own module in our own Python; settings and work come in as data.
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_BUFFER,
            )
            # Its own: what was asked of the one before ends with that.
            self._asked = {}
            self._reading = asyncio.create_task(self._read(self._process, self._asked))
            await self._send(self._begin)

    async def _send(self, task: Task) -> None:
        process = self._process
        if process is None or process.stdin is None or process.returncode is not None:
            raise ChildProcessError("the process for long work has ended; ask again")
        data = _encode(task)
        process.stdin.writelines((len(data).to_bytes(LENGTH_BYTES, "big"), data))
        try:
            await process.stdin.drain()
        except ConnectionError:
            raise ChildProcessError("the process for long work has ended; ask again") from None

    async def _read(self, process: asyncio.subprocess.Process, asked: dict[int, asyncio.Future[TaskAnswer]]) -> None:
        assert process.stdout is not None
        try:
            while True:
                size = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES), "big")
                answer = _answers.decode(await process.stdout.readexactly(size))
                waiting = asked.get(answer.number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except asyncio.IncompleteReadError:
            code = await process.wait()
            if asked:
                _LOG.warning("a process for long work ended with code %s; it is started again", code)
            for waiting in asked.values():
                if not waiting.done():
                    ended = f"the process for long work ended with code {code}: there may be too little memory"
                    waiting.set_exception(ChildProcessError(ended))


def holder_of(pid: int) -> str:
    """The name under which the once engine notes a process of this machine as a holder."""
    return f"{socket.gethostname()}:{pid}"
