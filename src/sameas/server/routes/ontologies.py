"""`/api/v1/ontologies`: put, get, list, delete and validate; and the clearing of a tenant's whole cache.

Rule: a put that changes nothing changes no version. One that does deletes the results of the version before, tells
every process and is written to the audit log; a delete removes the results. Sharing with every tenant is asked for in
so many words and needs the role for it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.run_record import SCOPE, ontology_tag
from sameas.extraction.runs import RunNotFoundError
from sameas.extraction.service import ExtractionService, results_id
from sameas.identity.ids import uuid7
from sameas.once.observe import Removed
from sameas.once.store import Selection
from sameas.ontology.errors import OntologyError
from sameas.ontology.review import review_ontology
from sameas.server import examples
from sameas.server.door import OPERATOR
from sameas.server.ontologies import SHARED, Registered
from sameas.server.problems import Problem, not_found
from sameas.server.replies import flag, json_reply, query_of
from sameas.server.route import Asked, Parameter, Reply, Route
from sameas.server.wire import (
    ONTOLOGY_ID,
    Invalidated,
    OntologyEntry,
    OntologyList,
    OntologyPut,
    OntologyReport,
    Reason,
    is_ontology_id,
)
from sameas.tenancy.directory import ADMIN_ROLE

MEDIA_TYPES = (
    "text/turtle",
    "application/rdf+xml",
    "application/ld+json",
    "application/n-triples",
    "application/n-quads",
    "application/trig",
    "application/json",
    "application/octet-stream",
)
# What curl says when it is not told.
_UNSAID = ("", "application/x-www-form-urlencoded")


async def list_ontologies(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    entries = await asked.service.do(asked.service.ontologies.list(asked.visitor.ctx.tenant_id))
    return json_reply(OntologyList(ontologies=entries))


async def get_ontology(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "content")
    found = await _found(asked)
    if not flag(query.get("content"), name="content"):
        return json_reply(found.entry, headers={"ETag": f'"{found.entry.version}"'})
    data = await asked.service.do(asked.service.ontologies.content(found))
    headers = {"X-Content-Type-Options": "nosniff", "Content-Disposition": "attachment"}
    return Response(data, media_type=found.entry.media_type or "application/octet-stream", headers=headers)


async def put_ontology(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "shared")
    ontology_id, owner = _id(asked), _owner(asked, query.get("shared"))
    media_type = _media_type(asked.request.headers.get("content-type", ""))
    if not asked.body.strip():
        raise Problem(422, "ontology-invalid", "the body is empty; send the ontology in it")
    service = asked.service
    put = await service.do(_put(asked, owner, ontology_id, media_type))
    if put.changed:
        service.answers.drop()
        service.audit(
            asked.visitor,
            "ontology-updated",
            ontologyId=ontology_id,
            oldVersion=put.old_version,
            newVersion=put.version,
            entriesInvalidated=put.entries_invalidated,
            shared=put.shared,
        )
    return json_reply(put, status=201 if put.created else 200)


async def delete_ontology(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "shared")
    ontology_id, owner = _id(asked), _owner(asked, query.get("shared"))
    service = asked.service
    removed = await service.do(_delete(asked, owner, ontology_id))
    service.answers.drop()
    service.audit(
        asked.visitor,
        "ontology-deleted",
        ontologyId=ontology_id,
        entriesInvalidated=removed,
        shared=owner == SHARED,
    )
    return json_reply(Invalidated(entries_invalidated=removed))


async def validate_ontology(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    _media_type(asked.request.headers.get("content-type", ""))
    try:
        ontology = await asyncio.to_thread(asked.service.ontologies.check, asked.body)
    except OntologyError as error:
        said = f"{error.what}. {error.todo}" if error.todo else error.what
        return json_reply(OntologyReport(valid=False, error=said, line=error.line, column=error.column))
    findings = await asyncio.to_thread(review_ontology, ontology)
    report = OntologyReport(
        valid=True,
        version=ontology.version,
        iri=ontology.iri,
        classes=len(ontology.classes),
        properties=len(ontology.properties),
        findings=tuple(msgspec.to_builtins(finding) for finding in findings),
    )
    return json_reply(report)


async def clear_cache(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.visitor.must_be(ADMIN_ROLE, to="clearing the cache")
    reason = msgspec.json.decode(asked.body, type=Reason).reason
    service, tenant = asked.service, asked.visitor.ctx.tenant_id
    removed = await service.do(_clear(asked, tenant))
    service.answers.drop()
    service.audit(asked.visitor, "cache-cleared", reason=reason, entriesInvalidated=removed)
    return json_reply(Invalidated(entries_invalidated=removed))


async def _put(asked: Asked, owner: str, ontology_id: str, media_type: str) -> OntologyPut:
    service = asked.service
    entry, before = await service.ontologies.put(
        owner, ontology_id, asked.body, media_type=media_type, audit=asked.visitor.audit, nonce=str(uuid7())
    )
    changed = before is None or before.version != entry.version
    removed = 0
    if changed:
        if before is not None:
            removed = await _invalidate(asked, owner, before, entry.version)
        await service.publish(
            type="ontology-updated",
            tenant=owner,
            shared=owner == SHARED,
            ontology_id=ontology_id,
            old_version=before.version if before is not None else None,
            new_version=entry.version,
        )
    return OntologyPut(
        id=ontology_id,
        version=entry.version,
        old_version=before.version if before is not None else None,
        changed=changed,
        created=before is None,
        entries_invalidated=removed,
        shared=owner == SHARED,
    )


async def _invalidate(asked: Asked, owner: str, before: OntologyEntry, version: str) -> int:
    """Delete the results of the version before, of everybody who may have some."""
    service, old = asked.service, results_id(before.iri, before.version)
    removed = 0
    for _, space in await _spaces(asked, owner):
        removed += await space.invalidate_ontology(old, before.version, version, audit=asked.visitor.audit)
    if owner == SHARED:
        removed += await service.engine.forget_where(scope=SCOPE, tag=ontology_tag(old))
    return removed


async def _spaces(asked: Asked, owner: str) -> list[tuple[str, ExtractionService]]:
    """Those in which results of an owner's ontology may be; of a shared one only those that are open here."""
    spaces = asked.service.spaces
    return [("", one) for one in spaces.all()] if owner == SHARED else await spaces.of_tenant(owner)


async def _delete(asked: Asked, owner: str, ontology_id: str) -> int:
    service = asked.service
    before = await service.ontologies.delete(owner, ontology_id, audit=asked.visitor.audit, nonce=str(uuid7()))
    if before is None:
        raise not_found(f"ontology {ontology_id!r} of yours", todo="list those that are there")
    old = results_id(before.iri, before.version)
    removed, spaces = 0, await _spaces(asked, owner)
    for _, space in spaces:
        removed += await asyncio.to_thread(_remove_all, space.runs, old)
    service.observe(Removed("forgotten", removed, Selection(scope=SCOPE)))
    for tenant in [None] if owner == SHARED else [name for name, _ in spaces]:
        removed += await service.engine.forget_where(tenant=tenant, scope=SCOPE, tag=ontology_tag(old))
    await service.publish(
        type="ontology-deleted",
        tenant=owner,
        shared=owner == SHARED,
        ontology_id=ontology_id,
        old_version=before.version,
    )
    return removed


async def _clear(asked: Asked, tenant: str) -> int:
    service = asked.service
    removed, spaces = 0, await service.spaces.of_tenant(tenant)
    for _, space in spaces:
        removed += await asyncio.to_thread(_remove_all, space.runs, None)
    service.observe(Removed("forgotten", removed, Selection(scope=SCOPE)))
    for name, _ in spaces:
        removed += await service.engine.forget_where(tenant=name, scope=SCOPE)
    await service.publish(type="cache-cleared", tenant=tenant)
    return removed


def _remove_all(runs: Any, ontology: str | None) -> int:
    removed = 0
    for metadata in runs.list(ontology=ontology):
        if metadata.is_under_way:
            continue
        try:
            runs.remove(metadata.idempotency_key)
        except RunNotFoundError:
            continue
        removed += 1
    return removed


async def _found(asked: Asked) -> Registered:
    ontology_id = _id(asked)
    found = await asked.service.do(asked.service.ontologies.find(asked.visitor.ctx.tenant_id, ontology_id))
    if found is None:
        raise not_found(f"ontology {ontology_id!r}", todo="put it first, or list those that are there")
    return found


def _id(asked: Asked) -> str:
    ontology_id: str = asked.request.path_params["id"]
    if not is_ontology_id(ontology_id):
        raise Problem(
            404,
            "not-found",
            "that is no ontology's id: it has 1 to 1024 printable characters, no blanks or <>\"{}|^`\\",
        )
    return ontology_id


def _owner(asked: Asked, shared: str | None) -> str:
    if not flag(shared, name="shared"):
        return asked.visitor.ctx.tenant_id
    asked.visitor.must_be(OPERATOR, to="sharing an ontology with every tenant")
    return SHARED


def _media_type(content_type: str) -> str:
    named = content_type.partition(";")[0].strip().lower()
    if named in _UNSAID:
        return "application/octet-stream"
    if named not in MEDIA_TYPES:
        raise Problem(415, "media-type-unknown", f"an ontology is sent as {', '.join(MEDIA_TYPES)}")
    return named


_ID = Parameter(
    name="id",
    place="path",
    required=True,
    description="An IRI or a name.",
    schema={"type": "string", "pattern": ONTOLOGY_ID},
    example="company",
)
_SHARED = Parameter(
    name="shared",
    description="For every tenant; needs the role `operator`.",
    schema={"type": "boolean"},
    example=False,
)
_BODY: dict[str, Any] = {"description": "The ontology, in any notation that is read."}
_PUT = OntologyPut(
    id="company", version=examples.VERSION, old_version=None, changed=True, created=True, entries_invalidated=0
)
_REPORT = OntologyReport(valid=True, version=examples.VERSION, iri=examples.IRI, classes=1)
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/ontologies",
        handle=list_ontologies,
        name="listOntologies",
        tag="ontologies",
        summary="The ontologies that can be named in requests: one's own and the shared ones.",
        replies={
            200: Reply(description="All.", schema=OntologyList, example={"ontologies": [examples.ONTOLOGY]}),
        },
        problems=(400,),
    ),
    Route(
        method="POST",
        path="/api/v1/ontologies/validate",
        handle=validate_ontology,
        name="validateOntology",
        tag="ontologies",
        summary="What a reviewer would say of an ontology; nothing is kept.",
        body=_BODY,
        body_example=examples.TURTLE,
        body_media_types=MEDIA_TYPES,
        replies={
            200: Reply(description="A report.", schema=OntologyReport, example=msgspec.to_builtins(_REPORT)),
        },
        problems=(400, 413, 415),
    ),
    Route(
        method="GET",
        path="/api/v1/ontologies/{id:path}",
        handle=get_ontology,
        name="getOntology",
        tag="ontologies",
        summary="An ontology: its entry, or with `content=true` the file as it was put.",
        parameters=(_ID, Parameter(name="content", schema={"type": "boolean"}, example=False)),
        replies={
            200: Reply(
                description="The entry, or the file.",
                schema=OntologyEntry,
                example=examples.ONTOLOGY,
                headers=("ETag",),
                also=MEDIA_TYPES,
            )
        },
        problems=(400, 404),
    ),
    Route(
        method="PUT",
        path="/api/v1/ontologies/{id:path}",
        handle=put_ontology,
        name="putOntology",
        tag="ontologies",
        summary="Register an ontology; a new version deletes the results of the old one.",
        parameters=(_ID, _SHARED),
        body=_BODY,
        body_example=examples.TURTLE,
        body_media_types=MEDIA_TYPES,
        replies={
            200: Reply(
                description="Updated, or unchanged.",
                schema=OntologyPut,
                example={**msgspec.to_builtins(_PUT), "created": False, "changed": False},
            ),
            201: Reply(description="New.", schema=OntologyPut, example=msgspec.to_builtins(_PUT)),
        },
        problems=(400, 404, 413, 415, 422),
    ),
    Route(
        method="DELETE",
        path="/api/v1/ontologies/{id:path}",
        handle=delete_ontology,
        name="deleteOntology",
        tag="ontologies",
        summary="Delete an ontology and its results.",
        parameters=(_ID, _SHARED),
        replies={
            200: Reply(description="It is gone.", schema=Invalidated, example={"entriesInvalidated": 3}),
        },
        problems=(400, 404),
    ),
    Route(
        method="POST",
        path="/api/v1/cache/clear",
        handle=clear_cache,
        name="clearCache",
        tag="ontologies",
        summary="Delete every result of the tenant; needs the role `tenant-admin`.",
        body=Reason,
        body_example={"reason": "the extractor was found to be wrong"},
        replies={
            200: Reply(description="It is empty.", schema=Invalidated, example={"entriesInvalidated": 12}),
        },
        problems=(400, 413, 422),
    ),
)
