"""What a message carries to the next hop: the sender's scope, and names for the callbacks that follow.

Rule: a message that has a scope keeps it, so that a retry or a requeued copy says what its first sender said. The scope
is that of the task that sends, or else of the hop that this code runs in; where there is none, the library starts a
trace of its own and the strict mode refuses to send. The key of a request goes on as its caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from sameas.identity.normalize import TASK_HEADER, current_scope, normalize_context, normalize_task, task_headers
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError

# Callbacks are named within this namespace, so that a replay sends them under the names of the first time.
_CALLBACKS = UUID("5a2c6cf4-8f5e-5c43-9d0b-0f2f3f0c7b11")


class Hop:
    """One start of a task: its scope, its audit_meta, and whether its result was a kept one."""

    __slots__ = ("audit", "replayed", "scope")

    def __init__(self, scope: ScopeContext, audit: AuditMeta) -> None:
        self.scope = scope
        self.audit = audit
        self.replayed = False


def hop_of(request: Any) -> Hop | None:
    """The hop of a task's request, once it has begun."""
    hop = getattr(request, "sameas_hop", None)
    return hop if isinstance(hop, Hop) else None


def with_scope(
    headers: Mapping[str, Any] | None,
    *,
    sender: Any,
    service_id: str,
    idempotency_key: str | None,
    any_tenant: bool,
) -> dict[str, Any]:
    """The headers of a message; `sender` is the task that sends it, None where no task does."""
    headers = dict(headers or {})
    if TASK_HEADER in headers:
        if idempotency_key is not None:
            raise ValueError("the headers have a scope already: give the key to task_headers(..., idempotency_key=)")
        return headers
    scope, audit = _sending(sender, service_id=service_id, any_tenant=any_tenant)
    key = idempotency_key or (_key_of_caller(scope) if audit is None else scope.idempotency_key)
    return {**headers, **task_headers(scope, audit, idempotency_key=key)}


def _key_of_caller(scope: ScopeContext) -> str | None:
    """The key of a request, together with whose it is: one key of two callers is two keys, as it was at the door."""
    if scope.idempotency_key is None:
        return None
    if scope.user_id is None and scope.service_id is None:
        return f"public.{scope.idempotency_key}"
    caller = Principal(tenant_id=scope.tenant_id, user_id=scope.user_id, service_id=scope.service_id)
    return f"{caller.digest}.{scope.idempotency_key}"


def _sending(sender: Any, *, service_id: str, any_tenant: bool) -> tuple[ScopeContext, AuditMeta | None]:
    if sender is not None:
        hop = hop_of(sender.request)
        if hop is not None:
            return hop.scope, hop.audit
        if TASK_HEADER in (sender.request.headers or {}):
            # A task of another kind does nothing with its scope but hand it on.
            return normalize_task(sender.request.headers, service_id=service_id, allow_any_tenant=any_tenant)
    scope = current_scope.get()
    if scope is not None:
        return scope, None
    if not any_tenant:
        raise ScopeError(
            "a task was sent outside of any scope: send it from a request or a task, or with"
            " headers=task_headers(normalize_context(...))",
            code="task-scope-required",
        )
    return normalize_context(service_id=service_id, tenant_id="", allow_any_tenant=True), None


def name_callbacks(request: Any) -> None:
    """Give each callback without a task id one that is the same at every delivery."""
    if request.callbacks:
        # Copies: a task that runs where it was sent has the very objects of its sender.
        request.callbacks = [_named(each, f"{request.id}/{number}") for number, each in enumerate(request.callbacks)]


def _named(signature: Any, path: str) -> Any:
    if isinstance(signature, list | tuple):
        return [_named(each, f"{path}/{number}") for number, each in enumerate(signature)]
    inside = _INSIDE.get(signature.get("subtask_type"), ())
    if inside:
        parts = {name: _named(signature["kwargs"][name], f"{path}/{name}") for name in inside}
        return {**signature, "kwargs": {**signature["kwargs"], **parts}}
    name = {"task_id": str(uuid5(_CALLBACKS, path))}
    return {**signature, "options": {**name, **signature["options"]}}


# Where the signatures are that a chain, group or chord is made of.
_INSIDE = {"chain": ("tasks",), "group": ("tasks",), "chord": ("header", "body")}
