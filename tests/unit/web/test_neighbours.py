"""Starlette's BaseHTTPMiddleware around the middleware or inside it: it breaks off answers in ways of its own."""

import asyncio

import httpx
import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.responses import StreamingResponse
from starlette.routing import Route

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, RoutePolicy

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": '"k"'}


class Neighbour(BaseHTTPMiddleware):
    """Hands everything on, and fails the first time where it is told to."""

    def __init__(self, app, *, failures=()):
        super().__init__(app)
        self.failures = list(failures)

    async def dispatch(self, request, call_next):
        response = await call_next(request)
        if self.failures:
            raise self.failures.pop()
        return response


def application(handler, *, outside=(), inside=(), **policy):
    ours = Middleware(
        IdempotencyMiddleware, engine=AsyncEngine(open_async_store("memory://")), defaults=RoutePolicy(**policy)
    )
    return Starlette(routes=[Route("/", handler, methods=["POST"])], middleware=[*outside, ours, *inside])


def client_of(app):
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.mark.parametrize("delivery", ["hold", "passthrough"])
async def test_a_handler_outlives_a_neighbour_that_fails_over_its_answer(delivery):
    runs, after = [], asyncio.Event()

    async def handler(request):
        runs.append(1)

        async def pieces():
            for _ in range(3):
                yield b"piece"
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), background=BackgroundTask(after.set))

    app = application(handler, outside=[Middleware(Neighbour, failures=[ValueError("no")])], delivery=delivery)
    async with client_of(app) as client:
        assert (await client.post("/", headers=KEY)).status_code == 500
        async with asyncio.timeout(10):
            await after.wait()
        again = await client.post("/", headers=KEY)
    assert (again.text, again.headers["x-idempotency-replayed"]) == ("piece" * 3, "true")
    assert len(runs) == 1


async def test_an_answer_that_breaks_off_before_its_length_is_not_kept():
    runs = []

    async def handler(request):
        runs.append(1)

        async def pieces():
            yield b"half,"
            if len(runs) == 1:
                raise RuntimeError("the database went away")
            yield b"other half"

        return StreamingResponse(pieces(), headers={"content-length": "15"})

    async with client_of(application(handler, inside=[Middleware(Neighbour)])) as client:
        assert (await client.post("/", headers=KEY)).status_code == 500
        again = await client.post("/", headers=KEY)
    assert (again.text, again.headers["x-idempotency-replayed"]) == ("half,other half", "false")
    assert len(runs) == 2
