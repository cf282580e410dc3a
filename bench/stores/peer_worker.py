"""The process of the peers: sets each one up as its manual says, then takes the turns that it is told on its input.

It imports nothing of this project. A line in: {"name", "kind", "calls"}; a line out: {"seconds"}. The first line out
says which contestants there are, their versions, and why others are missing.
"""

import asyncio
import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

DAY_SECONDS = 86_400
LEASE_SECONDS = 30
NUMBERS = itertools.count()
# As in bench.stores.turns: calls at the beginning of a turn that are not counted.
WARMING = 5
PEERS = ("aws-lambda-powertools", "idemkit", "idempotency-kit")

SyncCall = Callable[[str], object]
AsyncCall = Callable[[str], Awaitable[object]]
Runs = list[int]


def sync_floor(url: str, result: object, runs: Runs) -> dict[str, SyncCall]:
    client = import_module("redis").Redis.from_url(url)
    data = json.dumps(result).encode()

    def fresh(key: str) -> None:
        runs.append(1)
        client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        client.set(key, data, ex=DAY_SECONDS)

    return {"fresh": fresh, "replay": client.get}


def async_floor(url: str, result: object, runs: Runs) -> dict[str, AsyncCall]:
    client = import_module("redis.asyncio").Redis.from_url(url)
    data = json.dumps(result).encode()

    async def fresh(key: str) -> None:
        runs.append(1)
        await client.set(key, b"held", nx=True, ex=LEASE_SECONDS)
        await client.set(key, data, ex=DAY_SECONDS)

    return {"fresh": fresh, "replay": client.get}


def powertools(url: str, result: object, runs: Runs) -> dict[str, SyncCall]:
    """Its Redis layer around a function; the key is the payload, so that nothing needs to be picked out of it."""
    idempotency = import_module("aws_lambda_powertools.utilities.idempotency")
    layers = import_module("aws_lambda_powertools.utilities.idempotency.persistence.redis")
    client = import_module("redis").Redis.from_url(url, decode_responses=True)
    config = idempotency.IdempotencyConfig(expires_after_seconds=DAY_SECONDS)
    config.register_lambda_context(LambdaContext())

    @idempotency.idempotent_function(  # type: ignore[untyped-decorator]
        data_keyword_argument="key",
        config=config,
        persistence_store=layers.RedisCachePersistenceLayer(client=client),
    )
    def charge(*, key: str) -> object:
        runs.append(1)
        return result

    def call(key: str) -> object:
        return charge(key=key)

    return {"fresh": call, "replay": call}


class LambdaContext:
    """What powertools asks of the place it runs in, to know when a call counts as abandoned."""

    def get_remaining_time_in_millis(self) -> int:
        return LEASE_SECONDS * 1_000


def idemkit(url: str, result: object, runs: Runs) -> dict[str, AsyncCall]:
    """Its decorator for functions, with an explicit key and one scope."""
    package = import_module("idemkit")
    config = package.MethodConfig(
        scope=lambda: "bench",
        lease_ttl_seconds=float(LEASE_SECONDS),
        expires_after_seconds=float(DAY_SECONDS),
    )

    @package.idempotent(backend=package.RedisBackend.from_url(url), config=config)  # type: ignore[untyped-decorator]
    async def charge() -> object:
        runs.append(1)
        return result

    async def call(key: str) -> object:
        return await charge(idempotency_key=key)

    return {"fresh": call, "replay": call}


def idempotency_kit(url: str, result: object, runs: Runs) -> dict[str, AsyncCall]:
    """Its decorator on a function that is handed the coordinator."""
    package = import_module("idempotency_kit")
    storage = import_module("idempotency_kit.infra.storage.redis.aio")
    client = import_module("redis.asyncio").Redis.from_url(url)
    coordinator = package.AsyncIdempotencyCoordinator(
        storage.RedisAsyncIdempotencyRepository(client),
        package.IdempotencyDomainService(),
        in_flight_lease_seconds=LEASE_SECONDS,
    )

    @package.async_idempotent(  # type: ignore[untyped-decorator]
        operation="charge",
        adapter=package.JsonResultAdapter(),
        ttl_seconds=DAY_SECONDS,
        infra_param="coordinator",
    )
    async def charge(*, coordinator: object, idempotency_key: str) -> object:
        runs.append(1)
        return result

    async def call(key: str) -> object:
        return await charge(coordinator=coordinator, idempotency_key=key)

    return {"fresh": call, "replay": call}


MAKERS: dict[str, Callable[[str, object, Runs], Any]] = {
    "floor of the peers, sync": sync_floor,
    "floor of the peers, async": async_floor,
    "aws-lambda-powertools": powertools,
    "idemkit": idemkit,
    "idempotency-kit": idempotency_kit,
}


class Subject:
    """One peer and its floor's equal: calls by kind, each checked to run the work only when it is fresh."""

    def __init__(self, name: str, url: str, result: object) -> None:
        self.name = name
        self.runs: Runs = []
        self.result = result
        self.calls = MAKERS[name](url, result, self.runs)
        self.is_async = name in {"floor of the peers, async", "idemkit", "idempotency-kit"}
        self.done = f"{name}-done"

    async def check(self) -> None:
        """A fresh call runs the work, the same key again does not, and both answer the result."""
        for kind, ran in (("fresh", 1), ("replay", 1)):
            answer = self.calls[kind](self.done)
            if self.is_async:
                answer = await answer
            if len(self.runs) != ran or (kind == "replay" and self._plain(answer) != self.result):
                raise RuntimeError(f"{self.name} did not keep its result: {answer!r}")

    def _plain(self, answer: Any) -> object:
        return json.loads(answer) if isinstance(answer, bytes) else answer

    async def turn(self, kind: str, calls: int) -> float:
        call = self.calls[kind]
        keys = [self.done if kind == "replay" else f"{self.name}-{next(NUMBERS)}" for _ in range(WARMING + calls)]
        self.runs.clear()
        seconds = await self._async_turn(call, keys) if self.is_async else self._sync_turn(call, keys)
        if len(self.runs) != (len(keys) if kind == "fresh" else 0):
            raise RuntimeError(f"{self.name} ran the work {len(self.runs)} times in {len(keys)} calls")
        return seconds

    def _sync_turn(self, call: SyncCall, keys: list[str]) -> float:
        for key in keys[:WARMING]:
            call(key)
        began = time.perf_counter()
        for key in keys[WARMING:]:
            call(key)
        return time.perf_counter() - began

    async def _async_turn(self, call: AsyncCall, keys: list[str]) -> float:
        for key in keys[:WARMING]:
            await call(key)
        began = time.perf_counter()
        for key in keys[WARMING:]:
            await call(key)
        return time.perf_counter() - began


async def serve(url: str, result: object, out: Any) -> None:
    subjects, missing = {}, {}
    for name in MAKERS:
        try:
            subject = Subject(name, url, result)
            await subject.check()
            subjects[name] = subject
        except Exception as error:
            missing[name] = f"it could not be used as its manual says ({type(error).__name__})"
            print(name, repr(error), file=sys.stderr)
    versions = {name: version(name) for name in (*PEERS, "redis", "hiredis")}
    out({"contestants": list(subjects), "versions": versions, "missing": missing})
    for line in sys.stdin:
        told = json.loads(line)
        out({"seconds": await subjects[told["name"]].turn(told["kind"], told["calls"])})


def main() -> None:
    warnings.simplefilter("ignore")
    # What a library prints must not get between our lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def out(answer: object) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2]), out))


if __name__ == "__main__":
    main()
