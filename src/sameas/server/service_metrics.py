"""The metrics of the service beside those of the engine: requests, runs, streams, what subscribers missed.

Rule: labels are routes, methods and classes of status, all of them few; keys, tenants and paths are never labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sameas.server.notes import Note

_BUCKETS = (0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})


class ServiceMetrics:
    """Counts requests into a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._requests = Counter(
            "sameas_http_requests", "Requests answered.", ("route", "method", "status"), registry=registry
        )
        self._seconds = Histogram(
            "sameas_http_request_seconds", "Time to answer.", ("route",), buckets=_BUCKETS, registry=registry
        )

    def request(self, method: str, note: Note, seconds: float) -> None:
        route = note.route or "other"
        known = method if method in _METHODS else "other"
        self._requests.labels(route, known, f"{note.status // 100}xx").inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, gauges: Callable[[], dict[str, float]], counters: Callable[[], dict[str, float]]) -> None:
        """Also give out what these say whenever somebody collects."""
        self.registry.register(_Watched(gauges, counters))


class _Watched(Collector):
    def __init__(self, gauges: Callable[[], dict[str, float]], counters: Callable[[], dict[str, float]]) -> None:
        self._gauges = gauges
        self._counters = counters

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        for name, value in self._gauges().items():
            yield GaugeMetricFamily(f"sameas_{name}", name.replace("_", " "), value=value)
        for name, value in self._counters().items():
            yield CounterMetricFamily(f"sameas_{name}", name.replace("_", " "), value=value)
