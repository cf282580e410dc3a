"""The applications that take turns: one Starlette route, bare, behind the floor, behind ours, and behind ours with a
local tier. uvicorn makes one of them by `make_app` from the environment.
"""

import os
from time import process_time

from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from bench.http.floor import FloorMiddleware
from sameas import AsyncEngine, open_async_store
from sameas.connections import open_backend
from sameas.once.store import AsyncStore
from sameas.stores.tiered import TieredBackend
from sameas.web import IdempotencyMiddleware, idempotent

BARE, FLOOR, OURS, TIER = "bare application", "floor: SET NX and SET by hand", "sameas", "sameas, local tier"
NAMES = (BARE, FLOOR, OURS, TIER)
# Ours once more, in a process of its own for the slow clients.
BESIDE = "sameas, beside slow clients"
# Longer than any turn: what is measured is the tier, not its refreshing.
TIER_SECONDS = 600.0
# More than a socket's buffers hold, which is 4 MB on Linux, and in pieces: the handler waits for a client that is slow.
PIECE = b"x" * 65_536
PIECES = 96


@idempotent(scope="create_order")
async def create(request):
    order = await request.json()
    return JSONResponse({"id": 1, "item": order["item"]}, 201)


@idempotent(scope="large", delivery="passthrough")
async def large(request):
    async def pieces():
        request.app.state.waiting += 1
        for _ in range(PIECES):
            yield PIECE
        request.app.state.waiting -= 1

    return StreamingResponse(pieces(), media_type="text/plain")


async def state(request):
    """How many large answers are begun and not all given away, and the processor time that the server has taken."""
    return JSONResponse({"waiting": request.app.state.waiting, "processor_seconds": process_time()})


def application(name: str, url: str) -> Starlette:
    """One of them, on the Redis at `url`."""
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
    posts = {"/orders": create, "/large": large}
    routes = [Route("/state", state), *(Route(path, post, methods=["POST"]) for path, post in posts.items())]
    app = Starlette(routes=routes, middleware=middleware[OURS if name == BESIDE else name]())
    app.state.waiting = 0
    return app


def make_app() -> Starlette:
    return application(os.environ["BENCH_HTTP_APP"], os.environ["BENCH_HTTP_REDIS"])
