"""What tests do to a Celery worker: send to it, open its gates, wait for what it wrote, read its records."""

import time
import uuid

from sameas import Engine, open_store

PATIENCE = 60.0


def until(happened, *, meanwhile=None):
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        if meanwhile is not None:
            meanwhile()
        time.sleep(0.05)


def send(worker, name, *args, task_id=None, times=1, **options):
    task_id = task_id or str(uuid.uuid4())
    with worker.app.producer_or_acquire() as producer:
        for _ in range(times):
            result = worker.app.tasks[name].apply_async(args, task_id=task_id, producer=producer, **options)
    return result


def open_gates(worker, gate, *which):
    for each in which or ("before", "after", "acknowledge"):
        worker.open_gate(f"{gate}-{each}")


def restore_unacknowledged(worker):
    """What any worker on Redis does when it starts and every ten seconds: deliver again what was not acknowledged."""
    if worker.url.startswith("redis"):
        with worker.app.connection_for_write() as connection:
            connection.default_channel.qos.restore_visible()


def record_of(worker, scope, key):
    with Engine(open_store(worker.app.conf.sameas_store)) as engine:
        return engine.read(scope, key)
