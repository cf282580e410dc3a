"""A FastAPI application behind the middleware, to be served by a real uvicorn in a process of its own.

The environment is that of `tests.unit.web.served`. Answers name the process that gave them.
"""

import asyncio
import os
from pathlib import Path

from fastapi import FastAPI, Response, WebSocket
from fastapi.responses import StreamingResponse

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, idempotent

# Long enough for a loaded machine to renew it, and as long as a test waits for a server that is stopped.
LEASE_SECONDS = 3.0
ETAG = '"1"'


def make_app() -> FastAPI:
    runs, gate = Path(os.environ["HTTP_TEST_RUNS"]), Path(os.environ["HTTP_TEST_GATE"])
    engine = AsyncEngine(open_async_store(os.environ["HTTP_TEST_STORE"]))
    app = FastAPI()

    def ran(name):
        with runs.open("a") as file:
            file.write(f"{name}\n")

    async def opened():
        while not gate.exists():
            await asyncio.sleep(0.01)

    @app.get("/ping")
    async def ping() -> dict[str, int]:
        return {"pid": os.getpid()}

    @app.head("/orders/{id}")
    @idempotent(scope="look", methods=["HEAD"])
    async def look(id: int) -> Response:
        ran("look")
        return Response(headers={"Content-Length": "1234", "ETag": ETAG})

    @app.head("/orders")
    @idempotent(scope="look_at_all", methods=["HEAD"])
    async def look_at_all() -> StreamingResponse:
        ran("look_at_all")
        return StreamingResponse(iter(()), media_type="text/plain")

    @app.delete("/orders/{id}", status_code=204)
    async def remove(id: int) -> None:
        ran("remove")

    @app.put("/orders/{id}")
    async def unchanged(id: int) -> Response:
        ran("unchanged")
        return Response(status_code=304, headers={"ETag": ETAG})

    @app.websocket("/echo")
    async def echo(socket: WebSocket) -> None:
        await socket.accept(headers=[(b"x-key", socket.headers["idempotency-key"].encode())])
        async for text in socket.iter_text():
            await socket.send_text(text)

    @app.post("/held")
    @idempotent(scope="held", lease=LEASE_SECONDS)
    async def held() -> dict[str, int]:
        ran("held")
        await opened()
        return {"pid": os.getpid()}

    @app.post("/stream")
    @idempotent(scope="stream", lease=LEASE_SECONDS, delivery="passthrough")
    async def stream() -> StreamingResponse:
        ran("stream")

        async def pieces():
            yield f"begun by {os.getpid()}; "
            await opened()
            yield f"ended by {os.getpid()}"

        return StreamingResponse(pieces(), media_type="text/plain")

    app.add_middleware(IdempotencyMiddleware, engine=engine)
    return app
