"""What a message carries to the next hop: the sender's scope, and names for the callbacks that follow.

Rule: a message that has a scope keeps it, so that a retry or a requeued copy says what its first sender said. The scope
is that of the task that sends, or else of the hop that this code runs in; where there is none, the library starts a
trace of its own and the strict mode refuses to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from sameas.identity.normalize import TASK_HEADER, current_scope, normalize_context, normalize_task, task_headers
from sameas.identity.scope import AuditMeta, ScopeContext, ScopeError

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
    key = idempotency_key or scope.idempotency_key
    return {**headers, **task_headers(scope, audit, idempotency_key=key)}


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
    for number, callback in enumerate(request.callbacks or ()):
        _name(callback, f"{request.id}/{number}")


def _name(signature: Any, path: str) -> None:
    inner = _inside(signature)
    if not inner:
        signature["options"].setdefault("task_id", str(uuid5(_CALLBACKS, path)))
    for number, each in enumerate(inner):
        _name(each, f"{path}/{number}")


def _inside(signature: Any) -> list[Any]:
    """The signatures that a chain, group or chord is made of."""
    if isinstance(signature, list | tuple):
        return list(signature)
    kwargs = signature["kwargs"]
    match signature.get("subtask_type"):
        case "chain" | "group":
            return list(kwargs["tasks"])
        case "chord":
            return [kwargs["header"], kwargs["body"]]
        case _:
            return []
