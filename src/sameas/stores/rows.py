"""A record as the columns of a table, and back. The field rules of source document 003 are kept here.

What a caller says before the work (a route, a method) is refused if it breaks a rule. What the work answered is
never refused, because it has happened: a media type or status that no column may hold is kept beside the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from sameas.once.codec import unframe
from sameas.once.errors import RecordDamaged
from sameas.once.record import About, ClaimRequest, Identity, Outcome, Record, State, check_route, check_tags

Row = Sequence[Any]

MAX_MEDIA_TYPE: Final = 256
# Source document 003: a body of up to a megabyte; a longer one is only in the outcome.
MAX_READABLE: Final = 1_048_576
# What the columns of MySQL and SQL Server hold; a longer name is refused before it is cut short.
LIMITS: Final = {"tenant": 255, "scope": 255, "key": 1_024, "attempt_id": 255, "owner": 512}
# The member of the meta column that holds a media type which breaks the column's rule.
_ODD_MEDIA_TYPE: Final = "~media_type"

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}[ \t]*(;.*)?")
_TEXT_TYPE = re.compile(r"text/|application/(?:json|xml|javascript|x-www-form-urlencoded)\b|[^;]*\+(?:json|xml)\b")
_STATES: Final = {state.value: state for state in State}


def claim_values(request: ClaimRequest) -> dict[str, Any]:
    """The columns of a claim."""
    identity, about = request.identity, request.about
    if about.route or about.method:
        check_route(about.route, about.method)
    return {
        "digest": identity.digest,
        "tenant": identity.tenant,
        "scope": identity.scope,
        "key": identity.key,
        "fingerprint": request.fingerprint,
        "attempt_id": request.attempt_id,
        "owner": about.owner,
        "lease_for": request.lease_for,
        "retain_for": request.retain_for,
        "route": about.route or None,
        "http_method": about.method or None,
        # Most records have neither, and every call counts between two waits.
        "tags": tags_text(about.tags) if about.tags else "",
        "audit_meta": _json_text(about.audit) if about.audit else "",
    }


def limited(values: dict[str, Any]) -> dict[str, Any]:
    """The values, none of them longer than its column."""
    for name, longest in LIMITS.items():
        if len(values[name]) > longest:
            raise ValueError(f"the {name} has {len(values[name])} characters; this store holds {longest}")
    return values


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """The columns of a result."""
    media_type, meta = outcome.media_type, outcome.meta
    if media_type and not _fits_media_type(media_type):
        meta = {**meta, _ODD_MEDIA_TYPE: media_type}
        media_type = ""
    status = meta.get("status") if meta else None
    return {
        "outcome": outcome.data,
        "content_type": media_type or None,
        "status_code": status if isinstance(status, int) and 100 <= status <= 599 else None,
        "response_body": None if status is None else readable(outcome),
        "meta": _json_text(meta) if meta else "",
    }


def readable(outcome: Outcome) -> str | None:
    """The text of a result that is text, for people who look into the table; it is never replayed."""
    if not _is_text(outcome.media_type):
        return None
    try:
        data = unframe(outcome.data)
    except RecordDamaged:
        # Not framed by the engine: the bytes themselves.
        data = outcome.data
    if len(data) > MAX_READABLE or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def tags_text(tags: Sequence[str]) -> str:
    """Each tag between line breaks, so that one is found whole or not at all."""
    return "\n" + "\n".join(check_tags(tags)) + "\n" if tags else ""


def record_of(identity: Identity, row: Row) -> Record:
    """The record in a row of the statements `look` and `find`; the row ends with the store's time."""
    (
        fingerprint, state, fence, attempt, attempt_id, lease_until, created_at, expires_at, completed_at,
        outcome, content_type, meta, owner, tags, route, method, audit, _,
    ) = row  # fmt: skip
    kept: Outcome | None = None
    if completed_at is not None:
        if content_type is not None:
            kept = Outcome(outcome or b"", content_type, _from_json(meta) if meta else {})
        else:
            kept = _odd_outcome(outcome or b"", _from_json(meta) if meta else {})
    return Record(
        identity,
        fingerprint,
        _STATES[state],
        fence,
        attempt,
        attempt_id,
        lease_until,
        created_at,
        expires_at,
        completed_at,
        kept,
        About(
            owner,
            tuple(tags.split("\n")[1:-1]) if tags else (),
            route or "",
            method or "",
            _from_json(audit) if audit else {},
        ),
    )


def _odd_outcome(data: bytes, meta: Any) -> Outcome:
    """A result whose media type, if it has one, is not in its column."""
    return Outcome(data, meta.pop(_ODD_MEDIA_TYPE, ""), meta)


@lru_cache(maxsize=1_024)
def _fits_media_type(media_type: str) -> bool:
    return len(media_type) <= MAX_MEDIA_TYPE and _MEDIA_TYPE.fullmatch(media_type) is not None


@lru_cache(maxsize=1_024)
def _is_text(media_type: str) -> bool:
    return _TEXT_TYPE.match(media_type) is not None


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _from_json(text: str) -> Any:
    return msgspec.json.decode(text)
