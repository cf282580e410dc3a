"""Schemathesis asks an application behind the middleware whatever its published contract allows, and what it does not.

Each case has a key of its own wherever it has one that the contract allows: another request under a used key is refused,
however valid it is. All phases are run: examples and coverage of the contract, made-up cases, and sequences.
"""

import re
from itertools import count
from typing import Annotated, Literal

import schemathesis
from fastapi import FastAPI, HTTPException
from hypothesis import HealthCheck, settings
from pydantic import BaseModel, ConfigDict, Field
from schemathesis.specs.openapi.checks import allow_header_conformance

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, idempotent

BOUNDED = settings(
    max_examples=30,
    stateful_step_count=6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
HEADER = "Idempotency-Key"
NOT_FOUND = {404: {"description": "There is no such order"}}
OPERATIONS = {"POST /orders", "GET /orders/{id}", "PUT /orders/{id}", "DELETE /orders/{id}", "POST /content"}


class Order(BaseModel):
    # A schema says what is sent, not what could be made of it.
    model_config = ConfigDict(strict=True, extra="forbid")

    item: Annotated[str, Field(max_length=100)]
    currency: Literal["EUR", "NOK"] = "EUR"
    tags: list[str] = []


class Placed(BaseModel):
    id: int
    item: str


def make_app():
    app = FastAPI()
    orders: dict[int, Placed] = {}
    numbers = count(1)

    def known(id: int) -> Placed:
        if id not in orders:
            raise HTTPException(404)
        return orders[id]

    @app.post("/orders", status_code=201)
    @idempotent(scope="create_order", key="required")
    async def create(order: Order) -> Placed:
        placed = Placed(id=next(numbers), item=order.item)
        orders[placed.id] = placed
        return placed

    @app.get("/orders/{id}", responses=NOT_FOUND)
    async def read(id: int) -> Placed:
        return known(id)

    @app.put("/orders/{id}", responses=NOT_FOUND)
    @idempotent(scope="replace_order")
    async def replace(id: int, order: Order) -> Placed:
        known(id)
        orders[id] = Placed(id=id, item=order.item)
        return orders[id]

    @app.delete("/orders/{id}", status_code=204, responses=NOT_FOUND)
    async def remove(id: int) -> None:
        known(id)
        del orders[id]

    @app.post("/content")
    @idempotent(scope="by_content", key="content", expires_after=60)
    async def content(order: Order) -> Placed:
        return Placed(id=2, item=order.item)

    return IdempotencyMiddleware(app, engine=AsyncEngine(open_async_store("memory://")))


api = schemathesis.openapi.from_asgi("/openapi.json", make_app())


def name(case):
    """A case with a key that is allowed gets one of its own, the same whenever it is called."""
    patterns = [each.definition["schema"]["pattern"] for each in case.operation.headers if each.name == HEADER]
    key = (case.headers or {}).get(HEADER)
    if patterns and isinstance(key, str) and re.search(patterns[0], key):
        case.headers[HEADER] = f'"{case.id}"'


@api.parametrize()
@BOUNDED
def test_nothing_is_found(case):
    name(case)
    # Which methods Starlette says that a path has is its own affair.
    case.call_and_validate(excluded_checks=[allow_header_conformance])
    # The same again is a replay, or is refused again: either must fit the contract too.
    case.call_and_validate(excluded_checks=[allow_header_conformance])


def test_nothing_is_found_in_sequences():
    answered = set()

    class Sequences(api.as_state_machine()):
        def before_call(self, case):
            name(case)

        def after_call(self, response, case):
            answered.add((case.operation.label, response.status_code))

    Sequences.run(settings=BOUNDED)
    # They got as far as orders that they had placed themselves.
    assert {("PUT /orders/{id}", 200), ("DELETE /orders/{id}", 204)} <= answered


def test_the_contract_that_is_tested_is_the_published_one():
    assert {operation.ok().label for operation in api.get_all_operations()} == OPERATIONS
