"""One question to a model, until its answer has the form that was asked for, or there is none.

Rule: every reply is checked here. One that does not fit is sent back once with what is wrong with it; one that was
cut off is asked for again with more room. Then the chunk has failed, and the run goes on without it. A reply that does
not fit is remembered together with its repair, so that neither is paid for twice; where the repair does not fit either,
it is forgotten, and the next request begins anew. A key, a name or an address that is wrong ends the run instead: no
other chunk would fare better.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import ceil
from typing import Protocol, TypeVar

import msgspec

from sameas.extraction.extractors.contract import ChunkFailedError
from sameas.extraction.extractors.prompted.questions import prompt
from sameas.extraction.extractors.prompted.replies import BadReplyError, read_reply, schema_of
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.llm.errors import CallRefused
from sameas.llm.models import Ask, Message, ModelError, Reply
from sameas.llm.timeouts import StageName, soft_limit_passed

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")

INVALID, TRUNCATED, REFUSED = "invalid_reply", "truncated_reply", "model_refused"
# Asking again, which costs the same, would seldom give another.
_OF_THE_REPLY = frozenset({INVALID, TRUNCATED, REFUSED})
# Enough of a wrong reply for the model to see what it did.
_SENT_BACK = 4000


class Supervisor(Protocol):
    """What asks on behalf of a run: memo, budget, limiter and retries are behind it."""

    async def ask(
        self,
        stage: str,
        ask: Ask,
        *,
        is_valid: Callable[[Reply], bool] | None = None,
        repair_tokens: int | None = None,
    ) -> Reply: ...

    async def forget(self, ask: Ask) -> None: ...


class Asker:
    """Asks for one run and checks what comes back."""

    def __init__(
        self, supervisor: Supervisor, settings: PromptSettings, *, passing: frozenset[str] = frozenset()
    ) -> None:
        self._supervisor = supervisor
        self._settings = settings
        # What would end the run, and here only fails the chunk.
        self._passing = passing

    async def samples(self, stage: StageName, messages: tuple[Message, ...], kind: type[R]) -> list[R]:
        """The answers to a question, as many as there are samples, in their order.

        One of several that the model would not give, or not in a form that can be used, is left out while enough others
        are there to agree. One that did not come for another reason is worth waiting for, and the chunk fails.
        """
        samples = self._settings.samples
        if samples == 1:
            return [await self.answer(stage, messages, kind)]

        async def one(sample: int) -> R | ChunkFailedError:
            try:
                return await self.answer(stage, messages, kind, sample=sample)
            except ChunkFailedError as failed:
                if failed.code not in _OF_THE_REPLY:
                    raise
                return failed

        answers = await together([partial(one, sample) for sample in range(samples)])
        given = [answer for answer in answers if not isinstance(answer, ChunkFailedError)]
        if len(given) < max(2, ceil(samples * self._settings.minimum_agreement)):
            raise next(answer for answer in answers if isinstance(answer, ChunkFailedError))
        return given

    async def answer(self, stage: StageName, messages: tuple[Message, ...], kind: type[R], *, sample: int = 0) -> R:
        """One answer in the form that was asked for; raises `ChunkFailedError`."""
        ask = question(messages, kind, settings=self._settings, sample=sample)
        reply = await self._reply(stage, ask, is_kept=_is_answer, repair_tokens=self._settings.repair_output_tokens)
        try:
            return _checked(reply, kind)
        except BadReplyError as wrong:
            error = wrong
        # Beyond its soft limit a chunk is done as it is, or not at all.
        if soft_limit_passed():
            raise ChunkFailedError(_code(reply), f"the model's reply could not be used: {error}")
        second = repair(ask, reply, error, settings=self._settings)
        try:
            again = await self._reply(stage, second, is_kept=lambda reply: _is_usable(reply, kind))
            return _checked(again, kind)
        except _RefusedError:
            await self._supervisor.forget(ask)
            raise
        except BadReplyError as still:
            await self._supervisor.forget(ask)
            raise ChunkFailedError(
                _code(again), f"the model's reply could not be used, nor could its second one: {still}"
            ) from still

    async def _reply(
        self, stage: StageName, ask: Ask, *, is_kept: Callable[[Reply], bool], repair_tokens: int | None = None
    ) -> Reply:
        try:
            reply = await self._supervisor.ask(stage, ask, is_valid=is_kept, repair_tokens=repair_tokens)
        except ModelError as error:
            if error.ends_run and error.code not in self._passing:
                raise
            raise ChunkFailedError(error.code, str(error), retry_after_ms=_milliseconds(error.retry_after)) from error
        except CallRefused as refused:
            raise ChunkFailedError(
                refused.code, str(refused), retry_after_ms=_milliseconds(refused.retry_after)
            ) from refused
        if reply.finish == "refusal":
            raise _RefusedError(REFUSED, f"the model would not answer: {reply.text[:200]!r}")
        return reply


class _RefusedError(ChunkFailedError):
    """The model would not answer."""


def question(messages: tuple[Message, ...], kind: type[R], *, settings: PromptSettings, sample: int = 0) -> Ask:
    """Exactly what is sent for a question."""
    return Ask(
        messages=messages,
        schema=schema_of(kind, with_confidence=settings.ask_confidence),
        schema_name=kind.__name__,
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.heat,
        sample=sample,
        effort=settings.effort,
    )


def repaired(ask: Ask, reply: Reply, kind: type[R], *, settings: PromptSettings) -> Ask | None:
    """What is asked after a reply that does not fit; None where it does."""
    try:
        _checked(reply, kind)
    except BadReplyError as error:
        return repair(ask, reply, error, settings=settings)
    return None


def repair(ask: Ask, reply: Reply, error: BadReplyError, *, settings: PromptSettings) -> Ask:
    """The question again, with what was wrong; a reply that was cut off is not shown, it only needs more room."""
    complaint = Message("user", prompt("repair").filled(error=str(error)))
    if reply.finish == "length" or not reply.text.strip():
        # Two messages of one role in a row are refused by some providers.
        last = Message("user", f"{ask.messages[-1].content}\n\n{complaint.content}")
        messages = (*ask.messages[:-1], last)
    else:
        messages = (*ask.messages, Message("assistant", reply.text[:_SENT_BACK]), complaint)
    return msgspec.structs.replace(ask, messages=messages, max_output_tokens=settings.repair_output_tokens)


async def together(works: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """The results of all, in order; the first failure ends the others before it is told."""
    if len(works) == 1:
        return [await works[0]()]
    tasks = [asyncio.ensure_future(work()) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        # They hold permits and reservations until they have ended.
        await asyncio.wait(tasks)
    failed = [task for task in tasks if not task.cancelled() and task.exception() is not None]
    return [task.result() for task in (*failed, *tasks)][len(failed) :]


def _checked(reply: Reply, kind: type[R]) -> R:
    try:
        return read_reply(reply.text, kind)
    except BadReplyError as wrong:
        if reply.finish == "length":
            raise BadReplyError(
                f"it was cut off after {reply.usage.output_tokens} tokens; make it shorter: no spaces, nothing twice"
            ) from wrong
        raise


def _is_answer(reply: Reply) -> bool:
    return reply.finish != "refusal"


def _is_usable(reply: Reply, kind: type[R]) -> bool:
    try:
        read_reply(reply.text, kind)
    except BadReplyError:
        return False
    return True


def _code(reply: Reply) -> str:
    return TRUNCATED if reply.finish == "length" else INVALID


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
