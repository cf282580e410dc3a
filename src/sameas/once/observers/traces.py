"""A span per call, current while the work runs, and a link from every replay to the call that did the work.

The span's traceparent is stored with the record, so the link also holds between processes and days. Tenants, scopes
and the digests of records are attributes; keys, payloads, results and the messages of errors are not.
"""

from __future__ import annotations

from contextvars import Token
from traceback import format_tb

from msgspec import Struct
from opentelemetry import trace
from opentelemetry.context import Context, attach, create_key, detach, get_value, set_value
from opentelemetry.trace import Span, SpanContext, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sameas.identity.ids import format_traceparent
from sameas.once.observe import CallEnded, CallStarted, Claimed, Event, Recent, answered, original_trace
from sameas.once.record import Acquired, Replay

_W3C = TraceContextTextMapPropagator()


class _Original(Struct, frozen=True):
    """Who did the work under this fence; no context where that call was not traced, or has yet to start."""

    fence: int
    context: SpanContext | None


class _OpenCall:
    """A call under way."""

    __slots__ = ("linked", "span", "started", "token")

    def __init__(self, started: CallStarted, span: Span) -> None:
        self.started = started
        self.span = span
        self.token: Token[Context] | None = None
        self.linked = False

    @property
    def context(self) -> SpanContext | None:
        context = self.span.get_span_context()
        return context if context.is_valid else None

    def link(self, original: SpanContext) -> None:
        # A worker that was replaced is answered with its successor's record, and knows only its own claim.
        if self.linked or original == self.context or not self.span.is_recording():
            return
        self.span.add_link(original, {"sameas.link": "original"})
        self.linked = True


class TraceObserver:
    """Makes spans with `tracer`, or with that of the process's own provider.

    A call that shares the work of another in this process learns of it from memory, which holds the latest
    `remembered` keys.
    """

    def __init__(self, tracer: Tracer | None = None, *, remembered: int = 4_096) -> None:
        self._tracer = trace.get_tracer("sameas") if tracer is None else tracer
        # By the identity of the event, not by key: calls overlap, and a key may be asked for many times at once.
        self._open: dict[int, _OpenCall] = {}
        self._slot = create_key("sameas-call")
        self._originals: Recent[_Original] = Recent(remembered)

    def on(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._start(event)
            case Claimed():
                self._claimed(event)
            case CallEnded():
                self._end(event)
            case _:
                pass

    def _start(self, started: CallStarted) -> None:
        identity = started.identity
        attributes = {"sameas.scope": identity.scope, "sameas.record": identity.digest.hex()}
        if identity.tenant:
            attributes["sameas.tenant"] = identity.tenant
        span = self._tracer.start_span("sameas.call", attributes=attributes)
        call = _OpenCall(started, span)
        own = call.context
        if own is not None:
            started.audit["traceparent"] = format_traceparent(
                trace.format_trace_id(own.trace_id),
                trace.format_span_id(own.span_id),
                sampled=own.trace_flags.sampled,
            )
        self._open[id(started)] = call
        call.token = attach(set_value(self._slot, call, trace.set_span_in_context(span)))

    def _claimed(self, event: Claimed) -> None:
        digest = event.identity.digest
        call = get_value(self._slot)
        # The claims of a batch are answered before its calls start; those calls are linked at their end.
        own = call if isinstance(call, _OpenCall) and call.started.identity.digest == digest else None
        match event.claim:
            case Replay(record=record):
                original = _span_context(original_trace(event.claim))
                known = self._originals.get(digest)
                # A batch claims before its spans begin, so its records name none; the fence tells them for certain.
                if original is None and known is not None and known.fence == record.fence:
                    original = known.context
                if own is not None and original is not None:
                    own.link(original)
                self._originals.note(digest, _Original(record.fence, original))
            case Acquired(fence=fence):
                self._originals.note(digest, _Original(fence, None if own is None else own.context))
            case _:
                pass

    def _end(self, event: CallEnded) -> None:
        call = self._open.pop(id(event.started), None)
        if call is None:
            return
        try:
            self._describe(call, event)
        finally:
            # Ended from outside its own thread or task (a collected coroutine), there is nothing to detach here.
            if call.token is not None and get_value(self._slot) is call:
                detach(call.token)
            call.span.end()

    def _describe(self, call: _OpenCall, event: CallEnded) -> None:
        digest, span, answer = event.started.identity.digest, call.span, answered(event)
        span.set_attribute("sameas.how", answer.how)
        span.set_attribute("sameas.replay", answer.replay)
        if event.attempt:
            span.set_attribute("sameas.attempt", event.attempt)
        if event.waited:
            span.set_attribute("sameas.waited_seconds", event.waited)
        known = self._originals.get(digest)
        if known is not None and answer.replay and known.context is not None:
            call.link(known.context)
        if known is not None and answer.how == "fresh" and known.context is None:
            self._originals.note(digest, _Original(known.fence, call.context))
        if event.error is not None:
            _record(span, event.error)


def _record(span: Span, error: BaseException) -> None:
    """The error as OpenTelemetry has it, without its message. A cancelled call did not fail."""
    kind = _qualified(error)
    span.set_attribute("error.type", kind)
    if isinstance(error, Exception):
        where = "".join(format_tb(error.__traceback__))
        span.add_event("exception", {"exception.type": kind, "exception.stacktrace": where})
        span.set_status(Status(StatusCode.ERROR, kind))


def _qualified(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _span_context(traceparent: str | None) -> SpanContext | None:
    """What a stored traceparent stands for; None if it is malformed, since a store's content is not trusted."""
    if traceparent is None:
        return None
    # An empty context to begin with: the current span must not stand in for a traceparent that cannot be read.
    found = trace.get_current_span(_W3C.extract({"traceparent": traceparent}, context=Context()))
    context = found.get_span_context()
    return context if context.is_valid else None
