"""`POST /api/v1/extract`: a text in, its graph out; the same work a second time is a replay.

Rule: a request whose very bytes were answered before is answered from memory, without decoding it; every other goes
through the once engine. The client's `Idempotency-Key` is honoured on top of the content's own key: the same key with
another request is refused, with the same request it gives the first answer again, byte for byte. A plain ASGI
function, because this is the path that is taken a thousand times a second.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from sameas.identity.normalize import idempotency_key_header
from sameas.once.errors import SameasError
from sameas.once.record import State
from sameas.server import examples
from sameas.server.answers import Done, Kept
from sameas.server.bodies import read_body
from sameas.server.door import Visitor
from sameas.server.notes import Note
from sameas.server.problems import Problem
from sameas.server.route import Asked, Parameter, Reply, Route
from sameas.server.runner import Prepared, replayed
from sameas.server.service import Service
from sameas.server.spaces import tenant_of
from sameas.server.wire import ExtractAnswer, ExtractRequest, RunAccepted
from sameas.web.header import parse_key

CLIENT_SCOPE = "extract"
_WAIT = re.compile(r"\bwait\s*=\s*\"?(\d{1,6})\b")
_LONGEST_KEY = 255
# Seconds within which a store answers a claim, or the client is told that its run was accepted.
_CLAIMED_WITHIN = 2.0

_decoder = msgspec.json.Decoder(ExtractRequest)
_encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")


class _NotKept(Exception):
    """A result that the client's key must not stand for: it is not complete."""

    def __init__(self, done: Done) -> None:
        self.done = done
        super().__init__(done.status)


class Extract:
    """The endpoint."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service
        note: Note = scope["sameas.note"]
        visitor = note.visitor = await service.door.enter(scope)
        body = await read_body(scope, receive, at_most=service.settings.max_body)
        began = perf_counter()
        prefers = _header(scope, b"prefer")
        keys = idempotency_key_header(scope)
        if not keys:
            kept = await self._kept(visitor, digest := hashlib.sha256(body).digest())
            if kept is not None:
                note.key, note.hit = kept.key, True
                service.observe(replayed(visitor.space, kept.key, perf_counter() - began))
                await _send(send, kept.body)
                return
        else:
            digest = b""
        request = decode_request(body)
        note.about = {"ontologyId": request.ontology_id, "textLength": len(request.text)}
        if keys:
            await self._under_key(visitor, request, parse_key(keys), prefers, send, note)
        else:
            await self._extract(visitor, request, digest, prefers, send, note)

    async def _kept(self, visitor: Visitor, digest: bytes) -> Kept | None:
        """An answer to these very bytes that still stands."""
        service, answers = self._service, self._service.answers
        kept = answers.get(visitor.space, digest)
        if kept is None:
            return None
        found = service.ontologies.known(tenant_of(visitor.space), kept.ontology_id)
        if found is None or found.entry.version != kept.version:
            answers.forget(visitor.space, digest)
            return None
        if answers.is_fresh(kept):
            return kept
        drops = answers.drops
        record = await service.do(service.runner.record(visitor.space, kept.key))
        if record is None or record.state is not State.DONE or record.fence != kept.fence or answers.drops != drops:
            answers.forget(visitor.space, digest)
            return None
        answers.renew(kept)
        return kept

    async def _extract(
        self, visitor: Visitor, request: ExtractRequest, digest: bytes, prefers: str, send: Send, note: Note
    ) -> None:
        service, answers = self._service, self._service.answers
        drops, asked = answers.drops, answers.time()
        prepared = await service.do(service.runner.prepare(visitor.space, request))
        note.key = prepared.key.key
        done = await self._wait(visitor, prepared, prefers)
        if done is None:
            await self._accepted(prepared, send)
            return
        note.hit = done.cache_hit
        await _send(send, done.body(cache_hit=done.cache_hit), _applied(prefers))
        if done.status == "complete":
            try:
                record = await service.do(service.runner.record(visitor.space, done.key))
            except SameasError:
                # The client has its answer; the next one asks the store again.
                return
            if record is not None and record.state is State.DONE:
                kept = Kept(
                    done.key,
                    done.body(cache_hit=True),
                    request.ontology_id,
                    prepared.found.entry.version,
                    record.fence,
                    asked,
                )
                answers.keep(visitor.space, digest, kept, drops=drops)

    async def _wait(self, visitor: Visitor, prepared: Prepared, prefers: str) -> Done | None:
        """The result; None where the client does not want to wait, or not any longer."""
        service = self._service
        running = asyncio.ensure_future(service.do(service.runner.extract(prepared, visitor.audit)))
        wait = _WAIT.search(prefers)
        if "respond-async" not in prefers and wait is None:
            return await running
        if wait is None:
            record = await service.do(service.runner.record(visitor.space, prepared.key.key))
            is_done = record is not None and record.state is State.DONE
            seconds = float(service.settings.lease) if is_done else 0.0
        else:
            seconds = float(wait[1])
        done, _ = await asyncio.wait({running}, timeout=seconds)
        if done:
            return await running
        running.add_done_callback(_ignore)
        return None

    async def _accepted(self, prepared: Prepared, send: Send) -> None:
        key = prepared.key.key
        address = f"/api/v1/runs/{key}"
        answer = RunAccepted(idempotency_key=key, status="running", run=address, events=f"{address}/events")
        headers = [(b"location", address.encode()), (b"preference-applied", b"respond-async")]
        await _send(send, _encode(answer), headers, status=202)

    async def _under_key(
        self, visitor: Visitor, request: ExtractRequest, key: str, prefers: str, send: Send, note: Note
    ) -> None:
        """The first answer to a client's key, again and again."""
        service = self._service
        if not key or len(key) > _LONGEST_KEY:
            raise Problem(400, "key-malformed", f"Idempotency-Key must have 1 to {_LONGEST_KEY} characters")
        prepared = await service.do(service.runner.prepare(visitor.space, request))
        note.key = prepared.key.key
        began = asyncio.Event()
        loop = asyncio.get_running_loop()
        running = asyncio.ensure_future(
            service.do(self._once(visitor, request, key, prepared, lambda: loop.call_soon_threadsafe(began.set)))
        )
        if "respond-async" in prefers:
            starting = asyncio.ensure_future(began.wait())
            # A key that stands for another request is refused at once; anything else has begun, or waits for its turn.
            await asyncio.wait({running, starting}, timeout=_CLAIMED_WITHIN, return_when=asyncio.FIRST_COMPLETED)
            starting.cancel()
            if not running.done():
                running.add_done_callback(_ignore)
                await self._accepted(prepared, send)
                return
        try:
            body, replayed = await running
        except _NotKept as partial:
            body, replayed = partial.done.body(cache_hit=partial.done.cache_hit), False
        note.hit = replayed
        await _send(send, body, [(b"x-idempotency-replayed", b"true" if replayed else b"false")])

    async def _once(
        self, visitor: Visitor, request: ExtractRequest, key: str, prepared: Prepared, began: Callable[[], object]
    ) -> tuple[bytes, bool]:
        async def work(_: object) -> bytes:
            began()
            done = await self._service.runner.extract(prepared, visitor.audit)
            if done.status != "complete":
                raise _NotKept(done)
            return done.body(cache_hit=done.cache_hit)

        record = await self._service.engine.record(
            work,
            scope=CLIENT_SCOPE,
            # Another principal's key is another key, whatever its characters.
            key=f"{visitor.principal.digest}:{key}",
            payload=msgspec.to_builtins(request),
            tenant=visitor.space,
            route="/api/v1/extract",
            method="POST",
            audit=visitor.audit,
        )
        return record.result, record.was_replay


def decode_request(body: bytes) -> ExtractRequest:
    """The request of a body; refused where its text has no canonical form."""
    request = _decoder.decode(body)
    if not request.text.strip():
        raise Problem(422, "text-empty", "the text has nothing but blanks; send some words")
    return request


def _header(scope: Scope, name: bytes) -> str:
    return ",".join(value.decode("latin-1").lower() for header, value in scope["headers"] if header == name)


def _applied(prefers: str) -> list[tuple[bytes, bytes]]:
    wait = _WAIT.search(prefers)
    return [] if wait is None else [(b"preference-applied", f"wait={wait[1]}".encode())]


def _ignore(future: asyncio.Future[Any]) -> None:
    """The run tells its own story; nobody waits here any more."""
    if not future.cancelled():
        future.exception()


async def _send(
    send: Send, body: bytes, headers: list[tuple[bytes, bytes]] | None = None, *, status: int = 200
) -> None:
    sent: list[tuple[bytes, bytes]] = [_JSON, (b"content-length", b"%d" % len(body)), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def _by_the_gate(asked: Asked) -> Any:
    """Stands in the table of routes; the gate sends these requests to `Extract` itself."""
    return Extract(asked.service)


ROUTES = (
    Route(
        method="POST",
        path="/api/v1/extract",
        handle=_by_the_gate,
        name="extract",
        tag="extraction",
        summary="Extract a graph from a text; the same work a second time is a replay.",
        parameters=(
            Parameter(
                name="Idempotency-Key",
                place="header",
                description="A structured-field string or a bare token: the first answer to it is given again for 24 "
                "hours, with `X-Idempotency-Replayed: true`. Scope `extract`, for each tenant and principal.",
                schema={"type": "string", "maxLength": _LONGEST_KEY},
                example='"report-2026-01"',
            ),
            Parameter(
                name="Prefer",
                place="header",
                description="`respond-async` answers 202 at once, `wait=10` after ten seconds, unless the result is "
                "there by then (RFC 7240).",
                example="respond-async",
            ),
        ),
        body=ExtractRequest,
        body_example=examples.REQUEST,
        replies={
            200: Reply(
                description="The graph.",
                schema=ExtractAnswer,
                example=examples.ANSWER,
                headers=("X-Idempotency-Replayed", "Preference-Applied"),
            ),
            202: Reply(
                description="The run goes on without the caller.",
                schema=RunAccepted,
                example=examples.ACCEPTED,
                headers=("Location", "Preference-Applied"),
            ),
        },
        problems=(400, 404, 409, 413, 422),
    ),
)
