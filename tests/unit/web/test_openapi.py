"""The OpenAPI document of a FastAPI application shows what the middleware adds to its routes."""

import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.testclient import TestClient

from sameas import AsyncEngine, open_async_store
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
