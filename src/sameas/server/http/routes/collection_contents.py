"""What is in a collection: entities, statements, pairs, contradictions, what the web app draws, what curators decided.

Rule: whoever may read the collection may see this, and a curator decide; never more is given than was asked for,
however large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

import msgspec
from starlette.types import ASGIApp

from sameas.collections import Collection
from sameas.collections.contradictions import contradictions
from sameas.collections.model import Change, Decision, EntityInfo, EntityPage, Statement
from sameas.collections.views import Neighbourhood, Reader, around
from sameas.ontology.show import ClassOutline, Outline, outline_of
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, flag, json_reply, query_of, whole_number
from sameas.server.http.routes.collections import (
    AFTER_PARAMETER,
    EXAMPLE_CHANGE,
    EXAMPLE_DECISION,
    EXAMPLE_ENTITY,
    EXAMPLE_ID,
    LIMIT_PARAMETER,
    ask,
    endpoint,
    name_in_path,
    open_for,
    page_limit,
    part_of_path,
    read,
    text_of,
)
from sameas.server.problems import Problem
from sameas.server.schemas import (
    ContradictionPage,
    DecisionPage,
    EntityList,
    NewDecision,
    PairPage,
    StatementPage,
)

_BEGINNING = 4
_MOST_OPENED = 20
_LONGEST_ID = 255
T = TypeVar("T")


async def decide(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=NewDecision)
    a, b = text_of(wish.a), text_of(wish.b)
    done = await ask(asked, "curator", lambda one: one.decide(wish.verdict, a, b, reason=text_of(wish.reason)))
    asked.service.audit(
        asked.caller, "collection-decision", reason=wish.reason, collection=name_in_path(asked), decision=done.id
    )
    return json_reply(done, status=201)


async def list_decisions(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "undone", "limit", "after")
    limit, undone = page_limit(query), flag(query.get("undone"), name="undone")
    before = text_of(query.get("after"))
    found = await ask(asked, "reader", lambda one: one.decisions(undone=undone, before=before))
    more = found[limit - 1].id if len(found) > limit else None
    return json_reply(DecisionPage(decisions=tuple(found[:limit]), next=more))


async def undo_decision(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    id_ = text_of(asked.request.path_params["decision"])
    done = await ask(asked, "curator", lambda one: one.undo(id_))
    asked.service.audit(asked.caller, "collection-decision-undone", collection=name_in_path(asked), decision=id_)
    return json_reply(done)


async def put_known(asked: Asked) -> ASGIApp:
    name = text_of(query_of(asked.request, "name").get("name"))
    if not name:
        raise Problem(400, "parameter-invalid", "say what the list is called, such as ?name=staff.csv")
    return json_reply(await ask(asked, "curator", lambda one: one.link_known(name, asked.body), is_long=True))


async def list_entities(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "q", "type", "limit", "after")
    limit, kind, text = page_limit(query), query.get("type"), text_of(query.get("q"))
    name, _, id_ = text_of(query.get("after")).rpartition("\t")

    def work(reader: Reader) -> EntityList:
        if text:
            hits = [one for one in reader.search(text, limit=limit) if kind is None or kind in one.types]
            return EntityList(entities=tuple(hits))
        found = reader.entities(after=(name, id_), limit=limit + 1)
        more = f"{found[limit - 1].name}\t{found[limit - 1].id}" if len(found) > limit else None
        return EntityList(entities=tuple(one for one in found[:limit] if kind is None or kind in one.types), next=more)

    return json_reply(await read(asked, work))


async def get_entity(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    id_ = text_of(asked.request.path_params["entity"])
    return json_reply(await read(asked, lambda reader: reader.page(id_)))


async def list_statements(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "subject", "predicate", "object", "document", "evidence", "limit", "after")
    limit = page_limit(query)
    evidence = whole_number(query.get("evidence"), name="evidence", default=3, most=1000)
    after = text_of(query.get("after")) or "0:0"
    number, _, place = after.partition(":")
    if not (number.isdigit() and place.isdigit() and len(after) < 40):
        raise Problem(400, "parameter-invalid", "after must be the `next` of the page before")
    start, skip = int(number), int(place)

    def fits(one: Statement) -> bool:
        wanted = {"predicate": one.predicate, "object": one.object, "subject": one.subject}
        return all(query.get(name, value) == value for name, value in wanted.items())

    def narrow(reader: Reader) -> list[Statement]:
        if "document" in query:
            return reader.statements_in(query["document"], evidence=evidence)
        if "subject" in query:
            return reader.statements_of(query["subject"], evidence=evidence)
        return reader.statements_about(query["object"], evidence=evidence)

    def work(reader: Reader) -> StatementPage:
        if {"document", "subject", "object"} & query.keys():
            found = [one for one in narrow(reader) if fits(one)][skip:]
            more = f"0:{skip + limit}" if len(found) > limit else None
            return StatementPage(statements=tuple(found[:limit]), next=more)
        page: list[Statement] = []
        place_of: list[str] = []
        last, count = start, skip
        every = reader.all_statements(evidence=evidence, after=max(0, start - 1) if start else 0)
        position: dict[int, int] = {}
        for subject, one in every:
            at = position[subject] = position.get(subject, -1) + 1
            if (subject, at) < (last, count) or not fits(one):
                continue
            page.append(one)
            place_of.append(f"{subject}:{at}")
            if len(page) > limit:
                return StatementPage(statements=tuple(page[:limit]), next=place_of[limit])
        return StatementPage(statements=tuple(page))

    return json_reply(await read(asked, work))


async def list_pairs(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "limit", "after")
    return json_reply(
        await read(asked, _numbered(query, Reader.pairs, lambda found, more: PairPage(pairs=found, next=more)))
    )


async def list_contradictions(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "limit", "after")
    page = _numbered(query, contradictions, lambda found, more: ContradictionPage(contradictions=found, next=more))
    return json_reply(await read(asked, page))


async def get_graph(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "around", "limit")
    limit = whole_number(query.get("limit"), name="limit", default=40, least=1, most=200)
    ids = query.get("around", "").split(" ") if "around" in query else []
    if len(ids) > _MOST_OPENED or not all(one.isprintable() and 0 < len(one) <= _LONGEST_ID for one in ids):
        raise Problem(
            400, "parameter-invalid", f"around must be 1 to {_MOST_OPENED} ids of things, with a blank between"
        )

    def work(collection: Collection) -> Neighbourhood:
        with collection.reading() as reader:
            return around(reader, ids or reader.most_connected(limit=_BEGINNING), limit=limit)

    collection = await open_for(asked, "reader")
    return json_reply(await asked.slowly(lambda: work(collection)))


async def get_outline(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    collection = await open_for(asked, "reader")
    return json_reply(await asked.slowly(lambda: outline_of(collection.ontology)))


def _numbered(
    query: dict[str, str], found: Callable[[Reader], Any], page: Callable[[tuple[Any, ...], str | None], T]
) -> Callable[[Reader], T]:
    """A page of something that is made on the way: `after` is how many came before."""
    limit = page_limit(query)
    start = whole_number(query.get("after"), name="after", default=0)

    def work(reader: Reader) -> T:
        shown = tuple(islice(found(reader), start, start + limit + 1))
        return page(shown[:limit], str(start + limit) if len(shown) > limit else None)

    return work


_ID = Parameter(name="id", place="path", required=True, description="Its id or its name.", example="press")
_THING = EntityInfo(
    id="anna-stone-0a1b2c3d4e5f6071",
    iri="urn:sameas:anna-stone-0a1b2c3d4e5f6071",
    name="Anna Stone",
    types=(f"{examples.IRI}#Person",),
)
_OUTLINE = Outline(iri=examples.IRI, classes=(ClassOutline(iri=f"{examples.IRI}#Person", label="person"),))
ROUTES = (
    endpoint(
        "POST",
        "/{id}/decisions",
        decide,
        "decide",
        "Decide that two things are the same or different.",
        Decision,
        EXAMPLE_DECISION,
        status=201,
        body=NewDecision,
        problems=(400, 404, 409, 413, 422),
        body_example={"verdict": "same", "a": EXAMPLE_ENTITY.id, "b": "acme-ltd-0", "reason": "one register entry"},
    ),
    endpoint(
        "GET",
        "/{id}/decisions",
        list_decisions,
        "listDecisions",
        "What was decided, newest first.",
        DecisionPage,
        DecisionPage(decisions=(EXAMPLE_DECISION,)),
        parameters=(Parameter(name="undone", schema={"type": "boolean"}), LIMIT_PARAMETER, AFTER_PARAMETER),
    ),
    endpoint(
        "DELETE",
        "/{id}/decisions/{decision}",
        undo_decision,
        "undoDecision",
        "Take a decision back.",
        Decision,
        EXAMPLE_DECISION,
        parameters=(part_of_path("decision", EXAMPLE_ID),),
    ),
    endpoint(
        "PUT",
        "/{id}/known",
        put_known,
        "linkKnown",
        "Link a list of known things, CSV or a graph.",
        Change,
        EXAMPLE_CHANGE,
        body={"type": "string"},
        body_example="iri,name\nhttps://example.org/1,Acme\n",
        problems=(400, 404, 413, 422),
        body_media_types=("text/csv", "text/turtle", "application/octet-stream"),
        parameters=(Parameter(name="name", required=True, example="companies.csv"),),
    ),
    endpoint(
        "GET",
        "/{id}/entities",
        list_entities,
        "listEntities",
        "Things, or those with a name.",
        EntityList,
        EntityList(entities=(EXAMPLE_ENTITY,)),
        parameters=(Parameter(name="q", example="Acme"), Parameter(name="type"), LIMIT_PARAMETER, AFTER_PARAMETER),
    ),
    endpoint(
        "GET",
        "/{id}/entities/{entity}",
        get_entity,
        "getEntity",
        "All that is known of one thing.",
        EntityPage,
        EntityPage(entity=EXAMPLE_ENTITY, statements=(), mentioned_by=(), mentions=()),
        parameters=(part_of_path("entity", EXAMPLE_ENTITY.id),),
    ),
    endpoint(
        "GET",
        "/{id}/statements",
        list_statements,
        "listStatements",
        "Statements, each with its evidence.",
        StatementPage,
        StatementPage(statements=()),
        parameters=(
            Parameter(name="subject"),
            Parameter(name="predicate"),
            Parameter(name="object"),
            Parameter(name="document"),
            Parameter(name="evidence", schema={"type": "integer", "minimum": 0, "maximum": 1000}),
            LIMIT_PARAMETER,
            AFTER_PARAMETER,
        ),
    ),
    endpoint(
        "GET",
        "/{id}/pairs",
        list_pairs,
        "listPairs",
        "Things that may be one, likeliest first.",
        PairPage,
        PairPage(pairs=()),
        parameters=(LIMIT_PARAMETER, AFTER_PARAMETER),
    ),
    endpoint(
        "GET",
        "/{id}/contradictions",
        list_contradictions,
        "listContradictions",
        "What cannot all be true, with both sides.",
        ContradictionPage,
        ContradictionPage(contradictions=()),
        parameters=(LIMIT_PARAMETER, AFTER_PARAMETER),
    ),
    Route(
        method="GET",
        path="/api/v1/collections/{id}/graph",
        handle=get_graph,
        name="getCollectionGraph",
        tag="collections",
        summary="What some things of a collection are connected with; without ids, the most connected.",
        parameters=(
            _ID,
            Parameter(name="around", description="Ids of things, with a blank between.", example=_THING.id),
            Parameter(
                name="limit",
                description="How many facts each thing brings along.",
                schema={"type": "integer", "minimum": 1, "maximum": 200},
                example=40,
            ),
        ),
        replies={
            200: Reply(
                description="A part of the graph.",
                schema=Neighbourhood,
                example=msgspec.to_builtins(Neighbourhood(opened=(_THING.id,), entities=(_THING,))),
            )
        },
        problems=(400, 403, 404),
    ),
    Route(
        method="GET",
        path="/api/v1/collections/{id}/outline",
        handle=get_outline,
        name="getCollectionOutline",
        tag="collections",
        summary="The classes and properties of a collection's ontology with their names.",
        parameters=(_ID,),
        replies={200: Reply(description="The outline.", schema=Outline, example=msgspec.to_builtins(_OUTLINE))},
        problems=(400, 403, 404),
    ),
)
