"""Every observer that is shipped, each writing to a file of its own, for tests of what is written.

Made before a fork, they serve the children too: lines are appended, and each process has its own file of metrics.
"""

import os
from pathlib import Path
from typing import TextIO, cast

import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from prometheus_client import CollectorRegistry, generate_latest

from sameas.once.observe import CallEnded, Event, Observer
from sameas.once.observers.audit import AuditObserver, JsonLinesSink
from sameas.once.observers.logs import LogObserver
from sameas.once.observers.metrics import MetricsObserver
from sameas.once.observers.traces import TraceObserver

KINDS = ("audit", "logs", "metrics", "traces")


class _Appended:
    """A stream that opens its file for each write: nothing is left open, and processes share it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> int:
        with self._path.open("a") as file:
            return file.write(text)

    def flush(self) -> None:
        """Nothing is held back."""


class _Exposition:
    """Writes the metrics down whenever a call ended, as a scrape would find them."""

    def __init__(self, registry: CollectorRegistry, folder: Path) -> None:
        self._registry = registry
        self._folder = folder

    def on(self, event: Event) -> None:
        if isinstance(event, CallEnded):
            (self._folder / f"metrics-{os.getpid()}").write_bytes(generate_latest(self._registry))


def every_observer(folder: Path) -> list[Observer]:
    """One of each kind; what they write is in `folder`."""
    folder.mkdir(exist_ok=True)
    lines, spans = _Appended(folder / "logs"), _Appended(folder / "traces")
    registry = CollectorRegistry()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=cast("TextIO", spans))))
    logger = structlog.wrap_logger(
        structlog.WriteLogger(cast("TextIO", lines)), processors=[structlog.processors.JSONRenderer()]
    )
    return [
        LogObserver(logger),
        MetricsObserver(registry),
        TraceObserver(provider.get_tracer("sameas")),
        AuditObserver(JsonLinesSink(folder / "audit")),
        _Exposition(registry, folder),
    ]


def read_observed(folder: Path) -> dict[str, str]:
    """What was written, by the kind of the observer."""
    return {
        kind: "".join(path.read_text() for path in sorted(folder.glob(f"{kind}*")) if path.is_file()) for kind in KINDS
    }
