"""A reply is paid for once: the memo of calls, in any store, shared by every process that uses it.

Rule: a call is known by exactly what is sent and to which model, and by nothing else: no secret, no address, no
time-out. While one caller asks, others with the same ask wait and share the reply. Only a reply that its caller found
valid is kept; another is handed to the one who asked, and the next caller asks again. What is kept stays until
it is forgotten, or for a retention.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

import msgspec

from sameas.identity.canonical import join, sha256_hex
from sameas.identity.errors import NotCanonical
from sameas.llm.errors import CallRefused
from sameas.llm.models import Ask, Reply
from sameas.llm.tokens import schema_text
from sameas.once.async_engine import AsyncEngine
from sameas.once.codec import codec_for, unpack
from sameas.once.context import Context
from sameas.once.errors import InProgress, OutcomeUnknown, Superseded

SCOPE: Final = "model-call"
# Longer than a call may wait for the limiter and try again, so that nobody pays because somebody else had to wait.
WAIT_FOR: Final = 900.0
# What is sent besides the ask, by the adapters: a change there makes other replies. Ollama has an interface of its own.
WIRE_VERSION: Final = 1
OLLAMA_WIRE_VERSION: Final = 2

Check = Callable[[Reply], bool]

# Told the key of every call that a run asks for, so that whoever deletes the run finds the replies.
NOTE_CALL: ContextVar[Callable[[str], Awaitable[None] | None] | None] = ContextVar("sameas_note_call", default=None)


class Remembered(msgspec.Struct, frozen=True):
    """A reply, and whether it was there already, so that nothing was spent on it now."""

    reply: Reply
    was_kept: bool


class CallMemo:
    """Remembers the replies of models for one tenant. `retention` is in seconds; None keeps them until forgotten.

    Every call raises StoreUnavailable if the store cannot be asked; those that get an ask raise NotCanonical for one
    that cannot be sent.
    """

    def __init__(
        self, engine: AsyncEngine, tenant: str = "", *, retention: float | None = None, wait_for: float = WAIT_FOR
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._retention = retention
        self._wait_for = wait_for

    async def ask(
        self, model: str, ask: Ask, call: Callable[[], Awaitable[Reply]], *, is_valid: Check | None = None
    ) -> Remembered:
        """The reply that is kept, or that of `call()`, which is kept if `is_valid` says so.

        Without `is_valid` any reply is kept that the model ended of its own accord.

        Raises what `call()` raises, and CallRefused if the same call is being made elsewhere and takes too long.
        """
        made: list[Reply] = []
        key, note = call_key(model, ask), NOTE_CALL.get()
        if note is not None and (noting := note(key)) is not None:
            await noting

        async def work(_: Context) -> Reply:
            reply = await call()
            made.append(reply)
            if not (is_valid or _is_whole)(reply):
                raise _NotKept
            return reply

        try:
            record = await self._engine.record(
                work,
                scope=SCOPE,
                key=key,
                namespace="content",
                tenant=self._tenant,
                retention=self._retention,
                wait_for=self._wait_for,
                result_type=Reply,
                tags=(model_tag(model),),
            )
        except (_NotKept, OutcomeUnknown, Superseded):
            # The reply is here and good; only the memo does not have it.
            if not made:
                raise
            return Remembered(made[-1], was_kept=False)
        except InProgress as error:
            raise CallRefused(
                "The same call is being made elsewhere and takes too long; try again later.",
                retry_after=error.retry_after,
            ) from error
        return Remembered(record.answer(), was_kept=not made)

    async def find(self, model: str, ask: Ask) -> Reply | None:
        """The reply that is kept, without asking anybody."""
        record = await self._engine.read(SCOPE, call_key(model, ask), tenant=self._tenant, namespace="content")
        if record is None or record.state != "done" or record.outcome is None:
            return None
        reply: Reply = unpack(record.outcome, codec_for(Reply))
        return reply

    async def forget(self, model: str | None = None) -> int:
        """Forget the replies of a model, or of all; returns how many went."""
        tag = None if model is None else model_tag(model)
        return await self._engine.forget_where(tenant=self._tenant, scope=SCOPE, tag=tag)

    async def forget_call(self, model: str, ask: Ask) -> bool:
        """Forget one reply. False where there was none."""
        return await self._engine.forget(SCOPE, call_key(model, ask), tenant=self._tenant, namespace="content")


class _NotKept(Exception):
    """Tells the engine to give the claim back."""


def _is_whole(reply: Reply) -> bool:
    return reply.finish == "stop"


def call_key(model: str, ask: Ask) -> str:
    """The identity of a call."""
    contents = [part for message in ask.messages for part in (message.role, message.content)]
    limits = [str(ask.max_output_tokens), str(float(ask.temperature)), str(ask.sample)]
    if ask.effort is not None:
        limits.append(f"effort {ask.effort}")
    # The schema as text: models write the parts of an object in the order in which the schema names them.
    version = OLLAMA_WIRE_VERSION if model.startswith("ollama:") else WIRE_VERSION
    try:
        sent = join(str(version), model, ask.schema_name, schema_text(ask.schema), *limits, *contents)
    except UnicodeEncodeError:
        raise NotCanonical("holds a lone surrogate, which cannot be sent", "ask") from None
    return "sha256-" + sha256_hex(sent)


def model_tag(model: str) -> str:
    """Under which all replies of a model are found."""
    return f"model:{model}"
