"""The peers' process: what it answers, as lines for people. Who cannot be installed or used is not measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.peers import PeerFailedError, installed

FOLDER = Path(__file__).parent
LOCK = FOLDER / "peers.lock"
ANSWER_WITHIN_SECONDS = 300


def peers_on(url: str, *, rounds: int, calls: int) -> list[str]:
    """A line for each peer and kind."""
    try:
        folder = installed(LOCK)
    except PeerFailedError as reason:
        return [f"peers: not measured, {reason}"]
    command = [sys.executable, "-S", str(FOLDER / "peer_worker.py"), url, str(rounds), str(calls)]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=ANSWER_WITHIN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return [f"peers: not measured, they took longer than {ANSWER_WITHIN_SECONDS} s"]
    if done.returncode:
        return [f"peers: not measured, {(done.stderr.strip().splitlines() or ['they ended'])[-1]}"]
    told = json.loads(done.stdout.splitlines()[-1])
    lines = [f"{name}: not measured, {reason}" for name, reason in told["missing"].items()]
    for kind, names in told["medians"].items():
        wall, processor = names["floor"]
        for name in told["versions"]:
            mine = names[name]
            lines.append(
                f"{kind:<7} {name} {told['versions'][name]:<7} {mine[0]:8.1f} us, {wall / mine[0]:.0%} of its floor; "
                f"{processor / mine[1]:.0%} by its processor time"
            )
    return lines
