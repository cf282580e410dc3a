"""The engine for threads: one run per identity, and everybody gets its result."""

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from sameas import (
    Engine,
    InProgress,
    KeyReused,
    OutcomeUnknown,
    Policy,
    StoredFailure,
    StoreUnavailable,
    Superseded,
    current_context,
    open_store,
)
from sameas.identity.errors import NotCanonical
from sameas.once.errors import BatchFailed, Reentered, TooManyWaiters
from sameas.once.record import State
from sameas.once.store import Query, Store
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock
from tests.unit.once.renewals import Renewals
from tests.unit.once.waits import Waits


class Counted:
    """Work that counts its runs."""

    def __init__(self, result="done"):
        self.result = result
        self.runs = 0
        self.contexts = []

    def __call__(self, ctx):
        self.runs += 1
        self.contexts.append(ctx)
        return self.result


def elsewhere(function, *args, **kwargs):
    """A call from a thread of its own, outside the work that is going on here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *args, **kwargs).result()


@pytest.fixture
def backend():
    return MemoryBackend()


@pytest.fixture
def engine(backend):
    return Engine(Store(backend))


def test_the_first_call_runs_and_the_second_is_a_replay(engine):
    work = Counted({"charged": 5})
    first = engine.record(work, scope="charge", key="order-1", payload={"total": 5})
    second = engine.record(work, scope="charge", key="order-1", payload={"total": 5})
    assert work.runs == 1
    assert first.result == second.result == {"charged": 5}
    assert (first.was_replay, second.was_replay) == (False, True)
    assert (first.key, first.scope, first.tenant, first.attempt) == ("order-1", "charge", "", 1)
    assert first.fence == second.fence
    assert first.completed_at == second.completed_at < second.expires_at
    assert engine.run(work, scope="charge", key="order-1", payload={"total": 5}) == {"charged": 5}


def test_without_a_key_the_content_is_the_key(engine):
    work = Counted()
    engine.run(work, scope="s", payload={"a": 1, "sent_at": 1}, exclude_fields={"sent_at"})
    engine.run(work, scope="s", payload={"sent_at": 2, "a": 1}, exclude_fields={"sent_at"})
    assert work.runs == 1
    engine.run(work, scope="s", payload={"a": 2})
    assert work.runs == 2


def test_tenants_scopes_and_keys_do_not_meet(engine):
    work = Counted()
    for tenant in ("", "t"):
        for scope in ("s", "r"):
            for key in ("a", "b"):
                engine.run(work, scope=scope, key=key, tenant=tenant)
    assert work.runs == 8


def test_the_same_key_for_another_request_is_refused_by_field(engine):
    engine.run(Counted(), scope="s", key="k", payload={"a": 1, "b": 2})
    with pytest.raises(KeyReused, match="b") as refused:
        engine.run(Counted(), scope="s", key="k", payload={"a": 1, "b": 3})
    assert refused.value.fields == ("b",)


def test_a_call_needs_a_scope_and_something_that_says_what_same_means(engine):
    with pytest.raises(ValueError, match="scope"):
        engine.run(Counted(), scope="", key="k")
    with pytest.raises(ValueError, match="key or a payload"):
        engine.run(Counted(), scope="s")
    with pytest.raises(ValueError, match="empty"):
        engine.run(Counted(), scope="s", key="")
    with pytest.raises(NotCanonical, match="a: has type object"):
        engine.run(Counted(), scope="s", payload={"a": object()})


def test_a_payload_of_none_is_a_payload(engine):
    work = Counted()
    engine.run(work, scope="s", payload=None)
    engine.run(work, scope="s", payload=None)
    assert work.runs == 1


def test_the_first_caller_gets_what_every_replay_gets(engine):
    assert type(engine.run(Counted(OrderedDict(a=1)), scope="s", key="k")) is dict
    assert engine.run(Counted(), scope="s", key="k") == {"a": 1}


@pytest.mark.parametrize("result", [None, True, 0, 1.5, "text", "", b"\x00\xff", [], {"a": [1, {"b": None}]}, 2**70])
def test_results_come_back_equal(engine, result):
    assert engine.run(Counted(result), scope="s", key="k") == result
    assert engine.run(Counted("other"), scope="s", key="k") == result


def test_each_caller_has_a_copy_of_its_own(engine):
    first = engine.run(Counted({"a": []}), scope="s", key="k")
    first["a"].append(1)
    assert engine.run(Counted(), scope="s", key="k") == {"a": []}


def test_a_failed_run_is_run_again(engine):
    def fail(ctx):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        engine.run(fail, scope="s", key="k")
    work = Counted()
    engine.run(work, scope="s", key="k")
    assert work.runs == 1


@pytest.mark.parametrize("observers", [[], [lambda: None]], ids=["alone", "observed"])
def test_work_that_asks_an_empty_iterator_raises_what_it_raises_by_itself(backend, observers):
    class Silent:
        def on(self, event):
            pass

    engine = Engine(Store(backend), observers=[Silent() for _ in observers])
    orders = iter([])
    with pytest.raises(StopIteration) as raised:
        engine.run(lambda _: next(orders), scope="s", key="k")
    assert raised.value.__cause__ is None
    # Its claim was given back.
    assert engine.run(lambda _: 1, scope="s", key="k") == 1
    with pytest.raises(BatchFailed) as failed:
        engine.run_many(lambda _, payload: next(iter(payload)), [[], [2]], scope="many")
    assert [type(each) for each in failed.value.results][:1] == [StopIteration]


def test_a_failure_that_the_policy_keeps_is_given_to_later_callers(backend):
    engine = Engine(Store(backend), policies={"s": Policy(keep_errors=(LookupError,))})

    def fail(ctx):
        raise KeyError("gone")

    with pytest.raises(KeyError):
        engine.run(fail, scope="s", key="k")
    with pytest.raises(StoredFailure, match="KeyError: 'gone'") as kept:
        engine.run(Counted(), scope="s", key="k")
    assert (kept.value.type, kept.value.message) == ("KeyError", "'gone'")
    with pytest.raises(KeyError):
        engine.run(fail, scope="other", key="k")
    engine.run(Counted(), scope="other", key="k")


def test_the_context_tells_attempt_fence_and_stable_child_keys(engine):
    contexts = []

    def fail_once(ctx):
        contexts.append(ctx)
        assert current_context() is ctx
        if ctx.attempt == 1 and len(contexts) == 1:
            raise RuntimeError
        return "ok"

    with pytest.raises(RuntimeError):
        engine.run(fail_once, scope="s", key="k")
    engine.run(fail_once, scope="s", key="k")
    first, second = contexts
    assert second.fence > first.fence
    assert first.child_key("stripe") == second.child_key("stripe") != first.child_key("mail")
    assert (first.key, first.lost) == ("k", False)
    with pytest.raises(LookupError):
        current_context()


def test_a_takeover_is_attempt_two(backend):
    engine = Engine(Store(backend), policy=Policy(lease=0.05))
    with pytest.raises(SystemExit):
        engine.run(lambda ctx: (_ for _ in ()).throw(SystemExit), scope="s", key="k")
    work = Counted()
    engine.run(work, scope="s", key="k")
    assert work.contexts[0].attempt == 1, "an interrupted run gives its claim back"


def test_a_handler_that_asks_for_its_own_key_is_told_at_once(engine):
    def again(ctx):
        return engine.run(again, scope="s", key="k")

    with pytest.raises(Reentered):
        engine.run(again, scope="s", key="k")
    assert engine.run(lambda ctx: engine.run(Counted(), scope="s", key="inner"), scope="s", key="k") == "done"
    elsewhere_kept = Engine(Store(MemoryBackend()))
    assert engine.run(lambda ctx: elsewhere_kept.run(Counted(), scope="s", key="l"), scope="s", key="l") == "done"


def test_a_decorated_function_runs_once_per_arguments(engine):
    calls = []

    @engine.once(scope="charge", exclude_fields={"sent_at"})
    def charge(order):
        """Charges."""
        calls.append(order)
        return {"charged": order["total"]}

    assert charge({"total": 5, "sent_at": 1}) == {"charged": 5}
    assert charge.record({"total": 5, "sent_at": 2}).was_replay
    assert charge({"total": 6}) == {"charged": 6}
    assert len(calls) == 2
    assert (charge.__name__, charge.__doc__) == ("charge", "Charges.")


def test_arguments_count_by_name_with_defaults(engine):
    calls = []

    @engine.once(scope="move")
    def move(source, target, *, force=False, **rest):
        calls.append(source)
        return len(calls)

    assert move("a", "b") == move(source="a", target="b", force=False) == 1
    assert move("a", "b", force=True) == 2
    assert move("b", "a") == 3


def test_a_function_of_the_arguments_may_be_the_key_and_the_tenant(engine):
    @engine.once(scope="s", key=lambda order: order["id"], tenant=lambda order: order["shop"])
    def ship(order):
        return order["to"]

    assert ship({"id": "1", "shop": "x", "to": "here"}) == "here"
    with pytest.raises(KeyReused, match="to"):
        ship({"id": "1", "shop": "x", "to": "there"})
    assert ship({"id": "1", "shop": "y", "to": "there"}) == "there"


def test_a_method_says_what_of_its_object_counts(engine):
    class Shop:
        calls = 0

        def __init__(self, name):
            self.name = name

        @engine.once(scope="s", key=lambda self, item: f"{self.name}:{item}")
        def sell(self, item):
            type(self).calls += 1
            return f"{item} from {self.name}"

    assert Shop("a").sell("x") == Shop("a").sell("x") == "x from a"
    assert Shop("b").sell("x") == "x from b"
    assert Shop.calls == 2
    assert Shop("a").sell.record("x").was_replay
    with pytest.raises(TypeError, match="is a method"):

        class Careless:
            @engine.once(scope="s")
            def sell(self, item):
                return item


@dataclass
class Receipt:
    id: str
    total: float


def test_a_declared_dataclass_comes_back_as_one(engine):
    @engine.once(scope="s")
    def charge(order: str) -> Receipt:
        return Receipt(order, 1.5)

    assert charge("a") == charge("a") == Receipt("a", 1.5)
    assert engine.run(Counted(Receipt("b", 2)), scope="t", key="k", result_type=Receipt) == Receipt("b", 2)


def test_async_functions_are_sent_to_the_other_engine(engine):
    with pytest.raises(TypeError, match="AsyncEngine"):

        @engine.once(scope="s")
        async def work():
            pass


def test_callers_of_one_key_share_one_run(engine):
    started, go = threading.Event(), threading.Event()
    runs = []

    def work(ctx):
        runs.append(1)
        started.set()
        go.wait(5)
        return "shared"

    with ThreadPoolExecutor(20) as threads:
        calls = [threads.submit(engine.record, work, scope="s", key="k") for _ in range(20)]
        started.wait(5)
        go.set()
        records = [call.result() for call in calls]
    assert runs == [1]
    assert {record.result for record in records} == {"shared"}
    assert [record.was_replay for record in records].count(False) == 1
    assert len(engine._call_builder.in_flight_calls) == 0


def test_when_the_first_of_twenty_fails_one_second_run_serves_the_rest(engine):
    gate = threading.Barrier(20)
    runs = []

    def work(ctx):
        runs.append(1)
        time.sleep(0.05)
        if len(runs) == 1:
            raise RuntimeError("first")
        return len(runs)

    def call(_):
        gate.wait()
        try:
            return engine.run(work, scope="s", key="k")
        except RuntimeError as error:
            return error

    with ThreadPoolExecutor(20) as threads:
        results = list(threads.map(call, range(20)))
    assert len(runs) == 2
    assert sum(isinstance(result, RuntimeError) for result in results) == 1
    assert results.count(2) == 19


def test_a_busy_key_is_refused_at_once_where_the_caller_says_so(engine, backend):
    def work(ctx):
        with pytest.raises(InProgress) as refused:
            elsewhere(Engine(Store(backend)).run, Counted(), scope="s", key="k", on_busy="refuse")
        assert 0 < refused.value.retry_after <= 30
        with pytest.raises(InProgress):
            elsewhere(engine.run, Counted(), scope="s", key="k", on_busy="refuse")
        return "done"

    assert engine.run(work, scope="s", key="k") == "done"


def test_waiting_is_bounded(engine, backend):
    def work(ctx):
        other = Engine(Store(backend))
        with pytest.raises(InProgress):
            elsewhere(other.run, Counted(), scope="s", key="k", wait_for=0.02)
        with pytest.raises(InProgress):
            elsewhere(engine.run, Counted(), scope="s", key="k", wait_for=0.02)

    engine.run(work, scope="s", key="k")


def test_waiters_on_a_key_are_bounded(backend):
    engine = Engine(Store(backend), policy=Policy(max_waiters=2))
    started, go = threading.Event(), threading.Event()

    def work(ctx):
        started.set()
        go.wait(5)
        return "ok"

    with ThreadPoolExecutor(8) as threads:
        leader = threads.submit(engine.run, work, scope="s", key="k")
        started.wait(5)
        waiters = [threads.submit(engine.run, work, scope="s", key="k") for _ in range(2)]
        while (
            sum(
                len(in_flight.followers) for in_flight in engine._call_builder.in_flight_calls._in_flight_calls.values()
            )
            < 2
        ):
            time.sleep(0.001)
        with pytest.raises(TooManyWaiters):
            engine.run(work, scope="s", key="k")
        go.set()
        assert [call.result() for call in [leader, *waiters]] == ["ok"] * 3


def test_another_body_under_a_key_in_progress_never_runs(engine):
    started, go = threading.Event(), threading.Event()

    def work(ctx):
        started.set()
        go.wait(5)
        return "ok"

    other = Counted()
    with ThreadPoolExecutor(1) as thread:
        leader = thread.submit(engine.run, work, scope="s", key="k", payload={"a": 1})
        started.wait(5)
        with pytest.raises(KeyReused, match="a"):
            engine.run(other, scope="s", key="k", payload={"a": 2})
        go.set()
        assert leader.result() == "ok"
    assert other.runs == 0


def test_a_waiter_in_another_engine_is_woken_by_the_result(backend):
    first, second = Engine(Store(backend)), Engine(Store(backend))
    started, go = threading.Event(), threading.Event()

    def work(ctx):
        started.set()
        go.wait(5)
        return "ok"

    with ThreadPoolExecutor(2) as threads:
        leader = threads.submit(first.record, work, scope="s", key="k")
        started.wait(5)
        waiter = threads.submit(second.record, Counted("mine"), scope="s", key="k")
        while not backend._listeners:
            time.sleep(0.001)
        go.set()
        assert leader.result().result == waiter.result().result == "ok"
        assert waiter.result().was_replay
    assert backend._listeners == {}


def test_a_dead_holder_is_replaced_after_its_lease(backend):
    dead = Engine(Store(backend))
    call = dead._call_builder.call(len, scope="s", key="k", lease=0.1)
    dead.store.claim(call.request)
    work = Counted()
    successor = Engine(Store(backend))
    waits = Waits(successor)
    record = successor.record(work, scope="s", key="k")
    assert record.attempt == work.contexts[0].attempt == 2
    assert 0 < waits.seconds < 0.1 + 0.25


def test_a_handler_that_outlives_its_lease_keeps_it():
    backend = Renewals()
    engine = Engine(Store(backend), policy=Policy(lease=0.06))
    other = Counted("stolen")

    def slow(ctx):
        for _ in range(6):
            backend.pass_time(0.04)
            with pytest.raises(InProgress):
                elsewhere(Engine(Store(backend)).run, other, scope="s", key="k", on_busy="refuse")
        assert not ctx.lost
        return "kept"

    assert engine.record(slow, scope="s", key="k").result == "kept"
    assert other.runs == 0


def test_a_replaced_worker_gets_the_accepted_result_and_knows_it_was_replaced(backend):
    engine = Engine(Store(backend), policy=Policy(lease=0.05))
    seen = []

    def sleeps_through_its_lease(ctx):
        engine._heartbeat.remove(ctx)
        time.sleep(0.08)
        assert elsewhere(Engine(Store(backend)).run, Counted("accepted"), scope="s", key="k") == "accepted"
        engine._heartbeat.add(ctx, Policy(lease=0.003))
        while not ctx.lost:
            time.sleep(0.001)
        seen.append(ctx.lost)
        return "late"

    record = engine.record(sleeps_through_its_lease, scope="s", key="k")
    assert (record.result, record.was_replay) == ("accepted", True)
    assert seen == [True]


def test_a_replaced_worker_with_nothing_accepted_is_told_so(engine):
    def forgotten(ctx):
        engine.forget("s", "k")
        return "late"

    with pytest.raises(Superseded):
        engine.run(forgotten, scope="s", key="k")


def test_an_interrupted_caller_leaves_no_claim_behind(engine):
    def interrupted(ctx):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.run(interrupted, scope="s", key="k")
    assert engine.read("s", "k") is None


@pytest.mark.parametrize("applied", [False, True])
def test_an_interruption_during_the_claim_leaves_no_claim_behind(backend, applied):
    class Interrupting(type(backend)):
        armed = True

        def perform(self, command):
            if self.armed and "claim" in repr(command):
                self.armed = False
                if applied:
                    super().perform(command)
                raise KeyboardInterrupt
            return super().perform(command)

    engine = Engine(Store(Interrupting()))
    with pytest.raises(KeyboardInterrupt):
        engine.run(Counted(), scope="s", key="k")
    assert engine.read("s", "k") is None
    assert engine.run(Counted(), scope="s", key="k") == "done"


def test_an_interruption_after_the_work_still_hands_the_result_in(backend):
    class Interrupting(type(backend)):
        armed = True

        def perform(self, command):
            if self.armed and "complete" in repr(command):
                self.armed = False
                raise KeyboardInterrupt
            return super().perform(command)

    engine = Engine(Store(Interrupting()))
    work = Counted()
    with pytest.raises(KeyboardInterrupt):
        engine.run(work, scope="s", key="k")
    assert engine.record(work, scope="s", key="k").was_replay
    assert work.runs == 1


class Flaky(MemoryBackend):
    """A store that does not answer for the next few commands of a kind."""

    def __init__(self):
        super().__init__()
        self.refuse = {}

    def perform(self, command):
        for word, left in self.refuse.items():
            if left and word in repr(command):
                self.refuse[word] -= 1
                raise StoreUnavailable
        return super().perform(command)


def test_a_store_that_is_down_at_the_claim_means_nothing_runs():
    backend = Flaky()
    backend.refuse = {"claim": 1}
    work = Counted()
    engine = Engine(Store(backend))
    with pytest.raises(StoreUnavailable):
        engine.run(work, scope="s", key="k")
    assert work.runs == 0
    assert len(engine._call_builder.in_flight_calls) == 0
    assert engine.run(work, scope="s", key="k") == "done"


def test_a_store_that_is_down_for_a_moment_at_the_end_still_gets_the_result():
    backend = Flaky()
    backend.refuse = {"complete": 2}
    engine = Engine(Store(backend))
    assert engine.record(Counted(), scope="s", key="k").stored
    assert engine.record(Counted(), scope="s", key="k").was_replay


def test_a_store_that_stays_down_beyond_the_lease_means_the_outcome_is_unknown():
    backend = Flaky()
    backend.refuse = {"complete": 1000, "renew": 1000}
    engine = Engine(Store(backend), policy=Policy(lease=0.02, hand_in_for=0.2))
    with pytest.raises(OutcomeUnknown) as unknown:
        engine.run(Counted("maybe"), scope="s", key="k")
    assert unknown.value.result == "maybe"


def test_a_failure_whose_claim_cannot_be_given_back_says_so():
    backend = Flaky()
    backend.refuse = {"release": 1}

    def fail(ctx):
        raise RuntimeError("the cause")

    with pytest.raises(RuntimeError, match="the cause") as failed:
        Engine(Store(backend)).run(fail, scope="s", key="k")
    assert "could not give the claim back" in failed.value.__notes__[0]


def test_many_payloads_are_claimed_in_one_go(backend):
    engine = Engine(Store(backend))
    rounds = []
    perform_many = backend.perform_many
    backend.perform_many = lambda commands: rounds.append(len(commands)) or perform_many(commands)
    runs = []

    def work(ctx, payload):
        runs.append(payload)
        return payload * 2

    engine.run(lambda ctx: 4, scope="s", payload=2)
    assert engine.run_many(work, [1, 2, 3, 1], scope="s") == [2, 4, 6, 2]
    assert runs == [1, 3]
    assert rounds == [3]
    assert engine.run_many(work, [], scope="s") == []
    records = engine.record_many(work, [5, 6], keys=["a", "b"], scope="s")
    assert [record.key for record in records] == ["a", "b"]
    with pytest.raises(ValueError, match="as many keys"):
        engine.run_many(work, [1], keys=["a", "b"], scope="s")
    assert len(engine._call_builder.in_flight_calls) == 0


def test_one_failure_in_many_does_not_hurt_the_others(engine):
    def work(ctx, payload):
        if payload == 2:
            raise RuntimeError("two")
        return payload

    with pytest.raises(BatchFailed, match="1 of 3") as failed:
        engine.run_many(work, [1, 2, 3], scope="s")
    first, second, third = failed.value.results
    assert (first.result, third.result) == (1, 3)
    assert isinstance(second, RuntimeError)


def test_an_interrupted_batch_leaves_no_claims_behind(engine):
    def work(ctx, payload):
        if payload == 2:
            raise KeyboardInterrupt
        return payload

    with pytest.raises(KeyboardInterrupt):
        engine.run_many(work, [1, 2, 3, 4], scope="s")
    assert [record.state for record in engine.find(Query(scope="s")).records] == [State.DONE]
    assert len(engine._call_builder.in_flight_calls) == 0
    assert engine.run_many(lambda ctx, payload: payload, [1, 2, 3, 4], scope="s") == [1, 2, 3, 4]


def test_leases_of_a_batch_are_kept_while_they_wait_for_their_turn():
    backend = Renewals()
    engine = Engine(Store(backend), policy=Policy(lease=0.06))
    thief = Counted("stolen")

    def work(ctx, payload):
        backend.pass_time(0.04)
        with pytest.raises(InProgress):
            elsewhere(Engine(Store(backend)).run, thief, scope="s", payload=5, on_busy="refuse")
        return payload

    assert engine.run_many(work, [1, 2, 3, 4, 5], scope="s") == [1, 2, 3, 4, 5]
    assert thief.runs == 0


def test_forgetting_by_key_tag_scope_and_tenant(engine):
    work = Counted()
    engine.run(work, scope="a", key="k", tenant="t", tags=["red"])
    engine.run(work, scope="a", key="l", tenant="t", tags=["red", "blue"])
    engine.run(work, scope="b", key="k", tenant="u")
    assert engine.forget("a", "k", tenant="t")
    assert not engine.forget("a", "k", tenant="t")
    assert engine.forget_where(tag="blue") == 1
    assert engine.forget_where(scope="b") == 1
    assert engine.forget_where(tenant="t") == 0
    with pytest.raises(ValueError, match="say what to forget"):
        engine.forget_where()


def test_expired_records_are_pruned_in_batches():
    clock = MovableClock()
    engine = Engine(Store(MemoryBackend(clock)))
    for number in range(25):
        engine.run(Counted(), scope="s", key=str(number), retention=60)
    engine.run(Counted(), scope="s", key="stays")
    clock.advance(61)
    assert engine.prune(batch=10) == 25
    assert len(engine.find(Query()).records) == 1


def test_retention_none_keeps_a_result_until_it_is_forgotten(engine):
    engine.run(Counted(), scope="s", key="k", retention=None)
    assert engine.read("s", "k").expires_at > 4_000_000_000_000_000


def test_an_engine_and_its_store_close_together(tmp_path):
    with Engine(open_store(f"sqlite:///{tmp_path}/a.db")) as engine:
        engine.run(Counted(), scope="s", key="k")
    with pytest.raises(StoreUnavailable, match="closed"):
        engine.run(Counted(), scope="s", key="k")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lease": 0}, "lease"),
        ({"lease": float("nan")}, "lease"),
        ({"lease": 10, "retention": 5}, "retention"),
        ({"on_busy": "maybe"}, "on_busy"),
        ({"wait_for": -1}, "wait_for"),
        ({"max_waiters": 0}, "max_waiters"),
    ],
)
def test_a_policy_is_checked_when_it_is_made(wrong, said):
    with pytest.raises(ValueError, match=said):
        Policy(**wrong)


@pytest.mark.parametrize("url", ["mongodb://x", "nothing", "sqlite://", "sqlite:///:memory:"])
def test_a_url_that_is_no_store_is_refused(url):
    with pytest.raises(ValueError, match="use"):
        open_store(url)
