"""The application: FastAPI with the routes of the service, behind the gate.

Rule: every route is in the table of its file, and the OpenAPI document is made from those tables; FastAPI carries them,
WebSockets and whatever else a deployment mounts. Messages are decoded by msgspec and not by pydantic models: the
same structs are on the wire, in the journal and in the document, and decoding is not what a request waits for.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp

from sameas.once.observe import Observer
from sameas.once.observers.metrics import MetricsObserver
from sameas.server.authentication import Entry
from sameas.server.bodies import ClientGone, read_body
from sameas.server.gate import Gate
from sameas.server.logs import RequestLog
from sameas.server.openapi import openapi_document
from sameas.server.problems import Problem, problem_of
from sameas.server.replies import json_reply, problem_reply
from sameas.server.route import Asked, Route
from sameas.server.routes import debug, extract, health, keys, ontologies, rpc, runs
from sameas.server.rpc import RpcSocket
from sameas.server.service import Service, ServiceOptions
from sameas.server.service_metrics import ServiceMetrics
from sameas.server.telemetry import Telemetry
from sameas.settings import Settings

ROUTES: tuple[Route, ...] = (
    *extract.ROUTES,
    *runs.ROUTES,
    *ontologies.ROUTES,
    *keys.ROUTES,
    *debug.ROUTES,
    *rpc.ROUTES,
    *health.ROUTES,
)
_LOG = logging.getLogger("sameas.server")


class App:
    """The ASGI application and the service behind it."""

    def __init__(
        self, settings: Settings, entry: Entry, *, log: RequestLog | None = None, telemetry: Telemetry | None = None
    ) -> None:
        registry = CollectorRegistry()
        metrics = MetricsObserver(registry, cached_results=self._cached_results)
        traces = telemetry or Telemetry()
        self.service = Service(
            settings,
            ServiceOptions(
                authenticator=entry.authenticator,
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
        application = FastAPI(
            title="sameas",
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _not_ours},
        )
        document = openapi_document(ROUTES)
        application.openapi = lambda: document  # type: ignore[method-assign]

        async def openapi(_: Request) -> Response:
            return json_reply(document)

        application.router.routes.append(StarletteRoute("/openapi.json", openapi))
        for route in ROUTES:
            application.router.routes.append(
                StarletteRoute(route.path, _endpoint(self.service, route), methods=[route.method])
            )
        application.router.routes.append(WebSocketRoute("/api/rpc", RpcSocket(self.service)))
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
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
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
            visitor = None if route.public else await service.door.enter(request.scope)
            note.visitor = visitor
            body = b""
            if route.body is not None:
                body = await read_body(request.scope, request.receive, at_most=service.settings.max_body)
            return await route.handle(Asked(service, visitor, request, body))  # type: ignore[arg-type]
        except ClientGone:
            raise
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _LOG.exception("a request failed, trace %s", note.visitor and note.visitor.ctx.trace_id)
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
    return reply


def _observers(telemetry: Telemetry) -> Sequence[Observer]:
    if not telemetry.is_on:
        return ()
    from sameas.once.observers.traces import TraceObserver

    return (TraceObserver(),)
