"""The Redis store beside bare commands on redis-py, sync and async, interleaved: `python -m bench.redis_store`.

The floor of a replay is one GET, that of a fresh call SET NX and SET, on redis-py's own client, with values of the
size that our result has. Ours is measured at the store (claim, complete) and at the engine (key, result, record).
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from statistics import median

import redis
import redis.asyncio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sameas.identity.key import record_digest
from sameas.once.engine import AsyncEngine, Engine
from sameas.once.record import About, Acquired, ClaimRequest, Identity, Lease, Outcome
from sameas.once.store import AsyncStore, Store
from sameas.stores.redis import open_backend
from sameas.stores.tiered import TieredBackend
from tests.servers.redis import RedisServer

ROUNDS = 5
# Turns are short, so that what else the machine does meets every case alike.
TURNS = 50
CALLS = 20
DAY = 86_400
RESULT = {"order": 123, "status": "paid", "lines": ["x" * 20] * 6}
DATA = json.dumps(RESULT).encode()
OUTCOME = Outcome(DATA, "application/json")
NUMBERS = itertools.count()

Times = dict[str, float]


def request(key: str) -> ClaimRequest:
    identity = Identity(record_digest("", "bench", key), "", "bench", key)
    return ClaimRequest(
        identity, "", f"attempt-{next(NUMBERS)}", 30_000_000, DAY * 1_000_000, About("host:1")
    )


def sync_cases(url: str, until: ExitStack) -> dict[str, Callable[[], object]]:
    client = until.enter_context(redis.Redis.from_url(url))
    store = until.enter_context(Store(open_backend(url, strict=False)))
    engine = Engine(store)
    tiered = until.enter_context(Store(TieredBackend(open_backend(url, strict=False))))
    tiered_engine = Engine(tiered)
    client.set("floor", DATA)

    def floor_fresh() -> None:
        key = f"floor-{next(NUMBERS)}"
        client.set(key, b"held", nx=True, ex=30)
        client.set(key, DATA, ex=DAY)

    def store_fresh() -> None:
        wish = request(f"key-{next(NUMBERS)}")
        claim = store.claim(wish)
        assert isinstance(claim, Acquired)
        store.complete(
            Lease(wish.identity, claim.fence, wish.attempt_id), outcome=OUTCOME, retain_for=DAY * 1_000_000
        )

    wish = request("done")
    claim = store.claim(wish)
    assert isinstance(claim, Acquired)
    store.complete(
        Lease(wish.identity, claim.fence, wish.attempt_id), outcome=OUTCOME, retain_for=DAY * 1_000_000
    )
    return {
        "floor get": lambda: client.get("floor"),
        "floor set nx + set": floor_fresh,
        "store replay": lambda: store.claim(wish),
        "store fresh": store_fresh,
        "engine replay": lambda: engine.run(lambda _: RESULT, scope="bench", key="engine"),
        "engine fresh": lambda: engine.run(lambda _: RESULT, scope="bench", key=f"fresh-{next(NUMBERS)}"),
        "tier replay": lambda: tiered.claim(wish),
        "tier engine replay": lambda: tiered_engine.run(lambda _: RESULT, scope="bench", key="engine"),
    }


async def async_cases(url: str, until: AsyncExitStack) -> dict[str, Callable[[], Awaitable[object]]]:
    client = await until.enter_async_context(redis.asyncio.Redis.from_url(url))
    store = await until.enter_async_context(AsyncStore(open_backend(url, strict=False)))
    engine = AsyncEngine(store)
    tiered = await until.enter_async_context(AsyncStore(TieredBackend(open_backend(url, strict=False))))
    tiered_engine = AsyncEngine(tiered)
    wish = request("done")

    async def work(_: object) -> object:
        return RESULT

    async def floor_fresh() -> None:
        key = f"floor-{next(NUMBERS)}"
        await client.set(key, b"held", nx=True, ex=30)
        await client.set(key, DATA, ex=DAY)

    async def store_fresh() -> None:
        wish = request(f"key-{next(NUMBERS)}")
        claim = await store.claim(wish)
        assert isinstance(claim, Acquired)
        lease = Lease(wish.identity, claim.fence, wish.attempt_id)
        await store.complete(lease, outcome=OUTCOME, retain_for=DAY * 1_000_000)

    return {
        "floor get": lambda: client.get("floor"),
        "floor set nx + set": floor_fresh,
        "store replay": lambda: store.claim(wish),
        "store fresh": store_fresh,
        "engine replay": lambda: engine.run(work, scope="bench", key="engine"),
        "engine fresh": lambda: engine.run(work, scope="bench", key=f"fresh-{next(NUMBERS)}"),
        "tier replay": lambda: tiered.claim(wish),
        "tier engine replay": lambda: tiered_engine.run(work, scope="bench", key="engine"),
    }


def measure(cases: dict[str, Callable[[], object]]) -> Times:
    """Microseconds per call: the median of rounds, in each of which the cases take short turns."""
    rounds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        taken = dict.fromkeys(cases, 0.0)
        for _ in range(TURNS):
            for name, call in cases.items():
                call()
                began = time.perf_counter()
                for _ in range(CALLS):
                    call()
                taken[name] += time.perf_counter() - began
        for name, seconds in taken.items():
            rounds[name].append(seconds / (TURNS * CALLS) * 1e6)
    return {name: median(times) for name, times in rounds.items()}


async def ameasure(cases: dict[str, Callable[[], Awaitable[object]]]) -> Times:
    rounds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        taken = dict.fromkeys(cases, 0.0)
        for _ in range(TURNS):
            for name, call in cases.items():
                await call()
                began = time.perf_counter()
                for _ in range(CALLS):
                    await call()
                taken[name] += time.perf_counter() - began
        for name, seconds in taken.items():
            rounds[name].append(seconds / (TURNS * CALLS) * 1e6)
    return {name: median(times) for name, times in rounds.items()}


def show(kind: str, times: Times) -> None:
    print(f"{kind}: microseconds per call, and throughput as a share of the floor")
    for name, taken in times.items():
        floor = times["floor set nx + set" if "fresh" in name else "floor get"]
        share = "" if name.startswith("floor") else f"{floor / taken:8.0%}"
        print(f"  {name:22}{taken:8.1f}{share}")


async def measure_async(url: str) -> Times:
    async with AsyncExitStack() as until:
        return await ameasure(await async_cases(url, until))


def main() -> None:
    with RedisServer() as server:
        with ExitStack() as until:
            show("sync", measure(sync_cases(server.url, until)))
        show("async", asyncio.run(measure_async(server.url)))


if __name__ == "__main__":
    main()
