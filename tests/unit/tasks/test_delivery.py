"""What becomes of a message that has no claim: put back, waited for or dropped, and never lost."""

from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

import pytest
from celery.exceptions import Ignore, Reject
from msgspec.structs import replace

from sameas import Engine, InProgress, OutcomeUnknown, Policy, StoreUnavailable, Superseded, open_store
from sameas.identity.normalize import TASK_HEADER
from sameas.once.call_builder import identity_of
from sameas.once.record import Acquired, ClaimRequest, Lease
from sameas.once.store import Store
from sameas.stores.memory import MemoryBackend
from sameas.tasks.celery import ENGINES
from sameas.tasks.delivery import REQUEUES

LEASE = 30_000_000
SCOPE = {TASK_HEADER: {"v": 1, "tenant_id": "", "traceparent": ""}}


@contextmanager
def held(bench, scope, key="one"):
    """Another worker has the claim."""
    store = ENGINES.of(bench.app).store
    identity = identity_of(scope, key)
    claim = store.claim(ClaimRequest(identity, "", "another worker", LEASE, LEASE))
    assert isinstance(claim, Acquired)
    yield
    store.release(Lease(identity, claim.fence, "another worker"))


def countdown(message):
    return (datetime.fromisoformat(message.headers["eta"]) - datetime.now(UTC)).total_seconds()


@pytest.fixture
def task(bench):
    return bench.task(lambda: "done", name="task", requeue_after=2.0, wait_for=0.05)


def test_a_message_whose_work_is_in_progress_is_put_back_as_it_was(bench, task):
    with held(bench, "task"):
        state, _ = bench.deliver(task, headers=SCOPE, retries=3, group="a group", expires="2099-01-01T00:00:00Z")
    assert state == "IGNORED"
    (copy,) = bench.sent()
    kept = {name: copy.headers[name] for name in ("id", "retries", "group", "expires", TASK_HEADER, REQUEUES)}
    assert kept == {
        "id": "one",
        "retries": 3,
        "group": "a group",
        "expires": "2099-01-01T00:00:00Z",
        REQUEUES: 1,
        **SCOPE,
    }
    assert 0 < countdown(copy) <= 2.0
    assert bench.deliver(task, headers=copy.headers) == ("SUCCESS", "done")


def test_each_time_that_a_message_is_put_back_is_counted(bench, task):
    with held(bench, "task"):
        bench.deliver(task, headers={REQUEUES: 4})
    (copy,) = bench.sent()
    assert copy.headers[REQUEUES] == 5


def test_a_count_that_somebody_else_wrote_costs_no_message(bench, task):
    with held(bench, "task"):
        assert bench.deliver(task, headers={REQUEUES: "often"})[0] == "IGNORED"
    (copy,) = bench.sent()
    assert copy.headers[REQUEUES] == 1


def test_a_copy_comes_well_before_the_broker_would_deliver_it_again(bench, task):
    bench.app.conf.broker_transport_options = {"visibility_timeout": 1.0}
    with held(bench, "task"):
        bench.deliver(task)
    (copy,) = bench.sent()
    assert countdown(copy) <= 0.5


def test_a_message_is_put_back_while_the_store_is_down(bench):
    runs = []

    class Down(Engine):
        def record(self, work, **options):
            raise StoreUnavailable(retry_after=0.5)

    with Down(open_store("memory://")) as engine:
        task = bench.task(lambda: runs.append(1), name="task", engine=engine)
        assert bench.deliver(task)[0] == "IGNORED"
    (copy,) = bench.sent()
    assert countdown(copy) <= 0.5
    assert runs == []


@pytest.mark.parametrize("stored", [True, False])
def test_a_result_that_the_store_was_not_told_of_is_given_with_a_warning(bench, caplog, stored):
    class Deaf(Engine):
        def record(self, work, **options):
            return replace(super().record(work, **options), stored=stored)

    with Deaf(open_store("memory://")) as engine:
        task = bench.task(lambda: "done", name="task", engine=engine)
        assert bench.deliver(task) == ("SUCCESS", "done")
    assert [line.levelname for line in caplog.records if line.name == "sameas.tasks"] == ([] if stored else ["WARNING"])


def test_work_whose_outcome_is_unknown_is_a_failure_and_is_not_repeated(bench):
    class Deaf(Engine):
        def record(self, work, **options):
            super().record(work, **options)
            raise OutcomeUnknown

    with Deaf(open_store("memory://")) as engine:
        state, error = bench.deliver(bench.task(lambda: "done", name="task", engine=engine))
    assert (state, type(error), bench.sent()) == ("FAILURE", OutcomeUnknown, [])


@pytest.mark.parametrize("key_by", ["task_id", "content"])
def test_a_task_whose_result_the_store_was_never_told_of_fails_with_it_and_is_not_sent_again(bench, caplog, key_by):
    runs = []

    class Down(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            raise StoreUnavailable

    with Engine(Store(Down()), policy=Policy(lease=0.05)) as engine:
        task = bench.task(lambda: runs.append(1) or "done", name="task", engine=engine, key_by=key_by)
        state, error = bench.deliver(task, retries=0)
    assert (state, type(error), error.result) == ("FAILURE", OutcomeUnknown, "done")
    assert (runs, bench.sent()) == ([1], [])
    assert [line.levelname for line in caplog.records if line.name == "sameas.tasks"] == ["ERROR"]


def test_lines_in_the_log_name_the_task_and_its_trace_and_no_key_or_argument(bench, caplog):
    caplog.set_level("INFO", "sameas.tasks")
    pay = bench.task(lambda card: card, name="pay", key_by="client")
    pay.apply_async(("4111-canary",), idempotency_key="key-canary")
    (message,) = bench.sent()
    for _ in range(2):
        bench.deliver(pay, "4111-canary", headers=message.headers)
    (line,) = (line for line in caplog.records if line.name == "sameas.tasks")
    assert message.headers["id"] in line.getMessage()
    assert f"trace_id={line.trace_id} invocation_id={line.invocation_id}" in line.getMessage()
    assert "canary" not in line.getMessage() + repr(vars(line))


def test_a_message_that_cannot_be_put_back_is_left_with_the_broker(bench, task, monkeypatch):
    def refuse(*args, **options):
        raise ConnectionError("no broker")

    monkeypatch.setattr(type(bench.app.tasks["task"]), "apply_async", refuse)
    with held(bench, "task"):
        state, ending = bench.deliver(task)
    assert state == "REJECTED"
    assert isinstance(ending, Reject)
    assert ending.requeue


def test_a_worker_that_lost_its_claim_puts_the_message_back(bench):
    @bench.task(name="slow")
    def slow():
        ENGINES.of(bench.app).forget("slow", "one")
        return "late"

    assert bench.deliver(slow)[0] == "IGNORED"
    assert len(bench.sent()) == 1


@pytest.mark.parametrize("error", [InProgress, Superseded, StoreUnavailable])
def test_the_same_error_from_inside_the_task_is_the_tasks_own(bench, error):
    @bench.task(name="task")
    def task():
        raise error

    state, raised = bench.deliver(task)
    assert (state, type(raised)) == ("FAILURE", error)
    assert bench.sent() == []


def test_an_eager_task_cannot_be_put_back_and_says_so(bench, task):
    with held(bench, "task"), pytest.raises(InProgress):
        task.apply(task_id="one", throw=True)
    assert bench.sent() == []


def test_a_second_message_is_dropped_where_the_task_says_so(bench):
    task = bench.task(lambda: "done", name="task", on_busy="drop")
    with held(bench, "task"):
        state, ending = bench.deliver(task)
    assert (state, type(ending), bench.sent()) == ("IGNORED", Ignore, [])


@pytest.mark.parametrize(
    "message",
    [{"redelivered": True}, {"retries": 1}, {"replaced_task_nesting": 1}, {"headers": {REQUEUES: 1}}],
    ids=["redelivered", "retry", "replacement", "put back before"],
)
def test_what_may_be_the_last_message_is_never_dropped(bench, message):
    task = bench.task(lambda: "done", name="task", on_busy="drop", wait_for=0.01)
    with held(bench, "task"):
        assert bench.deliver(task, **message)[0] == "IGNORED"
    assert len(bench.sent()) == 1


@pytest.mark.parametrize("message", [{"retries": 1}, {"replaced_task_nesting": 1}], ids=["retry", "replacement"])
@pytest.mark.parametrize("on_busy", ["requeue", "drop"])
def test_a_message_that_overtakes_the_end_of_its_sender_waits_for_it(bench, message, on_busy):
    task = bench.task(lambda: "done", name="task", on_busy=on_busy, wait_for=20.0)
    bench.app.conf.sameas_policy = Policy()
    answers = []
    with held(bench, "task"):
        successor = Thread(target=lambda: answers.append(bench.deliver(task, **message)))
        successor.start()
        successor.join(0.05)
        assert answers == []
    successor.join()
    assert (answers, bench.sent()) == ([("SUCCESS", "done")], [])


def test_a_duplicate_that_waits_shares_the_answer(bench):
    begun, go_on = Event(), Event()
    runs, answers = [], []

    @bench.task(name="task", on_busy="wait", wait_for=20.0)
    def task():
        runs.append(1)
        begun.set()
        go_on.wait()
        return "done"

    workers = [Thread(target=lambda: answers.append(bench.deliver(task))) for _ in range(2)]
    workers[0].start()
    begun.wait()
    workers[1].start()
    workers[1].join(0.05)
    go_on.set()
    for worker in workers:
        worker.join()
    assert (runs, answers) == ([1], [("SUCCESS", "done")] * 2)


def test_one_that_has_waited_long_enough_is_put_back(bench):
    task = bench.task(lambda: "done", name="task", on_busy="wait", wait_for=0.01)
    with held(bench, "task"):
        assert bench.deliver(task)[0] == "IGNORED"
    assert len(bench.sent()) == 1


def test_waiting_leaves_most_of_the_time_limit_for_the_work(bench):
    task = bench.task(lambda: "done", name="task", on_busy="wait", wait_for=1_000.0, soft_time_limit=0.1)
    with held(bench, "task"):
        assert bench.deliver(task, timelimit=[1_000.0, None])[0] == "IGNORED"


def ending_in(predicate):
    def ends(self):
        raise self.retry(countdown=9) if predicate is None else predicate

    return ends


@pytest.mark.parametrize(
    ("predicate", "state"), [(None, "RETRY"), (Ignore(), "IGNORED"), (Reject("no", requeue=True), "REJECTED")]
)
def test_celerys_own_endings_are_passed_on_and_never_kept(bench, predicate, state):
    bench.app.conf.sameas_policy = Policy(keep_errors=(Exception,))
    task = bench.task(ending_in(predicate), name="task", bind=True)
    for _ in range(2):
        assert bench.deliver(task)[0] == state
    assert ENGINES.of(bench.app).read("task", "one") is None


def test_a_retry_is_sent_with_the_scope_of_its_message(bench):
    task = bench.task(ending_in(None), name="task", bind=True)
    headers = {TASK_HEADER: {**SCOPE[TASK_HEADER], "traceparent": f"00-{'a1' * 16}-{'b2' * 8}-01"}}
    bench.deliver(task, headers=headers)
    (retry,) = bench.sent()
    assert retry.headers["retries"] == 1
    assert retry.headers[TASK_HEADER] == headers[TASK_HEADER]


def test_the_lease_of_the_task_is_that_of_its_claim(bench):
    task = bench.task(lambda: ENGINES.of(bench.app).read("task", "one").lease_until, name="task", lease=5.0)
    _, lease_until = bench.deliver(task)
    record = ENGINES.of(bench.app).read("task", "one")
    assert 4_000_000 < lease_until - record.created_at <= 5_000_000


def test_the_retention_of_the_task_is_that_of_its_record(bench):
    task = bench.task(lambda: None, name="task", lease=5.0, retention=10.0)
    bench.deliver(task)
    record = ENGINES.of(bench.app).read("task", "one")
    assert record.expires_at - record.completed_at == 10_000_000


def test_a_record_says_which_task_made_it_and_in_which_trace(bench):
    task = bench.task(lambda self: self.scope.trace_id, name="task", bind=True)
    _, trace_id = bench.deliver(task)
    audit = ENGINES.of(bench.app).read("task", "one").about.audit
    assert (audit["task"], audit["task_id"], audit["trace_id"]) == ("task", "one", trace_id)
    assert audit["last_hop_service_id"] == "unit"
