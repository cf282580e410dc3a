"""How soon word reaches another node: a cancellation, an update of an ontology, a cleared cache.

From the moment at which one node is asked until it shows at another, which is asked for nothing meanwhile. Printed by
`./run bench cluster word`, with records in Redis and in PostgreSQL.
"""

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

from bench.limits import verdict
from tests.integration.model_path import ORACLE, sentence
from tests.servers.cluster import ApiNode
from tests.servers.model_script import held
from tests.storm.cluster_storm import Machines
from tests.unit.server.house import TURTLE

PROMISED = 1.0
_TIMES = 10
_GIVEN_UP_AFTER = 30.0


def word(records: Literal["redis", "postgres"]) -> None:
    with ExitStack() as stack:
        machines = Machines(stack, workers=1, broker="rabbitmq", settings={"SAMEAS_LEASE": "30"}, records=records)
        machines.model.rescript(ORACLE)
        for what, measure in (("cancelled", _cancelled), ("updated", _updated), ("cleared", _cleared)):
            took = [measure(machines, number) for number in range(_TIMES + 1)][1:]
            print(
                f"{what:<10} records in {records}: shows at another node after {1000 * min(took):.0f} to "
                f"{1000 * max(took):.0f} ms of {_TIMES} times (1,000){verdict(max(took) <= PROMISED)}"
            )


def _cancelled(machines: Machines, number: int) -> float:
    """Until somebody who listens at the other node is told."""
    one, other = machines.nodes
    gate = threading.Event()
    machines.model.rescript(lambda call: held(gate, ORACLE(call)))
    before = len(machines.model.calls)
    key = _ask(one, f"{sentence(number)} Cancelled.", "respond-async")
    machines.model.wait_for_calls(before + 1, within_seconds=_GIVEN_UP_AFTER)
    with urllib.request.urlopen(f"{other.url}/api/v1/runs/{key}/events", timeout=_GIVEN_UP_AFTER) as stream:
        while b"chunk_started" not in stream.readline():
            pass
        began = time.monotonic()
        one.ask("POST", f"/api/v1/runs/{key}/cancel")
        while b"extraction_cancelled" not in stream.readline():
            pass
        took = time.monotonic() - began
    gate.set()
    machines.model.rescript(ORACLE)
    return took


def _updated(machines: Machines, number: int) -> float:
    """Until what the other node has of a run is marked."""
    one, other = machines.nodes
    key = _ask(other, f"{sentence(number)} Updated.")
    (copy,) = (other.folder / "home" / "runs").rglob(f"*{key}*/metadata.json")
    newer = f"<https://sameas.dev/example/company#Newer{number}> a <http://www.w3.org/2002/07/owl#Class> ."
    began = time.monotonic()
    one.ask("PUT", "/api/v1/ontologies/company", TURTLE + b"\n" + newer.encode())
    return _until(lambda: json.loads(copy.read_bytes()).get("supersededAt"), began)


def _cleared(machines: Machines, number: int) -> float:
    """Until the other node has nothing left of a run."""
    one, other = machines.nodes
    key = _ask(other, f"{sentence(number)} Cleared.")
    (copy,) = (other.folder / "home" / "runs").rglob(f"*{key}*/metadata.json")
    began = time.monotonic()
    one.ask("POST", "/api/v1/cache/clear", {"reason": "a measurement"})
    return _until(lambda: not copy.exists(), began)


def _until(happened: Callable[[], object], began: float) -> float:
    while not happened():
        if time.monotonic() - began > _GIVEN_UP_AFTER:
            return float("inf")
        time.sleep(0.005)
    return time.monotonic() - began


def _ask(node: ApiNode, text: str, prefer: str = "wait=60") -> str:
    body = {"text": text, "ontologyId": "company", "extractionParams": {"extractor": "model"}}
    said: Any = node.ask("POST", "/api/v1/extract", body, headers={"Prefer": prefer})[1]
    return str(said["idempotencyKey"])
