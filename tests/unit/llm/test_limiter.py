"""The limiter waits instead of failing, holds a slot while the call lasts, and is fair between runs."""

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from random import Random
from typing import Any

import pytest

import sameas.llm
from sameas.llm.account import GRAIN_SECONDS, Ending, Granted, LocalAccount, RateLimits, Wait
from sameas.llm.circuit import Change, CircuitBreaker, CircuitSettings
from sameas.llm.errors import (
    CircuitOpen,
    HeldBack,
    LimitsUnreachable,
    RequestTooLarge,
    TooManyWaiting,
)
from sameas.llm.limiter import CentralRateLimiterService, Permit
from sameas.llm.models import ModelError, Usage
from sameas.llm.signals import CircuitClosed, CircuitOpened, RateLimited, Signal
from sameas.llm.timeouts import StageTimeout, within
from sameas.once.errors import StoreUnavailable
from tests.unit.extraction.clock import run_jumping

from .calls import error, limiter_here

ONE = Ending(verdict="answered", tokens=1)


def now() -> float:
    return asyncio.get_running_loop().time()


async def call(limiter: CentralRateLimiterService, *, run: str = "run", tokens: int = 1, lasting: float = 0.0) -> float:
    """Make a call, and say when it began."""
    async with limiter.slot(run, tokens) as permit:
        began = now()
        await asyncio.sleep(lasting)
        permit.reconcile(tokens)
    return began


def test_the_limits_are_those_of_the_source_document() -> None:
    limits = CentralRateLimiterService().limits
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.max_concurrent) == (50, 100_000, 5)
    settings = CentralRateLimiterService().account.circuit
    assert (settings.failures_to_open, settings.recover_after, settings.successes_to_close) == (5, 120, 2)


def test_the_51st_request_waits_until_the_first_is_a_minute_old() -> None:
    async def go() -> list[float]:
        limiter = limiter_here()
        return await asyncio.gather(*(call(limiter) for _ in range(101)))

    began = sorted(run_jumping(go()))
    assert began[49] < 1
    assert began[50] == pytest.approx(60, abs=0.1)
    assert began[100] == pytest.approx(120, abs=0.1)


@pytest.mark.parametrize("by_tokens", [False, True], ids=["requests", "tokens"])
def test_limits_hold_as_the_server_sees_them_and_nearly_all_of_them_is_used(by_tokens: bool) -> None:
    """A call arrives somewhere between its admission and its end, and that is when the server counts it."""
    random = Random(3)
    limits = {"requests_per_minute": 10**6 if by_tokens else 120, "tokens_per_minute": 12_000 if by_tokens else 10**9}
    arrived: list[tuple[float, int]] = []

    async def one(limiter: CentralRateLimiterService) -> None:
        tokens = random.randrange(50, 150)
        # Estimates are a quarter too high, as for models whose tokens cannot be counted exactly.
        async with limiter.slot("run", tokens * 5 // 4) as permit:
            first, second = random.uniform(0, 0.5), random.uniform(0, 0.5)
            await asyncio.sleep(first)
            arrived.append((now(), tokens if by_tokens else 1))
            await asyncio.sleep(second)
            permit.reconcile(tokens)

    async def go() -> None:
        limiter = limiter_here(max_concurrent=10, **limits)
        await asyncio.gather(*(one(limiter) for _ in range(1_201)))

    run_jumping(go())
    most = 12_000 if by_tokens else 120
    highest = max(sum(what for at, what in arrived if since <= at < since + 60) for since, _ in arrived)
    assert 0.95 * most <= highest <= most
    before_last = [(at, what) for at, what in arrived if at < arrived[-1][0]]
    used = sum(what for _, what in before_last) / (most * (arrived[-1][0] - arrived[0][0]) / 60)
    assert used >= 0.95


def test_tokens_are_limited_too() -> None:
    async def go() -> list[float]:
        limiter = limiter_here(tokens_per_minute=100)
        return [await call(limiter, tokens=40) for _ in range(4)]

    began = run_jumping(go())
    assert began[1] < 1
    assert began[2:] == [pytest.approx(60, abs=0.1), pytest.approx(60, abs=0.1)]


def test_a_slot_is_held_for_as_long_as_the_call_lasts() -> None:
    async def go() -> list[float]:
        limiter = limiter_here(max_concurrent=2)
        return await asyncio.gather(*(call(limiter, lasting=3) for _ in range(6)))

    assert sorted(run_jumping(go())) == [pytest.approx(at, abs=0.1) for at in (0, 0, 3, 3, 6, 6)]


def test_whoever_waits_is_told_how_long_and_why() -> None:
    signals: list[Signal] = []

    async def wait(limiter: CentralRateLimiterService, tokens: int) -> float:
        async with limiter.slot("run-7", tokens, on_signal=signals.append) as permit:
            return permit.waited_seconds

    async def go() -> tuple[float, float]:
        by_tokens = limiter_here(tokens_per_minute=100)
        await call(by_tokens, tokens=90)
        await asyncio.sleep(10)
        by_requests = limiter_here(requests_per_minute=1)
        await call(by_requests)
        await asyncio.sleep(20)
        return await wait(by_tokens, 11), await wait(by_requests, 1)

    assert run_jumping(go()) == (pytest.approx(30, abs=0.1), pytest.approx(10, abs=0.1))
    first, second = signals
    assert isinstance(first, RateLimited)
    assert isinstance(second, RateLimited)
    assert (first.run_id, first.reason, first.wait_ms) == ("run-7", "tokens", pytest.approx(30_000, abs=100))
    assert (second.reason, second.wait_ms) == ("requests", pytest.approx(10_000, abs=100))


def test_one_who_comes_later_is_told_what_is_left_of_the_wait() -> None:
    signals: list[Signal] = []

    async def go() -> None:
        limiter = limiter_here(requests_per_minute=1)
        await call(limiter)
        first = asyncio.create_task(call(limiter))
        await asyncio.sleep(45)
        async with limiter.slot("late", 1, on_signal=signals.append):
            await first

    run_jumping(go())
    assert isinstance(signals[0], RateLimited)
    assert signals[0].wait_ms == pytest.approx(15_000, abs=100)


def test_waiting_for_a_slot_is_told_without_a_time_and_only_once() -> None:
    signals: list[Signal] = []

    async def go() -> None:
        limiter = limiter_here(max_concurrent=1)
        others = [asyncio.create_task(call(limiter, lasting=5)) for _ in range(3)]
        await asyncio.sleep(0.1)
        async with limiter.slot("run", 1, on_signal=signals.append):
            pass
        await asyncio.gather(*others)

    run_jumping(go())
    assert signals == [RateLimited(run_id="run", wait_ms=0, reason="concurrent")]


def test_tokens_that_were_not_used_are_free_again_at_once() -> None:
    async def go() -> float:
        limiter = limiter_here(tokens_per_minute=100)
        async with limiter.slot("run", 90) as permit:
            permit.reconcile(10)
        return await call(limiter, tokens=90)

    assert run_jumping(go()) < 1


def test_tokens_used_beyond_the_estimate_count_in_full() -> None:
    async def go() -> list[float]:
        limiter = limiter_here(tokens_per_minute=100)
        async with limiter.slot("run", 10) as permit:
            permit.reconcile(250)
        return [await call(limiter, tokens=1), await call(limiter, tokens=99)]

    assert run_jumping(go()) == [pytest.approx(60, abs=0.1)] * 2


def test_a_call_larger_than_the_window_is_refused_at_once() -> None:
    async def go() -> None:
        async with limiter_here(tokens_per_minute=100).slot("run", 101):
            pass

    with pytest.raises(RequestTooLarge, match="101 tokens never fits into 100 tokens per minute: make chunks smaller"):
        run_jumping(go())


def test_runs_take_turns_and_inside_a_run_the_first_goes_first() -> None:
    order: list[str] = []

    async def one(limiter: CentralRateLimiterService, run: str, name: str) -> None:
        async with limiter.slot(run, 1):
            order.append(name)
            await asyncio.sleep(1)

    async def go() -> None:
        limiter = limiter_here(max_concurrent=1)
        names = [*(f"a{i}" for i in range(5)), "b0", "b1", "c0"]
        await asyncio.gather(*(one(limiter, name[0], name) for name in names))

    run_jumping(go())
    assert order == ["a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"]


def test_a_large_call_is_not_overtaken_for_ever_by_small_ones() -> None:
    async def go() -> float:
        limiter = limiter_here(tokens_per_minute=100, requests_per_minute=1000)
        await call(limiter, tokens=60)

        async def small() -> None:
            for _ in range(200):
                await call(limiter, run="small", tokens=10)

        others = asyncio.create_task(small())
        began = await call(limiter, run="large", tokens=100)
        others.cancel()
        return began

    assert run_jumping(go()) == pytest.approx(60, abs=0.1)


def test_a_waiter_that_is_cancelled_leaves_nothing_behind() -> None:
    async def go() -> float:
        limiter = limiter_here(max_concurrent=1)
        holder = asyncio.create_task(call(limiter, lasting=10))
        await asyncio.sleep(1)
        waiters = [asyncio.create_task(call(limiter)) for _ in range(3)]
        await asyncio.sleep(1)
        for waiter in waiters[:2]:
            waiter.cancel()
        await asyncio.sleep(1)
        assert limiter.waiting == 1
        await holder
        began = await waiters[2]
        assert (limiter.waiting, limiter.held) == (0, 0)
        return began

    assert run_jumping(go()) == pytest.approx(10, abs=0.1)


class _Leaving(LocalAccount):
    """Cancels a task at the moment it is let through: before it is told, or between being told and going."""

    leaver: asyncio.Task[float] | None = None
    moment = ""

    async def admit(self, tokens: int) -> Granted | Wait:
        answer = await super().admit(tokens)
        if self.leaver is not None and isinstance(answer, Granted):
            if self.moment == "before":
                self.leaver.cancel()
                await asyncio.sleep(0)
            else:
                asyncio.get_running_loop().call_soon(self.leaver.cancel)
            self.leaver = None
        return answer


@pytest.mark.parametrize("moment", ["before", "between"])
def test_one_that_is_cancelled_at_the_moment_it_is_let_through_gives_it_back(moment: str) -> None:
    async def go() -> None:
        account = _Leaving(RateLimits(requests_per_minute=2, max_concurrent=1), clock=now)
        limiter = CentralRateLimiterService(account=account)
        account.moment = moment
        async with limiter.slot("run", 1):
            account.leaver = waiter = asyncio.create_task(call(limiter))
            await asyncio.sleep(1)
        await asyncio.wait([waiter])
        assert waiter.cancelled()
        assert (limiter.waiting, limiter.held, account.in_flight) == (0, 0, 0)
        assert await call(limiter) < 2

    run_jumping(go())


def test_a_call_that_is_cancelled_frees_its_slot_and_stays_counted() -> None:
    async def go() -> float:
        limiter = limiter_here(max_concurrent=1, tokens_per_minute=100)
        holder = asyncio.create_task(call(limiter, tokens=90, lasting=1_000))
        await asyncio.sleep(1)
        holder.cancel()
        await asyncio.sleep(0.1)
        assert limiter.held == 0
        assert await call(limiter, tokens=10) < 2
        return await call(limiter, tokens=90)

    # It may have arrived until the moment it was cancelled.
    assert run_jumping(go()) == pytest.approx(61, abs=0.1)


def test_a_call_that_ends_after_its_minute_leaves_the_count_right() -> None:
    async def go() -> list[float]:
        limiter = limiter_here(tokens_per_minute=100)
        async with limiter.slot("run", 90) as permit:
            await asyncio.sleep(70)
            permit.reconcile(10)
        return [await call(limiter, tokens=60) for _ in range(2)]

    assert run_jumping(go()) == [pytest.approx(70, abs=0.1), pytest.approx(130, abs=0.1)]


def test_what_is_kept_of_the_last_minute_does_not_grow_with_the_calls() -> None:
    moment = 0.0
    account = LocalAccount(RateLimits(requests_per_minute=10**6, tokens_per_minute=10**6), clock=lambda: moment)

    async def calls(count: int, *, over: float) -> int:
        nonlocal moment
        tracemalloc.start()
        try:
            for _ in range(count):
                moment += over / count
                admitted = await account.admit(1000 + count)
                assert isinstance(admitted, Granted)
                await account.finish(admitted, ONE)
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    few = asyncio.run(calls(1_000, over=60))
    assert asyncio.run(calls(10_000, over=60)) < 1.1 * few < 200_000


def test_a_steady_stream_passes_out_of_the_window_as_steadily() -> None:
    moment = 0.0
    account = LocalAccount(RateLimits(requests_per_minute=100, max_concurrent=200), clock=lambda: moment)

    async def go() -> None:
        nonlocal moment
        for _ in range(100):
            moment += 0.05
            grant = await account.admit(1)
            assert isinstance(grant, Granted)
            await account.finish(grant, ONE)
        answer = await account.admit(1)
        assert isinstance(answer, Wait)
        assert answer.seconds == pytest.approx(60 - 99 * 0.05, abs=GRAIN_SECONDS)

    asyncio.run(go())


def test_a_call_that_was_never_made_takes_nobodys_place() -> None:
    moment = 0.0
    account = LocalAccount(RateLimits(requests_per_minute=2, tokens_per_minute=10), clock=lambda: moment)

    async def go() -> None:
        nonlocal moment
        grants = [await account.admit(5), await account.admit(5)]
        for grant in grants:
            assert isinstance(grant, Granted)
            await account.finish(grant, Ending(verdict="withdrawn"))
        moment = 30.0
        grants = [await account.admit(5), await account.admit(5)]
        for grant in grants:
            assert isinstance(grant, Granted)
            # While calls are under way nobody knows when their minute begins.
            assert await account.admit(5) == Wait(seconds=None, reason="requests")
        for grant in grants:
            assert isinstance(grant, Granted)
            await account.finish(grant, Ending(verdict="answered", tokens=5))
        assert await account.admit(5) == Wait(seconds=60.0, reason="requests")

    asyncio.run(go())


class _Slow(LocalAccount):
    """Takes a while to be told that a call has ended."""

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        await asyncio.sleep(1)
        return await super().finish(grant, ending)


def test_a_cancellation_while_a_slot_is_given_back_does_not_keep_it() -> None:
    async def go() -> None:
        account = _Slow(clock=now)
        holder = asyncio.create_task(call(CentralRateLimiterService(account=account), lasting=5))
        await asyncio.sleep(1)
        holder.cancel()
        await asyncio.sleep(0.5)
        holder.cancel()
        await asyncio.wait([holder])
        assert (holder.cancelled(), account.in_flight) == (True, 1)
        await asyncio.sleep(1)
        assert account.in_flight == 0

    run_jumping(go())


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async def go() -> float:
        limiter = limiter_here()
        async with limiter.slot("run", 1) as permit, limiter.slot("run", 1) as other:
            permit.failed(error("rate_limited", retry_after=1.0))
            other.failed(error("rate_limited", retry_after=20.0))
        return await call(limiter)

    assert run_jumping(go()) >= 20


def test_retry_after_is_obeyed_by_every_run_and_never_early() -> None:
    async def go() -> list[float]:
        limiter = limiter_here()
        with pytest.raises(ModelError):
            async with limiter.slot("run", 1):
                raise error("rate_limited", retry_after=20.0)
        return list(await asyncio.gather(call(limiter, run="a"), call(limiter, run="b")))

    for began in run_jumping(go()):
        assert 20 < began <= 22.1


def test_too_many_without_a_time_waits_longer_each_time_until_a_call_succeeds() -> None:
    async def refuse(limiter: CentralRateLimiterService) -> float:
        async with limiter.slot("run", 1) as permit:
            permit.failed(error("rate_limited"))
        return now()

    async def go() -> list[float]:
        limiter = limiter_here()
        began = [await refuse(limiter) for _ in range(4)]
        began += [await call(limiter), await refuse(limiter), await call(limiter)]
        return [later - earlier for earlier, later in zip(began, began[1:], strict=False)]

    gaps = run_jumping(go())
    for gap, least in zip(gaps, (1, 2, 4, 8, 0, 1), strict=True):
        assert least <= gap <= least * 1.11


def test_a_pause_longer_than_anybody_should_wait_is_an_error_with_the_time() -> None:
    async def go() -> float:
        limiter = limiter_here(longest_pause=60)
        async with limiter.slot("run", 1) as permit:
            permit.failed(error("overloaded", retry_after=3_600.0))
        with pytest.raises(HeldBack, match="longest_pause is 60 s") as held:
            await call(limiter)
        assert held.value.retry_after is not None
        await asyncio.sleep(held.value.retry_after)
        return await call(limiter)

    assert run_jumping(go()) >= 3_600


@pytest.mark.parametrize("nonsense", [float("nan"), float("inf"), -5.0, 0.0])
def test_a_retry_after_that_makes_no_sense_is_not_obeyed(nonsense: float) -> None:
    async def go() -> float:
        limiter = limiter_here()
        async with limiter.slot("run", 1) as permit:
            permit.failed(error("server", retry_after=nonsense))
        return await call(limiter)

    assert run_jumping(go()) < 1


def test_five_failures_open_the_circuit_and_those_who_wait_go_on_when_the_server_is_back() -> None:
    signals: list[Signal] = []

    async def go() -> list[float]:
        limiter = limiter_here(max_concurrent=1)

        async def fail() -> None:
            async with limiter.slot("run", 1, on_signal=signals.append):
                await asyncio.sleep(1)
                raise error("server")

        async def succeed() -> float:
            async with limiter.slot("run", 1, on_signal=signals.append):
                return now()

        failing = [asyncio.create_task(fail()) for _ in range(5)]
        waiting = [asyncio.create_task(succeed()) for _ in range(3)]
        assert [type(result) for result in await asyncio.gather(*failing, return_exceptions=True)] == [ModelError] * 5
        began = await asyncio.gather(*waiting)
        assert await limiter.account.phase() == "closed"
        return began

    assert run_jumping(go()) == [pytest.approx(125, abs=0.1)] * 3
    told = [signal for signal in signals if not isinstance(signal, RateLimited) or signal.reason == "server"]
    assert told == [
        CircuitOpened(failures=5, retry_after_ms=120_000),
        *[RateLimited(run_id="run", wait_ms=120_000, reason="server")] * 3,
        CircuitClosed(),
    ]


def test_a_server_that_stays_down_is_waited_for_as_long_as_for_any_pause_and_no_longer() -> None:
    async def go() -> tuple[list[float], float]:
        limiter = limiter_here(max_concurrent=1)
        sent: list[float] = []

        async def fail() -> None:
            async with limiter.slot("run", 1):
                sent.append(now())
                raise error("server")

        for _ in range(7):
            with pytest.raises(ModelError):
                await fail()
        with pytest.raises(CircuitOpen):
            await fail()
        return sent, now()

    sent, ended = run_jumping(go())
    assert sent == [0, 0, 0, 0, 0, pytest.approx(120, abs=0.1), pytest.approx(240, abs=0.2)]
    # Another pause would end 360 seconds after it went down.
    assert ended == pytest.approx(240, abs=0.2)


def test_with_no_pause_allowed_an_open_circuit_refuses_at_once() -> None:
    async def go() -> float:
        limiter = limiter_here(longest_pause=0)
        for _ in range(5):
            async with limiter.slot("run", 1) as permit:
                permit.failed(error("server"))
        with pytest.raises(CircuitOpen):
            await call(limiter)
        return now()

    assert run_jumping(go()) == 0


def test_six_failures_in_a_blip_count_once_and_close_nothing() -> None:
    async def go() -> tuple[str, float]:
        limiter = limiter_here(max_concurrent=6, circuit=CircuitSettings())

        async def fail(after: float) -> None:
            await asyncio.sleep(after)
            with pytest.raises(ModelError):
                async with limiter.slot("run", 1):
                    await asyncio.sleep(0.05)
                    raise error("overloaded")

        await asyncio.gather(*(fail(0.07 * number) for number in range(6)))
        return await limiter.account.phase(), await call(limiter)

    assert run_jumping(go()) == ("closed", pytest.approx(0.4, abs=0.1))


def test_half_open_sends_one_call_and_the_others_wait_for_its_result() -> None:
    async def go() -> list[float]:
        limiter = limiter_here()
        for _ in range(5):
            async with limiter.slot("run", 1) as permit:
                permit.failed(error("network"))
        await asyncio.sleep(120)
        return await asyncio.gather(*(call(limiter, lasting=7) for _ in range(4)))

    assert sorted(run_jumping(go())) == [pytest.approx(at, abs=0.1) for at in (120, 127, 134, 134)]


def test_a_probe_that_finds_no_slot_is_not_kept_from_the_next() -> None:
    async def go() -> float:
        limiter = limiter_here(max_concurrent=2)
        long = asyncio.create_task(call(limiter, lasting=130))
        second = asyncio.create_task(call(limiter, lasting=130))
        await asyncio.sleep(0.1)
        circuit = limiter.account.state.circuit  # type: ignore[attr-defined]
        for number in range(5):
            circuit.failed(circuit.enter(f"other {number}", now()), now())
        await asyncio.sleep(121)
        began = await call(limiter)
        await asyncio.gather(long, second)
        return began

    assert run_jumping(go()) == pytest.approx(130, abs=0.2)


def test_those_who_waited_for_a_probe_that_failed_wait_for_the_next() -> None:
    async def go() -> list[Any]:
        limiter = limiter_here()
        for _ in range(5):
            async with limiter.slot("run", 1) as permit:
                permit.failed(error("network"))
        await asyncio.sleep(120)

        async def probe() -> None:
            async with limiter.slot("run", 1):
                await asyncio.sleep(3)
                raise error("network")

        return list(await asyncio.gather(probe(), call(limiter), call(limiter), return_exceptions=True))

    failed, *began = run_jumping(go())
    assert isinstance(failed, ModelError)
    assert began == [pytest.approx(243, abs=0.1)] * 2


def test_bad_requests_and_too_many_do_not_open_the_circuit() -> None:
    async def go() -> str:
        limiter = limiter_here()
        for code in ["bad_request"] * 6 + ["rate_limited"] * 6:
            async with limiter.slot("run", 1) as permit:
                permit.failed(error(code))
        return await limiter.account.phase()

    assert run_jumping(go()) == "closed"


def test_a_failed_call_counts_in_full_because_the_server_was_asked_for_all_of_it() -> None:
    async def go() -> tuple[float, float]:
        limiter = limiter_here(tokens_per_minute=100)
        with pytest.raises(ModelError):
            async with limiter.slot("run", 90):
                raise error("malformed", usage=Usage(5, 5, reported=True))
        first = await call(limiter, tokens=80)
        with pytest.raises(ModelError):
            async with limiter.slot("run", 10):
                raise error("network", usage=Usage(15, 5, reported=True))
        return first, await call(limiter, tokens=10)

    first, second = run_jumping(go())
    assert first == pytest.approx(60, abs=0.1)
    assert second == pytest.approx(120, abs=0.1)


def test_waiting_does_not_use_up_the_time_of_the_stage() -> None:
    async def go() -> float:
        limiter = limiter_here(requests_per_minute=1)
        await call(limiter)
        limits = StageTimeout(1_000, 2_000)
        return await within("grounding", lambda: call(limiter, lasting=1.5), limits=limits, on_soft=lambda: None)

    assert run_jumping(go()) == pytest.approx(60, abs=0.1)


def test_the_queue_is_bounded() -> None:
    async def go() -> None:
        limiter = limiter_here(max_concurrent=1, max_waiting=2)
        calls = [asyncio.create_task(call(limiter, lasting=1))]
        await asyncio.sleep(0.1)
        calls += [asyncio.create_task(call(limiter)) for _ in range(2)]
        await asyncio.sleep(0.1)
        with pytest.raises(TooManyWaiting, match="try again later"):
            await call(limiter)
        await asyncio.gather(*calls)

    run_jumping(go())


class _Silent(LocalAccount):
    """A store that does not answer at the moment named."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    async def admit(self, tokens: int) -> Granted | Wait:
        if self._at == "admit":
            raise StoreUnavailable
        return await super().admit(tokens)

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        if self._at == "finish":
            raise StoreUnavailable
        return await super().finish(grant, ending)


def test_limits_that_cannot_be_asked_let_nobody_through() -> None:
    limiter = CentralRateLimiterService(account=_Silent("admit"))
    with pytest.raises(LimitsUnreachable, match="does not answer") as refused:
        run_jumping(call(limiter))
    assert isinstance(refused.value.__cause__, StoreUnavailable)
    assert (limiter.waiting, limiter.held) == (0, 0)


def test_a_reply_is_not_lost_because_its_end_could_not_be_told(caplog: pytest.LogCaptureFixture) -> None:
    limiter = CentralRateLimiterService(account=_Silent("finish"))
    run_jumping(call(limiter))
    assert limiter.held == 0
    assert "could not be told" in caplog.text


def test_one_limiter_serves_one_loop_after_another_and_keeps_count() -> None:
    seconds = [0.0]
    limiter = CentralRateLimiterService(
        account=LocalAccount(RateLimits(requests_per_minute=2), clock=lambda: seconds[0])
    )
    asyncio.run(call(limiter))
    asyncio.run(call(limiter))

    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await call(limiter)

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    seconds[0] = 60.0
    asyncio.run(call(limiter))


def test_two_loops_at_once_are_refused() -> None:
    async def other(limiter: CentralRateLimiterService) -> None:
        await call(limiter)

    async def go() -> None:
        limiter = limiter_here()
        async with limiter.slot("run", 1):
            with pytest.raises(RuntimeError, match="another event loop"):
                await asyncio.to_thread(asyncio.run, other(limiter))

    asyncio.run(go())


def test_a_limiter_keeps_nothing_of_those_who_called() -> None:
    about: ContextVar[object] = ContextVar("about")

    class Kept:
        """What a run knows."""

    async def one(limiter: CentralRateLimiterService) -> weakref.ref[Kept]:
        kept = Kept()
        about.set(kept)
        await call(limiter)
        return weakref.ref(kept)

    async def go() -> None:
        limiter = limiter_here()
        kept = await asyncio.create_task(one(limiter))
        await asyncio.sleep(1)
        gc.collect()
        assert kept() is None
        assert await call(limiter) < 2

    run_jumping(go())


def test_limits_are_given_once() -> None:
    with pytest.raises(ValueError, match="belong to the account"):
        CentralRateLimiterService(RateLimits(), account=LocalAccount())
    with pytest.raises(ValueError, match="at least 1"):
        RateLimits(max_concurrent=0)
    with pytest.raises(ValueError, match="less than nothing"):
        run_jumping(call(CentralRateLimiterService(), tokens=-1))


def test_a_permit_knows_whose_it_is() -> None:
    @asynccontextmanager
    async def slot() -> AsyncIterator[Permit]:
        limiter = CentralRateLimiterService(circuit=CircuitBreaker())
        async with limiter.slot("run-1", 12) as permit:
            yield permit

    async def go() -> tuple[str, int, float]:
        async with slot() as permit:
            with pytest.raises(ValueError, match="less than nothing"):
                permit.reconcile(-1)
            return permit.run_id, permit.estimated_tokens, permit.waited_seconds

    assert run_jumping(go()) == ("run-1", 12, 0.0)


def test_calls_that_were_under_way_together_and_are_refused_without_a_hint_make_one_pause() -> None:
    async def go() -> tuple[float, float]:
        limiter = limiter_here(max_concurrent=4)
        loop = asyncio.get_running_loop()

        async def refused(after: float) -> None:
            with pytest.raises(ModelError):
                async with limiter.slot("run", 1):
                    await asyncio.sleep(after)
                    raise error("rate_limited")

        async def wait() -> float:
            began = loop.time()
            async with limiter.slot("run", 1) as permit:
                permit.reconcile(1)
            return loop.time() - began

        await asyncio.gather(*(refused(0.01 * number) for number in range(4)))
        first = await wait()
        # Refused again after a pause, it is twice as long.
        await asyncio.gather(refused(0.0), refused(0.0))
        await refused(0.0)
        return first, await wait()

    first, later = run_jumping(go())
    assert 0.9 < first < 1.2
    assert 1.9 < later < 2.3


def test_a_call_that_a_closed_loop_left_behind_is_not_counted_in_the_next() -> None:
    limiter = CentralRateLimiterService(RateLimits(max_concurrent=2))

    async def begin() -> None:
        left = asyncio.ensure_future(call(limiter, lasting=100))
        left._log_destroy_pending = False  # type: ignore[attr-defined]
        while not limiter.held:
            await asyncio.sleep(0)

    async def go() -> tuple[int, int]:
        async with limiter.slot("run", 1):
            gc.collect()
            inside = limiter.held
        return inside, limiter.held

    abandoned = asyncio.new_event_loop()
    abandoned.run_until_complete(begin())
    abandoned.close()
    del abandoned
    assert asyncio.run(go()) == (1, 0)
    assert asyncio.run(go()) == (1, 0)


def test_former_names_still_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="LocalAccount"):
        former = sameas.llm.LocalWindows
    account = former(RateLimits(max_concurrent=2))
    with pytest.warns(DeprecationWarning, match="account="):
        limiter = CentralRateLimiterService(windows=account)
    assert (former, limiter.account) == (LocalAccount, account)
    settings = CircuitSettings(failures_to_open=7)
    assert CentralRateLimiterService(circuit=CircuitBreaker(settings)).account.circuit == settings
