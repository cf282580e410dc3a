"""Queue-consumer style, as source document 002 describes it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from sameas import IdempotentProcessor, ProcessingRecord, open_store
from sameas.once.observe import CallEnded
from sameas.once.store import Query


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    with open_store("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/records.db") as store:
        yield store


def test_the_same_submission_delivered_twice_is_processed_once(store):
    processed = []

    def triage(submission):
        processed.append(submission)
        return {"priced": submission["company"]}

    processor = IdempotentProcessor(triage, store=store, scope="triage", exclude_fields={"received_at", "retry_count"})
    first = processor.process({"company": "Acme", "received_at": 1, "retry_count": 0})
    again = processor.process({"retry_count": 1, "received_at": 6, "company": "Acme"})
    assert isinstance(first, ProcessingRecord)
    assert (first.was_replay, again.was_replay) == (False, True)
    assert first.result == again.result == {"priced": "Acme"}
    assert len(processed) == 1


def test_ten_threads_with_one_payload_process_it_once(store):
    gate = threading.Barrier(10)
    processed = []
    processor = IdempotentProcessor(lambda payload: processed.append(1) or "ok", store=store, scope="triage")

    def deliver(_):
        gate.wait()
        return processor.process({"company": "Acme"}).was_replay

    with ThreadPoolExecutor(10) as threads:
        replays = list(threads.map(deliver, range(10)))
    assert processed == [1]
    assert replays.count(False) == 1


def test_different_payloads_do_not_wait_for_each_other(store):
    meeting = threading.Barrier(4, timeout=10)
    processor = IdempotentProcessor(lambda payload: meeting.wait() and None, store=store, scope="meet")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: processor.process({"n": number}), range(4)))


def test_a_failed_processing_is_not_kept(store):
    attempts = []

    def sometimes(payload):
        attempts.append(1)
        if len(attempts) == 1:
            raise ConnectionError("enrichment is down")
        return "ok"

    processor = IdempotentProcessor(sometimes, store=store, scope="sometimes")
    with pytest.raises(ConnectionError):
        processor.process({"a": 1})
    assert not processor.process({"a": 1}).was_replay


def handle(payload):
    return payload["a"]


def test_the_scope_is_the_functions_name_and_many_are_processed_in_order(store):
    processor = IdempotentProcessor(handle, store=store)
    records = processor.process_many([{"a": 2}, {"a": 1}, {"a": 2}])
    assert [record.result for record in records] == [2, 1, 2]
    assert len(processor.engine.find(Query(scope=f"{__name__}.handle")).records) == 2


@dataclass
class Priced:
    company: str


def test_a_declared_result_comes_back_as_its_class(store):
    def price(payload) -> Priced:
        return Priced(payload["company"])

    processor = IdempotentProcessor(price, store=store, scope="price")
    assert processor.process({"company": "A"}).result == processor.process({"company": "A"}).result == Priced("A")


def test_observers_hear_of_what_was_processed_and_what_was_a_replay(store):
    heard = []

    class Listener:
        def on(self, event):
            heard.append(event)

    processor = IdempotentProcessor(handle, store=store, observers=[Listener()])
    processor.process({"a": 1})
    processor.process({"a": 1})
    assert [event.how for event in heard if isinstance(event, CallEnded)] == ["fresh", "replay"]
