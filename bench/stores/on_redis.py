"""The contests on one Redis: fresh and replay, for threads and for tasks, with the peers between ours.

The floor is what redis-py itself takes: SET NX and SET for fresh work, GET for a replay, with a value of the size of
our result and without decoding it. Where the content is the key, the floor hashes the same order. Round trips are what
the server's MONITOR saw of some calls.
"""

import asyncio
import itertools
from contextlib import ExitStack
from dataclasses import replace
from time import sleep

import redis
import redis.asyncio

from bench.peers import ASYNC_PEERS, KINDS, SYNC_PEERS, Peers
from bench.stores.ours import (
    DATA,
    DAY_SECONDS,
    LEASE_SECONDS,
    NUMBERS,
    AsyncCall,
    Call,
    async_decorated_fresh,
    async_decorated_replay,
    async_engine_fresh,
    async_engine_replay,
    async_store_fresh,
    async_store_replay,
    content_hash,
    decorated_fresh,
    decorated_replay,
    engine_fresh,
    engine_replay,
    fresh_order,
    store_fresh,
    store_replay,
)
from bench.stores.turns import WARMING, Contestant, Effort, Figure, Turn, async_turn, contest, sync_turn
from sameas.connections import open_async_store, open_backend, open_store
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine
from sameas.once.store import AsyncStore, Store
from sameas.stores.tiered import TieredBackend
from tests.servers.round_trips import RedisRequests

FRESH_AT_LEAST = 0.80
REPLAY_AT_LEAST = 0.75
TIER_AT_LEAST = 10.0
COUNTED_CALLS = 10
SUBSCRIBED_AFTER_SECONDS = 0.2

CONTENT_FRESH_AT_LEAST = 0.90
CONTENT_REPLAY_AT_LEAST = 0.80
REPEATED_ORDERS = 100

FLOOR = "floor (redis-py)"
CONTENT_FLOOR = "floor (redis-py, json.dumps, SHA-256)"
DECORATED = "sameas, decorated function"
STORE = "sameas, store"
ENGINE = "sameas, engine"
TIER_STORE = "sameas, store behind a local tier"
TIER_ENGINE = "sameas, engine behind a local tier"


def redis_figures(url: str, effort: Effort, peers: Peers) -> dict[str, list[Figure]]:
    """The tables by their titles."""
    with ExitStack() as until:
        sync = _sync_contests(url, until)
        tables = _held(url, "Redis, sync", sync, effort, peers, SYNC_PEERS)
        tables |= _by_content("Redis, sync", _sync_content_contests(url, until), effort)
    with asyncio.Runner() as runner, ExitStack() as until:
        contests = _async_contests(url, until, runner)
        tables |= _held(url, "Redis, async", contests, effort, peers, ASYNC_PEERS)
        return tables | _by_content("Redis, async", _async_content_contests(url, until, runner), effort)


def _held(
    url: str,
    title: str,
    contests: dict[str, list[Contestant]],
    effort: Effort,
    peers: Peers,
    names: tuple[str, ...],
) -> dict[str, list[Figure]]:
    tables = {}
    for kind in KINDS:
        others = peers.turns(names, kind)
        floor = names[0]
        contestants = [
            *contests[kind],
            *(
                Contestant(name, turn, "" if name == floor else floor)
                for name, turn in others.items()
                if floor in others
            ),
        ]
        trips = {contestant.name: _round_trips(url, contestant) for contestant in contestants}
        figures = contest(contestants, effort)
        tables[f"{title}, {kind}"] = [replace(figure, round_trips=trips[figure.name]) for figure in figures]
    return tables


def _by_content(title: str, contests: dict[str, list[Contestant]], effort: Effort) -> dict[str, list[Figure]]:
    return {f"{title}, {kind}, the content is the key": contest(contests[kind], effort) for kind in KINDS}


def _content_contest(kind: str, floor: Turn, ours: Turn) -> list[Contestant]:
    at_least = CONTENT_FRESH_AT_LEAST if kind == "fresh" else CONTENT_REPLAY_AT_LEAST
    return [Contestant(CONTENT_FLOOR, floor), Contestant(DECORATED, ours, CONTENT_FLOOR, at_least)]


def _sync_content_contests(url: str, until: ExitStack) -> dict[str, list[Contestant]]:
    client = until.enter_context(redis.Redis.from_url(url))
    engine = Engine(until.enter_context(open_store(url)))

    def floor_fresh() -> None:
        key = f"floor-{content_hash(fresh_order())}"
        client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        client.set(key, DATA, ex=DAY_SECONDS)

    def floor_replay() -> bytes | None:
        return client.get(f"floor-{content_hash(next(turns))}")

    orders = [fresh_order() for _ in range(REPEATED_ORDERS)]
    turns = itertools.cycle(orders)
    for order in orders:
        client.set(f"floor-{content_hash(order)}", DATA, ex=DAY_SECONDS)
    return {
        "fresh": _content_contest("fresh", sync_turn(floor_fresh), sync_turn(decorated_fresh(engine))),
        "replay": _content_contest("replay", sync_turn(floor_replay), sync_turn(decorated_replay(engine, orders))),
    }


def _async_content_contests(url: str, until: ExitStack, runner: asyncio.Runner) -> dict[str, list[Contestant]]:
    client = redis.asyncio.Redis.from_url(url)
    store = open_async_store(url)
    engine = AsyncEngine(store)

    async def floor_fresh() -> None:
        key = f"floor-{content_hash(fresh_order())}"
        await client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        await client.set(key, DATA, ex=DAY_SECONDS)

    async def floor_replay() -> bytes | None:
        return await client.get(f"floor-{content_hash(next(turns))}")

    orders = [fresh_order() for _ in range(REPEATED_ORDERS)]
    turns = itertools.cycle(orders)

    async def keep() -> None:
        for order in orders:
            await client.set(f"floor-{content_hash(order)}", DATA, ex=DAY_SECONDS)

    async def close() -> None:
        await client.aclose()
        await store.close()

    until.callback(lambda: runner.run(close()))
    runner.run(keep())
    replay = runner.run(async_decorated_replay(engine, orders))
    return {
        "fresh": _content_contest(
            "fresh", async_turn(runner, floor_fresh), async_turn(runner, async_decorated_fresh(engine))
        ),
        "replay": _content_contest("replay", async_turn(runner, floor_replay), async_turn(runner, replay)),
    }


def _round_trips(url: str, contestant: Contestant) -> float:
    """Requests per call, at the server."""
    # What only the first call of a connection sends is not counted: scripts, settings, a subscription.
    contestant.turn(COUNTED_CALLS)
    # A tier is emptied once more when its subscription has begun, in a thread.
    sleep(SUBSCRIBED_AFTER_SECONDS)
    contestant.turn(COUNTED_CALLS)
    with RedisRequests(url) as seen:
        contestant.turn(COUNTED_CALLS)
    return len(seen.requests) / (WARMING + COUNTED_CALLS)


def _sync_contests(url: str, until: ExitStack) -> dict[str, list[Contestant]]:
    client = until.enter_context(redis.Redis.from_url(url))
    store = until.enter_context(open_store(url))
    tiered = until.enter_context(Store(TieredBackend(open_backend(url))))
    engine = Engine(store)

    def floor_fresh() -> None:
        key = f"floor-{next(NUMBERS)}"
        client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        client.set(key, DATA, ex=DAY_SECONDS)

    client.set("floor", DATA, ex=DAY_SECONDS)

    def entry(name: str, call: Call, at_least: float | None = None) -> Contestant:
        return Contestant(name, sync_turn(call), "" if name == FLOOR else FLOOR, at_least)

    return {
        "fresh": [
            entry(FLOOR, floor_fresh),
            entry(STORE, store_fresh(store), FRESH_AT_LEAST),
            entry(ENGINE, engine_fresh(engine), FRESH_AT_LEAST),
        ],
        "replay": [
            entry(FLOOR, lambda: client.get("floor")),
            entry(STORE, store_replay(store), REPLAY_AT_LEAST),
            entry(ENGINE, engine_replay(engine), REPLAY_AT_LEAST),
            entry(TIER_STORE, store_replay(tiered), TIER_AT_LEAST),
            entry(TIER_ENGINE, engine_replay(Engine(tiered)), TIER_AT_LEAST),
        ],
    }


def _async_contests(url: str, until: ExitStack, runner: asyncio.Runner) -> dict[str, list[Contestant]]:
    client = redis.asyncio.Redis.from_url(url)
    store = open_async_store(url)
    tiered = AsyncStore(TieredBackend(open_backend(url)))
    engine = AsyncEngine(store)

    async def floor_fresh() -> None:
        key = f"floor-{next(NUMBERS)}"
        await client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        await client.set(key, DATA, ex=DAY_SECONDS)

    async def keep() -> None:
        await client.set("floor", DATA, ex=DAY_SECONDS)

    async def close() -> None:
        await client.aclose()
        await store.close()
        await tiered.close()

    until.callback(lambda: runner.run(close()))
    runner.run(keep())

    def entry(name: str, call: AsyncCall, at_least: float | None = None) -> Contestant:
        return Contestant(name, async_turn(runner, call), "" if name == FLOOR else FLOOR, at_least)

    return {
        "fresh": [
            entry(FLOOR, floor_fresh),
            entry(STORE, async_store_fresh(store), FRESH_AT_LEAST),
            entry(ENGINE, async_engine_fresh(engine), FRESH_AT_LEAST),
        ],
        "replay": [
            entry(FLOOR, lambda: client.get("floor")),
            entry(STORE, runner.run(async_store_replay(store)), REPLAY_AT_LEAST),
            entry(ENGINE, runner.run(async_engine_replay(engine)), REPLAY_AT_LEAST),
            entry(TIER_STORE, runner.run(async_store_replay(tiered)), TIER_AT_LEAST),
            entry(TIER_ENGINE, runner.run(async_engine_replay(AsyncEngine(tiered))), TIER_AT_LEAST),
        ],
    }
