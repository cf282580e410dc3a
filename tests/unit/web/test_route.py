"""Policies are checked when they are made, and found by table, mark and default."""

from math import inf

import pytest
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.responses import PlainTextResponse
from starlette.routing import Host, Mount, Route, Router

from sameas.identity.scope import ScopeError
from sameas.web import table as module
from sameas.web.route import RoutePolicy, every_status, idempotent, marked, settled_statuses
from sameas.web.table import RouteTable
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


def test_forever_is_until_forgotten():
    assert RoutePolicy(expires_after=inf).retention is None
    assert RoutePolicy().retention == 86_400


def test_a_mark_changes_nothing_else():
    def endpoint():
        return 1

    assert idempotent(scope="a")(endpoint) is endpoint
    assert marked(endpoint).scope == "a"
    assert marked(lambda: 0) is None
    with pytest.raises(TypeError):
        idempotent(RoutePolicy(), scope="a")


@idempotent(scope="create_order")
async def create(request):
    return PlainTextResponse("created")


async def plain(request):
    return PlainTextResponse("plain")


class Both(HTTPEndpoint):
    @idempotent(scope="both_post")
    async def post(self, request): ...

    async def put(self, request): ...


APP = Starlette(
    routes=[
        Route("/orders", create, methods=["POST"]),
        Route("/orders/{id:int}/pay", plain, methods=["POST"]),
        Route("/both", Both),
        Mount("/sub/{name}", routes=[Route("/orders/{id}", create, methods=["POST"])]),
        Mount("/other", app=lambda scope, receive, send: None),
        Host("api.example.org", Router([Route("/hosted", create, methods=["POST"])])),
    ]
)


def find(path, method="POST", routes=None, defaults=None, app=APP, **scope):
    rule = RouteTable(app, routes or {}, defaults or RoutePolicy()).find(http_scope(path, method, **scope))
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
