"""What the PostgreSQL store costs beside a hand-written floor on the same driver, same server, same connection count.

The floor is what one writes without sameas: INSERT and UPDATE for fresh work, SELECT by primary key for a replay. Both
take turns of a few calls, and the medians of five rounds are printed. `--fsync off` shows the cost without the disk.

    python bench/postgres_store.py [--calls 1000] [--fsync off] [--url postgresql://...]
"""

import argparse
import asyncio
import gc
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sameas.identity.key import record_digest
from sameas.once.codec import frame
from sameas.once.record import Acquired, ClaimRequest, Identity, Lease, Outcome, Replay
from sameas.once.store import AsyncStore, Store
from sameas.stores.postgres import open_backend
from tests.servers.postgres import PostgresServer

ROUNDS = 5
# Ours and the floor take turns of so many calls, so that a busy moment of the machine is shared by both.
TURN = 20
DAY = 86_400_000_000
LEASE = 30_000_000
RESULT = Outcome(frame(b'{"id":"ord_1234567890","status":"created","total":4200}'), "application/json", {})

FLOOR_TABLE = """
CREATE TABLE IF NOT EXISTS floor (
  key bytea PRIMARY KEY, state text NOT NULL, result bytea, created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL);
CREATE INDEX IF NOT EXISTS floor_expires_at ON floor (expires_at)
"""
FLOOR_INSERT = (
    "INSERT INTO floor (key, state, expires_at) VALUES (%s, 'held', now() + interval '1 day') ON CONFLICT DO NOTHING"
)
FLOOR_UPDATE = "UPDATE floor SET state = 'done', result = %s WHERE key = %s"
FLOOR_SELECT = "SELECT state, result, created_at, expires_at FROM floor WHERE key = %s"


def request_of(number: int, round_: int) -> ClaimRequest:
    key = f"order-{round_}-{number}"
    return ClaimRequest(
        Identity(record_digest("acme", "charge", key), "acme", "charge", key),
        "f" * 32,
        f"{os.getpid():x}-{round_}-{number}",
        LEASE,
        DAY,
    )


class Threads:
    """The store and the floor for threads, on one connection each."""

    def __init__(self, url: str) -> None:
        self.store = Store(open_backend(url, pool_size=1))
        self.floor = psycopg.connect(url, autocommit=True)
        self.floor.execute(FLOOR_TABLE)

    def fresh(self, round_: int, numbers: range) -> None:
        for number in numbers:
            request = request_of(number, round_)
            claim = self.store.claim(request)
            assert isinstance(claim, Acquired)
            self.store.complete(
                Lease(request.identity, claim.fence, request.attempt_id), outcome=RESULT, retain_for=DAY
            )

    def replay(self, round_: int, numbers: range) -> None:
        for number in numbers:
            claim = self.store.claim(request_of(number, round_))
            assert isinstance(claim, Replay)

    def floor_fresh(self, round_: int, numbers: range) -> None:
        for number in numbers:
            key = request_of(number, round_).identity.digest
            self.floor.execute(FLOOR_INSERT, (key,))
            self.floor.execute(FLOOR_UPDATE, (RESULT.data, key))

    def floor_replay(self, round_: int, numbers: range) -> None:
        for number in numbers:
            key = request_of(number, round_).identity.digest
            assert self.floor.execute(FLOOR_SELECT, (key,)).fetchone()

    def close(self) -> None:
        self.store.close()
        self.floor.close()


class Tasks:
    """The same for tasks."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        self.store = AsyncStore(open_backend(self.url, pool_size=1))
        self.floor = await psycopg.AsyncConnection.connect(self.url, autocommit=True)

    async def fresh(self, round_: int, numbers: range) -> None:
        for number in numbers:
            request = request_of(number, round_)
            claim = await self.store.claim(request)
            assert isinstance(claim, Acquired)
            await self.store.complete(
                Lease(request.identity, claim.fence, request.attempt_id), outcome=RESULT, retain_for=DAY
            )

    async def replay(self, round_: int, numbers: range) -> None:
        for number in numbers:
            claim = await self.store.claim(request_of(number, round_))
            assert isinstance(claim, Replay)

    async def floor_fresh(self, round_: int, numbers: range) -> None:
        for number in numbers:
            key = request_of(number, round_).identity.digest
            await self.floor.execute(FLOOR_INSERT, (key,))
            await self.floor.execute(FLOOR_UPDATE, (RESULT.data, key))

    async def floor_replay(self, round_: int, numbers: range) -> None:
        for number in numbers:
            key = request_of(number, round_).identity.digest
            cursor = await self.floor.execute(FLOOR_SELECT, (key,))
            assert await cursor.fetchone()

    async def close(self) -> None:
        await self.store.close()
        await self.floor.close()


KINDS = ("fresh", "replay")


def measure_threads(url: str, calls: int) -> dict[str, list[float]]:
    """Microseconds per call, one figure for each round."""
    subject = Threads(url)
    took: dict[str, list[float]] = {f"{place}{kind}": [] for kind in KINDS for place in ("floor_", "")}
    try:
        for round_ in range(-1, ROUNDS):
            for kind in KINDS:
                spent = {"floor_": 0.0, "": 0.0}
                for numbers in _turns(calls):
                    for place in spent:
                        spent[place] += _timed(getattr(subject, f"{place}{kind}"), round_, numbers)
                if round_ >= 0:
                    for place, seconds in spent.items():
                        took[f"{place}{kind}"].append(seconds / calls * 1e6)
    finally:
        subject.close()
    return took


async def measure_tasks(url: str, calls: int) -> dict[str, list[float]]:
    """Microseconds per call, one figure for each round."""
    subject = Tasks(url)
    await subject.open()
    took: dict[str, list[float]] = {f"{place}{kind}": [] for kind in KINDS for place in ("floor_", "")}
    try:
        for round_ in range(ROUNDS, ROUNDS * 2 + 1):
            for kind in KINDS:
                spent = {"floor_": 0.0, "": 0.0}
                for numbers in _turns(calls):
                    for place in spent:
                        spent[place] += await _atimed(getattr(subject, f"{place}{kind}"), round_, numbers)
                if round_ > ROUNDS:
                    for place, seconds in spent.items():
                        took[f"{place}{kind}"].append(seconds / calls * 1e6)
    finally:
        await subject.close()
    return took


def _turns(calls: int) -> Iterator[range]:
    gc.collect()
    for start in range(0, calls, TURN):
        yield range(start, min(start + TURN, calls))


def _timed(step: Callable[[int, range], None], round_: int, numbers: range) -> float:
    began = time.perf_counter()
    step(round_, numbers)
    return time.perf_counter() - began


async def _atimed(step: Callable[[int, range], Awaitable[None]], round_: int, numbers: range) -> float:
    began = time.perf_counter()
    await step(round_, numbers)
    return time.perf_counter() - began


def show(name: str, took: dict[str, list[float]]) -> None:
    for kind in KINDS:
        ours, floor = took[kind], took[f"floor_{kind}"]
        share = statistics.median(there / here for here, there in zip(ours, floor, strict=True))
        print(
            f"{name:<8} {kind:<7} ours {statistics.median(ours):8.1f} us   floor {statistics.median(floor):8.1f} us"
            f"   {share:6.1%} of the floor"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000)
    parser.add_argument("--url", help="a PostgreSQL to measure; one is started where none is given")
    parser.add_argument("--fsync", choices=("on", "off"), default="on", help="for the server that is started")
    chosen = parser.parse_args(arguments)
    if chosen.url:
        return _measure(chosen.url, chosen.calls)
    with PostgresServer(fsync=chosen.fsync == "on") as server:
        return _measure(server.url, chosen.calls)


def _measure(url: str, calls: int) -> int:
    show("threads", measure_threads(url, calls))
    show("tasks", asyncio.run(measure_tasks(url, calls)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
