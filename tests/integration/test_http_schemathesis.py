"""Schemathesis asks an application behind the middleware whatever its published contract allows, and what it does not."""

import asyncio
from typing import Annotated, Literal

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel, ConfigDict, Field
from schemathesis import GenerationMode

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, RoutePolicy, RouteTable, idempotent, publish_once


class Order(BaseModel):
    # A schema says what is sent, not what could be made of it.
    model_config = ConfigDict(strict=True, extra="forbid")

    item: Annotated[str, Field(max_length=100)]
    currency: Literal["EUR", "NOK"] = "EUR"
    tags: list[str] = []


class Paid(BaseModel):
    id: int
    item: str


engine = AsyncEngine(open_async_store("memory://"))


def make_app():
    app = FastAPI()

    @app.post("/orders", status_code=201)
    @idempotent(scope="create_order", key="required")
    async def create(order: Order) -> Paid:
        return Paid(id=1, item=order.item)

    @app.put("/replaced/{id}")
    @idempotent(scope="replace_order")
    async def replace(id: int, order: Order) -> Paid:
        return Paid(id=id, item=order.item)

    @app.post("/content")
    @idempotent(scope="by_content", key="content", expires_after=60)
    async def content(order: Order) -> Paid:
        return Paid(id=2, item=order.item)

    @app.delete("/orders/{id}", status_code=204)
    async def remove(id: int) -> None:
        return None

    app.add_middleware(IdempotencyMiddleware, engine=engine)
    publish_once(app, RouteTable(app, {}, RoutePolicy()))
    return app


@pytest.fixture(scope="module")
def api():
    return schemathesis.openapi.from_asgi("/openapi.json", make_app())


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(
    ("path", "method"),
    [("/orders", "POST"), ("/replaced/{id}", "PUT"), ("/content", "POST"), ("/orders/{id}", "DELETE")],
)
def test_nothing_is_found(api, path, method, mode):
    @given(case=api[path][method].as_strategy(generation_mode=mode))
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    def search(case):
        try:
            case.call_and_validate()
            # The same again is a replay, or is refused again: either must fit the contract too.
            case.call_and_validate()
        finally:
            # Another request under a used key is refused, however valid: each case has its keys for itself.
            asyncio.run(engine.forget_where(tenant=""))

    search()


def test_the_contract_that_is_tested_is_the_published_one(api):
    assert {operation.ok().label for operation in api.get_all_operations()} == {
        "POST /orders",
        "PUT /replaced/{id}",
        "POST /content",
        "DELETE /orders/{id}",
    }
