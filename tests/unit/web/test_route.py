"""Policies are checked when they are made, and found by table, mark and default."""

from math import inf

import pytest
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Host, Mount, Route, Router

from sameas import AsyncEngine
from sameas.identity.scope import ScopeError
from sameas.once.policy import Policy
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from sameas.web import table as module
from sameas.web.route import RoutePolicy, every_status, idempotent, marked, settled_statuses
from sameas.web.table import RouteTable, Rule
from tests.unit.web.asking import http_scope


@pytest.mark.parametrize(
    "settings",
    [
        {"key": "maybe"},
        {"on_busy": "shout"},
        {"over_limit": "drop"},
        {"delivery": "pigeon"},
        {"expires_after": 0},
        {"wait_for": -1},
        {"lease": 100, "expires_after": 50},
        {"body_limit": -1},
        {"methods": ["BREW"]},
        {"kept_headers": ["Set-Cookie"]},
        {"exclude_fields": ["a..b"]},
        {"key_pattern": "[a-z]*"},
        {"scope": "https://example.com/orders"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(settings):
    with pytest.raises((ValueError, ScopeError)):
        RoutePolicy(**settings)


def test_which_statuses_are_kept():
    kept = {
        status
        for status in (200, 201, 204, 304, 400, 401, 404, 408, 409, 422, 425, 429, 500, 503)
        if settled_statuses(status)
    }
    assert kept == {200, 201, 204, 304, 400, 404, 409, 422}
    assert every_status(500)


ENGINE = AsyncEngine(
    AsyncStore(MemoryBackend()),
    policy=Policy(retention=7_200),
    policies={"hour": Policy(retention=3_600, lease=90), "ever": Policy(retention=None)},
)


@pytest.mark.parametrize(
    ("settings", "engine", "expires_after", "options"),
    [
        ({}, None, 86_400, {}),
        ({}, ENGINE, 7_200, {}),
        ({"scope": "hour"}, ENGINE, 3_600, {}),
        ({"scope": "ever"}, ENGINE, inf, {}),
        ({"scope": "hour", "expires_after": 100}, ENGINE, 100, {"retention": 100}),
        ({"scope": "hour", "expires_after": inf}, ENGINE, inf, {"retention": None}),
        # A record must not go before the lease on it.
        ({"scope": "hour", "expires_after": 70}, ENGINE, 70, {"retention": 70, "lease": 70}),
        ({"scope": "hour", "lease": 10}, ENGINE, 3_600, {"lease": 10}),
    ],
)
def test_a_route_that_says_nothing_of_expiry_and_lease_leaves_them_to_the_engine(
    settings, engine, expires_after, options
):
    rule = Rule(RoutePolicy(**settings), "POST", "/orders", engine=engine)
    assert rule.expires_after == expires_after
    assert {name: rule.options[name] for name in ("retention", "lease") if name in rule.options} == options


def test_a_mark_changes_nothing_else():
    def endpoint():
        return 1

    assert idempotent(scope="a")(endpoint) is endpoint
    assert marked(endpoint).scope == "a"
    assert marked(lambda: 0) is None
    with pytest.raises(TypeError):
        idempotent(RoutePolicy(), scope="a")


class Everything:
    """Has whatever it is asked for."""

    def __getattr__(self, name):
        return Everything()

    def __call__(self): ...


def test_an_endpoint_that_has_everything_is_not_searched_without_end():
    assert marked(Everything()) is None


@idempotent(scope="create_order")
async def create(request):
    return PlainTextResponse("created")


async def plain(request):
    return PlainTextResponse("plain")


class Both(HTTPEndpoint):
    @idempotent(scope="both_post")
    async def post(self, request): ...

    async def put(self, request): ...


async def nothing(scope, receive, send): ...


APP = Starlette(
    routes=[
        Route("/orders", create, methods=["POST"]),
        Route("/orders/{id:int}/pay", plain, methods=["POST"]),
        Route("/both", Both),
        Mount("/sub/{name}", routes=[Route("/orders/{id}", create, methods=["POST"])]),
        Mount("/other", app=nothing),
        Host("api.example.org", Router([Route("/hosted", create, methods=["POST"])])),
    ]
)


def find(path, method="POST", routes=None, defaults=None, app=APP, where=None):
    rule = RouteTable(app, routes or {}, defaults or RoutePolicy()).find(http_scope(path, method, **where or {}))
    return rule and (rule.scope_name, rule.template)


@pytest.mark.parametrize(
    ("path", "method", "found"),
    [
        ("/orders", "POST", ("create_order", "/orders")),
        ("/orders", "GET", None),
        ("/orders/7/pay", "POST", ("POST /orders/{id}/pay", "/orders/{id}/pay")),
        ("/orders/x/pay", "POST", None),
        ("/both", "POST", ("both_post", "/both")),
        ("/both", "PUT", ("PUT /both", "/both")),
        ("/sub/a/orders/1", "POST", ("create_order", "/sub/{name}/orders/{id}")),
        ("/sub/a/nothing", "POST", None),
        ("/other/deep", "POST", ("POST /other/deep", "/other/deep")),
        ("/nowhere", "POST", None),
    ],
)
def test_the_endpoint_of_a_starlette_application_is_found_before_it_is_called(path, method, found):
    assert find(path, method) == found


def test_a_host_decides_and_is_not_remembered():
    table = RouteTable(APP, {}, RoutePolicy())
    there = http_scope("/hosted", headers=[(b"host", b"api.example.org:80")])
    assert table.find(there).scope_name == "create_order"
    assert table.find(http_scope("/hosted", headers=[(b"host", b"else.example.org")])) is None
    assert table.find(there).scope_name == "create_order"


def test_the_table_wins_over_the_mark_and_the_mark_over_the_defaults():
    routes = {"POST /orders/{id}/pay": RoutePolicy(scope="pay"), "/orders": RoutePolicy(scope="by_table")}
    assert find("/orders/7/pay", routes=routes) == ("pay", "/orders/{id}/pay")
    assert find("/orders", routes=routes) == ("by_table", "/orders")
    assert find("/orders", defaults=RoutePolicy(scope="d")) == ("create_order", "/orders")
    assert find("/orders/7/pay", defaults=RoutePolicy(scope="d")) == ("d", "/orders/{id}/pay")
    assert find("/orders", routes={"/orders": RoutePolicy(key="off")}) is None


@idempotent(key="off")
async def export(request): ...


SHOP = Starlette(
    routes=[
        Route("/orders/export", export, methods=["POST"]),
        Route("/orders/{id:int}", plain, methods=["POST"]),
        Mount("/shop/{name}", app=Starlette(routes=[Route("/orders/{id}", plain, methods=["POST"])])),
    ]
)


@pytest.mark.parametrize("line", ["/orders/{order_id}", "/orders/{id:int}", "/orders/<int:id>"])
def test_a_line_is_for_the_endpoint_of_its_template_and_for_no_other_that_its_pattern_would_fit(line):
    routes = {f"POST {line}": RoutePolicy(key="required")}
    assert find("/orders/7", app=SHOP, routes=routes) == ("POST /orders/{id}", "/orders/{id}")
    assert find("/orders/export", app=SHOP, routes=routes) is None
    assert find("/shop/a/orders/7", app=SHOP, routes=routes, defaults=RoutePolicy(key="off")) is None
    below = {f"POST /shop/{{shop}}{line}": RoutePolicy(scope="below")}
    assert find("/shop/a/orders/7", app=SHOP, routes=below) == ("below", "/shop/{name}/orders/{id}")


@pytest.mark.parametrize("line", ["/orders/{n}", "/shop/{shop}/orders/{n}", "/proxy/shop/{shop}/orders/{n}"])
def test_a_line_within_a_mounted_application_may_begin_with_where_it_is_mounted(line):
    inner = Starlette(routes=[Route("/orders/{id}", plain, methods=["POST"])])
    routes = {line: RoutePolicy(scope="pay")}
    where = {"root_path": "/proxy/shop/a", "app_root_path": "/proxy", "app": inner}
    assert find("/proxy/shop/a/orders/7", app=inner, routes=routes, where=where) == ("pay", "/shop/a/orders/{id}")
    where = {"root_path": "/proxy/sale/a", "app_root_path": "/proxy", "app": inner}
    other = find("/proxy/sale/a/orders/7", app=inner, routes=routes, defaults=RoutePolicy(key="off"), where=where)
    assert other == (("pay", "/sale/a/orders/{id}") if line == "/orders/{n}" else None)


def test_a_line_for_what_no_framework_knows_is_compared_with_the_path():
    routes = {"POST /other/{thing}": RoutePolicy(scope="other"), "/webhook": RoutePolicy(scope="hook")}
    assert find("/other/deep", routes=routes) == ("other", "/other/{thing}")
    # A middleware may answer what no route does.
    assert find("/webhook", routes=routes) == ("hook", "/webhook")


def test_an_application_is_found_below_other_middlewares_and_before_one_that_it_is_mounted_in():
    outer = Starlette(routes=[Route("/orders", plain, methods=["POST"])])
    wrapped = GZipMiddleware(ServerErrorMiddleware(APP))
    assert find("/orders", app=wrapped) == ("create_order", "/orders")
    mounted = {"root_path": "/shop", "app_root_path": "", "app": outer}
    assert find("/shop/orders", app=wrapped, where=mounted) == ("create_order", "/shop/orders")


def test_a_line_with_a_method_acts_on_it_whatever_the_policy_names():
    assert find("/x", "GET", routes={"GET /x": RoutePolicy(scope="x")}, app=None) == ("x", "/x")
    assert find("/x", "GET", routes={"/x": RoutePolicy(scope="x")}, app=None) is None


@pytest.mark.parametrize("line", ["orders", "BREW /orders", "POST orders", "post /orders"])
def test_a_line_that_is_none_is_refused(line):
    with pytest.raises(ValueError, match="route table"):
        RouteTable(None, {line: RoutePolicy()}, RoutePolicy())


def test_without_a_framework_the_path_is_its_own_template():
    assert find("/a/1", app=None) == ("POST /a/1", "/a/1")


def test_a_method_that_no_record_may_hold_is_left_alone():
    assert find("/a", "PROPFIND", app=None) is None


def test_what_is_remembered_of_paths_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 5)
    table = RouteTable(None, {}, RoutePolicy())
    for number in range(20):
        table.find(http_scope(f"/{number}"))
    assert len(table._known) <= 5
