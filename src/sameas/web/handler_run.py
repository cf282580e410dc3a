"""One request, from its key to its answer: replayed, or run once by a handler in a task of its own. The handler
finishes and its result is kept even if the client or the server's task is gone.

Its answer is complete with the last piece of the body, before background tasks; nothing of it is sent before the record
is accepted, except if the route chose `passthrough`. Then the last piece waits, and the stream is cut off where
another's result was accepted.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from sameas.identity.scope import current_principal, current_scope
from sameas.once.claim_handle import AsyncClaimHandle
from sameas.once.errors import SameasError
from sameas.once.record import ProcessingRecord
from sameas.web.capture import Disconnected, GivenBody, Message, Receive, Spool
from sameas.web.client_connection import FRESH, ClientConnection
from sameas.web.frameworks import ENTRANCE, Entrance
from sameas.web.problem import Problem, Send, problem_of
from sameas.web.recording import NotKept, Recording
from sameas.web.request_claim import RequestClaim, RequestContext
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

_LOG = logging.getLogger("sameas")

# Stands for a body that its handler has now. Nothing is ever written to it.
_GIVEN_AWAY: Final = Spool()

# What a server may offer beyond plain messages, and what goes past what is held here.
_PAST_US: Final = frozenset(
    {"http.response.pathsend", "http.response.zerocopysend", "http.response.push", "http.response.trailers"}
    | {"http.response.early_hint"}
)


async def respond(
    home: IdempotencyMiddleware,
    rule: Rule,
    scope: dict[str, Any],
    receive: Receive,
    send: Send,
    keys: tuple[bytes, ...],
) -> None:
    """Answer a request; `keys` are the values of its Idempotency-Key."""
    request_claim = RequestClaim(home, rule, scope)
    client = ClientConnection(send, rule.policy, scope["headers"], head_only=scope["method"] == "HEAD")
    try:
        try:
            request_claim.read_key(keys)
            request_context = await request_claim.request_context()
            try:
                begun = await request_claim.begin(receive, request_context, rule.options)
            except OSError as error:
                _LOG.error("a request could not be held: %s", type(error).__name__)
                raise Problem(
                    503, "no-room", "The request cannot be held here; it was not run.", retry_after=5.0
                ) from error
        except Problem as problem:
            await client.send_problem(problem)
            return
        except Disconnected:
            return
        if isinstance(begun, ProcessingRecord):
            await client.replay(begun)
        else:
            body, request_claim.body = GivenBody(request_claim.body), _GIVEN_AWAY
            await HandlerRun(home, rule, scope, request_context, begun, body, client).run()
    finally:
        request_claim.body.close()


class CutOff(OSError):
    """The stream was cut off: its worker was replaced while it streamed."""


class HandlerRun:
    """One run of a handler, under a claim that is ours."""

    __slots__ = (
        "_body",
        "_client",
        "_entrance",
        "_handled",
        "_held",
        "_home",
        "_hop",
        "_recording",
        "_rule",
        "_scope",
        "_settled",
    )

    def __init__(
        self,
        home: IdempotencyMiddleware,
        rule: Rule,
        scope: dict[str, Any],
        request_context: RequestContext,
        held: AsyncClaimHandle,
        body: GivenBody,
        client: ClientConnection,
    ) -> None:
        self._home = home
        self._rule = rule
        self._scope = _plain(scope)
        self._hop = request_context
        self._held = held
        self._body = body
        self._client = client
        self._recording = Recording(most=rule.policy.keep_limit if rule.policy.delivery == "passthrough" else None)
        self._entrance = Entrance() if rule.is_watched else None
        self._settled = False

    async def run(self) -> None:
        """Run it and answer. If this is cancelled, the handler goes on."""
        loop = asyncio.get_running_loop()
        self._handled: asyncio.Future[None] = loop.create_future()
        handler_run = loop.create_task(self._handle())
        self._home.running.add(handler_run)
        handler_run.add_done_callback(self._ended)
        try:
            await self._handled
        except asyncio.CancelledError:
            self._client.is_gone = True
            raise

    def _ended(self, handler_run: asyncio.Task[None]) -> None:
        self._home.running.discard(handler_run)
        handled = self._handled
        if handler_run.cancelled():
            if not self._settled:
                # It never began, so nobody gave the claim back.
                giving_back = handler_run.get_loop().create_task(self._give_back())
                self._home.running.add(giving_back)
                giving_back.add_done_callback(self._home.running.discard)
            handled.cancel()
            return
        error = handler_run.exception()
        if error is None:
            return
        if handled.done():
            _LOG.error("a handler failed after its client had gone: %s", type(error).__name__)
        else:
            handled.set_exception(error)

    async def _handle(self) -> None:
        # The task is the handler's alone, and so is what is set here.
        self._held.enter()
        current_scope.set(self._hop.scope)
        current_principal.set(self._hop.principal)
        ENTRANCE.set(self._entrance)
        take = self._take if self._rule.policy.delivery == "hold" else self._pass_on
        try:
            await self._home.app(self._scope, self._body.receive, take)
            if not self._settled:
                self._settled = True
                await self._failed(RuntimeError("the application ended without an answer"))
        except BaseException as error:
            if self._settled:
                raise
            self._settled = True
            await self._failed(error)
        finally:
            self._body.close()
            self._recording.close()
        # Whoever waits hears it here, a turn of the event loop before the task is done.
        if not self._handled.done():
            self._handled.set_result(None)

    async def _give_back(self) -> None:
        self._body.close()
        with suppress(asyncio.CancelledError):
            await self._held.give_back(asyncio.CancelledError())

    async def _failed(self, error: BaseException) -> None:
        record = await self._held.give_back(error)
        # Another was faster, and its result was accepted: that is the answer.
        if self._recording.status and self._rule.policy.delivery == "passthrough":
            raise CutOff(str(CutOff.__doc__)) from error
        _LOG.warning("a handler that had been replaced failed: %s", type(error).__name__)
        await self._client.replay(record)

    async def _take(self, message: Message) -> None:
        """A message of the handler, held until the answer is complete."""
        kind = message["type"]
        if kind == "http.response.body":
            if not self._settled:
                self._recording.write(message.get("body", b""))
                if not message.get("more_body"):
                    if self._scope["method"] != "HEAD":
                        self._recording.check_length()
                    await self._settle()
        elif kind == "http.response.start":
            if not self._settled:
                self._recording.open(message)
        else:
            await self._client.send(message)

    async def _settle(self) -> None:
        """The answer is complete: keep it or give the claim back, then send what was accepted."""
        self._settled = True
        client, recording = self._client, self._recording
        try:
            record = await self._hand_in()
        except NotKept:
            await client.give(recording)
        except SameasError as error:
            await client.send_problem(problem_of(error))
        else:
            if record.was_replay:
                await client.replay(record)
            else:
                await client.give(recording, expires_at=record.expires_at if record.stored else None)
        finally:
            self._body.answered()

    async def _hand_in(self) -> ProcessingRecord:
        kept = self._recording.judged(self._rule, self._hop, self._scope, self._entrance)
        return await (self._held.give_back(NotKept()) if kept is None else self._held.finish(kept))

    async def _pass_on(self, message: Message) -> None:
        """A message of the handler, sent on while it is recorded; the last one waits for the record."""
        kind = message["type"]
        if kind == "http.response.start":
            self._recording.open(message)
            await self._client.send({**message, "headers": [*self._recording.headers, FRESH]})
        elif kind == "http.response.body":
            if self._settled:
                return
            context = self._held.context
            if context.lost or monotonic() > context.safe_until:
                raise CutOff(CutOff.__doc__)
            self._recording.write(message.get("body", b""))
            if message.get("more_body"):
                await self._client.send(message)
                return
            await self._settle_passed()
            await self._client.send(message)
            self._body.answered()
        else:
            await self._client.send(message)

    async def _settle_passed(self) -> None:
        self._settled = True
        try:
            record = await self._hand_in()
            if record.was_replay:
                raise CutOff(CutOff.__doc__)
        except NotKept:
            pass
        except SameasError as error:
            raise CutOff(type(error).__name__) from error


def _plain(scope: dict[str, Any]) -> dict[str, Any]:
    """What the handler sees: nothing that would let an answer go past us."""
    offered = scope.get("extensions")
    if not offered or _PAST_US.isdisjoint(offered):
        return scope
    return {**scope, "extensions": {name: value for name, value in offered.items() if name not in _PAST_US}}
