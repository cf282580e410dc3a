"""Only work counts against a stage's time."""

import asyncio
from asyncio import TimerHandle
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from sameas.llm.timeouts import (
    STAGE_TIMEOUTS,
    STAGES,
    StageTimedOutError,
    StageTimeout,
    StageTimeoutService,
    hard_limit_passed,
    paused,
    soft_limit_passed,
    time_left,
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


def test_the_service_has_the_limits_of_the_source_document_and_those_that_were_set() -> None:
    service = StageTimeoutService({"grounding": LIMITS})
    assert service.limits_of("grounding") == LIMITS
    assert service.limits_of("chunking") == StageTimeout(3_000, 5_000)
    assert service.limits_of("relation_extraction") == StageTimeout(45_000, 60_000)


def test_the_service_warns_at_the_soft_limit_and_ends_at_the_hard_one() -> None:
    service = StageTimeoutService()
    warned: list[float] = []

    async def go() -> float:
        loop = asyncio.get_running_loop()
        with pytest.raises(StageTimedOutError, match="chunking ended after 5000 ms"):
            await service.with_timeout("chunking", lambda: asyncio.sleep(9), on_soft=lambda: warned.append(loop.time()))
        await service.with_timeout("chunking", lambda: asyncio.sleep(4))
        return loop.time()

    assert run_jumping(go()) == pytest.approx(9, abs=0.01)
    assert warned == [pytest.approx(3, abs=0.01)]


def test_a_name_that_is_no_stage_has_the_limits_of_chunking() -> None:
    service = StageTimeoutService({"chunking": StageTimeout(1_000, 2_000)})
    assert service.limits_of("summary") == StageTimeout(1_000, 2_000)


def test_the_service_refuses_a_stage_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no such stage: guessing"):
        StageTimeoutService({"guessing": LIMITS})  # type: ignore[dict-item]


def test_time_left_counts_work_only() -> None:
    seen: list[float | None] = []

    async def go() -> None:
        async def work() -> None:
            await asyncio.sleep(0.5)
            with paused():
                await asyncio.sleep(7)
                seen.append(time_left())
            await asyncio.sleep(0.25)
            seen.append(time_left())

        await within("grounding", work, limits=LIMITS, on_soft=lambda: None)

    run_jumping(go())
    assert seen == [pytest.approx(1.5, abs=0.01), pytest.approx(1.25, abs=0.01)]
    assert time_left() is None


def test_work_that_is_ended_can_tell_a_passed_limit_from_a_caller_who_left() -> None:
    told: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            told.append(hard_limit_passed())

    async def limit() -> None:
        await within("grounding", work, limits=LIMITS, on_soft=lambda: None)

    async def leave() -> None:
        async with asyncio.timeout(1):
            await limit()

    with pytest.raises(StageTimedOutError):
        run_jumping(limit())
    with pytest.raises(TimeoutError):
        run_jumping(leave())
    assert told == [True, False]


def test_a_clock_that_stood_when_a_limit_would_have_passed_goes_on_to_it() -> None:
    warned: list[float] = []
    ended: list[float] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()

        async def work() -> None:
            await asyncio.sleep(0.75)
            for _ in range(2):
                with paused():
                    await asyncio.sleep(10)
            try:
                await asyncio.sleep(100)
            finally:
                ended.append(loop.time())

        await within("grounding", work, limits=LIMITS, on_soft=lambda: warned.append(loop.time()))

    with pytest.raises(StageTimedOutError):
        run_jumping(go())
    assert warned == [pytest.approx(21.0, abs=0.01)]
    assert ended == [pytest.approx(22.0, abs=0.01)]


def test_a_warning_that_fails_does_not_take_the_hard_limit_away() -> None:
    told: list[str] = []

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(str(context["exception"])))

        def fail() -> None:
            raise OSError("the journal cannot be written")

        await within("grounding", lambda: asyncio.sleep(100), limits=LIMITS, on_soft=fail)

    with pytest.raises(StageTimedOutError):
        run_jumping(go())
    assert told == ["the journal cannot be written"]


def test_a_warning_is_told_where_the_work_was_given_and_its_timer_keeps_nothing_of_that() -> None:
    about: ContextVar[str] = ContextVar("about", default="nobody")
    warned: list[str] = []

    async def go() -> list[TimerHandle]:
        about.set("somebody")
        await within("grounding", lambda: asyncio.sleep(1.5), limits=LIMITS, on_soft=lambda: warned.append(about.get()))
        return [timer for timer in asyncio.get_running_loop()._scheduled if timer.cancelled()]  # type: ignore[attr-defined]

    timers = run_jumping(go())
    assert warned == ["somebody"]
    assert timers
    assert all(about not in timer._context for timer in timers)  # type: ignore[attr-defined]


async def timed(work: Callable[[], Awaitable[object]]) -> None:
    """The work within the limits."""
    await within("grounding", work, limits=LIMITS, on_soft=lambda: None)


@pytest.mark.parametrize(("cancelled_at", "cleaning"), [(0.5, 0.0), (2.0, 0.0), (1.5, 1.0), (2.0, 1.0), (2.5, 1.0)])
def test_who_is_cancelled_is_told_so_also_where_the_hard_limit_passes_as_well(
    cancelled_at: float, cleaning: float
) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(cleaning)

    async def go() -> tuple[bool, int]:
        task = asyncio.ensure_future(timed(work))
        asyncio.get_running_loop().call_later(cancelled_at, task.cancel)
        await asyncio.wait({task})
        return task.cancelled(), task.cancelling()

    assert run_jumping(go()) == (True, 1)


@pytest.mark.parametrize(("seconds", "told"), [(1, TimeoutError), (2, TimeoutError), (3, StageTimedOutError)])
def test_a_time_out_around_a_stage_and_the_stage_s_own_are_told_apart(seconds: float, told: type[Exception]) -> None:
    async def go() -> int:
        with pytest.raises(told):
            async with asyncio.timeout(seconds):
                await timed(lambda: asyncio.sleep(50))
        await asyncio.sleep(1)
        task = asyncio.current_task()
        return -1 if task is None else task.cancelling()

    assert run_jumping(go()) == 0


@pytest.mark.parametrize(("seconds", "told"), [(1, TimeoutError), (2, StageTimedOutError), (3, StageTimedOutError)])
def test_a_time_out_inside_a_stage_and_the_stage_s_own_are_told_apart(seconds: float, told: type[Exception]) -> None:
    async def work() -> None:
        async with asyncio.timeout(seconds):
            await asyncio.sleep(50)

    with pytest.raises(told):
        run_jumping(timed(work))


@pytest.mark.parametrize(("outer", "inner", "told"), [(2, 3, "grounding"), (3, 2, "chunking"), (2, 2, "grounding")])
def test_of_stages_inside_each_other_the_one_whose_time_is_up_is_told(outer: int, inner: int, told: str) -> None:
    def limits(seconds: int) -> StageTimeout:
        return StageTimeout(seconds * 1_000, seconds * 1_000)

    async def work() -> None:
        await within("chunking", lambda: asyncio.sleep(50), limits=limits(inner), on_soft=lambda: None)

    with pytest.raises(StageTimedOutError, match=told):
        run_jumping(within("grounding", work, limits=limits(outer), on_soft=lambda: None))


def test_work_that_will_not_be_ended_has_its_result_and_leaves_nothing_behind() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(50)
        except asyncio.CancelledError:
            return "kept"
        return ""

    async def go() -> tuple[str, int, float | None]:
        kept = await within("grounding", work, limits=LIMITS, on_soft=lambda: None)
        await asyncio.sleep(1)
        task = asyncio.current_task()
        return kept, -1 if task is None else task.cancelling(), time_left()

    assert run_jumping(go()) == ("kept", 0, None)


def test_work_outside_of_a_task_is_refused() -> None:
    async def go() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def by_hand() -> None:
            try:
                timed(lambda: asyncio.sleep(0)).send(None)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at below
                told.set_result(repr(error))

        asyncio.get_running_loop().call_soon(by_hand)
        return await told

    assert "RuntimeError('the work of a stage needs a task" in run_jumping(go())
