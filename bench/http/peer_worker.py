"""Other middlewares from PyPI, in a process of their own that sees their packages and the standard library only.

`python -S peer_worker.py URL ROUNDS CALLS`: each is used as its manual says and takes turns with the floor, in this
process; the answer is one line of JSON with the medians, in microseconds of wall and of processor time.
"""

import json
import sys
from importlib import import_module
from importlib.metadata import version
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.append(str(Path(__file__).parent))

PEERS = {"snok": "asgi-idempotency-header", "idemkit": "idemkit"}
NUMBERS = count(1_000_000_000)


def bare():
    responses = import_module("starlette.responses")
    routing = import_module("starlette.routing")

    async def create(request):
        order = await request.json()
        return responses.JSONResponse({"id": 1, "item": order["item"]}, 201)

    return import_module("starlette.applications").Starlette(
        routes=[routing.Route("/orders", create, methods=["POST"])]
    )


def floor(url):
    client = import_module("redis.asyncio").Redis.from_url(url)
    return import_module("floor").FloorMiddleware(bare(), redis=client)


def snok(url):
    package = import_module("idempotency_header_middleware")
    backend = import_module("idempotency_header_middleware.backends.redis")
    client = import_module("redis.asyncio").Redis.from_url(url, decode_responses=True)
    return package.IdempotencyHeaderMiddleware(bare(), backend=backend.RedisBackend(redis=client))


def idemkit(url):
    package = import_module("idemkit")
    config = package.HttpConfig(scope=lambda request: "bench")
    return package.IdempotencyMiddleware(bare(), backend=package.RedisBackend.from_url(url), config=config)


async def measured(url, rounds, calls):
    request = import_module("asking").request
    apps, missing = {"floor": floor(url)}, {}
    for name, make in (("snok", snok), ("idemkit", idemkit)):
        try:
            apps[name] = make(url)
            await request(apps[name], next(NUMBERS))
        except Exception as error:
            apps.pop(name, None)
            missing[name] = type(error).__name__
    taken = {}
    for _ in range(rounds):
        for kind in ("fresh", "replay"):
            for name, app in apps.items():
                number = next(NUMBERS)
                await request(app, number)
                wall, processor = perf_counter(), process_time()
                for _ in range(calls):
                    await request(app, next(NUMBERS) if kind == "fresh" else number)
                spent = (perf_counter() - wall) / calls * 1e6, (process_time() - processor) / calls * 1e6
                taken.setdefault(kind, {}).setdefault(name, []).append(spent)
    medians = {
        kind: {name: [median(clock) for clock in zip(*times, strict=True)] for name, times in names.items()}
        for kind, names in taken.items()
    }
    versions = {name: version(package) for name, package in PEERS.items() if name in apps}
    return {"medians": medians, "missing": missing, "versions": versions}


if __name__ == "__main__":
    answer = import_module("uvloop").run(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    print(json.dumps(answer))
