"""Random lives of records, step by step in a store and in the protocol's own functions, which must agree.

TestMachine = machine_for(lambda clock: Store(MyBackend(clock))).TestCase
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from sameas.once import protocol
from sameas.once.record import (
    Accepted,
    Acquired,
    Answer,
    Busy,
    Claim,
    ClaimRequest,
    Lease,
    Outcome,
    Record,
    Replay,
)
from sameas.once.store import AsyncStore, Query, Store
from sameas.testing.clock import MovableClock
from sameas.testing.examined import Driven, identity

SECOND = 1_000_000
LEASE = 10 * SECOND
RETENTION = 60 * SECOND
WINDOW = 30 * SECOND

_keys = st.sampled_from(["one", "two"])
_workers = st.integers(0, 3)


def machine_for(
    open_at: Callable[[MovableClock], Store | AsyncStore], *, steps: int = 40, examples: int = 50
) -> type[RuleBasedStateMachine]:
    """A Hypothesis state machine over a store that reads the clock it is given."""

    class Machine(RecordMachine):
        def open(self, clock: MovableClock) -> Store | AsyncStore:
            return open_at(clock)

    Machine.TestCase.settings = settings(
        stateful_step_count=steps, max_examples=examples, deadline=None, print_blob=True
    )
    return Machine


class RecordMachine(RuleBasedStateMachine):
    """Four workers, two keys; every answer of the store is compared with the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = MovableClock()
        self.store = Driven(self.open(self.clock))
        self.model: dict[bytes, Record] = {}
        # What each worker believes to hold, by key: its lease in the store and in the model, however old.
        self.leases: dict[tuple[int, str], tuple[Lease, Lease]] = {}
        self.tries = 0

    def open(self, clock: MovableClock) -> Store | AsyncStore:
        raise NotImplementedError

    def teardown(self) -> None:
        self.store.close()

    @rule(key=_keys, worker=_workers, fingerprint=st.sampled_from(["f", "f", "f", "g"]))
    def claim(self, key: str, worker: int, fingerprint: str) -> None:
        self.tries += 1
        self._claim(key, worker, ClaimRequest(identity(key), fingerprint, f"try-{self.tries}", LEASE, RETENTION))

    @rule(key=_keys, worker=_workers)
    def claim_again(self, key: str, worker: int) -> None:
        if (worker, key) in self.leases:
            attempt = self.leases[worker, key][0].attempt_id
            self._claim(key, worker, ClaimRequest(identity(key), "f", attempt, LEASE, RETENTION))

    @rule(key=_keys, worker=_workers)
    def renew(self, key: str, worker: int) -> None:
        self._write(key, worker, "renew", lease_for=LEASE, retain_for=RETENTION)

    @rule(key=_keys, worker=_workers)
    def complete(self, key: str, worker: int) -> None:
        self._write(key, worker, "complete", outcome=self._outcome(key, worker), retain_for=RETENTION)

    @rule(key=_keys, worker=_workers)
    def fail(self, key: str, worker: int) -> None:
        self._write(key, worker, "fail", outcome=self._outcome(key, worker), retain_for=WINDOW)

    @rule(key=_keys, worker=_workers)
    def release(self, key: str, worker: int) -> None:
        self._write(key, worker, "release")

    @rule(key=_keys)
    def forget(self, key: str) -> None:
        record, expected = protocol.forget(self.model.get(identity(key).digest), now=self.clock())
        assert type(self.store.forget(identity(key))) is type(expected)
        self._keep(key, record)

    @rule(key=_keys)
    def read(self, key: str) -> None:
        expected = self.model.get(identity(key).digest)
        found = self.store.read(identity(key))
        if expected is None or expected.expires_at <= self.clock():
            assert found is None
        else:
            assert found is not None
            _assert_alike(found, expected)

    @rule()
    def prune(self) -> None:
        now = self.clock()
        self.store.prune()
        self.model = {digest: record for digest, record in self.model.items() if record.expires_at > now}

    @rule(seconds=st.sampled_from([1, 9, 11, 31, 61]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.tries)
    @rule(key=_keys)
    def listing_shows_what_is_live(self, key: str) -> None:
        listed = {record.identity.key for record in self.store.find(Query(key_prefix=key)).records}
        expected = self.model.get(identity(key).digest)
        live = expected is not None and expected.expires_at > self.clock()
        assert listed == ({key} if live else set())

    def _claim(self, key: str, worker: int, request: ClaimRequest) -> None:
        record, expected = protocol.claim(self.model.get(request.identity.digest), request, self.clock())
        answer = self.store.claim(request)
        self._compare_claims(answer, expected)
        self._keep(key, record)
        if isinstance(answer, Acquired) and isinstance(expected, Acquired):
            self.leases[worker, key] = (
                Lease(request.identity, answer.fence, request.attempt_id),
                Lease(request.identity, expected.fence, request.attempt_id),
            )

    def _write(self, key: str, worker: int, operation: str, **values: Any) -> None:
        held = self.leases.get((worker, key))
        if held is None:
            return
        theirs, ours = held
        rule_ = getattr(protocol, operation)
        record: Record | None
        expected: Answer
        record, expected = rule_(self.model.get(ours.identity.digest), ours, now=self.clock(), **values)
        answer: Answer = getattr(self.store, operation)(theirs, **values)
        assert type(answer) is type(expected), f"{operation}: {answer}, expected {expected}"
        if isinstance(answer, Accepted) and isinstance(expected, Accepted) and operation != "release":
            assert abs(answer.expires_at - expected.expires_at) < SECOND
        self._keep(key, record)

    def _compare_claims(self, answer: Claim, expected: Claim) -> None:
        assert type(answer) is type(expected), f"{answer}, expected {expected}"
        match answer, expected:
            case Acquired(), Acquired():
                assert answer.attempt == expected.attempt
            case Replay(), Replay():
                _assert_alike(answer.record, expected.record)
            case Busy(), Busy():
                assert abs(answer.time_left - expected.time_left) < SECOND
            case _:
                assert answer == expected

    def _keep(self, key: str, record: Record | None) -> None:
        if record is None:
            self.model.pop(identity(key).digest, None)
        else:
            self.model[identity(key).digest] = record

    def _outcome(self, key: str, worker: int) -> Outcome:
        held = self.leases.get((worker, key))
        return Outcome((held[0].attempt_id if held else "none").encode(), "text/plain")


def _assert_alike(found: Record, expected: Record) -> None:
    """Equal but for the fence's number and the microseconds between two looks at the clock."""
    for field in ("identity", "fingerprint", "state", "attempt", "attempt_id", "outcome"):
        assert getattr(found, field) == getattr(expected, field), field
    for field in ("created_at", "expires_at"):
        assert abs(getattr(found, field) - getattr(expected, field)) < SECOND, field
