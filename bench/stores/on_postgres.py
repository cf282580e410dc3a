"""The contests on one PostgreSQL: what one writes by hand without sameas, and ours, on the same driver and server.

The floor is INSERT and UPDATE for fresh work and SELECT by primary key for a replay, each its own transaction, as
durable as ours, on psycopg's own connection; its table has an index for cleaning up, as any such table must.
"""

import asyncio
from contextlib import ExitStack

import psycopg

from bench.peers import KINDS
from bench.stores.ours import (
    DATA,
    SCOPE,
    AsyncCall,
    Call,
    async_engine_fresh,
    async_engine_replay,
    async_store_fresh,
    async_store_replay,
    engine_fresh,
    engine_replay,
    fresh_key,
    must_be,
    store_fresh,
    store_replay,
)
from bench.stores.turns import Contestant, Effort, Figure, async_turn, contest, sync_turn
from sameas.connections import open_async_store, open_store
from sameas.identity.key import record_digest
from sameas.once.async_engine import AsyncEngine
from sameas.once.engine import Engine

AT_LEAST = 0.75

FLOOR = "floor (psycopg)"
STORE = "sameas, store"
ENGINE = "sameas, engine"

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


def postgres_figures(url: str, effort: Effort) -> dict[str, list[Figure]]:
    """The tables by their titles."""
    tables = {}
    with ExitStack() as until:
        sync = _sync_contests(url, until)
        for kind in KINDS:
            tables[f"PostgreSQL, sync, {kind}"] = contest(sync[kind], effort)
    with asyncio.Runner() as runner, ExitStack() as until:
        contests = _async_contests(url, until, runner)
        for kind in KINDS:
            tables[f"PostgreSQL, async, {kind}"] = contest(contests[kind], effort)
    return tables


def floor_key() -> bytes:
    return record_digest("", SCOPE, fresh_key())


def _sync_contests(url: str, until: ExitStack) -> dict[str, list[Contestant]]:
    store = until.enter_context(open_store(url))
    engine = Engine(store)
    floor = until.enter_context(psycopg.connect(url, autocommit=True))
    floor.execute(FLOOR_TABLE)
    done = floor_key()

    def floor_fresh(key: bytes | None = None) -> None:
        key = key or floor_key()
        floor.execute(FLOOR_INSERT, (key,))
        floor.execute(FLOOR_UPDATE, (DATA, key))

    floor_fresh(done)

    def entry(name: str, call: Call) -> Contestant:
        is_floor = name == FLOOR
        return Contestant(name, sync_turn(call), "" if is_floor else FLOOR, None if is_floor else AT_LEAST)

    return {
        "fresh": [
            entry(FLOOR, floor_fresh),
            entry(STORE, store_fresh(store)),
            entry(ENGINE, engine_fresh(engine)),
        ],
        "replay": [
            entry(FLOOR, lambda: must_be(tuple, floor.execute(FLOOR_SELECT, (done,)).fetchone())),
            entry(STORE, store_replay(store)),
            entry(ENGINE, engine_replay(engine)),
        ],
    }


def _async_contests(url: str, until: ExitStack, runner: asyncio.Runner) -> dict[str, list[Contestant]]:
    store = open_async_store(url)
    engine = AsyncEngine(store)

    async def connect() -> psycopg.AsyncConnection[psycopg.rows.TupleRow]:
        return await psycopg.AsyncConnection.connect(url, autocommit=True)

    floor = runner.run(connect())
    done = floor_key()

    async def floor_fresh(key: bytes | None = None) -> None:
        key = key or floor_key()
        await floor.execute(FLOOR_INSERT, (key,))
        await floor.execute(FLOOR_UPDATE, (DATA, key))

    async def floor_replay() -> None:
        cursor = await floor.execute(FLOOR_SELECT, (done,))
        must_be(tuple, await cursor.fetchone())

    async def close() -> None:
        await floor.close()
        await store.close()

    until.callback(lambda: runner.run(close()))
    runner.run(floor_fresh(done))

    def entry(name: str, call: AsyncCall) -> Contestant:
        is_floor = name == FLOOR
        return Contestant(name, async_turn(runner, call), "" if is_floor else FLOOR, None if is_floor else AT_LEAST)

    return {
        "fresh": [
            entry(FLOOR, floor_fresh),
            entry(STORE, async_store_fresh(store)),
            entry(ENGINE, async_engine_fresh(engine)),
        ],
        "replay": [
            entry(FLOOR, floor_replay),
            entry(STORE, runner.run(async_store_replay(store))),
            entry(ENGINE, runner.run(async_engine_replay(engine))),
        ],
    }
