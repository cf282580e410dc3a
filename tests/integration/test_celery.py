"""Celery tasks on real workers: whatever the broker delivers, one run of each task is accepted."""

import os
import signal
import uuid

import pytest
from celery import chain, chord, group

from sameas import KeyReused
from sameas.identity.ids import uuid7
from sameas.identity.normalize import current_scope, normalize_context, normalize_request
from sameas.identity.scope import Principal
from sameas.once.record import State
from tests.integration.celery_bench import PATIENCE, open_gates, record_of, restore_unacknowledged, send, until
from tests.servers.celery_tasks import SECRET
from tests.servers.celery_worker import CeleryWorker
from tests.servers.every_observer import read_observed
from tests.servers.program import program_or_skip
from tests.servers.redis import RedisServer

VISIBLE_FOR = 2

# Each broker with each pool, and each kind of store; a worker that was killed comes back with the other pool.
WORKERS = {
    "rabbitmq-prefork-sqlite": ("rabbitmq", "prefork", "sqlite"),
    "redis-threads-redis": ("redis", "threads", "redis"),
    "rabbitmq-threads-postgres": ("rabbitmq", "threads", "postgres"),
    "redis-prefork-redis": ("redis", "prefork", "redis"),
}


def workers(*, broker="", pool=""):
    """The workers with this broker and this pool; the whole table where neither is named."""
    fitting = [name for name, (its_broker, its_pool, _) in WORKERS.items() if broker in its_broker and pool in its_pool]
    return pytest.mark.parametrize("worker", fitting, indirect=True)


every_worker = workers()
# What the pool and the broker have a say in, but hardly the store.
three_workers = pytest.mark.parametrize("worker", [name for name in WORKERS if "postgres" not in name], indirect=True)
# Each broker and each pool, once.
one_of_each = pytest.mark.parametrize("worker", ["rabbitmq-prefork-sqlite", "redis-threads-redis"], indirect=True)


@pytest.fixture(scope="module")
def redis():
    # A server of its own: a worker's queues must not be flushed by the tests of others.
    with program_or_skip():
        server = RedisServer(appendonly="everysec")
    with server:
        yield server.url.removesuffix("/0")


@pytest.fixture(scope="module")
def worker(request, redis):
    broker, pool, store = WORKERS[request.param]
    url, options = f"{redis}/0", {"visibility_timeout": VISIBLE_FOR}
    if broker == "rabbitmq":
        url, options = request.getfixturevalue("rabbitmq_server").start().url, {}
    stores = {"sqlite": lambda: "sqlite:///FOLDER/records.db", "redis": lambda: f"{redis}/2"}
    stores["postgres"] = lambda: request.getfixturevalue("postgres_server").start().create_database("celery")
    made = CeleryWorker(
        broker=url, results=f"{redis}/1", store=stores[store](), pool=pool, concurrency=4, options=options
    )
    with made:
        yield made
    if store == "postgres":
        request.getfixturevalue("postgres_server").drop_database("celery")


@every_worker
def test_500_deliveries_complete_one_run(worker):
    first = send(worker, "gated_requeue", "many")
    until(lambda: worker.count(id=first.id, event="started"))
    send(worker, "gated_requeue", "many", task_id=first.id, times=499)
    open_gates(worker, "many")
    assert first.get(timeout=PATIENCE) == "through many"
    # A broker with a short visibility time-out adds some of its own.
    until(lambda: worker.replays(first.id) >= 499)
    assert [worker.count(id=first.id, event=event) for event in ("started", "effect", "completed")] == [1, 1, 1]


@three_workers
def test_a_duplicate_of_a_running_task_is_put_back_and_does_not_count_as_a_retry(worker):
    first = send(worker, "gated_requeue", "back")
    until(lambda: worker.count(id=first.id, event="started"))
    send(worker, "gated_requeue", "back", task_id=first.id)
    until(lambda: f"[{first.id}] put back" in worker.log)
    open_gates(worker, "back")
    until(lambda: worker.count(id=first.id, event="succeeded", replayed=True, retries=0))
    assert worker.count(id=first.id, event="started") == 1


@three_workers
def test_a_duplicate_waits_for_a_running_task(worker):
    first = send(worker, "gated_wait", "wait")
    until(lambda: worker.count(id=first.id, event="started"))
    send(worker, "gated_wait", "wait", task_id=first.id)
    until(lambda: worker.received(first.id) == 2)
    open_gates(worker, "wait")
    until(lambda: worker.count(id=first.id, event="succeeded", replayed=True))
    assert worker.count(id=first.id, event="started") == 1
    assert f"[{first.id}] put back" not in worker.log


@three_workers
def test_a_duplicate_is_dropped_where_the_task_says_so(worker):
    first = send(worker, "gated_drop", "drop")
    until(lambda: worker.count(id=first.id, event="started"))
    send(worker, "gated_drop", "drop", task_id=first.id)
    until(lambda: f"[{first.id}] dropped" in worker.log)
    open_gates(worker, "drop")
    assert first.get(timeout=PATIENCE) == "through drop"
    assert worker.count(id=first.id, event="completed") == 1


@three_workers
@pytest.mark.parametrize("name", ["flaky", "flaky_drop", "autoretried"])
def test_a_retry_has_the_claim_of_its_predecessor(worker, name):
    result = send(worker, name, 3)
    assert result.get(timeout=PATIENCE) == 3
    assert [each["retries"] for each in worker.journal(id=result.id, event="tried")] == [0, 1, 2, 3]
    assert worker.count(id=result.id, event="completed") == 1
    send(worker, name, 3, task_id=result.id)
    until(lambda: worker.replays(result.id))
    assert worker.count(id=result.id, event="tried") == 4


@three_workers
def test_a_retry_stays_in_its_trace_with_an_invocation_of_its_own(worker):
    result = send(worker, "flaky", 1)
    assert result.get(timeout=PATIENCE) == 1
    tries = worker.journal(id=result.id, event="tried")
    assert len({each["trace_id"] for each in tries}) == 1
    assert len({each["invocation_id"] for each in tries}) == 2


@three_workers
def test_a_task_that_replaces_itself_hands_its_claim_on(worker):
    result = send(worker, "again", 2)
    assert result.get(timeout=PATIENCE) == "the last"
    assert [each["nesting"] for each in worker.journal(id=result.id, event="tried")] == [0, 1, 2]
    assert worker.count(id=result.id, event="completed") == 1


@three_workers
def test_a_failure_that_is_kept_is_told_again_and_nothing_runs(worker):
    result = send(worker, "declined")
    with pytest.raises(ValueError, match="no such card"):
        result.get(timeout=PATIENCE)
    send(worker, "declined", task_id=result.id)
    until(lambda: repr(worker.app.AsyncResult(result.id).result) == "StoredFailure('ValueError', 'no such card')")
    assert worker.replays(result.id) == 1
    assert worker.count(id=result.id, event="tried") == 1


@three_workers
def test_a_rejected_message_comes_again_and_an_ignored_one_leaves_no_record(worker):
    rejected = send(worker, "rejected", "reject")
    until(lambda: worker.count(id=rejected.id, event="completed"))
    assert worker.count(id=rejected.id, event="tried") == 2
    ignored = send(worker, "rejected", "ignore")
    until(lambda: worker.count(id=ignored.id, event="tried"))
    until(lambda: record_of(worker, "rejected", ignored.id) is None)


@three_workers
def test_each_step_of_a_chain_runs_once_when_its_first_message_comes_twice(worker):
    add = worker.app.tasks["add"]
    steps = chain(add.s(1, 2), add.s(3), add.s(4))
    steps.freeze()
    # In one trace: the second message may overtake the first, and then its steps are those that run.
    entered = current_scope.set(normalize_context(service_id="sender", tenant_id="", allow_any_tenant=True))
    try:
        first = steps.apply_async()
        again = steps.apply_async()
    finally:
        current_scope.reset(entered)
    assert (first.get(timeout=PATIENCE), again.get(timeout=PATIENCE)) == (10, 10)
    ids = {first.id, first.parent.id, first.parent.parent.id}
    until(lambda: all(worker.replays(each) for each in ids))
    assert [worker.count(id=each, event="completed") for each in ids] == [1, 1, 1]
    assert len({worker.journal(id=each)[0]["trace_id"] for each in ids}) == 1


@three_workers
def test_the_parts_and_the_body_of_a_chord_run_once(worker):
    add, total = worker.app.tasks["add"], worker.app.tasks["total"]
    parts = [add.s(number, number).set(task_id=str(uuid.uuid4())) for number in range(5)]
    result = chord(group(parts, app=worker.app), app=worker.app)(total.s())
    assert result.get(timeout=PATIENCE) == 20
    ids = [part.options["task_id"] for part in parts]
    for number, task_id in enumerate(ids):
        send(worker, "add", number, number, task_id=task_id)
    until(lambda: all(worker.replays(each) for each in ids))
    assert [worker.count(id=each, event="completed") for each in [*ids, result.id]] == [1] * 6


@one_of_each
def test_a_part_of_a_chord_that_comes_again_does_not_count_again(worker):
    add, total = worker.app.tasks["add"], worker.app.tasks["total"]
    chord_id, body_id, first, second = (str(uuid.uuid4()) for _ in range(4))
    body = total.s().set(task_id=body_id)
    body["chord_size"] = 2
    worker.app.backend.set_chord_size(chord_id, 2)
    for _ in range(3):
        add.apply_async((1, 1), task_id=first, group_id=chord_id, group_index=0, chord=body)
    until(lambda: worker.replays(first) == 2)
    assert worker.received(body_id) == 0, "two of the first are not the first and the second"
    for _ in range(3):
        add.apply_async((2, 2), task_id=second, group_id=chord_id, group_index=1, chord=body)
    assert worker.app.AsyncResult(body_id).get(timeout=PATIENCE) == 6
    until(lambda: worker.replays(second) == 2)
    assert [worker.count(id=each, event="completed") for each in (first, second, body_id)] == [1, 1, 1]


@one_of_each
def test_the_parts_of_a_group_run_once(worker):
    parts = group([worker.app.tasks["add"].s(number, number) for number in range(4)], app=worker.app)
    parts.freeze()
    first, again = parts.apply_async(), parts.apply_async()
    assert first.get(timeout=PATIENCE) == again.get(timeout=PATIENCE) == [0, 2, 4, 6]
    ids = [each.id for each in first.results]
    until(lambda: all(worker.replays(each) for each in ids))
    assert [worker.count(id=each, event="completed") for each in ids] == [1] * 4


@one_of_each
def test_a_task_whose_result_celery_ignores_runs_once_and_is_remembered(worker):
    sent = send(worker, "unread", 5, times=3)
    until(lambda: worker.replays(sent.id) == 2)
    assert worker.count(id=sent.id, event="completed") == 1
    assert record_of(worker, "unread", sent.id).state is State.DONE
    assert worker.app.AsyncResult(sent.id).state == "PENDING", "Celery was told nothing"


@three_workers
def test_a_callback_has_the_same_name_at_every_delivery_and_so_runs_once(worker):
    add = worker.app.tasks["add"]
    first = send(worker, "add", 1, 2, link=add.s(10))
    first.get(timeout=PATIENCE)
    until(lambda: first.children)
    callback = first.children[0].id
    # A callback that comes while its twin works is sent back to the queue, and would be received a third time.
    until(lambda: record_of(worker, "add", callback) is not None and worker.count(id=callback, event="completed"))
    until(lambda: record_of(worker, "add", callback).state is State.DONE)
    send(worker, "add", 1, 2, task_id=first.id, link=add.s(10))
    until(lambda: worker.replays(first.id))
    until(lambda: worker.received(callback) == 2 and worker.replays(callback) == 1)
    assert worker.count(id=callback, event="completed") == 1


@workers(pool="prefork")
def test_a_time_limit_gives_the_claim_back(worker):
    task_id = str(uuid.uuid4())
    with pytest.raises(Exception, match="SoftTimeLimitExceeded"):
        send(worker, "limited", "never", task_id=task_id).get(timeout=PATIENCE)
    assert record_of(worker, "limited", task_id) is None
    worker.open_gate("never")
    send(worker, "limited", "never", task_id=task_id)
    until(lambda: worker.count(id=task_id, event="completed"))


@workers(pool="prefork")
def test_a_child_of_the_pool_that_is_killed_has_its_task_done_by_another(worker):
    first = send(worker, "gated_lost", "lost")
    until(lambda: worker.count(id=first.id, event="started"))
    os.kill(worker.journal(id=first.id, event="started")[0]["pid"], signal.SIGKILL)
    open_gates(worker, "lost")
    until(lambda: worker.count(id=first.id, event="completed"))
    assert [each["attempt"] for each in worker.journal(id=first.id, event="started")] == [1, 2]


@three_workers
def test_a_revoked_task_makes_no_claim(worker):
    task_id = str(uuid.uuid4())
    worker.app.control.revoke(task_id)
    until(lambda: f"flagged as revoked: {task_id}" in worker.log)
    send(worker, "charge", 1, task_id=task_id)
    until(lambda: f"Discarding revoked task: charge[{task_id}]" in worker.log)
    assert worker.count(id=task_id) == 0
    assert record_of(worker, "charge", task_id) is None


@workers(pool="prefork")
def test_a_task_that_is_terminated_leaves_its_claim_to_the_lease(worker):
    first = send(worker, "gated_requeue", "terminated")
    until(lambda: worker.count(id=first.id, event="started"))
    worker.app.control.revoke(first.id, terminate=True, signal="SIGKILL")
    until(lambda: "revoked" in first.state.lower())
    assert record_of(worker, "gated_requeue", first.id).state is State.HELD
    assert worker.count(id=first.id, event="completed") == 0


@three_workers
def test_a_key_of_the_client_is_good_for_one_request(worker):
    key = str(uuid.uuid4())
    assert send(worker, "pay", 5, idempotency_key=key).get(timeout=PATIENCE) == "paid 5"
    again = send(worker, "pay", 5, idempotency_key=key)
    assert again.get(timeout=PATIENCE) == "paid 5"
    with pytest.raises(KeyReused, match="different request"):
        send(worker, "pay", 6, idempotency_key=key).get(timeout=PATIENCE)
    assert worker.count(task="pay", event="completed", key=key) == 1


def in_request(key):
    """The scope of a user's request that has this key."""
    scope = normalize_context(principal=Principal(tenant_id=str(uuid7()), user_id=str(uuid7())))
    return scope.with_key(scope_name="create_order", key=key)


@one_of_each
def test_two_mails_of_one_request_arrive_and_a_repeated_one_is_sent_once(worker):
    buyer, seller, again = (f"{name}-{uuid.uuid4()}" for name in ("buyer", "seller", "again"))
    entered = current_scope.set(in_request("order-1"))
    try:
        results = [send(worker, "mail", to) for to in (buyer, seller, buyer)]
        # The same request again, as after a crash of the server that had it.
        results += [send(worker, "mail", seller), send(worker, "mail_all", [buyer, again, again])]
    finally:
        current_scope.reset(entered)
    *mails, count = [result.get(timeout=PATIENCE) for result in results]
    assert mails == [f"mail to {to}" for to in (buyer, seller, buyer, seller)]
    assert count == 3
    until(lambda: worker.count(event="mailed", to=again))
    until(lambda: worker.count(event="mailed", to=buyer) == 2)
    # That of the parent task is another piece of work than that of the request.
    assert [worker.count(event="mailed", to=to) for to in (buyer, seller, again)] == [2, 1, 1]
    keys = {entry["key"] for entry in worker.journal(event="mailed") if entry["to"] in (buyer, seller, again)}
    assert len(keys) == 4


@one_of_each
def test_a_task_that_is_sent_by_its_name_has_the_key_it_was_sent_with(worker):
    key = str(uuid.uuid4())
    for _ in range(2):
        assert worker.app.send_task("pay", (5,), idempotency_key=key).get(timeout=PATIENCE) == "paid 5"
    assert worker.count(task="pay", event="completed", key=key) == 1
    with pytest.raises(ValueError, match="pay needs a key"):
        worker.app.send_task("pay", (5,))


@three_workers
def test_no_key_or_secret_is_in_anything_that_a_worker_wrote(worker):
    key = str(uuid.uuid4())
    for amount in (5, 5):
        assert send(worker, "pay", amount, idempotency_key=key).get(timeout=PATIENCE) == "paid 5"
    with pytest.raises(KeyReused) as refused:
        send(worker, "pay", 6, idempotency_key=key).get(timeout=PATIENCE)
    assert record_of(worker, "pay", key).state is State.DONE
    until(lambda: worker.log.count("KeyReused"))
    written = {"worker": worker.log, "error": repr(refused.value), **read_observed(worker.folder / "observed")}
    assert [kind for kind, text in written.items() if "pay" not in text and kind != "error"] == []
    assert [kind for kind, text in written.items() if key in text or SECRET.decode() in text] == []


@three_workers
def test_equal_arguments_are_one_task_where_the_content_is_the_key(worker):
    number = str(uuid.uuid4())
    first = send(worker, "order", {"number": number, "sent_at": 1}).get(timeout=PATIENCE)
    second = send(worker, "order", {"sent_at": 2, "number": number}).get(timeout=PATIENCE)
    assert first == second == {"order": number, "by": first["by"]}
    assert worker.count(id=first["by"], event="completed") == 1


@three_workers
def test_a_result_that_nobody_wants_is_not_kept(worker):
    result = send(worker, "silent")
    until(lambda: worker.count(id=result.id, event="completed"))
    send(worker, "silent", task_id=result.id)
    until(lambda: worker.replays(result.id))
    assert worker.count(id=result.id, event="completed") == 1


@three_workers
def test_the_trace_is_one_from_the_request_to_the_last_task_and_each_hop_has_its_invocation(worker):
    tenant, user = str(uuid7()), str(uuid7())
    request = {"type": "http", "headers": [(b"traceparent", b"00-" + b"a1" * 16 + b"-" + b"b2" * 8 + b"-01")]}
    scope = normalize_request(request, principal=Principal(tenant_id=tenant, user_id=user))
    entered = current_scope.set(scope)
    try:
        send(worker, "hop", 2)
    finally:
        current_scope.reset(entered)
    until(lambda: worker.count(event="hopped", tenant_id=tenant) == 3)
    hops = worker.journal(event="hopped", tenant_id=tenant)
    assert {hop["trace_id"] for hop in hops} == {"a1" * 16}
    assert len({scope.invocation_id, *(hop["invocation_id"] for hop in hops)}) == 4
    assert {(hop["user_id"], hop["service_id"], hop["initiated_by"]) for hop in hops} == {(None, "bench-worker", user)}


@workers(broker="redis")
def test_a_task_longer_than_the_visibility_time_out_does_not_run_beside_itself(worker):
    first = send(worker, "gated_requeue", "long")
    until(lambda: worker.count(id=first.id, event="started"))
    claimed = record_of(worker, "gated_requeue", first.id)
    until(lambda: worker.received(first.id) > 2, meanwhile=lambda: restore_unacknowledged(worker))
    assert record_of(worker, "gated_requeue", first.id).lease_until > claimed.lease_until
    open_gates(worker, "long")
    assert first.get(timeout=PATIENCE) == "through long"
    until(lambda: worker.replays(first.id))
    assert [worker.count(id=first.id, event=event) for event in ("started", "effect", "completed")] == [1, 1, 1]


@one_of_each
def test_a_worker_that_is_asked_to_end_finishes_its_task_first(worker):
    first = send(worker, "gated_requeue", "term")
    until(lambda: worker.count(id=first.id, event="started"))
    os.kill(worker.pid, signal.SIGTERM)
    until(lambda: "Warm shutdown" in worker.recent_log)
    open_gates(worker, "term")
    until(lambda: not worker.running)
    assert record_of(worker, "gated_requeue", first.id).state is State.DONE
    worker.start()
    send(worker, "gated_requeue", "term", task_id=first.id)
    until(lambda: worker.replays(first.id))
    assert first.get(timeout=PATIENCE) == "through term"
    assert [worker.count(id=first.id, event=event) for event in ("started", "effect", "completed")] == [1, 1, 1]


@every_worker
def test_a_killed_worker_is_replaced_and_one_run_is_completed(worker):
    before, after, done = (send(worker, "gated_requeue", gate) for gate in ("kill-1", "kill-2", "kill-3"))
    open_gates(worker, "kill-2", "before")
    open_gates(worker, "kill-3", "before", "after")
    until(lambda: worker.count(id=before.id, event="started"))
    until(lambda: worker.count(id=after.id, event="effect"))
    # In its hook for success: the result is kept, the message not yet acknowledged.
    until(lambda: worker.count(id=done.id, event="succeeded"))
    worker.kill()
    for gate in ("kill-1", "kill-2", "kill-3"):
        open_gates(worker, gate)
    worker.start_with_the_other_pool()
    until(
        lambda: all(
            worker.count(id=each.id, event="succeeded", replayed=each is done) for each in (before, after, done)
        ),
        meanwhile=lambda: restore_unacknowledged(worker),
    )
    assert [each["attempt"] for each in worker.journal(id=before.id, event="started")] == [1, 2]
    assert worker.count(id=before.id, event="effect") == 1
    # An effect elsewhere may repeat after a crash, under the same child key.
    assert len({each["child_key"] for each in worker.journal(id=after.id, event="effect")}) == 1
    assert worker.count(id=done.id, event="effect") == 1
    assert [worker.count(id=each.id, event="completed") for each in (before, after, done)] == [1, 1, 1]
