"""The OpenAPI document, made from the routes and from the types that go over the wire.

Rule: nothing is written twice. Schemas come from the structs that decode requests and encode answers; every answer and
every refusal has an example. What any request may be refused with is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from sameas import __version__
from sameas.extraction.events.events import EVENT_TYPES
from sameas.server.http.route import Parameter, Reply, Route
from sameas.server.problems import MEDIA_TYPE, TITLES

_EXAMPLES = {
    400: ("malformed", "the body is not the JSON that is wanted; send an object in UTF-8"),
    401: ("unauthenticated", "this endpoint needs a credential: send Authorization or X-API-Key"),
    403: ("case-unknown", "there is no such case"),
    404: ("not-found", "there is no run sha256-3f2a9c41; list the runs to see their keys"),
    406: ("not-acceptable", "a graph can be given as application/json, text/turtle"),
    408: ("body-too-slow", "the body did not come within 120 seconds; send it again"),
    409: ("in-progress", "The same work is in progress; ask again later."),
    410: ("result-deleted", "What this key stood for was deleted; take a new key to have it redone."),
    413: ("body-too-large", "the body has more than 16777216 bytes; send less at a time"),
    415: ("media-type-unknown", "an ontology is sent as text/turtle, application/rdf+xml"),
    422: ("invalid", "Expected `str`, got `int` - at `$.text`"),
    424: ("model-refuses", "openai:gpt-5-mini at api.openai.com: the key was refused: check it and what it may use"),
    429: ("too-many-streams", "at most 1000 streams may be open; end one"),
    431: ("headers-too-large", "send at most 100 headers and 32768 bytes"),
    500: ("internal", "an error that nobody thought of; the log has it under this trace"),
    503: ("overloaded", "too many requests are under way; ask again later"),
}
_PUBLIC = (400, 431, 503)
_EVERYWHERE = (400, 401, 403, 431, 500, 503)
_WITH_A_BODY = (408,)
_REF = "#/components/schemas/{name}"


def openapi_document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document."""
    types = list(_types(routes))
    # All at once: two structs of one name are told apart by their modules, in the references too.
    found, schemas = msgspec.json.schema_components([*types, *EVENT_TYPES], ref_template=_REF)
    schema_of = dict(zip(types, found, strict=False))
    paths: dict[str, Any] = {}
    for route in routes:
        path = re.sub(r":\w+\}", "}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sameas",
            "version": __version__,
            "description": "Documents to knowledge graphs true to an ontology, and never the same work twice. "
            "Every refusal is an `application/problem+json`. `WS /api/rpc` speaks the same over a WebSocket.",
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Problem": _PROBLEM},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _types(routes: Iterable[Route]) -> Iterable[Any]:
    for route in routes:
        if route.body is not None and not isinstance(route.body, dict):
            yield route.body
        for reply in route.replies.values():
            if reply.schema is not None and not isinstance(reply.schema, dict):
                yield reply.schema


def _operation(route: Route, schema_of: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    responses = {str(status): _response(reply, schema_of) for status, reply in route.replies.items()}
    also = (*(_PUBLIC if route.public else _EVERYWHERE), *(() if route.body is None else _WITH_A_BODY))
    for status in sorted({*route.problems, *also}):
        if str(status) not in responses:
            responses[str(status)] = _refusal(status)
        else:
            responses[str(status)]["content"] = responses[str(status)].get("content", {}) | _refusal(status)["content"]
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [_parameter(one) for one in route.parameters],
        "responses": responses,
    }
    if not route.public:
        operation["security"] = [{}, {"bearer": []}, {"apiKey": []}]
    if route.body is not None:
        schema = route.body if isinstance(route.body, dict) else schema_of[route.body]
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schema, "example": route.body_example} for media in route.body_media_types},
        }
    return operation


def _response(reply: Reply, schema_of: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": reply.description}
    if reply.example is not None or reply.schema is not None:
        schema = reply.schema if isinstance(reply.schema, dict) else schema_of.get(reply.schema, {})
        content: dict[str, Any] = {"schema": schema or {"type": "string"}, "example": reply.example}
        if reply.schema is None:
            # Text that is not JSON has no schema that a JSON validator could use.
            content = {"example": reply.example}
        response["content"] = dict.fromkeys(reply.media_types, content)
    for media in reply.also:
        response["content"].setdefault(media, {"example": ""})
    if reply.headers:
        response["headers"] = {name: {"schema": {"type": "string"}} for name in reply.headers}
    return response


def _refusal(status: int) -> dict[str, Any]:
    code, detail = _EXAMPLES[status]
    example = {
        "type": f"urn:sameas:problem:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
    }
    return {
        "description": TITLES.get(status, "Error"),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}},
    }


def _parameter(one: Parameter) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": one.name, "in": one.place, "required": one.required, "schema": dict(one.schema)}
    if one.description:
        shown["description"] = one.description
    if one.example is not None:
        shown["example"] = one.example
    return shown


_PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457: why the request was refused, and what to do.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "fields": {"type": "array", "items": {"type": "string"}},
    },
}
