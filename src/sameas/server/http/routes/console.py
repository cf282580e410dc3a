"""What those who look after the service ask it: health and metrics, how a run went, what happens hour by hour.

Rule: nothing is changed here. Live says that the process answers, ready tries each dependency by its name; neither
needs a credential, and neither tells more than names and the kinds of errors. Counts and timelines are those of the
caller's own space; what concerns the whole deployment (its settings, records that expired) is for its operators.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from time import perf_counter
from typing import Any, Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.runs.library import RunNotFoundError
from sameas.llm.ledger import UsageRow
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, json_reply, query_of, whole_number
from sameas.server.http.routes.runs import KEY_PARAMETER, find_run, is_large
from sameas.server.runs.hourly_counts import HOUR, KEPT_DAYS, WHOLE, Advice, Counted, advise
from sameas.server.runs.timelines import Happening, Saved, StageSpan, Timeline, read_timeline
from sameas.server.schemas import Answer, Health
from sameas.server.service import Service
from sameas.server.tenants.access import OPERATOR
from sameas.server.tenants.ontologies import SHARED


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
        "store": service.do(service.engine.read("sameas.health", "ready", namespace="client")),
        "home": asyncio.to_thread(_write, str(service.settings.home)),
    }
    if service.settings.database:
        checks["database"] = asyncio.to_thread(_look_up, service)
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


def _look_up(service: Service) -> None:
    with suppress(RunNotFoundError):
        service.runs(SHARED).find("0" * 64)


def _write(folder: str) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ready")


_OK = {"status": "ok", "dependencies": {"store": "ok", "home": "ok"}}


_MOST_HOURS = KEPT_DAYS * 24
_WITHIN = 2.0


class HourlyReport(Answer, frozen=True, kw_only=True, rename="camel"):
    """The counts of the space by hour and scope, oldest first; an hour is its first second since 1970. `pruned` are the
    expired records of the whole service, which its operators alone are told.
    """

    since: int
    hours: int
    counts: tuple[Counted, ...]
    pruned: tuple[Counted, ...] | None = None
    advice: tuple[Advice, ...] = ()


class Dependency(Answer, frozen=True, kw_only=True, rename="camel"):
    name: str
    said: str
    milliseconds: float


class ModelAccount(Answer, frozen=True, kw_only=True, rename="camel"):
    """An account of models that was asked since the start: its limits, who waits, and its circuit."""

    account: str
    waiting: int
    under_way: int
    circuit: str
    requests_per_minute: int
    tokens_per_minute: int
    max_concurrent: int


class Setting(Answer, frozen=True, kw_only=True, rename="camel"):
    name: str
    value: str
    source: str


class SystemReport(Answer, frozen=True, kw_only=True, rename="camel"):
    """How the service stands. `settings` are for its operators, and hold no secret."""

    status: Literal["ok", "failing"]
    version: str
    dependencies: tuple[Dependency, ...]
    gauges: Mapping[str, float]
    models: tuple[ModelAccount, ...]
    settings: tuple[Setting, ...] | None = None


async def get_timeline(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    run = await find_run(asked)
    journal = asked.service.runs(asked.caller.space).at(run.key).journal_path
    return json_reply(await asked.slowly(lambda: read_timeline(run.metadata, journal), is_long=is_large(run)))


async def get_counts(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "hours")
    hours = whole_number(query.get("hours"), name="hours", default=7 * 24, least=1, most=_MOST_HOURS)
    counts, now = asked.service.counts, time.time()
    # Advice looks back for weeks, whatever is shown.
    found = await asyncio.to_thread(counts.read, asked.caller.space, hours=_MOST_HOURS)
    since = int(now) // HOUR * HOUR - (hours - 1) * HOUR
    pruned = None
    if asked.caller.has(OPERATOR):
        pruned = tuple(await asyncio.to_thread(counts.read, WHOLE, hours=hours))
    shown = tuple(one for one in found if one.hour >= since)
    return json_reply(
        HourlyReport(since=since, hours=hours, counts=shown, pruned=pruned, advice=advise(found, now=now))
    )


async def get_system(asked: Asked) -> ASGIApp:
    from sameas import __version__

    query_of(asked.request)
    service, settings = asked.service, asked.service.settings
    checks = await check_dependencies(service)
    dependencies = tuple(
        Dependency(name=name, said=said, milliseconds=round(seconds * 1000, 3))
        for name, (said, seconds) in checks.items()
    )
    shown = None
    if asked.caller.has(OPERATOR):
        shown = tuple(Setting(name=name, value=value, source=source) for name, value, source in settings.shown())
    report = SystemReport(
        status="ok" if all(one.said == "ok" for one in dependencies) else "failing",
        version=__version__,
        dependencies=dependencies,
        gauges=service.gauges(),
        models=await _models(asked),
        settings=shown,
    )
    return json_reply(report)


async def _models(asked: Asked) -> tuple[ModelAccount, ...]:
    settings = asked.service.settings
    try:
        states = await asyncio.wait_for(asked.service.model_states(), _WITHIN)
    except TimeoutError:
        return ()
    return tuple(
        ModelAccount(
            account=one.account,
            waiting=one.waiting,
            under_way=one.held,
            circuit=one.circuit,
            requests_per_minute=settings.model_requests_per_minute,
            tokens_per_minute=settings.model_tokens_per_minute,
            max_concurrent=settings.model_concurrency,
        )
        for one in states
    )


_COUNTED = Counted(scope="extract", hour=1_769_860_800, calls=120, hits=9, shared=1, waits=1, waited_ms=340)
_ADVICE = Advice(scope="extract", kind="many-replays", replay_rate=0.083, calls=120, said="clients retry too hard")
_TIMELINE = Timeline(
    idempotency_key=examples.KEY,
    stages=(StageSpan(stage="chunking", attempt=1, started_at=1_769_860_800_000, duration_ms=2, items=1),),
    events=(Happening(number=1, timestamp=1_769_860_800_000, type="extraction_started", said="30 characters"),),
    counts={"extraction_started": 1},
    total=UsageRow(stage="total", model="all"),
    saved=Saved(chunks=1),
)
_SYSTEM = SystemReport(
    status="ok",
    version="1.0.0",
    dependencies=(Dependency(name="store", said="ok", milliseconds=0.4),),
    gauges={"runs_under_way": 0.0},
    models=(),
    settings=(Setting(name="lease", value="30 s", source="default"),),
)


def _example(value: Any) -> Any:
    return msgspec.to_builtins(value)


ROUTES = (
    Route(
        method="GET",
        path="/api/v1/runs/{key}/timeline",
        handle=get_timeline,
        name="getTimeline",
        tag="runs",
        summary="How a run went: stages and events with their times, tokens and cost by stage, what caches saved.",
        parameters=(KEY_PARAMETER,),
        replies={200: Reply(description="The timeline.", schema=Timeline, example=_example(_TIMELINE))},
        problems=(400, 404, 409),
    ),
    Route(
        method="GET",
        path="/api/v1/counts",
        handle=get_counts,
        name="getCounts",
        tag="keys",
        summary="Calls, replays, hits, waiting and removals by hour and scope, and what to do about them.",
        parameters=(
            Parameter(name="hours", schema={"type": "integer", "minimum": 1, "maximum": _MOST_HOURS}, example=168),
        ),
        replies={
            200: Reply(
                description="The counts.",
                schema=HourlyReport,
                example=_example(HourlyReport(since=1_769_256_000, hours=168, counts=(_COUNTED,), advice=(_ADVICE,))),
            )
        },
        problems=(400,),
    ),
    Route(
        method="GET",
        path="/api/v1/system",
        handle=get_system,
        name="getSystem",
        tag="operations",
        summary="How the service stands: every dependency, limiters and circuits, and for operators the settings.",
        replies={200: Reply(description="How it stands.", schema=SystemReport, example=_example(_SYSTEM))},
        problems=(400,),
    ),
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
