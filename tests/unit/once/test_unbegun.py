"""Work that was handed over and not begun is not taken for done: it is refused, and whoever asks next may run it."""

import asyncio
import functools

import pytest

from sameas import AsyncEngine, Engine, IdempotentProcessor, open_async_store, open_store
from sameas.errors import BatchFailed, ResultNotKept

ran: list[int] = []


async def later(number=1):
    ran.append(number)
    return number


def lazily(number=1):
    ran.append(number)
    yield number


async def lazily_later(number=1):
    ran.append(number)
    yield number


@pytest.fixture
def engine():
    ran.clear()
    with Engine(open_store("memory://")) as engine:
        yield engine


@pytest.mark.parametrize("unbegun", [later, lazily, lazily_later])
def test_work_that_was_not_begun_is_refused_and_may_be_run(engine, unbegun):
    with pytest.raises(TypeError, match="was not begun"):
        engine.run(lambda ctx: unbegun(), scope="s", key="k")
    assert ran == []
    assert engine.record(lambda ctx: "now", scope="s", key="k").was_replay is False


@pytest.mark.parametrize("unbegun", [lazily, lazily_later])
def test_tasks_are_told_alike(unbegun):
    async def main():
        ran.clear()
        engine = AsyncEngine(open_async_store("memory://"))
        with pytest.raises(TypeError, match="return a list"):
            await engine.run(lambda ctx: unbegun(), scope="s", key="k")
        # One that was wrapped in a coroutine is no more than the one inside.
        with pytest.raises(TypeError, match="return a list"):
            await engine.run(lambda ctx: given(unbegun()), scope="s", key="k")
        assert await engine.run(lambda ctx: later(7), scope="s", key="k") == 7
        assert ran == [7]

    async def given(value):
        return value

    asyncio.run(main())


def test_batches_are_told_alike(engine):
    with pytest.raises(BatchFailed) as failed:
        engine.run_many(lambda ctx, number: later(number), [1, 2], scope="s")
    assert [type(error) for error in failed.value.results] == [TypeError, TypeError]
    assert engine.run_many(lambda ctx, number: number, [1, 2], scope="s") == [1, 2]


def test_a_decorated_generator_is_refused_when_it_is_called(engine):
    with pytest.raises(TypeError, match="generator that was not begun"):
        engine.once(scope="lazily")(lazily)(1)
    assert ran == []


@pytest.mark.parametrize("function", [later, functools.partial(later, 1)])
def test_an_async_function_is_refused_where_nobody_would_await_it(function):
    with pytest.raises(TypeError, match="is async: use AsyncIdempotentProcessor"):
        IdempotentProcessor(function, store=open_store("memory://"), scope="s")
    with pytest.raises(TypeError, match="is async: decorate it with an AsyncEngine"):
        Engine(open_store("memory://")).once(scope="s")(function)


def test_a_generator_that_was_begun_has_done_something_and_is_not_run_again(engine):
    def work(ctx):
        begun = lazily(3)
        next(begun)
        return begun

    engine.run(work, scope="s", key="k")
    with pytest.raises(ResultNotKept):
        engine.run(work, scope="s", key="k")
    assert ran == [3]
