"""`/api/v1/ontologies`: put, get, list, delete and validate; and the clearing of a tenant's whole cache.

Rule: a put that changes nothing changes no version. One that does deletes the results of the version before, tells
every process and is written to the audit log. Results belong to an ontology's id: they go with the ontology, and not
with one of several names, nor with another owner's ontology of the same id. Sharing with every tenant is asked for in
so many words and needs the role for it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.runs.record import SCOPE, ontology_tag
from sameas.extraction.runs.service import ExtractionService
from sameas.identity.ids import uuid7
from sameas.once.observe import Removed
from sameas.once.store import Query, Selection
from sameas.ontology.errors import OntologyError
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, flag, json_reply, query_of
from sameas.server.logs import log_invalidation
from sameas.server.problems import Problem, not_found
from sameas.server.schemas import (
    ONTOLOGY_ID,
    Invalidated,
    OntologyEntry,
    OntologyList,
    OntologyPut,
    OntologyReport,
    Reason,
    is_ontology_id,
)
from sameas.server.tenants.access import OPERATOR
from sameas.server.tenants.ontologies import SHARED, Registered
from sameas.server.tenants.workspaces import tenant_of
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
_PAGE = 500


async def list_ontologies(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    entries = await asked.service.do(asked.service.ontologies.list(asked.caller.ctx.tenant_id))
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
    name, owner = _id(asked), owner_of(asked, query.get("shared"))
    media_type = check_media_type(asked.request.headers.get("content-type", ""))
    if not asked.body.strip():
        raise Problem(422, "ontology-invalid", "the body is empty; send the ontology in it")
    service = asked.service
    put = await service.do(_put(asked, owner, name, media_type))
    if put.changed or put.created:
        service.answers.drop()
        service.audit(
            asked.caller,
            "ontology-updated",
            ontologyId=put.id,
            name=name,
            oldVersion=put.old_version,
            newVersion=put.version,
            entriesInvalidated=put.entries_invalidated,
            shared=put.shared,
        )
    return json_reply(put, status=201 if put.created else 200)


async def delete_ontology(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "shared")
    name, owner = _id(asked), owner_of(asked, query.get("shared"))
    service = asked.service
    ontology_id, removed = await service.do(_delete(asked, owner, name))
    service.answers.drop()
    service.audit(
        asked.caller,
        "ontology-deleted",
        ontologyId=ontology_id,
        name=name,
        entriesInvalidated=removed,
        shared=owner == SHARED,
    )
    return json_reply(Invalidated(entries_invalidated=removed))


async def validate_ontology(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    check_media_type(asked.request.headers.get("content-type", ""))
    try:
        ontology = await asked.service.do(asked.service.ontologies.review(asked.body))
    except OntologyError as error:
        return json_reply(OntologyReport(valid=False, error=error.said, line=error.line, column=error.column))
    report = OntologyReport(
        valid=True,
        version=ontology.version,
        iri=ontology.iri,
        classes=ontology.classes,
        properties=ontology.properties,
        findings=ontology.findings,
    )
    return json_reply(report)


async def clear_cache(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.caller.must_be(ADMIN_ROLE, to="clearing the cache")
    reason = msgspec.json.decode(asked.body, type=Reason).reason
    service, tenant = asked.service, asked.caller.ctx.tenant_id
    removed = await service.do(_clear(asked, tenant))
    service.answers.drop()
    service.audit(asked.caller, "cache-cleared", reason=reason, entriesInvalidated=removed)
    return json_reply(Invalidated(entries_invalidated=removed))


async def _put(asked: Asked, owner: str, name: str, media_type: str) -> OntologyPut:
    service = asked.service
    put = await service.ontologies.put(
        owner, name, asked.body, media_type=media_type, audit=asked.caller.audit, nonce=str(uuid7())
    )
    removed = 0
    for before in put.replaced:
        new_version = put.entry.version if before.id == put.entry.id else None
        gone = await _invalidate(asked, owner, before, new_version)
        log_invalidation(before.id, old_version=before.version, new_version=new_version, removed=gone)
        removed += gone
    if put.has_changed or put.is_new_name:
        await service.publish(
            "ontology-updated",
            tenant=owner,
            shared=owner == SHARED,
            ontology_id=put.entry.id,
            old_version=put.old_version,
            new_version=put.entry.version,
        )
    return OntologyPut(
        id=put.entry.id,
        names=put.entry.names,
        version=put.entry.version,
        old_version=put.old_version,
        changed=put.has_changed,
        created=put.is_new_name,
        entries_invalidated=removed,
        shared=owner == SHARED,
    )


async def _delete(asked: Asked, owner: str, name: str) -> tuple[str, int]:
    service = asked.service
    deleted = await service.ontologies.delete(owner, name, audit=asked.caller.audit, nonce=str(uuid7()))
    if deleted is None:
        raise not_found(f"ontology {name!r} of yours", todo="list those that are there")
    before = deleted.entry
    removed = 0
    if deleted.is_whole:
        removed = await _invalidate(asked, owner, before, None)
        log_invalidation(before.id, old_version=before.version, new_version=None, removed=removed)
    await service.publish(
        "ontology-deleted",
        tenant=owner,
        shared=owner == SHARED,
        ontology_id=before.id,
        old_version=before.version,
    )
    return before.id, removed


async def _invalidate(asked: Asked, owner: str, before: OntologyEntry, new_version: str | None) -> int:
    """Delete the results of what an owner's ontology was, but no other's; None where the ontology is gone."""
    service, removed = asked.service, 0
    for name, space in await spaces_of(asked, owner, before.id):
        stands = await service.ontologies.find(tenant_of(name), before.id)
        if stands is not None and (stands.file is not None or stands.tenant != owner):
            # The same id is another's too. Where that comes first, all results here are its own.
            comes_first = owner == SHARED and stands.file is None
            if not comes_first and stands.entry.version != before.version:
                removed += await _remove(asked, name, space, before, version=before.version)
        elif new_version is not None:
            removed += await space.invalidate_ontology(before.id, before.version, new_version, audit=asked.caller.audit)
        else:
            removed += await _remove(asked, name, space, before)
            removed += await service.engine.forget_where(tenant=name, scope=SCOPE, tag=ontology_tag(before.id))
    return removed


async def spaces_of(asked: Asked, owner: str, ontology_id: str) -> list[tuple[str, ExtractionService]]:
    """Those in which results of an owner's ontology may be."""
    workspaces = asked.service.workspaces
    if owner != SHARED:
        return await workspaces.of_tenant(owner)
    names, after = {name for name, _ in workspaces.all()}, None
    while True:
        query = Query(scope=SCOPE, tag=ontology_tag(ontology_id), limit=_PAGE, after=after)
        page = await asked.service.engine.store.find(query)
        names |= {record.identity.tenant for record in page.records}
        after = page.next
        if after is None:
            return [(name, workspaces.get(name)) for name in sorted(names)]


async def _remove(
    asked: Asked, name: str, space: ExtractionService, entry: OntologyEntry, *, version: str | None = None
) -> int:
    service = asked.service
    removed = await service.deletion.of_ontology(name, space, entry.id, version=version)
    service.observe(Removed("forgotten", removed, Selection(tenant=name, scope=SCOPE)))
    return removed


async def _clear(asked: Asked, tenant: str) -> int:
    service = asked.service
    removed, workspaces = 0, await service.workspaces.of_tenant(tenant)
    for name, space in workspaces:
        removed += await service.deletion.everything(name, space)
    service.observe(Removed("forgotten", removed, Selection(scope=SCOPE)))
    await service.publish("cache-cleared", tenant=tenant)
    return removed


async def _found(asked: Asked) -> Registered:
    ontology_id = _id(asked)
    found = await asked.service.do(asked.service.ontologies.find(asked.caller.ctx.tenant_id, ontology_id))
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


def owner_of(asked: Asked, shared: str | None) -> str:
    """Whose ontologies a caller wants to change, if they may."""
    asked.caller.must_be_internal(to="changing a tenant's ontologies")
    if not flag(shared, name="shared"):
        return asked.caller.ctx.tenant_id
    asked.caller.must_be(OPERATOR, to="sharing an ontology with every tenant")
    return SHARED


def check_media_type(content_type: str) -> str:
    """What the body of a request says that it is."""
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
    description="The ontology's id, or one of its names.",
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
    id=examples.IRI,
    names=("company",),
    version=examples.VERSION,
    old_version=None,
    changed=True,
    created=True,
    entries_invalidated=0,
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
        summary="Register an ontology under a name or its id; a new version deletes the results of the old one.",
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
        problems=(400, 404, 409, 413, 415, 422),
    ),
    Route(
        method="DELETE",
        path="/api/v1/ontologies/{id:path}",
        handle=delete_ontology,
        name="deleteOntology",
        tag="ontologies",
        summary="Delete a name, or by its id an ontology; with the last of its names go its results.",
        parameters=(_ID, _SHARED),
        replies={
            200: Reply(description="It is gone.", schema=Invalidated, example={"entriesInvalidated": 3}),
        },
        problems=(400, 404),
    ),
    Route(
        method="POST",
        path="/api/v1/cache/clear",
        deletes=True,
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
