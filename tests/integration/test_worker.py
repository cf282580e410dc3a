"""A worker takes up what servers promised and cannot do themselves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from sameas.client import Client
from sameas.server.runs.pending_runs import PendingRun, PendingRuns
from sameas.server.schemas import ExtractRequest
from tests.unit.server.house import TEXT, WITHIN, running, with_company


@contextmanager
def worker(home: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    with (home / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sameas.cli", "worker"],
            stderr=log,
            env={**os.environ, "SAMEAS_HOME": str(home), "SAMEAS_LEASE": "5", **variables},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(WITHIN)


def promised(home: Path, text: str) -> str:
    """A run that a server wrote down before it died."""
    with running(home) as service, Client(service.url) as client:
        key = client.key_of(text, ontology="company").key
    PendingRuns(home).keep(PendingRun(tenant="", key=key, request=ExtractRequest(text=text, ontology_id="company")))
    return key


def test_a_promised_run_is_finished_by_a_worker_and_a_worker_ends_when_told(tmp_path: Path) -> None:
    home = with_company(tmp_path)
    key = promised(home, f"{TEXT} Worker.")
    with worker(home) as process:
        ends_at = time.monotonic() + WITHIN
        while PendingRuns(home).has("", key) and time.monotonic() < ends_at:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN) == 0
    metadata = msgspec.json.decode((home / "runs" / key / "metadata.json").read_bytes())
    assert metadata["status"] == "complete"
    with running(home) as service, Client(service.url) as client:
        assert client.extract(f"{TEXT} Worker.", ontology="company").cache_hit
