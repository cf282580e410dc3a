"""What a store of two operations can and cannot promise, and that it says so."""

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from sameas import Engine, IdempotentProcessor
from sameas.once.errors import RecordDamaged, StoreMisconfigured, StoreUnavailable
from sameas.once.store import Query, Selection
from sameas.stores.simple import InsertOnlyBackend, SimpleStore, lift
from tests.conformance.test_simple import Shelf


class Drawer(SimpleStore):
    """The two operations, and nothing else."""

    def __init__(self):
        self.values = {}
        self.lock = Lock()
        self.down = False

    def get(self, key):
        if self.down:
            raise OSError("the drawer is stuck")
        return self.values.get(key)

    def set_if_absent(self, key, value):
        with self.lock:
            return self.values.setdefault(key, value) is value


def test_ten_threads_at_once_run_the_work_once():
    runs, barrier = [], Barrier(10)

    def handle(payload):
        runs.append(payload)
        return {"n": len(runs)}

    processor = IdempotentProcessor(handle, store=lift(Drawer()), scope="handle")

    def submit(_):
        barrier.wait()
        return processor.process({"a": 1}).result

    with ThreadPoolExecutor(10) as pool:
        results = list(pool.map(submit, range(10)))
    assert len(runs) == 1
    assert results == [{"n": 1}] * 10


def test_of_two_processes_that_ran_at_once_one_result_is_accepted_and_both_callers_get_it():
    drawer = Drawer()
    first, second = Engine(lift(drawer)), Engine(lift(drawer))

    def slow(context):
        assert second.run(lambda context: "the other's", scope="s", key="k") == "the other's"
        return "mine"

    assert first.run(slow, scope="s", key="k") == "the other's"
    assert first.record(slow, scope="s", key="k").was_replay


def test_a_failed_run_is_tried_again():
    engine = Engine(lift(Drawer()))
    with pytest.raises(ZeroDivisionError):
        engine.run(lambda context: 1 // 0, scope="s", key="k")
    assert engine.run(lambda context: 2, scope="s", key="k") == 2


def test_what_it_does_not_promise_is_logged_and_can_be_read(caplog):
    with caplog.at_level(logging.WARNING):
        backend = lift(Drawer()).backend
    assert isinstance(backend, InsertOnlyBackend)
    assert [record.args[1] for record in caplog.records] == list(backend.not_promised)
    assert any("Two processes may run" in sentence for sentence in backend.not_promised)
    assert not any("Two processes may run" in sentence for sentence in lift(Shelf()).backend.not_promised)


def test_what_it_cannot_do_is_refused():
    engine = Engine(lift(Drawer()))
    engine.run(lambda context: 1, scope="s", key="k")
    with pytest.raises(StoreMisconfigured, match="cannot forget a result"):
        engine.forget("s", "k")
    with pytest.raises(StoreMisconfigured, match="cannot list"):
        engine.find(Query())
    with pytest.raises(StoreMisconfigured, match="by tag, scope or tenant"):
        engine.store.forget_where(Selection(scope="s"))
    with pytest.raises(StoreMisconfigured, match="expired"):
        engine.prune()


def test_a_store_that_fails_is_unavailable_and_the_work_does_not_run():
    drawer = Drawer()
    drawer.down = True
    with pytest.raises(StoreUnavailable, match="the drawer is stuck"):
        Engine(lift(drawer)).run(lambda context: pytest.fail("ran"), scope="s", key="k")


def test_a_value_that_is_no_record_is_damage_and_not_a_miss():
    shelf = Shelf()
    engine = Engine(lift(shelf))
    engine.run(lambda context: 1, scope="s", key="k")
    for key in shelf.values:
        shelf.values[key] = b"not a record"
    with pytest.raises(RecordDamaged):
        engine.run(lambda context: pytest.fail("ran"), scope="s", key="k")
