"""The engine at work: the same order twice, an impatient crowd, a worker that dies. Takes two seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sameas import Engine, Policy, open_store

ORDER = {"id": "o-1001", "customer": "c-7", "total": "24.98", "currency": "EUR", "sent_at": "10:00:00"}
LEASE = 0.5

DYING_WORKER = """
import os, signal, sys
from sameas import Engine, Policy, open_store
engine = Engine(open_store(sys.argv[1]), policy=Policy(lease=float(sys.argv[2])))
engine.run(lambda ctx: os.kill(os.getpid(), signal.SIGKILL), scope="ship", key="o-1001")
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/sameas.db"
        with Engine(open_store(url), policy=Policy(lease=LEASE)) as engine:
            print("Records are kept in a SQLite file; every result is on disk before anybody gets it.\n")
            same_order_twice(engine)
            impatient_crowd(engine)
            dead_worker(engine, url)


def same_order_twice(engine: Engine) -> None:
    print("1. The same order, delivered twice (the second time with another sent_at):")
    charges: list[str] = []

    @engine.once(scope="charge", exclude_fields={"sent_at"})
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.15)  # a payment provider takes its time
        charges.append(order["id"])
        return {"charged": order["total"], "receipt": f"r-{order['id']}"}

    for delivery in (ORDER, ORDER | {"sent_at": "10:00:05"}):
        began = time.perf_counter()
        record = charge.record(delivery)
        milliseconds = (time.perf_counter() - began) * 1_000
        how = "replayed" if record.was_replay else "run for real"
        print(f"   {how:<13} in {milliseconds:8.3f} ms -> {record.result}")
    print(f"   the provider was asked {len(charges)} time(s)\n")


def impatient_crowd(engine: Engine) -> None:
    print("2. Twenty clicks at once:")
    runs: list[int] = []

    def book(context: object) -> str:
        runs.append(1)
        time.sleep(0.1)
        return "seat 12A"

    with ThreadPoolExecutor(20) as clicks:
        answers = set(clicks.map(lambda _: engine.run(book, scope="book", key="click-1"), range(20)))
    print(f"   {len(runs)} run, 20 answers, all equal: {answers}\n")


def dead_worker(engine: Engine, url: str) -> None:
    print("3. A worker is killed in the middle of its work (kill -9):")
    worker = subprocess.run([sys.executable, "-c", DYING_WORKER, url, str(LEASE)], check=False)
    assert worker.returncode == -signal.SIGKILL
    began = time.perf_counter()
    record = engine.record(lambda ctx: f"shipped by process {os.getpid()}", scope="ship", key="o-1001")
    waited = time.perf_counter() - began
    print(f"   taken over after {waited:.2f} s (its lease was {LEASE} s), attempt {record.attempt}: {record.result}")


if __name__ == "__main__":
    main()
