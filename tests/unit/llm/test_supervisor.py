"""Memo, budget, limiter, time, model: in this order, with retries inside and everything settled in the end."""

import asyncio
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from sameas.llm.budget import SpendingLimit, TokenBudgetService
from sameas.llm.circuit import CircuitSettings
from sameas.llm.errors import BudgetSpent, CircuitOpen, RequestTooLarge
from sameas.llm.ledger import UsageReport, name_outcome
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, ModelError, Reply, Usage
from sameas.llm.signals import MemoHit, RateLimited, Retrying, Signal
from sameas.llm.supervisor import Backoff, RequestSupervisor
from sameas.llm.timeouts import StageName, StageTimedOutError, StageTimeout, StageTimeoutService, within
from sameas.once.async_engine import AsyncEngine
from sameas.once.store import AsyncStore
from sameas.stores.memory import MemoryBackend
from tests.unit.extraction.clock import run_jumping

from .calls import ScriptedModel, answer, error, limiter_here, question

STAGE: StageName = "entity_extraction"
# Three words and an empty schema go in, at most ten tokens come out.
AT_MOST = 14


def supervisor(
    model: ScriptedModel, limiter: CentralRateLimiterService | None = None, **words: Any
) -> RequestSupervisor:
    return RequestSupervisor(model, limiter=limiter or limiter_here(), run_id="run", random=Random(2), **words)


def now() -> float:
    return asyncio.get_running_loop().time()


async def forever() -> Reply:
    await asyncio.sleep(1e9)
    return answer()


def test_a_reply_is_paid_from_budget_and_window_with_what_it_used() -> None:
    async def go() -> UsageReport:
        budget = TokenBudgetService(4_096, cost_limit=Decimal(1))
        asking = supervisor(ScriptedModel([answer(tokens=(4, 3))]), budget=budget)
        assert (await asking.ask(STAGE, question())).text == "yes"
        assert (budget.used, budget.reserved, budget.cost) == (7, 0, Decimal("0.00001"))
        return asking.usage

    (row,) = run_jumping(go()).rows
    assert (row.stage, row.model, row.calls, row.input_tokens, row.output_tokens) == (STAGE, "scripted", 1, 4, 3)
    assert (row.cost, row.failed, row.memo_hits) == (Decimal("0.00001"), 0, 0)


def test_the_window_counts_what_went_in_and_all_that_might_have_come_out() -> None:
    async def go() -> list[float]:
        # One token went in where four were counted, and ten were allowed to come out.
        asking = supervisor(ScriptedModel([answer(tokens=(1, 0))]), limiter_here(tokens_per_minute=11 + AT_MOST))
        ended = []
        for _ in range(3):
            await asking.ask(STAGE, question())
            ended.append(now())
        return ended

    assert run_jumping(go()) == [0, 0, pytest.approx(60, abs=0.1)]


def test_the_budget_is_asked_before_the_limiter() -> None:
    async def go() -> None:
        limiter = limiter_here(requests_per_minute=1)
        model = ScriptedModel([answer()])
        asking = supervisor(model, limiter, budget=TokenBudgetService(20))
        async with limiter.slot("other", 1):
            pass
        with pytest.raises(BudgetSpent):
            await asking.ask(STAGE, question())
        assert now() < 1
        assert model.calls == 0
        assert asking.stopped_by == {"budget_spent"}

    run_jumping(go())


def test_the_budget_is_exact_to_the_last_reply_when_replies_cost_more_than_reserved() -> None:
    async def go() -> None:
        budget = TokenBudgetService(100)
        asking = supervisor(ScriptedModel([answer(tokens=(20, 19))]), budget=budget)
        await asking.ask(STAGE, question())
        with pytest.raises(BudgetSpent):
            await asking.ask(STAGE, question())
        assert budget.used == 39 == asking.usage.total.tokens

    run_jumping(go())


def test_nobody_is_refused_for_what_others_have_only_set_aside() -> None:
    async def go() -> None:
        # Room for what ten use, and for what one may use at most.
        budget = TokenBudgetService(9 * 7 + AT_MOST, shares={STAGE: 1, "other": 0})

        async def slowly() -> Reply:
            await asyncio.sleep(1)
            return answer(tokens=(4, 3))

        asking = supervisor(ScriptedModel([slowly]), budget=budget)
        await asyncio.gather(*(asking.ask(STAGE, question()) for _ in range(10)))
        assert (budget.used, budget.reserved) == (70, 0)
        with pytest.raises(BudgetSpent):
            await asking.ask(STAGE, question())
        assert asking.usage.total.calls == 10

    run_jumping(go())


def test_money_that_others_of_a_spending_limit_have_set_aside_is_waited_for() -> None:
    async def go() -> None:
        spending = SpendingLimit(Decimal("0.000035"))

        async def slowly() -> Reply:
            await asyncio.sleep(1)
            return answer(tokens=(4, 3))

        both = [
            supervisor(ScriptedModel([slowly]), budget=TokenBudgetService(1_000_000, spending=spending))
            for _ in range(2)
        ]
        await asyncio.gather(*(one.ask(STAGE, question()) for one in both))
        assert (spending.used, spending.reserved) == (Decimal("0.00002"), 0)

    run_jumping(go())


def test_who_waits_for_money_may_leave() -> None:
    async def go() -> None:
        budget = TokenBudgetService(AT_MOST, shares={STAGE: 1, "other": 0})
        asking = supervisor(ScriptedModel([forever]), budget=budget)
        tasks = [asyncio.create_task(asking.ask(STAGE, question())) for _ in range(3)]
        await asyncio.sleep(1)
        tasks[1].cancel()
        await asyncio.sleep(1)
        assert [task.done() for task in tasks] == [False, True, False]
        tasks[0].cancel()
        await asyncio.sleep(1)
        # Cancelled in mid-call: what was sent is spent, and the last has no room for its own.
        assert isinstance(tasks[2].exception(), BudgetSpent)

    run_jumping(go())


def test_a_model_that_takes_long_to_get_ready_is_opened_once() -> None:
    class Late(ScriptedModel):
        opened = 0

        async def open(self) -> None:
            await asyncio.sleep(0.01)
            self.opened += 1

        def count_tokens(self, text: str) -> int:
            assert self.opened == 1
            return super().count_tokens(text)

    async def go() -> None:
        late = Late([answer()])
        asking = supervisor(late)
        await asyncio.gather(*(asking.ask(STAGE, question(str(number))) for number in range(5)))
        assert (late.opened, late.calls) == (1, 5)

    run_jumping(go())


@pytest.mark.parametrize("code", ["auth", "not_found"])
def test_a_model_that_is_not_there_is_one_call_for_everybody(code: str) -> None:
    async def refuse() -> Reply:
        await asyncio.sleep(0.1)
        raise error(code)

    async def go() -> None:
        limiter = limiter_here(max_concurrent=10)
        limiter.known_models.clear()
        model = ScriptedModel([refuse])
        asking = supervisor(model, limiter, at_once=10)
        asks = (asking.ask(STAGE, question(f"number {number}")) for number in range(44))
        results = await asyncio.gather(*asks, return_exceptions=True)
        assert {getattr(result, "code", None) for result in results} == {code}
        assert model.calls == 1

    run_jumping(go())


def test_a_model_that_thinks_long_about_its_first_answer_is_asked_the_rest_meanwhile() -> None:
    async def go() -> None:
        limiter = limiter_here(max_concurrent=10)
        limiter.known_models.clear()
        under_way: list[int] = []

        async def slow() -> Reply:
            under_way.append(len(under_way) + 1)
            await asyncio.sleep(20 if len(under_way) == 1 else 1)
            assert len(under_way) == 10
            return answer()

        asking = supervisor(ScriptedModel([slow] * 10), limiter, at_once=10, attempt_seconds=600)
        await asyncio.gather(*(asking.ask(STAGE, question(f"number {number}")) for number in range(10)))

    run_jumping(go())


def test_an_address_at_which_nobody_ever_answered_is_tried_once() -> None:
    async def go() -> None:
        model = ScriptedModel([error("network")])
        asking = supervisor(model, at_once=10)
        results = await asyncio.gather(*(asking.ask(STAGE, question()) for _ in range(10)), return_exceptions=True)
        assert {getattr(result, "code", None) for result in results} == {"unreachable"}
        assert model.calls == 1
        # One that has answered is waited for.
        known = ScriptedModel([answer(), error("network"), answer()])
        asking = supervisor(known)
        await asking.ask(STAGE, question())
        await asking.ask(STAGE, question("again"))
        assert known.calls == 3

    run_jumping(go())


def test_a_model_that_has_answered_is_there_whatever_a_proxy_says() -> None:
    async def go() -> int:
        model = ScriptedModel([answer(), error("not_found"), answer()])
        asking = supervisor(model)
        await asking.ask(STAGE, question("one"))
        assert (await asking.ask(STAGE, question("two"))).text == "yes"
        return model.calls

    assert run_jumping(go()) == 3


def test_once_a_model_has_answered_it_is_asked_by_all_at_once() -> None:
    async def slow() -> Reply:
        await asyncio.sleep(10)
        return answer()

    async def go() -> float:
        limiter = limiter_here()
        limiter.known_models.clear()
        asking = supervisor(ScriptedModel([slow]), limiter, at_once=5)
        await asyncio.gather(*(asking.ask(STAGE, question(f"number {number}")) for number in range(6)))
        return now()

    assert run_jumping(go()) == pytest.approx(20, abs=0.2)


def test_a_cost_limit_needs_a_price() -> None:
    async def go() -> None:
        supervisor(ScriptedModel([answer()], price=None), budget=TokenBudgetService(100, cost_limit=Decimal(1)))

    with pytest.raises(ValueError, match="that of scripted is not known: limit its tokens instead"):
        run_jumping(go())


def test_money_stops_a_run_cleanly() -> None:
    async def go() -> Decimal:
        budget = TokenBudgetService(1_000_000, cost_limit=Decimal("0.00005"))
        asking = supervisor(ScriptedModel([answer(tokens=(4, 3))]), budget=budget)
        with pytest.raises(BudgetSpent, match="raise the cost limit"):
            for _ in range(10):
                await asking.ask(STAGE, question())
        assert asking.usage.total.cost == budget.cost
        return budget.cost

    assert run_jumping(go()) == Decimal("0.00003")


def test_a_cost_that_is_not_known_is_none_and_never_nothing() -> None:
    async def go() -> UsageReport:
        asking = supervisor(ScriptedModel([answer()], price=None))
        await asking.ask(STAGE, question())
        return asking.usage

    assert run_jumping(go()).total.cost is None


def test_a_failure_that_may_pass_is_tried_again_with_a_jittered_wait() -> None:
    signals: list[Signal] = []

    async def go() -> float:
        model = ScriptedModel([error("server"), error("network", usage=Usage(4, 0, reported=False)), answer()])
        await supervisor(model, on_signal=signals.append).ask(STAGE, question())
        assert model.calls == 3
        return now()

    assert 1.5 <= run_jumping(go()) <= 3
    first, second = signals
    assert isinstance(first, Retrying)
    assert isinstance(second, Retrying)
    assert (first.stage, first.attempt, first.code, first.message) == (STAGE, 2, "server", "it was server")
    assert 500 <= first.wait_ms <= 1_000
    assert 1_000 <= second.wait_ms <= 2_000
    assert (second.attempt, second.code) == (3, "network")


def test_the_last_failure_is_told_when_tries_are_used_up() -> None:
    async def go() -> RequestSupervisor:
        model = ScriptedModel([error("server")])
        asking = supervisor(model)
        with pytest.raises(ModelError, match="it was server"):
            await asking.ask(STAGE, question())
        assert model.calls == 3
        return asking

    asking = run_jumping(go())
    assert asking.stopped_by == {"server"}
    (row,) = asking.usage.rows
    assert (row.calls, row.failed, row.tokens, row.cost) == (3, 3, 0, 0)


@pytest.mark.parametrize("code", ["bad_request", "auth"])
def test_a_failure_that_will_not_pass_is_not_tried_again(code: str) -> None:
    async def go() -> int:
        model = ScriptedModel([error(code)])
        with pytest.raises(ModelError):
            await supervisor(model).ask(STAGE, question())
        return model.calls

    assert run_jumping(go()) == 1


def test_what_a_failed_call_used_counts() -> None:
    async def go() -> None:
        budget = TokenBudgetService(4_096)
        used = Usage(4, 9, reported=True)
        asking = supervisor(ScriptedModel([error("malformed", usage=used), answer(tokens=(4, 3))]), budget=budget)
        await asking.ask(STAGE, question())
        assert (budget.used, budget.reserved) == (20, 0)
        assert (asking.usage.total.calls, asking.usage.total.failed, asking.usage.total.tokens) == (2, 1, 20)

    run_jumping(go())


def test_too_many_waits_at_the_limiter_and_outlasts_the_retries() -> None:
    signals: list[Signal] = []

    async def go() -> float:
        refused = error("rate_limited", retry_after=100.0)
        asking = supervisor(ScriptedModel([*[refused] * 4, answer()]), on_signal=signals.append)
        limits = StageTimeout(45_000, 60_000)
        await within("entity_extraction", lambda: asking.ask(STAGE, question()), limits=limits, on_soft=lambda: None)
        return now()

    assert 400 <= run_jumping(go()) <= 441
    waits = [signal for signal in signals if isinstance(signal, RateLimited)]
    assert [wait.asked_by_server for wait in waits] == [True] * 4
    assert [signal.wait_ms for signal in signals if isinstance(signal, Retrying)] == [100_000] * 4


def test_too_many_without_a_time_slows_the_calls_down_and_loses_none() -> None:
    """A server that takes ten in any minute, asked by one who was told fifty."""
    times: list[float] = []
    refused = 0

    async def serve() -> Reply:
        nonlocal refused
        await asyncio.sleep(0.2)
        if len(times) >= 10 and now() - times[-10] < 60:
            refused += 1
            raise error("rate_limited")
        times.append(now())
        return answer()

    async def go() -> list[Reply]:
        asking = supervisor(ScriptedModel([serve]), at_once=5)
        return await asyncio.gather(*(asking.ask(STAGE, question(f"number {number}")) for number in range(44)))

    assert len(run_jumping(go())) == len(times) == 44
    # Not much slower than the server allows, and not much oftener in vain than in earnest.
    assert times[-1] < 480
    assert refused < 30


def test_too_many_for_ever_is_an_error_in_the_end() -> None:
    async def go() -> int:
        model = ScriptedModel([error("rate_limited")])
        with pytest.raises(ModelError, match="rate_limited"):
            await supervisor(model, unserved_retries=4).ask(STAGE, question())
        return model.calls

    assert run_jumping(go()) == 5


@pytest.mark.parametrize("seconds", [5, 30, 200])
@pytest.mark.parametrize("at_once", [1, 5])
def test_a_server_that_is_down_for_a_while_costs_no_call(seconds: int, at_once: int) -> None:
    async def serve() -> Reply:
        await asyncio.sleep(0.5)
        if 4 < now() < 4 + seconds:
            raise error("overloaded")
        return answer()

    async def go() -> list[Reply]:
        asking = supervisor(ScriptedModel([serve]), limiter_here(circuit=CircuitSettings()), at_once=at_once)
        return await asyncio.gather(*(asking.ask(STAGE, question(f"number {number}")) for number in range(44)))

    assert len(run_jumping(go())) == 44


def test_a_server_that_is_too_busy_for_one_call_in_three_costs_no_call() -> None:
    chance = Random(5)

    async def serve() -> Reply:
        await asyncio.sleep(0.5)
        if chance.random() < 1 / 3:
            raise error("overloaded")
        return answer()

    async def go() -> list[Reply]:
        asking = supervisor(ScriptedModel([serve]), limiter_here(circuit=CircuitSettings()), at_once=5)
        return await asyncio.gather(*(asking.ask(STAGE, question(f"number {number}")) for number in range(200)))

    assert len(run_jumping(go())) == 200


def test_waiting_for_a_server_that_is_too_busy_is_no_work_of_the_stage() -> None:
    async def go() -> float:
        patient = limiter_here(circuit=CircuitSettings(failures_to_open=100))
        asking = supervisor(ScriptedModel([*[error("overloaded")] * 8, answer()]), patient)
        limits = StageTimeout(4_000, 5_000)
        await within("entity_extraction", lambda: asking.ask(STAGE, question()), limits=limits, on_soft=lambda: None)
        return now()

    assert run_jumping(go()) > 20


def test_a_call_that_a_server_is_always_too_busy_for_fails_in_the_end() -> None:
    model = ScriptedModel([])

    async def ask(asked: Ask) -> Reply:
        model.calls += asked.messages[0].content == "number 3"
        await asyncio.sleep(0.5)
        if asked.messages[0].content == "number 3":
            raise error("overloaded")
        return answer()

    async def go() -> list[Any]:
        asking = supervisor(model, unserved_retries=4, at_once=2)
        asks = (asking.ask(STAGE, question(f"number {number}")) for number in range(100))
        return await asyncio.gather(*asks, return_exceptions=True)

    model.ask = ask  # type: ignore[method-assign, assignment]
    assert [type(reply) for reply in run_jumping(go())].count(ModelError) == 1
    assert model.calls == 5


def test_a_question_that_alone_always_fails_is_given_up_after_its_retries() -> None:
    model = ScriptedModel([])

    async def go() -> tuple[int, list[Any]]:
        asking = RequestSupervisor(model, limiter=limiter_here(circuit=CircuitSettings()), at_once=2, random=Random(2))
        replies = await asyncio.gather(
            *(asking.ask(STAGE, question(f"number {number}")) for number in range(10)), return_exceptions=True
        )
        return asking.usage.total.failed, replies

    async def ask(asked: Ask) -> Reply:
        await asyncio.sleep(0.5)
        if asked.messages[0].content == "number 3":
            raise error("server")
        return answer()

    model.ask = ask  # type: ignore[method-assign, assignment]
    failed, replies = run_jumping(go())
    assert failed == 3
    assert [type(reply) for reply in replies].count(ModelError) == 1


def test_a_server_that_stays_down_is_given_up_after_the_longest_pause() -> None:
    async def go() -> set[str]:
        asking = supervisor(ScriptedModel([error("overloaded")]), limiter_here(circuit=CircuitSettings()), at_once=5)
        asks = (asking.ask(STAGE, question(f"number {number}")) for number in range(44))
        await asyncio.gather(*asks, return_exceptions=True)
        assert 240 < now() < 400
        return set(asking.stopped_by)

    assert "circuit_open" in run_jumping(go())


def test_no_try_is_begun_that_the_stage_has_no_time_for() -> None:
    async def slow() -> Reply:
        await asyncio.sleep(1.9)
        raise error("server")

    async def go() -> float:
        asking = supervisor(ScriptedModel([slow]), timeouts=StageTimeoutService({STAGE: StageTimeout(1_950, 2_000)}))
        with pytest.raises(ModelError):
            await asking.ask(STAGE, question())
        return now()

    assert run_jumping(go()) == pytest.approx(1.9, abs=0.01)


def test_a_call_that_is_stuck_is_asked_again_within_the_stages_time() -> None:
    signals: list[Signal] = []

    async def go() -> float:
        model = ScriptedModel([forever, answer()])
        assert (await supervisor(model, on_signal=signals.append).ask(STAGE, question())).text == "yes"
        assert model.calls == 2
        return now()

    # The soft limit of 45 s, then a wait of half a second to a second.
    assert 45.5 <= run_jumping(go()) <= 46
    (again,) = signals
    assert isinstance(again, Retrying)
    assert (again.code, again.attempt) == ("timeout", 2)
    assert "no answer within 45 s" in again.message


def test_an_attempt_may_be_given_a_time_of_its_own() -> None:
    async def go() -> float:
        model = ScriptedModel([forever, forever, answer()])
        await supervisor(model, attempt_seconds=5).ask(STAGE, question())
        return now()

    assert 11.5 <= run_jumping(go()) <= 13


def test_a_model_that_hangs_ends_with_the_stage_and_counts_for_the_circuit() -> None:
    async def go() -> None:
        limiter = limiter_here(longest_pause=0)
        budget = TokenBudgetService(4_096)
        asking = supervisor(ScriptedModel([forever]), limiter, budget=budget)
        for _ in range(2):
            with pytest.raises(StageTimedOutError):
                await asking.ask(STAGE, question())
        assert now() == pytest.approx(120, abs=0.1)
        with pytest.raises(CircuitOpen):
            await asking.ask(STAGE, question())
        assert asking.stopped_by == {"stage_timed_out", "circuit_open"}
        # Each was sent: what went in is counted, as nobody has heard otherwise.
        assert (budget.used, budget.reserved, limiter.held) == (5 * 4, 0, 0)
        assert asking.usage.total.unreported == 5

    run_jumping(go())


def test_a_caller_who_leaves_gives_everything_back_and_says_nothing_about_the_server() -> None:
    async def go() -> None:
        limiter = limiter_here(max_concurrent=1)
        budget = TokenBudgetService(4_096)
        asking = supervisor(ScriptedModel([forever]), limiter, budget=budget)
        for _ in range(6):
            calls = [asyncio.create_task(asking.ask(STAGE, question())) for _ in range(2)]
            await asyncio.sleep(1)
            assert (limiter.held, limiter.waiting, budget.reserved) == (1, 1, AT_MOST)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
            assert (limiter.held, limiter.waiting, budget.reserved) == (0, 0, 0)
        assert budget.used == 6 * 4
        assert await limiter.account.phase() == "closed"

    run_jumping(go())


def test_time_counts_for_those_who_work_while_others_of_the_stage_wait() -> None:
    async def go() -> float:
        asking = supervisor(ScriptedModel([forever]), limiter_here(max_concurrent=1))

        async def work() -> None:
            await asyncio.gather(asking.ask(STAGE, question()), asking.ask(STAGE, question()))

        with pytest.raises(StageTimedOutError):
            await within(STAGE, work, limits=StageTimeout(2_000, 2_000), on_soft=lambda: None)
        return now()

    assert run_jumping(go()) == pytest.approx(2, abs=0.01)


def test_a_bug_in_a_model_is_passed_on_and_nothing_stays_reserved() -> None:
    async def go() -> None:
        limiter, budget = limiter_here(), TokenBudgetService(4_096)
        with pytest.raises(ZeroDivisionError):
            await supervisor(ScriptedModel([ZeroDivisionError()]), limiter, budget=budget).ask(STAGE, question())
        assert (budget.reserved, limiter.held) == (0, 0)

    run_jumping(go())


def test_a_call_that_no_window_holds_is_refused_and_not_counted() -> None:
    async def go() -> None:
        budget = TokenBudgetService(4_096)
        asking = supervisor(ScriptedModel([answer()]), limiter_here(tokens_per_minute=10), budget=budget)
        with pytest.raises(RequestTooLarge):
            await asking.ask(STAGE, question())
        assert (budget.used, budget.reserved) == (0, 0)

    run_jumping(go())


def test_what_is_remembered_costs_nothing_and_is_told() -> None:
    signals: list[Signal] = []

    async def go() -> None:
        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            memo = CallMemo(engine)
            limiter = limiter_here(requests_per_minute=1)
            model = ScriptedModel([answer(tokens=(4, 3))])
            await supervisor(model, limiter, memo=memo).ask(STAGE, question())
            budget = TokenBudgetService(1)
            again = supervisor(model, limiter, memo=memo, budget=budget, on_signal=signals.append)
            assert (await again.ask(STAGE, question())).text == "yes"
            assert (model.calls, budget.used) == (1, 0)
            (row,) = again.usage.rows
            assert (row.calls, row.memo_hits, row.saved_tokens, row.saved_cost) == (0, 1, 7, Decimal("0.00001"))
            assert (row.tokens, row.cost) == (0, 0)

    asyncio.run(go())
    assert signals == [MemoHit(stage=STAGE, model="scripted", tokens=7)]


def test_equal_asks_at_once_are_one_call_and_one_reservation() -> None:
    async def go() -> None:
        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            model = ScriptedModel([answer()])
            budget = TokenBudgetService(4_096)
            asking = supervisor(model, memo=CallMemo(engine), budget=budget)
            replies = await asyncio.gather(*(asking.ask(STAGE, question()) for _ in range(5)))
            assert len({reply.text for reply in replies}) == 1
            assert (model.calls, budget.used, asking.usage.total.memo_hits) == (1, 7, 4)

    asyncio.run(go())


def test_a_failure_is_not_remembered_and_keeps_its_name_through_the_memo() -> None:
    async def go() -> None:
        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            model = ScriptedModel([error("bad_request"), answer()])
            asking = supervisor(model, memo=CallMemo(engine))
            with pytest.raises(ModelError, match="bad_request"):
                await asking.ask(STAGE, question())
            assert (await asking.ask(STAGE, question())).text == "yes"
            with pytest.raises(BudgetSpent):
                await supervisor(model, memo=CallMemo(engine), budget=TokenBudgetService(1)).ask(
                    STAGE, question("another")
                )

    asyncio.run(go())


def test_the_end_of_a_stage_reaches_a_call_through_the_memo() -> None:
    async def go() -> None:
        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            limiter, budget = CentralRateLimiterService(), TokenBudgetService(4_096)
            asking = supervisor(ScriptedModel([forever]), limiter, memo=CallMemo(engine), budget=budget)
            limits = StageTimeout(10, 10)
            for _ in range(5):
                with pytest.raises(StageTimedOutError):
                    await within(STAGE, lambda: asking.ask(STAGE, question()), limits=limits, on_soft=lambda: None)
            assert (limiter.held, limiter.waiting, budget.reserved) == (0, 0, 0)
            # How many were sent before their time was up depends on the machine, and each of those counts.
            assert budget.used == 4 * asking.usage.total.calls

    asyncio.run(go())


def test_a_stage_that_does_not_exist_is_refused() -> None:
    async def go() -> None:
        await supervisor(ScriptedModel([answer()])).ask("guessing", question())

    with pytest.raises(ValueError, match="no such stage: guessing"):
        run_jumping(go())


def test_a_former_name_still_works_and_warns() -> None:
    async def go() -> int:
        model = ScriptedModel([error("rate_limited")])
        with pytest.warns(DeprecationWarning, match="unserved_retries="):
            asking = supervisor(model, patience=1)
        with pytest.raises(ModelError):
            await asking.ask(STAGE, question())
        return model.calls

    assert run_jumping(go()) == 2


@pytest.mark.parametrize("words", [{"retries": -1}, {"unserved_retries": -1}])
def test_settings_that_make_no_sense_are_refused(words: dict[str, Any]) -> None:
    async def go() -> None:
        supervisor(ScriptedModel([answer()]), **words)

    with pytest.raises(ValueError, match="must not be negative"):
        run_jumping(go())
    with pytest.raises(ValueError, match="first <= longest"):
        Backoff(first=3, longest=2)


def test_outcomes_have_the_five_names() -> None:
    assert name_outcome(entities=0, relations=0, ended_early=False) == "COMPLETE"
    assert name_outcome(entities=2, relations=1, ended_early=True) == "PARTIAL_EARLY_EXIT"
    assert name_outcome(entities=2, relations=0, ended_early=True) == "PARTIAL_ENTITY_ONLY"
    assert name_outcome(entities=0, relations=0, ended_early=True) == "EMPTY"
    assert name_outcome(entities=2, relations=1, ended_early=True, is_fallback=True) == "FALLBACK_CACHE"


def test_the_supervisor_names_how_its_run_ended() -> None:
    async def go() -> None:
        asking = supervisor(ScriptedModel([answer(), error("bad_request")]))
        await asking.ask(STAGE, question())
        assert asking.outcome(entities=3, relations=2) == "COMPLETE"
        with pytest.raises(ModelError):
            await asking.ask("relation_extraction", question())
        assert asking.outcome(entities=3, relations=0) == "PARTIAL_ENTITY_ONLY"

    run_jumping(go())


def test_calls_beyond_those_at_once_wait_ready_and_reserve_nothing() -> None:
    async def go() -> None:
        release = asyncio.Event()

        async def held() -> Reply:
            await release.wait()
            return answer()

        model, budget, limiter = ScriptedModel([held]), TokenBudgetService(4_096), limiter_here(max_concurrent=10)
        asking = supervisor(model, limiter, budget=budget, at_once=2)
        tasks = [asyncio.ensure_future(asking.ask(STAGE, question())) for _ in range(5)]
        await asyncio.sleep(1)
        assert (model.calls, limiter.held, limiter.waiting, budget.reserved) == (2, 2, 0, 2 * AT_MOST)
        tasks[-1].cancel()
        release.set()
        await asyncio.wait(tasks)
        assert (model.calls, limiter.held, budget.reserved, budget.used) == (4, 0, 0, 28)

    run_jumping(go())


def test_a_turn_is_over_when_the_reply_is_kept_and_not_before() -> None:
    """Who is killed in between has one call more to make again than were under way."""
    may_keep = asyncio.Event()

    class SlowMemo(CallMemo):
        async def ask(self, model: str, ask: Ask, call: Any, *, is_valid: Any = None) -> Any:
            async def kept_late() -> Reply:
                reply: Reply = await call()
                await may_keep.wait()
                return reply

            return await super().ask(model, ask, kept_late, is_valid=is_valid)

    async def go() -> None:
        async with AsyncEngine(AsyncStore(MemoryBackend())) as engine:
            model = ScriptedModel([answer()])
            asking = supervisor(model, memo=SlowMemo(engine), at_once=2)
            tasks = [asyncio.ensure_future(asking.ask(STAGE, question(f"number {number}"))) for number in range(5)]
            while model.calls < 2:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert model.calls == 2
            tasks[0].cancel()
            may_keep.set()
            await asyncio.wait(tasks)
            assert model.calls == 5

    asyncio.run(go())


def test_waiting_for_a_turn_is_no_work_of_the_stage() -> None:
    async def go() -> list[str]:
        async def slow() -> Reply:
            await asyncio.sleep(8)
            return answer()

        limits = StageTimeoutService({"entity_extraction": StageTimeout(9_000, 10_000)})
        asking = supervisor(ScriptedModel([slow]), at_once=1, timeouts=limits)
        return [reply.text for reply in await asyncio.gather(*(asking.ask(STAGE, question()) for _ in range(3)))]

    assert run_jumping(go()) == ["yes"] * 3


def test_a_call_that_failed_gives_its_turn_to_the_next_while_it_waits() -> None:
    async def go() -> tuple[float, float]:
        ended: list[float] = []
        asking = supervisor(ScriptedModel([error(), answer()]), at_once=1, backoff=Backoff(first=8, longest=8))

        async def one() -> None:
            await asking.ask(STAGE, question())
            ended.append(now())

        await asyncio.gather(one(), one())
        return ended[0], ended[1]

    first, second = run_jumping(go())
    assert first < 1
    assert second >= 4


def test_a_key_that_is_refused_is_refused_to_those_who_wait_for_a_turn() -> None:
    async def go() -> None:
        model, limiter = ScriptedModel([error("auth"), answer()]), limiter_here()
        asking = supervisor(model, limiter, at_once=1, budget=TokenBudgetService(4_096))
        told = await asyncio.gather(*(asking.ask(STAGE, question()) for _ in range(3)), return_exceptions=True)
        assert [getattr(one, "code", "") for one in told] == ["auth"] * 3
        assert (model.calls, limiter.held) == (1, 0)
        assert asking.usage.total.calls == 1

    run_jumping(go())


def test_at_once_must_be_positive() -> None:
    async def go() -> None:
        with pytest.raises(ValueError, match="at_once"):
            supervisor(ScriptedModel([answer()]), at_once=0)

    run_jumping(go())
