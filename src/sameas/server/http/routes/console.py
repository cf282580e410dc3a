"""What people who look after the service ask it: how a run went, what happens hour by hour, whether all is well.

Rule: nothing is changed here. Counts and timelines are those of the caller's own space; what concerns the whole
deployment (its settings, records that expired) is for its operators.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from starlette.types import ASGIApp

from sameas.llm.ledger import UsageRow
from sameas.server.http import examples
from sameas.server.http.replies import json_reply, query_of, whole_number
from sameas.server.http.route import Asked, Parameter, Reply, Route
from sameas.server.http.routes.health import check_dependencies
from sameas.server.http.routes.runs import KEY_PARAMETER, find_run, is_large
from sameas.server.runs.hourly_counts import HOUR, KEPT_DAYS, WHOLE, Counted
from sameas.server.runs.replay_advice import Advice, advise
from sameas.server.runs.timelines import Happening, Saved, StageSpan, Timeline, read_timeline
from sameas.server.schemas import Answer
from sameas.server.tenants.access import OPERATOR

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
    if OPERATOR in asked.caller.principal.roles:
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
    if OPERATOR in asked.caller.principal.roles:
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
)
