"""`app.send_task(name, ..., idempotency_key=)`: keys for tasks that are sent by their names.

Celery has no seam there: an app that only sends has no task of ours, and one that has some binds them when it first
needs them. So the method itself is extended, for every app, when this module is imported; what it is not asked for, it
does not do.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from celery import Celery  # type: ignore[import-untyped]

from sameas.tasks.outgoing import with_scope

_send_task = Celery.send_task


@wraps(_send_task)
def _send(
    app: Any,
    name: str,
    args: Any = None,
    kwargs: Any = None,
    *more: Any,
    headers: Any = None,
    idempotency_key: str | None = None,
    **options: Any,
) -> Any:
    task = app.tasks.get(name)
    if hasattr(task, "outgoing"):
        headers = task.outgoing(headers, idempotency_key, args or (), kwargs or {})
    elif idempotency_key is not None:
        headers = with_scope(
            headers,
            sender=app.current_worker_task,
            service_id=str(app.conf.get("sameas_service_id") or app.main or "celery"),
            idempotency_key=idempotency_key,
            any_tenant=bool(app.conf.get("sameas_any_tenant", True)),
        )
    return _send_task(app, name, args, kwargs, *more, headers=headers, **options)


Celery.send_task = _send  # pyright: ignore[reportAttributeAccessIssue]
