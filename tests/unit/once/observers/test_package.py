"""What holds for every observer: nothing is imported that is not asked for, and a failing one changes nothing."""

import logging
import subprocess
import sys

import pytest

from sameas.once.observe import Recent
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
