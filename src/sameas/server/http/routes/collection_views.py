"""`/api/v1/collections/{id}/graph` and `/outline`: what the web app draws of a collection, a small part at a time.

Rule: whoever may read the collection may see this; never more than was asked for, however large it is.
"""

from __future__ import annotations

import msgspec
from starlette.types import ASGIApp

from sameas.collections import Collection
from sameas.collections.model import EntityInfo
from sameas.collections.neighbourhood import Neighbourhood, around, most_connected
from sameas.ontology.outline import ClassOutline, Outline, outline_of
from sameas.server.http import examples
from sameas.server.http.replies import json_reply, query_of, whole_number
from sameas.server.http.route import Asked, Parameter, Reply, Route
from sameas.server.http.routes.collections import open_for
from sameas.server.problems import Problem

_BEGINNING = 4
_MOST_OPENED = 20
_LONGEST_ID = 255


async def get_graph(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "around", "limit")
    limit = whole_number(query.get("limit"), name="limit", default=40, least=1, most=200)
    ids = query.get("around", "").split(" ") if "around" in query else []
    if len(ids) > _MOST_OPENED or not all(one.isprintable() and 0 < len(one) <= _LONGEST_ID for one in ids):
        raise Problem(
            400, "parameter-invalid", f"around must be 1 to {_MOST_OPENED} ids of things, with a blank between"
        )

    def work(collection: Collection) -> Neighbourhood:
        beginning = ids or most_connected(collection, limit=_BEGINNING)
        with collection.reading() as reader:
            return around(reader, beginning, limit=limit)

    collection = await open_for(asked, "reader")
    return json_reply(await asked.slowly(lambda: work(collection)))


async def get_outline(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    collection = await open_for(asked, "reader")
    return json_reply(await asked.slowly(lambda: outline_of(collection.ontology)))


_ID = Parameter(name="id", place="path", required=True, description="Its id or its name.", example="press")
_THING = EntityInfo(
    id="anna-stone-0a1b2c3d4e5f6071",
    iri="urn:sameas:anna-stone-0a1b2c3d4e5f6071",
    name="Anna Stone",
    types=(f"{examples.IRI}#Person",),
)
_OUTLINE = Outline(iri=examples.IRI, classes=(ClassOutline(iri=f"{examples.IRI}#Person", label="person"),))
ROUTES = (
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
