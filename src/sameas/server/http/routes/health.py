"""`/health/live`, `/health/ready` and `/metrics`: for those who watch the service.

Rule: live says that the process answers; ready tries each dependency by its name. Neither needs a credential, and
neither tells more than names and the kinds of errors.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from contextlib import suppress
from time import perf_counter

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.server.http.replies import json_reply
from sameas.server.http.route import Asked, Reply, Route
from sameas.server.schemas import Health
from sameas.server.service import Service

_WITHIN = 2.0


async def live(asked: Asked) -> ASGIApp:
    return json_reply(Health(status="ok"))


async def ready(asked: Asked) -> ASGIApp:
    service = asked.service
    if service.stopping:
        return json_reply(Health(status="stopping"), status=503)
    found = {name: said for name, (said, _) in (await check_dependencies(service)).items()}
    is_ready = all(said == "ok" for said in found.values())
    health = Health(status="ok" if is_ready else "failing", dependencies=found)
    return json_reply(health, status=200 if is_ready else 503)


async def metrics(asked: Asked) -> ASGIApp:
    with suppress(TimeoutError):
        # Circuits that are shared are asked for; the rest is told all the same.
        await asyncio.wait_for(asked.service.look_at_models(), _WITHIN)
    data = await asyncio.to_thread(generate_latest, asked.service.registry)
    return Response(data, media_type=CONTENT_TYPE_LATEST)


async def check_dependencies(service: Service) -> dict[str, tuple[str, float]]:
    """What each dependency said by its name, and after how many seconds."""
    checks: dict[str, Awaitable[object]] = {
        "store": service.do(service.check_store()),
        "home": asyncio.to_thread(_write, str(service.settings.home)),
    }
    if service.settings.database:
        checks["database"] = service.do(service.check_database())
    found = {}
    for name, check in checks.items():
        began = perf_counter()
        found[name] = await _tried(check), perf_counter() - began
    return found


async def _tried(check: Awaitable[object]) -> str:
    try:
        await asyncio.wait_for(check, _WITHIN)
    except TimeoutError:
        return "no answer in time"
    except Exception as error:
        # The message of a driver can hold addresses and passwords.
        return type(error).__name__
    return "ok"


def _write(folder: str) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ready")


_OK = {"status": "ok", "dependencies": {"store": "ok", "home": "ok"}}
ROUTES = (
    Route(
        method="GET",
        path="/health/live",
        handle=live,
        name="live",
        tag="operations",
        summary="The process answers.",
        replies={200: Reply(description="It does.", schema=Health, example={"status": "ok", "dependencies": {}})},
        public=True,
    ),
    Route(
        method="GET",
        path="/health/ready",
        handle=ready,
        name="ready",
        tag="operations",
        summary="Everything that the service needs answers, by name.",
        replies={
            200: Reply(description="Everything does.", schema=Health, example=_OK),
            503: Reply(
                description="Something does not, or the service is being stopped.",
                schema=Health,
                example={"status": "failing", "dependencies": {"store": "StoreUnavailable", "home": "ok"}},
            ),
        },
        public=True,
    ),
    Route(
        method="GET",
        path="/metrics",
        handle=metrics,
        name="metrics",
        tag="operations",
        summary="Metrics for Prometheus.",
        replies={200: Reply(description="The metrics.", media_types=("text/plain",), example="sameas_calls_total 1\n")},
        public=True,
    ),
)
