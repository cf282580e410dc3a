"""Only work counts against a stage's time."""

import asyncio

import pytest

from sameas.llm.timeouts import (
    STAGE_TIMEOUTS,
    STAGES,
    StageTimedOutError,
    StageTimeout,
    paused,
    soft_limit_passed,
    within,
)
from tests.unit.extraction.clock import run_jumping

LIMITS = StageTimeout(1_000, 2_000)


def test_the_limits_are_those_of_the_design() -> None:
    assert STAGE_TIMEOUTS["entity_extraction"] == StageTimeout(45_000, 60_000)
    assert STAGE_TIMEOUTS["serialization"] == StageTimeout(7_000, 10_000)
    assert set(STAGE_TIMEOUTS) == set(STAGES)


def test_the_soft_limit_warns_once_and_lets_the_work_finish() -> None:
    warned: list[float] = []

    async def go() -> bool:
        async def work() -> bool:
            before = soft_limit_passed()
            await asyncio.sleep(1.5)
            return not before and soft_limit_passed()

        loop = asyncio.get_running_loop()
        return await within("grounding", work, limits=LIMITS, on_soft=lambda: warned.append(loop.time()))

    assert run_jumping(go())
    assert len(warned) == 1
    assert warned[0] == pytest.approx(1.0, abs=0.01)


def test_the_hard_limit_ends_the_work() -> None:
    async def go() -> None:
        await within("grounding", lambda: asyncio.sleep(3), limits=LIMITS, on_soft=lambda: None)

    with pytest.raises(StageTimedOutError, match="grounding ended after 2000 ms"):
        run_jumping(go())


def test_waiting_for_permission_does_not_count() -> None:
    warned: list[int] = []

    async def go() -> str:
        async def work() -> str:
            for _ in range(3):
                with paused():
                    await asyncio.sleep(100)
                await asyncio.sleep(0.3)
            return "done"

        return await within("entity_extraction", work, limits=LIMITS, on_soft=lambda: warned.append(1))

    assert run_jumping(go()) == "done"
    assert warned == []


def test_work_after_a_pause_has_only_the_time_left() -> None:
    async def go() -> None:
        async def work() -> None:
            await asyncio.sleep(1.9)
            with paused(), paused():
                await asyncio.sleep(50)
            await asyncio.sleep(0.2)

        await within("entity_extraction", work, limits=LIMITS, on_soft=lambda: None)

    with pytest.raises(StageTimedOutError):
        run_jumping(go())


def test_a_time_out_of_the_work_itself_is_passed_on() -> None:
    async def work() -> None:
        raise TimeoutError("mine")

    async def go() -> None:
        await within("grounding", work, limits=LIMITS, on_soft=lambda: None)

    with pytest.raises(TimeoutError, match="mine"):
        run_jumping(go())


def test_outside_a_stage_a_pause_means_nothing() -> None:
    with paused():
        assert not soft_limit_passed()


def test_limits_must_make_sense() -> None:
    with pytest.raises(ValueError, match="soft"):
        StageTimeout(5, 4)
