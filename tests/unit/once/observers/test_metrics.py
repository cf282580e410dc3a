"""Metrics, read back from the text that Prometheus scrapes."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sameas.once.errors import OutcomeUnknown, ResultNotKept, StoredFailure, StoreUnavailable
from sameas.once.observe import Settled
from sameas.once.observers.metrics import MetricsObserver
from sameas.once.policy import Policy
from sameas.once.record import LOST, Identity
from sameas.stores.memory import MemoryBackend
from tests.unit.once.observers.drives import Clock, SyncDrive, shared_by_two, steal


class Scrape:
    """What a scrape of the registry says."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.text = generate_latest(registry).decode()
        self.families = {family.name: family for family in text_string_to_metric_families(self.text)}
        self.samples = {
            (sample.name, sample.labels.get("scope")): sample.value
            for family in self.families.values()
            for sample in family.samples
            if "le" not in sample.labels
        }

    def __call__(self, name: str, scope: str | None = "charge") -> float:
        return self.samples[name, scope]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_every_metric_of_the_source_document_is_there_by_name_and_type(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry, cached_results=lambda: 0))
    drive.run(lambda ctx: "done", scope="charge", key="order-1")
    types = {name: family.type for name, family in Scrape(registry).families.items()}
    assert types == types | {
        "sameas_cache_hit_rate": "gauge",
        "sameas_execution_cache_hit_rate": "gauge",
        "sameas_cache_lookup_latency_seconds": "histogram",
        "sameas_cache_store_latency_seconds": "histogram",
        "sameas_deduplication_wait_time_seconds": "histogram",
        "sameas_total_cached_results": "gauge",
        "sameas_cache_evictions": "counter",
        "sameas_invalidations": "counter",
        "sameas_idempotency_key_computation_errors": "counter",
        "sameas_cache_lookup_errors": "counter",
    }
    assert all(name.startswith("sameas_") for name in types)


def test_hit_rate_is_the_share_of_replays(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry))
    drive.run(lambda ctx: "done", scope="charge", key="order-1")
    assert Scrape(registry)("sameas_cache_hit_rate") == 0
    for _ in range(3):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    scrape = Scrape(registry)
    assert scrape("sameas_cache_hit_rate") == 0.75
    assert scrape("sameas_execution_cache_hit_rate") == 0
    assert scrape("sameas_calls_total") == 4
    assert scrape("sameas_cache_hits_total") == 3
    assert scrape("sameas_cache_lookup_latency_seconds_count") == 4
    assert scrape("sameas_cache_store_latency_seconds_count") == 1


def test_execution_hit_rate_is_the_share_of_those_who_waited(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry))
    shared_by_two(drive, scope="charge", key="order-1")
    scrape = Scrape(registry)
    assert scrape("sameas_execution_cache_hit_rate") == 0.5
    assert scrape("sameas_cache_hit_rate") == 0
    assert scrape("sameas_execution_cache_hits_total") == 1
    assert scrape("sameas_deduplication_wait_time_seconds_count") == 1
    assert scrape("sameas_deduplication_wait_time_seconds_sum") > 0


def test_a_kept_failure_is_a_hit_and_an_error(drive_type, registry) -> None:
    def work(ctx):
        raise ValueError("declined")

    drive = drive_type(MetricsObserver(registry), policy=Policy(keep_errors=(ValueError,)))
    for kind in (ValueError, StoredFailure):
        with pytest.raises(kind):
            drive.run(work, scope="charge", key="order-1")
    scrape = Scrape(registry)
    assert scrape("sameas_cache_hits_total") == 1
    assert scrape("sameas_call_errors_total") == 2


def test_evictions_and_invalidations_are_counted_once_each(drive_type, registry) -> None:
    clock = Clock()
    drive = drive_type(MetricsObserver(registry), backend=MemoryBackend(clock))
    for key in "abcdef":
        drive.run(lambda ctx: "done", scope="charge", key=key, retention=60, tags=["t"] if key == "b" else [])
    drive.forget("charge", "a")
    drive.forget("charge", "a")
    drive.forget_where(tag="t")
    drive.forget_where(scope="nothing of that name")
    clock.forward(61)
    drive.prune()
    drive.run(lambda ctx: "done", scope="charge", key="g")
    drive.forget_where(scope="charge")
    scrape = Scrape(registry)
    assert scrape("sameas_invalidations_total") == 2
    assert scrape("sameas_invalidations_total", "") == 1
    assert scrape("sameas_cache_evictions_total", None) == 4


def test_errors_of_keys_and_of_the_store_are_counted(drive_type, registry) -> None:
    class Down(MemoryBackend):
        def claim(self, request):
            yield from ()
            raise StoreUnavailable

    drive = drive_type(MetricsObserver(registry), backend=Down())
    with pytest.raises(StoreUnavailable):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    with pytest.raises(Exception, match="NaN|nan|finite"):
        drive.run(lambda ctx: "done", scope="charge", payload=float("nan"))
    scrape = Scrape(registry)
    # The claim, and the second look that makes sure that none is left behind.
    assert scrape("sameas_cache_lookup_errors_total", None) == 2
    assert scrape("sameas_cache_store_errors_total", None) == 0
    assert scrape("sameas_idempotency_key_computation_errors_total") == 1
    assert scrape("sameas_calls_total") == 1


def test_a_result_that_cannot_be_stored_counts_as_a_store_error(drive_type, registry) -> None:
    class Down(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            yield from ()
            raise StoreUnavailable

    drive = drive_type(MetricsObserver(registry), backend=Down(), policy=Policy(hand_in_for=0))
    with pytest.raises(OutcomeUnknown):
        drive.run(lambda ctx: "done", scope="charge", key="order-1")
    scrape = Scrape(registry)
    assert scrape("sameas_cache_store_errors_total", None) == 1
    assert scrape("sameas_results_unstored_total") == 1


def test_a_result_that_cannot_be_kept_is_counted_where_its_work_was_done(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry))
    drive.run(lambda ctx: object(), scope="charge", key="order-1")
    with pytest.raises(ResultNotKept):
        drive.run(lambda ctx: object(), scope="charge", key="order-1")
    assert Scrape(registry)("sameas_results_not_kept_total") == 1


def test_a_lost_lease_is_counted_once(drive_type, registry) -> None:
    clock = Clock()
    drive = drive_type(MetricsObserver(registry), backend=MemoryBackend(clock))

    def work(ctx):
        steal(drive.backend, clock, ctx.identity, lease_for=30)
        return "mine"

    assert drive.run(work, scope="charge", key="order-1", lease=30) == "theirs"
    assert Scrape(registry)("sameas_leases_lost_total") == 1


def test_a_renewal_that_is_refused_is_not_yet_a_lost_lease(registry) -> None:
    observer = MetricsObserver(registry)
    identity = Identity(b"digest", "acme", "charge", "order-1")
    observer.on(Settled("renew", identity, LOST, 0.001))
    assert ("sameas_leases_lost_total", "charge") not in Scrape(registry).samples
    observer.on(Settled("release", identity, LOST, 0.001))
    assert Scrape(registry)("sameas_leases_lost_total") == 1


def test_scopes_beyond_the_bound_are_counted_as_other(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry, max_scopes=2))
    for scope in ("a", "b", "c", "d", "a"):
        drive.run(lambda ctx: "done", scope=scope, key="order-1")
    scrape = Scrape(registry)
    counted = {scope: value for (name, scope), value in scrape.samples.items() if name == "sameas_calls_total"}
    assert counted == {"a": 2, "b": 1, "other": 2}


def test_keys_and_tenants_are_never_labels(drive_type, registry) -> None:
    drive = drive_type(MetricsObserver(registry))
    drive.run(lambda ctx: "done", scope="charge", key="order-4711", tenant="acme")
    drive.forget("charge", "order-4711", tenant="acme")
    drive.forget_where(tenant="acme")
    scrape = Scrape(registry)
    assert "4711" not in scrape.text
    assert "acme" not in scrape.text
    labels = {name for family in scrape.families.values() for sample in family.samples for name in sample.labels}
    assert labels == {"scope", "le"}


def test_cached_results_are_asked_for_at_every_scrape(registry) -> None:
    counts = iter((3, 5))
    MetricsObserver(registry, cached_results=lambda: next(counts))
    assert Scrape(registry)("sameas_total_cached_results", None) == 3
    assert Scrape(registry)("sameas_total_cached_results", None) == 5


def test_a_count_that_fails_leaves_the_other_metrics(registry, caplog) -> None:
    def fail() -> int:
        raise OSError("no answer")

    MetricsObserver(registry, cached_results=fail)
    with caplog.at_level(logging.ERROR, logger="sameas"):
        scrape = Scrape(registry)
    assert "sameas_total_cached_results" not in scrape.families
    assert "sameas_cache_evictions" in scrape.families
    assert "number of cached results" in caplog.text


def test_a_second_observer_on_a_registry_is_told_what_to_do(registry) -> None:
    first = MetricsObserver(registry)
    with pytest.raises(ValueError, match="one MetricsObserver to share"):
        MetricsObserver(registry)
    first.close()
    MetricsObserver(registry)


def test_without_a_registry_the_metrics_are_the_process_own() -> None:
    observer = MetricsObserver()
    try:
        with pytest.raises(ValueError, match="CollectorRegistry of its own"):
            MetricsObserver()
        assert "sameas_cache_evictions_total 0.0" in generate_latest(REGISTRY).decode()
    finally:
        observer.close()


def test_two_engines_share_one_observer(drive_type, registry) -> None:
    observer = MetricsObserver(registry)
    for _ in range(2):
        drive_type(observer).run(lambda ctx: "done", scope="charge", key="order-1")
    assert Scrape(registry)("sameas_calls_total") == 2


def test_nothing_is_lost_between_threads(registry) -> None:
    drive = SyncDrive(MetricsObserver(registry, max_scopes=3))

    def call(number: int) -> None:
        drive.run(lambda ctx: number, scope=f"scope-{number % 5}", key=str(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(200)))
    counted = {s: v for (name, s), v in Scrape(registry).samples.items() if name == "sameas_calls_total"}
    assert sum(counted.values()) == 200
    assert len(counted) == 4
