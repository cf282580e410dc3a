"""One request, from the reading of its body to its answer.

The handler runs in a task of its own, so that it finishes and its result is kept even where the client or the server's
task is gone. Its answer is complete with the last piece of the body, before background tasks; nothing of it is sent
before the record is accepted, except where the route chose `passthrough`. Then the last piece waits, and the stream is
cut off where another's result was accepted.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from sameas.identity.normalize import credentials, normalize_request
from sameas.identity.scope import AuditMeta, ScopeContext, ScopeError, current_scope
from sameas.once.call import ProcessingRecord
from sameas.once.errors import SameasError
from sameas.once.held import AsyncHeld
from sameas.web.capture import Disconnected, Message, Receive, Spool, TooLarge, read_body
from sameas.web.fingerprint import NotComparable, essence
from sameas.web.frameworks import host_of
from sameas.web.header import MalformedKey, parse_key
from sameas.web.problem import Problem, Send, problem_of
from sameas.web.response import EXPIRES, REPLAYED, TRUNCATED, Kept, http_date, with_length
from sameas.web.route import MAX_KEY, RoutePolicy
from sameas.web.table import Rule

if TYPE_CHECKING:
    from sameas.web.asgi import IdempotencyMiddleware

_LOG = logging.getLogger("sameas")

_UNSENDABLE: Final = re.compile(rb"[\r\n\0]").search
_FRESH: Final = (REPLAYED, b"false")
_REPLAYED: Final = (REPLAYED, b"true")
# What a server may offer beyond plain messages, and what goes past what is held here.
_PAST_US: Final = frozenset(
    {"http.response.pathsend", "http.response.zerocopysend", "http.response.push", "http.response.trailers"}
    | {"http.response.early_hint"}
)


class NotKept(Exception):
    """The answer is of a status that is not kept."""


class NotHttp(RuntimeError):
    """The application's answer is none that a server can send; it is not kept, for no replay of it could be sent."""


class CutOff(OSError):
    """The stream was cut off: its worker was replaced while it streamed."""


class Responder:
    """Owns the state of one request."""

    __slots__ = (
        "_body",
        "_gone",
        "_handled",
        "_headers",
        "_held",
        "_home",
        "_left",
        "_over",
        "_owner",
        "_policy",
        "_read",
        "_receive",
        "_recorded",
        "_rule",
        "_scope",
        "_send",
        "_settled",
        "_size",
        "_status",
    )

    def __init__(
        self, home: IdempotencyMiddleware, rule: Rule, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        self._home = home
        self._rule = rule
        self._policy: RoutePolicy = rule.policy
        self._scope = scope
        self._receive = receive
        self._send = send
        self._owner = ""
        self._body: Spool | None = None
        self._left: Iterator[bytes] | None = None
        self._read = False
        self._held: AsyncHeld | None = None
        self._handled: asyncio.Future[None] | None = None
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._recorded: Spool | None = None
        self._settled = False
        # Of the answer, all of it.
        self._size = 0
        # Nobody is there to send to.
        self._gone = False
        self._over: asyncio.Event | None = None

    async def respond(self, keys: tuple[bytes, ...]) -> None:
        """Answer the request."""
        token = None
        try:
            try:
                key = self._key(keys)
                ctx = None
                if self._home.authenticator is not None:
                    ctx = await self._authenticate(key)
                    token = current_scope.set(ctx)
                begun = await self._begin(key, ctx, self._rule.options, limit=self._policy.body_limit)
            except Problem as problem:
                await problem.answer(self._send, head_only=self._scope["method"] == "HEAD")
                return
            except Disconnected:
                return
            except OSError as error:
                _LOG.error("a request could not be held: %s", type(error).__name__)
                await self._tell(
                    Problem(503, "no-room", "The request cannot be held here; it was not run.", retry_after=5.0)
                )
                return
            if type(begun) is ProcessingRecord:
                await self._replay(begun)
            else:
                assert isinstance(begun, AsyncHeld)
                await self._run(begun)
        finally:
            if token is not None:
                current_scope.reset(token)
            if self._body is not None and self._left is None:
                self._body.close()

    def _key(self, values: tuple[bytes, ...]) -> str | None:
        """The client's key; None where the content is the key."""
        if self._policy.key == "content":
            return None
        if not values:
            raise Problem(400, "key-required", "This request needs the header Idempotency-Key.")
        try:
            key = parse_key(values)
        except MalformedKey as error:
            raise Problem(400, "key-malformed", str(error)) from None
        if len(key) > MAX_KEY or not self._policy.pattern.fullmatch(key):
            raise Problem(400, "key-malformed", f"Idempotency-Key must fit the pattern {self._policy.pattern.pattern}")
        return key

    async def _authenticate(self, key: str | None) -> ScopeContext:
        home, scope = self._home, self._scope
        assert home.authenticator is not None
        try:
            principal = await home.authenticator.authenticate(credentials(scope))
            routed = home.tenant_of(scope) if home.tenant_of is not None else None
            if routed is None and principal is None and home.any_tenant:
                routed = ""
            ctx = normalize_request(
                scope,
                principal=principal,
                public=self._policy.public and principal is None,
                routed_tenant=routed,
                allow_any_tenant=home.any_tenant,
            )
            # Whose key it is, as the first part of the stored one: what is left of the dot cannot be typed right of it.
            if self._policy.shared:
                self._owner = "tenant."
            else:
                self._owner = "public." if principal is None else f"{principal.digest}."
            return ctx.with_key(scope_name=self._rule.scope_name, key=key)
        except (ScopeError, SameasError) as error:
            raise problem_of(error) from error

    async def _begin(
        self, key: str | None, ctx: ScopeContext | None, options: dict[str, Any], *, limit: int
    ) -> ProcessingRecord | AsyncHeld:
        scope, policy = self._scope, self._policy
        tenant = "" if ctx is None else ctx.tenant_id
        content_type = encoding = declared = b""
        for name, value in scope["headers"]:
            if name == b"content-type":
                content_type = value
            elif name == b"content-length":
                declared = value
            elif name == b"content-encoding":
                encoding = value.strip().lower()
        try:
            self._body = body = await read_body(self._receive, limit=limit, declared=declared)
            if body.size > policy.body_limit:
                raise TooLarge(policy.body_limit)  # noqa: TRY301  where the limit of reading is another
            path = f"//{host_of(scope).lower()}{scope['path']}" if self._rule.host else scope["path"]
            line = (scope["method"], path, scope["query_string"], content_type)
            print_ = await self._home.fingerprints.of(
                line, b"" if encoding == b"identity" else encoding, body, policy, whose=(tenant, self._owner)
            )
        except TooLarge as error:
            raise Problem(413, "body-too-large", f"The body has more than {error.limit} bytes.") from None
        except NotComparable as error:
            raise Problem(400, "body-malformed", str(error)) from None
        audit: dict[str, Any] = {}
        if ctx is not None:
            audit = msgspec.to_builtins(AuditMeta.created_in(ctx))
        try:
            if key is None:
                # The fingerprint's digest of the whole is keyed with the secret, and as good a key as any.
                content = f"{self._owner}sha256-{print_.partition(' ')[0]}"
                return await self._home.engine.begin(
                    key=content, namespace="content", tenant=tenant, audit=audit, **options
                )
            return await self._home.engine.begin(
                key=self._owner + key, tenant=tenant, request_fingerprint=print_, audit=audit, **options
            )
        except SameasError as error:
            raise problem_of(error) from error

    async def _run(self, held: AsyncHeld) -> None:
        assert self._body is not None
        self._held = held
        self._left = self._body.chunks()
        loop = asyncio.get_running_loop()
        self._handled = loop.create_future()
        handling = loop.create_task(self._handle(held))
        self._home.running.add(handling)
        handling.add_done_callback(self._ended)
        try:
            # Not the task itself: it goes on where we are cancelled.
            await self._handled
        except asyncio.CancelledError:
            self._gone = True
            raise

    def _ended(self, handling: asyncio.Task[None]) -> None:
        self._home.running.discard(handling)
        handled = self._handled
        assert handled is not None
        if handling.cancelled():
            if not self._settled:
                # It never began, so nobody gave the claim back.
                giving_back = handling.get_loop().create_task(self._give_back())
                self._home.running.add(giving_back)
                giving_back.add_done_callback(self._home.running.discard)
            handled.cancel()
            return
        error = handling.exception()
        if handled.done():
            if error is not None:
                _LOG.error("a handler failed after its client had gone: %s", type(error).__name__)
        elif error is None:
            handled.set_result(None)
        else:
            handled.set_exception(error)

    async def _handle(self, held: AsyncHeld) -> None:
        """The handler's own task."""
        held.enter()
        body = self._body
        assert body is not None
        take = self._take if self._policy.delivery == "hold" else self._pass_on
        try:
            await self._home.app(self._plain_scope(), self._give, take)
            if not self._settled:
                self._settled = True
                await self._failed(held, RuntimeError("the application ended without an answer"))
        except BaseException as error:
            if self._settled:
                raise
            self._settled = True
            await self._failed(held, error)
        finally:
            body.close()
            if self._recorded is not None:
                self._recorded.close()

    async def _give_back(self) -> None:
        assert self._held is not None
        with suppress(asyncio.CancelledError):
            await self._held.give_back(asyncio.CancelledError())

    async def _failed(self, held: AsyncHeld, error: BaseException) -> None:
        record = await held.give_back(error)
        # Another was faster, and its result was accepted: that is the answer.
        if self._status and self._policy.delivery == "passthrough":
            raise CutOff(str(CutOff.__doc__)) from error
        _LOG.warning("a handler that had been replaced failed: %s", type(error).__name__)
        await self._replay(record)

    def _plain_scope(self) -> dict[str, Any]:
        """What the handler sees: nothing that would let an answer go past us."""
        offered = self._scope.get("extensions")
        if not offered or _PAST_US.isdisjoint(offered):
            return self._scope
        plain = {name: value for name, value in offered.items() if name not in _PAST_US}
        return {**self._scope, "extensions": plain}

    async def _give(self) -> Message:
        """The body, once; then nothing until the answer is out."""
        if not self._read:
            assert self._left is not None
            assert self._body is not None
            if not self._body.on_disk:
                self._read = True
                return {"type": "http.request", "body": self._body.view(), "more_body": False}
            chunk = next(self._left, b"")
            self._read = not chunk
            return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}
        if self._over is None:
            self._over = asyncio.Event()
            if self._settled:
                self._over.set()
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _take(self, message: Message) -> None:
        """A message of the handler, held until the answer is complete."""
        kind = message["type"]
        if kind == "http.response.body":
            if self._settled:
                return
            recorded = self._recorded
            if not self._status:
                raise NotHttp("its body began before its status")
            if recorded is None:
                recorded = self._recorded = Spool()
            recorded.write(message.get("body", b""))
            if not message.get("more_body"):
                await self._settle()
        elif kind == "http.response.start":
            if self._settled:
                return
            self._status, self._headers = _opened(message)
        elif not self._gone:
            await self._send(message)

    async def _settle(self) -> None:
        """The answer is complete: keep it or give the claim back, then send what was accepted."""
        held, recorded = self._held, self._recorded
        assert held is not None
        assert recorded is not None
        self._settled = True
        try:
            if not self._policy.keeps(self._status):
                record = await held.give_back(NotKept())
            else:
                self._size = recorded.size
                record = await held.finish(self._kept(recorded))
        except NotKept:
            await self._send_own(recorded, ())
        except SameasError as error:
            await self._tell(problem_of(error))
        else:
            if record.was_replay:
                await self._replay(record)
            else:
                expires = ((EXPIRES, http_date(record.expires_at // 1_000_000)),) if record.stored else ()
                await self._send_own(recorded, expires)
        finally:
            if self._over is not None:
                self._over.set()

    async def _pass_on(self, message: Message) -> None:
        """A message of the handler, sent on while it is recorded; the last one waits for the record."""
        kind = message["type"]
        held = self._held
        assert held is not None
        if kind == "http.response.start":
            self._status, self._headers = _opened(message)
            self._recorded = Spool()
            await self._out({**message, "headers": [*self._headers, _FRESH]})
        elif kind == "http.response.body":
            if self._settled:
                return
            if held.context.lost:
                raise CutOff(CutOff.__doc__)
            if self._recorded is None:
                raise NotHttp("its body began before its status")
            self._record(message.get("body", b""))
            if message.get("more_body"):
                await self._out(message)
                return
            self._settled = True
            try:
                if self._policy.keeps(self._status):
                    record = await held.finish(self._kept(self._recorded))
                else:
                    record = await held.give_back(NotKept())
                if record.was_replay:
                    raise CutOff(CutOff.__doc__)
            except NotKept:
                pass
            except SameasError as error:
                raise CutOff(type(error).__name__) from error
            await self._out(message)
            if self._over is not None:
                self._over.set()
        else:
            await self._out(message)

    def _record(self, body: bytes) -> None:
        """Remember a piece that was sent on, as far as it may be kept."""
        assert self._recorded is not None
        self._size += len(body)
        if self._recorded.size <= self._policy.keep_limit:
            self._recorded.write(body)

    def _kept(self, recorded: Spool) -> Kept:
        policy = self._policy
        headers = [pair for pair in self._headers if pair[0] in policy.kept_names]
        if recorded.size <= policy.keep_limit:
            return Kept(self._status, headers, bytes(recorded.view()), recorded.size)
        encoded = any(name == b"content-encoding" for name, _ in headers)
        if policy.over_limit == "truncate" and not encoded:
            _LOG.warning(
                "an answer of %s has %d bytes; %d of them are kept",
                self._rule.scope_name,
                self._size,
                policy.keep_limit,
            )
            return Kept(self._status, headers, recorded.start(policy.keep_limit), self._size, "start")
        return Kept(self._status, headers, b"", self._size, "nothing")

    async def _send_own(self, recorded: Spool, more: tuple[tuple[bytes, bytes], ...]) -> None:
        """The first answer: all of its headers, and ours."""
        headers = [*self._headers, _FRESH, *more]
        if self._policy.replayed_in_body and not recorded.on_disk:
            body = _with_member(self._headers, bytes(recorded.view()), b"false")
            if len(body) != recorded.size:
                recorded = Spool(body)
                headers = [
                    (name, b"%d" % len(body)) if name == b"content-length" else (name, value) for name, value in headers
                ]
        if self._gone:
            return
        try:
            await self._send({"type": "http.response.start", "status": self._status, "headers": headers})
            if recorded.on_disk:
                for chunk in recorded.chunks():
                    await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            await self._send({"type": "http.response.body", "body": b"" if recorded.on_disk else recorded.view()})
        except OSError:
            self._gone = True

    async def _replay(self, record: ProcessingRecord) -> None:
        kept: Kept = record.result
        if kept.part == "nothing":
            await self._tell(
                Problem(
                    409,
                    "answer-not-kept",
                    f"This request was run and answered with status {kept.status}; its answer of {kept.size} bytes "
                    "was too large to keep. It is not run again.",
                    original_status=kept.status,
                    original_size=kept.size,
                )
            )
            return
        body = kept.body
        if self._policy.replayed_in_body and kept.part == "whole":
            body = _with_member(kept.headers, body, b"true")
        headers = with_length(kept, body) if self._scope["method"] != "HEAD" else list(kept.headers)
        headers.append(_REPLAYED)
        if record.stored:
            headers.append((EXPIRES, http_date(record.expires_at // 1_000_000)))
        if kept.part == "start":
            headers.append((TRUNCATED, b"%d" % kept.size))
        await self._out({"type": "http.response.start", "status": kept.status, "headers": headers})
        await self._out({"type": "http.response.body", "body": body})

    async def _tell(self, problem: Problem) -> None:
        if not self._gone:
            try:
                await problem.answer(self._send, head_only=self._scope["method"] == "HEAD")
            except OSError:
                self._gone = True

    async def _out(self, message: Message) -> None:
        """To the client, if it is still there: what was done is kept either way."""
        if self._gone:
            return
        try:
            await self._send(message)
        except OSError:
            self._gone = True


def _opened(message: Message) -> tuple[int, list[tuple[bytes, bytes]]]:
    """The status and the headers that an answer opens with, names in lower case."""
    status = message["status"]
    if not 200 <= status <= 599:
        raise NotHttp(f"its status is {status}")
    headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
    if _UNSENDABLE(b"".join([part for pair in headers for part in pair])):
        raise NotHttp("a header of it has a line break or a NUL")
    return status, headers


def _with_member(headers: Any, body: bytes, value: bytes) -> bytes:
    """A JSON object with the member `idempotency_replayed`; anything else as it is."""
    kind = encoding = b""
    for name, text in headers:
        if name == b"content-type":
            kind = essence(text)
        elif name == b"content-encoding":
            encoding = text
    start, end = body.lstrip(), body.rstrip()
    is_object = start.startswith(b"{") and end.endswith(b"}") and b'"idempotency_replayed"' not in body
    if encoding or not is_object or not (kind == b"application/json" or kind.endswith(b"+json")):
        return body
    comma = b"" if not end[:-1].rstrip()[1:].strip() and start[1:].lstrip().startswith(b"}") else b","
    return end[:-1] + comma + b'"idempotency_replayed":' + value + b"}"
