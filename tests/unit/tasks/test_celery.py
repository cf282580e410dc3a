"""Tasks as people write them: keys, results, eager mode, direct calls, options that are refused."""

from dataclasses import dataclass

import pytest
from celery import Celery, Task

from sameas import Engine, KeyReused, Policy, ResultNotKept, StoredFailure, current_context, open_store
from sameas.identity.canonical import compile_exclusions
from sameas.identity.key import content_key
from sameas.identity.scope import ScopeError
from sameas.tasks.celery import ENGINES, IdempotentTask, idempotent_task


def test_a_second_delivery_returns_the_first_result_and_does_nothing(bench, caplog):
    runs = []

    @bench.task
    def charge(amount):
        runs.append(amount)
        return {"charged": amount}

    caplog.set_level("INFO", "sameas.tasks")
    assert bench.deliver(charge, 5) == bench.deliver(charge, 5) == ("SUCCESS", {"charged": 5})
    assert runs == [5]
    (line,) = caplog.records
    assert "replay=true" in line.getMessage()
    assert line.replay is True


def test_another_task_id_is_another_task(bench):
    runs = []
    charge = bench.task(lambda amount: runs.append(amount), name="charge")
    bench.deliver(charge, 5, task_id="one")
    bench.deliver(charge, 5, task_id="two")
    assert runs == [5, 5]


def test_the_name_of_the_task_is_its_scope_where_none_is_given(bench):
    charge = bench.task(lambda: current_context().identity.scope, name="shop.charge")
    named = bench.task(lambda: current_context().identity.scope, name="shop.pay", scope_name="pay")
    assert bench.deliver(charge) == ("SUCCESS", "shop.charge")
    assert bench.deliver(named) == ("SUCCESS", "pay")


def test_a_task_with_the_base_class_is_the_same_as_one_with_the_decorator(bench):
    runs = []

    @bench.app.task(base=IdempotentTask, scope_name="start_ingestion", shared=False)
    def start():
        runs.append(1)

    bench.deliver(start)
    bench.deliver(start)
    assert runs == [1]


def test_a_class_of_its_own_runs_once(bench):
    runs = []

    class Charge(IdempotentTask):
        name = "charge"

        def run(self, amount):
            runs.append(self.scope.idempotency_scope_name)
            return amount

    task = bench.app.register_task(Charge())
    assert bench.deliver(task, 3) == bench.deliver(task, 3) == ("SUCCESS", 3)
    assert runs == ["charge"]


def test_the_content_is_the_key_less_what_is_excluded(bench):
    runs = []

    @bench.task(name="order", key_by="content", exclude_fields={"sent_at"})
    def order(order):
        runs.append(order)
        return order["number"]

    bench.deliver(order, {"number": 1, "sent_at": 1}, task_id="one")
    bench.deliver(order, {"sent_at": 2, "number": 1}, task_id="two")
    bench.deliver(order, {"number": 2, "sent_at": 1}, task_id="three")
    assert len(runs) == 2
    # A client that names the key of a content does not get at its record.
    engine, key = ENGINES.of(bench.app), content_key({"number": 1})
    assert engine.read("order", key, namespace="content") is not None
    assert engine.read("order", key, namespace="client") is None


def test_arguments_are_the_same_by_place_and_by_name(bench):
    runs = []

    @bench.task(bind=True, key_by="content")
    def move(self, source, target="here"):
        runs.append(source)

    bench.deliver(move, "there", task_id="one")
    bench.deliver(move, task_id="two", kwargs={"target": "here", "source": "there"})
    assert runs == ["there"]


def test_a_key_of_the_client_stands_for_one_request(bench):
    pay = bench.task(lambda amount: amount, name="pay", key_by="client")
    for amount in (5, 5, 6):
        pay.apply_async((amount,), idempotency_key="order-1")
    first, again, other = (
        bench.deliver(pay, *message.payload[0], task_id=message.headers["id"], headers=message.headers)
        for message in bench.sent()
    )
    assert first == again == ("SUCCESS", 5)
    assert isinstance(other[1], KeyReused)
    assert pay.apply((5,), idempotency_key="order-1").get() == 5


def test_a_task_whose_client_sent_no_key_is_refused(bench):
    pay = bench.task(lambda amount: amount, name="pay", key_by="client")
    state, error = bench.deliver(pay, 5)
    assert state == "FAILURE"
    assert "idempotency_key=" in str(error)


def test_a_declared_class_is_rebuilt_for_the_replay(bench):
    @dataclass
    class Receipt:
        number: int

    def charge() -> Receipt:
        return Receipt(1)

    charge.__annotations__["return"] = Receipt
    task = bench.task(charge, name="charge")
    assert bench.deliver(task) == bench.deliver(task) == ("SUCCESS", Receipt(1))


def test_what_cannot_be_kept_is_not_run_again_and_a_redelivery_is_told_so(bench):
    runs = []
    thing = bench.task(lambda: runs.append(1) or object(), name="thing")
    assert bench.deliver(thing)[0] == "SUCCESS"
    for _ in range(2):
        state, error = bench.deliver(thing)
        assert (state, type(error)) == ("FAILURE", ResultNotKept)
    assert runs == [1]
    assert bench.sent() == []
    assert bench.deliver(bench.task(lambda: object(), name="nothing", keep_result=False)) == ("SUCCESS", None)


def test_a_failure_is_given_back_and_tried_again(bench):
    runs = []

    @bench.task
    def fail():
        runs.append(1)
        raise LookupError("gone")

    assert [bench.deliver(fail)[0] for _ in range(2)] == ["FAILURE", "FAILURE"]
    assert len(runs) == 2


def test_a_failure_that_the_policy_keeps_is_told_again(bench, caplog):
    caplog.set_level("INFO", "sameas.tasks")
    runs = []
    bench.app.conf.sameas_policies = {"fail": Policy(keep_errors=(LookupError,))}

    @bench.task(scope_name="fail")
    def fail():
        runs.append(1)
        raise LookupError("gone")

    bench.deliver(fail)
    state, error = bench.deliver(fail)
    assert (state, runs) == ("FAILURE", [1])
    assert isinstance(error, StoredFailure)
    assert [line.replay for line in caplog.records if line.name == "sameas.tasks"] == [True]


def test_an_eager_task_runs_once_too(bench):
    runs = []
    bench.app.conf.task_always_eager = True

    @bench.task(bind=True, max_retries=2)
    def flaky(self):
        runs.append(self.request.retries)
        if self.request.retries < 2:
            raise self.retry(countdown=0)
        return "done"

    assert flaky.apply_async(task_id="one").get() == "done"
    assert flaky.apply_async(task_id="one").get() == "done"
    assert flaky.apply(task_id="one").get() == "done"
    assert runs == [0, 1, 2]


def test_a_task_that_is_called_is_a_function(bench):
    runs = []

    @bench.task(bind=True)
    def count(self, down):
        runs.append(down)
        return [down, *count(down - 1)] if down else []

    assert count(1) == count(1) == [1]
    # Inside a delivery as well: a task that calls itself does not wait for itself.
    assert bench.deliver(count, 2) == ("SUCCESS", [2, 1])
    assert runs == [1, 0, 1, 0, 2, 1, 0]


def test_a_task_that_was_called_says_that_it_has_no_scope(bench):
    task = bench.task(lambda self: self.audit_meta, name="task", bind=True)
    with pytest.raises(LookupError, match="apply"):
        task()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key_by": "args"}, "task_id, client, content"),
        ({"on_busy": "refuse"}, "requeue, wait, drop"),
        ({"requeue_after": 0}, "requeue_after"),
        ({"exclude_fields": {"a b["}}, "not a path"),
    ],
)
def test_options_that_mean_nothing_are_refused_when_the_task_is_made(bench, options, message):
    with pytest.raises(ValueError, match=message):
        bench.task(lambda: None, name="task", **options).run()


def test_a_url_is_no_name_of_a_scope(bench):
    with pytest.raises(ScopeError, match="stable name"):
        bench.task(lambda: None, name="task", scope_name="/api/tasks").run()


def test_another_base_is_refused():
    with pytest.raises(TypeError, match="IdempotentTask"):
        idempotent_task(base=Task)


def test_what_celery_would_run_as_a_plain_function_is_refused_with_what_to_send(bench):
    charge = bench.task(lambda amount: amount, name="charge")
    for send in (charge.map, charge.starmap, lambda them: charge.chunks(them, 2)):
        with pytest.raises(TypeError, match=r"would run charge as a plain function.*send a group"):
            send([1, 2])


def test_a_shared_task_belongs_to_whatever_app_there_is():
    @idempotent_task(name="sameas-shared", scope_name="shared", key_by="content")
    def shared(number):
        return current_context().identity.scope

    app = Celery("shared", broker="memory://", backend="cache+memory://", set_as_current=False)
    with Engine(open_store("memory://")) as engine:
        app.conf.update(sameas_engine=engine, task_always_eager=True)
        assert app.tasks["sameas-shared"].delay(1).get() == "shared"
    assert app.tasks["sameas-shared"].exclude_fields == compile_exclusions(())
