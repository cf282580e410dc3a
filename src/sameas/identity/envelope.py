"""What travels with a message from one hop to the next: one entry among the message's headers.

Rule: the envelope says for whom and in which trace the work is done, and which user started it all; it never makes that
user the principal of the next hop. The broker is inside the walls: who can write to it can name any tenant. A later
version of the house may add members, which are passed over; one with another meaning has another `v` and is refused.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sameas.identity.scope import MAX_KEY, AuditMeta, ScopeContext, ScopeError, check_text

# The one entry among a message's headers that is ours.
TASK_HEADER = "sameas"
VERSION = 1


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The scope of the sender, as plain JSON types."""

    v: int
    tenant_id: str
    traceparent: str
    tracestate: str = ""
    case_id: str | None = None
    collection_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    ingestion_run_id: str | None = None
    idempotency_key: str | None = None
    initiated_by_user_id: str | None = None


def task_headers(
    ctx: ScopeContext, audit: AuditMeta | None = None, *, idempotency_key: str | None = None
) -> dict[str, Any]:
    """What goes out with a message that this hop sends; `audit` is the hop's own, where it is a service's."""
    check_text("idempotency_key", idempotency_key, longest=MAX_KEY)
    envelope = Envelope(
        v=VERSION,
        tenant_id=ctx.tenant_id,
        traceparent=ctx.trace.for_call(),
        tracestate=ctx.trace.state,
        case_id=ctx.case_id,
        collection_id=ctx.collection_id,
        workflow_id=ctx.workflow_id,
        workflow_run_id=ctx.workflow_run_id,
        ingestion_run_id=ctx.ingestion_run_id,
        idempotency_key=idempotency_key,
        initiated_by_user_id=ctx.user_id or (audit.initiated_by_user_id if audit else None),
    )
    return {TASK_HEADER: msgspec.to_builtins(envelope)}


def open_envelope(sent: Any, *, any_tenant: bool) -> Envelope:
    """What the sender wrote. Only the library, where a tenant may be left out, takes a message without one."""
    if sent is None and any_tenant:
        return Envelope(v=VERSION, tenant_id="", traceparent="")
    if sent is None:
        raise ScopeError(
            f"the message has no {TASK_HEADER!r} header: send it with task_headers", code="task-scope-required"
        )
    try:
        envelope = msgspec.convert(sent, Envelope)
    except msgspec.ValidationError as error:
        raise ScopeError(f"the message's scope cannot be read: {error}", code="task-scope-invalid") from None
    if envelope.v != VERSION:
        raise ScopeError(
            f"the message's scope has version {envelope.v}, known is {VERSION}: let a newer worker take it",
            code="task-scope-version",
        )
    return envelope
