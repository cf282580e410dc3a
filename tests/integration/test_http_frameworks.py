"""The middleware on real frameworks: FastAPI, Starlette, Litestar and Django."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from sameas import AsyncEngine, open_async_store
from sameas.once.store import Query
from sameas.web import IdempotencyMiddleware, RoutePolicy, idempotent

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": '"order-1"'}


@pytest.fixture
def engine():
    return AsyncEngine(open_async_store("memory://"))


def client(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


async def twice(app, path, **request):
    async with client(app) as http:
        first = await http.post(path, headers=KEY, **request)
        second = await http.post(path, headers=KEY, **request)
    assert first.headers["x-idempotency-replayed"] == "false", first.text
    assert second.headers["x-idempotency-replayed"] == "true"
    assert (first.status_code, first.content) == (second.status_code, second.content)
    return second


async def scopes(engine):
    return {(record.identity.scope, record.about.route) for record in (await engine.find(Query())).records}


async def test_fastapi(engine):
    from fastapi import APIRouter, FastAPI
    from pydantic import BaseModel

    class Order(BaseModel):
        amount: int

    runs = []
    app = FastAPI()
    router = APIRouter()

    @router.post("/orders/{id}/pay", status_code=201)
    @idempotent(scope="pay_order")
    async def pay(id: int, order: Order) -> dict[str, int]:
        runs.append(order.amount)
        return {"id": id, "runs": len(runs)}

    @app.post("/sync")
    def sync(order: Order) -> dict[str, int]:
        runs.append(order.amount)
        return {"amount": order.amount}

    app.include_router(router, prefix="/api")
    app.add_middleware(IdempotencyMiddleware, engine=engine)
    assert (await twice(app, "/api/orders/7/pay", json={"amount": 5})).json() == {"id": 7, "runs": 1}
    await twice(app, "/sync", json={"amount": 6})
    assert runs == [5, 6]
    async with client(app) as http:
        assert (await http.post("/api/orders/8/pay", headers=KEY, json={"amount": 5})).status_code == 422
        invalid = {"Idempotency-Key": '"invalid"'}
        refused = await http.post("/sync", headers=invalid, json={"amount": "x"})
        assert (await http.post("/sync", headers=invalid, json={"amount": "x"})).content == refused.content
    assert await scopes(engine) == {("pay_order", "/api/orders/{id}/pay"), ("POST /sync", "/sync")}


async def test_starlette_with_sub_applications_and_neighbours(engine):
    from starlette.applications import Starlette
    from starlette.background import BackgroundTask
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Mount, Route

    runs, background = [], []

    class Neighbour(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            response = await call_next(request)
            response.headers["x-neighbour"] = "1"
            return response

    @idempotent(scope="create_order", kept_headers=["x-neighbour"])
    async def create(request):
        runs.append(await request.json())
        task = BackgroundTask(background.append, 1)
        return JSONResponse({"order": "x" * 2_000}, 201, headers={"set-cookie": "s=1"}, background=task)

    async def stream(request):
        runs.append(await request.body())

        async def pieces():
            for _ in range(3):
                yield b"piece"
                await asyncio.sleep(0)

        return StreamingResponse(pieces(), media_type="text/plain")

    async def failing(request):
        runs.append("failing")
        raise LookupError("no")

    routes = [
        Mount("/sub", app=Starlette(routes=[Route("/orders", create, methods=["POST"])])),
        Route("/stream", stream, methods=["POST"]),
        Route("/failing", failing, methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(Neighbour),
            Middleware(IdempotencyMiddleware, engine=engine),
            Middleware(GZipMiddleware, minimum_size=100),
            Middleware(Neighbour),
        ],
    )
    reply = await twice(app, "/sub/orders", json={"a": 1})
    assert reply.json() == {"order": "x" * 2_000}
    assert reply.headers["content-encoding"] == "gzip"
    assert reply.headers["x-neighbour"] == "1"
    assert "set-cookie" not in reply.headers
    assert (await twice(app, "/stream", content=b"x")).text == "piece" * 3
    assert (len(runs), background) == (2, [1])
    async with client(app) as http:
        for _ in range(2):
            with pytest.raises(LookupError):
                await http.post("/failing", headers=KEY)
        assert (await http.post("/nowhere", headers=KEY)).headers.get("x-idempotency-replayed") is None
    assert runs[2:] == ["failing", "failing"]
    assert await scopes(engine) == {("create_order", "/sub/orders"), ("POST /stream", "/stream")}


async def test_with_cors_around_it_a_replay_has_the_headers_of_its_own_request(engine):
    from fastapi import FastAPI
    from fastapi.middleware.cors import CORSMiddleware

    origins = ["https://one.example", "https://two.example"]
    app = FastAPI()
    app.add_middleware(IdempotencyMiddleware, engine=engine)
    app.add_middleware(CORSMiddleware, allow_origins=origins)

    @app.post("/orders")
    async def create() -> dict[str, int]:
        return {"order": 1}

    async with client(app) as http:
        replies = [await http.post("/orders", headers={**KEY, "Origin": origin}) for origin in origins]
    assert [reply.headers["x-idempotency-replayed"] for reply in replies] == ["false", "true"]
    assert [reply.headers["access-control-allow-origin"] for reply in replies] == origins


@pytest.mark.parametrize("where", ["inside", "around"])
async def test_litestar(engine, where):
    from litestar import Litestar, Request, post
    from litestar.middleware import DefineMiddleware

    runs = []

    @post("/orders/{id:int}")
    @idempotent(scope="create_order")
    async def create(request: Request) -> dict[str, int]:
        runs.append(await request.json())
        return {"id": request.path_params["id"], "runs": len(runs)}

    @post("/plain")
    async def plain(request: Request) -> dict[str, int]:
        runs.append(await request.json())
        return {}

    if where == "inside":
        app = Litestar([create, plain], middleware=[DefineMiddleware(IdempotencyMiddleware, engine=engine)])
    else:
        app = IdempotencyMiddleware(Litestar([create, plain]), engine=engine)
    assert (await twice(app, "/orders/7", json={"a": 1})).json() == {"id": 7, "runs": 1}
    await twice(app, "/plain", json={"a": 2})
    assert len(runs) == 2
    assert {scope for scope, _ in await scopes(engine)} == {"create_order", "POST /plain"}
    async with client(app) as http:
        assert (await http.post("/nowhere", headers=KEY)).status_code == 404


@pytest.mark.parametrize("where", ["inside", "around"])
async def test_litestar_handlers_may_be_marked_above_or_below_their_route(engine, where):
    from litestar import Controller, Litestar, post
    from litestar.middleware import DefineMiddleware

    @idempotent(scope="above")
    @post("/above")
    async def above() -> None: ...

    @post("/below")
    @idempotent(scope="below")
    async def below() -> None: ...

    class Orders(Controller):
        path = "/orders"

        @idempotent(scope="in_a_class")
        @post("/{id:int}")
        async def create(self) -> None: ...

    handlers = [above, below, Orders]
    if where == "inside":
        app = Litestar(handlers, middleware=[DefineMiddleware(IdempotencyMiddleware, engine=engine)])
    else:
        app = IdempotencyMiddleware(Litestar(handlers), engine=engine)
    for path in ("/above", "/below", "/orders/7"):
        await twice(app, path)
    assert {scope for scope, _ in await scopes(engine)} == {"above", "below", "in_a_class"}


@pytest.mark.parametrize("where", ["inside", "around"])
async def test_a_line_of_the_table_is_for_one_endpoint_of_litestar(engine, where):
    from litestar import Litestar, post
    from litestar.middleware import DefineMiddleware

    @post("/orders/{id:int}")
    async def create() -> None: ...

    @post("/orders/export")
    async def export() -> None: ...

    settings = {"engine": engine, "routes": {"POST /orders/{order_id}": RoutePolicy(scope="create_order")}}
    if where == "inside":
        app = Litestar([create, export], middleware=[DefineMiddleware(IdempotencyMiddleware, **settings)])
    else:
        app = IdempotencyMiddleware(Litestar([create, export]), **settings)
    await twice(app, "/orders/7")
    await twice(app, "/orders/export")
    assert {scope for scope, _ in await scopes(engine)} == {"create_order", "POST /orders/export"}


def django_application(runs):
    import django
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse, JsonResponse
    from django.urls import path, re_path
    from django.views import View
    from django.views.decorators.csrf import csrf_exempt

    if not settings.configured:
        settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="not used", LOGGING_CONFIG=None)
        django.setup()

    @idempotent(scope="create_order")
    def create(request, id):
        runs.append(json.loads(request.body))
        response = JsonResponse({"id": id, "runs": len(runs)}, status=201)
        response.set_cookie("session", "secret")
        return response

    class Plain(View):
        @idempotent(scope="plain_view")
        async def post(self, request):
            runs.append(request.body)
            return HttpResponse("plain")

    urlpatterns[:] = [
        path("orders/<int:id>", csrf_exempt(create)),
        path("plain", csrf_exempt(Plain.as_view())),
        path("items/export", csrf_exempt(lambda request: HttpResponse("exported"))),
        path("items/<int:id>", csrf_exempt(lambda request, id: HttpResponse(f"{id}"))),
        re_path(r"^bills/(?P<id>[0-9]+)$", csrf_exempt(lambda request, id: HttpResponse(id))),
    ]
    return get_asgi_application()


urlpatterns: list[Any] = []


async def test_django(engine):
    runs = []
    app = IdempotencyMiddleware(django_application(runs), engine=engine)
    reply = await twice(app, "/orders/7", json={"a": 1})
    assert reply.json() == {"id": 7, "runs": 1}
    assert "set-cookie" not in reply.headers
    await twice(app, "/plain", content=b"x")
    assert len(runs) == 2
    assert await scopes(engine) == {("create_order", "/orders/<int:id>"), ("plain_view", "/plain")}


async def test_a_line_of_the_table_is_for_one_endpoint_of_django(engine):
    routes = {"POST /items/{item_id}": RoutePolicy(scope="item"), "/bills/{id}": RoutePolicy(scope="bill")}
    app = IdempotencyMiddleware(django_application([]), engine=engine, routes=routes)
    for path in ("/items/7", "/items/export", "/bills/7"):
        await twice(app, path)
    assert {scope for scope, _ in await scopes(engine)} == {"item", "POST /items/export", "bill"}


async def test_any_other_application_is_configured_by_the_table(engine):
    runs = []

    async def app(scope, receive, send):
        runs.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})

    guarded = IdempotencyMiddleware(app, engine=engine, routes={"POST /orders/{id}": RoutePolicy(scope="orders")})
    await twice(guarded, "/orders/7", content=b"x")
    assert await scopes(engine) == {("orders", "/orders/{id}")}
