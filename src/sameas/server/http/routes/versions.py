"""The versions of ontologies: which there were, what changed between two, which results each holds, and what putting
another would do.

Rule: nothing is changed here. Of results in spaces that are not the caller's own only the number is told.
"""

from __future__ import annotations

import asyncio
from itertools import islice

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.extraction.runs.library import Runs
from sameas.extraction.runs.metadata import RunMetadata
from sameas.extraction.runs.service import ExtractionService
from sameas.ontology.show import ClassOutline, Outline
from sameas.ontology.version import TermChange
from sameas.server.http import examples
from sameas.server.http.route import JSON, Asked, Parameter, Reply, Route, json_reply, query_of
from sameas.server.http.routes.ontologies import MEDIA_TYPES, check_media_type, owner_of, spaces_of
from sameas.server.problems import Problem, not_found
from sameas.server.schemas import Answer, OntologyEntry, is_ontology_id
from sameas.server.tenants.ontologies import Registered
from sameas.server.tenants.ontology_files import Described
from sameas.server.tenants.workspaces import tenant_of

# Of results that are shown one by one.
_SHOWN = 20
# Of results that are counted: of more than so many it is said that there are more.
_COUNTED = 10_000


class HeldResult(Answer, frozen=True, kw_only=True, rename="camel"):
    """A run of a version."""

    idempotency_key: str
    document: str
    status: str
    started_at: str


class OntologyVersion(Answer, frozen=True, kw_only=True, rename="camel"):
    """A version; `replacedAt` is null for the present one. `results` counts the runs of the caller's space."""

    version: str
    updated_at: str
    replaced_at: str | None = None
    classes: int = 0
    properties: int = 0
    size: int = 0
    results: int = 0
    runs: tuple[HeldResult, ...] = ()


class OntologyVersions(Answer, frozen=True, kw_only=True, rename="camel"):
    id: str
    names: tuple[str, ...]
    label: str = ""
    source: str = "registry"
    shared: bool = False
    versions: tuple[OntologyVersion, ...] = ()


class OntologyChanges(Answer, frozen=True, kw_only=True, rename="camel"):
    """What changed from one version to another; of many changes the first."""

    before: str | None
    after: str
    changes: tuple[TermChange, ...] = ()
    left_out: int = 0


class OntologyPreview(Answer, frozen=True, kw_only=True, rename="camel"):
    """What putting an ontology would do; nothing was kept. `invalidated` counts the results that would go, `runs` are
    the first of them in the caller's space.
    """

    id: str
    version: str
    old_version: str | None
    changed: bool
    created: bool
    classes: int
    properties: int
    invalidated: int
    runs: tuple[HeldResult, ...] = ()
    changes: tuple[TermChange, ...] = ()
    left_out: int = 0


async def get_outline(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "id")
    found = await _found(asked, query.get("id"))
    service = asked.service
    outline = await service.do(service.ontologies.outline(found))
    return Response(outline, media_type=JSON, headers={"ETag": f'"{found.entry.version}"'})


async def list_versions(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "id")
    found = await _found(asked, query.get("id"))
    service, entry = asked.service, found.entry
    former = []
    if found.file is None:
        former = await service.do(service.ontologies.former(found.tenant).list(entry.id))
    runs = service.runs(asked.caller.space)
    held = await asked.slowly(lambda: _held(runs, entry.id))
    present = _version(entry, None, held)
    seen = {entry.version}
    versions = [present]
    for one in former:
        if one.entry.version not in seen:
            seen.add(one.entry.version)
            versions.append(_version(one.entry, one.replaced_at, held))
    names = await service.do(service.ontologies.names(asked.caller.ctx.tenant_id, entry.id))
    return json_reply(
        OntologyVersions(
            id=entry.id,
            names=names,
            label=entry.label,
            source=entry.source,
            shared=entry.shared,
            versions=tuple(versions),
        )
    )


async def get_changes(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "id", "before", "after")
    found = await _found(asked, query.get("id"))
    service = asked.service
    before = query.get("before")
    if before is None:
        raise Problem(400, "parameter-missing", "the parameter before is needed: a version of the ontology")
    after = query.get("after", found.entry.version)
    old, new = [await service.do(_content(asked, found, version)) for version in (before, after)]
    described = await service.do(service.ontologies.compare(old, new))
    return json_reply(
        OntologyChanges(before=before, after=after, changes=described.changes, left_out=described.changes_left_out)
    )


async def preview_put(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "id", "shared")
    name, owner = _name(query.get("id")), owner_of(asked, query.get("shared"))
    check_media_type(asked.request.headers.get("content-type", ""))
    if not asked.body.strip():
        raise Problem(422, "ontology-invalid", "the body is empty; send the ontology in it")
    return json_reply(await asked.service.do(_preview(asked, owner, name)))


async def _preview(asked: Asked, owner: str, name: str) -> OntologyPreview:
    service = asked.service
    put = await service.ontologies.preview(owner, name, asked.body)
    entry = put.entry
    invalidated = 0
    shown: list[HeldResult] = []
    for before in put.replaced:
        new_version = entry.version if before.id == entry.id else None
        for space_name, space in await spaces_of(asked, owner, before.id):
            stands = await service.ontologies.find(tenant_of(space_name), before.id)
            if stands is not None and (stands.file is not None or stands.tenant != owner):
                # The same id is another's there, and its results are that one's.
                continue
            going = await asyncio.to_thread(_going, space, before.id, new_version)
            invalidated += len(going)
            if space_name == asked.caller.space:
                shown += going[: _SHOWN - len(shown)]
    described = await _compared(asked, owner, name, entry.id)
    return OntologyPreview(
        id=entry.id,
        version=entry.version,
        old_version=put.old_version,
        changed=put.has_changed,
        created=put.is_new_name,
        classes=entry.classes,
        properties=entry.properties,
        invalidated=invalidated,
        runs=tuple(shown),
        changes=described.changes if described is not None else (),
        left_out=described.changes_left_out if described is not None else 0,
    )


async def _compared(asked: Asked, owner: str, name: str, ontology_id: str) -> Described | None:
    """What would change in the ontology that would be replaced; None where there is none."""
    ontologies = asked.service.ontologies
    for named in (ontology_id, name):
        found = await ontologies.find(tenant_of(owner), named)
        if found is not None:
            return await ontologies.compare(await ontologies.content(found), asked.body)
    return None


def _going(space: ExtractionService, ontology_id: str, new_version: str | None) -> list[HeldResult]:
    """The results that would be invalidated; blocking."""
    runs = islice(space.runs.newest(ontology=ontology_id), _COUNTED)
    return [
        _result(one)
        for one in runs
        if one.ontology_version != new_version and not one.superseded_at and not one.is_under_way
    ]


def _held(runs: Runs, ontology_id: str) -> dict[str, list[HeldResult]]:
    """The runs of an ontology by version; blocking."""
    held: dict[str, list[HeldResult]] = {}
    for one in islice(runs.newest(ontology=ontology_id), _COUNTED):
        held.setdefault(one.ontology_version, []).append(_result(one))
    return held


def _result(metadata: RunMetadata) -> HeldResult:
    return HeldResult(
        idempotency_key=metadata.idempotency_key,
        document=metadata.document,
        status="superseded" if metadata.superseded_at else metadata.status,
        started_at=metadata.started_at,
    )


def _version(entry: OntologyEntry, replaced_at: str | None, held: dict[str, list[HeldResult]]) -> OntologyVersion:
    runs = held.get(entry.version, [])
    return OntologyVersion(
        version=entry.version,
        updated_at=entry.updated_at,
        replaced_at=replaced_at,
        classes=entry.classes,
        properties=entry.properties,
        size=entry.size,
        results=len(runs),
        runs=tuple(runs[:_SHOWN]),
    )


async def _content(asked: Asked, found: Registered, version: str) -> bytes:
    ontologies = asked.service.ontologies
    if version == found.entry.version:
        return await ontologies.content(found)
    data = None
    if found.file is None:
        data = await ontologies.former(found.tenant).content(found.entry.id, version)
    if data is None:
        raise not_found(f"version {version[:100]!r} of this ontology", todo="list its versions")
    return data


async def _found(asked: Asked, named: str | None) -> Registered:
    name = _name(named)
    found = await asked.service.do(asked.service.ontologies.find(asked.caller.ctx.tenant_id, name))
    if found is None:
        raise not_found(f"ontology {name!r}", todo="put it first, or list those that are there")
    return found


def _name(named: str | None) -> str:
    if named is None:
        raise Problem(400, "parameter-missing", "the parameter id is needed: an ontology's id, or one of its names")
    if not is_ontology_id(named):
        raise Problem(
            400,
            "parameter-invalid",
            "id must be an ontology's id or name: 1 to 1024 printable characters, no blanks or <>\"{}|^`\\",
        )
    return named


_ID = Parameter(
    name="id",
    required=True,
    description="The ontology's id, or one of its names.",
    example="company",
)
_VERSION = Parameter(name="before", required=True, description="The earlier version.", example=examples.VERSION)
_CHANGE = TermChange(change="added", kind="class", iri=f"{examples.IRI}#Person", name="person")
_RESULT = HeldResult(
    idempotency_key=examples.KEY, document="report.txt", status="complete", started_at=examples.INSTANT
)
_VERSIONS = OntologyVersions(
    id=examples.IRI,
    names=("company",),
    versions=(OntologyVersion(version=examples.VERSION, updated_at=examples.INSTANT, results=1, runs=(_RESULT,)),),
)
_PREVIEW = OntologyPreview(
    id=examples.IRI,
    version=examples.VERSION,
    old_version="sha256:" + "a1b2" * 16,
    changed=True,
    created=False,
    classes=3,
    properties=4,
    invalidated=1,
    runs=(_RESULT,),
    changes=(_CHANGE,),
)
_OUTLINE = Outline(
    iri=examples.IRI,
    title="Companies",
    version=examples.VERSION,
    classes=(ClassOutline(iri=f"{examples.IRI}#Person", label="person"),),
)
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/ontology-outline",
        handle=get_outline,
        name="getOntologyOutline",
        tag="ontologies",
        summary="The classes and properties of an ontology with their names, for people and for completion.",
        parameters=(_ID,),
        replies={
            200: Reply(
                description="The outline.", schema=Outline, example=msgspec.to_builtins(_OUTLINE), headers=("ETag",)
            )
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="GET",
        path="/api/v1/ontology-versions",
        handle=list_versions,
        name="listOntologyVersions",
        tag="ontologies",
        summary="The versions of an ontology, the present one first, and the results that each holds.",
        parameters=(_ID,),
        replies={
            200: Reply(description="The versions.", schema=OntologyVersions, example=msgspec.to_builtins(_VERSIONS))
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="GET",
        path="/api/v1/ontology-changes",
        handle=get_changes,
        name="getOntologyChanges",
        tag="ontologies",
        summary="What changed between two versions of an ontology, term by term.",
        parameters=(_ID, _VERSION, Parameter(name="after", description="Else the present.", example=examples.VERSION)),
        replies={
            200: Reply(
                description="The changes.",
                schema=OntologyChanges,
                example=msgspec.to_builtins(
                    OntologyChanges(before=examples.VERSION, after=examples.VERSION, changes=(_CHANGE,))
                ),
            )
        },
        problems=(400, 404, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/ontology-preview",
        handle=preview_put,
        name="previewOntology",
        tag="ontologies",
        summary="What putting an ontology would change and which results would go; nothing is kept.",
        parameters=(
            _ID,
            Parameter(
                name="shared",
                description="For every tenant; needs the role `operator`.",
                schema={"type": "boolean"},
                example=False,
            ),
        ),
        body={"description": "The ontology, in any notation that is read."},
        body_example=examples.TURTLE,
        body_media_types=MEDIA_TYPES,
        replies={200: Reply(description="A preview.", schema=OntologyPreview, example=msgspec.to_builtins(_PREVIEW))},
        problems=(400, 404, 409, 413, 415, 422),
    ),
)
