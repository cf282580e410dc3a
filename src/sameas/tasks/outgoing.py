"""What a message carries to the next hop: the sender's scope, and names for the callbacks that follow.

Rule: a message that has a scope keeps it, so that a retry or a requeued copy says what its first sender said. The scope
is that of the task that sends, or else of the hop that this code runs in; if there is none, the library starts a
trace of its own and the strict mode refuses to send. A key that a task takes over from the request or task that sends
it is told apart by the task and its arguments: one request may send two mails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID, uuid5

from sameas.identity.canonical import join, sha256_hex
from sameas.identity.normalize import TASK_HEADER, current_scope, normalize_context, normalize_task, task_headers
from sameas.identity.scope import AuditMeta, Principal, ScopeContext, ScopeError
from sameas.once.context import WORKING

# Callbacks are named within this namespace, so that a replay sends them under the names of the first time.
_CALLBACKS = UUID("5a2c6cf4-8f5e-5c43-9d0b-0f2f3f0c7b11")

_DIGEST = re.compile("[0-9a-f]{64}")


class TaskStart:
    """One start of a task: its scope, its audit_meta, and whether its result was a kept one."""

    __slots__ = ("audit", "replayed", "scope")

    def __init__(self, scope: ScopeContext, audit: AuditMeta) -> None:
        self.scope = scope
        self.audit = audit
        self.replayed = False


def task_start_of(request: Any) -> TaskStart | None:
    """The hop of a task's request, once it has begun."""
    task_start = getattr(request, "sameas_hop", None)
    return task_start if isinstance(task_start, TaskStart) else None


def with_scope(
    headers: Mapping[str, Any] | None,
    *,
    sender: Any,
    service_id: str,
    idempotency_key: str | None,
    any_tenant: bool,
    apart: Callable[[str], str] = str,
) -> dict[str, Any]:
    """The headers of a message; `sender` is the task that sends it, None if no task does, and `apart` makes the
    message's own key of one that it takes over."""
    headers = dict(headers or {})
    if TASK_HEADER in headers:
        if idempotency_key is not None:
            raise ValueError("the headers have a scope already: give the key to task_headers(..., idempotency_key=)")
        return headers
    scope, audit = _sending(sender, service_id=service_id, any_tenant=any_tenant)
    key = idempotency_key
    if key is None:
        taken_over = _key_of_caller(scope) if audit is None else scope.idempotency_key
        key = taken_over and apart(taken_over)
    return {**headers, **task_headers(scope, audit, idempotency_key=key)}


def told_apart(key: str, scope_name: str, content: str) -> str:
    """The key of one task with its arguments, under a key that was meant for all of what is done."""
    return "sha256-" + sha256_hex(join(key, scope_name, content))


def _key_of_caller(scope: ScopeContext) -> str | None:
    """The key of a request, together with whose it is: one key of two callers is two keys, as it was at the door."""
    if scope.idempotency_key is None:
        return None
    if scope.user_id is None and scope.service_id is None:
        return _named_at_the_door(scope) or f"public.{scope.idempotency_key}"
    caller = Principal(tenant_id=scope.tenant_id, user_id=scope.user_id, service_id=scope.service_id)
    return f"{caller.digest}.{scope.idempotency_key}"


def _named_at_the_door(scope: ScopeContext) -> str | None:
    """The key under which a request is kept, with whose it is, where the application named the caller or there is
    only a credential: such a caller is not in the scope."""
    sent = scope.idempotency_key
    for context in WORKING.get():
        identity = context.lease.identity
        if identity.scope != scope.idempotency_scope_name:
            continue
        owner, _, key = identity.key.partition(".")
        if key == sent and _DIGEST.fullmatch(owner):
            return identity.key
        if context.apart and identity.key in (sent, f"public.{sent}"):
            return f"{context.apart}.{sent}"
    return None


def _sending(sender: Any, *, service_id: str, any_tenant: bool) -> tuple[ScopeContext, AuditMeta | None]:
    if sender is not None:
        task_start = task_start_of(sender.request)
        if task_start is not None:
            return task_start.scope, task_start.audit
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
