"""Many questions handed in as one batch, which OpenAI and Anthropic answer within a day, for half the price.

Rule: a batch is written down before anybody waits for it, and a question that is in one already is never handed in
again: whoever is interrupted, or killed, finds its answers the next time. What was written down goes when the program
ends well and has its answers. A question that a batch did not answer goes into the next one. Keys are not written down.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from sameas.identity.errors import SameasError

# Both providers take more; this many of our questions are some ten megabytes.
MOST_IN_A_BATCH = 10_000
GATHER_FOR = 3.0
POLL_EVERY = 30.0
# A line of the list of failures that should not have come to anything but a retry.
_NOT_ANSWERED = 503
_NOT_THERE = 404


class Answer(msgspec.Struct, frozen=True):
    """What a provider says to one question: a status as over HTTP, and the body."""

    status: int
    body: Any


class BatchFailed(SameasError):
    """A provider would not take a batch, or say how it is: the status and what it said. `is_over` if it never will."""

    def __init__(self, status: int, body: Any, *, is_over: bool = False) -> None:
        super().__init__(f"status {status}")
        self.answer = Answer(status, body)
        self.is_over = is_over or status == _NOT_THERE


class BatchWire(Protocol):
    """How a provider takes batches. Each may raise `BatchFailed`."""

    async def submit(self, questions: Mapping[str, Any]) -> str:
        """Hand in questions by their ids; the id of the batch."""
        ...

    async def results(self, batch: str) -> Mapping[str, Answer] | None:
        """The answers by their ids; None while the batch is not done."""
        ...


class _Record(msgspec.Struct, frozen=True):
    """A batch as it is written down."""

    batch: str
    account: str
    questions: tuple[str, ...]


class Batches:
    """Collects questions for a moment, hands them in, and waits. `folder` keeps what was handed in."""

    def __init__(
        self,
        folder: Path,
        *,
        gather_for: float = GATHER_FOR,
        poll_every: float = POLL_EVERY,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        if not (gather_for > 0 and poll_every > 0):
            raise ValueError("gather_for and poll_every must be positive, in seconds")
        self._folder = folder
        self._gather_for = gather_for
        self._poll_every = poll_every
        self._note = on_note or (lambda _: None)
        # By account: what is to be handed in. By account and name: who waits, and in which batch a question is.
        self._open: dict[str, dict[str, Any]] = {}
        self._waiting: dict[tuple[str, str], list[asyncio.Future[Answer]]] = {}
        self._known: dict[tuple[str, str], _Record] | None = None
        self._over: set[_Record] = set()
        self._last = 0.0
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, question: Any, *, account: str, wire: BatchWire) -> Answer:
        """The answer to a question, in the end."""
        name = hashlib.sha256(msgspec.json.encode(question, order="deterministic")).hexdigest()[:60]
        key = account, name
        if key not in self._waiting:
            self._waiting[key] = []
            if not self._join(key, wire):
                self._open.setdefault(account, {})[name] = question
                self._last = time.monotonic()
                self._start(f"gather {account}", self._gather(account, wire))
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[key].append(answer)
        return await answer

    async def close(self) -> None:
        """Leave batches to their provider: they are written down."""
        for task in list(self._tasks.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        for record in self._over:
            self._file(record).unlink(missing_ok=True)
        self._over.clear()
        self._waiting.clear()

    def _join(self, key: tuple[str, str], wire: BatchWire) -> bool:
        """Wait for a batch that has the question already."""
        if self._known is None:
            self._known = {(one.account, name): one for one in self._records() for name in one.questions}
        record = self._known.get(key)
        if record is None:
            return False
        self._start(f"poll {record.batch}", self._follow(record, wire))
        return True

    def _start(self, name: str, work: Any) -> None:
        if name in self._tasks and not self._tasks[name].done():
            work.close()
            return
        self._tasks[name] = asyncio.get_running_loop().create_task(work)

    async def _gather(self, account: str, wire: BatchWire) -> None:
        """Hand in what has come together, when no more comes."""
        while questions := self._open.get(account):
            quiet = time.monotonic() - self._last
            if len(questions) < MOST_IN_A_BATCH and quiet < self._gather_for:
                await asyncio.sleep(self._gather_for - quiet)
                continue
            some = dict(list(questions.items())[:MOST_IN_A_BATCH])
            for name in some:
                del questions[name]
            try:
                batch = await wire.submit(some)
            except BatchFailed as failed:
                self._settle(account, some, {}, otherwise=failed.answer)
                continue
            except Exception as error:
                self._fail(account, some, error)
                continue
            record = _Record(batch, account, tuple(some))
            self._write(record)
            if self._known is not None:
                self._known |= {(account, name): record for name in some}
            self._note(f"{len(some)} questions were handed in as batch {batch}; answers take up to a day")
            self._start(f"poll {batch}", self._follow(record, wire))

    async def _follow(self, record: _Record, wire: BatchWire) -> None:
        """Wait for a batch and give out its answers."""
        lost = Answer(_NOT_ANSWERED, {"error": {"message": "the batch ended without an answer to this"}})
        found: Mapping[str, Answer] | None = None
        try:
            while found is None:
                found = await wire.results(record.batch)
                if found is None:
                    await asyncio.sleep(self._poll_every)
        except BatchFailed as failed:
            if failed.is_over:
                self._forget(record)
            is_gone = failed.answer.status == _NOT_THERE
            self._settle(record.account, record.questions, {}, otherwise=lost if is_gone else failed.answer)
        except Exception as error:
            # The next try looks for the same batch again.
            self._fail(record.account, record.questions, error)
        else:
            self._forget(record)
            self._settle(record.account, record.questions, found, otherwise=lost)

    def _forget(self, record: _Record) -> None:
        """Nobody looks for the batch any more; its file goes in the end, when the answers are where they belong."""
        self._over.add(record)
        for name in record.questions:
            if self._known is not None:
                self._known.pop((record.account, name), None)

    def _settle(
        self, account: str, names: Sequence[str] | Mapping[str, Any], found: Mapping[str, Answer], *, otherwise: Answer
    ) -> None:
        for name in names:
            for waiting in self._waiting.pop((account, name), []):
                if not waiting.done():
                    waiting.set_result(found.get(name, otherwise))

    def _fail(self, account: str, names: Sequence[str] | Mapping[str, Any], error: Exception) -> None:
        for name in names:
            for waiting in self._waiting.pop((account, name), []):
                if not waiting.done():
                    waiting.set_exception(error)

    def _records(self) -> list[_Record]:
        return [
            msgspec.json.decode(file.read_bytes(), type=_Record) for file in sorted(self._folder.glob("*.batch.json"))
        ]

    def _file(self, record: _Record) -> Path:
        return self._folder / f"{hashlib.sha256(record.batch.encode()).hexdigest()[:32]}.batch.json"

    def _write(self, record: _Record) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(record)
        fresh = file.with_suffix(".writing")
        fresh.write_bytes(msgspec.json.encode(record))
        fresh.replace(file)
