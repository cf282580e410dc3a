"""The only ways in: a request, a task or anything else becomes a ScopeContext here.

Rule: nothing else in the house reads an id from a header. Tenant and user come from the authenticated principal, or on
a public endpoint the tenant comes from routing; a header that names one can only agree, or the request is refused. The
functions are pure: they take the principal and the case that were resolved before. Each call is one hop: the trace goes
on, the invocation is new.

The headers, all optional: `Authorization` or `X-API-Key`; `Idempotency-Key`; `traceparent`, `tracestate`;
`X-Tenant-ID`, `X-User-ID`, `X-Service-ID`, `X-Case-ID`, `X-Collection-ID`, `X-Workflow-ID` to be compared;
`X-Workflow-Run-ID`, `X-Ingestion-Run-ID`, which are technical and taken as they are.

A message carries an envelope to the next hop: one entry among its headers that says for whom and in which trace the
work is done, and which user started it all. It never makes that user the principal of the next hop. The broker is
inside the walls: who can write to it can name any tenant. A later version of the house may add members, which are
passed over; one with another meaning has another `v` and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from sameas.identity.ids import TraceContext, is_uuid7, uuid7
from sameas.identity.scope import (
    MAX_KEY,
    AuditMeta,
    Case,
    Principal,
    ScopeContext,
    ScopeError,
    check_id,
    check_text,
    current_scope,
)

__all__ = [
    "TASK_HEADER",
    "Credentials",
    "Hop",
    "Starts",
    "begin_hop",
    "credentials",
    "current_scope",
    "has_key",
    "idempotency_key_header",
    "normalize_context",
    "normalize_request",
    "normalize_task",
    "normalize_unproved",
    "requested_case_id",
    "task_headers",
]

Starts = Literal["workflow", "ingestion"]
# Servers refuse header lines much longer than this; tokens with many claims stay below.
MAX_CREDENTIAL = 16_384
# The one entry among a message's headers that is ours.
TASK_HEADER = "sameas"
VERSION = 1

_COMPARED = {
    b"x-tenant-id": "tenant_id",
    b"x-user-id": "user_id",
    b"x-service-id": "service_id",
    b"x-case-id": "case_id",
    b"x-collection-id": "collection_id",
    b"x-workflow-id": "workflow_id",
}
_TAKEN = {b"x-workflow-run-id": "workflow_run_id", b"x-ingestion-run-id": "ingestion_run_id"}
_ID_HEADERS = {**_COMPARED, **_TAKEN}
_AUTHORIZATION = re.compile(r"([A-Za-z][A-Za-z0-9!#$%&'*+.^_`|~-]*) +([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)")
_API_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """What a request shows of itself; never printed. `scheme` is in lower case: bearer, apikey, basic."""

    scheme: str
    token: str

    def __repr__(self) -> str:
        return f"Credentials(scheme={self.scheme!r}, token=***)"


def normalize_request(
    asgi_scope: Mapping[str, Any],
    *,
    principal: Principal | None,
    public: bool = False,
    routed_tenant: str | None = None,
    case: Case | None = None,
    case_required: bool = False,
    starts: Starts | None = None,
    collection_id: str | None = None,
    workflow_id: str | None = None,
    workflow_run_id: str | None = None,
    ingestion_run_id: str | None = None,
    allow_any_tenant: bool = False,
) -> ScopeContext:
    """The scope of an HTTP request or of the handshake of a WebSocket."""
    named, traceparents, tracestates = _read(asgi_scope, any_text=allow_any_tenant)
    if principal is None and not public:
        raise ScopeError(
            "this endpoint needs a credential: send Authorization or X-API-Key", code="unauthenticated", status=401
        )
    if case is not None and case.is_system:
        raise ScopeError("there is no such case", code="case-unknown", status=403)
    ctx = _build(
        principal=principal,
        routed_tenant=routed_tenant,
        case=case,
        case_required=case_required,
        starts=starts,
        trace=TraceContext.joined(traceparents, tracestates),
        collection_id=collection_id,
        workflow_id=workflow_id,
        workflow_run_id=workflow_run_id or named.get("workflow_run_id"),
        ingestion_run_id=ingestion_run_id or named.get("ingestion_run_id"),
        is_public=public,
        any_tenant=allow_any_tenant,
    )
    _compare(ctx, named)
    return ctx


class Hop(msgspec.Struct, frozen=True):
    """The ids that are made for a hop: all that a record needs to know of a request that shows nobody."""

    trace: TraceContext
    invocation_id: str


def begin_hop(asgi_scope: Mapping[str, Any]) -> Hop:
    """The ids of a request's hop, before anybody asks for its scope: the trace goes on, the invocation is new."""
    parents: list[str] = []
    states: list[str] = []
    for name, value in asgi_scope["headers"]:
        if name == b"traceparent":
            parents.append(value.decode("latin-1").strip(" \t"))
        elif name == b"tracestate":
            states.append(value.decode("latin-1"))
    return Hop(TraceContext.joined(parents, states), uuid7.text())


def normalize_unproved(
    asgi_scope: Mapping[str, Any],
    *,
    tenant_id: str,
    hop: Hop | None = None,
    idempotency_scope_name: str | None = None,
    idempotency_key: str | None = None,
    allow_any_tenant: bool = False,
) -> ScopeContext:
    """The scope of a request that shows nobody: its trace goes on, and no id that it names is looked at. `hop` are the
    ids of one that has begun."""
    hop = hop or begin_hop(asgi_scope)
    return _build(
        routed_tenant=tenant_id,
        case=None,
        case_required=False,
        starts=None,
        trace=hop.trace,
        invocation_id=hop.invocation_id,
        idempotency_scope_name=idempotency_scope_name,
        idempotency_key=idempotency_key,
        is_public=True,
        any_tenant=allow_any_tenant,
    )


def normalize_task(
    headers: Mapping[str, Any] | None,
    *,
    service_id: str,
    case: Case | None = None,
    case_required: bool = False,
    starts: Starts | None = None,
    workflow_run_id: str | None = None,
    ingestion_run_id: str | None = None,
    idempotency_scope_name: str | None = None,
    idempotency_key: str | None = None,
    allow_any_tenant: bool = False,
) -> tuple[ScopeContext, AuditMeta]:
    """The scope of a task that starts, and the audit_meta of what it will write.

    A service's hop: the user who started it all is in audit_meta and is nobody's principal here. The key is the given
    one or else the one that the sender sent, and is set where the task names its scope.
    """
    envelope = open_envelope((headers or {}).get(TASK_HEADER), any_tenant=allow_any_tenant)
    if case is not None and envelope.case_id not in {None, case.case_id}:
        raise ScopeError("the message was sent for another case", code="case-id-mismatch", status=403)
    ctx = _build(
        service=service_id,
        routed_tenant=envelope.tenant_id,
        case=case or (envelope.case_id and Case(case_id=envelope.case_id, tenant_id=envelope.tenant_id)) or None,
        case_required=case_required,
        starts=starts,
        trace=TraceContext.joined([envelope.traceparent], [envelope.tracestate]),
        collection_id=envelope.collection_id,
        workflow_id=envelope.workflow_id,
        workflow_run_id=workflow_run_id or envelope.workflow_run_id,
        ingestion_run_id=ingestion_run_id or envelope.ingestion_run_id,
        any_tenant=allow_any_tenant,
    )
    if idempotency_scope_name is not None:
        ctx = ctx.with_key(scope_name=idempotency_scope_name, key=idempotency_key or envelope.idempotency_key)
    check_id("initiated_by_user_id", envelope.initiated_by_user_id, any_text=allow_any_tenant)
    return ctx, AuditMeta.created_in(ctx, initiated_by_user_id=envelope.initiated_by_user_id)


def normalize_context(
    *,
    principal: Principal | None = None,
    service_id: str | None = None,
    tenant_id: str | None = None,
    trace: TraceContext | None = None,
    traceparent: str | None = None,
    case: Case | None = None,
    case_required: bool = False,
    starts: Starts | None = None,
    collection_id: str | None = None,
    workflow_id: str | None = None,
    workflow_run_id: str | None = None,
    ingestion_run_id: str | None = None,
    allow_any_tenant: bool = False,
) -> ScopeContext:
    """The scope of what is neither a request nor a task: a command line, a timer, a plain consumer."""
    if (principal is None) == (service_id is None):
        raise ScopeError("give exactly one of principal and service_id", code="principal-ambiguous")
    if trace is None:
        trace = TraceContext.new() if traceparent is None else TraceContext.joined([traceparent])
    return _build(
        principal=principal,
        service=service_id,
        routed_tenant=tenant_id,
        case=case,
        case_required=case_required,
        starts=starts,
        trace=trace,
        collection_id=collection_id,
        workflow_id=workflow_id,
        workflow_run_id=workflow_run_id,
        ingestion_run_id=ingestion_run_id,
        any_tenant=allow_any_tenant,
    )


def has_key(headers: Mapping[str, Any]) -> bool:
    """Whether the headers of a message carry a key."""
    sent = headers.get(TASK_HEADER)
    return isinstance(sent, Mapping) and bool(sent.get("idempotency_key"))


def idempotency_key_header(asgi_scope: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The raw values of Idempotency-Key, each time it was sent."""
    return tuple([value for name, value in asgi_scope["headers"] if name == b"idempotency-key"])


def credentials(asgi_scope: Mapping[str, Any]) -> Credentials | None:
    """What the request shows of itself: one credential or none. Two are refused, for nobody knows which one counts."""
    shown = [(name, value) for name, value in asgi_scope["headers"] if name in {b"authorization", b"x-api-key"}]
    if not shown:
        return None
    if len(shown) > 1:
        raise ScopeError("send one credential: Authorization or X-API-Key, once", code="credentials-ambiguous")
    name, raw = shown[0]
    value = raw.decode("latin-1").strip(" \t")
    if len(value) <= MAX_CREDENTIAL:
        if name == b"x-api-key" and _API_KEY.fullmatch(value):
            return Credentials("apikey", value)
        if name == b"authorization" and (match := _AUTHORIZATION.fullmatch(value)):
            return Credentials(match[1].lower(), match[2])
    # The value is not told: it may be a secret with a slip in it.
    raise ScopeError(
        "the credential cannot be read: send `Authorization: Bearer ...` or `X-API-Key: ...`",
        code="credentials-malformed",
        status=401,
    )


def requested_case_id(asgi_scope: Mapping[str, Any]) -> str | None:
    """The case that X-Case-ID asks for. It means nothing until the directory has resolved it for the principal."""
    wanted = _read(asgi_scope, any_text=True)[0].get("case_id")
    # As everywhere: the one spelling of an id is in lower case, whatever a client makes of it.
    return wanted.lower() if wanted is not None and is_uuid7(wanted.lower()) else wanted


def _build(
    *,
    principal: Principal | None = None,
    service: str | None = None,
    routed_tenant: str | None,
    case: Case | None,
    case_required: bool,
    starts: Starts | None,
    any_tenant: bool,
    trace: TraceContext,
    invocation_id: str = "",
    **ids: Any,
) -> ScopeContext:
    tenant = routed_tenant if principal is None else principal.tenant_id
    if tenant is None:
        raise ScopeError("no tenant: the endpoint has neither a principal nor tenant routing", code="tenant-required")
    if routed_tenant is not None and routed_tenant != tenant:
        raise ScopeError(
            "the credential belongs to another tenant than the address", code="tenant-id-mismatch", status=403
        )
    if case is None and case_required:
        raise ScopeError("case_id is required here", code="case-required")
    ctx = ScopeContext(
        tenant_id=tenant,
        user_id=principal.user_id if principal else None,
        service_id=principal.service_id if principal else service,
        case_id=case.case_id if case else None,
        invocation_id=invocation_id or uuid7.text(),
        trace_id=trace.trace_id,
        trace=trace,
        any_tenant=any_tenant,
        **ids,
    )
    if case is not None and case.tenant_id != tenant:
        raise ScopeError("there is no such case", code="case-unknown", status=403)
    if starts is not None and getattr(ctx, f"{starts}_run_id") is None:
        raise ScopeError(f"starting {_STARTED[starts]} requires {starts}_run_id", code=f"{starts}-run-id-required")
    return ctx


_STARTED: dict[Starts, str] = {"workflow": "a workflow", "ingestion": "ingestion"}


def _read(asgi_scope: Mapping[str, Any], *, any_text: bool) -> tuple[dict[str, str], list[str], list[str]]:
    """The ids that the headers name, and the trace's headers."""
    named: dict[str, str] = {}
    parents: list[str] = []
    states: list[str] = []
    headers: Iterable[tuple[bytes, bytes]] = asgi_scope["headers"]
    for name, value in headers:
        if name in _ID_HEADERS:
            field = _ID_HEADERS[name]
            if field in named:
                raise ScopeError(f"the header {name.decode()} was sent twice", code="header-repeated")
            text = value.decode("latin-1").strip(" \t")
            free = name == b"x-service-id" or (any_text and name in _COMPARED)
            named[field] = text if free else text.lower()
            check_id(field, named[field], any_text=free)
        elif name == b"traceparent":
            parents.append(value.decode("latin-1").strip(" \t"))
        elif name == b"tracestate":
            states.append(value.decode("latin-1"))
    return named, parents, states


def _compare(ctx: ScopeContext, named: Mapping[str, str]) -> None:
    """Refuse a header that contradicts what is known; one about a case, collection or workflow that nobody resolved
    is no more than a note for people."""
    for field in _COMPARED.values():
        known = getattr(ctx, field)
        if field in named and named[field] != known and (known is not None or field in _ALWAYS_COMPARED):
            header = "X-" + "-".join(part.upper() if part == "id" else part.title() for part in field.split("_"))
            raise ScopeError(
                f"{header} contradicts the credential and the address of the request; leave it out or correct it",
                code=f"{field.replace('_', '-')}-mismatch",
                status=403,
            )


# Their authority was asked in any case: where it named nobody, nobody is what the header must agree to.
_ALWAYS_COMPARED = frozenset({"tenant_id", "user_id", "service_id"})


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
