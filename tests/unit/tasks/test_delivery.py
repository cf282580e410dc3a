"""What becomes of a message that has no claim: put back, waited for or dropped, and never lost."""

import json

import pytest
from celery.exceptions import Ignore, Reject, Retry

from sameas import Engine, InProgress, Policy, StoreUnavailable, Superseded, open_store
from sameas.identity.normalize import TASK_HEADER
from sameas.tasks.delivery import REQUEUES
from sameas.tasks.engines import ENGINES


def busy(bench, task, key="one"):
    """Somebody else has the claim of the task."""

    def holding(context):
        return bench.deliver(task, task_id=key, **bench.request)

    return ENGINES.of(bench.app).run(holding, scope=f"{task.name} outside", key="holder") if False else holding


class Holder:
    """Another worker, with the claim of a task, for as long as a `with` block lasts."""

    def __init__(self, bench, scope, key="one", policy=None):
        engine = ENGINES.of(bench.app)
        self._script = engine._intake.call(lambda context: None, scope=scope, key=key)
        self._engine = engine

    def __enter__(self):
        self.claim = self._engine.store.claim(self._script.request)
        self._script.acquired(self.claim)
        return self

    def __exit__(self, *_):
        self._engine.store.release(self._script.context.lease)


@pytest.fixture
def task(bench):
    return bench.task(lambda: "done", name="task", requeue_after=2.0)


def countdown(message):
    from datetime import UTC, datetime

    return (datetime.fromisoformat(message.headers["eta"]) - datetime.now(UTC)).total_seconds()


def test_a_message_whose_work_is_in_progress_is_put_back_as_it_was(bench, task):
    sent = {TASK_HEADER: {"v": 1, "tenant_id": "", "traceparent": ""}}
    with Holder(bench, "task"):
        state, ending = bench.deliver(task, retries=3, headers=sent, group="a group", expires="2099-01-01T00:00:00Z")
    assert state == "IGNORED"
    (copy,) = bench.sent()
    assert copy.headers["id"] == "one"
    assert copy.headers["retries"] == 3
    assert copy.headers["group"] == "a group"
    assert copy.headers["expires"] == "2099-01-01T00:00:00Z"
    assert copy.headers[TASK_HEADER] == sent[TASK_HEADER]
    assert copy.headers[REQUEUES] == 1
    assert 0 < countdown(copy) <= 2.0
    assert bench.deliver(task, headers=copy.headers) == ("SUCCESS", "done")
