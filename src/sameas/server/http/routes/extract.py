"""`POST /api/v1/extract`: a text in, its graph out; the same work a second time is a replay.

Rule: a request whose very bytes were answered before is answered from memory, without decoding it; every other goes
through the once engine. The client's `Idempotency-Key` is honoured on top of the content's own key: the same key with
another request is refused, with the same request it gives the first answer again, byte for byte. A client is told that
its run was accepted once the run is on the disk or in the store, and not before. A plain ASGI function, because this is
the path that is taken a thousand times a second.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

from sameas.cluster.broker import Priority
from sameas.extraction.runs.record import SCOPE
from sameas.identity.normalize import idempotency_key_header
from sameas.once.errors import KeyReused, SameasError
from sameas.once.record import State
from sameas.once.rollout import Mode
from sameas.server.bodies import Note, read_body
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route
from sameas.server.logs import ExtractionLog, asked_for
from sameas.server.problems import Problem
from sameas.server.runs.answers import CLIENT_SCOPE, Done, KeptAnswer, computed_at_of, replayed, run_tag
from sameas.server.runs.preparation import Prepared
from sameas.server.schemas import NO_PARAMS, ExtractAnswer, ExtractRequest, RunAccepted, SentRequest
from sameas.server.service import Service
from sameas.server.tenants.access import Caller
from sameas.server.tenants.workspaces import tenant_of
from sameas.web.header import parse_key
from sameas.web.route import MAX_KEY

_LOG = logging.getLogger("sameas.server")
# Where keys are noted that are not in force yet.
_SHADOW_SCOPE = "extract.shadow"
_WAIT = re.compile(r"\bwait\s*=\s*\"?(\d{1,6})\b")
# Seconds between two looks at whether the run that somebody else began under the same client's key is written down.
_LOOK_EVERY = 0.5
# Bytes of an answer that are gone through in a millisecond; longer ones keep nobody waiting.
_AT_ONCE = 100_000

_decoder = msgspec.json.Decoder(SentRequest)
_encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")


class _NotKept(Exception):
    """A result that the client's key must not stand for: it is not complete."""

    def __init__(self, done: Done) -> None:
        self.done = done
        super().__init__(done.status)


class Signal:
    """An event of the serving loop that the background loop may set."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()


class Extract:
    """The endpoint."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service
        note: Note = scope["sameas.note"]
        caller = await service.enter(scope)
        body = await read_body(scope, receive, at_most=service.settings.max_body, body_memory=service.body_memory)
        began = perf_counter()
        prefers = _header(scope, b"prefer")
        keys = idempotency_key_header(scope)
        own, mode = self._own_key(caller, keys)
        if mode != "enforce":
            keys = ()
        if not keys:
            digest = hashlib.sha256(body).digest()
            kept = None if mode == "shadow" else await self._kept(caller, digest)
            if kept is not None:
                note.key, note.hit = kept.key, True
                log = ExtractionLog(caller.space, kept.key, caller.audit)
                log.requested(kept.asked_for)
                log.hit("result-cache", kept.computed_at)
                service.observe(replayed(caller.space, kept.key, perf_counter() - began))
                await _send(send, kept.body, [_replayed(True)])
                return
        else:
            digest = b""
        request = decode_request(body)
        note.about = {"ontologyId": request.ontology_id, "textLength": len(request.text)}
        if keys:
            await self._under_key(caller, request, parse_key(keys), prefers, send, note)
        else:
            await self._extract(caller, request, digest, prefers, send, note)
            if mode == "shadow":
                await self._shadow(caller, request, own, note)

    def _own_key(self, caller: Caller, keys: tuple[bytes, ...]) -> tuple[str, Mode]:
        """The client's key, if there is one, and whether it is in force."""
        if not keys or self._service.rollout.is_whole:
            return "", "enforce"
        key = parse_key(keys)
        return key, self._service.rollout.mode_of(tenant_of(caller.space), CLIENT_SCOPE, key)

    async def _shadow(self, caller: Caller, request: ExtractRequest, key: str, note: Note) -> None:
        """After the answer: note the key, and say what it would have done to this request."""
        log = ExtractionLog(caller.space, note.key, caller.audit)
        try:
            record = await self._service.do(
                self._service.engine.record(
                    lambda _: note.key,
                    scope=_SHADOW_SCOPE,
                    key=f"{caller.principal.digest}:{key}",
                    payload=msgspec.to_builtins(request),
                    tenant=caller.space,
                    lease=self._service.settings.lease,
                    retention=self._service.settings.key_ttl,
                    audit=caller.audit,
                )
            )
        except KeyReused:
            log.shadowed("refused")
        except SameasError as trouble:
            # The client has its answer.
            _LOG.warning("shadow: a key could not be looked at: %s", type(trouble).__name__)
        else:
            if record.was_replay:
                log.shadowed("replayed", is_same=record.answer() == note.key)

    async def _kept(self, caller: Caller, digest: bytes) -> KeptAnswer | None:
        """An answer to these very bytes that still stands."""
        service, answers = self._service, self._service.answers
        kept = answers.get(caller.space, digest)
        if kept is None:
            return None
        tenant = tenant_of(caller.space)
        if service.rollout.mode_of(tenant, SCOPE, kept.key) != "enforce":
            return None
        found = service.ontologies.known(tenant, kept.ontology_id)
        if found is None or found.entry.version != kept.version:
            answers.forget(caller.space, digest)
            return None
        if answers.is_fresh(kept):
            return kept
        drops = answers.drops
        record = await service.do(service.runner.record(caller.space, kept.key))
        if record is None or record.state is not State.DONE or record.fence != kept.fence or answers.drops != drops:
            answers.forget(caller.space, digest)
            return None
        answers.renew(kept)
        return kept

    async def _extract(
        self, caller: Caller, request: ExtractRequest, digest: bytes, prefers: str, send: Send, note: Note
    ) -> None:
        service, answers = self._service, self._service.answers
        drops, asked = answers.drops, answers.time()
        prepared = await service.do(service.runner.prepare(caller.space, request))
        note.key = prepared.key.key
        done = await self._wait(caller, prepared, prefers)
        if done is None:
            await self._accepted(prepared, send)
            return
        note.hit = done.cache_hit
        done = await wanted(done, request)
        await _send(send, done.body(cache_hit=done.cache_hit), [_replayed(done.cache_hit), *_applied(prefers)])
        if done.status == "complete":
            try:
                record = await service.do(service.runner.record(caller.space, done.key))
            except SameasError:
                # The client has its answer; the next one asks the store again.
                return
            if record is not None and record.state is State.DONE:
                kept = KeptAnswer(
                    done.key,
                    done.body(cache_hit=True),
                    request.ontology_id,
                    prepared.found.entry.version,
                    record.fence,
                    asked,
                    done.computed_at,
                    asked_for(request, prepared.key.components.ontology_id),
                )
                answers.keep(caller.space, digest, kept, drops=drops)

    async def _wait(self, caller: Caller, prepared: Prepared, prefers: str) -> Done | None:
        """The result; None where the client does not want to wait, or not any longer."""
        runner = self._service.runner
        if "respond-async" in prefers and _WAIT.search(prefers) is None and runner.can_submit(prepared):
            return await self._service.do(runner.submit(prepared, caller.audit, priority=_priority(prefers)))
        accepted = Signal()
        extracting = self._service.runner.extract(
            prepared, caller.audit, accepted=accepted.set, priority=_priority(prefers)
        )
        running = asyncio.ensure_future(self._service.do(extracting))
        return await running if await self._is_here(running, accepted, prepared, prefers) else None

    async def _is_here(self, running: asyncio.Future[Any], accepted: Signal, prepared: Prepared, prefers: str) -> bool:
        """Whether the result is to be waited for; where it is not, the run is written down and goes on alone."""
        wait = _WAIT.search(prefers)
        if "respond-async" not in prefers and wait is None:
            return True
        loop, service = asyncio.get_running_loop(), self._service
        ends_at = loop.time() + (0.0 if wait is None else float(wait[1]))
        running.add_done_callback(_ignore)
        writing = asyncio.ensure_future(accepted.wait())
        try:
            while True:
                await asyncio.wait({running, writing}, timeout=_LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
                if running.done() or writing.done():
                    break
                # Somebody else is at the client's key, here or elsewhere.
                if await service.do(service.runner.is_accepted(prepared.space, prepared.key.key)):
                    break
        finally:
            writing.cancel()
        if wait is None and not running.done():
            record = await service.do(service.runner.record(prepared.space, prepared.key.key))
            if record is not None and record.state is State.DONE:
                ends_at = loop.time() + float(service.settings.lease)
        if not running.done():
            await asyncio.wait({running}, timeout=max(0.0, ends_at - loop.time()))
        return running.done()

    async def _accepted(self, prepared: Prepared, send: Send) -> None:
        key = prepared.key.key
        address = f"/api/v1/runs/{key}"
        answer = RunAccepted(idempotency_key=key, status="running", run=address, events=f"{address}/events")
        headers = [
            (b"location", address.encode()),
            (b"preference-applied", b"respond-async"),
            # No answer was given before; source document 004 has every answer say so.
            _replayed(False),
        ]
        await _send(send, _encode(answer), headers, status=202)

    async def _under_key(
        self, caller: Caller, request: ExtractRequest, key: str, prefers: str, send: Send, note: Note
    ) -> None:
        """The first answer to a client's key, again and again."""
        service = self._service
        if not key or len(key) > MAX_KEY:
            raise Problem(400, "key-malformed", f"Idempotency-Key must have 1 to {MAX_KEY} characters")
        prepared = await service.do(service.runner.prepare(caller.space, request))
        note.key = prepared.key.key
        accepted = Signal()
        running = asyncio.ensure_future(
            service.do(self._once(caller, request, key, prepared, accepted.set, _priority(prefers)))
        )
        if not await self._is_here(running, accepted, prepared, prefers):
            await self._accepted(prepared, send)
            return
        try:
            body, replayed = await running
        except _NotKept as partial:
            body, replayed = (await wanted(partial.done, request)).body(cache_hit=partial.done.cache_hit), False
        note.hit = replayed
        await _send(send, body, [_replayed(replayed), *_applied(prefers)])

    async def _once(
        self,
        caller: Caller,
        request: ExtractRequest,
        key: str,
        prepared: Prepared,
        accepted: Callable[[], object],
        priority: Priority,
    ) -> tuple[bytes, bool]:
        # Another principal's key is another key, whatever its characters.
        own, runner = f"{caller.principal.digest}:{key}", self._service.runner
        log = ExtractionLog.of(prepared, caller.audit)

        async def work(_: object) -> bytes:
            # Here, and not before: a key whose answer stands is answered in one round trip.
            await self._service.client_keys.check(caller.space, own)
            done = await runner.extract(prepared, caller.audit, accepted=accepted, priority=priority, log=log)
            if done.status != "complete":
                raise _NotKept(done)
            return (await wanted(done, request)).body(cache_hit=done.cache_hit)

        record = await self._service.engine.record(
            work,
            scope=CLIENT_SCOPE,
            key=own,
            tags=(run_tag(prepared.key.key),),
            payload=msgspec.to_builtins(request),
            tenant=caller.space,
            lease=self._service.settings.lease,
            retention=self._service.settings.key_ttl,
            route="/api/v1/extract",
            method="POST",
            audit=caller.audit,
        )
        body = record.answer()
        if record.was_replay:
            # The run was not asked, and has said nothing.
            if record.waited:
                log.deduplicated(record.waited)
                await runner.note_shared(prepared, caller.audit, record.waited)
            source = "execution-cache" if record.waited else "result-cache"
            log.hit(source, computed_at_of(body))
        return body, record.was_replay


def decode_request(body: bytes) -> ExtractRequest:
    """The request of a body; refused where its text has no canonical form or it contradicts itself."""
    sent = _decoder.decode(body)
    if not sent.text.strip():
        raise Problem(422, "text-empty", "the text has nothing but blanks; send some words")
    for params in filter(None, (sent.extraction_params, sent.params)):
        if params.temp is not None and params.temperature not in (None, params.temp):
            raise _contradict("temp", "temperature")
        if params.model is not None and params.llm_model not in (None, params.model):
            raise _contradict("model", "llmModel")
    if sent.params is not None and sent.extraction_params not in (NO_PARAMS, sent.params):
        raise _contradict("params", "extractionParams")
    return sent.in_one_form()


def _contradict(one: str, other: str) -> Problem:
    return Problem(422, "params-contradict", f"{one} and {other} are two words for one thing; give one of them")


def _header(scope: Scope, name: bytes) -> str:
    return ",".join(value.decode("latin-1").lower() for header, value in scope["headers"] if header == name)


async def wanted(done: Done, request: ExtractRequest) -> Done:
    """The answer as the request wants it."""
    if request.extraction_params.include_confidence is not False:
        return done
    if len(done.head) <= _AT_ONCE:
        return done.without_confidence()
    return await asyncio.to_thread(done.without_confidence)


def _priority(prefers: str) -> Priority:
    """Who waits comes before who does not."""
    return "batch" if "respond-async" in prefers and _WAIT.search(prefers) is None else "interactive"


def _replayed(was_replay: bool) -> tuple[bytes, bytes]:
    return (b"x-idempotency-replayed", b"true" if was_replay else b"false")


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
                schema={"type": "string", "maxLength": MAX_KEY},
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
        body=SentRequest,
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
                headers=("Location", "X-Idempotency-Replayed", "Preference-Applied"),
            ),
        },
        problems=(400, 404, 409, 410, 413, 422, 424, 429),
    ),
)
