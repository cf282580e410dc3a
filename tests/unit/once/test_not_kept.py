"""Work that succeeded is never run again because its result cannot be kept: it is done, and that is told."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import cast

import pytest

from sameas import AsyncEngine, Engine, IdempotentProcessor, ResultNotKept, open_async_store, open_store
from sameas.once.errors import BatchFailed
from sameas.once.observe import CallEnded
from sameas.once.store import Store
from sameas.stores.memory import MemoryBackend
from sameas.stores.tiered import TieredBackend


@pytest.fixture(params=["memory", "sqlite", "tiered"])
def engine(request, tmp_path):
    if request.param == "tiered":
        return Engine(Store(TieredBackend(MemoryBackend(), ttl=3_600)))
    return Engine(open_store("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/records.db"))


class Color(Enum):
    RED = "red"


@dataclass
class Receipt:
    id: str
    total: Decimal


class Odd:
    """Something that no codec knows."""


def test_work_whose_result_cannot_be_kept_is_run_once(engine):
    runs, odd = [], Odd()

    def work(ctx):
        runs.append(1)
        return odd

    record = engine.record(work, scope="s", key="k")
    assert (record.result, record.was_replay, record.stored) == (odd, False, True)
    assert "Odd" in record.not_kept
    for _ in range(3):
        with pytest.raises(ResultNotKept, match="done before and is not done again.*Odd") as told:
            engine.run(work, scope="s", key="k")
        assert told.value.reason == record.not_kept
    later = engine.record(work, scope="s", key="k")
    assert (later.result, later.was_replay, later.not_kept) == (None, True, record.not_kept)
    assert runs == [1]


def test_the_first_caller_of_a_decorated_function_has_its_result_and_the_next_one_is_told(engine):
    runs = []

    @engine.once(scope="s")
    def make(order):
        runs.append(order)
        return Odd()

    assert isinstance(make(1), Odd)
    with pytest.raises(ResultNotKept):
        make(1)
    assert make.record(1).was_replay
    assert runs == [1]


def test_tasks_are_told_alike(tmp_path):
    async def main():
        engine = AsyncEngine(open_async_store(f"sqlite:///{tmp_path}/records.db"))
        runs = []

        async def work(ctx, payload=None):
            runs.append(1)
            return Odd()

        assert isinstance(await engine.run(work, scope="s", key="k"), Odd)
        with pytest.raises(ResultNotKept):
            await engine.run(work, scope="s", key="k")
        assert (await engine.record(work, scope="s", key="k")).not_kept
        assert len(await engine.run_many(work, [1, 2], scope="many")) == 2
        with pytest.raises(BatchFailed, match="2 of 2"):
            await engine.run_many(work, [1, 2], scope="many")
        assert len(runs) == 3
        await engine.close()

    asyncio.run(main())


def test_a_batch_tells_which_of_its_results_were_not_kept(engine):
    def work(ctx, payload):
        return Odd() if payload == 2 else payload

    assert engine.run_many(work, [1, 2], scope="s")[0] == 1
    with pytest.raises(BatchFailed, match="1 of 3") as failed:
        engine.run_many(work, [1, 2, 3], scope="s")
    first, second, third = failed.value.results
    assert (first.result, type(second), third.result) == (1, ResultNotKept, 3)
    assert [record.was_replay for record in engine.record_many(work, [1, 2, 3], scope="s")] == [True] * 3


def test_a_queue_that_delivers_again_needs_no_result():
    def handle(message):
        return Odd()

    processor = IdempotentProcessor(handle, scope="handle", store=open_store("memory://"))
    assert [processor.process({"id": 1}).was_replay for _ in range(3)] == [False, True, True]


def test_a_codec_of_ones_own_that_fails_does_not_undo_the_work(engine):
    class Failing:
        def encode(self, result):
            raise OSError("canary")

        def decode(self, data, media_type):
            raise AssertionError

    assert engine.run(lambda ctx: "done", scope="s", key="k", codec=Failing()) == "done"
    assert engine.record(lambda ctx: "again", scope="s", key="k", codec=Failing()).not_kept == "OSError"


def test_a_result_that_does_not_fit_its_annotation_says_so_and_is_not_run_again(engine):
    runs = []

    @engine.once(scope="s")
    def charge(order) -> Receipt:
        runs.append(order)
        return Receipt("a", cast("Decimal", "no number"))

    assert charge(1).total == "no number"
    with pytest.raises(ResultNotKept, match="does not fit its declared type.*Receipt"):
        charge(1)
    assert runs == [1]


def test_an_annotation_is_enough_for_what_is_made_of_known_types(engine):
    @engine.once(scope="color")
    def color(order) -> Color | None:
        return Color.RED

    @engine.once(scope="receipts")
    def receipts(order) -> dict[str, list[Receipt]]:
        return {"a": [Receipt("a", Decimal("1.50"))]}

    for _ in range(2):
        assert color(1) is Color.RED
        assert receipts(1) == {"a": [Receipt("a", Decimal("1.50"))]}


def test_in_the_callers_transaction_it_is_done_as_well(tmp_path):
    import sqlite3

    engine = Engine(open_store(f"sqlite:///{tmp_path}/records.db"))
    with sqlite3.connect(tmp_path / "records.db") as connection:
        engine.run(lambda ctx: Odd(), scope="s", key="k", connection=connection)
    connection.close()
    with pytest.raises(ResultNotKept):
        engine.run(lambda ctx: Odd(), scope="s", key="k")


def test_whoever_observes_is_told_that_the_result_was_not_kept():
    ended = []

    class Noting:
        def on(self, event):
            if isinstance(event, CallEnded):
                ended.append((event.how, event.stored, event.kept))

    engine = Engine(open_store("memory://"), observers=[Noting()])
    for _ in range(2):
        engine.record(lambda ctx: Odd(), scope="s", key="k")
    engine.run(lambda ctx: datetime(2026, 1, 2), scope="s", key="fine")
    assert ended == [("fresh", True, False), ("replay", True, False), ("fresh", True, True)]
