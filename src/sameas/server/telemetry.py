"""A span for each request, where the process has an OpenTelemetry provider; nothing at all where it has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from starlette.types import Scope

_NOTHING: AbstractContextManager[None] = nullcontext()


class Telemetry:
    """Makes spans. The provider is the process's own, as `opentelemetry-instrument` or the host program set it."""

    def __init__(self) -> None:
        self._is_on = False
        try:
            from opentelemetry import trace
        except ImportError:
            return
        self._is_on = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    @property
    def is_on(self) -> bool:
        return self._is_on

    def span(self, scope: Scope, name: str) -> AbstractContextManager[None]:
        return self._span(scope, name) if self._is_on else _NOTHING

    @contextmanager
    def _span(self, scope: Scope, name: str) -> Iterator[None]:
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
        tracer = trace.get_tracer("sameas.server")
        with tracer.start_as_current_span(name, context=parent, kind=trace.SpanKind.SERVER) as span:
            yield
            note = scope["sameas.note"]
            span.update_name(f"{name} {note.route}".strip())
            span.set_attribute("http.route", note.route)
            span.set_attribute("http.response.status_code", note.status)
            if note.key:
                span.set_attribute("sameas.key", note.key)
            if note.visitor is not None:
                span.set_attribute("sameas.tenant", note.visitor.ctx.tenant_id)
                span.set_attribute("sameas.invocation_id", note.visitor.ctx.invocation_id)
