"""A Starlette application behind the middleware, to be served by a real uvicorn in a process of its own.

Its store is the URL in HTTP_TEST_STORE; each run of a handler is a line in the file HTTP_TEST_RUNS. Every observer that
is shipped is told, and writes to the folder `observed` beside that file.
"""

import asyncio
import os
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from sameas import AsyncEngine, open_async_store
from sameas.identity.scope import Principal
from sameas.web import IdempotencyMiddleware, idempotent
from tests.servers.every_observer import every_observer


class Desk:
    """Any bearer token is a user of that name."""

    async def authenticate(self, credentials):
        return None if credentials is None else Principal(tenant_id="tenant", user_id="ann")


def make_app() -> Starlette:
    store, runs = os.environ["HTTP_TEST_STORE"], Path(os.environ["HTTP_TEST_RUNS"])
    gate = Path(os.environ.get("HTTP_TEST_GATE", "/nonexistent"))
    engine = AsyncEngine(open_async_store(store), observers=every_observer(runs.parent / "observed"))

    def ran(name):
        with runs.open("a") as file:
            file.write(f"{name}\n")

    @idempotent(scope="create_order", key="required", public=True)
    async def create(request):
        order = await request.json()
        ran("create")
        return JSONResponse({"item": order["item"]}, 201, headers={"Set-Cookie": "session=cookie-canary"})

    @idempotent(scope="slow", public=True)
    async def slow(request):
        ran("slow")
        while not gate.exists():
            await asyncio.sleep(0.01)
        return JSONResponse({"slow": True})

    @idempotent(scope="large", public=True, keep_limit=8_000_000)
    async def large(request):
        ran("large")
        return StreamingResponse((b"x" * 65_536 for _ in range(64)), media_type="text/plain")

    @idempotent(scope="upload", public=True, body_limit=500_000_000)
    async def upload(request):
        ran("upload")
        size = 0
        async for piece in request.stream():
            size += len(piece)
        return JSONResponse({"size": size})

    async def ping(request):
        return JSONResponse({"pid": os.getpid()})

    posts = {"/orders": create, "/slow": slow, "/large": large, "/upload": upload}
    return Starlette(
        routes=[Route("/ping", ping), *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items())],
        middleware=[Middleware(IdempotencyMiddleware, engine=engine, authenticator=Desk())],
    )
