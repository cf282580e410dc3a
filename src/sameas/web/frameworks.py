"""Where a request will go, asked before it goes there: the endpoint and the path's template.

Starlette, FastAPI, Litestar and Django are known, each by what it puts into the scope or by the object that is wrapped.
None is imported: whoever uses one has imported it. A path that a known framework has no endpoint for is nobody's
(its template is empty); where no framework is known, the path is its own template.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

Scope = Mapping[str, Any]


class Found(Struct, frozen=True):
    """An endpoint, if it is known, and the template of its path. `by_path` is False where the host decides too; `host`
    is the pattern of the host that led there."""

    endpoint: Any
    template: str
    by_path: bool = True
    host: str = ""


NOWHERE: Final = Found(None, "")


def find_endpoint(app: Any, scope: Scope) -> Found:
    """What will answer a request; `app` is what the middleware wraps."""
    handler = scope.get("route_handler")
    if handler is not None and "path_template" in scope:
        return Found(getattr(handler, "fn", handler), scope["path_template"])
    owner = scope.get("app")
    for candidate in (owner, app):
        routes = getattr(candidate, "routes", None)
        if routes is not None and _is(candidate, "starlette"):
            return _in_starlette(_flat(routes), scope, _route_path(scope))
        if _is(candidate, "litestar"):
            return _in_litestar(candidate, scope)
        if _is(candidate, "django"):
            return _in_django(scope)
    return Found(None, scope["path"])


def leaves(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, frozenset[str], Any]]:
    """Every endpoint of a Starlette or FastAPI application: template, methods, endpoint."""
    for route in _flat(routes):
        inner = getattr(route, "routes", None)
        path = getattr(route, "path_format", None) or getattr(route, "path", "") or ""
        if inner is not None:
            yield from leaves(inner, prefix + path.removesuffix("/{path}"))
        elif getattr(route, "endpoint", None) is not None:
            yield prefix + path, frozenset(getattr(route, "methods", None) or ()), route.endpoint


def _is(app: Any, framework: str) -> bool:
    return any(kind.__module__.partition(".")[0] == framework for kind in type(app).__mro__)


def _flat(routes: Iterable[Any]) -> Iterable[Any]:
    """FastAPI keeps routers that were included as one entry; it has a walk of its own through them."""
    fastapi = sys.modules.get("fastapi.routing")
    walk = getattr(fastapi, "iter_route_contexts", None)
    return routes if walk is None else walk(routes)


def _route_path(scope: Scope) -> str:
    """The path without where the application is mounted, as Starlette reads it."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        return path[len(root) :]
    return path


def _in_starlette(routes: Iterable[Any], scope: Scope, path: str) -> Found:
    by_path = True
    for route in routes:
        inner = getattr(route, "routes", None)
        host = getattr(route, "host_regex", None)
        if host is not None:
            by_path = False
            if host.match(host_of(scope)):
                found = _in_starlette(_flat(inner or ()), scope, path)
                return Found(found.endpoint, found.template, by_path=False, host=route.host + found.host)
            continue
        match = route.path_regex.match(path) if hasattr(route, "path_regex") else None
        if match is None:
            continue
        template = getattr(route, "path_format", None) or route.path
        if inner is None:
            methods = getattr(route, "methods", None)
            if not methods or scope["method"] in methods:
                return Found(route.endpoint, template, by_path=by_path)
            continue
        mounted = template.removesuffix("/{path}")
        rest = "/" + match["path"]
        if not inner:
            # Another kind of application: nothing is known of what it holds.
            return Found(None, mounted + rest, by_path=by_path)
        found = _in_starlette(_flat(inner), scope, rest)
        template = mounted + found.template if found.template else ""
        return Found(found.endpoint, template, by_path=by_path and found.by_path, host=found.host)
    return Found(None, "", by_path=by_path)


def mount_of(scope: Scope) -> str:
    """Where Starlette mounted the application within another, without what the deployment put before all."""
    outermost = scope.get("app_root_path")
    # A mount with parameters is known by their values only: clients would make up the names of scopes.
    if outermost is None or scope.get("path_params"):
        return ""
    return str(scope.get("root_path", "")).removeprefix(outermost)


def host_of(scope: Scope) -> str:
    """The host that a request names, without its port."""
    for name, value in scope["headers"]:
        if name == b"host":
            return str(value.decode("latin-1").partition(":")[0])
    return ""


def _in_litestar(app: Any, scope: Scope) -> Found:
    path = _route_path(scope)
    try:
        _, handler, _, _, template = app.asgi_router.handle_routing(path="/" + path.strip("/"), method=scope["method"])
    except Exception:
        # Its own way to say that there is none: not found, or not by this method.
        return NOWHERE
    return Found(getattr(handler, "fn", handler), template)


def _in_django(scope: Scope) -> Found:
    urls = sys.modules["django.urls"]
    try:
        match = urls.resolve(_route_path(scope))
    except urls.Resolver404:
        return NOWHERE
    return Found(match.func, "/" + match.route)
