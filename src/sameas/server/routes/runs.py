"""`/api/v1/runs`: list, look at, read in any format, listen to, cancel and delete.

Rule: a key from outside is a whole key or the beginning of one, in hex, before it meets a folder; nothing else is ever
looked for. A run is seen in its own space only.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, get_args

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.metadata import RunMetadata, RunStatus
from sameas.extraction.outputs import FORMATS, MEDIA_TYPES, OutputFormat
from sameas.extraction.runs import Run, RunNotFoundError
from sameas.extraction.work import hit
from sameas.server import examples
from sameas.server.lines import Line, line_of_event
from sameas.server.problems import Problem, not_found
from sameas.server.replies import json_reply, query_of, whole_number
from sameas.server.route import Asked, Parameter, Reply, Route
from sameas.server.sse import MEDIA_TYPE as EVENT_STREAM
from sameas.server.sse import EventStream
from sameas.server.wire import CancelAnswer, RunPage, is_run_key

STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
_LISTED = 100
_KEY_START = re.compile(r"(?:sha256-)?[0-9a-f]{8,64}")
_TODO = "list the runs to see their keys"
# What a client may call a format besides its own media type.
_ALSO: dict[str, OutputFormat] = {
    "application/xml": "graphml",
    "text/plain": "nquads",
    "application/x-turtle": "turtle",
    "text/*": "turtle",
    "application/*": "json",
}


async def get_run(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    run = await _find(asked)
    return json_reply(_shown(run.metadata))


async def list_runs(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "status", "ontologyId", "limit", "after")
    limit = whole_number(query.get("limit"), name="limit", default=50, least=1, most=_LISTED)
    status = query.get("status")
    if status is not None and status not in STATUSES:
        raise Problem(400, "parameter-invalid", f"status must be one of {', '.join(STATUSES)}")
    after = query.get("after")
    if after is not None and not is_run_key(after):
        raise Problem(400, "parameter-invalid", "after must be the `next` of the page before")
    runs = asked.service.runs(asked.visitor.space)
    found = await asyncio.to_thread(runs.list, status=status, ontology=query.get("ontologyId"))
    page, more = _page(found, after=after, limit=limit)
    return json_reply(RunPage(runs=tuple(_shown(one) for one in page), next=more))


async def get_graph(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "format")
    to = _format(query.get("format"), asked.request.headers.get("accept", ""))
    run = await _find(asked)
    if run.metadata.is_under_way:
        raise Problem(409, "run-under-way", "the run has not ended yet; listen to its events", retry_after=1.0)
    service = asked.service.spaces.get(asked.visitor.space)
    data = await asyncio.to_thread(service.render, run, to)
    headers = {"ETag": f'"{run.metadata.digest()[:32]}-{to}"', "Vary": "Accept"}
    return Response(data, media_type=MEDIA_TYPES[to], headers=headers)


async def get_events(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "after")
    # A browser that comes back names the last event itself, and that is where it is.
    named = asked.request.headers.get("last-event-id") or query.get("after")
    after = whole_number(named, name="after, or Last-Event-ID,", default=0)
    key, known = await _listenable(asked, asked.request.path_params["key"])
    if known is not None and not known.is_under_way and not asked.service.runner.is_running(asked.visitor.space, key):
        total = await asyncio.to_thread(_length, asked, key)
        if 0 < total <= after:
            # By the standard of server-sent events: there is nothing more, do not come back.
            return Response(status_code=204)
    if asked.request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    journal = asked.service.runs(asked.visitor.space).at(key).journal_path
    if known is not None and known.status == "complete" and not await asyncio.to_thread(journal.exists):
        return EventStream(_without_journal(known))
    return EventStream(asked.service.hub.listen(asked.visitor.space, key, journal, after=after))


async def cancel_run(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    service, space = asked.service, asked.visitor.space
    key, _ = await _listenable(asked, asked.request.path_params["key"])
    outcome = await service.do(service.runner.cancel(space, key))
    if outcome == "elsewhere":
        await service.do(service.publish(type="cancel-run", tenant=space, key=key))
        return json_reply(CancelAnswer(idempotency_key=key, outcome="requested"), status=202)
    return json_reply(CancelAnswer(idempotency_key=key, outcome=outcome))


async def delete_run(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    service, space = asked.service, asked.visitor.space
    key, _ = await _listenable(asked, asked.request.path_params["key"])
    outcome = await service.do(service.runner.cancel(space, key))
    if outcome == "elsewhere":
        await service.do(service.publish(type="cancel-run", tenant=space, key=key))
    try:
        await asyncio.to_thread(service.runs(space).remove, key)
    except RunNotFoundError:
        # One that was ended before it had anything to show is as gone as one that had.
        if outcome == "ended":
            raise not_found(f"run {key}", todo=_TODO) from None
    service.answers.drop()
    await service.do(service.publish(type="run-removed", tenant=space, key=key))
    service.audit(asked.visitor, "run-removed", key=key)
    return Response(status_code=204)


async def _find(asked: Asked) -> Run:
    key = asked.request.path_params["key"]
    _check(key)
    try:
        return await asyncio.to_thread(asked.service.runs(asked.visitor.space).find, key)
    except RunNotFoundError:
        raise not_found(f"run {key}", todo=_TODO) from None


async def _listenable(asked: Asked, typed: str) -> tuple[str, RunMetadata | None]:
    """The whole key of a run that is there, or that was promised and has nothing to show yet."""
    _check(typed)
    service, space = asked.service, asked.visitor.space
    if is_run_key(typed):
        metadata = await asyncio.to_thread(service.runs(space).at(typed).peek)
        if metadata is not None:
            return typed, metadata
        if service.runner.is_running(space, typed) or await asyncio.to_thread(service.promises.has, space, typed):
            return typed, None
    run = await _find(asked)
    return run.key, run.metadata


def _check(key: str) -> None:
    if _KEY_START.fullmatch(key) is None:
        raise Problem(
            404, "not-found", "that is no run's key: it has `sha256-` and 64 hex digits, of which 8 or more will do"
        )


async def _without_journal(metadata: RunMetadata) -> AsyncGenerator[list[Line], None]:
    """Of a result that came back from the database its events are gone; that it is there can be told."""
    yield [line_of_event(hit(metadata, shared=False, now=time.time()))]


def _length(asked: Asked, key: str) -> int:
    path = asked.service.runs(asked.visitor.space).at(key).journal_path
    if not path.exists():
        return 0
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _page(found: Sequence[RunMetadata], *, after: str | None, limit: int) -> tuple[Sequence[RunMetadata], str | None]:
    start = 0
    if after is not None:
        keys = [one.idempotency_key for one in found]
        start = keys.index(after) + 1 if after in keys else len(keys)
    page = found[start : start + limit]
    return page, page[-1].idempotency_key if start + limit < len(found) else None


def _format(named: str | None, accept: str) -> OutputFormat:
    if named is not None:
        if named not in FORMATS:
            raise Problem(400, "parameter-invalid", f"format must be one of {', '.join(FORMATS)}")
        return named
    wanted = sorted(_accepted(accept), key=lambda one: -one[1])
    if not wanted:
        return "json"
    by_media_type: dict[str, OutputFormat] = {media: name for name, media in MEDIA_TYPES.items()} | _ALSO
    for media, quality in wanted:
        if quality > 0 and (media == "*/*" or media in by_media_type):
            return by_media_type.get(media, "json")
    raise Problem(406, "not-acceptable", f"a graph can be given as {', '.join(sorted(MEDIA_TYPES.values()))}")


def _accepted(accept: str) -> list[tuple[str, float]]:
    found = []
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = min(1.0, max(0.0, float(value)))
                except ValueError:
                    quality = 0.0
        if media:
            found.append((media, quality))
    return found


def _shown(metadata: RunMetadata) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(metadata)
    # Of no use outside: they belong to the workers and their files.
    for name in ("fence", "layout", "firstEvent", "files"):
        shown.pop(name, None)
    return shown


_KEY = Parameter(
    name="key",
    place="path",
    required=True,
    description="The run's key, or 8 or more of its first hex digits.",
    schema={"type": "string", "minLength": 8, "maxLength": 71},
    example=examples.KEY,
)
_RUN = Reply(description="How the run stands.", schema=RunMetadata, example=examples.RUN)
_CANCELLED = CancelAnswer(idempotency_key=examples.KEY, outcome="cancelled")
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/runs",
        handle=list_runs,
        name="listRuns",
        tag="runs",
        summary="The runs, newest first.",
        parameters=(
            Parameter(name="status", schema={"type": "string", "enum": list(STATUSES)}, example="complete"),
            Parameter(name="ontologyId", description="The IRI of the runs' ontology.", example=examples.IRI),
            Parameter(name="limit", schema={"type": "integer", "minimum": 1, "maximum": _LISTED}, example=50),
            Parameter(name="after", description="The `next` of the page before.", example=examples.KEY),
        ),
        replies={200: Reply(description="A page.", schema=RunPage, example={"runs": [examples.RUN], "next": None})},
        problems=(400,),
    ),
    Route(
        method="GET",
        path="/api/v1/runs/{key}",
        handle=get_run,
        name="getRun",
        tag="runs",
        summary="How a run stands: status, counts, times, what happened and what went wrong.",
        parameters=(_KEY,),
        replies={200: _RUN},
        problems=(400, 404, 409),
    ),
    Route(
        method="GET",
        path="/api/v1/runs/{key}/graph",
        handle=get_graph,
        name="getGraph",
        tag="runs",
        summary="The graph of a run, in the format that `format` or `Accept` names.",
        parameters=(
            _KEY,
            Parameter(name="format", schema={"type": "string", "enum": list(FORMATS)}, example="turtle"),
        ),
        replies={
            200: Reply(
                description="The graph.",
                media_types=tuple(MEDIA_TYPES.values()),
                example="",
                headers=("ETag", "Vary"),
            )
        },
        problems=(400, 404, 406, 409),
    ),
    Route(
        method="GET",
        path="/api/v1/runs/{key}/events",
        handle=get_events,
        name="streamEvents",
        tag="runs",
        summary="The run's events as they happen, from its beginning or after a number, as server-sent events.",
        parameters=(
            _KEY,
            Parameter(name="after", schema={"type": "integer", "minimum": 0}, example=0),
            Parameter(name="Last-Event-ID", place="header", schema={"type": "integer", "minimum": 0}, example=12),
        ),
        replies={
            200: Reply(description="A stream of events.", media_types=(EVENT_STREAM,), example=examples.STREAM),
            204: Reply(description="The run has ended and there is no event after that number."),
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/runs/{key}/cancel",
        handle=cancel_run,
        name="cancelRun",
        tag="runs",
        summary="End a run; what is done of it stays as checkpoints for the next request.",
        parameters=(_KEY,),
        replies={
            200: Reply(description="It has ended.", schema=CancelAnswer, example=msgspec.to_builtins(_CANCELLED)),
            202: Reply(
                description="Another process was asked to end it.",
                schema=CancelAnswer,
                example={"idempotencyKey": examples.KEY, "outcome": "requested"},
            ),
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="DELETE",
        path="/api/v1/runs/{key}",
        handle=delete_run,
        name="deleteRun",
        tag="runs",
        summary="Cancel a run that is under way, and delete it with its result.",
        parameters=(_KEY,),
        replies={204: Reply(description="It is gone.")},
        problems=(400, 404, 409),
    ),
)
