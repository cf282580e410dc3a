"""A mark that the middleware cannot see is refused by name; every mark of a framework that it knows is seen."""

import pytest

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, RoutePolicy, idempotent
from sameas.web.route import UnseenMark
from tests.integration.test_http_frameworks import client, django_application, scopes, twice

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": '"order-1"'}


@pytest.fixture
def engine():
    return AsyncEngine(open_async_store("memory://"))


def flask_app():
    from flask import Flask

    flask = Flask("shop")

    @flask.post("/orders")
    @idempotent(scope="create_order", key="required")
    def create_order():
        return {"order": 1}

    @flask.get("/orders")
    def orders():
        return []

    return flask


def flask_by_a2wsgi():
    from a2wsgi import WSGIMiddleware

    return WSGIMiddleware(flask_app())


def flask_by_asgiref():
    from asgiref.wsgi import WsgiToAsgi

    return WsgiToAsgi(flask_app())


def flask_class_view():
    from a2wsgi import WSGIMiddleware
    from flask import Flask
    from flask.views import MethodView

    class Orders(MethodView):
        @idempotent(scope="create_order")
        def post(self):
            return {}

    flask = Flask("shop")
    flask.add_url_rule("/orders", view_func=Orders.as_view("orders"))
    return WSGIMiddleware(flask.wsgi_app)


def flask_at_work():
    """Its templates know the request of the moment, and there is none."""
    from a2wsgi import WSGIMiddleware

    flask = flask_app()
    assert "request" in flask.jinja_env.globals
    return WSGIMiddleware(flask)


def quart_app():
    from quart import Quart

    quart = Quart("shop")

    @quart.post("/orders")
    @idempotent(scope="create_order")
    async def create_order():
        return {"order": 1}

    return quart


def hidden_starlette():
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    @idempotent(scope="create_order")
    async def create_order(request):
        return JSONResponse({})

    inner = Starlette(routes=[Route("/orders", create_order, methods=["POST"])])

    async def middleware(scope, receive, send):
        await inner(scope, receive, send)

    return middleware


def mounted_below_fastapi():
    from fastapi import FastAPI

    app = FastAPI()
    app.mount("/shop", flask_by_a2wsgi())
    return app


def mounted_below_litestar():
    from litestar import Litestar, asgi

    return Litestar([asgi("/shop", is_mount=True, copy_scope=True)(flask_by_a2wsgi())])


UNSEEN = [
    (flask_by_a2wsgi, "/orders", "create_order"),
    (flask_by_asgiref, "/orders", "create_order"),
    (flask_at_work, "/orders", "create_order"),
    (flask_class_view, "/orders", "Orders.post"),
    (quart_app, "/orders", "create_order"),
    (hidden_starlette, "/orders", "create_order"),
    (mounted_below_fastapi, "/shop/orders", "create_order"),
    (mounted_below_litestar, "/shop/orders", "create_order"),
]


@pytest.mark.parametrize(("make", "path", "name"), UNSEEN)
async def test_a_mark_that_cannot_be_seen_is_refused_at_its_first_request_by_name(engine, make, path, name):
    app = IdempotencyMiddleware(make(), engine=engine)
    async with client(app) as http:
        for headers in (KEY, {}):
            with pytest.raises(UnseenMark, match=rf"{name}.*routes="):
                await http.post(path, headers=headers)


async def started(app):
    """What a server hears of an application that it starts."""
    said = []

    async def receive():
        return {"type": "lifespan.startup"}

    async def send(message):
        said.append(message)

    with pytest.raises(UnseenMark):
        await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)
    return said


@pytest.mark.parametrize(("make", "path", "name"), UNSEEN)
async def test_a_mark_that_cannot_be_seen_is_refused_at_start_by_name(engine, make, path, name):
    (failed,) = await started(IdempotencyMiddleware(make(), engine=engine))
    assert failed["type"] == "lifespan.startup.failed"
    assert name in failed["message"]


async def test_the_table_says_what_to_do_where_a_mark_cannot_be_seen(engine):
    app = IdempotencyMiddleware(quart_app(), engine=engine, routes={"POST /orders": RoutePolicy(scope="by_table")})
    await twice(app, "/orders")
    assert {scope for scope, _ in await scopes(engine)} == {"by_table"}


@pytest.mark.parametrize("mode", ["shadow", "off"])
async def test_where_nothing_is_refused_an_unseen_mark_is_not_either(engine, mode, caplog):
    app = IdempotencyMiddleware(quart_app(), engine=engine, mode=mode)
    async with client(app) as http:
        assert (await http.post("/orders", headers=KEY)).status_code == 200
    assert ("create_order" in caplog.text) == (mode == "shadow")


async def test_an_application_without_marks_is_not_refused(engine):
    from quart import Quart

    quart = Quart("shop")

    @quart.post("/orders")
    async def create_order():
        return {"order": 1}

    await twice(IdempotencyMiddleware(quart, engine=engine), "/orders")


@pytest.mark.parametrize("where", ["inside", "around", "mounted"])
async def test_litestar_runs_a_marked_function_in_a_thread_under_its_mark(engine, where):
    from litestar import Litestar, post
    from litestar.middleware import DefineMiddleware
    from starlette.applications import Starlette
    from starlette.routing import Mount

    @post("/orders", sync_to_thread=True)
    @idempotent(scope="create_order", key="required")
    def create() -> dict[str, int]:
        return {"order": 1}

    path = "/orders"
    if where == "inside":
        app = Litestar([create], middleware=[DefineMiddleware(IdempotencyMiddleware, engine=engine)])
    elif where == "around":
        app = IdempotencyMiddleware(Litestar([create]), engine=engine)
    else:
        path = "/shop/orders"
        app = IdempotencyMiddleware(Starlette(routes=[Mount("/shop", app=Litestar([create]))]), engine=engine)
    async with client(app) as http:
        assert (await http.post(path)).status_code == 400
    await twice(app, path)
    assert {scope for scope, _ in await scopes(engine)} == {"create_order"}


@pytest.mark.parametrize("where", ["inside", "around"])
async def test_marks_in_a_controller_of_litestar_are_seen_on_every_path(engine, where):
    from litestar import Controller, Litestar, post
    from litestar.middleware import DefineMiddleware

    class Orders(Controller):
        path = "/orders"

        @post("/{id:int}")
        @idempotent(scope="below")
        async def create(self) -> None: ...

        @post("/{id:int}/pay", sync_to_thread=True)
        @idempotent(scope="in_thread")
        def pay(self) -> None: ...

    if where == "inside":
        app = Litestar([Orders], middleware=[DefineMiddleware(IdempotencyMiddleware, engine=engine)])
    else:
        app = IdempotencyMiddleware(Litestar([Orders]), engine=engine)
    async with client(app) as http:
        for number in range(3):
            key = {"Idempotency-Key": f"k-{number}"}
            for path in (f"/orders/{number}", f"/orders/{number}/pay"):
                assert (await http.post(path, headers=key)).headers["x-idempotency-replayed"] == "false"
    assert {scope for scope, _ in await scopes(engine)} == {"below", "in_thread"}


async def test_django_below_starlette_is_seen(engine):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    runs = []
    app = IdempotencyMiddleware(Starlette(routes=[Mount("/shop", app=django_application(runs))]), engine=engine)
    await twice(app, "/shop/orders/7", json={"a": 1})
    assert await scopes(engine) == {("create_order", "/shop/orders/<int:id>")}
    assert len(runs) == 1
