"""The applications that take turns: one Starlette route, bare, behind the floor, behind ours, and behind ours with a
local tier. uvicorn makes one of them by `make_app` from the environment.
"""

import os

from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from bench.http.floor import FloorMiddleware
from sameas import AsyncEngine, open_async_store
from sameas.connections import open_backend
from sameas.once.store import AsyncStore
from sameas.stores.tiered import TieredBackend
from sameas.web import IdempotencyMiddleware, idempotent

BARE, FLOOR, OURS, TIER = "bare application", "floor: SET NX and SET by hand", "sameas", "sameas, local tier"
NAMES = (BARE, FLOOR, OURS, TIER)
# Longer than any turn: what is measured is the tier, not its refreshing.
TIER_SECONDS = 600.0
LARGE = b"x" * 262_144


@idempotent(scope="create_order")
async def create(request):
    order = await request.json()
    return JSONResponse({"id": 1, "item": order["item"]}, 201)


@idempotent(scope="large")
async def large(request):
    return PlainTextResponse(LARGE)


def application(name: str, url: str) -> Starlette:
    """One of the four, on the Redis at `url`."""
    middleware = {
        BARE: list,
        FLOOR: lambda: [Middleware(FloorMiddleware, redis=Redis.from_url(url))],
        OURS: lambda: [Middleware(IdempotencyMiddleware, engine=AsyncEngine(open_async_store(url)))],
        TIER: lambda: [
            Middleware(
                IdempotencyMiddleware,
                engine=AsyncEngine(AsyncStore(TieredBackend(open_backend(url), ttl=TIER_SECONDS))),
            )
        ],
    }
    routes = [Route("/orders", create, methods=["POST"]), Route("/large", large, methods=["POST"])]
    return Starlette(routes=routes, middleware=middleware[name]())


def make_app() -> Starlette:
    return application(os.environ["BENCH_HTTP_APP"], os.environ["BENCH_HTTP_REDIS"])
