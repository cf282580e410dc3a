"""What a run may spend: the document's figure for each chunk and what its questions take, or what was asked for."""

from decimal import Decimal

import pytest

from sameas.extraction.events import events
from sameas.extraction.events.bus import Bus
from sameas.extraction.events.journal import MemoryJournal
from sameas.extraction.extractors.prompted.control import ModelControl, announce
from sameas.extraction.extractors.prompted.settings import PromptSettings
from sameas.llm import signals
from sameas.llm.budget import SpendingLimit
from sameas.llm.errors import BudgetSpent
from sameas.llm.ledger import UsageRow
from sameas.llm.limiter import CentralRateLimiterService

ENTITIES, RELATIONS, GROUNDING = "entity_extraction", "relation_extraction", "grounding"


def budget(*, chunks: int = 10, mode="two-stage", with_second: bool = False, spent=(), **options):
    control = ModelControl(limiter=CentralRateLimiterService(), **options)
    return control.budget(PromptSettings(mode=mode), chunks=chunks, with_second=with_second, spent=spent)


def test_each_chunk_has_the_tokens_of_the_source_document() -> None:
    assert budget().total == 4096 * 11


def test_a_budget_that_nobody_set_has_room_for_whatever_is_asked() -> None:
    for tokens in (500, 5_000, 50_000, 500_000):
        one = budget(chunks=1, with_second=True)
        for stage in (ENTITIES, RELATIONS, GROUNDING):
            one.provide(stage, tokens)
            one.reserve(stage, tokens).settle(tokens)


def test_a_reply_beyond_its_bound_does_not_end_a_document_that_nobody_limited() -> None:
    one = budget(chunks=2)
    one.provide(ENTITIES, 1_000)
    one.reserve(ENTITIES, 1_000).settle(90_000)
    for stage in (ENTITIES, RELATIONS):
        one.provide(stage, 1_000)
        one.reserve(stage, 1_000).settle(900)
    limited = budget(max_tokens=5_000)
    limited.reserve(ENTITIES, 1_000).settle(90_000)
    with pytest.raises(BudgetSpent):
        limited.reserve(ENTITIES, 1_000)


def test_a_limit_that_was_asked_for_is_the_limit() -> None:
    limited = budget(max_tokens=777, max_cost=Decimal("0.5"))
    assert (limited.total, limited.cost_limit) == (777, Decimal("0.5"))
    limited.provide(ENTITIES, 5_000)
    assert limited.total == 777


@pytest.mark.parametrize(
    ("mode", "with_second", "planned"),
    [
        ("joint", False, {ENTITIES: 1000}),
        ("two-stage", False, {ENTITIES: 500, RELATIONS: 500}),
        ("two-stage", False, {ENTITIES: 740, RELATIONS: 260}),
        ("two-stage", False, {ENTITIES: 100, RELATIONS: 900}),
        ("joint", True, {ENTITIES: 500, GROUNDING: 500}),
        ("two-stage", True, {ENTITIES: 400, RELATIONS: 400, GROUNDING: 200}),
    ],
)
def test_a_limit_of_what_is_needed_is_enough_whatever_the_stages_take_of_it(mode, with_second, planned) -> None:
    limited = budget(mode=mode, with_second=with_second, max_tokens=1000)
    for stage, tokens in planned.items():
        limited.reserve(stage, tokens).settle(tokens)


def test_a_stage_leaves_something_for_those_after_it() -> None:
    limited = budget(max_tokens=1000)
    with pytest.raises(BudgetSpent):
        limited.reserve(ENTITIES, 800)
    assert limited.left(ENTITIES) == 750
    limited.reserve(ENTITIES, 700).settle(700)
    assert (limited.left(ENTITIES), limited.left(RELATIONS)) == (50, 300)


def test_what_earlier_attempts_spent_counts_against_what_was_set() -> None:
    spent = [UsageRow(stage=ENTITIES, model="m", calls=3, input_tokens=300, output_tokens=60, cost=Decimal("0.4"))]
    limited = budget(max_tokens=1000, max_cost=Decimal("0.5"), spent=spent)
    assert (limited.used, limited.cost) == (360, Decimal("0.4"))
    with pytest.raises(BudgetSpent):
        limited.reserve(ENTITIES, 10, cost=Decimal("0.2"))
    assert budget(spent=spent).used == 0


def test_several_runs_spend_from_one_limit() -> None:
    spending = SpendingLimit(Decimal(1))
    one, other = budget(spending=spending), budget(spending=spending)
    one.reserve(ENTITIES, 10, cost=Decimal("0.7"))
    with pytest.raises(BudgetSpent, match=r"0\.3 are left"):
        other.reserve(ENTITIES, 10, cost=Decimal("0.4"))


@pytest.mark.parametrize(
    "options", [{"max_tokens": 0}, {"max_cost": Decimal(-1)}, {"max_cost": Decimal(1), "spending": SpendingLimit()}]
)
def test_limits_that_cannot_be_are_refused(options) -> None:
    with pytest.raises(ValueError, match=r"must|one of the two"):
        budget(**options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 0},
        {"temperature": 3.0},
        {"sample_temperature": 0.0},
        {"minimum_agreement": 0.0},
        {"examples": -1},
        {"max_output_tokens": -1},
        {"max_output_tokens": 500, "repair_output_tokens": 100},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="must"):
        PromptSettings(**wrong)


@pytest.mark.parametrize(
    ("signal", "kind", "fields"),
    [
        (
            signals.RateLimited(run_id="r", wait_ms=200, reason="tokens", asked_by_server=True),
            events.RateLimited,
            {"wait_ms": 200, "reason": "tokens", "asked_by_server": True},
        ),
        (
            signals.BudgetWarning(stage="total", used=80, limit=100, message="most is used"),
            events.BudgetWarning,
            {"used": 80, "limit": 100},
        ),
        (
            signals.Retrying(stage="grounding", attempt=2, wait_ms=50, code="server", message="500"),
            events.ErrorRecoverable,
            {"stage": "grounding"},
        ),
        (signals.CircuitOpened(failures=5, retry_after_ms=120_000), events.ErrorRecoverable, {"stage": None}),
        (
            signals.MemoHit(stage="grounding", model="m", tokens=7),
            events.CacheHit,
            {"source": "model_call", "items": 7},
        ),
        (signals.CircuitClosed(), None, {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_signal_becomes_its_event(signal, kind, fields) -> None:
    journal = MemoryJournal()
    announce(signal, Bus("r", journal=journal))
    found = list(journal.read())
    assert [type(event) for event in found] == ([] if kind is None else [kind])
    for name, value in fields.items():
        assert getattr(found[0], name) == value
