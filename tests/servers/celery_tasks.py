"""The tasks of the test workers. Each writes down what it does, and stops at gates that a test opens.

Run as a program, with its settings and Celery's arguments, it is a worker, which tells every observer that is shipped.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Ignore, Reject, SoftTimeLimitExceeded

from sameas import Policy, current_context
from sameas.once.line_log import LineLog
from sameas.tasks.celery import IdempotentTask, idempotent_task
from tests.servers.every_observer import every_observer

LEASE = 4.0
SECRET = b"the secret of the fingerprints"
GIVE_UP_AFTER = 60.0


class Bench:
    """Where tasks write down what they do, and wait."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def note(self, event: str, task: Any, **more: Any) -> None:
        entry = {"event": event, "task": task.name, "id": task.request.id, "retries": task.request.retries, **more}
        with LineLog(self._folder / "journal") as lines:
            lines.append(json.dumps({**entry, "pid": os.getpid()}).encode())

    def wait_at(self, gate: str) -> None:
        deadline = time.monotonic() + GIVE_UP_AFTER
        while not (self._folder / "gates" / gate).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(gate)
            time.sleep(0.01)


def read_journal(folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "journal"
    if path.exists():
        for line in path.read_text().splitlines():
            # A worker that was killed while it wrote has left a part of a line, which tells nothing.
            with suppress(json.JSONDecodeError):
                yield json.loads(line)


def make_app(settings: Mapping[str, Any]) -> Celery:
    """The same app for the worker and for who sends to it."""
    app = Celery("bench", broker=settings["broker"], backend=settings["results"], set_as_current=False)
    app.conf.update(
        task_default_queue=settings["queue"],
        broker_connection_retry_on_startup=True,
        broker_transport_options=settings["options"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=True,
        sameas_store=settings["store"],
        sameas_policy=Policy(lease=LEASE, wait_for=20.0),
        sameas_policies={"declined": Policy(lease=LEASE, keep_errors=(ValueError,))},
        sameas_service_id="bench-worker",
        sameas_secret=SECRET,
    )
    bench = Bench(settings["folder"])
    _define_effects(app, bench)
    _define_endings(app, bench)
    _define_flows(app, bench)
    return app


def _task(app: Celery, **options: Any) -> Any:
    # Not shared: every test has an app of its own, with tasks of the same names.
    return idempotent_task(app=app, bind=True, shared=False, **options)


def _define_effects(app: Celery, bench: Bench) -> None:
    @_task(app, name="charge", requeue_after=0.2)
    def charge(self: Any, amount: int) -> dict[str, int]:
        bench.note("completed", self)
        return {"charged": amount}

    def gated(self: Any, gate: str) -> str:
        bench.note("started", self, attempt=current_context().attempt)
        bench.wait_at(f"{gate}-before")
        bench.note("effect", self, child_key=current_context().child_key("mail"))
        bench.wait_at(f"{gate}-after")
        bench.note("completed", self)
        return f"through {gate}"

    class Acknowledged(IdempotentTask):
        def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
            bench.note("succeeded", self, replayed=self.replayed)
            bench.wait_at(f"{args[0]}-acknowledge")

    for on_busy in ("requeue", "wait", "drop"):
        _task(app, base=Acknowledged, name=f"gated_{on_busy}", on_busy=on_busy, requeue_after=0.5)(gated)
    _task(app, base=Acknowledged, name="gated_lost", reject_on_worker_lost=True, requeue_after=0.2)(gated)

    @_task(app, name="order", key_by="content", exclude_fields={"sent_at"}, on_busy="wait")
    def order(self: Any, order: dict[str, Any]) -> dict[str, Any]:
        bench.note("completed", self)
        return {"order": order["number"], "by": self.request.id}

    @_task(app, name="pay", key_by="client", scope_name="pay")
    def pay(self: Any, amount: int) -> str:
        bench.note("completed", self, key=self.audit_meta.idempotency_key)
        return f"paid {amount}"

    @_task(app, name="mail", key_by="client", exclude_fields={"sent_at"})
    def mail(self: Any, to: str, sent_at: float = 0.0) -> str:
        bench.note("mailed", self, to=to, key=self.audit_meta.idempotency_key)
        return f"mail to {to}"

    @_task(app, name="mail_all", key_by="client")
    def mail_all(self: Any, to: list[str]) -> int:
        for each in to:
            app.tasks["mail"].delay(each, sent_at=time.time())
        return len(to)


def _define_endings(app: Celery, bench: Bench) -> None:
    def flaky(self: Any, failures: int) -> int:
        bench.note("tried", self, trace_id=self.scope.trace_id, invocation_id=self.scope.invocation_id)
        if self.request.retries < failures:
            raise self.retry(countdown=0)
        bench.note("completed", self)
        return int(self.request.retries)

    _task(app, name="flaky", max_retries=5, requeue_after=0.2)(flaky)
    _task(app, name="flaky_drop", max_retries=5, on_busy="drop")(flaky)

    @_task(
        app,
        name="autoretried",
        autoretry_for=(ConnectionError,),
        retry_kwargs={"countdown": 0},
        max_retries=3,
    )
    def autoretried(self: Any, failures: int) -> int:
        bench.note("tried", self)
        if self.request.retries < failures:
            raise ConnectionError("not yet")
        bench.note("completed", self)
        return int(self.request.retries)

    @_task(app, name="rejected", requeue_after=0.2)
    def rejected(self: Any, how: str) -> None:
        bench.note("tried", self)
        if how == "reject" and len(list(_tries(bench, self))) < 2:
            raise Reject("again", requeue=True)
        if how == "ignore":
            raise Ignore
        bench.note("completed", self)

    @_task(app, name="limited", soft_time_limit=1, requeue_after=0.2)
    def limited(self: Any, gate: str) -> str:
        bench.note("tried", self)
        try:
            bench.wait_at(gate)
        except SoftTimeLimitExceeded:
            bench.note("limited", self)
            raise
        bench.note("completed", self)
        return "in time"

    @_task(app, name="declined", scope_name="declined")
    def declined(self: Any) -> None:
        bench.note("tried", self)
        raise ValueError("no such card")

    @_task(app, name="unread", ignore_result=True)
    def unread(self: Any, number: int) -> int:
        bench.note("completed", self)
        return number

    @_task(app, name="silent", ignore_result=True, keep_result=False)
    def silent(self: Any) -> object:
        bench.note("completed", self)
        return object()


def _tries(bench: Bench, task: Any) -> Iterator[dict[str, Any]]:
    return (
        entry for entry in read_journal(bench._folder) if entry["id"] == task.request.id and entry["event"] == "tried"
    )


def _define_flows(app: Celery, bench: Bench) -> None:
    @_task(app, name="add", requeue_after=0.2)
    def add(self: Any, left: int, right: int) -> int:
        bench.note("completed", self, trace_id=self.scope.trace_id)
        return left + right

    @_task(app, name="total", requeue_after=0.2)
    def total(self: Any, numbers: list[int]) -> int:
        bench.note("completed", self, trace_id=self.scope.trace_id)
        return sum(numbers)

    @_task(app, name="again")
    def again(self: Any, times: int) -> str:
        bench.note("tried", self, nesting=self.request.replaced_task_nesting)
        if times:
            raise self.replace(self.si(times - 1))
        bench.note("completed", self)
        return "the last"

    def hop(self: Any, hops: int) -> int:
        scope = self.scope
        bench.note(
            "hopped",
            self,
            hops=hops,
            tenant_id=scope.tenant_id,
            user_id=scope.user_id,
            service_id=scope.service_id,
            trace_id=scope.trace_id,
            invocation_id=scope.invocation_id,
            initiated_by=self.audit_meta.initiated_by_user_id,
            last_hop=self.audit_meta.last_hop_service_id,
        )
        if hops:
            app.tasks["hop"].delay(hops - 1)
        return hops

    _task(app, name="hop", any_tenant=False)(hop)


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    app = make_app(settings)
    app.conf.sameas_observers = every_observer(Path(settings["folder"]) / "observed")
    app.worker_main(sys.argv[2:])
