"""The metrics of the service beside those of the engine: requests, runs, streams, what subscribers missed.

Rule: labels are routes, methods and classes of status, all of them few; keys, tenants and paths are never labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sameas.server.bodies import Note
from sameas.server.runs.models import AccountState

_BUCKETS = (0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
_PHASES = ("closed", "open", "half_open")
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


class ModelMetrics(Collector):
    """Limiters and circuits of the models' accounts, as they were when `states` was last set."""

    def __init__(self) -> None:
        self.states: Sequence[AccountState] = ()

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "sameas_model_calls_waiting", "Calls that wait for the limiter.", labels=["account"]
        )
        held = GaugeMetricFamily("sameas_model_calls_under_way", "Calls that hold a slot.", labels=["account"])
        circuit = GaugeMetricFamily(
            "sameas_model_circuit_state", "1 for the state that the circuit is in.", labels=["account", "state"]
        )
        for one in self.states:
            waiting.add_metric([one.account], one.waiting)
            held.add_metric([one.account], one.held)
            for state in _PHASES:
                circuit.add_metric([one.account, state], float(state == one.circuit))
        yield from (waiting, held, circuit)


class ClusterMetrics(Collector):
    """The signs by which a cluster is scaled, as they were at the last look: what waits, and who is busy."""

    def __init__(
        self, queue: Callable[[], tuple[int, float, int] | None], slots: Callable[[], tuple[int, int] | None]
    ) -> None:
        self._queue = queue
        self._slots = slots

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        if (queue := self._queue()) is not None:
            length, oldest, waiting = queue
            messages = GaugeMetricFamily("sameas_queue_length", "Messages that wait for a worker.", labels=["queue"])
            messages.add_metric(["sameas"], length)
            age = GaugeMetricFamily(
                "sameas_queue_oldest_seconds", "Since when the oldest run that has not ended waits.", labels=["queue"]
            )
            age.add_metric(["sameas"], oldest)
            yield from (messages, age)
            yield GaugeMetricFamily("sameas_runs_waiting", "Runs that were accepted and have not ended.", value=waiting)
        if (slots := self._slots()) is not None:
            used, free = slots
            places = GaugeMetricFamily("sameas_worker_slots", "Runs that a worker does at a time.", labels=["state"])
            places.add_metric(["used"], used)
            places.add_metric(["free"], free)
            yield places


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
