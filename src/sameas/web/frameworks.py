"""Where a request will go, asked before it goes there: the endpoint and the path's template.

Starlette, FastAPI, Litestar and Django are known, each by what it puts into the scope or by the object that is wrapped.
None is imported: whoever uses one has imported it. A path that a known framework has no endpoint for is nobody's (its
template is empty); if no framework is known, the path is its own template.

Whether a request got as far as its handler is noted, too: what a framework refuses before that was not done, and is not
kept. A handler is watched where its framework keeps it, by a function around it that notes each entry and changes
nothing else. What cannot be watched (a generator, a framework that nobody knows) counts as entered.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import Any, Final

from msgspec import Struct, structs

Scope = Mapping[str, Any]

# More middlewares than anybody stacks; a circle of them ends too.
_MAX_WRAPPED: Final = 100
_REGEX: Final = re.compile(r"[\\^$()]")
_WATCHED: Final = "__sameas_watched__"


class Found(Struct, frozen=True):
    """An endpoint, if it is known, and the template of its path. `by_path` is False if the host decides too; `host`
    is the pattern of the host that led there. `known` is False if the template is no framework's own, or is one that
    cannot be compared with another. `held_by` is what has the handler, and under which name; `unseen` is an application
    of which nothing is known."""

    endpoint: Any
    template: str
    by_path: bool = True
    host: str = ""
    known: bool = True
    held_by: tuple[Any, str] | None = None
    unseen: Any = None


NOWHERE: Final = Found(None, "")


def find_endpoint(app: Any, scope: Scope) -> Found:
    """What will answer a request; `app` is what the middleware wraps."""
    handler = scope.get("route_handler")
    if handler is not None and "path_template" in scope:
        return _handler_of_litestar(handler, scope["path_template"])
    # What is wrapped first: the scope's may be one that this is mounted in.
    for candidate in (unwrapped(app), unwrapped(scope.get("app"))):
        if _is(candidate, "litestar"):
            return _in_litestar(candidate, scope, _route_path(scope))
        if _is(candidate, "django"):
            return _in_django(_route_path(scope))
        if candidate is not None:
            return _in_starlette(_flat(candidate.routes), scope, _route_path(scope))
    return Found(None, scope["path"], known=False, unseen=app)


def unwrapped(app: Any) -> Any:
    """The application or router of a known framework below other middlewares; None if there is none."""
    for _ in range(_MAX_WRAPPED):
        if app is None or _is(app, "litestar") or _is(app, "django"):
            return app
        if getattr(app, "routes", None) is not None and _is(app, "starlette"):
            return app
        app = getattr(app, "app", None)
    return None


def owner_of(app: Any, scope: Scope) -> Any:
    """The application that a middleware around `app` belongs to: the one that it wraps, or the one whose middleware
    it is."""
    inner, outer = unwrapped(app), scope.get("app")
    return outer if inner is None or inner is getattr(outer, "router", None) else inner


def mounted(routes: Iterable[Any], prefix: str = "", host: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every application that Starlette or FastAPI mounted below: its host's pattern, where it is, and itself."""
    for route in _flat(routes):
        if getattr(route, "routes", None) is None or getattr(route, "app", None) is None:
            continue
        path, at = prefix + _mount_path(route), host + (getattr(route, "host", None) or "")
        inner = unwrapped(route.app)
        if inner is not None:
            yield at, path, inner
        yield from mounted(route.routes, path, at)


def unknown_within(app: Any, outer: Any = None) -> Iterator[Any]:
    """The applications of which nothing is known: this one, or those that it mounted; `outer` has the middleware."""
    known = unwrapped(app) or unwrapped(outer)
    if known is None:
        yield app
    elif _is(known, "litestar"):
        for route in known.routes:
            handler: Any = getattr(route, "route_handler", None)
            if hasattr(handler, "is_mount"):
                yield handler.fn
    elif not _is(known, "django"):
        yield from _unknown_mounts(known.routes)


def _unknown_mounts(routes: Iterable[Any]) -> Iterator[Any]:
    for route in _flat(routes):
        inner = getattr(route, "routes", None)
        if inner:
            yield from _unknown_mounts(inner)
        elif inner is not None and getattr(route, "app", None) is not None and unwrapped(route.app) is None:
            yield route.app


def leaves(routes: Iterable[Any], prefix: str = "") -> Iterator[tuple[str, frozenset[str], Any]]:
    """Every endpoint of a Starlette or FastAPI application: template, methods, endpoint."""
    for route in _flat(routes):
        inner = getattr(route, "routes", None)
        path = getattr(route, "path_format", None) or getattr(route, "path", "") or ""
        if inner is not None:
            yield from leaves(inner, prefix + _mount_path(route))
        elif getattr(route, "endpoint", None) is not None:
            yield prefix + path, frozenset(getattr(route, "methods", None) or ()), route.endpoint


def _mount_path(route: Any) -> str:
    path = getattr(route, "path_format", None) or getattr(route, "path", None) or ""
    return str(path).removesuffix("/{path}")


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
                return structs.replace(found, by_path=False, host=route.host + found.host)
            continue
        match = route.path_regex.match(path) if hasattr(route, "path_regex") else None
        if match is None:
            continue
        template = getattr(route, "path_format", None) or route.path
        if inner is None:
            methods = getattr(route, "methods", None)
            if not methods or scope["method"] in methods:
                return Found(route.endpoint, template, by_path=by_path, held_by=_held_by(route))
            continue
        before, rest = _mount_path(route), "/" + match["path"]
        below = unwrapped(route.app)
        if _is(below, "litestar"):
            found = _in_litestar(below, scope, rest)
        elif _is(below, "django"):
            found = _in_django(rest)
        elif inner:
            found = _in_starlette(_flat(inner), scope, rest)
        else:
            # Another kind of application: nothing is known of what it holds.
            return Found(None, before + rest, by_path=by_path, known=False, unseen=route.app)
        template = before + found.template if found.template else ""
        return structs.replace(found, template=template, by_path=by_path and found.by_path)
    return Found(None, "", by_path=by_path)


def _held_by(route: Any) -> tuple[Any, str]:
    """FastAPI's handler is what it calls with what it found valid; Starlette's is inside of the route's middlewares."""
    route = getattr(route, "_effective_route", route)
    dependant = getattr(route, "dependant", None)
    if dependant is not None:
        return dependant, "call"
    for _ in range(_MAX_WRAPPED):
        if getattr(route.app, "app", None) is None:
            break
        route = route.app
    return route, "app"


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


def _in_litestar(app: Any, scope: Scope, path: str) -> Found:
    try:
        _, handler, _, _, template = app.asgi_router.handle_routing(path="/" + path.strip("/"), method=scope["method"])
    except Exception:
        # Its own way to say that there is none: not found, or not by this method.
        return NOWHERE
    return _handler_of_litestar(handler, template)


def _handler_of_litestar(handler: Any, template: str) -> Found:
    if hasattr(handler, "is_mount"):
        return Found(None, template, known=False, unseen=handler.fn)
    return Found(handler, template, held_by=(handler, "_fn"))


def _in_django(path: str) -> Found:
    urls = sys.modules["django.urls"]
    try:
        match = urls.resolve(path)
    except urls.Resolver404:
        return NOWHERE
    patterns = _patterns(urls.get_resolver().url_patterns)
    held_by = next(((pattern, "callback") for pattern in patterns if pattern.callback is match.func), None)
    # A route that is a regular expression is no template.
    return Found(match.func, "/" + match.route, known=_REGEX.search(match.route) is None, held_by=held_by)


def _patterns(patterns: Iterable[Any]) -> Iterator[Any]:
    """Every pattern of Django's that leads to a view."""
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from _patterns(pattern.url_patterns)
        else:
            yield pattern


class Entrance(Struct):
    """One request's way to its handler."""

    is_entered: bool = False


ENTRANCE: ContextVar[Entrance | None] = ContextVar("sameas_entrance", default=None)


def watch(holder: Any, name: str) -> bool:
    """Note from now on whether what `holder` has under a name is entered; False if that cannot be."""
    handler = getattr(holder, name, None)
    if getattr(handler, _WATCHED, False):
        return True
    if not callable(handler) or isgeneratorfunction(handler) or isasyncgenfunction(handler):
        return False
    try:
        # An ASGI application is awaited, whatever it is; of anything else a framework may ask whether it is to be.
        setattr(holder, name, _watched(handler, is_async=name != "app" and iscoroutinefunction(handler)))
    except (AttributeError, TypeError):
        return False
    return True


def _watched(handler: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    if is_async:

        @wraps(handler)
        async def entered_async(*args: Any, **kwargs: Any) -> Any:
            _note()
            return await handler(*args, **kwargs)

        return _marked(entered_async)

    @wraps(handler)
    def entered(*args: Any, **kwargs: Any) -> Any:
        _note()
        return handler(*args, **kwargs)

    return _marked(entered)


def _marked(handler: Callable[..., Any]) -> Callable[..., Any]:
    setattr(handler, _WATCHED, True)
    return handler


def _note() -> None:
    entrance = ENTRANCE.get()
    if entrance is not None:
        entrance.is_entered = True
