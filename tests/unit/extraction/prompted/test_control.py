"""What a run may spend: the document's figure for each chunk, or what the prompts need, or what was asked for."""

from decimal import Decimal

import pytest

from sameas.extraction.prompted.control import ModelControl
from sameas.extraction.prompted.settings import PromptSettings
from sameas.llm.limiter import CentralRateLimiterService

SMALL = {"entity_extraction": 1000, "relation_extraction": 1000}


def budget(needed=SMALL, *, chunks: int = 10, mode="two-stage", **options):
    control = ModelControl(limiter=CentralRateLimiterService(), **options)
    return control.budget(PromptSettings(mode=mode), chunks=chunks, needed=needed, on_signal=lambda _: None)


def test_each_chunk_has_the_tokens_of_the_source_document() -> None:
    assert budget().total == 4096 * 11


def test_prompts_that_need_more_get_more() -> None:
    large = budget({"entity_extraction": 3000, "relation_extraction": 3500})
    assert large.total == 10_000 * 11
    assert large.left("relation_extraction") >= 3500


def test_one_chunk_can_always_ask_its_first_question() -> None:
    for tokens in (500, 5_000, 50_000):
        one = budget({"entity_extraction": tokens, "relation_extraction": tokens}, chunks=1)
        one.reserve("entity_extraction", tokens)
        one.reserve("relation_extraction", tokens)


def test_a_limit_that_was_asked_for_is_the_limit() -> None:
    limited = budget(max_tokens=777, max_cost=Decimal("0.5"))
    assert (limited.total, limited.cost_limit) == (777, Decimal("0.5"))


def test_joint_extraction_has_the_shares_of_both_stages() -> None:
    joint = budget(mode="joint", max_tokens=1000)
    assert joint.limit_of("entity_extraction") == 700


@pytest.mark.parametrize("options", [{"max_tokens": 0}, {"max_cost": Decimal(-1)}])
def test_limits_that_cannot_be_are_refused(options) -> None:
    with pytest.raises(ValueError, match="must"):
        budget(**options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 0},
        {"temperature": 3.0},
        {"sample_temperature": 0.0},
        {"minimum_agreement": 0.0},
        {"examples": -1},
        {"max_output_tokens": 0},
        {"max_output_tokens": 500, "repair_output_tokens": 100},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong) -> None:
    with pytest.raises(ValueError, match="must"):
        PromptSettings(**wrong)
