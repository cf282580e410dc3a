"""`/api/v1/collections`: many documents, one graph: made, filled, looked at, decided about, exported and erased.

Rule: a collection is seen in its own space, by whoever has a role in it; to everybody else it is not there. Texts are
written down before they are accepted and read afterwards. Everything that blocks is done in a thread.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from sameas.collections import LIST_PREFIX, Caller, Collection, Source
from sameas.collections.erasure import Erasure
from sameas.collections.exports import EXPORT_FORMATS, EXPORT_MEDIA_TYPES
from sameas.collections.model import (
    Change,
    CollectionInfo,
    Decision,
    DocumentInfo,
    EntityInfo,
    Role,
    SyncState,
)
from sameas.collections.views import Reader
from sameas.extraction.runs.library import RunNotFoundError
from sameas.questions.index import drop_index
from sameas.server.http.route import (
    PAGE_HEADERS,
    Asked,
    Parameter,
    Reply,
    Route,
    file_reply,
    json_reply,
    query_of,
    whole_number,
)
from sameas.server.http.routes.runs import ontology_names
from sameas.server.problems import Problem, not_found
from sameas.server.runs.collection_work import ReadingOptions
from sameas.server.schemas import (
    Accepted,
    CollectionMade,
    CollectionPage,
    DocumentPage,
    ErasureWish,
    Findings,
    MemberEntry,
    MemberList,
    NewDocument,
    NewDocuments,
    RoleGiven,
    ServedCollection,
)
from sameas.tenancy.directory import ADMIN_ROLE

T = TypeVar("T")
_API = "/api/v1/collections"
_MOST = 500
EXAMPLE_ID = "01a1ecf2-1398-777c-a67b-6ee9f91c0a29"


async def create(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=CollectionMade)
    service = asked.service
    found = await service.do(service.ontologies.find(asked.caller.ctx.tenant_id, wish.ontology_id))
    if found is None:
        raise not_found(f"ontology {wish.ontology_id!r}", todo="put it first, or list those that are there")
    ontology = await service.do(service.ontologies.load(found))
    base = wish.base or service.settings.base
    try:
        made = await asyncio.to_thread(
            service.collections.create, wish.name, ontology=ontology, caller=_caller(asked), base=base,
            source=wish.ontology_id,
        )  # fmt: skip
    except ValueError as error:
        raise Problem(422, "collection-refuses", str(error)) from error
    service.audit(asked.caller, "collection-created", collection=made.id)
    return json_reply((await _served(asked, made.info()))[0], status=201, headers={"Location": f"{_API}/{made.id}"})


async def list_collections(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "limit", "after")
    limit = page_limit(query)
    found = await asyncio.to_thread(asked.service.collections.list, _caller(asked), after=text_of(query.get("after")))
    page, more = found[:limit], found[limit - 1].name if len(found) > limit else None
    return json_reply(CollectionPage(collections=await _served(asked, *page), next=more))


async def show(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    return json_reply((await _served(asked, await ask(asked, "reader", Collection.info)))[0])


async def _served(asked: Asked, *found: CollectionInfo) -> tuple[ServedCollection, ...]:
    names = {one: await ontology_names(asked, one) for one in {info.ontology_id for info in found}}
    return tuple(
        ServedCollection(**msgspec.structs.asdict(info), ontology_names=names[info.ontology_id]) for info in found
    )


async def delete(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    named = name_in_path(asked)
    gone = await asyncio.to_thread(asked.service.collections.remove, named, caller=_caller(asked))
    await asyncio.to_thread(drop_index, asked.service.questions.folder, gone.id)
    asked.service.audit(asked.caller, "collection-removed", collection=gone.id)
    return Response(status_code=204)


async def add_documents(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=NewDocuments)
    reading = ReadingOptions(extractor=wish.extractor, model=wish.model, audit_meta=asked.caller.audit)
    options = msgspec.json.encode(reading).decode()
    contents = [(_source(one, content), content) for one in wish.documents for content in (_content(one),)]

    def work(collection: Collection) -> SyncState:
        for source, content in contents:
            collection.wait_for(source, content, options=options)
        return collection.sync_state()

    state = await ask(asked, "contributor", work)
    await asked.service.do(asked.service.collection_work.wake())
    return json_reply(Accepted(accepted=len(contents), sync=state), status=202)


async def retry(asked: Asked) -> ASGIApp:
    query_of(asked.request)

    def work(collection: Collection) -> Accepted:
        count = collection.retry_failed()
        return Accepted(accepted=count, sync=collection.sync_state())

    done = await ask(asked, "contributor", work)
    await asked.service.do(asked.service.collection_work.wake())
    return json_reply(done, status=202)


async def list_documents(asked: Asked) -> ASGIApp:
    query = query_of(asked.request, "status", "limit", "after")
    limit, status = page_limit(query), query.get("status", "")
    if status not in ("", "waiting", "complete", "partial", "failed"):
        raise Problem(400, "parameter-invalid", "status must be waiting, complete, partial or failed")
    after = text_of(query.get("after"))
    found = await ask(asked, "reader", lambda one: one.documents(status=status, after=after, limit=limit + 1))
    more = found[limit - 1].names[0].name if len(found) > limit else None
    return json_reply(DocumentPage(documents=tuple(found[:limit]), next=more))


async def get_document(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    digest = text_of(asked.request.path_params["digest"])
    return json_reply(await ask(asked, "reader", lambda one: one.document(digest)))


async def remove_document(asked: Asked) -> ASGIApp:
    name = query_of(asked.request, "name").get("name", "")
    if not name:
        raise Problem(400, "parameter-invalid", "say which document: ?name=")
    role: Role = "curator" if name.startswith(LIST_PREFIX) else "contributor"
    return json_reply(await ask(asked, role, lambda one: one.remove_name(text_of(name))))


async def sync_state(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    return json_reply(await ask(asked, "reader", Collection.sync_state))


async def erase_entity(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=ErasureWish) if asked.body else ErasureWish()
    id_ = text_of(asked.request.path_params["entity"])

    service, space, loop = asked.service, asked.caller.space, asyncio.get_running_loop()

    async def delete_runs(erased: Erasure) -> None:
        for key in erased.runs:
            with suppress(RunNotFoundError):
                await service.do(service.deletion.run(space, key))
        service.answers.drop()

    def work(collection: Collection) -> Erasure:
        erased = collection.erase(
            id_,
            reason=wish.reason,
            before=lambda planned: asyncio.run_coroutine_threadsafe(delete_runs(planned), loop).result(),
        )
        drop_index(service.questions.folder, collection.id)
        return erased

    done = await ask(asked, "owner", work, is_long=True)
    service.audit(asked.caller, "collection-erasure", collection=name_in_path(asked), documents=done.documents)
    return json_reply(done)


async def list_members(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    found = await ask(asked, "owner", Collection.members)
    return json_reply(MemberList(members=tuple(MemberEntry(principal=who, role=role) for who, role in found.items())))


async def put_member(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    principal = text_of(asked.request.path_params["principal"])
    role = msgspec.json.decode(asked.body, type=RoleGiven).role
    await ask(asked, "owner", lambda one: one.put_member(principal, role))
    asked.service.audit(asked.caller, "collection-role", collection=name_in_path(asked), principal=principal, role=role)
    return Response(status_code=204)


async def remove_member(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    principal = text_of(asked.request.path_params["principal"])
    await ask(asked, "owner", lambda one: one.remove_member(principal))
    asked.service.audit(asked.caller, "collection-role-taken", collection=name_in_path(asked), principal=principal)
    return Response(status_code=204)


async def check(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    return json_reply(Findings(findings=tuple(await ask(asked, "owner", Collection.check, is_long=True))))


async def export(asked: Asked) -> ASGIApp:
    wanted = query_of(asked.request, "format").get("format", "nquads")
    to = next((one for one in EXPORT_FORMATS if one == wanted), None)
    if to is None:
        raise Problem(400, "parameter-invalid", f"format must be one of {', '.join(EXPORT_FORMATS)}")
    collection = await open_for(asked, "reader")
    headers = PAGE_HEADERS if to == "html" else {}
    return await file_reply(
        asked, lambda file: collection.export(file, to=to), media_type=EXPORT_MEDIA_TYPES[to], headers=headers
    )


def _caller(asked: Asked) -> Caller:
    caller = asked.caller
    return Caller(caller.space, caller.actor, everything=caller.has(ADMIN_ROLE))


def name_in_path(asked: Asked) -> str:
    return text_of(asked.request.path_params["id"])


async def open_for(asked: Asked, role: Role) -> Collection:
    """The collection of the path, for a caller who has at least this role in it."""
    return await asyncio.to_thread(
        asked.service.collections.open, name_in_path(asked), caller=_caller(asked), role=role
    )


async def ask(asked: Asked, role: Role, work: Callable[[Collection], T], *, is_long: bool = False) -> T:
    collection = await open_for(asked, role)
    return await asked.slowly(lambda: work(collection), is_long=is_long)


async def read(asked: Asked, work: Callable[[Reader], T]) -> T:
    def in_one_state(collection: Collection) -> T:
        with collection.reading() as reader:
            return work(reader)

    return await ask(asked, "reader", in_one_state)


def page_limit(query: dict[str, str]) -> int:
    return whole_number(query.get("limit"), name="limit", default=50, least=1, most=_MOST)


def text_of(text: str | None) -> str:
    """A text from outside that a database can hold."""
    if text is None:
        return ""
    if "\0" in text or len(text) > 4096:
        raise Problem(400, "parameter-invalid", "a name has at most 4096 characters and no zero among them")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Problem(400, "parameter-invalid", "a name must be whole Unicode characters") from None
    return text


def _source(one: NewDocument, content: bytes) -> Source:
    texts = {name: text_of(getattr(one, name)) for name in ("name", "path", "title", "media_type", "source_time")}
    return Source(**texts, size=len(content))


def _content(one: NewDocument) -> bytes:
    if (one.text is None) == (one.content_base64 is None):
        raise Problem(422, "document-invalid", f"give {one.name!r} either a text or contentBase64")
    if one.text is not None:
        if one.media_type not in ("", "text/plain", "text/markdown", "text/html"):
            raise Problem(422, "document-invalid", f"a text is not {one.media_type!r}; send its bytes as contentBase64")
        return one.text.encode("utf-8", "replace")
    try:
        return base64.b64decode(one.content_base64 or "", validate=True)
    except (binascii.Error, ValueError):
        raise Problem(422, "document-invalid", f"contentBase64 of {one.name!r} is not base64") from None


_ID = Parameter(name="id", place="path", description="A collection's id or name.", example="press", required=True)
LIMIT_PARAMETER = Parameter(name="limit", schema={"type": "integer", "minimum": 1, "maximum": _MOST}, example=50)
AFTER_PARAMETER = Parameter(name="after", description="The `next` of the page before.")
_STATE = SyncState(revision=3, waiting=1, complete=2, partial=0, failed=0)
_INFO = ServedCollection(
    id=EXAMPLE_ID, name="press", base="urn:sameas:", ontology_id="https://example.org/company",
    ontology_version="sha256:0", created_at="2026-01-01T00:00:00.000000Z", revision=3, documents=2, entities=5,
    claims=7, role="owner", ontology_names=("company",),
)  # fmt: skip
EXAMPLE_ENTITY = EntityInfo(
    id="acme-d869c948213923d6", iri="urn:sameas:acme-d869c948213923d6", name="Acme", documents=2,
    types=("https://example.org/company#Company",),
)  # fmt: skip
EXAMPLE_DECISION = Decision(
    id=EXAMPLE_ID, verdict="same", a=EXAMPLE_ENTITY.id, b=EXAMPLE_ENTITY.id, a_name="Acme", b_name="Acme Ltd",
    by="alice",    reason="one register entry", at="2026-01-01T00:00:00.000000Z",
)  # fmt: skip
EXAMPLE_CHANGE = Change(revision=4, removed=())


def endpoint(
    method: str,
    path: str,
    handle: Any,
    name: str,
    summary: str,
    reply: Any = None,
    example: Any = None,
    *,
    status: int = 200,
    parameters: tuple[Parameter, ...] = (),
    problems: tuple[int, ...] = (400, 404, 422),
    body: Any = None,
    body_example: Any = None,
    body_media_types: tuple[str, ...] = ("application/json",),
    media_types: tuple[str, ...] = ("application/json",),
) -> Route:
    shown = None if example is None else msgspec.to_builtins(example)
    return Route(
        method=method, path=f"{_API}{path}", handle=handle, name=name, tag="collections", summary=summary,
        parameters=(*((_ID,) if "{id}" in path else ()), *parameters), problems=problems,
        replies={status: Reply(description=summary, schema=reply, example=shown, media_types=media_types)},
        body=body, body_example=body_example, body_media_types=body_media_types,
    )  # fmt: skip


def part_of_path(name: str, example: str) -> Parameter:
    return Parameter(name=name, place="path", example=example, required=True)


ROUTES = (
    endpoint(
        "POST",
        "",
        create,
        "createCollection",
        "Make a collection, which the caller owns.",
        ServedCollection,
        _INFO,
        status=201,
        body=CollectionMade,
        problems=(400, 404, 409, 413, 422),
        body_example={"name": "press", "ontologyId": "company"},
    ),
    endpoint(
        "GET",
        "",
        list_collections,
        "listCollections",
        "The collections that the caller may read.",
        CollectionPage,
        CollectionPage(collections=(_INFO,)),
        parameters=(LIMIT_PARAMETER, AFTER_PARAMETER),
    ),
    endpoint("GET", "/{id}", show, "getCollection", "A collection and how much is in it.", ServedCollection, _INFO),
    endpoint("DELETE", "/{id}", delete, "deleteCollection", "Remove a collection and all that is in it.", status=204),
    endpoint(
        "POST",
        "/{id}/documents",
        add_documents,
        "addDocuments",
        "Have documents read; they are written down first.",
        Accepted,
        Accepted(accepted=1, sync=_STATE),
        status=202,
        body=NewDocuments,
        problems=(400, 404, 413, 422),
        body_example={"documents": [{"name": "note.txt", "text": "Alice Stone works for Acme."}]},
    ),
    endpoint(
        "GET",
        "/{id}/documents",
        list_documents,
        "listDocuments",
        "The names of documents, with their status.",
        DocumentPage,
        DocumentPage(documents=()),
        parameters=(
            Parameter(name="status", schema={"enum": ["waiting", "complete", "partial", "failed"]}),
            LIMIT_PARAMETER,
            AFTER_PARAMETER,
        ),
    ),
    endpoint(
        "DELETE",
        "/{id}/documents",
        remove_document,
        "removeDocument",
        "Take a name away; its document goes with the last one.",
        Change,
        EXAMPLE_CHANGE,
        parameters=(Parameter(name="name", required=True, example="note.txt"),),
    ),
    endpoint(
        "GET",
        "/{id}/documents/{digest}",
        get_document,
        "getDocument",
        "A document with all its names.",
        DocumentInfo,
        DocumentInfo(digest="sha256-0", iri="urn:sameas:document-sha256-0", status="complete", names=()),
        parameters=(part_of_path("digest", "sha256-0"),),
    ),
    endpoint(
        "POST",
        "/{id}/retry",
        retry,
        "retryFailed",
        "Have what failed read again.",
        Accepted,
        Accepted(accepted=1, sync=_STATE),
        status=202,
    ),
    endpoint("GET", "/{id}/sync", sync_state, "getSyncState", "How far the work is.", SyncState, _STATE),
    endpoint(
        "DELETE",
        "/{id}/entities/{entity}",
        erase_entity,
        "eraseEntity",
        "Erase a person or thing for good.",
        Erasure,
        Erasure(documents=2, claims=3, evidence=5),
        parameters=(part_of_path("entity", EXAMPLE_ENTITY.id),),
        body=ErasureWish,
        body_example={"reason": "asked for"},
        problems=(400, 404, 409, 413, 422),
    ),
    endpoint(
        "GET",
        "/{id}/members",
        list_members,
        "listMembers",
        "Who may do what.",
        MemberList,
        MemberList(members=(MemberEntry(principal="alice", role="owner"),)),
    ),
    endpoint(
        "PUT",
        "/{id}/members/{principal}",
        put_member,
        "putMember",
        "Give somebody a role.",
        status=204,
        parameters=(part_of_path("principal", "alice"),),
        body=RoleGiven,
        body_example={"role": "reader"},
        problems=(400, 404, 413, 422),
    ),
    endpoint(
        "DELETE",
        "/{id}/members/{principal}",
        remove_member,
        "removeMember",
        "Take a role away.",
        status=204,
        parameters=(part_of_path("principal", "alice"),),
    ),
    endpoint("GET", "/{id}/check", check, "checkCollection", "Look for damage.", Findings, Findings(findings=())),
    endpoint(
        "GET",
        "/{id}/export",
        export,
        "exportCollection",
        "The whole collection, streamed.",
        None,
        "",
        parameters=(Parameter(name="format", schema={"enum": list(EXPORT_FORMATS)}),),
        media_types=tuple(EXPORT_MEDIA_TYPES.values()),
    ),
)
