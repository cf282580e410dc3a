"""Celery workers whose store goes away, and whose broker loses patience: each task still completes once."""

import uuid

import pytest

from tests.integration.celery_bench import PATIENCE, open_gates, send, until
from tests.servers.celery_worker import CeleryWorker
from tests.servers.program import program_or_skip
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

TASKS = 20
# In milliseconds. RabbitMQ has 30 minutes, and looks every minute.
ACKNOWLEDGE_WITHIN = 5_000
LOOK_EVERY = 500


@pytest.fixture(scope="module")
def redis():
    with program_or_skip():
        server = RedisServer(appendonly="everysec")
    with server:
        yield server.url.removesuffix("/0")


@pytest.fixture
def records():
    """A store that only the worker's records are in, to be taken away."""
    with program_or_skip():
        server = RedisServer(appendonly="always")
    with server:
        yield server


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_nothing_runs_while_the_store_is_down_and_each_task_completes_once_after(redis, records, pool):
    with CeleryWorker(
        broker=f"{redis}/0", results=f"{redis}/1", store=records.url, pool=pool, concurrency=4, options={}
    ) as worker:
        before = send(worker, "charge", 0)
        assert before.get(timeout=PATIENCE) == {"charged": 0}
        records.kill()
        sent = [send(worker, "charge", number, task_id=str(uuid.uuid4())) for number in range(1, TASKS + 1)]
        send(worker, "charge", 0, task_id=before.id)
        every = [before, *sent]
        until(lambda: all(f"[{each.id}] put back" in worker.log for each in every))
        assert worker.count(event="completed") == 1
        records.start()
        assert [each.get(timeout=PATIENCE) for each in sent] == [{"charged": number} for number in range(1, TASKS + 1)]
        until(lambda: worker.replays(before.id))
        assert [worker.count(id=each.id, event="completed") for each in every] == [1] * (TASKS + 1)


@pytest.fixture(scope="module")
def hasty_broker():
    """A RabbitMQ that does not wait long for an acknowledgement."""
    with program_or_skip():
        server = RabbitMQServer(
            configuration={"consumer_timeout": str(ACKNOWLEDGE_WITHIN)},
            variables={"channel_tick_interval": LOOK_EVERY},
        )
    with server:
        yield server.url


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_task_longer_than_the_broker_waits_is_completed_once_and_its_redelivery_is_a_replay(
    redis, hasty_broker, pool
):
    with CeleryWorker(
        broker=hasty_broker, results=f"{redis}/1", store=f"{redis}/2", pool=pool, concurrency=2, options={}
    ) as worker:
        first = send(worker, "gated_requeue", "long")
        until(lambda: worker.count(id=first.id, event="started"))
        until(lambda: "Unrecoverable error: PreconditionFailed" in worker.log)
        open_gates(worker, "long")
        # It finishes what it runs and ends, as the page says: somebody has to start it again.
        until(lambda: not worker.running)
        assert worker.count(id=first.id, event="completed") == 1
        worker.start()
        until(lambda: worker.replays(first.id))
        assert first.get(timeout=PATIENCE) == "through long"
        assert [worker.count(id=first.id, event=event) for event in ("started", "effect", "completed")] == [1, 1, 1]
