"""Hourly counts: cheap to add to, shared by processes, kept for thirty days, apart for each space."""

import pytest

from sameas.once.errors import StoreUnavailable
from sameas.once.observe import CallEnded, CallStarted, Removed
from sameas.once.record import Identity
from sameas.server.runs.hourly_counts import HOUR, KEPT_DAYS, WHOLE, Counted, HourlyCounts, advise
from tests.unit.server.house import REQUEST, running

NOON = 1_000_000 * HOUR


class Clock:
    def __init__(self, now=NOON):
        self.now = now

    def __call__(self):
        return self.now


def call(space="one", scope="extract", how="fresh", waited=0.0):
    return CallEnded(CallStarted(Identity(b"", space, scope, "key"), {}), how, 0.1, waited)


def opened(folder, clock):
    return HourlyCounts(f"sqlite:///{folder}/counts.db", clock=clock)


def test_processes_add_to_the_same_hour_and_spaces_stay_apart(tmp_path):
    clock = Clock()
    one, other = opened(tmp_path, clock), opened(tmp_path, clock)
    for counts in (one, other):
        counts.on(call())
        counts.on(call(how="replay"))
        counts.on(call(how="shared", waited=0.25))
        counts.on(call(space="two"))
        counts.flush()
    (found,) = one.read("one", hours=1)
    assert (found.calls, found.hits, found.shared, found.waits, found.waited_ms) == (6, 2, 2, 2, 500)
    assert [row.calls for row in other.read("two", hours=1)] == [2]
    one.close()
    other.close()


def test_what_is_not_flushed_yet_is_read_and_hours_follow_each_other(tmp_path):
    clock = Clock()
    counts = opened(tmp_path, clock)
    counts.on(call())
    clock.now += HOUR
    counts.on(call(how="replay"))
    assert [(row.hour, row.calls, row.hits) for row in counts.read("one", hours=2)] == [
        (NOON, 1, 0),
        (NOON + HOUR, 1, 1),
    ]
    assert [row.hour for row in counts.read("one", hours=1)] == [NOON + HOUR]
    counts.close()


def test_counts_are_gone_after_thirty_days(tmp_path):
    clock = Clock()
    counts = opened(tmp_path, clock)
    counts.on(call())
    counts.flush()
    clock.now += KEPT_DAYS * 24 * HOUR + HOUR
    counts.on(call())
    counts.flush()
    assert len(counts.read("one", hours=10 * KEPT_DAYS * 24)) == 1
    counts.close()


def test_pruned_records_are_counted_for_the_service_as_a_whole(tmp_path):
    counts = opened(tmp_path, Clock())
    counts.on(Removed("expired", 7))
    assert [row.pruned for row in counts.read(WHOLE, hours=1)] == [7]
    assert counts.read("one", hours=1) == []
    counts.close()


def test_a_service_that_stops_writes_down_what_it_counted_last(tmp_path):
    with running(tmp_path) as service:
        headers = {"Idempotency-Key": "order-1"}
        for _ in range(2):
            assert service.client.post("/api/v1/extract", json=REQUEST, headers=headers).status_code == 200
    counts = HourlyCounts(f"sqlite:///{tmp_path}/counts.db")
    (found,) = [row for row in counts.read("", hours=2) if row.scope == "extract"]
    assert (found.calls, found.hits) == (2, 1)
    counts.close()


def test_what_the_database_does_not_take_is_kept_for_the_next_time(tmp_path):
    counts = opened(tmp_path, Clock())
    counts.on(call())
    counts._database.close()
    with pytest.raises(StoreUnavailable):
        counts.flush()
    counts.on(call())
    counts._database = opened(tmp_path, Clock())._database
    assert [row.calls for row in counts.read("one", hours=1)] == [2]
    counts.close()


def test_scopes_beyond_the_bound_are_counted_together(tmp_path):
    counts = opened(tmp_path, Clock())
    for number in range(150):
        counts.on(call(scope=f"scope-{number}"))
    found = {row.scope: row.calls for row in counts.read("one", hours=1)}
    assert len(found) == 101
    assert found["other"] == 50
    counts.close()


@pytest.mark.parametrize(
    ("scope", "replays", "said"),
    [("extract", 6, "many-replays"), ("extract", 5, None), ("extraction", 60, None)],
)
def test_above_five_percent_of_replays_clients_retry_too_hard(scope, replays, said):
    rows = [Counted(scope=scope, hour=NOON, calls=100, hits=replays)]
    assert [one.kind for one in advise(rows, now=NOON)] == ([said] if said else [])


def test_few_calls_say_nothing():
    assert advise([Counted(scope="extract", hour=NOON, calls=99, hits=99)], now=NOON) == ()


def test_no_replay_for_two_weeks_says_that_the_key_is_wrong():
    days = [Counted(scope="extract", hour=NOON - day * 24 * HOUR, calls=20) for day in range(20)]
    (advice,) = advise(days, now=NOON)
    assert (advice.kind, advice.replay_rate) == ("no-replays", 0.0)
    # A week is too short to say so, and one replay says the contrary.
    assert advise(days[:7], now=NOON) == ()
    assert advise([*days, Counted(scope="extract", hour=NOON, calls=1, shared=1)], now=NOON) == ()
