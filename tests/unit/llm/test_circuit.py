"""The circuit opens after 5 failures, is tried again after 120 s, and closes after 2 successes."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from sameas.llm.circuit import CircuitBreaker, CircuitSettings
from sameas.llm.errors import CircuitOpen

T = TypeVar("T")

# The clock of these tests seldom moves: every failure counts that began after the last.
EACH = CircuitSettings(together_within=0)


class Now:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def breaker(now: Now) -> CircuitBreaker:
    return CircuitBreaker(EACH, clock=now)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def fail(breaker: CircuitBreaker, times: int = 1) -> list[str | None]:
    return [await breaker.failed(await breaker.enter()) for _ in range(times)]


async def succeed(breaker: CircuitBreaker) -> str | None:
    return await breaker.succeeded(await breaker.enter())


def test_it_opens_after_five_failures_in_a_row(breaker: CircuitBreaker) -> None:
    async def go() -> None:
        assert await fail(breaker, 4) == [None] * 4
        assert await breaker.phase() == "closed"
        assert await fail(breaker) == ["opened"]
        assert await breaker.phase() == "open"
        with pytest.raises(CircuitOpen, match="not asked for another 120 s") as refused:
            await breaker.enter()
        assert refused.value.retry_after == 120
        assert not refused.value.is_probing

    run(go())


def test_a_success_in_between_starts_the_count_again(breaker: CircuitBreaker) -> None:
    async def go() -> None:
        await fail(breaker, 4)
        await succeed(breaker)
        await fail(breaker, 4)
        assert await breaker.phase() == "closed"

    run(go())


def test_it_is_half_open_after_120_seconds_and_not_before(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 119.9
        assert await breaker.phase() == "open"
        now.seconds += 0.1
        assert await breaker.phase() == "half_open"

    run(go())


def test_half_open_lets_one_probe_out_at_a_time(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 120
        probe = await breaker.enter()
        with pytest.raises(CircuitOpen) as refused:
            await breaker.enter()
        assert refused.value.is_probing
        assert await breaker.succeeded(probe) is None
        assert await breaker.phase() == "half_open"

    run(go())


def test_two_successes_close_it(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 120
        assert await succeed(breaker) is None
        assert await succeed(breaker) == "closed"
        assert await breaker.phase() == "closed"
        await fail(breaker, 4)
        assert await breaker.phase() == "closed"

    run(go())


def test_a_probe_that_fails_opens_it_for_another_120_seconds(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 120
        await succeed(breaker)
        assert await fail(breaker) == ["opened"]
        now.seconds += 119
        with pytest.raises(CircuitOpen):
            await breaker.enter()
        now.seconds += 1
        await succeed(breaker)
        assert await breaker.phase() == "half_open"

    run(go())


def test_a_probe_that_was_cancelled_makes_room_for_the_next(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 120
        await breaker.left(await breaker.enter())
        await succeed(breaker)
        assert await succeed(breaker) == "closed"

    run(go())


def test_a_probe_that_nobody_heard_of_again_is_given_up(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        await fail(breaker, 5)
        now.seconds += 120
        lost = await breaker.enter()
        now.seconds += 120
        await breaker.enter()
        assert await breaker.failed(lost) is None
        assert await breaker.phase() == "half_open"

    run(go())


def test_calls_that_began_before_it_opened_say_nothing(breaker: CircuitBreaker, now: Now) -> None:
    async def go() -> None:
        early = [await breaker.enter() for _ in range(8)]
        for ticket in early[:5]:
            await breaker.failed(ticket)
        now.seconds += 120
        assert await breaker.succeeded(early[5]) is None
        assert await breaker.succeeded(early[6]) is None
        assert await breaker.failed(early[7]) is None
        assert await breaker.phase() == "half_open"
        await succeed(breaker)
        assert await succeed(breaker) == "closed"
        await fail(breaker, 4)
        assert await breaker.failed(early[7]) is None
        assert await breaker.succeeded(early[6]) is None
        assert await fail(breaker) == ["opened"]

    run(go())


@pytest.mark.parametrize("words", [{"failures_to_open": 0}, {"recover_after": 0}, {"successes_to_close": 0}])
def test_settings_that_make_no_sense_are_refused(words: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        CircuitSettings(**words)
