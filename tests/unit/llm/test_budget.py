"""A request spends what it may and no more, and the sums are exact after every reply."""

from decimal import Decimal
from random import Random

import pytest

from sameas.llm.budget import SHARES, SpendingLimit, TokenBudgetService
from sameas.llm.errors import BudgetSpent
from sameas.llm.signals import BudgetWarning, Signal


def test_the_shares_are_those_of_the_source_document() -> None:
    budget = TokenBudgetService()
    assert budget.total == 4096
    limits = {stage: budget.limit_of(stage) for stage in SHARES}
    assert limits == {
        "entity_extraction": 1433,
        "relation_extraction": 1433,
        "grounding": 614,
        "property_scoping": 327,
        "other": 286,
    }
    assert budget.limit_of("entity_resolution") == 286


def test_a_request_has_4096_tokens_for_each_chunk() -> None:
    assert TokenBudgetService.for_chunks(10).total == 40_960
    assert TokenBudgetService.for_chunks(0).total == 4_096
    assert TokenBudgetService.for_chunks(3, tokens_per_chunk=100).total == 300


def test_a_stage_cannot_reserve_more_than_its_share() -> None:
    budget = TokenBudgetService(1_000)
    budget.reserve("relation_extraction", 350)
    with pytest.raises(
        BudgetSpent, match="relation_extraction may take 1 tokens, and 0 of the 1,000 are left"
    ) as refused:
        budget.reserve("relation_extraction", 1)
    assert (refused.value.stage, refused.value.needed, refused.value.left) == ("relation_extraction", 1, 0)
    assert budget.can_afford("grounding", 150)
    assert not budget.can_afford("grounding", 151)


def test_entity_extraction_borrows_from_other_and_what_it_borrowed_is_gone() -> None:
    budget = TokenBudgetService(1_000)
    budget.reserve("entity_extraction", 400)
    assert budget.left("entity_extraction") == 20
    assert budget.left("chunking") == 20
    budget.reserve("serialization", 20)
    assert budget.left("entity_extraction") == 0
    assert budget.left("other") == 0


def test_what_others_took_cannot_be_borrowed() -> None:
    budget = TokenBudgetService(1_000)
    budget.record_usage("entity_resolution", 65)
    assert budget.left("entity_extraction") == 355
    budget.record_usage("entity_resolution", 20)
    assert budget.left("entity_extraction") == 350
    assert budget.left("relation_extraction") == 350


def test_no_other_stage_borrows() -> None:
    budget = TokenBudgetService(1_000)
    assert budget.left("grounding") == 150
    assert budget.left("property_scoping") == 80


def test_a_reservation_is_settled_with_what_was_really_used() -> None:
    budget = TokenBudgetService(1_000)
    reservation = budget.reserve("grounding", 150)
    assert (budget.used, budget.reserved, budget.remaining) == (0, 150, 850)
    reservation.settle(40)
    assert (budget.used, budget.reserved, budget.remaining) == (40, 0, 960)
    assert budget.left("grounding") == 110
    reservation.settle(40)
    assert budget.used == 40


def test_a_call_that_was_not_made_costs_nothing() -> None:
    budget = TokenBudgetService(1_000)
    budget.reserve("grounding", 150).release()
    assert (budget.used, budget.left("grounding")) == (0, 150)


def test_a_reply_that_cost_more_than_was_reserved_counts_in_full() -> None:
    budget = TokenBudgetService(1_000)
    budget.reserve("entity_extraction", 100).settle(900)
    assert budget.used == 900
    assert budget.left("entity_extraction") == 0
    assert budget.left("relation_extraction") == 100
    with pytest.raises(BudgetSpent):
        budget.reserve("relation_extraction", 101)


def test_the_sums_are_exact_over_any_order_of_calls() -> None:
    random = Random(7)
    budget = TokenBudgetService(50_000)
    open_calls, spent = [], 0
    for _ in range(2_000):
        stage = random.choice([*SHARES, "chunking"])
        tokens = random.randrange(60)
        if budget.can_afford(stage, tokens):
            open_calls.append(budget.reserve(stage, tokens))
        if open_calls and random.random() < 0.6:
            call = open_calls.pop(random.randrange(len(open_calls)))
            actual = random.randrange(90)
            call.settle(actual)
            spent += actual
    for call in open_calls:
        call.settle(3)
        spent += 3
    assert budget.used == spent == sum(budget.used_by_stage.values())
    assert budget.reserved == 0


def test_money_is_limited_as_well() -> None:
    budget = TokenBudgetService(1_000_000, cost_limit=Decimal("0.10"))
    budget.reserve("grounding", 10, cost=Decimal("0.06")).settle(10, cost=Decimal("0.07"))
    assert budget.cost == Decimal("0.07")
    with pytest.raises(BudgetSpent, match=r"may cost 0.04 US dollars and 0.03 are left: raise the cost limit"):
        budget.reserve("grounding", 10, cost=Decimal("0.04"))
    held = budget.reserve("grounding", 10, cost=Decimal("0.03"))
    assert not budget.can_afford("grounding", 1, cost=Decimal("0.01"))
    held.release()
    assert budget.can_afford("grounding", 1, cost=Decimal("0.01"))


def test_a_warning_comes_once_for_a_share_for_the_total_and_for_money() -> None:
    signals: list[Signal] = []
    budget = TokenBudgetService(1_000, cost_limit=Decimal(1), on_signal=signals.append)
    budget.record_usage("grounding", 119)
    assert signals == []
    budget.record_usage("grounding", 1)
    budget.record_usage("grounding", 1)
    assert [(signal.stage, signal.used, signal.limit) for signal in signals if isinstance(signal, BudgetWarning)] == [
        ("grounding", 120, 150)
    ]
    budget.record_usage("relation_extraction", 700, cost=Decimal("0.9"))
    assert {signal.stage for signal in signals if isinstance(signal, BudgetWarning)} == {
        "grounding",
        "relation_extraction",
        "total",
        "cost",
    }


def test_the_first_refusal_of_a_stage_is_a_warning_too() -> None:
    signals: list[Signal] = []
    budget = TokenBudgetService(1_000, on_signal=signals.append)
    for _ in range(3):
        with pytest.raises(BudgetSpent):
            budget.reserve("grounding", 151)
    (warning,) = signals
    assert isinstance(warning, BudgetWarning)
    assert warning.stage == "grounding"
    assert "raise the token limit" in warning.message


def test_a_listener_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(signal: Signal) -> None:
        raise RuntimeError("no ears")

    budget = TokenBudgetService(10, on_signal=fail)
    budget.record_usage("other", 10)
    assert budget.used == 10
    assert "a listener failed at BudgetWarning" in caplog.text


def test_preflight_says_what_a_plan_lacks_and_reserves_nothing() -> None:
    budget = TokenBudgetService(1_000, cost_limit=Decimal("0.5"))
    fitting = budget.preflight({"entity_extraction": 400, "entity_resolution": 20}, cost=Decimal("0.5"))
    assert fitting.fits
    assert fitting.tokens == 420
    lacking = budget.preflight({"entity_extraction": 400, "entity_resolution": 21, "grounding": 200})
    assert lacking.short == {"entity_extraction": 1, "grounding": 50}
    assert not lacking.fits
    assert not budget.preflight({"grounding": 1}, cost=Decimal("0.51")).fits
    assert budget.reserved == 0


def test_an_unknown_cost_does_not_fit_a_limit() -> None:
    assert not TokenBudgetService(1_000, cost_limit=Decimal(1)).preflight({"grounding": 1}).fits
    assert TokenBudgetService(1_000).preflight({"grounding": 1}).fits


def test_only_what_is_under_way_can_be_waited_for() -> None:
    spending = SpendingLimit(Decimal(1))
    mine, other = (TokenBudgetService(100, shares={"other": 1}, spending=spending) for _ in range(2))
    assert not mine.may_afford_later("other", 101)
    mine.reserve("other", 60, cost=Decimal("0.1"))
    assert mine.may_afford_later("other", 101)
    # Tokens are one's own, so that the calls of another give none back; money is everybody's.
    assert not other.may_afford_later("other", 101)
    assert not other.can_afford("other", 10, cost=Decimal("0.95"))
    assert other.may_afford_later("other", 10, cost=Decimal("0.95"))


@pytest.mark.parametrize(
    "words",
    [
        {"total": 0},
        {"shares": {"grounding": 1.0}},
        {"shares": {"other": 0.5, "grounding": 0.6}},
        {"shares": {"other": -0.1}},
        {"cost_limit": Decimal(-1)},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(words: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        TokenBudgetService(**words)  # type: ignore[arg-type]


def test_less_than_nothing_is_refused() -> None:
    budget = TokenBudgetService()
    with pytest.raises(ValueError, match="less than nothing"):
        budget.reserve("grounding", -1)
    with pytest.raises(ValueError, match="less than nothing"):
        budget.record_usage("grounding", -1)
