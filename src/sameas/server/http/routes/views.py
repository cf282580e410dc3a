"""What the web app looks at: a run in one piece, its reviewed versions, and the text of a file.

Rule: a decision is checked against text and ontology before it is kept; a refusal says why and keeps nothing. Who
decided comes from the credential. The file of another is read in a process of its own, and nothing of it is kept.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.graph.model import Evidence
from sameas.extraction.runs.library import Run
from sameas.extraction.runs.review import (
    Decision,
    EntityRef,
    ReviewRefusedError,
    Standing,
    Statement,
    Wish,
    check_wish,
)
from sameas.extraction.runs.view import RunView, examples_of_run, view_of
from sameas.extraction.text.inputs.errors import DocumentError
from sameas.extraction.text.inputs.reader import SUPPORTED, read_bytes
from sameas.identity.key import normalize_text
from sameas.ontology.index import OntologyIndex
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, json_reply, query_of
from sameas.server.http.routes.runs import KEY_PARAMETER, find_run, is_large, ontology_names, version_of, waiting_run
from sameas.server.problems import Problem
from sameas.server.schemas import Answer, is_run_key

_encode = msgspec.json.Encoder().encode
_LONGEST_NAME = 1024


class DocumentText(Answer, frozen=True, kw_only=True, rename="camel"):
    """The text of a file, as an extraction would read it."""

    text: str
    media_type: str
    name: str


class DecisionAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """A decision that was kept, and how the run looks now."""

    decision: Decision
    view: RunView


async def get_view(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "version")
    version = version_of(query.get("version", "reviewed"))
    waiting = await waiting_run(asked)
    if waiting is not None:
        return json_reply(await _pending(asked))
    run = await find_run(asked)
    view = await asked.slowly(lambda: view_of(run, version), is_long=is_large(run))
    names = await ontology_names(asked, run.metadata.ontology_id)
    return json_reply(_named(view, names), headers={"Cache-Control": "no-store"})


async def add_decision(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=Wish)
    run = await find_run(asked)
    if run.metadata.is_under_way:
        raise Problem(409, "run-under-way", "the run has not ended yet; review it then", retry_after=1.0)
    decision, view = await asked.slowly(lambda: _decide(run, wish, asked.caller.actor), is_long=is_large(run))
    asked.service.audit(asked.caller, "run-reviewed", key=run.key, action=wish.action, decision=decision.id)
    names = await ontology_names(asked, run.metadata.ontology_id)
    return json_reply(DecisionAnswer(decision=decision, view=_named(view, names)), status=201)


async def get_examples(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    run = await find_run(asked)
    data = await asked.slowly(lambda: examples_of_run(run), is_long=is_large(run))
    headers = {"Content-Disposition": 'attachment; filename="examples.jsonl"', "X-Content-Type-Options": "nosniff"}
    return Response(data, media_type="application/x-ndjson", headers=headers)


async def read_document(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "name")
    name = query.get("name", "")
    if not name or len(name) > _LONGEST_NAME:
        raise Problem(
            400, "parameter-missing", "the parameter name is needed: the name of the file, such as report.pdf"
        )
    try:
        document = await asked.slowly(lambda: read_bytes(asked.body, name=name), is_long=True)
    except DocumentError as error:
        raise Problem(422, "document-unreadable", str(error)) from error
    text = normalize_text(document.text)
    return json_reply(DocumentText(text=text, media_type=document.media_type, name=name))


def _decide(run: Run, wish: Wish, by: str) -> tuple[Decision, RunView]:
    graph, ontology, text = run.graph(), run.ontology(), run.text()
    index = None if ontology is None else OntologyIndex(ontology)
    try:
        decision = run.review().add(
            wish,
            by=by,
            now=time.time(),
            check=lambda before: check_wish(graph, before, wish, index=index, text=text),
        )
    except ReviewRefusedError as refusal:
        raise Problem(422, "decision-refused", str(refusal)) from refusal
    return decision, view_of(run)


async def _pending(asked: Asked) -> dict[str, Any]:
    """A run that has nothing to show yet but what was asked for."""
    service, key = asked.service, asked.request.path_params["key"]
    pending_run = (
        await asyncio.to_thread(service.pending_runs.read, asked.caller.space, key) if is_run_key(key) else None
    )
    pending = None if pending_run is None else pending_run.pending
    text = None if pending_run is None else normalize_text(pending_run.request.text)
    run = {"idempotencyKey": key, "status": "pending"} if pending is None else msgspec.to_builtins(pending)
    nothing: dict[str, Any] = dict.fromkeys(("entities", "relations", "rejected", "notes", "decisions"), ())
    return {"run": run, "text": text, "ontology": None, **nothing, "version": "found", "decided": {}}


def _named(view: RunView, names: tuple[str, ...]) -> RunView:
    return msgspec.structs.replace(view, run={**view.run, "ontologyNames": names})


_VERSION = Parameter(
    name="version",
    description="`found`: as extracted; `reviewed`: after all decisions; a number: after so many of them.",
    example="reviewed",
)
_EVIDENCE = (Evidence(0, 30, examples.TEXT),)
_STATEMENT = Statement(
    subject=EntityRef(name="Anna Stone", id=examples.ENTITY["id"]),
    predicate=examples.RELATION["predicate"],
    object=EntityRef(name="Acme Ltd", id=examples.RELATION["object"]),
    evidence=_EVIDENCE,
)
_WISH = Wish(action="accept", statement=_STATEMENT)
_DECISION = Decision(
    id="0190f3a1-7c1e-7a44-9d3b-5f0b6f1c2d3e", at=examples.INSTANT, by="local", run=examples.KEY, wish=_WISH
)
_VIEW = {
    "run": examples.RUN,
    "text": examples.TEXT,
    "ontology": None,
    "entities": [examples.ENTITY],
    "relations": [examples.RELATION],
    "rejected": [],
    "version": "reviewed",
    "decisions": [msgspec.to_builtins(Standing(decision=_DECISION, state="applied"))],
    "decided": {"0": "accept"},
}
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/runs/{key}/view",
        handle=get_view,
        name="getView",
        tag="runs",
        summary="A run in one piece: text, ontology in outline, graph, what was refused, and the decisions on it.",
        parameters=(KEY_PARAMETER, _VERSION),
        replies={200: Reply(description="The view.", schema=RunView, example=_VIEW)},
        problems=(400, 404, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/runs/{key}/decisions",
        handle=add_decision,
        name="addDecision",
        tag="runs",
        summary="A reviewer's decision: accept, reject, correct, add, retype, merge, split, or undo one.",
        parameters=(KEY_PARAMETER,),
        body=Wish,
        body_example=msgspec.to_builtins(_WISH),
        replies={
            201: Reply(
                description="It is kept, for every run of the document.",
                schema=DecisionAnswer,
                example={"decision": msgspec.to_builtins(_DECISION), "view": _VIEW},
            )
        },
        problems=(400, 404, 409, 413, 422),
    ),
    Route(
        method="GET",
        path="/api/v1/runs/{key}/examples",
        handle=get_examples,
        name="getExamples",
        tag="runs",
        summary="What reviewers decided, as examples to learn from, a line of JSON each.",
        parameters=(KEY_PARAMETER,),
        replies={
            200: Reply(
                description="The examples.",
                media_types=("application/x-ndjson",),
                example='{"text": "Anna Stone works for Acme Ltd.", "triples": []}\n',
            )
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/documents/text",
        handle=read_document,
        name="readDocument",
        tag="extraction",
        summary="The text of a PDF, DOCX, HTML, Markdown or text file; nothing is kept.",
        parameters=(Parameter(name="name", required=True, description="The file's name.", example="report.txt"),),
        body={"description": "The file."},
        body_example=examples.TEXT,
        body_media_types=("application/octet-stream", *SUPPORTED),
        replies={
            200: Reply(
                description="The text.",
                schema=DocumentText,
                example={"text": examples.TEXT, "mediaType": "text/plain", "name": "report.txt"},
            )
        },
        problems=(400, 413, 422),
    ),
)
