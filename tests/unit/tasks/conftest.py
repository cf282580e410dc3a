"""An app on an in-memory broker, deliveries to its tasks as a worker makes them, and what they send."""

import uuid
from queue import Empty

import pytest
from celery import Celery, _state
from celery.app.trace import build_tracer

from sameas import Policy
from sameas.tasks.celery import close_engine, idempotent_task


def named(function):
    """Celery compiles the head of a task from its name, which a lambda does not have."""
    if function.__name__ == "<lambda>":
        function.__name__ = "task"
    return function


class Bench:
    """One app, without a worker."""

    def __init__(self) -> None:
        self.queue = f"unit-{uuid.uuid4()}"
        self.app = Celery("unit", broker="memory://", backend="cache+memory://", set_as_current=False)
        self.app.conf.update(
            task_default_queue=self.queue, sameas_store="memory://", sameas_policy=Policy(lease=30.0, wait_for=0.05)
        )

    def task(self, function=None, **options):
        made = idempotent_task(app=self.app, shared=False, **options)
        return made if function is None else made(named(function))

    def deliver(self, task, *args, task_id="one", headers=None, redelivered=False, **request):
        """What a worker does with a message; returns the state and what the task returned or raised."""
        task_id = (headers or {}).get("id", task_id)
        request = {
            "id": task_id,
            "task": task.name,
            "retries": 0,
            "hostname": "unit",
            "delivery_info": {"exchange": "", "routing_key": self.queue, "redelivered": redelivered},
            **(headers or {}),
            **request,
        }
        tracer = build_tracer(task.name, self.app.tasks[task.name], app=self.app)
        returned, info, *_ = tracer(task_id, args, request.pop("kwargs", {}), request)
        return ("SUCCESS", returned) if info is None else (info.state, info.retval)

    def sent(self):
        """The messages that were sent since, taken from the queue."""
        messages = []
        with self.app.connection_for_read() as connection, connection.SimpleQueue(self.queue) as queue:
            while True:
                try:
                    message = queue.get_nowait()
                except Empty:
                    return messages
                message.ack()
                messages.append(message)


@pytest.fixture
def bench():
    bench = Bench()
    # As in a worker; signatures inside of others ask for it.
    previous, _state._tls.current_app = _state._tls.current_app, bench.app
    yield bench
    _state._tls.current_app = previous
    close_engine(bench.app)
    bench.app.close()
