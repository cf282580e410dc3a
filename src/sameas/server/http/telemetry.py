"""A span for each request, where the process has an OpenTelemetry provider; nothing at all where it has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from starlette.types import Scope

from sameas.identity.ids import format_traceparent

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
            others = [pair for pair in scope["headers"] if pair[0] != b"traceparent"]
            note.headers = scope["headers"] = [*others, (b"traceparent", own.encode())]
            yield
            span.update_name(f"{name} {note.route}".strip())
            span.set_attribute("http.route", note.route)
            span.set_attribute("http.response.status_code", note.status)
            if note.key:
                span.set_attribute("sameas.key", note.key)
            span.set_attribute("sameas.invocation_id", note.hop.invocation_id)
            if note.caller is not None:
                span.set_attribute("sameas.tenant", note.caller.ctx.tenant_id)
