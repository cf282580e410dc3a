"""What holds for every observer: nothing is imported that is not asked for, and a failing one changes nothing."""

import logging
import subprocess
import sys

import pytest

from sameas.once.engine import Engine
from sameas.once.errors import StoreUnavailable
from sameas.once.observe import Recent
from sameas.once.record import Accepted, Acquired, ClaimRequest, Identity, Lease, Lost, Renewal
from sameas.once.store import Store
from sameas.stores.memory import MemoryBackend
from tests.unit.once.observers.drives import Collected


def test_importing_the_package_imports_no_library() -> None:
    code = (
        "import sys, sameas.once.observers; "
        "print([m for m in ('structlog', 'prometheus_client', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_audit_needs_no_further_library() -> None:
    code = (
        "import sys, sameas.once.observers.audit; "
        "print([m for m in ('structlog', 'prometheus_client', 'opentelemetry') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_failing_observer_breaks_no_call_and_the_next_one_is_told(drive_type, caplog) -> None:
    class Broken:
        def on(self, event) -> None:
            raise RuntimeError("broken observer")

    after = Collected()
    drive = drive_type(Broken(), after)
    with caplog.at_level(logging.ERROR, logger="sameas"):
        assert drive.run(lambda ctx: "done", scope="charge", key="order-1") == "done"
        assert drive.run(lambda ctx: "again", scope="charge", key="order-1") == "done"
    kinds = [type(event).__name__ for event in after.events]
    assert kinds == ["CallStarted", "Claimed", "Settled", "CallEnded", "CallStarted", "Claimed", "CallEnded"]
    assert caplog.text.count("RuntimeError: broken observer") == len(kinds)


class Grouped(MemoryBackend):
    """Renews three leases, and then those that are left, each group as one; counts the groups."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []

    def renew_many(self, renewals):
        return [self._renew_group(group) for group in (renewals[:3], renewals[3:])]

    def _renew_group(self, renewals):
        self.groups.append(len(renewals))
        answers = []
        for renewal in renewals:
            answers += yield from self.renew_alone(renewal)
        return answers

    def renew(self, lease, lease_for, retain_for):
        if lease.identity.key == "locked":
            raise StoreUnavailable
        return (yield from super().renew(lease, lease_for, retain_for))


def test_leases_are_renewed_together_also_where_somebody_observes_and_each_is_told() -> None:
    backend, told = Grouped(), Collected()
    store = Engine(Store(backend), observers=[told]).store
    requests = [
        ClaimRequest(Identity(key.encode(), "", "s", key), "", "a1", 30_000_000, 60_000_000)
        for key in ("one", "locked", "lost", "four")
    ]
    claims = [store.claim(request) for request in requests]
    fences = [claim.fence for claim in claims if isinstance(claim, Acquired)]
    fences[2] -= 1
    told.events.clear()
    answers = store.renew_many(
        [
            Renewal(Lease(request.identity, fence, "a1"), 30_000_000, 60_000_000)
            for request, fence in zip(requests, fences, strict=True)
        ]
    )
    assert backend.groups == [3, 1]
    assert [type(answer) for answer in answers] == [Accepted, StoreUnavailable, Lost, Accepted]
    one, locked, lost, four = told.events
    assert (locked.operation, locked.error) == ("renew", answers[1])
    for event, number in ((one, 0), (lost, 2), (four, 3)):
        assert (event.operation, event.identity, event.answer, event.fence) == (
            *("renew", requests[number].identity),
            *(answers[number], fences[number]),
        )


def test_recent_keeps_only_the_latest() -> None:
    recent: Recent[int] = Recent(2)
    recent.note(b"a", 1)
    recent.note(b"b", 2)
    recent.note(b"a", 3)
    recent.note(b"c", 4)
    assert [recent.get(digest) for digest in (b"a", b"b", b"c")] == [3, None, 4]
    assert len(recent) == 2
    recent.drop(b"a")
    assert recent.get(b"a") is None


def test_recent_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Recent(0)
