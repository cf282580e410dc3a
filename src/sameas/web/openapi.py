"""The contract of idempotent routes in the OpenAPI document of a FastAPI application.

Each route shows the header, the replies that the middleware may give, and as `x-idempotency` its scope, whether the key
is required and after how many seconds an answer is forgotten. The document is amended when it is asked for; the routes
themselves are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Final

from msgspec import Struct, structs

from sameas.web.frameworks import leaves, mounted
from sameas.web.problem import MEDIA_TYPE
from sameas.web.route import MAX_KEY, USUAL_KEY, RoutePolicy
from sameas.web.table import RouteTable, Rule

HEADER: Final = "Idempotency-Key"
_SCHEMA: Final = "IdempotencyProblem"
_BARE: Final = r"[!#-+\--:<-\[\]-~]"
_QUOTED: Final = r'(?:[!#-\[\]-~]|\\["\\])'
_PUBLISHED: Final = "__sameas_published__"

PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "title": _SCHEMA,
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "fields": {"type": "array", "items": {"type": "string"}},
        "original_status": {"type": "integer"},
        "original_size": {"type": "integer"},
    },
}
REPLIES: Final = {
    "400": "The key is missing or malformed, or the body cannot be compared; nothing was run",
    "409": "The same request is in progress, or its answer was too large to keep",
    "413": "The body is too large; nothing was run",
    "422": "The key was used before for another request or with another credential; nothing was run",
    "503": "The store of keys does not answer; nothing was run",
}


class RoutePlace(Struct, frozen=True):
    """Where an application is. `mount` is where the one that has the middleware is mounted within others, the end of
    `root`; `below` is where this one is mounted within that one, and `host` its host's pattern."""

    mount: str = ""
    root: str = ""
    below: str = ""
    host: str = ""


HERE: Final = RoutePlace()


def publish_once(app: Any, table: RouteTable, *, place: RoutePlace = HERE) -> bool:
    """Amend the documents that a FastAPI application and those mounted below it give out from now on; False if there
    is none.

    Raises nothing.
    """
    found = _publish(app, table, place)
    for host, below, inner in mounted(getattr(app, "routes", None) or ()):
        found |= _publish(inner, table, structs.replace(place, below=below, host=host))
    return found


def _publish(app: Any, table: RouteTable, place: RoutePlace) -> bool:
    openapi: Callable[[], dict[str, Any]] | None = getattr(app, "openapi", None)
    if openapi is None or not callable(openapi) or not hasattr(app, "openapi_schema"):
        return False
    if getattr(openapi, _PUBLISHED, False):
        return True
    document = openapi

    def amended() -> dict[str, Any]:
        return amend(document(), app, table, place=place)

    setattr(amended, _PUBLISHED, True)
    app.openapi = amended
    return True


def amend(document: dict[str, Any], app: Any, table: RouteTable, *, place: RoutePlace = HERE) -> dict[str, Any]:
    """The document, with the contract of every route that the table has a policy for."""
    found = False
    for template, methods, endpoint in leaves(app.routes):
        operations = document.get("paths", {}).get(template, {})
        for method in methods & {name.upper() for name in operations}:
            rule = table.rule_of(
                method, place.below + template, endpoint, mount=place.mount, root=place.root, host=place.host
            )
            if rule is not None:
                _describe(operations[method.lower()], rule)
                found = True
    if found:
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas[_SCHEMA] = PROBLEM_SCHEMA
    return document


def _header_pattern(policy: RoutePolicy) -> str:
    """What the header may be: the key in quotes, or bare."""
    if policy.key_pattern == USUAL_KEY:
        return f'^(?:"{_QUOTED}{{1,{MAX_KEY}}}"|{_BARE}{{1,{MAX_KEY}}})$'
    return f'^(?:"(?:{policy.key_pattern})"|(?={policy.key_pattern}$){_BARE}+)$'


def _describe(operation: dict[str, Any], rule: Rule) -> None:
    policy = rule.policy
    parameters = operation.setdefault("parameters", [])
    if policy.key != "content" and not any(
        each.get("in") == "header" and each.get("name", "").lower() == HEADER.lower() for each in parameters
    ):
        parameters.append(
            {
                "name": HEADER,
                "in": "header",
                "required": policy.key == "required",
                "description": "Names this request: a retry under the same key gets the first answer again.",
                "schema": {"type": "string", "pattern": _header_pattern(policy), "maxLength": MAX_KEY + 2},
            }
        )
    replies = operation.setdefault("responses", {})
    for status, description in REPLIES.items():
        reply = replies.setdefault(status, {"description": description})
        reply.setdefault("content", {})[MEDIA_TYPE] = {"schema": {"$ref": f"#/components/schemas/{_SCHEMA}"}}
        if status == "400":
            # What is compared by its bytes may still be refused by the application, in its own way.
            reply["content"].setdefault("application/json", {})
        if status in ("409", "503"):
            reply.setdefault("headers", {})["Retry-After"] = {"schema": {"type": "integer"}}
    for status, reply in replies.items():
        if status[:1] in ("2", "3"):
            headers = reply.setdefault("headers", {})
            headers["X-Idempotency-Replayed"] = {"schema": {"type": "string", "enum": ["true", "false"]}}
            headers["Idempotency-Expires"] = {"schema": {"type": "string"}, "description": "An HTTP date"}
    operation["x-idempotency"] = {
        "scope": rule.scope_name,
        "key": policy.key,
        "expiresAfterSeconds": None if rule.expires_after == inf else rule.expires_after,
    }
