"""So many calls at once, each a moment after the one before, and no turn is ever lost."""

import asyncio
from random import Random

import pytest

from sameas.llm.timeouts import StageTimeout, paused, within
from sameas.llm.turns import APART, FIRST_TOGETHER, Turn, Turns
from tests.unit.extraction.clock import run_jumping


def now() -> float:
    return asyncio.get_running_loop().time()


async def call(turns: Turns, *, lasting: float) -> float:
    """Make a call in a turn of its own, and say when it began."""
    turn = Turn(turns)
    try:
        async with turn.taken():
            began = now()
            await asyncio.sleep(lasting)
    finally:
        turn.give_back()
    return began


async def free(turns: Turns, *, at_once: int) -> int:
    """How many turns can be had now, each given back afterwards."""
    taken = [asyncio.ensure_future(turns.take()) for _ in range(at_once + 1)]
    done, waiting = await asyncio.wait(taken, timeout=60)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for one in done:
        turns.give_back(one.result())
    return len(done)


def test_no_more_calls_are_under_way_than_there_are_turns() -> None:
    most = under_way = 0

    async def one(turns: Turns) -> None:
        nonlocal most, under_way
        async with (turn := Turn(turns)).taken():
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(1)
            under_way -= 1
        turn.give_back()

    async def go() -> float:
        turns = Turns(3)
        await asyncio.gather(*(one(turns) for _ in range(12)))
        return now()

    assert run_jumping(go()) == pytest.approx(4, abs=0.2)
    assert most == 3


def test_without_a_bound_nobody_waits() -> None:
    async def go() -> float:
        turns = Turns(None)
        return max(await asyncio.gather(*(call(turns, lasting=1) for _ in range(1_000))))

    assert run_jumping(go()) == 0


@pytest.mark.parametrize("at_once", [0, -1])
def test_there_is_at_least_one_turn(at_once: int) -> None:
    with pytest.raises(ValueError, match="at_once"):
        Turns(at_once)


def test_calls_begin_a_moment_apart_and_stay_so() -> None:
    async def go() -> list[float]:
        turns = Turns(4)
        return await asyncio.gather(*(call(turns, lasting=1) for _ in range(16)))

    began = sorted(run_jumping(go()))
    gaps = [later - earlier for earlier, later in zip(began, began[1:], strict=False)]
    assert gaps[:3] == [pytest.approx(APART)] * 3
    assert all(gap >= APART - 1e-9 for gap in gaps)


def test_moments_are_short_beside_calls_that_are_short_themselves() -> None:
    async def go() -> float:
        turns = Turns(10)
        for _ in range(3):
            await call(turns, lasting=0.002)
        before = now()
        return max(await asyncio.gather(*(call(turns, lasting=0.002) for _ in range(10)))) - before

    assert run_jumping(go()) <= 0.001 + 1e-9


def test_very_many_turns_begin_together_before_it_is_known_how_long_calls_take() -> None:
    async def go() -> float:
        turns = Turns(1_000)
        return max(await asyncio.gather(*(call(turns, lasting=1) for _ in range(1_000))))

    assert run_jumping(go()) <= FIRST_TOGETHER + 1e-9


def test_a_turn_that_failed_is_given_back_and_one_that_went_well_is_kept() -> None:
    async def go() -> None:
        turns = Turns(1)
        turn = Turn(turns)
        for _ in range(3):
            with pytest.raises(OSError, match="again"):
                async with turn.taken():
                    raise OSError("again")
        async with turn.taken():
            pass
        assert await free(turns, at_once=1) == 0
        turn.give_back()
        assert await free(turns, at_once=1) == 1

    run_jumping(go())


def test_a_turn_that_is_given_back_twice_is_one_turn() -> None:
    async def go() -> int:
        turns = Turns(2)
        turn = Turn(turns)
        turn.give_back()
        async with turn.taken():
            pass
        turn.give_back()
        turn.give_back()
        return await free(turns, at_once=2)

    assert run_jumping(go()) == 2


@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_cancelled_at_whatever_moment_leaves_its_turn(seed: int) -> None:
    async def go() -> int:
        chance, turns = Random(seed), Turns(3)
        loop = asyncio.get_running_loop()
        calls = [asyncio.ensure_future(call(turns, lasting=chance.choice([0, 0.001, 0.5]))) for _ in range(40)]
        for one in calls:
            loop.call_later(chance.choice([0, APART / 2, APART, 0.01, 0.4, 2]), one.cancel)
        await asyncio.gather(*calls, return_exceptions=True)
        return await free(turns, at_once=3)

    assert run_jumping(go()) == 3


def test_a_moment_of_somebody_who_left_is_not_waited_for() -> None:
    async def go() -> float:
        turns = Turns(2)
        await turns.take()
        for _ in range(1_000):
            leaving = asyncio.ensure_future(turns.take())
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
        before = now()
        await turns.take()
        return now() - before

    assert run_jumping(go()) <= APART + 1e-9


def test_waiting_for_a_turn_and_for_its_moment_is_no_work() -> None:
    async def go() -> str:
        turns = Turns(1)

        async def work() -> str:
            await call(turns, lasting=0.05)
            return "done"

        async def other() -> None:
            with paused():
                await call(turns, lasting=10)

        first = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        told = await within("grounding", work, limits=StageTimeout(100, 100), on_soft=lambda: None)
        await first
        return told

    assert run_jumping(go()) == "done"


def test_a_turn_that_a_closed_loop_left_behind_is_given_back() -> None:
    turns, turn = Turns(1), None

    async def go() -> None:
        nonlocal turn
        turn = Turn(turns)
        async with turn.taken():
            pass

    run_jumping(go())
    assert turn is not None
    turn.give_back()
    assert run_jumping(free(turns, at_once=1)) == 1
