"""What runs that wait for workers cost the node that accepted them, and how they are cancelled."""

import asyncio
import threading
import time

import pytest

from sameas.cluster.broker import Broker, make_app
from sameas.objects import open_objects
from sameas.server.runs.pending_runs import PendingObjects
from sameas.server.tenants.broadcast import Broadcast
from tests.unit.server.house import TURTLE, WITHIN, running

ASYNC = {"Prefer": "respond-async"}


def until(happened):
    ends_at = time.monotonic() + WITHIN
    while not (found := happened()):
        assert time.monotonic() < ends_at, "it did not happen"
        time.sleep(0.01)
    return found


@pytest.fixture
def settings(tmp_path):
    # Brokers in memory are one, whatever their names.
    make_app("memory://").connection_for_write().default_channel.queue_purge("sameas")
    return {
        "broker": "memory://",
        "objects": f"file://{tmp_path}/objects",
        "store": f"sqlite:///{tmp_path}/records.db",
        "database": f"sqlite:///{tmp_path}/tables.db",
    }


@pytest.fixture
def node(tmp_path, settings):
    """A node of a cluster without workers."""
    with running(tmp_path / "one", **settings) as service:
        said = service.client.put("/api/v1/ontologies/company", content=TURTLE, headers={"Content-Type": "text/turtle"})
        assert said.status_code == 201
        yield service


def body(number):
    return {"text": f"Person{number} Stone works for Acme{number} Ltd.", "ontologyId": "company"}


def accepted(node, number):
    reply = node.client.post("/api/v1/extract", json=body(number), headers=ASYNC)
    assert reply.status_code == 202, reply.text
    return reply.json()["idempotencyKey"]


def tasks(node):
    return len(asyncio.all_tasks(node.app.service._background_loop.loop))


def promised(settings):
    return PendingObjects(open_objects(settings["objects"]))


def messages(settings):
    return Broker(settings["broker"]).look().waiting


def test_runs_that_nobody_waits_for_leave_no_task_behind(node, settings):
    accepted(node, 0)
    until(lambda: messages(settings) == 1)
    before = tasks(node)
    keys = {accepted(node, number) for number in range(1, 60)}
    until(lambda: messages(settings) == 60)
    until(lambda: tasks(node) == before)
    assert node.app.service.runner.running == 0
    assert keys < {key for (_, key), _ in promised(settings).places()}
    for key in keys:
        assert node.client.get(f"/api/v1/runs/{key}").json()["status"] == "pending"


def test_a_run_that_waits_already_is_accepted_again_without_another_message(node, settings):
    keys = [accepted(node, 1) for _ in range(5)]
    until(lambda: messages(settings))
    assert len(set(keys)) == 1
    accepted(node, 2)
    until(lambda: messages(settings) == 2)


def test_callers_that_send_the_same_at_once_make_one_promise_and_one_message(node, settings):
    keys = []
    threads = [threading.Thread(target=lambda: keys.append(accepted(node, 7))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 12
    assert len(set(keys)) == 1
    accepted(node, 8)
    until(lambda: messages(settings) == 2)


def test_a_run_that_waits_again_after_an_earlier_end_can_be_listened_to(node, settings):
    key = accepted(node, 1)
    with node.client.stream("GET", f"/api/v1/runs/{key}/events") as stream:
        assert stream.status_code == 200


def test_everybody_is_told_of_a_cancellation_before_the_request_goes(node, settings, monkeypatch):
    told, publish = [], Broadcast.publish

    async def noted(self, notice):
        told.append((notice.type, notice.key, promised(settings).has("", notice.key)))
        await publish(self, notice)

    monkeypatch.setattr(Broadcast, "publish", noted)
    key = accepted(node, 1)
    reply = node.client.post(f"/api/v1/runs/{key}/cancel")
    assert (reply.status_code, reply.json()["outcome"]) == (202, "requested")
    assert told == [("cancel-run", key, True)]
    assert not promised(settings).has("", key)
    assert node.client.get(f"/api/v1/runs/{key}").status_code == 404


@pytest.mark.parametrize("deleted", [False, True])
def test_who_waits_at_another_node_is_told_and_does_not_write_the_request_anew(tmp_path, node, settings, deleted):
    with running(tmp_path / "other", **settings) as other:
        key = accepted(node, 1)
        told = []
        waiting = threading.Thread(target=lambda: told.append(other.client.post("/api/v1/extract", json=body(1))))
        waiting.start()
        # Its own message is the second.
        until(lambda: messages(settings) == 2)
        if deleted:
            assert node.client.delete(f"/api/v1/runs/{key}").status_code == 204
        else:
            assert node.client.post(f"/api/v1/runs/{key}/cancel").status_code == 202
        waiting.join(WITHIN)
        assert [reply.status_code for reply in told] == [409]
        assert not promised(settings).has("", key)
