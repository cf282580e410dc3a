"""A rolling upgrade: what programs of before did or do under a payload's former key is never done again.

`Before` is such a program.
"""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import permutations
from threading import Event

import pytest

from sameas import (
    AsyncEngine,
    Engine,
    IdempotentProcessor,
    InProgress,
    KeyReused,
    Policy,
    StoredFailure,
    current_context,
    open_store,
)
from sameas.identity.key import content_key, former_fingerprint
from sameas.once.record import State
from sameas.once.store import AsyncStore, Query, Store
from sameas.stores.memory import MemoryBackend
from sameas.testing import MovableClock
from tests.unit.once.before import Before, before


@dataclass
class Charge:
    amount: int


@dataclass
class Refund:
    amount: int


class Counting(MemoryBackend):
    """Counts what it is asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked = 0

    def perform(self, command):
        self.asked += 1
        return super().perform(command)


class Runs:
    """Work that counts its runs."""

    def __init__(self, result="charged"):
        self.result = result
        self.contexts = []

    def __call__(self, context):
        self.contexts.append(context)
        return self.result

    def __len__(self):
        return len(self.contexts)


@pytest.fixture
def clock():
    return MovableClock()


@pytest.fixture
def backend(clock):
    return Counting(clock=clock)


@pytest.fixture
def engine(backend):
    return Engine(Store(backend), policy=Policy(keep_errors=(LookupError,)))


def held(engine):
    return [record.identity.key for record in engine.find(Query(state=State.HELD)).records]


def no_work(context):
    raise AssertionError("the work was run again")


@pytest.fixture
def old(backend):
    return Before(backend, policy=Policy(keep_errors=(LookupError,)))


PAYLOADS = [Charge(1), {"price": Decimal("9.99")}, [b"abc"], {"on": date(2026, 1, 2)}]


@pytest.mark.parametrize("payload", PAYLOADS, ids=repr)
def test_what_was_done_before_is_found(engine, payload, old):
    first = old.record(Runs("charged"), payload)
    found = engine.record(no_work, scope="pay", payload=payload)
    assert (found.result, found.was_replay, found.attempt) == ("charged", True, 1)
    assert found.key == content_key(payload)
    assert (found.completed_at, found.expires_at) == (first.completed_at, first.expires_at)
    assert engine.run(no_work, scope="pay", payload=payload) == "charged"
    assert not held(engine)


@pytest.mark.parametrize("payload", PAYLOADS, ids=repr)
@pytest.mark.anyio
async def test_what_was_done_before_is_found_by_tasks(backend, payload, old):
    engine = AsyncEngine(AsyncStore(backend))
    old.record(Runs("charged"), payload)
    found = await engine.record(no_work, scope="pay", payload=payload)
    assert (found.result, found.was_replay) == ("charged", True)
    assert await engine.run_many(lambda *_: no_work(None), [payload], scope="pay") == ["charged"]


def test_a_batch_a_processor_and_begin_find_it_too(engine, backend, old):
    old.run(Runs("charged"), Charge(1))
    assert engine.run_many(lambda *_: no_work(None), [Charge(1)], scope="pay") == ["charged"]
    assert IdempotentProcessor(no_work, store=Store(backend), scope="pay").process(Charge(1)).was_replay
    assert engine.begin(scope="pay", payload=Charge(1)).result == "charged"


@pytest.mark.parametrize(
    "payloads",
    [
        *permutations([Charge(1), Refund(1), {"amount": 1}]),
        (b"abc", "YWJj"),
        ("YWJj", b"abc"),
        (date(2026, 1, 2), "2026-01-02"),
    ],
    ids=repr,
)
def test_different_work_that_shared_a_former_key_is_told_apart(engine, payloads):
    works = [Runs(number) for number, _ in enumerate(payloads)]
    for _ in range(2):
        for number, payload in enumerate(payloads):
            assert engine.run(works[number], scope="pay", payload=payload) == number
    assert [len(work) for work in works] == [1] * len(payloads)
    assert len({work.contexts[0].child_key("mail") for work in works}) == len(payloads)
    assert not [key for key in held(engine) if key in {content_key(payload) for payload in payloads}]


def test_different_work_that_shared_a_former_key_is_done_side_by_side(engine):
    def charge(context):
        with ThreadPoolExecutor(1) as thread:
            return [thread.submit(engine.run, Runs(n), scope="pay", payload=n).result() for n in ("YWJj",)]

    assert engine.run(charge, scope="pay", payload=b"abc") == ["YWJj"]
    assert engine.run(no_work, scope="pay", payload=b"abc") == ["YWJj"]
    assert engine.run(no_work, scope="pay", payload="YWJj") == "YWJj"


def test_a_program_of_before_is_refused_what_this_one_has_done_or_does(engine, old):
    def charge(context):
        with ThreadPoolExecutor(1) as thread, pytest.raises(KeyReused):
            thread.submit(old.run, no_work, Charge(1)).result()
        return "charged"

    assert engine.run(charge, scope="pay", payload=Charge(1)) == "charged"
    with pytest.raises(KeyReused):
        old.run(no_work, Charge(1))


def test_what_a_program_of_before_is_at_is_waited_for_and_shared(engine, backend, old):
    working, may_end = Event(), Event()

    def charge(context):
        working.set()
        assert may_end.wait(20)
        return "charged"

    with ThreadPoolExecutor(2) as threads:
        ours = threads.submit(old.record, charge, Charge(1))
        assert working.wait(20)
        with pytest.raises(InProgress):
            engine.run(no_work, scope="pay", payload=Charge(1), on_busy="refuse")
        with pytest.raises(InProgress):
            engine.begin(scope="pay", payload=Charge(1), on_busy="refuse")
        waiting = threads.submit(engine.record, no_work, scope="pay", payload=Charge(1))
        may_end.set()
        assert waiting.result().result == ours.result().result == "charged"
        assert waiting.result().was_replay
    assert not held(engine)


def test_what_a_program_of_before_died_at_is_taken_over_under_its_child_keys(engine, clock, old):
    dead = old.engine._call_builder.call(no_work, **before(Charge(1)))
    dead.claimed_from = 0
    context = dead.acquired(old.engine.store.claim(dead.request))
    clock.advance(31)
    work = Runs("charged")
    assert engine.run(work, scope="pay", payload=Charge(1)) == "charged"
    assert (work.contexts[0].attempt, work.contexts[0].child_key("mail")) == (2, context.child_key("mail"))
    with pytest.raises(KeyReused):
        old.run(no_work, Charge(1))


def test_what_this_program_died_at_is_taken_over_by_its_like_alone(engine, backend, clock, old):
    class Death(BaseException):
        pass

    killed, died = Engine(Store(backend)), []
    # What a killed process does: nothing more.
    killed._abandon_all = lambda calls, interruption: None

    def dies(context):
        died.append(context.child_key("mail"))
        raise Death

    with pytest.raises(Death):
        killed.run(dies, scope="pay", payload=Charge(1))
    clock.advance(31)
    with pytest.raises(KeyReused):
        old.run(no_work, Charge(1))
    work = Runs()
    assert engine.run(work, scope="pay", payload=Charge(1)) == "charged"
    assert (work.contexts[0].attempt, work.contexts[0].child_key("mail")) == (2, died[0])


def test_a_failure_of_before_is_given_while_it_is_kept(engine, old):
    def fails(context):
        raise LookupError("no such card")

    with pytest.raises(LookupError):
        old.run(fails, Charge(1))
    with pytest.raises(StoredFailure, match="no such card"):
        engine.run(no_work, scope="pay", payload=Charge(1))
    assert not held(engine)


def test_a_failure_takes_the_mark_away_so_that_either_may_try_again(engine, old):
    def fails(context):
        assert len(held(engine)) == 2
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        engine.run(fails, scope="pay", payload=Charge(1))
    assert not engine.find(Query()).records
    assert old.run(Runs(), Charge(1)) == "charged"
    assert engine.run(no_work, scope="pay", payload=Charge(1)) == "charged"


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_while_it_looks_back_leaves_no_claim(backend):
    engine = AsyncEngine(AsyncStore(backend))
    perform, commands = backend.aperform, []

    async def cancelled(command):
        commands.append(command)
        if len(commands) == 2:
            raise asyncio.CancelledError
        return await perform(command)

    backend.aperform = cancelled
    with pytest.raises(asyncio.CancelledError):
        await engine.run(no_work, scope="pay", payload=Charge(1))
    assert not (await engine.find(Query())).records
    assert await engine.run(Runs(), scope="pay", payload=Charge(1)) == "charged"


def test_what_is_forgotten_runs_again(engine):
    work = Runs()
    record = engine.record(work, scope="pay", payload=Charge(1))
    assert engine.forget("pay", record.key)
    assert not engine.record(work, scope="pay", payload=Charge(1)).was_replay
    assert len(work) == 2
    assert engine.record(no_work, scope="pay", payload=Charge(1)).was_replay


def test_work_may_ask_for_different_work_that_shared_its_former_key(engine):
    def charge(context):
        assert current_context() is context
        return ["charged", engine.run(Runs("refunded"), scope="pay", payload=Refund(1))]

    assert engine.run(charge, scope="pay", payload=Charge(1)) == ["charged", "refunded"]


def test_json_and_replays_cost_what_they_did(engine, backend):
    def cost(**options):
        backend.asked = 0
        engine.run(Runs(), scope="pay", **options)
        return backend.asked

    assert cost(payload={"total": 1}) == cost(key="k") == 2
    assert cost(payload=Charge(1)) == 3
    assert cost(payload={"total": 1}) == cost(payload=Charge(1)) == cost(key="k") == 1
    # A set had no key before.
    assert cost(payload={"tags": {"a"}}) == 2


def test_a_policy_may_say_that_nothing_of_before_is_left(backend, old):
    engine = Engine(Store(backend), policy=Policy(former_keys=False))
    old.run(Runs(), Charge(1))
    work = Runs()
    engine.run(work, scope="pay", payload=Charge(1))
    assert len(work) == 1


def test_a_key_that_was_used_before_knows_its_payload_again(engine):
    request = {"scope": "pay", "key": "order-1"}
    print_ = former_fingerprint(Charge(1), secret=b"", exclude_fields=())
    engine.run(Runs("charged"), request_fingerprint=print_, **request)
    for _ in range(2):
        assert engine.run(no_work, payload=Charge(1), **request) == "charged"
    with pytest.raises(KeyReused) as refused:
        engine.run(no_work, payload=Charge(2), **request)
    assert list(refused.value.fields) == ["amount"]


def test_a_key_stands_for_one_class(engine):
    engine.run(Runs(), scope="pay", key="order-1", payload=Charge(1))
    for other in (Refund(1), {"amount": 1}):
        with pytest.raises(KeyReused):
            engine.run(no_work, scope="pay", key="order-1", payload=other)


def test_in_the_callers_transaction_it_is_found_and_kept_too(tmp_path):
    engine = Engine(open_store(f"sqlite:///{tmp_path}/sameas.db"))
    old = Before(engine.store.backend)
    connection = sqlite3.connect(tmp_path / "sameas.db")
    old.run(Runs("charged"), Charge(1))
    found = engine.record(no_work, scope="pay", payload=Charge(1), connection=connection)
    assert (found.result, found.was_replay) == ("charged", True)
    connection.commit()
    print_ = former_fingerprint(Charge(2), secret=b"", exclude_fields=())
    engine.run(Runs("paid"), scope="pay", key="k", request_fingerprint=print_)
    assert engine.run(no_work, scope="pay", key="k", payload=Charge(2), connection=connection) == "paid"
    assert engine.run(Runs("two"), scope="pay", payload=Charge(2), connection=connection) == "two"
    connection.commit()
    with pytest.raises(KeyReused):
        old.run(no_work, Charge(2))
    assert engine.record(no_work, scope="pay", payload=Charge(2)).was_replay
    connection.close()
    engine.close()
