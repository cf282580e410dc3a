"""One delivery of a task: from Celery's request to a claim, and from what the engine says to what Celery is told.

Rule: nothing runs without a claim, and no message is lost for want of one. While the store cannot answer, or somebody
else has the claim, the message is put back to come again later, which does not count as a retry. A message is dropped
only where the task chose so, and only a plain second message: what the broker delivers again, what is a retry and what
was put back may be the last there is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from celery.exceptions import Ignore, Reject, TaskPredicate  # type: ignore[import-untyped]

from sameas.identity.key import content_keys
from sameas.identity.normalize import current_scope, normalize_task
from sameas.once.call_builder import NOTHING, Options
from sameas.once.codec import declared_result
from sameas.once.context import Context
from sameas.once.decorator import Signature
from sameas.once.errors import InProgress, OutcomeUnknown, StoredFailure, StoreUnavailable, Superseded
from sameas.tasks.outgoing import TaskStart, name_callbacks

if TYPE_CHECKING:
    from sameas.tasks.celery import IdempotentTask

_LOG = logging.getLogger("sameas.tasks")

_UNSTORED: Final = "done, but the store could not be told: a redelivery may run again"
# Among the headers of a copy that was put back: how often that was done.
REQUEUES: Final = "sameas_requeues"
# A delivery that waits may have to do the work itself: most of its time limit must be left then.
_WAIT_PER_LIMIT = 0.1
# A retry is sent before its predecessor gives the claim back, and may overtake it: it waits that moment.
_HANDOVER = 1.0
# Redis and SQS deliver again what is not acknowledged in time, and a message with a countdown is not.
_COUNTDOWN_PER_VISIBILITY = 0.5


class _Ended(BaseException):
    """The task ended in one of Celery's own ways. No Exception: the policy must not keep it as a failure."""

    def __init__(self, predicate: Exception) -> None:
        self.predicate = predicate
        super().__init__(predicate)


class Delivery:
    """One message, at one worker, once."""

    def __init__(self, task: IdempotentTask, request: Any) -> None:
        self._task = task
        self._request = request
        # What the task itself raised: the engine's errors look the same when they come from further inside.
        self._raised: BaseException | None = None

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the task: run now, or as it was the first time."""
        task_start, options = self._normalize(args, kwargs)
        self._request.sameas_hop = task_start
        entered = current_scope.set(task_start.scope)
        try:
            return self._run(task_start, options, args, kwargs)
        finally:
            current_scope.reset(entered)

    def _run(self, task_start: TaskStart, options: Options, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        task = self._task

        def work(context: Context) -> Any:
            try:
                result = task.run(*args, **kwargs)
            except TaskPredicate as predicate:
                raise _Ended(predicate) from None
            except BaseException as error:
                self._raised = error
                raise
            return result if task.keep_result else None

        try:
            record = task.engine_in_use.record(work, **options)
        except _Ended as ended:
            ending = ended.predicate
        except (InProgress, Superseded, StoreUnavailable) as error:
            if error is self._raised or self._request.is_eager:
                raise
            ending = self._put_back(error)
        except StoredFailure as error:
            if error is not self._raised:
                self._say("replay=true: failed before", replay=True)
            raise
        except OutcomeUnknown as error:
            if error is not self._raised:
                self._say(_UNSTORED, level=logging.ERROR)
            raise
        else:
            task_start.replayed = record.was_replay
            if record.was_replay:
                self._say("replay=true: done before, at attempt %d", record.attempt, replay=True)
            elif not record.stored:
                self._say(_UNSTORED, level=logging.WARNING)
            elif record.not_kept:
                self._say("done, but its result cannot be kept: a redelivery is told so", level=logging.WARNING)
            result = record.answer()
            name_callbacks(self._request)
            return result
        raise ending

    def _normalize(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TaskStart, Options]:
        """Whose delivery it is, and what the engine is asked."""
        task, request = self._task, self._request
        options: Options = {"scope": task.scope_in_use, "result_type": task.result_type or declared_result(task.run)}
        key: str | None = None
        if task.key_by == "task_id":
            key = request.id
        else:
            payload = payload_of(task, args, kwargs)
            if task.key_by == "content":
                key, options["former_key"] = content_keys(payload, task.exclude_fields)
                options["namespace"] = "content"
            else:
                options["payload"] = payload
                options["exclude_fields"] = task.exclude_fields
        scope, audit = normalize_task(
            request.headers,
            service_id=task.service_in_use,
            case_required=task.case_required,
            starts=task.starts,
            idempotency_scope_name=task.scope_in_use,
            idempotency_key=key,
            allow_any_tenant=task.any_tenant_in_use,
        )
        if scope.idempotency_key is None:
            raise ValueError(f"{task.name} needs a key: send it with apply_async(..., idempotency_key=...)")
        options["key"] = scope.idempotency_key
        options["tenant"] = scope.tenant_id
        options["audit"] = {**msgspec.to_builtins(audit), "task_id": request.id, "task": task.name}
        self._set_policy(options)
        return TaskStart(scope, audit), options

    def _set_policy(self, options: Options) -> None:
        task, request = self._task, self._request
        if task.lease is not None:
            options["lease"] = task.lease
        if task.retention is not NOTHING:
            options["retention"] = task.retention
        limit = _shortest(request.time_limit, request.soft_time_limit, task.time_limit, task.soft_time_limit)
        wait_for = _shortest(task.wait_for, limit and limit * _WAIT_PER_LIMIT)
        waits = task.on_busy == "wait"
        if not waits and self._follows_another:
            waits, wait_for = True, _shortest(wait_for, _HANDOVER)
        options["on_busy"] = "wait" if waits else "refuse"
        if wait_for is not None:
            options["wait_for"] = wait_for

    @property
    def _follows_another(self) -> bool:
        """Whether an earlier try of the same task sent this one: as a retry, or to replace itself."""
        return bool(self._request.retries or self._request.replaced_task_nesting)

    def _may_be_dropped(self) -> bool:
        request = self._request
        redelivered = (request.delivery_info or {}).get("redelivered", False)
        return not (redelivered or self._requeues or self._follows_another)

    def _put_back(self, error: InProgress | Superseded | StoreUnavailable) -> Exception:
        """Send the message again for later; returns how this delivery ends."""
        task, request = self._task, self._request
        if isinstance(error, InProgress) and task.on_busy == "drop" and self._may_be_dropped():
            self._say("dropped: the same work is in progress")
            return Ignore("dropped by sameas: the same work is in progress")  # type: ignore[no-any-return]
        wait = min(task.requeue_after, getattr(error, "retry_after", task.requeue_after))
        visible_for = (task.app.conf.broker_transport_options or {}).get("visibility_timeout")
        if visible_for:
            wait = min(wait, visible_for * _COUNTDOWN_PER_VISIBILITY)
        copy: Any = task.signature_from_request(request, countdown=wait, retries=request.retries)
        copy.options["headers"] = {**(copy.options.get("headers") or {}), REQUEUES: self._requeues + 1}
        try:
            copy.apply_async()
        except Exception as trouble:
            # The broker still has the message that was not acknowledged; it delivers it again.
            return Reject(trouble, requeue=True)  # type: ignore[no-any-return]
        self._say("put back for %.1f seconds: %s", wait, type(error).__name__)
        return Ignore(f"put back by sameas: {type(error).__name__}")  # type: ignore[no-any-return]

    @property
    def _requeues(self) -> int:
        count = (self._request.headers or {}).get(REQUEUES, 0)
        # A number that somebody else wrote must not cost the message.
        return count if isinstance(count, int) else 0

    def _say(self, message: str, *values: Any, level: int = logging.INFO, replay: bool = False) -> None:
        """A line that names the task and its place in the trace; no keys, arguments or results."""
        task_start: TaskStart = self._request.sameas_hop
        told = {
            "task": self._task.name,
            "task_id": self._request.id,
            "replay": replay,
            "trace_id": task_start.scope.trace_id,
            "invocation_id": task_start.scope.invocation_id,
        }
        _LOG.log(
            level,
            f"%s[%s] {message} (trace_id=%s invocation_id=%s)",
            told["task"],
            told["task_id"],
            *values,
            told["trace_id"],
            told["invocation_id"],
            extra=told,
        )


def payload_of(task: IdempotentTask, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a task is asked for: its one argument, or all of them by name, defaults included."""
    return _signature(task.run).payload(tuple(args), kwargs)


@lru_cache(maxsize=1_024)
def _signature(function: Any) -> Signature:
    return Signature(function, {"scope": "a task's arguments"})


def _shortest(*seconds: float | None) -> float | None:
    return min((each for each in seconds if each is not None), default=None)
