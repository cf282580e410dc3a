"""Whatever the traffic, no 60 seconds hold more requests or tokens than the limits, and nothing is left behind."""

import asyncio
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.llm.account import GRAIN_SECONDS, WINDOW_SECONDS, Ending, Granted, LocalAccount, RateLimits
from sameas.llm.circuit import CircuitSettings
from sameas.llm.errors import CallRefused
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import ModelError
from tests.unit.extraction.clock import run_jumping


class Traffic(msgspec.Struct, frozen=True):
    """One call: when it comes, what it says, what it does."""

    comes_at: float
    run: str
    estimate: int
    share_used: float
    lasts: float
    end: str
    patience: float


class Sent(msgspec.Struct):
    """What a provider saw: when a call was let through, and what it turned out to use."""

    at: float
    tokens: int
    ended_at: float = 0.0


# In milliseconds, so that a sum of seconds is not lost in a float.
def seconds(most: int) -> st.SearchStrategy[float]:
    return st.integers(0, most * 1000).map(lambda milliseconds: milliseconds / 1000)


# Calls that follow one another within moments are counted together, and the more so around the end of a minute.
IN_BURSTS = st.tuples(st.sampled_from((0, 59, 60, 119)), seconds(1)).map(sum)
MOMENTS = st.integers(0, 90).map(lambda milliseconds: milliseconds / 1000)


LIMITS = st.builds(
    RateLimits,
    requests_per_minute=st.integers(1, 12),
    tokens_per_minute=st.integers(50, 400),
    max_concurrent=st.integers(1, 4),
)
CALLS = st.lists(
    st.builds(
        Traffic,
        comes_at=seconds(150) | IN_BURSTS,
        run=st.sampled_from("abc"),
        estimate=st.integers(0, 60),
        share_used=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
        lasts=seconds(90) | MOMENTS,
        end=st.sampled_from(["reply", "reply", "reply", "server", "rate_limited", "cancelled"]),
        patience=st.sampled_from([5.0, 40.0, 1e6]),
    ),
    max_size=40,
)


def drive(limits: RateLimits, calls: list[Traffic]) -> list[Sent]:
    """The calls that went out, on a clock that jumps."""

    async def go() -> list[Sent]:
        clock = asyncio.get_running_loop().time
        account = LocalAccount(limits, circuit=CircuitSettings(recover_after=10), clock=clock)
        limiter = CentralRateLimiterService(account=account, random=Random(3))
        sent: list[Sent] = []

        async def one(call: Traffic) -> None:
            await asyncio.sleep(call.comes_at)
            async with asyncio.timeout(call.patience):
                async with limiter.slot(call.run, call.estimate) as permit:
                    out = Sent(clock(), call.estimate)
                    sent.append(out)
                    try:
                        await asyncio.sleep(call.lasts)
                        if call.end == "cancelled":
                            raise asyncio.CancelledError
                        if call.end != "reply":
                            raise ModelError("no", code=call.end, retry_after=2.0)  # type: ignore[arg-type]
                        out.tokens = int(call.estimate * call.share_used)
                        permit.reconcile(out.tokens)
                    finally:
                        out.ended_at = clock()

        tasks = [asyncio.create_task(one(call)) for call in calls]
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            allowed = (CallRefused, ModelError, TimeoutError, asyncio.CancelledError)
            assert result is None or isinstance(result, allowed), result
        assert (limiter.waiting, limiter.held, account.in_flight) == (0, 0, 0)
        return sent

    return run_jumping(go())


def windows_of(sent: list[Sent]) -> list[list[Sent]]:
    """The fullest windows are those that end with a call; a window is open at its beginning."""
    return [[one for one in sent if 0 <= round(last.at - one.at, 6) < WINDOW_SECONDS] for last in sent]


@settings(max_examples=150)
@given(limits=LIMITS, calls=CALLS)
def test_no_sixty_seconds_hold_more_than_the_limits(limits: RateLimits, calls: list[Traffic]) -> None:
    calls = [call for call in calls if call.estimate <= limits.tokens_per_minute]
    sent = drive(limits, calls)
    for window in windows_of(sent):
        assert len(window) <= limits.requests_per_minute
        assert sum(one.tokens for one in window) <= limits.tokens_per_minute
    for one in sent:
        beside = [other for other in sent if other.at <= one.at < other.ended_at]
        assert len(beside) <= limits.max_concurrent


@settings(max_examples=100)
@given(
    limits=st.builds(RateLimits, requests_per_minute=st.integers(1, 8), tokens_per_minute=st.integers(10, 40)),
    calls=st.lists(st.tuples(MOMENTS | seconds(40), st.integers(0, 5)), max_size=60),
)
def test_a_burst_waits_until_all_of_it_has_left_the_window_and_only_a_moment_longer(
    limits: RateLimits, calls: list[tuple[float, int]]
) -> None:
    now = 0.0
    account = LocalAccount(limits, clock=lambda: now)
    sent: list[Sent] = []

    async def let_through(tokens: int) -> Granted:
        nonlocal now
        while not isinstance(answer := await account.admit(tokens), Granted):
            assert answer.seconds is not None
            if answer.reason == "requests":
                exactly = sent[-limits.requests_per_minute].at + WINDOW_SECONDS - now
                assert exactly - 1e-6 <= answer.seconds <= exactly + GRAIN_SECONDS + 1e-6
            now += answer.seconds
        return answer

    async def go() -> None:
        nonlocal now
        for gap, tokens in calls:
            now += gap
            grant = await let_through(tokens)
            sent.append(Sent(now, tokens))
            await account.finish(grant, Ending(verdict="answered", tokens=tokens))

    asyncio.run(go())
    for window in windows_of(sent):
        assert len(window) <= limits.requests_per_minute
        assert sum(one.tokens for one in window) <= limits.tokens_per_minute


@settings(max_examples=60)
@given(limits=LIMITS, sizes=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 300)), max_size=30))
def test_a_call_that_used_more_than_it_said_delays_the_next_ones(
    limits: RateLimits, sizes: list[tuple[int, int]]
) -> None:
    async def go() -> None:
        clock = asyncio.get_running_loop().time
        limiter = CentralRateLimiterService(account=LocalAccount(limits, clock=clock))
        sent: list[Sent] = []
        for estimate, actual in sizes:
            async with limiter.slot("run", estimate) as permit:
                known = sum(one.tokens for one in sent if round(clock() - one.at, 6) < WINDOW_SECONDS)
                assert known + estimate <= limits.tokens_per_minute
                sent.append(Sent(clock(), actual))
                permit.reconcile(actual)

    run_jumping(go())


@settings(max_examples=60)
@given(calls=st.lists(st.sampled_from("abcd"), min_size=1, max_size=30))
def test_no_run_gets_two_turns_while_another_waits_for_one(calls: list[str]) -> None:
    order: list[str] = []

    async def one(limiter: CentralRateLimiterService, run: str) -> None:
        async with limiter.slot(run, 1):
            order.append(run)
            await asyncio.sleep(1)

    async def go() -> None:
        account = LocalAccount(
            RateLimits(requests_per_minute=100, max_concurrent=1), clock=asyncio.get_running_loop().time
        )
        limiter = CentralRateLimiterService(account=account)
        await asyncio.gather(*(one(limiter, run) for run in calls))

    run_jumping(go())
    left = {run: calls.count(run) for run in calls}
    waited = dict.fromkeys(left, 0)
    for run in order:
        left[run] -= 1
        waited[run] = 0
        for other in left:
            if other != run and left[other]:
                waited[other] += 1
                assert waited[other] <= len(left)
