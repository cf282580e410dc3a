"""One line decides who may call now, from what it knows and the time that it is handed; nothing that is taken is lost."""

import asyncio
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from sameas.llm.account import AccountState, Ending, Granted, LocalAccount, RateLimits, Wait
from sameas.llm.admission import (
    APART,
    FIRST_TOGETHER,
    HEAD_START,
    Admission,
    AskAccount,
    Call,
    GiveBack,
    Go,
    Refuse,
    RunCalls,
)
from sameas.llm.budget import SpendingLimit, TokenBudgetService
from sameas.llm.circuit import Change
from sameas.llm.errors import BudgetSpent, CircuitOpen, HeldBack, TooManyWaiting
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import ModelError
from sameas.llm.timeouts import StageTimeout, paused, within
from tests.unit.extraction.clock import run_jumping

from .calls import limiter_here

GRANT = Granted(id="1", tokens=1)


def line(**words: Any) -> Admission:
    return Admission(**{"longest_pause": 300.0, "max_waiting": 100, **words})


def calls(run: RunCalls, count: int = 1, **words: Any) -> list[Call]:
    return [Call(run, tokens=1, stage="grounding", **words) for _ in range(count)]


def entered(admission: Admission, *some: Call, now: float = 0.0) -> None:
    for call in some:
        admission.enter(call, now)


def gone(admission: Admission, now: float = 0.0) -> list[Call]:
    """Those whom the line lets go at that time, with an account that takes everybody."""
    went = []
    while isinstance(decision := admission.next(now), AskAccount):
        answer = admission.answered(decision.call, GRANT, now)
        assert isinstance(answer, Go)
        went.append(answer.call)
    return went


def test_nobody_waits_in_an_empty_line() -> None:
    assert line().next(0.0) is None


def test_a_run_that_has_enough_under_way_keeps_nobody_else_from_going() -> None:
    admission, busy, other = line(), RunCalls("busy", at_once=1), RunCalls("other")
    mine, theirs = calls(busy, 3), calls(other, 2)
    entered(admission, *mine, *theirs)
    assert gone(admission) == [mine[0], *theirs]
    assert admission.waiting == 0
    assert admission.next(0.0) == Wait(seconds=None, reason=None)
    mine[0].give_place_back(1.0)
    assert gone(admission, 1.0) == [mine[1]]


def test_who_waits_for_the_account_keeps_its_turn() -> None:
    admission = line()
    large, small = calls(RunCalls("large")), calls(RunCalls("small"))
    entered(admission, *large, *small)
    full = Wait(seconds=20.0, reason="tokens")
    for now in (0.0, 5.0):
        assert admission.next(now) == AskAccount(large[0])
        assert admission.answered(large[0], full, now) == full
    assert gone(admission, 20.0) == [*large, *small]


def test_runs_that_come_together_take_turns_whoever_was_quickest() -> None:
    admission, one, other = line(), RunCalls("one"), RunCalls("other")
    first, *more = calls(one, 3)
    entered(admission, first)
    assert gone(admission) == [first]
    entered(admission, *more, now=0.001)
    theirs = calls(other)
    entered(admission, *theirs, now=0.002)
    assert gone(admission, 0.002) == [*theirs, *more]


def test_nothing_is_taken_before_all_of_it_can_be_had() -> None:
    budget = TokenBudgetService(1_000, cost_limit=Decimal(1))
    admission, run = line(), RunCalls("run", at_once=1, budget=budget)
    (call,) = calls(run, cost=Decimal("0.5"))
    entered(admission, call)
    assert admission.next(0.0) == AskAccount(call)
    admission.answered(call, Wait(seconds=1.0, reason="requests"), 0.0)
    assert (budget.reserved, budget.spending.reserved, run.free) == (0, 0, 1)
    assert gone(admission, 1.0) == [call]
    assert (budget.reserved, budget.spending.reserved, run.free) == (1, Decimal("0.5"), 0)
    admission.ended(call, error=None, is_answered=False)
    assert (budget.reserved, budget.spending.reserved, run.free) == (0, 0, 0)
    call.give_place_back(2.0)
    call.give_place_back(2.0)
    assert run.free == 1


def test_a_call_that_the_account_lets_through_after_it_left_is_given_back() -> None:
    admission = line()
    (call,) = calls(RunCalls("run"))
    entered(admission, call)
    assert admission.next(0.0) == AskAccount(call)
    admission.leave(call)
    assert admission.answered(call, GRANT, 0.1) == GiveBack(GRANT)
    assert admission.next(0.1) is None


def test_money_that_was_spent_elsewhere_while_a_store_was_asked_is_not_spent_twice() -> None:
    spending = SpendingLimit(Decimal(1))
    budget = TokenBudgetService(1_000, spending=spending)
    admission = line()
    (call,) = calls(RunCalls("run", budget=budget), cost=Decimal(1))
    entered(admission, call)
    assert admission.next(0.0) == AskAccount(call)
    spending.settle(Decimal(0), Decimal("0.5"))
    assert admission.answered(call, GRANT, 0.1) == GiveBack(GRANT)
    refused = admission.next(0.1)
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, BudgetSpent)


def test_money_that_others_have_only_set_aside_is_waited_for_where_it_comes_back() -> None:
    spending = SpendingLimit(Decimal(1))
    spending.reserve(Decimal("0.8"))
    admission = line()
    (call,) = calls(RunCalls("run", budget=TokenBudgetService(1_000, spending=spending)), cost=Decimal("0.5"))
    entered(admission, call)
    assert admission.next(0.0) == Wait(seconds=None, reason=None)
    assert admission.short_of == {spending}
    looks: list[str] = []
    spending.when_settled(lambda: looks.append("again"))
    spending.settle(Decimal("0.8"), Decimal("0.1"))
    spending.settle(Decimal(0), Decimal("0.1"))
    assert looks == ["again"]
    assert gone(admission) == [call]


def test_what_can_never_be_paid_is_refused_before_it_waits() -> None:
    run = RunCalls("run", budget=TokenBudgetService(1_000, cost_limit=Decimal(1)))
    with pytest.raises(BudgetSpent):
        entered(line(), *calls(run, cost=Decimal(2)))


def test_a_models_first_call_goes_a_moment_ahead() -> None:
    admission = line()
    first, *others = calls(RunCalls("run"), 3, model="new")
    entered(admission, first, *others)
    assert gone(admission) == [first]
    wait = admission.next(0.1)
    assert isinstance(wait, Wait)
    assert (wait.seconds, wait.reason) == (pytest.approx(HEAD_START - 0.1), None)
    assert gone(admission, HEAD_START) == others
    admission.ended(first, error=None, is_answered=True)
    assert admission.known_models == {"new"}


def test_what_ends_a_models_first_call_for_good_ends_those_who_wait_for_it() -> None:
    admission = line()
    (first,), others = calls(RunCalls("one"), model="gone"), calls(RunCalls("other"), 2, model="gone")
    entered(admission, first, *others)
    assert gone(admission) == [first]
    admission.ended(first, error=ModelError("no such model", code="not_found"), is_answered=False)
    for call in others:
        refused = admission.next(0.1)
        assert isinstance(refused, Refuse)
        assert (refused.call, getattr(refused.error, "code", "")) == (call, "not_found")


@pytest.mark.parametrize(
    ("wait", "error"),
    [
        (Wait(seconds=20.0, reason="requests", asked_by_server=True), HeldBack),
        (Wait(seconds=5.0, reason="server", down_for=6.0), CircuitOpen),
    ],
)
def test_a_server_is_not_waited_for_longer_than_anybody_should(wait: Wait, error: type[Exception]) -> None:
    admission = line(longest_pause=10.0)
    (call,) = calls(RunCalls("run"))
    entered(admission, call)
    assert admission.next(0.0) == AskAccount(call)
    refused = admission.answered(call, wait, 0.0)
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, error)
    assert admission.next(0.0) is None


def test_the_line_has_a_bound_for_those_who_wait_for_the_account() -> None:
    admission = line(max_waiting=2)
    run = RunCalls("run", at_once=1)
    entered(admission, *calls(run, 5))
    entered(admission, *calls(RunCalls("other")))
    with pytest.raises(TooManyWaiting):
        entered(admission, *calls(RunCalls("third")))


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_everybody_goes_or_leaves_and_nothing_is_left_behind(seed: int) -> None:
    """Line and account together, on a clock of numbers: no event loop, no store."""
    chance, now = Random(seed), 0.0
    limits = RateLimits(requests_per_minute=30, tokens_per_minute=300, max_concurrent=3)
    admission, account = line(max_waiting=10**6), AccountState(limits, window=60.0)
    budget = TokenBudgetService(10**6)
    runs = [RunCalls(f"run {number}", at_once=number or None, budget=budget) for number in range(4)]
    waiting = [Call(chance.choice(runs), tokens=chance.randrange(60), stage="grounding") for _ in range(80)]
    coming = list(waiting)
    under_way: list[Call] = []
    while coming or under_way or admission.next(now) is not None:
        for call in coming[: chance.randrange(5)]:
            coming.remove(call)
            admission.enter(call, now)
        while (decision := admission.next(now)) is not None:
            if isinstance(decision, AskAccount):
                call = decision.call
                decision = admission.answered(call, account.admit(call.tokens, now), now)
            if not isinstance(decision, Go):
                assert isinstance(decision, Wait)
                break
            under_way.append(decision.call)
            assert len(under_way) <= 3
        for call in [call for call in under_way if chance.random() < 0.5]:
            under_way.remove(call)
            admission.ended(call, error=None, is_answered=True)
            assert call.grant is not None
            account.finish(call.grant, Ending(verdict="answered", tokens=call.tokens), now)
            call.give_place_back(now)
        now += chance.choice([0.0, 0.01, 1.0, 9.0])
    assert all(call.grant is not None for call in waiting)
    assert (len(account.calls), budget.reserved, admission.waiting) == (0, 0, 0)
    assert [run.free for run in runs[1:]] == [1, 2, 3]


# How calls of a run follow each other, driven by a limiter.


def now() -> float:
    return asyncio.get_running_loop().time()


def plenty() -> CentralRateLimiterService:
    return limiter_here(requests_per_minute=10**6, tokens_per_minute=10**9, max_concurrent=10**6)


async def make(limiter: CentralRateLimiterService, run: RunCalls, *, lasting: float) -> float:
    """Make a call, and say when it began."""
    call = Call(run, tokens=1, model="scripted")
    try:
        async with limiter.slot_for(call):
            began = now()
            await asyncio.sleep(lasting)
    finally:
        limiter.give_place_back(call)
    return began


def test_no_more_calls_are_under_way_than_there_are_places() -> None:
    async def go() -> float:
        limiter, run = plenty(), RunCalls("run", at_once=3)
        await asyncio.gather(*(make(limiter, run, lasting=1) for _ in range(12)))
        return now()

    assert run_jumping(go()) == pytest.approx(4, abs=0.2)


def test_without_a_bound_nobody_waits() -> None:
    async def go() -> float:
        limiter, run = plenty(), RunCalls("run")
        return max(await asyncio.gather(*(make(limiter, run, lasting=1) for _ in range(1_000))))

    assert run_jumping(go()) == 0


@pytest.mark.parametrize("at_once", [0, -1])
def test_there_is_at_least_one_place(at_once: int) -> None:
    with pytest.raises(ValueError, match="at_once"):
        RunCalls("run", at_once=at_once)


def test_calls_begin_a_moment_apart_and_stay_so() -> None:
    async def go() -> list[float]:
        limiter, run = plenty(), RunCalls("run", at_once=4)
        return await asyncio.gather(*(make(limiter, run, lasting=1) for _ in range(16)))

    began = sorted(run_jumping(go()))
    gaps = [later - earlier for earlier, later in zip(began, began[1:], strict=False)]
    assert gaps[:3] == [pytest.approx(APART)] * 3
    assert all(gap >= APART - 1e-9 for gap in gaps)


def test_moments_are_short_beside_calls_that_are_short_themselves() -> None:
    async def go() -> float:
        limiter, run = plenty(), RunCalls("run", at_once=10)
        for _ in range(3):
            await make(limiter, run, lasting=0.002)
        before = now()
        return max(await asyncio.gather(*(make(limiter, run, lasting=0.002) for _ in range(10)))) - before

    assert run_jumping(go()) <= 0.001 + 1e-4


def test_very_many_calls_begin_together_before_it_is_known_how_long_they_take() -> None:
    run = RunCalls("run", at_once=1_000)
    run.begin(0.0)
    wait = run.wait(0.0)
    assert wait is not None
    assert wait.seconds == pytest.approx(FIRST_TOGETHER / 1_000)


class _Far(LocalAccount):
    """An account that takes its time to answer, as a store does."""

    async def admit(self, tokens: int) -> Granted | Wait:
        await asyncio.sleep(0.001)
        answer = await super().admit(tokens)
        await asyncio.sleep(0.001)
        return answer

    async def finish(self, grant: Granted, ending: Ending) -> Change | None:
        await asyncio.sleep(0.001)
        return await super().finish(grant, ending)


def test_what_changes_while_an_account_is_asked_is_not_overlooked() -> None:
    async def go() -> float:
        limiter = CentralRateLimiterService(account=_Far(RateLimits(max_concurrent=1), clock=now))
        limiter.known_models.add("scripted")
        # The first is over after the account was asked for the second, and before it has answered.
        first = asyncio.ensure_future(make(limiter, RunCalls("one"), lasting=0.0005))
        async with asyncio.timeout(60):
            second = await make(limiter, RunCalls("other"), lasting=0)
        return second - await first

    assert run_jumping(go()) < 0.01


@pytest.mark.parametrize("is_far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("seed", range(20))
def test_whoever_is_cancelled_at_whatever_moment_leaves_its_place(seed: int, is_far: bool) -> None:
    async def go() -> tuple[float, int, int, int, int]:
        loop = asyncio.get_running_loop()
        kind, limits = _Far if is_far else LocalAccount, RateLimits(requests_per_minute=10**6, max_concurrent=2)
        account = kind(limits, clock=loop.time)
        chance, limiter = Random(seed), CentralRateLimiterService(account=account)
        limiter.known_models.add("scripted")
        budget = TokenBudgetService(10**6)
        run = RunCalls("run", at_once=3, budget=budget)
        tasks = [asyncio.ensure_future(make(limiter, run, lasting=chance.choice([0, 0.001, 0.5]))) for _ in range(40)]
        for one in tasks:
            loop.call_later(chance.choice([0, APART / 2, APART, 0.01, 0.4, 2]), one.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        # Who left while the account was asked is given back a moment later.
        await asyncio.sleep(1)
        await make(limiter, run, lasting=0)
        return run.free, limiter.held, limiter.waiting, account.in_flight, budget.reserved

    assert run_jumping(go()) == (3, 0, 0, 0, 0)


def test_waiting_for_a_place_and_for_its_moment_is_no_work() -> None:
    async def go() -> str:
        limiter, run = plenty(), RunCalls("run", at_once=1)

        async def work() -> str:
            await make(limiter, run, lasting=0.05)
            return "done"

        async def other() -> None:
            with paused():
                await make(limiter, run, lasting=10)

        first = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        told = await within("grounding", work, limits=StageTimeout(100, 100), on_soft=lambda: None)
        await first
        return told

    assert run_jumping(go()) == "done"


def test_a_place_that_a_closed_loop_left_behind_is_given_back() -> None:
    limiter, run = CentralRateLimiterService(), RunCalls("run", at_once=1)
    call = Call(run, tokens=1)

    async def go() -> None:
        async with limiter.slot_for(call):
            pass

    asyncio.run(go())
    assert run.free == 0
    limiter.give_place_back(call)
    assert run.free == 1
