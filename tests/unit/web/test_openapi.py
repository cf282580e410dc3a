"""The OpenAPI document of a FastAPI application shows what the middleware adds to its routes."""

import asyncio

import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient

from sameas import AsyncEngine, open_async_store
from sameas.once.policy import Policy
from sameas.once.store import Query
from sameas.web import IdempotencyMiddleware, RoutePolicy, RouteTable, idempotent, publish_once


class Order(BaseModel):
    amount: int


def make_app():
    app = FastAPI()
    router = APIRouter(prefix="/v1")

    @router.post("/orders/{id}", status_code=201)
    @idempotent(scope="create_order", key="required", expires_after=3_600)
    async def create(id: int, order: Order) -> Order:
        return order

    @app.post("/plain")
    async def plain(order: Order) -> Order:
        return order

    @app.post("/content")
    @idempotent(scope="by_content", key="content", expires_after=float("inf"))
    async def content(order: Order) -> Order:
        return order

    @app.get("/orders")
    async def read() -> list[int]:
        return []

    app.include_router(router, prefix="/api")
    return app


def operation(document, path, method="post"):
    return document["paths"][path][method]


@pytest.fixture
def document():
    app = make_app()
    app.add_middleware(IdempotencyMiddleware, engine=AsyncEngine(open_async_store("memory://")))
    return TestClient(app).get("/openapi.json").json()


def test_a_marked_route_shows_header_replies_and_expiry(document):
    shown = operation(document, "/api/v1/orders/{id}")
    (header,) = [each for each in shown["parameters"] if each["in"] == "header"]
    assert (header["name"], header["required"]) == ("Idempotency-Key", True)
    assert {"400", "409", "413", "422", "503"} <= set(shown["responses"])
    assert "application/problem+json" in shown["responses"]["422"]["content"]
    assert "application/json" in shown["responses"]["422"]["content"]
    assert shown["x-idempotency"] == {"scope": "create_order", "key": "required", "expiresAfterSeconds": 3_600}
    assert "X-Idempotency-Replayed" in shown["responses"]["201"]["headers"]


def test_a_route_under_the_defaults_shows_an_optional_header(document):
    shown = operation(document, "/plain")
    assert [each["required"] for each in shown["parameters"]] == [False]
    assert shown["x-idempotency"]["scope"] == "POST /plain"
    assert shown["x-idempotency"]["expiresAfterSeconds"] == 86_400


def test_a_route_keyed_by_content_shows_no_header(document):
    shown = operation(document, "/content")
    assert shown["parameters"] == []
    assert shown["x-idempotency"]["expiresAfterSeconds"] is None


def test_routes_that_are_left_alone_show_nothing(document):
    shown = operation(document, "/orders", "get")
    assert "x-idempotency" not in shown
    assert "409" not in shown["responses"]


def test_it_can_be_published_without_a_request_and_once():
    app = make_app()
    table = RouteTable(app, {"POST /plain": RoutePolicy(scope="by_table")}, RoutePolicy(key="off"))
    assert publish_once(app, table)
    assert publish_once(app, table)
    first = app.openapi()
    assert operation(first, "/plain")["x-idempotency"]["scope"] == "by_table"
    assert len(operation(app.openapi(), "/plain")["parameters"]) == 1
    assert not publish_once(object(), table)


def test_a_mounted_application_shows_the_scopes_that_its_records_have():
    inner = make_app()
    engine = AsyncEngine(open_async_store("memory://"))
    inner.add_middleware(IdempotencyMiddleware, engine=engine)
    outer = FastAPI()
    outer.mount("/inner", inner)
    shown = operation(TestClient(outer).get("/inner/openapi.json").json(), "/plain")
    assert shown["x-idempotency"]["scope"] == "POST /inner/plain"


def new_engine(**options):
    return AsyncEngine(open_async_store("memory://"), **options)


def told(app, path="/openapi.json"):
    return TestClient(app).get(path).json()


def other_middleware(app):
    return GZipMiddleware(app, minimum_size=1_000_000)


@pytest.mark.parametrize("between", [lambda app: app, other_middleware], ids=["at once", "below another middleware"])
def test_an_application_that_is_wrapped_shows_it_too(between):
    shown = operation(told(IdempotencyMiddleware(between(make_app()), engine=new_engine())), "/api/v1/orders/{id}")
    assert shown["x-idempotency"]["expiresAfterSeconds"] == 3_600


def test_a_wrapped_application_is_described_and_not_the_one_that_it_is_mounted_in():
    outer = make_app()
    outer.mount("/inner", IdempotencyMiddleware(make_app(), engine=new_engine()))
    shown = operation(told(outer, "/inner/openapi.json"), "/plain")
    assert shown["x-idempotency"]["scope"] == "POST /inner/plain"
    assert "x-idempotency" not in operation(told(outer), "/plain")


def record_of(engine):
    (record,) = asyncio.run(engine.find(Query())).records
    return record


@pytest.mark.parametrize("wrapped", [True, False])
def test_applications_mounted_below_show_what_is_enforced_there(wrapped):
    app, between = make_app(), FastAPI()
    between.mount("/{shop}", make_app())
    app.mount("/below", between)
    engine = new_engine()
    routes = {"POST /below/{name}/plain": RoutePolicy(key="required"), "/plain": RoutePolicy(scope="here")}
    if wrapped:
        guarded = IdempotencyMiddleware(app, engine=engine, routes=routes)
    else:
        app.add_middleware(IdempotencyMiddleware, engine=engine, routes=routes)
        guarded = app
    shown = operation(told(guarded, "/below/a/openapi.json"), "/plain")["x-idempotency"]
    assert (shown["scope"], shown["key"]) == ("POST /below/{shop}/plain", "required")
    assert operation(told(guarded), "/plain")["x-idempotency"]["scope"] == "here"
    asked = TestClient(guarded).post("/below/a/plain", json={"amount": 1}, headers={"Idempotency-Key": "a"})
    assert asked.headers["x-idempotency-replayed"] == "false"
    assert record_of(engine).identity.scope == shown["scope"]


@pytest.mark.parametrize("line", ["/api/v1/orders/{order}", "/api/v1/orders/{id:int}"])
def test_a_line_is_shown_at_the_endpoint_that_it_is_enforced_at(line):
    app = make_app()

    @app.post("/api/v1/orders/export")
    @idempotent(key="off")
    async def export() -> None: ...

    table = {f"POST {line}": RoutePolicy(key="required", expires_after=60)}
    document = told(IdempotencyMiddleware(app, engine=new_engine(), routes=table))
    assert operation(document, "/api/v1/orders/{id}")["x-idempotency"] == {
        "scope": "POST /api/v1/orders/{id}",
        "key": "required",
        "expiresAfterSeconds": 60,
    }
    assert "x-idempotency" not in operation(document, "/api/v1/orders/export")


def test_the_expiry_that_is_shown_is_the_engines_where_the_route_says_none():
    engine = new_engine(policy=Policy(retention=7_200), policies={"POST /plain": Policy(retention=None)})
    app = make_app()
    app.post("/other")(lambda order: order)
    document = told(IdempotencyMiddleware(app, engine=engine))
    shown = {path: operation(document, path)["x-idempotency"]["expiresAfterSeconds"] for path in ("/plain", "/other")}
    assert shown == {"/plain": None, "/other": 7_200}
