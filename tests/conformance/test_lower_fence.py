"""A holder whose fence is below that of a forgotten one: why it is safe.

On MariaDB, MySQL and MS SQL Server a fence is the time of the statement's start, so a claim that was held up between its
start and its row can have a number below a record that was made and forgotten meanwhile; a server's clock that is set
back does the same anywhere. The attempt id, which every write shows too, then tells the two holders apart.
"""

import os

import pytest

from sameas.connections import open_store
from sameas.identity.key import record_digest
from sameas.once.record import LOST, Accepted, Acquired, ClaimRequest, Identity, Lease, Outcome, Replay

MINUTE = 60_000_000
IDENTITY = Identity(record_digest("", "fences", "key"), "", "fences", "key")
EARLY = Outcome(b"of the forgotten holder", "text/plain")
LATE = Outcome(b"of the holder", "text/plain")


@pytest.fixture(params=["mariadb_url", "mssql_url", "postgres_url"])
def url(request):
    if request.param != "mssql_url":
        return request.getfixturevalue(request.param)
    if "SAMEAS_TEST_MSSQL_URL" not in os.environ:
        pytest.skip("not run: SAMEAS_TEST_MSSQL_URL names no server")
    return os.environ["SAMEAS_TEST_MSSQL_URL"]


@pytest.fixture
def store(url):
    with open_store(url) as store:
        store.forget(IDENTITY)
        yield store


def claimed(store, attempt, *, clock_ahead=0):
    store.backend.performer.skew = clock_ahead
    claim = store.claim(ClaimRequest(IDENTITY, "", attempt, MINUTE, 10 * MINUTE))
    assert isinstance(claim, Acquired), claim
    return Lease(IDENTITY, claim.fence, attempt)


@pytest.fixture
def holders(store):
    """The one that was forgotten, and the one that holds the record now, with the lower fence."""
    forgotten = claimed(store, "forgotten", clock_ahead=MINUTE)
    assert isinstance(store.forget(IDENTITY), Accepted)
    holder = claimed(store, "holder")
    assert holder.fence < forgotten.fence
    return forgotten, holder


def late_writes(store, lease):
    return [
        store.renew(lease, lease_for=MINUTE, retain_for=MINUTE),
        store.complete(lease, outcome=EARLY, retain_for=MINUTE),
        store.fail(lease, outcome=EARLY, retain_for=MINUTE),
        store.release(lease),
    ]


def test_forgotten_holder_changes_nothing_while_another_works(store, holders):
    forgotten, holder = holders
    assert late_writes(store, forgotten) == [LOST] * 4
    assert isinstance(store.complete(holder, outcome=LATE, retain_for=MINUTE), Accepted)


def test_forgotten_holder_changes_nothing_after_another_has_finished(store, holders):
    forgotten, holder = holders
    assert isinstance(store.complete(holder, outcome=LATE, retain_for=MINUTE), Accepted)
    assert late_writes(store, forgotten) == [LOST] * 4
    replay = store.claim(ClaimRequest(IDENTITY, "", "third", MINUTE, MINUTE))
    assert isinstance(replay, Replay)
    assert replay.record.outcome == LATE


def test_same_number_for_two_holders_is_told_apart(store, holders):
    forgotten, holder = holders
    same = Lease(IDENTITY, holder.fence, forgotten.attempt_id)
    assert late_writes(store, same) == [LOST] * 4
    assert isinstance(store.complete(holder, outcome=LATE, retain_for=MINUTE), Accepted)
