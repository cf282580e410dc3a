"""Calls over a WebSocket: `{tag, payload}`, many at a time, each with an id (source document 001, part 2.3).

| tag | payload | what comes back |
|---|---|---|
| extraction.streamExtract | text, ontologyId, extractionParams?, document?, after? | `event` messages, then `result` |
| extraction.getResult | text, ontologyId, ... or idempotencyKey | `result`: the graph, or null |
| extraction.cancel | idempotencyKey | `result` |

`ExtractFromText` and `GetCachedResult` (part 2.1) are other words for the first two.

Rule: every message that goes out names the id of its call; an error is a message and ends its call, not the socket.
A call without an id is numbered by the server. Bounded: the size of a message, calls in one message, calls in flight.
A socket that is closed ends its calls and no run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from sameas.extraction.events.events import Event
from sameas.extraction.runs.library import RunNotFoundError
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.runs.work import cache_hit, completion
from sameas.server.http import examples
from sameas.server.http.route import Asked, Reply, Route, query_of
from sameas.server.http.routes.extract import Signal, decode_request, wanted
from sameas.server.logs import ExtractionLog
from sameas.server.problems import Problem, problem_of
from sameas.server.runs.answers import Done, done_of_run
from sameas.server.runs.preparation import Prepared
from sameas.server.schemas import Call, ExtractRequest, is_run_key
from sameas.server.service import Service
from sameas.server.streams.admissions import Admission
from sameas.server.streams.lines import line_of_event
from sameas.server.tenants.access import Caller
from sameas.server.tenants.workspaces import tenant_of

TAGS = ("extraction.streamExtract", "extraction.getResult", "extraction.cancel")
MAX_BATCH = 32
MAX_IN_FLIGHT = 64
# Of RFC 6455 and its registry: a broken rule, try again later.
POLICY, TRY_AGAIN = 1008, 1013

_LOG = logging.getLogger("sameas.server")
_calls = msgspec.json.Decoder(Call | list[Call])
_encode = msgspec.json.Encoder().encode


class Rpc:
    """Answers calls for one caller, over whatever carries messages."""

    def __init__(self, service: Service, caller: Caller, admission: Admission) -> None:
        self._service = service
        self._caller = caller
        self._admission = admission

    def read(self, message: bytes | str) -> list[Call]:
        """The calls of a message."""
        most = self._service.settings.max_body
        if len(message) > most:
            raise Problem(413, "message-too-large", f"send at most {most} bytes in one message")
        calls = _calls.decode(message)
        batch = calls if isinstance(calls, list) else [calls]
        if not 1 <= len(batch) <= MAX_BATCH:
            raise Problem(413, "batch-too-large", f"send 1 to {MAX_BATCH} calls in one message")
        return batch

    async def answer(self, call: Call, name: str | int) -> AsyncIterator[bytes]:
        """The messages that answer a call; the last is a result or an error."""
        head = b'{"id":%s,"tag":%s,"type":' % (_encode(name), _encode(call.tag[:100]))
        try:
            self._admission.check()
            async for message in self._messages(call):
                yield head + message
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _LOG.exception("a call of %s failed, trace %s", call.tag[:100], self._caller.ctx.trace_id)
            yield head + b'"error","error":%s}' % problem.body

    def _messages(self, call: Call) -> AsyncIterator[bytes]:
        match call.tag:
            case "extraction.streamExtract" | "ExtractFromText":
                return self._stream(call.payload)
            case "extraction.getResult" | "GetCachedResult":
                return self._result(call.payload)
            case "extraction.cancel":
                return self._cancel(call.payload)
            case _:
                raise Problem(404, "tag-unknown", f"there is no such call; the tags are {', '.join(TAGS)}")

    async def _stream(self, payload: Any) -> AsyncIterator[bytes]:
        service, space = self._service, self._caller.space
        fields = dict(payload) if isinstance(payload, dict) else {}
        after = fields.pop("after", 0)
        if type(after) is not int or after < 0:
            raise Problem(422, "invalid", "after must be the number of an event, 0 or more")
        prepared = await service.do(service.runner.prepare(space, _request(fields)))
        key = prepared.key.key
        written = Signal()
        extracting = service.runner.extract(prepared, self._caller.audit, accepted=written.set)
        running = asyncio.ensure_future(service.do(extracting))
        try:
            known = await self._finished(prepared, running)
            if known is None:
                # Before that nobody would find a run to listen to.
                await _either(running, written)
            if known is not None:
                # Nothing is run: a word to say where the result comes from, and what it is.
                for event in known:
                    yield b'"event","event":%s}' % line_of_event(event).data
            else:
                listening = service.listen(space, key, after=after, admission=self._admission)
                async for batch in listening:
                    for line in batch:
                        yield b'"event","event":%s}' % line.data
            self._admission.check()
            if service.hub.closed and not running.done():
                raise Problem(503, "stopping", "this server is being stopped; call again with `after`", key=key)
            done = await running
            self._admission.check()
            yield _result_of(await wanted(done, prepared.request))
        finally:
            running.add_done_callback(_ignore)

    async def _finished(self, prepared: Prepared, running: asyncio.Future[Done]) -> tuple[Event, ...] | None:
        """The events that say that the result was there, if it was."""
        service = self._service
        if service.rollout.mode_of(tenant_of(prepared.space), SCOPE, prepared.key.key) != "enforce":
            return None
        record = await service.do(service.runner.record(prepared.space, prepared.key.key))
        if record is None or record.state.value != "done":
            return None
        # It is read, and in a cluster fetched, for this caller; what is wrong with it is told below.
        await asyncio.wait({running})
        metadata = service.runs(prepared.space).at(prepared.key.key).peek()
        if metadata is None or metadata.status != "complete":
            return None
        now = time.time()
        return cache_hit(metadata, shared=False, now=now), completion(metadata, now=now)

    async def _result(self, payload: Any) -> AsyncIterator[bytes]:
        service, space = self._service, self._caller.space
        key = payload.get("idempotencyKey") if isinstance(payload, dict) else None
        if key is None:
            prepared = await service.do(service.runner.prepare(space, _request(payload)))
            key = prepared.key.key
        run = await asyncio.to_thread(self._read, _run_key(key))
        if run is None:
            yield b'"result","result":null}'
            return
        done, ontology_id = run
        ExtractionLog(space, key, self._caller.audit).hit("result-cache", done.computed_at)
        yield _result_of(done.named(await service.do(service.ontologies.names(tenant_of(space), ontology_id))))

    def _read(self, key: str) -> tuple[Done, str] | None:
        try:
            run = self._service.runs(self._caller.space).find(key)
        except RunNotFoundError:
            return None
        if run.metadata.status != "complete":
            return None
        least = self._service.settings.min_confidence
        done = done_of_run(run.metadata, run.graph(), min_confidence=least, cache_hit=True)
        return done, run.metadata.ontology_id

    async def _cancel(self, payload: Any) -> AsyncIterator[bytes]:
        service, space = self._service, self._caller.space
        key = _run_key(payload.get("idempotencyKey") if isinstance(payload, dict) else None)
        outcome: str = await service.cancel(space, key)
        if outcome == "elsewhere":
            outcome = "requested"
        yield b'"result","result":%s}' % _encode({"idempotencyKey": key, "outcome": outcome})


class RpcSocket:
    """`WS /api/rpc`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        try:
            caller = await self._service.access.enter(scope)
        except Exception as error:
            problem = problem_of(error)
            # Before it is accepted, closing answers the handshake with 403.
            await socket.close(code=POLICY, reason=problem.detail[:120])
            return
        try:
            admission = self._service.admissions.enter(scope, caller)
        except Problem as problem:
            await socket.close(code=TRY_AGAIN, reason=problem.detail[:120])
            return
        try:
            await socket.accept()
            await _Conversation(self._service, caller, socket, admission).go()
        finally:
            admission.leave()


class _Conversation:
    """One socket and the calls that are under way on it."""

    def __init__(self, service: Service, caller: Caller, socket: WebSocket, admission: Admission) -> None:
        self._service = service
        self._tenant = caller.ctx.tenant_id
        self._rpc = Rpc(service, caller, admission)
        self._admission = admission
        self._socket = socket
        self._closing: asyncio.Task[None] | None = None
        self._calls: dict[str | int, asyncio.Task[None]] = {}
        self._count = 0

    async def go(self) -> None:
        self._service.sockets.add(self._socket)
        self._admission.on_refused(self._refuse)
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                await self._take(message.get("bytes") or (message.get("text") or "").encode("utf-8", "surrogatepass"))
        except (WebSocketDisconnect, RuntimeError):
            # Closed from this side meanwhile.
            return
        finally:
            self._service.sockets.discard(self._socket)
            for task in list(self._calls.values()):
                task.cancel()
            await asyncio.gather(*self._calls.values(), return_exceptions=True)

    def _refuse(self) -> None:
        for task in list(self._calls.values()):
            task.cancel()
        self._closing = asyncio.create_task(
            self._socket.close(code=POLICY, reason="the credential of this socket is no longer good")
        )

    async def _take(self, message: bytes) -> None:
        try:
            self._admission.check()
            calls = self._rpc.read(message)
            # Each call holds its part of the message until it is answered.
            part = -(-len(message) // len(calls))
            self._service.body_memory.take(part * len(calls), self._tenant)
        except Exception as error:
            await self._send(b'{"id":null,"type":"error","error":%s}' % problem_of(error).body)
            return
        for call in calls:
            await self._begin(call, part)

    async def _begin(self, call: Call, size: int) -> None:
        name = call.id
        if name is None:
            self._count += 1
            name = f"call-{self._count}"
        trouble = None
        if name in self._calls:
            trouble = Problem(409, "id-in-use", "a call with this id is under way on this socket; choose another")
        elif len(self._calls) >= MAX_IN_FLIGHT:
            trouble = Problem(429, "too-many-calls", f"at most {MAX_IN_FLIGHT} calls may be under way on a socket")
        elif isinstance(name, str) and not 0 < len(name) <= 200:
            trouble = Problem(422, "invalid", "an id has 1 to 200 characters")
        if trouble is not None:
            self._service.body_memory.give_back(size, self._tenant)
            await self._send(b'{"id":%s,"type":"error","error":%s}' % (_encode(name), trouble.body))
            return
        task = asyncio.create_task(self._answer(call, name))
        self._calls[name] = task
        task.add_done_callback(lambda _: self._calls.pop(name, None))
        task.add_done_callback(lambda _: self._service.body_memory.give_back(size, self._tenant))

    async def _answer(self, call: Call, name: str | int) -> None:
        async for message in self._rpc.answer(call, name):
            await self._send(message)

    async def _send(self, message: bytes) -> None:
        await self._socket.send_text(message.decode())


def _request(fields: Any) -> ExtractRequest:
    return decode_request(_encode(fields))


def _run_key(key: Any) -> str:
    if not isinstance(key, str) or not is_run_key(key):
        raise Problem(422, "invalid", "idempotencyKey must be `sha256-` and 64 hex digits")
    return key


def _result_of(done: Done) -> bytes:
    return b'"result","result":%s}' % done.body(cache_hit=done.cache_hit)


async def _either(running: asyncio.Future[Done], written: Signal) -> None:
    """Wait until a run is written down, or has ended."""
    writing = asyncio.ensure_future(written.wait())
    try:
        either: set[asyncio.Future[Any]] = {running, writing}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        writing.cancel()


def _ignore(future: asyncio.Future[Done]) -> None:
    """The run tells its own story; nobody waits here any more."""
    if not future.cancelled():
        future.exception()


MEDIA_TYPE = "application/x-ndjson"


async def call(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    scope = asked.request.scope
    admission = asked.service.admissions.enter(scope, asked.caller)
    rpc = Rpc(asked.service, asked.caller, admission)
    try:
        calls = rpc.read(asked.body)
    except BaseException:
        admission.leave()
        raise

    async def lines() -> AsyncIterator[bytes]:
        scope["sameas.note"].leave()
        try:
            for number, one in enumerate(calls, 1):
                async for message in rpc.answer(one, f"call-{number}" if one.id is None else one.id):
                    yield message + b"\n"
        finally:
            admission.leave()

    return StreamingResponse(lines(), media_type=MEDIA_TYPE)


ROUTES = (
    Route(
        method="POST",
        path="/api/rpc",
        handle=call,
        name="rpc",
        tag="extraction",
        summary="Calls as on the WebSocket of this address; messages come back as lines of JSON.",
        body=Call,
        body_example={
            "tag": "extraction.streamExtract",
            "payload": {"text": examples.TEXT, "ontologyId": "company"},
            "id": "1",
        },
        replies={
            200: Reply(
                description="One message a line, the last of each call a result or an error.",
                media_types=(MEDIA_TYPE,),
                example='{"id":"1","tag":"extraction.streamExtract","type":"result","result":{}}\n',
            )
        },
        problems=(400, 413, 422, 429),
    ),
)
