"""A request is a span of its caller's trace, with the ids that lead to its log line."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from sameas.server.bodies import Note
from sameas.server.http.gate import Telemetry

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Telemetry(provider)


def test_a_request_is_a_span_of_its_caller_s_trace(telemetry, exporter):
    scope = {
        "headers": [(b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())],
        "sameas.note": Note(route="/api/v1/extract", key="sha256-1", status=200),
    }
    with telemetry.span(scope, "POST"):
        pass
    (span,) = exporter.get_finished_spans()
    assert (span.name, f"{span.context.trace_id:032x}") == ("POST /api/v1/extract", TRACE)
    assert span.attributes["sameas.key"] == "sha256-1"
    assert span.attributes["http.response.status_code"] == 200


def test_log_lines_name_the_trace_of_the_span_where_no_trace_was_sent(telemetry, exporter):
    scope = {"headers": [(b"host", b"localhost")], "sameas.note": Note(headers=[(b"host", b"localhost")])}
    with telemetry.span(scope, "GET"):
        hop = scope["sameas.note"].hop
    (span,) = exporter.get_finished_spans()
    assert hop.trace_id == f"{span.context.trace_id:032x}"
    assert span.attributes["sameas.invocation_id"] == hop.invocation_id


def test_without_a_provider_there_is_no_span_and_no_cost():
    telemetry = Telemetry()
    assert not telemetry.is_on
    with telemetry.span({"headers": []}, "GET"):
        pass
