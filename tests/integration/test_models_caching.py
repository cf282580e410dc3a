"""What providers keep of prompts, what that costs, and how long a model may think."""

from decimal import Decimal
from typing import get_args

import pytest

from sameas.extraction.extractors.prompted import PromptSettings
from sameas.llm.ledger import cost_of
from sameas.llm.memo import call_key
from sameas.llm.models import Effort, ModelError, Usage
from sameas.llm.prices import Price, load_prices
from tests.servers.model_script import says, status
from tests.servers.model_server import ModelServer
from tests.unit.llm.asks import an_ask

from .model_interfaces import GOOD, opened

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("providers")]


async def test_anthropic_is_told_to_keep_a_prompt_that_comes_again(model_server: ModelServer) -> None:
    model_server.rescript(says(GOOD, usage=(100, 10, 80, 0)))
    model = opened(model_server, "anthropic")
    for text in ("Acme.", "Berlin.", "Rome."):
        reply = await model.ask(an_ask(text))
    await model.close()
    marked = ["cache_control" in str(call.body["system"]) for call in model_server.calls]
    assert marked == [False, True, True]
    assert "cache_control" not in str(model_server.calls[-1].body["messages"])
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.reported) == (100, 80, True)


async def test_openai_is_told_which_prompts_are_alike(model_server: ModelServer) -> None:
    model_server.rescript(says(GOOD, usage=(100, 10, 64)))
    model = opened(model_server, "openai")
    replies = [await model.ask(an_ask(text)) for text in ("Acme.", "Berlin.")]
    await model.close()
    first, second = (call.body["prompt_cache_key"] for call in model_server.calls)
    assert first == second
    # What is the same comes first, so that the provider can keep it.
    assert [call.body["messages"][0] for call in model_server.calls][0] == model_server.calls[1].body["messages"][0]
    assert [reply.usage.cached_tokens for reply in replies] == [64, 64]


async def test_other_servers_are_told_nothing_of_caches(model_server: ModelServer) -> None:
    model_server.rescript(says(GOOD))
    model = opened(model_server)
    await model.ask(an_ask())
    await model.close()
    assert "prompt_cache_key" not in model_server.calls[0].body


@pytest.mark.parametrize("told", [(100, 10, 500, 0), (100, 10, -5, 0)])
async def test_a_cache_that_cannot_be_is_not_believed(model_server: ModelServer, told: tuple[int, ...]) -> None:
    model_server.rescript(says(GOOD, usage=told))
    model = opened(model_server, "openai")
    usage = (await model.ask(an_ask())).usage
    await model.close()
    assert 0 <= usage.cached_tokens <= usage.input_tokens


def test_input_from_the_cache_has_its_own_price() -> None:
    price = Price(Decimal(10), Decimal(20), cached=Decimal(1), cache_write=Decimal("12.5"))
    usage = Usage(1_000_000, 0, reported=True, cached_tokens=500_000, cache_write_tokens=100_000)
    assert cost_of(usage, price) == Decimal("0.5") + Decimal("1.25") + 4
    assert price.most(input_tokens=1_000_000, output_tokens=0) == Decimal("12.5")
    assert price.half.cost(input_tokens=1_000_000, output_tokens=1_000_000) == 15
    # Without a price of their own they cost what all input costs.
    assert cost_of(usage, Price(Decimal(10), Decimal(20))) == 10


def test_the_table_has_the_prices_of_caches() -> None:
    haiku, mini = (load_prices().price_of(name) for name in ("anthropic:claude-haiku-4-5", "openai:gpt-5-mini"))
    assert haiku is not None
    assert mini is not None
    assert (haiku.cached, haiku.cache_write, mini.cached) == (Decimal("0.1"), Decimal("1.25"), Decimal("0.025"))


@pytest.mark.parametrize(
    ("interface", "where"),
    [("compatible", "reasoning_effort"), ("ollama", "reasoning_effort"), ("anthropic", "thinking")],
)
async def test_a_model_thinks_as_long_as_it_may(model_server: ModelServer, interface: str, where: str) -> None:
    model_server.rescript(says(GOOD))
    model = opened(model_server, interface)
    await model.ask(an_ask(effort="low", max_output_tokens=4000))
    await model.ask(an_ask(max_output_tokens=4000))
    await model.close()
    thinking, plain = (call.body.get(where) for call in model_server.calls)
    assert thinking is not None
    assert "low" in str(thinking) or thinking["budget_tokens"] < 4000
    assert plain in (None, "none", {"type": "disabled"})


@pytest.mark.parametrize("interface", ["anthropic", "google"])
@pytest.mark.parametrize("effort", get_args(Effort))
async def test_a_budget_for_thoughts_is_smaller_than_the_room_for_them_and_the_reply(
    model_server: ModelServer, interface: str, effort: Effort
) -> None:
    model_server.rescript(says(GOOD))
    model = opened(model_server, interface)
    await model.ask(an_ask(effort=effort, max_output_tokens=PromptSettings(effort=effort).max_output_tokens))
    await model.close()
    body = model_server.calls[-1].body
    if interface == "anthropic":
        budget, room = body["thinking"]["budget_tokens"], body["max_tokens"]
    else:
        config = body["generationConfig"]
        budget, room = config["thinkingConfig"]["thinking_budget"], config["maxOutputTokens"]
    assert 0 < budget <= room - 600


@pytest.mark.parametrize("interface", ["compatible", "ollama"])
async def test_a_server_that_refuses_the_effort_that_somebody_wants_is_not_asked_without_a_word(
    model_server: ModelServer, interface: str
) -> None:
    model_server.rescript(status(400, message="this model does not support thinking"))
    model = opened(model_server, interface)
    with pytest.raises(ModelError, match="It may take no effort 'low': leave it out"):
        await model.ask(an_ask(effort="low"))
    await model.close()
    assert len(model_server.calls) == 1


def test_effort_is_part_of_a_call_and_none_leaves_keys_as_they_were() -> None:
    assert call_key("m", an_ask(effort="low")) != call_key("m", an_ask())
    assert call_key("m", an_ask()) == call_key("m", an_ask(effort=None))
