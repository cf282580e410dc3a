"""The alert rules of deploy/, judged by Prometheus' own tool, and the same rules in `sameas doctor`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, start_http_server

from sameas import Engine, open_store
from sameas.once.observers.metrics import MetricsObserver
from tests.shared_data import missing

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "alerts.yaml"


def test_prometheus_accepts_the_rules_and_they_fire_when_they_should(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        missing("promtool (./run services)")
    for file in (RULES, Path(__file__).with_name("alert_rules.yaml")):
        shutil.copy(file, tmp_path)
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alert_rules.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("calls", "replays", "verdict", "said"),
    [
        (200, 20, "warning", "20 of 220 calls: clients or the broker retry too hard"),
        (200, 2, "ok", "2 of 202 calls"),
        (1000, 0, "warning", "0 of 1000 calls: does the key hold something that always differs?"),
        (50, 40, "ok", "40 of 90 calls"),
    ],
)
def test_doctor_judges_the_replay_rate_of_a_running_process(
    tmp_path: Path, calls: int, replays: int, verdict: str, said: str
) -> None:
    registry = CollectorRegistry()
    engine = Engine(open_store("memory://"), observers=[MetricsObserver(registry)])
    for number in [*range(calls), *range(replays)]:
        engine.run(lambda context: 1, scope="charge", key=f"order-{number}")
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    try:
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        done = subprocess.run(
            [sys.executable, "-m", "sameas.cli", "doctor", "--metrics", url, "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["replay rate charge"] == {"name": "replay rate charge", "verdict": verdict, "said": said}


def test_metrics_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sameas.cli", "doctor", "--metrics", "http://127.0.0.1:1/metrics", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 5
    assert "Traceback" not in done.stderr
    assert any(
        check["name"] == "replay rate" and check["verdict"] == "failed" for check in json.loads(done.stdout)["checks"]
    )
