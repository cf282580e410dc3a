"""`/api/v1/keys`: the records of a tenant, for those who operate the service.

Rule: only the records of one's own space are seen. A change needs the role, a reason, and is written down with who and
why. Releasing shows the fence of the claim that was looked at, so that a newer one is never given back by mistake.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from starlette.types import ASGIApp

from sameas.once.record import NEVER, Accepted, Lease, Record, State
from sameas.once.store import Page, Query
from sameas.server import examples
from sameas.server.problems import Problem, not_found
from sameas.server.replies import json_reply, query_of, whole_number
from sameas.server.route import Asked, Parameter, Reply, Route
from sameas.server.wire import Invalidated, KeyChanged, KeyEntry, KeyPage, Wire
from sameas.tenancy.directory import ADMIN_ROLE

STATES = tuple(state.value for state in State)
_LONGEST = 2048
_TODO = "list the keys to see them"
_FILTERS = ("scope", "state", "tag", "route", "method", "status", "from", "before", "prefix", "limit", "after")


class KeyChange(Wire, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A key, or the beginning of one, and why it is changed."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    scope: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class KeysChange(Wire, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The records of a scope or with a tag, and why they are forgotten."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    scope: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None
    tag: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)] | None = None


async def list_keys(asked: Asked) -> ASGIApp:
    given = query_of(asked.request, *_FILTERS)
    state = given.get("state")
    if state is not None and state not in STATES:
        raise Problem(400, "parameter-invalid", f"state must be one of {', '.join(STATES)}")
    query = Query(
        tenant=asked.visitor.space,
        scope=_text(given.get("scope"), "scope"),
        key_prefix=_text(given.get("prefix"), "prefix"),
        state=None if state is None else State(state),
        tag=_text(given.get("tag"), "tag"),
        route=_text(given.get("route"), "route"),
        method=_text(given.get("method"), "method"),
        status=whole_number(given["status"], name="status", default=0, most=999) if "status" in given else None,
        created_from=_micros(given.get("from"), "from"),
        created_before=_micros(given.get("before"), "before"),
        limit=whole_number(given.get("limit"), name="limit", default=50, least=1, most=500),
        after=_cursor(given.get("after")),
    )
    page = await _page(asked, query)
    return json_reply(KeyPage(keys=tuple(_entry(record) for record in page.records), next=page.next))


async def explain_key(asked: Asked) -> ASGIApp:
    given = query_of(asked.request, "key", "scope")
    record = await _find(asked, given.get("key", ""), _text(given.get("scope"), "scope"))
    return json_reply(_entry(record, explained=True))


async def release_key(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.visitor.must_be(ADMIN_ROLE, to="releasing a key")
    change = msgspec.json.decode(asked.body, type=KeyChange)
    record = await _find(asked, change.key, change.scope)
    if record.state is not State.HELD:
        raise Problem(409, "not-held", f"the key is {record.state}, not held; only a held key can be released")
    service = asked.service
    answer = await service.do(service.engine.store.release(Lease(record.identity, record.fence, record.attempt_id)))
    if not isinstance(answer, Accepted):
        raise Problem(409, "changed", "the key changed meanwhile; look again")
    _audit(asked, "key-released", record, change.reason)
    return json_reply(KeyChanged(key=record.identity.key, scope=record.identity.scope, done="released"))


async def forget_key(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.visitor.must_be(ADMIN_ROLE, to="forgetting a key")
    change = msgspec.json.decode(asked.body, type=KeyChange)
    record = await _find(asked, change.key, change.scope)
    service = asked.service
    await service.do(service.engine.store.forget(record.identity))
    service.answers.drop()
    await service.do(service.publish(type="run-removed", tenant=asked.visitor.space, key=record.identity.key))
    _audit(asked, "key-forgotten", record, change.reason)
    return json_reply(KeyChanged(key=record.identity.key, scope=record.identity.scope, done="forgotten"))


async def forget_keys(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.visitor.must_be(ADMIN_ROLE, to="forgetting keys")
    change = msgspec.json.decode(asked.body, type=KeysChange)
    if change.scope is None and change.tag is None:
        raise Problem(422, "nothing-named", "say what to forget: a scope, a tag or both")
    for name in ("scope", "tag"):
        _text(getattr(change, name), name)
    service, space = asked.service, asked.visitor.space
    gone = await service.do(service.engine.forget_where(tenant=space, scope=change.scope, tag=change.tag))
    service.answers.drop()
    await service.do(service.publish(type="run-removed", tenant=space))
    service.audit(asked.visitor, "keys-forgotten", reason=change.reason, scope=change.scope, tag=change.tag, count=gone)
    return json_reply(Invalidated(entries_invalidated=gone))


async def _page(asked: Asked, query: Query) -> Page:
    return await asked.service.do(asked.service.engine.store.find(query))


async def _find(asked: Asked, key: str, scope: str | None) -> Record:
    """The one record of the space whose key begins so."""
    _text(key, "key")
    _text(scope, "scope")
    found: dict[bytes, Record] = {}
    for prefix in (key, f"sha256-{key}"):
        page = await _page(asked, Query(tenant=asked.visitor.space, key_prefix=prefix, scope=scope, limit=10))
        found.update((record.identity.digest, record) for record in page.records)
    exact = [record for record in found.values() if record.identity.key == key]
    records = exact or list(found.values())
    if not records:
        raise not_found("record with a key that begins so", todo=_TODO)
    if len(records) > 1:
        places = sorted({f"{record.identity.key} in {record.identity.scope}" for record in records})
        raise Problem(409, "key-ambiguous", "several records fit; give more of the key, or its scope", keys=places)
    return records[0]


def _entry(record: Record, *, explained: bool = False) -> KeyEntry:
    identity = record.identity
    return KeyEntry(
        key=identity.key,
        scope=identity.scope,
        tenant=identity.tenant,
        state=record.state.value,
        attempt=record.attempt,
        fence=record.fence,
        owner=record.about.owner,
        created_at=_instant(record.created_at),
        lease_until=_instant(record.lease_until),
        completed_at=None if record.completed_at is None else _instant(record.completed_at),
        expires_at=None if record.expires_at >= NEVER // 2 else _instant(record.expires_at),
        tags=tuple(record.about.tags),
        route=record.about.route,
        method=record.about.method,
        fingerprint=record.fingerprint.partition(" ")[0],
        audit=record.about.audit,
        next_caller=_next(record) if explained else "",
    )


def _next(record: Record) -> str:
    match record.state:
        case State.DONE:
            return "gets this result again, nothing is run"
        case State.FAILED:
            return "gets this failure again until it expires"
        case State.HELD:
            return f"waits for the holder, and takes over when its lease ends at {_instant(record.lease_until)}"


def _audit(asked: Asked, event: str, record: Record, reason: str) -> None:
    identity = record.identity
    asked.service.audit(asked.visitor, event, reason=reason, key=identity.key, scope=identity.scope, fence=record.fence)


def _instant(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(text: str | None, name: str) -> str | None:
    if text is not None and not (text.isprintable() and 0 < len(text) <= _LONGEST):
        raise Problem(400, "parameter-invalid", f"{name} must be 1 to {_LONGEST} characters that can be printed")
    return text


def _micros(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
        return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        raise Problem(400, "parameter-invalid", f"{name} must be a time such as {examples.INSTANT}") from None


def _cursor(text: str | None) -> str | None:
    if text is None:
        return None
    if len(text) != 16 + 64 or any(letter not in "0123456789abcdef" for letter in text):
        raise Problem(400, "parameter-invalid", "after must be the `next` of the page before")
    return text


_CHANGE = {"key": examples.KEY, "reason": "its worker is known to be dead"}
_CHANGED = {"key": examples.KEY, "scope": "extraction", "done": "released"}
ROUTES = (
    Route(
        method="GET",
        path="/api/v1/keys",
        handle=list_keys,
        name="listKeys",
        tag="keys",
        summary="The records of the tenant, newest first, without their results.",
        parameters=(
            Parameter(name="scope", example="extraction"),
            Parameter(name="state", schema={"type": "string", "enum": list(STATES)}, example="done"),
            Parameter(name="tag", example=f"ontology:{examples.IRI}"),
            Parameter(name="route", example="/api/v1/extract"),
            Parameter(name="method", example="POST"),
            Parameter(name="status", schema={"type": "integer", "minimum": 0, "maximum": 999}, example=200),
            Parameter(name="from", schema={"type": "string", "format": "date-time"}, example=examples.INSTANT),
            Parameter(name="before", schema={"type": "string", "format": "date-time"}, example=examples.INSTANT),
            Parameter(name="prefix", description="What the key begins with.", example="sha256-3f2a"),
            Parameter(name="limit", schema={"type": "integer", "minimum": 1, "maximum": 500}, example=50),
            Parameter(name="after", description="The `next` of the page before.", example="0" * 80),
        ),
        replies={200: Reply(description="A page.", schema=KeyPage, example={"keys": [examples.RECORD], "next": None})},
        problems=(400,),
    ),
    Route(
        method="GET",
        path="/api/v1/keys/explain",
        handle=explain_key,
        name="explainKey",
        tag="keys",
        summary="Everything that is known of one record, and what the next caller will get.",
        parameters=(
            Parameter(name="key", required=True, example=examples.KEY),
            Parameter(name="scope", example="extraction"),
        ),
        replies={200: Reply(description="The record.", schema=KeyEntry, example=examples.RECORD)},
        problems=(400, 404, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/keys/release",
        handle=release_key,
        name="releaseKey",
        tag="keys",
        summary="Give back the claim of a worker that is known to be dead, without waiting for its lease.",
        body=KeyChange,
        body_example=_CHANGE,
        replies={200: Reply(description="Released.", schema=KeyChanged, example=_CHANGED)},
        problems=(400, 404, 409, 413, 422),
    ),
    Route(
        method="POST",
        path="/api/v1/keys/forget",
        handle=forget_key,
        name="forgetKey",
        tag="keys",
        summary="Forget a record: the work is done again when it is next asked for. Its worker is fenced.",
        body=KeyChange,
        body_example={"key": examples.KEY, "reason": "the result is known to be wrong"},
        replies={200: Reply(description="Forgotten.", schema=KeyChanged, example={**_CHANGED, "done": "forgotten"})},
        problems=(400, 404, 409, 413, 422),
    ),
    Route(
        method="POST",
        path="/api/v1/keys/forget-many",
        handle=forget_keys,
        name="forgetKeys",
        tag="keys",
        summary="Forget all records of a scope or with a tag.",
        body=KeysChange,
        body_example={"scope": "extract", "reason": "a client used its keys twice"},
        replies={200: Reply(description="Forgotten.", schema=Invalidated, example={"entriesInvalidated": 2})},
        problems=(400, 413, 422),
    ),
)
