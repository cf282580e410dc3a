"""While another's transaction holds the file, refusing and waiting are what the caller said, not the store's bound."""

import asyncio
import sqlite3
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from sameas import AsyncEngine, Engine, InProgress, Policy, open_async_store, open_store
from sameas.errors import BatchFailed

# Whoever waits for the file is let through after a while, runs the work, and so fails the test.
LET_THROUGH_AFTER = 15.0
IMPATIENT = [{"on_busy": "refuse"}, {"wait_for": 0.0}, {"wait_for": 0.7}]


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'records.db'}"


@contextmanager
def held(url):
    """The write lock of the file is somebody else's; gives what says whether it still is."""
    over, let_go = Event(), Event()
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def end():
        over.wait(LET_THROUGH_AFTER)
        other.execute("ROLLBACK")
        let_go.set()

    ending = Thread(target=end)
    ending.start()
    try:
        yield lambda: not let_go.is_set()
    finally:
        over.set()
        ending.join()
        other.close()


def never(*args):
    raise AssertionError("the work ran although its caller does not wait")


@pytest.mark.parametrize("options", IMPATIENT)
def test_one_who_does_not_wait_is_refused(url, options):
    with Engine(open_store(url, busy_timeout=600.0)) as engine:
        with held(url) as is_held:
            with pytest.raises(InProgress):
                engine.run(never, scope="s", key="a", **options)
            assert is_held()
        assert engine.run(lambda ctx: ctx.attempt, scope="s", key="a", **options) == 1


@pytest.mark.parametrize("options", IMPATIENT)
def test_a_task_that_does_not_wait_is_refused_behind_those_that_do(url, options):
    async def main():
        engine = AsyncEngine(open_async_store(url, busy_timeout=600.0))
        with held(url) as is_held:
            before = asyncio.create_task(engine.run(lambda ctx: "patient", scope="s", key="first"))
            asks = [engine.run(never, scope="s", key=key, **options) for key in ("a", "b")]
            after = asyncio.create_task(engine.run(lambda ctx: "patient", scope="s", key="last"))
            answers = await asyncio.gather(*asks, return_exceptions=True)
            assert [type(answer) for answer in answers] == [InProgress, InProgress]
            assert is_held()
        assert await asyncio.gather(before, after) == ["patient", "patient"]
        # Nothing that was given up was written after all: nobody holds the key.
        assert await engine.run(lambda ctx: ctx.attempt, scope="s", key="a", on_busy="refuse") == 1
        await engine.close()

    asyncio.run(main())


def test_a_batch_that_does_not_wait_is_refused(url):
    with Engine(open_store(url, busy_timeout=600.0), policy=Policy(on_busy="refuse")) as engine, held(url) as is_held:
        with pytest.raises(BatchFailed) as failed:
            engine.run_many(never, [1, 2], scope="s")
        assert [type(error) for error in failed.value.results] == [InProgress, InProgress]
        assert is_held()


def test_a_batch_of_tasks_that_does_not_wait_is_refused(url):
    async def main():
        engine = AsyncEngine(open_async_store(url, busy_timeout=600.0), policy=Policy(on_busy="refuse"))
        with held(url) as is_held:
            with pytest.raises(BatchFailed) as failed:
                await engine.run_many(never, [1, 2], scope="s")
            assert [type(error) for error in failed.value.results] == [InProgress, InProgress]
            assert is_held()
        assert await engine.run_many(lambda ctx, number: number, [1, 2], scope="s") == [1, 2]
        await engine.close()

    asyncio.run(main())


def test_what_is_done_is_answered_all_the_same(url):
    with Engine(open_store(url, busy_timeout=600.0)) as engine:
        engine.run(lambda ctx: "kept", scope="s", key="a")
        with held(url) as is_held:
            assert engine.run(never, scope="s", key="a", on_busy="refuse") == "kept"
            assert is_held()


def test_one_who_waits_gets_the_file_when_it_is_free(url):
    with Engine(open_store(url, busy_timeout=600.0)) as engine, Engine(open_store(url)) as other:
        answers = []
        with held(url):
            asking = Thread(target=lambda: answers.append(engine.run(lambda ctx: "mine", scope="s", key="a")))
            asking.start()
            with pytest.raises(InProgress):
                other.run(never, scope="s", key="a", on_busy="refuse")
        asking.join()
        assert answers == ["mine"]
