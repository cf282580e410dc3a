"""Celery tasks that run once: `@app.task(base=IdempotentTask, scope_name="start_ingestion")`.

Each delivery claims the task's key before it runs. A delivery after success does nothing and returns the kept result; a
delivery while another one runs waits, is put back or is dropped, by choice. Celery decides when a message comes, the
claim decides whether it runs, so the broker may deliver as often as it likes.

What Celery calls a task's own ways to end (Retry, Ignore, Reject) gives the claim back and is passed on; none of them
is ever kept as a failure.

`app.send_task(name, ..., idempotency_key=)` takes keys as well. Celery has no seam there: an app that only sends has no
task of ours, and one that has some binds them when it first needs them. So the method itself is extended, for every
app, when this module is imported; what it is not asked for, it does not do.

The engine is opened when the first task needs it, so each child of a prefork pool opens its own; what was inherited
through a fork is left alone. A configuration that names no store is refused with what to write.

    sameas_store       the URL of the records, as for `open_store`
    sameas_policy      the Policy of every scope, sameas_policies those of single scopes by name
    sameas_secret      the secret of fingerprints
    sameas_observers   who is told
    sameas_engine      an Engine, or a function without arguments that makes one, instead of all of the above
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from threading import Lock
from typing import Any, ClassVar, Literal, get_args
from weakref import WeakKeyDictionary

from celery import Celery, Task, shared_task  # type: ignore[import-untyped]
from celery.local import maybe_evaluate  # type: ignore[import-untyped]

from sameas.connections import open_store
from sameas.identity.canonical import Exclusions, compile_exclusions
from sameas.identity.key import content_key
from sameas.identity.normalize import Starts, has_key
from sameas.identity.scope import AuditMeta, ScopeContext, check_scope_name
from sameas.once.call_builder import NOTHING
from sameas.once.engine import Engine
from sameas.once.forks import renew_after_fork
from sameas.tasks.delivery import Delivery, payload_of
from sameas.tasks.outgoing import TaskStart, task_start_of, told_apart, with_scope

_HOW = (
    "a task of sameas needs somewhere to keep its records: set app.conf.sameas_store to a URL such as"
    " 'redis://localhost/0' or 'sqlite:///sameas.db', or app.conf.sameas_engine to an Engine"
)

KeyBy = Literal["task_id", "client", "content"]
OnBusy = Literal["requeue", "wait", "drop"]


class Engines:
    """The engines of this process, one for each app."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._opened: WeakKeyDictionary[Any, Engine] = WeakKeyDictionary()

    def of(self, app: Any) -> Engine:
        """The app's engine, opened now where it is not open yet."""
        engine = self._opened.get(app)
        if engine is None:
            with self._lock:
                engine = self._opened.get(app)
                if engine is None:
                    engine = self._opened[app] = open_engine(app.conf)
        return engine

    def close(self, app: Any) -> None:
        """Close the app's engine, unless it was given open; the next task opens it again."""
        with self._lock:
            engine = self._opened.pop(app, None)
        if engine is not None and engine is not app.conf.get("sameas_engine"):
            engine.close()


def open_engine(conf: Any) -> Engine:
    """The engine that a configuration describes."""
    given = conf.get("sameas_engine")
    if given is not None:
        engine = given() if callable(given) else given
        if not isinstance(engine, Engine):
            raise TypeError(f"sameas_engine must be an Engine or make one, not a {type(engine).__qualname__}")
        return engine
    url = conf.get("sameas_store")
    if not url:
        raise ValueError(_HOW)
    return Engine(
        open_store(url),
        policy=conf.get("sameas_policy"),
        policies=conf.get("sameas_policies"),
        secret=conf.get("sameas_secret") or b"",
        observers=conf.get("sameas_observers") or (),
    )


ENGINES = Engines()


class IdempotentTask(Task):  # type: ignore[misc]
    """The base of tasks that run once per tenant, scope name and key. The attributes are options of `@app.task`.

    ValueError is raised for one that cannot be, when the task is made. A task that is sent or run raises what Celery's
    raise, and the errors of the engine.
    """

    abstract = True
    # A redelivery is harmless, so a message is kept until its task is done: a worker that dies loses nothing.
    acks_late = True

    # A stable name for this kind of work; the task's own name where it is left out.
    scope_name: ClassVar[str | None] = None
    # What makes two messages the same: the task id, a key that the sender chose, or the content of the arguments.
    key_by: ClassVar[KeyBy] = "task_id"
    # Of the arguments, what does not count: for keys by content, and when a client's key is seen again.
    exclude_fields: ClassVar[Iterable[str] | Exclusions] = ()
    # What becomes of a delivery while another one runs.
    on_busy: ClassVar[OnBusy] = "requeue"
    requeue_after: ClassVar[float] = 5.0
    # False keeps only that the task is done: its result is None, the first time too.
    keep_result: ClassVar[bool] = True
    result_type: ClassVar[Any] = None
    # Where these are left out, the policy of the engine holds.
    lease: ClassVar[float | None] = None
    retention: ClassVar[float | None] = NOTHING
    wait_for: ClassVar[float | None] = None
    # Instead of what the app's configuration says.
    engine: ClassVar[Engine | None] = None
    service_id: ClassVar[str | None] = None
    any_tenant: ClassVar[bool | None] = None
    # What the scope of a message must have: a case, the id of the run that it starts.
    case_required: ClassVar[bool] = False
    starts: ClassVar[Starts | None] = None

    @classmethod
    def on_bound(cls, app: Any) -> None:
        """Refuse options that mean nothing, when the task is made rather than when it runs."""
        for name, allowed in (("key_by", get_args(KeyBy)), ("on_busy", get_args(OnBusy))):
            if getattr(cls, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {getattr(cls, name)!r}")
        if not cls.requeue_after > 0:
            raise ValueError("requeue_after must be more than 0 seconds")
        if cls.scope_name is not None:
            check_scope_name(cls.scope_name)
        elif str(cls.name).startswith("__main__."):
            raise ValueError(f"every program has a {cls.name}: say scope_name=, a stable name for this kind of work")
        cls.exclude_fields = compile_exclusions(cls.exclude_fields)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = self.request
        # A task that is called like a function is one: nothing was delivered. So is one that calls itself.
        if request.called_directly or task_start_of(request) is not None:
            return super().__call__(*args, **kwargs)
        return Delivery(self, request).run(args, kwargs)

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: str | None = None,
        producer: Any = None,
        link: Any = None,
        link_error: Any = None,
        shadow: str | None = None,
        *,
        headers: Any = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Any:
        """As Celery's, with the scope of the sender; `idempotency_key` is the key of a task with key_by="client"."""
        headers = self.outgoing(headers, idempotency_key, args or (), kwargs or {})
        return super().apply_async(
            args, kwargs, task_id, producer, link, link_error, shadow, headers=headers, **options
        )

    def apply(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        args: Any = None,
        kwargs: Any = None,
        *,
        headers: Any = None,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> Any:
        """As Celery's: run here and now, once like everywhere else."""
        headers = self.outgoing(headers, idempotency_key, args or (), kwargs or {})
        return super().apply(args, kwargs, headers=headers, **options)

    def map(self, it: Any) -> Any:
        """Refused: Celery sends one message for all, and calls the task as a function for each."""
        raise self._not_as_one("map")

    def starmap(self, it: Any) -> Any:
        """Refused, as `map` is."""
        raise self._not_as_one("starmap")

    def chunks(self, it: Any, n: int) -> Any:
        """Refused, as `map` is."""
        raise self._not_as_one("chunks")

    def _not_as_one(self, name: str) -> TypeError:
        return TypeError(
            f"{name} would run {self.name} as a plain function, with no claim for any of its calls: send a group, such "
            "as group(task.s(each) for each in them)"
        )

    @property
    def scope(self) -> ScopeContext:
        """Whose hop this is, for whom, and in which trace."""
        return self._hop.scope

    @property
    def audit_meta(self) -> AuditMeta:
        """For what this task writes: trace, invocation, key, and the user who started it all."""
        return self._hop.audit

    @property
    def replayed(self) -> bool:
        """Whether this delivery was answered from the record; for on_success and after_return, which run again."""
        return self._hop.replayed

    @property
    def scope_in_use(self) -> str:
        return self.scope_name or str(self.name)

    @property
    def engine_in_use(self) -> Engine:
        return self.engine or ENGINES.of(maybe_evaluate(self.app))

    @property
    def service_in_use(self) -> str:
        """The service of this hop. Only the library, which asks for no tenant either, has a name of its own for it."""
        named = self.service_id or self.app.conf.get("sameas_service_id")
        if named:
            return str(named)
        if self.any_tenant_in_use:
            return str(self.app.main or "celery")
        raise ValueError("a task is a hop of a service: set app.conf.sameas_service_id, such as 'ingestion-worker'")

    @property
    def any_tenant_in_use(self) -> bool:
        """Whether a tenant may be any text and may be left out; otherwise the scope contract holds to the letter."""
        if self.any_tenant is not None:
            return self.any_tenant
        return bool(self.app.conf.get("sameas_any_tenant", True))

    @property
    def _hop(self) -> TaskStart:
        task_start = task_start_of(self.request)
        if task_start is None:
            raise LookupError("this task was called like a function: it has no scope; send it, or use apply()")
        return task_start

    def outgoing(
        self, headers: Any, idempotency_key: str | None, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The headers of a message to this task; refused if it needs a key and there is none."""

        def apart(key: str) -> str:
            if self.key_by != "client":
                return key
            payload = payload_of(self, args, kwargs)
            return told_apart(key, self.scope_in_use, content_key(payload, exclude_fields=self.exclude_fields))

        sent = with_scope(
            headers,
            sender=self.app.current_worker_task,
            service_id=self.service_in_use,
            idempotency_key=idempotency_key,
            any_tenant=self.any_tenant_in_use,
            apart=apart,
        )
        if self.key_by == "client" and not has_key(sent):
            raise ValueError(
                f"{self.name} needs a key: send it with idempotency_key=, or from a request or a task that has one"
            )
        return sent


def idempotent_task(function: Callable[..., Any] | None = None, *, app: Any = None, **options: Any) -> Any:
    """Make a function a task that runs once: of the given app, or a shared one. Options are those of `@app.task`."""
    base = options.setdefault("base", IdempotentTask)
    if not (isinstance(base, type) and issubclass(base, IdempotentTask)):
        raise TypeError(f"base must be a kind of IdempotentTask, not {base!r}")
    decorate = shared_task(**options) if app is None else app.task(**options)
    return decorate if function is None else decorate(function)


def close_engine(app: Any) -> None:
    """Close the engine that the tasks of this app opened in this process; the next task opens it again."""
    ENGINES.close(maybe_evaluate(app))


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
