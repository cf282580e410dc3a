"""The metrics of source document 000, part 8, for Prometheus. Durations are in seconds, rates between 0 and 1.

The only label is the scope, and the number of scopes is bounded; keys and tenants are never labels. A registry takes
these metrics once: engines share an observer, or have a registry each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import Lock

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sameas.once.forks import renew_after_fork
from sameas.once.observe import CallEnded, Claimed, Event, KeyFailed, Removed, Settled, StoreFailed, answered
from sameas.once.record import Accepted

_LOG = logging.getLogger("sameas")

# The scope of every call beyond the bound.
OTHER = "other"
# Prometheus takes an empty label for none: what was removed was not of one scope.
_NO_SCOPE = ""

# From a dictionary in this process (microseconds) to a server in trouble.
_STORE_BUCKETS = (
    *(0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5),
    *(0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
# Waiting lasts as long as somebody else's work.
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

_LOOKUPS = frozenset({"claim", "read", "find"})
_HAND_INS = frozenset({"complete", "fail"})


class Metrics(Collector):
    """The metrics themselves, collected as one so that a registry takes all of them or none."""

    def __init__(self, cached_results: Callable[[], int] | None) -> None:
        self._cached_results = cached_results
        self.calls = _counter("sameas_calls", "Calls that ended, however they ended.")
        self.errors = _counter("sameas_call_errors", "Calls that ended with an error.")
        self.cache_hits = _counter("sameas_cache_hits", "Calls answered with a kept result.")
        self.execution_cache_hits = _counter(
            "sameas_execution_cache_hits",
            "Calls that waited for the same work elsewhere and shared its result.",
        )
        self.lookup_latency = _histogram(
            "sameas_cache_lookup_latency_seconds", "Time the store took to answer a claim.", _STORE_BUCKETS
        )
        self.store_latency = _histogram(
            "sameas_cache_store_latency_seconds", "Time the store took to keep a result.", _STORE_BUCKETS
        )
        self.wait_time = _histogram(
            "sameas_deduplication_wait_time_seconds",
            "Time calls spent waiting for the same work.",
            _WAIT_BUCKETS,
        )
        self.leases_lost = _counter(
            "sameas_leases_lost",
            "Results and claims that were refused because the lease had gone to another.",
        )
        self.unstored = _counter("sameas_results_unstored", "Work that was done and that the store does not know of.")
        self.not_kept = _counter("sameas_results_not_kept", "Work that was done and whose result could not be kept.")
        self.invalidations = _counter("sameas_invalidations", "Records that were forgotten by choice.")
        self.key_errors = _counter("sameas_idempotency_key_computation_errors", "Payloads that have no canonical form.")
        self.evictions = Counter("sameas_cache_evictions", "Records removed because they had expired.", registry=None)
        self.lookup_errors = Counter(
            "sameas_cache_lookup_errors", "Lookups that the store could not answer.", registry=None
        )
        self.store_errors = Counter(
            "sameas_cache_store_errors", "Writes that the store could not answer.", registry=None
        )
        self._by_scope = (
            *(self.calls, self.errors, self.cache_hits, self.execution_cache_hits),
            *(self.lookup_latency, self.store_latency, self.wait_time),
            *(self.leases_lost, self.unstored, self.not_kept, self.invalidations, self.key_errors),
        )
        self._plain = (self.evictions, self.lookup_errors, self.store_errors)

    def describe(self) -> Iterator[Metric]:
        for metric in (*self._by_scope, *self._plain):
            yield from metric.describe()
        yield from (_hit_rate(), _execution_hit_rate(), _total_cached())

    def collect(self) -> Iterator[Metric]:
        # Hits before calls: calls are counted first, so that no rate is ever above 1.
        hits, shared = _totals(self.cache_hits), _totals(self.execution_cache_hits)
        calls = _totals(self.calls)
        yield _filled(_hit_rate(), hits, calls)
        yield _filled(_execution_hit_rate(), shared, calls)
        for metric in (*self._by_scope, *self._plain):
            yield from metric.collect()
        if self._cached_results is not None:
            try:
                count = self._cached_results()
            except Exception:
                _LOG.exception("the number of cached results could not be had")
            else:
                total = _total_cached()
                total.add_metric([], count)
                yield total


class MetricsObserver:
    """Counts into `registry`, or into the process's own. `cached_results` is asked at every collection.

    After `max_scopes` distinct scopes, further ones are counted together as "other".
    """

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        cached_results: Callable[[], int] | None = None,
        max_scopes: int = 100,
    ) -> None:
        self._registry = REGISTRY if registry is None else registry
        self._metrics = Metrics(cached_results)
        self._max_scopes = max_scopes
        self._scopes: dict[str, str] = {}
        try:
            self._registry.register(self._metrics)
        except ValueError as error:
            raise ValueError(
                "this registry has the metrics of sameas already: give the engines one MetricsObserver to share, "
                "or this one a CollectorRegistry of its own"
            ) from error
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def close(self) -> None:
        """Take the metrics out of the registry."""
        self._registry.unregister(self._metrics)

    def on(self, event: Event) -> None:
        metrics = self._metrics
        match event:
            case CallEnded():
                self._ended(event)
            case Claimed(identity=identity, seconds=seconds):
                metrics.lookup_latency.labels(self._scope(identity.scope)).observe(seconds)
            case Settled():
                self._settled(event)
            case Removed(why="expired", count=count):
                metrics.evictions.inc(count)
            case Removed(count=count, selection=selection) if selection is not None:
                # Without a selection it is a single record, counted where it was settled, with its scope.
                scope = _NO_SCOPE if selection.scope is None else self._scope(selection.scope)
                metrics.invalidations.labels(scope).inc(count)
            case StoreFailed(operation=operation):
                (metrics.lookup_errors if operation in _LOOKUPS else metrics.store_errors).inc()
            case KeyFailed(scope=scope):
                metrics.key_errors.labels(self._scope(scope)).inc()
            case _:
                pass

    def _ended(self, event: CallEnded) -> None:
        metrics = self._metrics
        scope = self._scope(event.started.identity.scope)
        metrics.calls.labels(scope).inc()
        # Both exist from the first call on: a rate of 0 is a value, not an absence.
        hits, shared = metrics.cache_hits.labels(scope), metrics.execution_cache_hits.labels(scope)
        if answered(event).replay:
            (shared if event.waited else hits).inc()
        if event.error is not None:
            metrics.errors.labels(scope).inc()
        if not answered(event).replay:
            # Counted where the work was done, not for each who is told of it.
            if not event.stored:
                metrics.unstored.labels(scope).inc()
            if not event.kept:
                metrics.not_kept.labels(scope).inc()
        if event.waited:
            metrics.wait_time.labels(scope).observe(event.waited)

    def _settled(self, event: Settled) -> None:
        metrics = self._metrics
        scope = self._scope(event.identity.scope)
        accepted = isinstance(event.answer, Accepted)
        if event.operation in _HAND_INS:
            metrics.store_latency.labels(scope).observe(event.seconds)
        if event.operation == "forget":
            if accepted:
                metrics.invalidations.labels(scope).inc()
        elif event.operation != "renew" and not accepted:
            # A lost lease is counted once, at its last write; renewals that are refused come before it.
            metrics.leases_lost.labels(scope).inc()

    def _scope(self, scope: str) -> str:
        known = self._scopes.get(scope)
        if known is not None:
            return known
        with self._lock:
            if len(self._scopes) >= self._max_scopes:
                return self._scopes.get(scope, OTHER)
            return self._scopes.setdefault(scope, scope)


def _counter(name: str, about: str) -> Counter:
    return Counter(name, about, ("scope",), registry=None)


def _histogram(name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, about, ("scope",), registry=None, buckets=buckets)


def _hit_rate() -> GaugeMetricFamily:
    about = "Share of the calls that were answered with a kept result, 0 to 1."
    return GaugeMetricFamily("sameas_cache_hit_rate", about, labels=("scope",))


def _execution_hit_rate() -> GaugeMetricFamily:
    about = "Share of the calls that waited for the same work and shared its result, 0 to 1."
    return GaugeMetricFamily("sameas_execution_cache_hit_rate", about, labels=("scope",))


def _total_cached() -> GaugeMetricFamily:
    return GaugeMetricFamily("sameas_total_cached_results", "Records in the store.", labels=())


def _totals(counter: Counter) -> dict[str, float]:
    return {
        sample.labels["scope"]: sample.value
        for metric in counter.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


def _filled(rate: GaugeMetricFamily, hits: dict[str, float], calls: dict[str, float]) -> GaugeMetricFamily:
    for scope, count in calls.items():
        rate.add_metric([scope], hits.get(scope, 0.0) / count if count else 0.0)
    return rate
