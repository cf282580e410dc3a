"""Questions to a collection: the SPARQL protocol, search by nearly a name, how two things are connected, plain words.

Rule: a query reads a snapshot that holds one collection and nothing else, in a process that is ended when its time is
over. There are no other graphs, no other tenants and no other servers to be reached from it. A model writes a query
and nothing else; what it may spend is bounded, and counts for the tenant's day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.collections.model import CollectionEvidence
from sameas.llm.errors import CallRefused
from sameas.llm.models import ModelError
from sameas.questions.answers import GRAPHS, MEDIA_TYPES, TABLES, AnswerFormat
from sameas.questions.ask import Answered, answer_question
from sameas.questions.desk import QuestionDesk
from sameas.questions.paths import Connection
from sameas.questions.query_text import read_query
from sameas.questions.search import FoundName
from sameas.questions.support import Cited
from sameas.server.http.route import Asked, Parameter, Reply, Route, json_reply, query_of, whole_number
from sameas.server.http.routes.collections import open_for
from sameas.server.problems import Problem
from sameas.server.runs.day_accounts import Spent, total
from sameas.server.schemas import FoundPath, Hits, Schema

T = TypeVar("T")
_API = "/api/v1/collections/{id}"
_FORM, _QUERY = "application/x-www-form-urlencoded", "application/sparql-query"
# SPARQLWrapper and others say there what `Accept` says.
_FORMAT_WORDS = ("format", "output", "results")
_KNOWN = frozenset(("query", "default-graph-uri", "named-graph-uri", "update", *_FORMAT_WORDS))
_ALSO: dict[str, AnswerFormat] = {
    "application/json": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/x-turtle": "turtle",
    "text/plain": "ntriples",
    "text/javascript": "json",
}
_BY_TYPE: dict[str, AnswerFormat] = {**{media: name for name, media in MEDIA_TYPES.items()}, **_ALSO}


async def sparql(asked: Asked) -> ASGIApp:
    given = _protocol(asked)
    # The longest that is read takes a tenth of a second.
    read = await asyncio.to_thread(read_query, given.query)
    wanted = _accepted(asked.request.headers.get("accept", "*/*"), is_graph=read.form in ("CONSTRUCT", "DESCRIBE"))

    def work(desk: QuestionDesk) -> tuple[bytes, str]:
        answer = desk.query(given.query, default_graphs=given.default_graphs, named_graphs=given.named_graphs)
        return answer.as_format(wanted, prefixes=desk.prefixes), f"{desk.collection.id}-{answer.revision}"

    data, state = await _ask(asked, work)
    headers = {
        "Vary": "Accept",
        "ETag": f'"{state}"',
        "Cache-Control": "private, no-cache",
    }
    return Response(data, media_type=MEDIA_TYPES[wanted], headers=headers)


async def find(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "q", "limit")
    text = query.get("q", "")
    if not text.strip():
        raise Problem(400, "parameter-invalid", "say what to look for: ?q=")
    limit = whole_number(query.get("limit"), name="limit", default=20, least=1, most=200)
    return json_reply(Hits(hits=tuple(await _ask(asked, lambda desk: desk.find(text[:1000], limit=limit)))))


async def path(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "a", "b", "longest")
    ends = [query.get(name, "") for name in ("a", "b")]
    if not all(ends):
        raise Problem(400, "parameter-invalid", "say which two things: ?a=&b=, by their ids or names")
    longest = whole_number(query.get("longest"), name="longest", default=6, least=1, most=12)
    return json_reply(FoundPath(path=tuple(await _ask(asked, lambda desk: desk.path(*ends, longest=longest)))))


class _Given(msgspec.Struct, frozen=True):
    query: str
    default_graphs: tuple[str, ...]
    named_graphs: tuple[str, ...]


def _protocol(asked: Asked) -> _Given:
    """A query by any of the three ways of the SPARQL 1.1 protocol."""
    request = asked.request
    fields = request.query_params.multi_items()
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            body = asked.body.decode()
        except UnicodeDecodeError:
            raise Problem(400, "query-invalid", "the query is not UTF-8") from None
        if kind == _QUERY:
            fields = [*fields, ("query", body)]
        elif kind == _FORM:
            fields = [*fields, *parse_qsl(body, keep_blank_values=True, max_num_fields=100)]
        else:
            raise Problem(415, "media-type-unknown", f"a query is sent as {_FORM} or {_QUERY}")
    unknown = [name for name, _ in fields if name not in _KNOWN]
    if unknown:
        raise Problem(400, "parameter-unknown", f"{unknown[0][:100]!r} is not a parameter of the SPARQL protocol")
    if any(name == "update" for name, _ in fields):
        raise Problem(
            403, "read-only", "a collection is changed through its documents and decisions, never by an update"
        )
    queries = [value for name, value in fields if name == "query"]
    if len(queries) != 1:
        raise Problem(400, "query-missing", "give one query: ?query=")
    graphs = {
        which: tuple(value for name, value in fields if name == which)
        for which in ("default-graph-uri", "named-graph-uri")
    }
    return _Given(queries[0], graphs["default-graph-uri"], graphs["named-graph-uri"])


def _accepted(accept: str, *, is_graph: bool) -> AnswerFormat:
    """What to write, by what the client would rather have."""
    own = GRAPHS if is_graph else TABLES
    ranked: list[tuple[float, int, AnswerFormat]] = []
    for place, part in enumerate(accept.split(",")[:50]):
        media, _, parameters = part.partition(";")
        media = media.strip().lower()
        weight = _weight(parameters)
        if media in ("*/*", "") or media == "application/*":
            ranked.append((-weight, place, own[0]))
        elif media == "text/*":
            ranked.append((-weight, place, "turtle" if is_graph else "csv"))
        elif (found := _BY_TYPE.get(media)) in own and found is not None:
            ranked.append((-weight, place, found))
    best = min((one for one in ranked if one[0] < 0), default=None)
    if best is None:
        raise Problem(406, "not-acceptable", f"the answer is one of {', '.join(MEDIA_TYPES[one] for one in own)}")
    return best[2]


def _weight(parameters: str) -> float:
    for one in parameters.split(";"):
        name, _, value = one.strip().partition("=")
        if name == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


async def _ask(asked: Asked, work: Callable[[QuestionDesk], T]) -> T:
    collection = await open_for(asked, "reader")
    return await asked.service.questions.ask(asked.caller.ctx.tenant_id, collection, work)


_ID = Parameter(name="id", place="path", description="A collection's id or name.", example="press", required=True)
_EVIDENCE = CollectionEvidence(
    document="sha256-0", start=0, end=27, text="Alice Stone works for Acme.", document_name="a.txt"
)
_STEP = Connection(
    subject="alice-stone-1",
    subject_name="Alice Stone",
    predicate="https://example.org/company#worksFor",
    object="acme-2",
    object_name="Acme",
    forward=True,
    evidence=(_EVIDENCE,),
)
_PATH = msgspec.to_builtins(FoundPath(path=(_STEP,)))
_HIT = FoundName(id="acme-2", name="Acme", matched="Acme", type="https://example.org/company#Company", score=1.0)
_GRAPHS = tuple(
    Parameter(name=name, description="A graph of the collection: the IRI of a document.")
    for name in ("default-graph-uri", "named-graph-uri")
)
_EXAMPLE = "SELECT * { ?s ?p ?o } LIMIT 10"
_ANSWER = {
    200: Reply(
        description="The rows, or the graph.",
        media_types=tuple(MEDIA_TYPES.values()),
        example="",
        headers=("ETag", "Vary", "Cache-Control"),
    )
}
_PROBLEMS = (400, 403, 404, 406, 422, 503)


# Set aside before a question is asked; what it took is counted afterwards.
_LIKELY = Spent(4096)


class Question(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question, and which of the service's models is to write its query."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


async def ask_question(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=Question)
    desk = asked.service.questions.desk(await open_for(asked, "reader"))
    try:
        return json_reply(await asked.service.do(_answered(asked, desk, wish)))
    except (ModelError, CallRefused) as error:
        raise Problem(503, "model-unavailable", f"the model gave no query: {error}", retry_after=5.0) from error


async def _answered(asked: Asked, desk: QuestionDesk, wish: Question) -> Answered:
    service, tenant = asked.service, asked.caller.ctx.tenant_id
    supervisor = service.question_supervisor(wish.model, tenant)
    reserved = await service.accounts.begin(tenant, likely=_LIKELY, most=_LIKELY)
    try:
        return await answer_question(desk, wish.question, supervisor)
    finally:
        await service.accounts.end(reserved, total(supervisor.usage.rows))


_CITED = "Acme Ltd is based in Paris."
_ANSWERED = Answered(
    question="Where is Acme based?",
    text="Paris [1]",
    is_supported=True,
    sparql="SELECT ?city { ?company :headquarters ?city } LIMIT 50",
    columns=("city",),
    rows=(("Paris",),),
    citations=(Cited(text=_CITED, document="sha256-0", document_name="a.txt", start=0, end=27),),
)


ROUTES = (
    Route(
        method="GET",
        path=f"{_API}/sparql",
        handle=sparql,
        name="querySparql",
        tag="questions",
        summary="The SPARQL 1.1 protocol: a query that reads the collection.",
        parameters=(_ID, Parameter(name="query", required=True, example=_EXAMPLE), *_GRAPHS),
        replies=_ANSWER,
        problems=_PROBLEMS,
    ),
    Route(
        method="POST",
        path=f"{_API}/sparql",
        handle=sparql,
        name="postSparql",
        tag="questions",
        summary="The same, with the query in the body or in a form.",
        parameters=(_ID, *_GRAPHS),
        replies=_ANSWER,
        problems=(*_PROBLEMS, 413, 415),
        body={"type": "string"},
        body_example=_EXAMPLE,
        body_media_types=(_QUERY, _FORM),
    ),
    Route(
        method="GET",
        path=f"{_API}/find",
        handle=find,
        name="findByName",
        tag="questions",
        summary="Things by a name that is nearly theirs.",
        parameters=(_ID, Parameter(name="q", required=True, example="Acme"), Parameter(name="limit", example=20)),
        replies={200: Reply(description="Best first.", schema=Hits, example=msgspec.to_builtins(Hits(hits=(_HIT,))))},
        problems=(400, 404, 503),
    ),
    Route(
        method="GET",
        path=f"{_API}/path",
        handle=path,
        name="findPath",
        tag="questions",
        summary="How two things are connected, by the fewest facts.",
        parameters=(
            _ID,
            Parameter(name="a", required=True, example="Alice Stone"),
            Parameter(name="b", required=True, example="Acme"),
            Parameter(name="longest", example=6),
        ),
        replies={200: Reply(description="The facts, in order.", schema=FoundPath, example=_PATH)},
        problems=(400, 404, 409, 503),
    ),
    Route(
        method="POST",
        path="/api/v1/collections/{id}/ask",
        handle=ask_question,
        name="askCollection",
        tag="collections",
        summary="Ask in plain words: a model writes the query, and sentences of documents give the answer.",
        parameters=(
            Parameter(name="id", place="path", required=True, description="Its id or its name.", example="press"),
        ),
        body=Question,
        body_example={"question": "Where is Acme based?"},
        replies={200: Reply(description="The answer.", schema=Answered, example=msgspec.to_builtins(_ANSWERED))},
        problems=(400, 403, 404, 413, 422, 429),
    ),
)
