"""What a framework answers before the handler is entered releases the key; what the handler answers is kept."""

import pytest

from sameas import AsyncEngine, open_async_store
from sameas.web import IdempotencyMiddleware, idempotent
from tests.integration.test_http_frameworks import client

pytestmark = pytest.mark.anyio

KEY = {"Idempotency-Key": '"order-1"'}


@pytest.fixture
def engine():
    return AsyncEngine(open_async_store("memory://"))


async def asked(app, path, **request):
    """The statuses of two equal requests, and whether the second was a replay."""
    async with client(app) as http:
        first = await http.post(path, headers=KEY, **request)
        second = await http.post(path, headers=KEY, **request)
    assert first.headers["x-idempotency-replayed"] == "false"
    assert first.status_code == second.status_code, second.text
    return first.status_code, second.headers["x-idempotency-replayed"] == "true"


@pytest.mark.parametrize("mark", [idempotent(scope="pay"), lambda endpoint: endpoint], ids=["marked", "plain"])
@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
async def test_fastapi(engine, mark, included, is_async):
    from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException
    from pydantic import BaseModel

    class Order(BaseModel):
        amount: int

    def allowed(x_role: str = Header("clerk")):
        if x_role != "clerk":
            raise HTTPException(403)

    app = FastAPI()
    router = APIRouter() if included else app

    def answer(order):
        if order.amount < 0:
            raise HTTPException(422, "a negative amount")
        return {"amount": order.amount}

    if is_async:

        @router.post("/pay", dependencies=[Depends(allowed)])
        @mark
        async def pay(order: Order) -> dict[str, int]:
            return answer(order)

    else:

        @router.post("/pay", dependencies=[Depends(allowed)])
        @mark
        def pay(order: Order) -> dict[str, int]:
            return answer(order)

    if included:
        app.include_router(router, prefix="/api")
    app.add_middleware(IdempotencyMiddleware, engine=engine)
    path = "/api/pay" if included else "/pay"
    assert await asked(app, path, json={"amount": "x"}) == (422, False)
    # The key is free for the request as it was meant.
    assert await asked(app, path, json={"amount": -1}) == (422, True)
    async with client(app) as http:
        other = {"Idempotency-Key": '"order-2"'}
        assert (await http.post(path, headers={**other, "X-Role": "guest"}, json={"amount": 1})).status_code == 403
        assert (await http.post(path, headers=other, json={"amount": 1})).status_code == 200
        assert (await http.get("/openapi.json")).json()["paths"][path]["post"]["requestBody"]


async def test_fastapi_below_fastapi(engine):
    from fastapi import FastAPI, HTTPException

    inner, app = FastAPI(), FastAPI()

    @inner.post("/pay")
    async def pay(amount: int) -> int:
        raise HTTPException(422)

    app.mount("/shop", inner)
    app.add_middleware(IdempotencyMiddleware, engine=engine)
    assert await asked(app, "/shop/pay") == (422, False)
    assert await asked(app, "/shop/pay?amount=1") == (422, True)


async def test_a_route_of_fastapi_that_yields_is_left_as_it_is(engine):
    from collections.abc import AsyncIterable

    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/lines")
    async def lines() -> AsyncIterable[int]:
        yield 1
        yield 2

    app.add_middleware(IdempotencyMiddleware, engine=engine)
    assert await asked(app, "/lines") == (200, True)


async def test_starlette(engine):
    from starlette.applications import Starlette
    from starlette.endpoints import HTTPEndpoint
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    class Gate(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            if "closed" in request.query_params:
                return JSONResponse({}, 403)
            return await call_next(request)

    async def refuse(request):
        return JSONResponse({}, 422)

    class Refuse(HTTPEndpoint):
        async def post(self, request):
            return JSONResponse({}, 422)

    app = Starlette(
        routes=[
            Route("/function", refuse, methods=["POST"]),
            Route("/gated", refuse, methods=["POST"], middleware=[Middleware(Gate)]),
            Route("/class", Refuse),
        ],
        middleware=[Middleware(IdempotencyMiddleware, engine=engine), Middleware(Gate)],
    )
    for path in ("/function", "/gated", "/class"):
        assert await asked(app, f"{path}?closed=1") == (403, False)
        assert await asked(app, path) == (422, True)


async def test_a_redirect_from_before_the_handler_is_followed_with_the_same_key(engine):
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.httpsredirect import HTTPSRedirectMiddleware
    from starlette.responses import JSONResponse, RedirectResponse
    from starlette.routing import Route

    async def pay(request):
        return JSONResponse({"paid": 1}, 201)

    async def lead_on(request):
        return RedirectResponse("/orders/1", 303)

    app = Starlette(
        routes=[Route("/pay", pay, methods=["POST"]), Route("/order", lead_on, methods=["POST"])],
        middleware=[Middleware(IdempotencyMiddleware, engine=engine), Middleware(HTTPSRedirectMiddleware)],
    )
    async with client(app) as http:
        insecure = await http.post("http://testserver/pay", headers=KEY)
        assert (insecure.status_code, insecure.headers["location"]) == (307, "https://testserver/pay")
        for replayed in ("false", "true"):
            paid = await http.post(insecure.headers["location"], headers=KEY)
            assert (paid.status_code, paid.headers["x-idempotency-replayed"]) == (201, replayed)
    assert await asked(app, "https://testserver/order") == (303, True)


@pytest.mark.parametrize("where", ["inside", "around"])
@pytest.mark.parametrize("in_thread", [True, False])
async def test_litestar(engine, where, in_thread):
    from litestar import Litestar, post
    from litestar.exceptions import ClientException
    from litestar.middleware import DefineMiddleware
    from litestar.params import FromQuery

    @post("/pay", sync_to_thread=in_thread)
    def pay(amount: FromQuery[int]) -> dict[str, int]:
        if amount < 0:
            raise ClientException("a negative amount", status_code=422)
        return {"amount": amount}

    if where == "inside":
        app = Litestar([pay], middleware=[DefineMiddleware(IdempotencyMiddleware, engine=engine)])
    else:
        app = IdempotencyMiddleware(Litestar([pay]), engine=engine)
    assert await asked(app, "/pay?amount=x") == (400, False)
    assert await asked(app, "/pay?amount=-1") == (422, True)


async def test_django(engine):
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.test import override_settings
    from django.urls import include, path
    from django.views import View
    from django.views.decorators.csrf import csrf_exempt

    from tests.integration import test_http_frameworks as module

    module.django_application([])

    def refuse(request):
        return HttpResponse(status=422)

    class Refuse(View):
        async def post(self, request):
            return HttpResponse(status=422)

    module.urlpatterns[:] = [
        path("refuse", csrf_exempt(refuse)),
        path("below/", include([path("class", csrf_exempt(Refuse.as_view()))])),
        path("protected", refuse),
    ]
    with override_settings(MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"], LOGGING_CONFIG=None):
        app = IdempotencyMiddleware(get_asgi_application(), engine=engine)
        assert await asked(app, "/refuse") == (422, True)
        assert await asked(app, "/below/class") == (422, True)
        assert await asked(app, "/protected") == (403, False)


async def test_under_shadow_an_answer_before_the_handler_is_fresh_again(engine):
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/pay")
    async def pay(amount: int) -> int:
        return amount

    guarded = IdempotencyMiddleware(app, engine=engine, mode="shadow")
    async with client(guarded) as http:
        for _ in range(2):
            assert (await http.post("/pay", headers=KEY)).status_code == 422
    assert [shadowed.verdict for shadowed in guarded.shadow.latest] == ["fresh", "fresh"]
