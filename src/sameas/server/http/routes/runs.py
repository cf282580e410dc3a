"""`/api/v1/runs`: list, look at, read in any format, listen to, cancel and delete.

Rule: a key from outside is a whole key or the beginning of one, in hex, before it meets a folder; nothing else is ever
looked for. A run is seen in its own space only.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from itertools import islice
from typing import IO, Any, get_args

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.outputs import FORMATS, MEDIA_TYPES, OutputFormat
from sameas.extraction.runs.library import Run, RunNotFoundError
from sameas.extraction.runs.metadata import RunMetadata, RunStatus, seconds_of
from sameas.extraction.runs.view import Version, reviewed_graph, run_page, shown_metadata, view_of
from sameas.extraction.runs.work import cache_hit, completion
from sameas.extraction.text.document import DocumentSource
from sameas.server.http import examples
from sameas.server.http.route import (
    PAGE_HEADERS,
    Asked,
    Parameter,
    Reply,
    Route,
    file_reply,
    json_reply,
    query_of,
    time_of,
    whole_number,
)
from sameas.server.problems import Problem, not_found
from sameas.server.schemas import CancelAnswer, RunPage, ShownRun, is_run_key
from sameas.server.streams.lines import MEDIA_TYPE as EVENT_STREAM
from sameas.server.streams.lines import EventStream, Line, line_of_event

STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)
PAGE = "html"
_LISTED = 100
# Bytes of a run's files that are read and written in a moment.
_LARGE = 1 << 20
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
    metadata = await waiting_run(asked) or (await find_run(asked)).metadata
    return json_reply(_shown(metadata, await ontology_names(asked, metadata.ontology_id)))


async def list_runs(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "status", "ontologyId", "document", "from", "before", "limit", "after")
    limit = whole_number(query.get("limit"), name="limit", default=50, least=1, most=_LISTED)
    status = query.get("status")
    if status is not None and status not in STATUSES:
        raise Problem(400, "parameter-invalid", f"status must be one of {', '.join(STATUSES)}")
    after = query.get("after")
    if after is not None and not is_run_key(after):
        raise Problem(400, "parameter-invalid", "after must be the `next` of the page before")
    runs = asked.service.runs(asked.caller.space)
    ontology_id = await _ontology_id(asked, query.get("ontologyId"))
    newest = _within(runs.newest(status=status, ontology=ontology_id, after=after), query)
    # One more than is shown says whether there is a next page.
    # One that is narrowed down may have to look at every run.
    found = await asked.slowly(lambda: list(islice(newest, limit + 1)))
    page, more = found[:limit], found[limit - 1].idempotency_key if len(found) > limit else None
    names = {one: await ontology_names(asked, one) for one in {metadata.ontology_id for metadata in page}}
    return json_reply(RunPage(runs=tuple(_shown(one, names[one.ontology_id]) for one in page), next=more))


def _within(runs: Iterator[RunMetadata], query: Mapping[str, str]) -> Iterator[RunMetadata]:
    """The runs that began in a time and whose document's name holds some words."""
    first, before = time_of(query.get("from"), name="from"), time_of(query.get("before"), name="before")
    words = query.get("document", "").casefold()

    def keep() -> Iterator[RunMetadata]:
        for one in runs:
            began = seconds_of(one.started_at)
            if first is not None and began < first:
                # Newest first: all that follow began earlier still.
                return
            if (before is None or began < before) and words in one.document.casefold():
                yield one

    return keep()


async def get_graph(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "format", "version", "document")
    is_page = query.get("format") == PAGE
    to = "json" if is_page else _format(query.get("format"), asked.request.headers.get("accept", ""))
    version = version_of(query.get("version", "found"))
    run = await find_run(asked)
    if run.metadata.is_under_way:
        raise Problem(409, "run-under-way", "the run has not ended yet; listen to its events", retry_after=1.0)
    if is_page:
        page = await asked.slowly(lambda: run_page(view_of(run, version)), is_long=is_large(run))
        return Response(page, media_type="text/html", headers=PAGE_HEADERS)
    service = asked.service.workspaces.get(asked.caller.space)
    name = query.get("document", "")
    sources = (DocumentSource.of_name(name),) if name else ()

    def write(file: IO[bytes]) -> None:
        reviewed = None if version == "found" else reviewed_graph(run, version).graph
        service.write(run, file, to=to, sources=sources, reviewed=reviewed)

    headers = {"Vary": "Accept"}
    if version == "found":
        parts = (run.metadata.digest(), to, run.metadata.started_at, name)
        headers["ETag"] = f'"{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"'
    else:
        headers["Cache-Control"] = "no-store"
    return await file_reply(asked, write, media_type=MEDIA_TYPES[to], headers=headers, is_long=is_large(run))


async def get_events(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "after")
    # A browser that comes back names the last event itself, and that is where it is.
    named = asked.request.headers.get("last-event-id") or query.get("after")
    after = whole_number(named, name="after, or Last-Event-ID,", default=0)
    key, known = await _listenable(asked, asked.request.path_params["key"])
    if known is not None and not known.is_under_way and not await _is_to_go_on(asked, key):
        total = await asyncio.to_thread(_length, asked, key)
        if 0 < total <= after:
            # By the standard of server-sent events: there is nothing more, do not come back.
            return Response(status_code=204)
    if asked.request.method == "HEAD":
        return Response(media_type=EVENT_STREAM)
    journal = asked.service.runs(asked.caller.space).at(key).journal_path
    if known is not None and known.status == "complete" and not await asyncio.to_thread(journal.exists):
        return EventStream(_without_journal(known))
    admission = asked.service.admissions.enter(asked.request.scope, asked.caller)
    listening = asked.service.listen(asked.caller.space, key, after=after, admission=admission)
    return EventStream(listening, admission=admission)


async def cancel_run(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    service, space = asked.service, asked.caller.space
    key, _ = await _listenable(asked, asked.request.path_params["key"])
    outcome = await service.cancel(space, key)
    if outcome == "elsewhere":
        return json_reply(CancelAnswer(idempotency_key=key, outcome="requested"), status=202)
    return json_reply(CancelAnswer(idempotency_key=key, outcome=outcome))


async def delete_run(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    service, space = asked.service, asked.caller.space
    key, _ = await _listenable(asked, asked.request.path_params["key"])
    was_there = await service.do(service.deletion.run(space, key))
    service.answers.drop()
    if not was_there:
        raise not_found(f"run {key}", todo=_TODO)
    service.audit(asked.caller, "run-removed", key=key)
    return Response(status_code=204)


def is_large(run: Run) -> bool:
    """Whether a graph takes more than a moment to be read and written."""
    return sum(file.size for file in run.metadata.files.values()) > _LARGE


async def find_run(asked: Asked) -> Run:
    key = asked.request.path_params["key"]
    _check(key)
    try:
        return await asyncio.to_thread(asked.service.runs(asked.caller.space).find, key)
    except RunNotFoundError:
        raise not_found(f"run {key}", todo=_TODO) from None


async def waiting_run(asked: Asked) -> RunMetadata | None:
    """What is known of a run that was accepted and has nothing to show yet."""
    key = asked.request.path_params["key"]
    service, space = asked.service, asked.caller.space
    if not is_run_key(key):
        return None
    await asyncio.to_thread(service.runs(space).refresh, key)
    if await asyncio.to_thread(service.runs(space).at(key).peek) is not None:
        return None
    pending_run = await asyncio.to_thread(service.pending_runs.read, space, key)
    return None if pending_run is None else pending_run.pending


async def _listenable(asked: Asked, typed: str) -> tuple[str, RunMetadata | None]:
    """The whole key of a run that is there, or that was promised and has nothing to show yet."""
    _check(typed)
    service, space = asked.service, asked.caller.space
    if is_run_key(typed):
        await asyncio.to_thread(service.runs(space).refresh, typed)
        metadata = await asyncio.to_thread(service.runs(space).at(typed).peek)
        if metadata is not None:
            return typed, metadata
        if await _is_to_go_on(asked, typed):
            return typed, None
    run = await find_run(asked)
    return run.key, run.metadata


async def _is_to_go_on(asked: Asked, key: str) -> bool:
    """Whether a run is worked on here, or was asked for again and waits."""
    service, space = asked.service, asked.caller.space
    return service.runner.is_running(space, key) or await asyncio.to_thread(service.pending_runs.has, space, key)


def _check(key: str) -> None:
    if _KEY_START.fullmatch(key) is None:
        raise Problem(
            404, "not-found", "that is no run's key: it has `sha256-` and 64 hex digits, of which 8 or more will do"
        )


async def _without_journal(metadata: RunMetadata) -> AsyncGenerator[list[Line], None]:
    """Of a result that came back from the database its events are gone; that it is there can be told."""
    now = time.time()
    yield [line_of_event(cache_hit(metadata, shared=False, now=now)), line_of_event(completion(metadata, now=now))]


def _length(asked: Asked, key: str) -> int:
    path = asked.service.runs(asked.caller.space).at(key).journal_path
    if not path.exists():
        return 0
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _format(named: str | None, accept: str) -> OutputFormat:
    if named is not None:
        if named not in FORMATS:
            raise Problem(400, "parameter-invalid", f"format must be one of {', '.join((*FORMATS, PAGE))}")
        return named
    wanted = sorted(_accepted(accept), key=lambda one: -one[1])
    if not wanted:
        return "json"
    by_media_type: dict[str, OutputFormat] = {media: name for name, media in MEDIA_TYPES.items()} | _ALSO
    for media, quality in wanted:
        if quality > 0 and (media == "*/*" or media in by_media_type):
            return by_media_type.get(media, "json")
    raise Problem(406, "not-acceptable", f"a graph can be given as {', '.join(sorted(MEDIA_TYPES.values()))}")


def version_of(named: str) -> Version:
    """The version that a parameter names."""
    if named in ("found", "reviewed"):
        return named  # type: ignore[return-value]
    if named.isascii() and named.isdigit() and len(named) < 10:
        return int(named)
    raise Problem(400, "parameter-invalid", "version must be found, reviewed, or a number of decisions")


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


async def _ontology_id(asked: Asked, named: str | None) -> str | None:
    """The id that a name or an id stands for."""
    if named is None:
        return None
    service = asked.service
    found = await service.do(service.ontologies.find(asked.caller.ctx.tenant_id, named))
    return named if found is None else found.entry.id


async def ontology_names(asked: Asked, ontology_id: str) -> tuple[str, ...]:
    service = asked.service
    return await service.do(service.ontologies.names(asked.caller.ctx.tenant_id, ontology_id))


def _shown(metadata: RunMetadata, ontology_names: tuple[str, ...]) -> dict[str, Any]:
    return {**shown_metadata(metadata), "ontologyNames": ontology_names}


KEY_PARAMETER = Parameter(
    name="key",
    place="path",
    required=True,
    description="The run's key, or 8 or more of its first hex digits.",
    schema={"type": "string", "minLength": 8, "maxLength": 71},
    example=examples.KEY,
)
_RUN = Reply(description="How the run stands.", schema=ShownRun, example=examples.RUN)
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
            Parameter(
                name="ontologyId", description="The id of the runs' ontology, or a name of it.", example=examples.IRI
            ),
            Parameter(name="document", description="A part of the document's name.", example="report"),
            Parameter(name="from", schema={"type": "string", "format": "date-time"}, example=examples.INSTANT),
            Parameter(name="before", schema={"type": "string", "format": "date-time"}, example=examples.INSTANT),
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
        parameters=(KEY_PARAMETER,),
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
            KEY_PARAMETER,
            Parameter(name="format", schema={"type": "string", "enum": [*FORMATS, PAGE]}, example="turtle"),
            Parameter(
                name="version",
                description="`found` (without this parameter), `reviewed`, or a number of reviewers' decisions.",
                example="found",
            ),
            Parameter(
                name="document",
                schema={"type": "string", "maxLength": 1024},
                description="The name, path or address of the text's source, for the graph to tell.",
                example="story.txt",
            ),
        ),
        replies={
            200: Reply(
                description="The graph.",
                media_types=(*MEDIA_TYPES.values(), "text/html"),
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
            KEY_PARAMETER,
            Parameter(name="after", schema={"type": "integer", "minimum": 0}, example=0),
            Parameter(name="Last-Event-ID", place="header", schema={"type": "integer", "minimum": 0}, example=12),
        ),
        replies={
            200: Reply(description="A stream of events.", media_types=(EVENT_STREAM,), example=examples.STREAM),
            204: Reply(description="The run has ended and there is no event after that number."),
        },
        problems=(400, 404, 409, 429),
    ),
    Route(
        method="POST",
        path="/api/v1/runs/{key}/cancel",
        handle=cancel_run,
        name="cancelRun",
        tag="runs",
        summary="End a run; what is done of it stays as checkpoints for the next request.",
        parameters=(KEY_PARAMETER,),
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
        parameters=(KEY_PARAMETER,),
        replies={204: Reply(description="It is gone.")},
        problems=(400, 404, 409),
    ),
)
