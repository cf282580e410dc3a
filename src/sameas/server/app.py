"""The application: Starlette with the routes of the service, behind the gate; and who lets people in.

Rule: every route is in the table of its file, and the OpenAPI document is made from those tables. Messages are decoded
by msgspec: the same structs are on the wire, in the journal and in the document, and decoding is not what a request
waits for. A deployment of one tenant listens on loopback unless it was told that its network is trusted; every other
needs a credential at every request.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute, compile_path
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from sameas.once.observe import Observer
from sameas.once.observers.metrics import MetricsObserver
from sameas.server.bodies import ClientGone, read_body
from sameas.server.http.gate import Gate, Telemetry
from sameas.server.http.openapi import openapi_document
from sameas.server.http.route import Asked, Route, json_reply, problem_reply
from sameas.server.http.routes import (
    collection_contents,
    collections,
    console,
    debug,
    extract,
    keys,
    ontologies,
    questions,
    rpc,
    runs,
    sessions,
    versions,
    views,
)
from sameas.server.http.routes.pages import PAGES
from sameas.server.http.routes.rpc import RpcSocket
from sameas.server.logs import RequestLog
from sameas.server.metrics import ServiceMetrics
from sameas.server.problems import Problem, problem_of
from sameas.server.runs.preparation import ModelExtractors
from sameas.server.service import Service, ServiceOptions
from sameas.server.tenants.access import OPERATOR, CaseDirectory
from sameas.settings import Settings, SettingsError, api_key_secret, make_home, naming
from sameas.settings_rules import SINGLE
from sameas.tenancy.authenticator import Authenticator, BySchemeAuthenticator, SingleTenant
from sameas.tenancy.directory import ADMIN_ROLE


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """How people come in, and what the deployment has besides."""

    authenticator: Authenticator
    single_tenant: bool
    hosts: tuple[str, ...] = ("*",)
    directory: CaseDirectory | None = None
    models: ModelExtractors | None = None
    close: Callable[[], None] = lambda: None


def open_entry(settings: Settings, *, models: ModelExtractors | None = None) -> Entry:
    """What the settings say."""
    if settings.auth == SINGLE:
        single = SingleTenant(
            tenant_id=settings.tenant, roles=(OPERATOR, ADMIN_ROLE), allow_remote=settings.allow_remote
        )
        try:
            single.check_bind(settings.host)
        except ValueError as error:
            raise SettingsError(str(error)) from error
        return Entry(authenticator=single, single_tenant=True, hosts=single.allowed_hosts, models=models)
    from sameas.tenancy.api_keys import ApiKeyAuthenticator
    from sameas.tenancy.directory import EnrolledAuthenticator, TenantDirectory, open_tables

    make_home(settings)
    with naming("DATABASE"):
        database = open_tables(settings.tenants_url)
    schemes: dict[str, Authenticator] = {}
    if "jwt" in settings.auth:
        schemes["bearer"] = EnrolledAuthenticator(_tokens(settings), database=database)
    if "api-key" in settings.auth:
        schemes["apikey"] = ApiKeyAuthenticator(database, secret=api_key_secret())
    return Entry(
        authenticator=BySchemeAuthenticator(schemes),
        single_tenant=False,
        directory=TenantDirectory(database),
        models=models,
        close=database.close,
    )


def _tokens(settings: Settings) -> Authenticator:
    from sameas.tenancy.jwks import KeySet
    from sameas.tenancy.jwt import ASYMMETRIC, JwtAuthenticator

    if not (settings.jwt_issuer and settings.jwt_audience and settings.jwt_keys):
        raise SettingsError("auth by jwt needs SAMEAS_JWT_ISSUER, SAMEAS_JWT_AUDIENCE and SAMEAS_JWT_KEYS")
    with naming("JWT_KEYS", todo="Name the file of a JSON Web Key Set, or its address with https://"):
        if "://" in settings.jwt_keys:
            # The provider may be away for a moment.
            keys = KeySet.from_url(settings.jwt_keys)
        else:
            keys = KeySet.from_file(Path(settings.jwt_keys))
            keys.check()
    return JwtAuthenticator(keys, issuer=settings.jwt_issuer, audience=settings.jwt_audience, algorithms=ASYMMETRIC)


ROUTES: tuple[Route, ...] = (
    *extract.ROUTES,
    *runs.ROUTES,
    *ontologies.ROUTES,
    *versions.ROUTES,
    *keys.ROUTES,
    *collections.ROUTES,
    *collection_contents.ROUTES,
    *questions.ROUTES,
    *debug.ROUTES,
    *console.ROUTES,
    *rpc.ROUTES,
    *sessions.ROUTES,
    *views.ROUTES,
)
_LOG = logging.getLogger("sameas.server")
_WRONG_METHOD = 405
_DOCUMENT = "/openapi.json"
_METHODS = [
    (compile_path(path)[0], method)
    for path, method in (
        *((one.path, one.method) for one in ROUTES),
        *((page.path, "GET") for page in PAGES),
        (_DOCUMENT, "GET"),
    )
]


class App:
    """The ASGI application and the service behind it."""

    def __init__(
        self,
        settings: Settings,
        entry: Entry,
        *,
        log: RequestLog | None = None,
        telemetry: Telemetry | None = None,
        is_worker: bool = False,
    ) -> None:
        registry = CollectorRegistry()
        metrics = MetricsObserver(registry, cached_results=self._cached_results)
        traces = telemetry or Telemetry()
        self.service = Service(
            settings,
            ServiceOptions(
                authenticator=entry.authenticator,
                is_worker=is_worker,
                single_tenant=entry.single_tenant,
                directory=entry.directory,
                observers=(metrics, *_observers(traces)),
                registry=registry,
                metrics=metrics,
                models=entry.models,
            ),
        )
        counts = ServiceMetrics(registry)
        counts.watch(self.service.gauges, self.service.counters)
        self.handed_over = 0
        self._gate = Gate(
            self._routes(settings),
            extract.Extract(self.service),
            self.service,
            hosts=entry.hosts,
            log=log or RequestLog(),
            metrics=counts,
            origins=_origins(settings),
            telemetry=traces,
        )
        counts.watch(self._gate.gauges, dict)

    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        await self._gate(scope, receive, send)  # type: ignore[arg-type]

    def _cached_results(self) -> int:
        return self.service.cached_results()

    def _routes(self, settings: Settings) -> ASGIApp:
        document = openapi_document(ROUTES)

        async def openapi(_: Request) -> Response:
            return json_reply(document)

        routes: list[BaseRoute] = [StarletteRoute(_DOCUMENT, openapi), *PAGES]
        routes += [StarletteRoute(one.path, _endpoint(self.service, one), methods=[one.method]) for one in ROUTES]
        routes.append(WebSocketRoute("/api/rpc", RpcSocket(self.service)))
        application = Starlette(routes=routes, lifespan=self._lifespan, exception_handlers={HTTPException: _not_ours})
        application.router.redirect_slashes = False
        if origins := _origins(settings):
            application.add_middleware(
                CORSMiddleware,
                allow_origins=list(origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Prefer"],
                expose_headers=["Location", "X-Idempotency-Replayed", "X-Trace-Id"],
            )
        return application

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        await self.service.start()
        try:
            yield
        finally:
            self.handed_over = await self.service.close()


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[ASGIApp]]:
    async def endpoint(request: Request) -> ASGIApp:
        note = request.scope["sameas.note"]
        note.route = route.path
        try:
            caller = None if route.public else await service.enter(request.scope)
            body = b""
            if route.body is not None:
                body = await read_body(
                    request.scope, request.receive, at_most=service.settings.max_body, body_memory=service.body_memory
                )
            asked = Asked(service, caller, request, body)  # type: ignore[arg-type]
            if route.deletes or route.method == "DELETE":
                async with service.reserve.lent():
                    return await route.handle(asked)
            return await route.handle(asked)
        except ClientGone:
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _LOG.exception("a request failed, trace %s", note.hop.trace_id)
            return problem_reply(problem)

    return endpoint


def _origins(settings: Settings) -> tuple[str, ...]:
    return tuple(origin.strip() for origin in settings.cors_origins.split(",") if origin.strip())


async def _not_ours(request: Request, error: Exception) -> Response:
    """What the router itself refuses."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    problem = Problem(status, {404: "not-found", 405: "method-unknown"}.get(status, "refused"), "see /openapi.json")
    reply = problem_reply(problem)
    if isinstance(error, HTTPException):
        reply.headers.update(error.headers or {})
    if status == _WRONG_METHOD:
        # The router names the methods of the first route that fits; there may be others.
        reply.headers["Allow"] = ", ".join(_allowed(request.url.path))
    return reply


def _allowed(path: str) -> list[str]:
    """Every method that some route answers at a path."""
    fitting = {method for pattern, method in _METHODS if pattern.match(path)}
    return sorted(fitting | ({"HEAD"} if "GET" in fitting else set()))


def _observers(telemetry: Telemetry) -> Sequence[Observer]:
    if not telemetry.is_on:
        return ()
    from sameas.once.observers.traces import TraceObserver

    return (TraceObserver(),)
