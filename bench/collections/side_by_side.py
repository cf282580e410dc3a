"""Twelve one-chunk documents against a model that takes a second for an answer, eight at a time.

The ideal is what twelve documents with two questions each, one after the other in a document, take in eight slots: the
server's latency and nothing else. It is counted from the first call that reaches the server to the last answer.
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from bench.peers import ROOT
from tests.servers.model_script import says
from tests.servers.model_server import ModelServer

_DOCUMENTS = 12
_AT_ONCE = 8
_LATENCY = 1.0
_MOST = 1.2


def measure() -> None:
    answer = says({"entities": [], "values": [], "relations": []}, latency=_LATENCY)
    with tempfile.TemporaryDirectory(prefix="sameas-bench-") as folder, ModelServer(answer) as server:
        home = Path(folder)
        environment = {**os.environ, "SAMEAS_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
        files = []
        for number in range(_DOCUMENTS):
            file = home / f"{number}.txt"
            file.write_text(f"Anna{number} Stone works for Acme{number} Ltd.")
            files.append(str(file))
        ontology = ROOT / "src" / "sameas" / "example" / "company.ttl"
        _sameas(environment, "collection", "create", "press", "-o", str(ontology))
        began = perf_counter()
        _sameas(environment, "add", "press", *files, "--model", server.address(), "--concurrency", str(_AT_ONCE), "-q")
        whole = perf_counter() - began
        arrived = [call.arrived_at for call in server.calls]
        took = max(arrived) + _LATENCY - min(arrived)
        ideal = math.ceil(_DOCUMENTS / _AT_ONCE) * (len(arrived) / _DOCUMENTS) * _LATENCY
        ratio = took / ideal
        print(
            f"{_DOCUMENTS} documents, {len(arrived)} calls of {_LATENCY:g} s, {_AT_ONCE} at a time: {took:.2f} s from the "
            f"first call to the last answer, ideal {ideal:.1f} s: {ratio:.2f}x  (at most {_MOST}x: "
            f"{'yes' if ratio <= _MOST else 'MISSED'}); most at once {server.most_at_once}; the whole command {whole:.1f} s"
        )


def _sameas(environment: dict[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sameas", *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"sameas {arguments[0]} failed: {done.stderr}")
