"""`/api/v1/keys`: the records of a tenant, for those who operate the service.

Rule: only the records of one's own space are seen, and without the role for it only one's own. A change needs the role,
a reason, and is written down with who and why. Releasing shows the fence of the claim that was looked at, so that a
newer one is never given back by mistake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec.structs import replace
from starlette.types import ASGIApp

from sameas.extraction.runs.metadata import instant
from sameas.once.pruning import next_caller
from sameas.once.record import NEVER, Accepted, Lease, Record, State, client_key
from sameas.once.store import Page, Query, cursor
from sameas.server.http import examples
from sameas.server.http.route import Asked, Parameter, Reply, Route, json_reply, query_of, time_of, whole_number
from sameas.server.problems import Problem, not_found
from sameas.server.runs.answers import CLIENT_SCOPE
from sameas.server.schemas import Invalidated, KeyChanged, KeyEntry, KeyPage, Schema
from sameas.tenancy.directory import ADMIN_ROLE

STATES = tuple(state.value for state in State)
_LONGEST = 2048
# Of records that are not all the caller's own: how many are looked at for one page.
_LOOKED_AT = 500
_PAGES_LOOKED_AT = 20
_OK = 200
_TODO = "list the keys to see them"
_FILTERS = ("scope", "state", "tag", "route", "method", "status", "from", "before", "prefix", "limit", "after")


class KeyChange(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A key, or the beginning of one, and why it is changed."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    scope: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] | None = None


class KeysChange(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
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
        tenant=asked.caller.space,
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
    page = await _page_of(asked, query)
    return json_reply(KeyPage(keys=tuple(_entry(record) for record in page.records), next=page.next))


async def explain_key(asked: Asked) -> ASGIApp:
    given = query_of(asked.request, "key", "scope")
    record = await _find(asked, given.get("key", ""), _text(given.get("scope"), "scope"))
    return json_reply(_entry(record, explained=True))


async def release_key(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.caller.must_be(ADMIN_ROLE, to="releasing a key")
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
    asked.caller.must_be(ADMIN_ROLE, to="forgetting a key")
    change = msgspec.json.decode(asked.body, type=KeyChange)
    record = await _find(asked, change.key, change.scope)
    service = asked.service
    await service.do(service.engine.store.forget(record.identity))
    service.answers.drop()
    await service.do(service.publish("run-removed", tenant=asked.caller.space, key=record.identity.key))
    _audit(asked, "key-forgotten", record, change.reason)
    return json_reply(KeyChanged(key=record.identity.key, scope=record.identity.scope, done="forgotten"))


async def forget_keys(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    asked.caller.must_be(ADMIN_ROLE, to="forgetting keys")
    change = msgspec.json.decode(asked.body, type=KeysChange)
    if change.scope is None and change.tag is None:
        raise Problem(422, "nothing-named", "say what to forget: a scope, a tag or both")
    for name in ("scope", "tag"):
        _text(getattr(change, name), name)
    service, space = asked.service, asked.caller.space
    gone = await service.do(service.engine.forget_where(tenant=space, scope=change.scope, tag=change.tag))
    service.answers.drop()
    await service.do(service.publish("run-removed", tenant=space))
    service.audit(asked.caller, "keys-forgotten", reason=change.reason, scope=change.scope, tag=change.tag, count=gone)
    return json_reply(Invalidated(entries_invalidated=gone))


async def _page(asked: Asked, query: Query) -> Page:
    return await asked.service.do(asked.service.engine.store.find(query))


async def _page_of(asked: Asked, query: Query) -> Page:
    """A page of what the caller may see and the query asks for."""
    status = query.status
    if status is not None and query.scope in (None, CLIENT_SCOPE):
        # Answers under clients' keys have no status in the store.
        return await _kept_page(
            asked, replace(query, status=None), lambda one: _status(one) == status and _is_seen(asked, one)
        )
    if asked.caller.sees_all_keys:
        return await _page(asked, query)
    return await _kept_page(asked, query, lambda one: _is_own(asked, one))


async def _kept_page(asked: Asked, query: Query, keep: Callable[[Record], bool]) -> Page:
    """A page of some of the records, out of as many pages of all as it takes, within a bound."""
    found: list[Record] = []
    for _ in range(_PAGES_LOOKED_AT):
        page = await _page(asked, replace(query, limit=_LOOKED_AT))
        for record in page.records:
            if keep(record):
                found.append(record)
                if len(found) == query.limit:
                    return Page(found, cursor(record))
        if page.next is None:
            return Page(found, None)
        query = replace(query, after=page.next)
    return Page(found, query.after)


def _is_seen(asked: Asked, record: Record) -> bool:
    return asked.caller.sees_all_keys or _is_own(asked, record)


def _is_own(asked: Asked, record: Record) -> bool:
    """Whether the caller chose the key, or had the work done that it stands for."""
    caller = asked.caller
    if record.identity.key.startswith(f"{caller.principal.digest}:"):
        return True
    named = record.about.audit.get("created_by_user_id") or record.about.audit.get("initiated_by_user_id")
    return caller.ctx.user_id is not None and named == caller.ctx.user_id


async def _find(asked: Asked, key: str, scope: str | None) -> Record:
    """The one record of the space whose key begins so."""
    _text(key, "key")
    _text(scope, "scope")
    found: dict[bytes, Record] = {}
    for prefix in (key, f"sha256-{key}", f"{asked.caller.principal.digest}:{key}"):
        page = await _page(asked, Query(tenant=asked.caller.space, key_prefix=prefix, scope=scope, limit=10))
        seen = [one for one in page.records if _is_seen(asked, one)]
        found.update((record.identity.digest, record) for record in seen)
    if not found and asked.caller.sees_all_keys:
        found = await _find_client_key(asked, key, scope)
    exact = [record for record in found.values() if key in (record.identity.key, client_key(record.identity.key))]
    records = exact or list(found.values())
    if not records:
        raise not_found("record with a key that begins so", todo=_TODO)
    if len(records) > 1:
        places = sorted({f"{record.identity.key} in {record.identity.scope}" for record in records})
        raise Problem(409, "key-ambiguous", "several records fit; give more of the key, or its scope", keys=places)
    return records[0]


async def _find_client_key(asked: Asked, key: str, scope: str | None) -> dict[bytes, Record]:
    """The records of a key that a client chose, whoever it was; within a bound."""
    found: dict[bytes, Record] = {}
    after = None
    for _ in range(_PAGES_LOOKED_AT):
        query = Query(tenant=asked.caller.space, scope=scope, limit=_LOOKED_AT, after=after)
        page = await _page(asked, query)
        fitting = [record for record in page.records if client_key(record.identity.key) == key]
        found.update((record.identity.digest, record) for record in fitting)
        after = page.next
        if after is None:
            break
    return found


def _entry(record: Record, *, explained: bool = False) -> KeyEntry:
    identity = record.identity
    return KeyEntry(
        id=identity.digest.hex(),
        key=identity.key,
        client_key=client_key(identity.key),
        status_code=_status(record),
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
        next_caller=next_caller(record, _time) if explained else "",
        words=describe_record(record, now=time.time()) if explained else (),
    )


def _status(record: Record) -> int | None:
    # What is kept under a client's key of `POST /extract` was a 200.
    is_answer = record.identity.scope == CLIENT_SCOPE and record.state is State.DONE
    return _OK if is_answer else record.status_code


def _audit(asked: Asked, event: str, record: Record, reason: str) -> None:
    identity = record.identity
    asked.service.audit(asked.caller, event, reason=reason, key=identity.key, scope=identity.scope, fence=record.fence)


def _instant(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(text: str | None, name: str) -> str | None:
    if text is not None and not (text.isprintable() and 0 < len(text) <= _LONGEST):
        raise Problem(400, "parameter-invalid", f"{name} must be 1 to {_LONGEST} characters that can be printed")
    return text


def _micros(text: str | None, name: str) -> int | None:
    seconds = time_of(text, name=name)
    return None if seconds is None else round(seconds * 1_000_000)


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


def describe_record(record: Record, *, now: float) -> tuple[str, ...]:
    """A record in sentences for a person; `now` is in seconds since 1970. Whether a lease is over is judged by this
    machine's clock, which decides nothing.
    """
    return (*_what(record), *_state(record, now), _next(record, now), *_other_request(record))


def _what(record: Record) -> Iterator[str]:
    about, identity = record.about, record.identity
    own = client_key(identity.key)
    kind = f"{about.method} {about.route}".strip()
    what = f"{kind} in the scope {identity.scope}" if kind else f"work in the scope {identity.scope}"
    chosen = "a client chose it" if own != identity.key else "it was computed from the content"
    yield f"The key {own} stands for {what}; {chosen}."
    who = about.audit.get("created_by_user_id") or about.audit.get("initiated_by_user_id")
    if who:
        yield f"The user {who} asked for it first."


def _state(record: Record, now: float) -> Iterator[str]:
    count = _ordinal(record.attempt)
    match record.state:
        case State.HELD:
            holder = record.about.owner or "somebody who gave no name"
            # A fence is the store's time of the claim, unless two claims met in one microsecond.
            since = _time(record.fence)
            yield f"{holder} has held it since {since}: the {count} attempt, with the fence {record.fence}."
            if record.lease_until / 1e6 > now:
                yield f"Its lease ends at {_time(record.lease_until)}; while the work lasts, it is renewed."
            else:
                yield f"Its lease ended at {_time(record.lease_until)}: the holder is dead, asleep or cut off."
        case State.DONE:
            yield f"The {count} attempt, with the fence {record.fence}, was accepted {_completed(record)}."
        case State.FAILED:
            yield f"The {count} attempt, with the fence {record.fence}, failed {_completed(record)}."
    if record.state is not State.HELD:
        is_endless = record.expires_at >= NEVER // 2
        yield "It is kept until somebody forgets it." if is_endless else f"It is kept until {_time(record.expires_at)}."


def _next(record: Record, now: float) -> str:
    match record.state:
        case State.HELD if record.lease_until / 1e6 <= now:
            return f"The same request now takes over at once, as the {_ordinal(record.attempt + 1)} attempt."
        case _:
            return f"The same request now {next_caller(record, _time)}."


def _other_request(record: Record) -> Iterator[str]:
    if record.fingerprint:
        yield "Another request under this key is refused with 422 and told which fields differ."


def _completed(record: Record) -> str:
    return "at an unknown time" if record.completed_at is None else f"at {_time(record.completed_at)}"


def _ordinal(number: int) -> str:
    few = {1: "first", 2: "second", 3: "third"}
    return few.get(number, f"{number}th")


def _time(micros: int) -> str:
    return instant(micros / 1_000_000)
