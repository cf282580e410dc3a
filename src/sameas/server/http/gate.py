"""What stands before every route: bounds, the trace, one log line and the metrics of each request.

Rule: a request is refused before anything of it is read where its headers are too large, its host is not one of ours,
or too many are under way. An error that reaches this place becomes a problem, and never a bare 500. Where the process
has an OpenTelemetry provider, each request is a span.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sameas.identity.ids import format_traceparent
from sameas.server.bodies import ClientGone, Note
from sameas.server.logs import RequestLog
from sameas.server.metrics import ServiceMetrics
from sameas.server.problems import Problem, problem_of
from sameas.server.service import Service
from sameas.server.shares import overloaded

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

_NOTHING: AbstractContextManager[None] = nullcontext()


class Telemetry:
    """Makes spans. The provider is the process's own, as `opentelemetry-instrument` or the host program set it."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer: Tracer | None = None
        try:
            from opentelemetry import trace
        except ImportError:
            return
        chosen = provider or trace.get_tracer_provider()
        if not isinstance(chosen, trace.ProxyTracerProvider):
            self._tracer = chosen.get_tracer("sameas.server")

    @property
    def is_on(self) -> bool:
        return self._tracer is not None

    def span(self, scope: Scope, name: str) -> AbstractContextManager[None]:
        return _NOTHING if self._tracer is None else self._span(self._tracer, scope, name)

    @contextmanager
    def _span(self, tracer: Tracer, scope: Scope, name: str) -> Iterator[None]:
        from opentelemetry import trace
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        names = ("traceparent", "tracestate")
        carrier = {
            header.decode("latin-1"): value.decode("latin-1")
            for header, value in scope["headers"]
            if header.decode("latin-1") in names
        }
        parent = TraceContextTextMapPropagator().extract(carrier, context=Context())
        with tracer.start_as_current_span(name, context=parent, kind=trace.SpanKind.SERVER) as span:
            note = scope["sameas.note"]
            # The hop goes on from the span, so that log lines and answers name the trace that the span is in.
            own = format_traceparent(
                trace.format_trace_id(span.get_span_context().trace_id),
                trace.format_span_id(span.get_span_context().span_id),
                sampled=span.get_span_context().trace_flags.sampled,
            )
            headers = MutableHeaders(raw=[*scope["headers"]])
            headers["traceparent"] = own
            note.headers = scope["headers"] = headers.raw
            yield
            span.update_name(f"{name} {note.route}".strip())
            span.set_attribute("http.route", note.route)
            span.set_attribute("http.response.status_code", note.status)
            if note.key:
                span.set_attribute("sameas.key", note.key)
            span.set_attribute("sameas.invocation_id", note.hop.invocation_id)
            if note.caller is not None:
                span.set_attribute("sameas.tenant", note.caller.ctx.tenant_id)


EXTRACT = "/api/v1/extract"
MAX_HEADERS = 100
MAX_HEADER_BYTES = 32 * 1024

_LOG = logging.getLogger("sameas.server")
_POLICY = 1008
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
# Whoever asks how the service is must get an answer, most of all when it is overloaded.
_ALWAYS = frozenset({"/health/live", "/health/ready", "/metrics"})


class Gate:
    """The outermost ASGI application."""

    def __init__(
        self,
        routes: ASGIApp,
        extract: ASGIApp,
        service: Service,
        *,
        hosts: Sequence[str],
        origins: Sequence[str],
        log: RequestLog,
        metrics: ServiceMetrics,
        telemetry: Telemetry,
    ) -> None:
        self._routes = routes
        self._extract = extract
        self._service = service
        self._hosts = None if "*" in hosts else frozenset(host.encode() for host in hosts)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._log = log
        self._metrics = metrics
        self._telemetry = telemetry

    def gauges(self) -> dict[str, float]:
        return {"requests_under_way": self._service.requests.under_way}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._routes(scope, receive, send)
            return
        note = scope["sameas.note"] = Note(headers=scope["headers"])
        if scope["type"] == "websocket":
            try:
                self._check(scope, scope["path"])
            except Problem as problem:
                # Before it is accepted, closing answers the handshake with 403.
                await send({"type": "websocket.close", "code": _POLICY, "reason": problem.detail[:120]})
                return
            with self._telemetry.span(scope, "websocket"):
                await self._routes(scope, receive, send)
            return
        path, method = scope["path"], scope["method"]
        began = perf_counter()
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                note.status = message["status"]
                # Refusals, too: whoever asks why names it.
                message["headers"].append((b"x-trace-id", note.hop.trace_id.encode()))
            await send(message)

        place = note.place = self._service.requests.begin()
        try:
            self._check(scope, path)
            await self._service.web_sessions.admit(scope)
            is_extract = path == EXTRACT and method == "POST"
            if is_extract:
                note.route = EXTRACT
            with self._telemetry.span(scope, method):
                await (self._extract if is_extract else self._routes)(scope, receive, sending)
        except ClientGone:
            note.status = 499
        except asyncio.CancelledError:
            # The grace time is over: whoever still waits is told to come back, and finds the run where it is then.
            if started or not self._service.stopping:
                raise
            await self._refuse(_stopping(), note, sending, head_only=method == "HEAD")
        except Exception as error:
            if started:
                raise
            await self._refuse(error, note, sending, head_only=method == "HEAD")
        finally:
            place.leave()
            self._service.body_memory.give_back(note.body_memory, note.tenant)
            seconds = perf_counter() - began
            self._metrics.request(method, note, seconds)
            self._log.request(method, path, note, seconds)

    def _check(self, scope: Scope, path: str) -> None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
            raise Problem(431, "headers-too-large", f"send at most {MAX_HEADERS} headers and {MAX_HEADER_BYTES} bytes")
        if self._hosts is not None:
            hosts = [value for name, value in headers if name == b"host"]
            if any(_without_port(host) not in self._hosts for host in hosts):
                raise Problem(400, "host-unknown", "this service does not go by that name; it is at localhost")
        if scope["type"] == "websocket" or scope["method"] not in _HARMLESS:
            self._check_origin(headers)
        if path in _ALWAYS:
            return
        if self._service.stopping:
            raise _stopping()
        if self._service.requests.is_full:
            raise overloaded()

    def _check_origin(self, headers: list[tuple[bytes, bytes]]) -> None:
        """A page of somebody else's must not act for whoever looks at it: here nobody may need a credential."""
        origin = next((value for name, value in headers if name == b"origin"), None)
        if origin is None or origin in self._origins:
            return
        host = next((value for name, value in headers if name == b"host"), b"")
        if origin.partition(b"://")[2] != host:
            raise Problem(403, "origin-unknown", "pages of that origin may not change anything here")

    async def _refuse(self, error: Exception, note: Note, send: Send, *, head_only: bool) -> None:
        problem = problem_of(error)
        if problem.status == 500:
            _LOG.error("a request failed, trace %s", note.hop.trace_id, exc_info=error)
        await problem.answer(send, head_only=head_only)


def _stopping() -> Problem:
    return Problem(503, "stopping", "this server is being stopped; ask again", retry_after=1.0)


def _without_port(host: bytes) -> bytes:
    name, colon, port = host.rpartition(b":")
    return (name if colon and port.isdigit() else host).lower()
