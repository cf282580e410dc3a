"""An estimate asks nobody, counts what would be sent, and leaves out what is remembered."""

import asyncio
from decimal import Decimal

import msgspec
import pytest

from sameas import open_async_store
from sameas.extraction.chunking import ChunkSettings
from sameas.extraction.pipeline import Pipeline
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.extraction.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.prompted.estimate import Estimate, Estimator
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo
from sameas.llm.models import Ask, Reply, Usage
from sameas.llm.prices import Price
from sameas.llm.windows import RateLimits
from sameas.once.async_engine import AsyncEngine
from tests.servers.model_oracle import Oracle, Seen
from tests.unit.extraction.company import company_index

INDEX = company_index()
SETTINGS = PipelineSettings(chunking=ChunkSettings(window=20, limit=400))
TEXT = "\n\n".join(f"Person{number} Stone works for Acme{number} Robotics." for number in range(5))
ORACLE = Oracle(
    [(f"Person{number} Stone", "works for", f"Acme{number} Robotics") for number in range(5)],
)


class LocalModel:
    """Answers from the oracle and counts what it was asked."""

    def __init__(self, name: str = "local:oracle", *, price: int = 1, tokens_each: int = 1) -> None:
        self.name = name
        self.price = Price(input=Decimal(price), output=Decimal(2 * price))
        self._tokens_each = tokens_each
        self.asked = 0
        self.tokens = 0

    def count_tokens(self, text: str) -> int:
        return (len(text) // 4 + 1) * self._tokens_each

    async def ask(self, ask: Ask) -> Reply:
        self.asked += 1
        answer = ORACLE.answer(ask.schema_name, Seen.of(ask.messages[0].content, ask.messages[1].content))
        text = msgspec.json.encode(answer).decode()
        return Reply(text, Usage(100, 10, reported=True), "stop", self.name)

    async def close(self) -> None:
        pass


async def estimated(model: LocalModel, *, run_first: bool, second: LocalModel | None = None, **prompts) -> Estimate:
    async with open_async_store("memory://") as store:
        memo = CallMemo(AsyncEngine(store))
        control = ModelControl(
            limiter=CentralRateLimiterService(RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9)), memo=memo
        )
        extractor = ModelExtractor(
            INDEX, model, control=control, settings=PromptSettings(**prompts), grounding_model=second
        )
        if run_first:
            await Pipeline(index=INDEX, extractor=extractor, settings=SETTINGS).run(TEXT, key="k")
        return await Estimator(INDEX, extractor, settings=SETTINGS, memo=memo).estimate(TEXT)


def test_nothing_is_asked_and_every_call_is_counted() -> None:
    model = LocalModel()
    estimate = asyncio.run(estimated(model, run_first=False))
    assert model.asked == 0
    assert (estimate.chunks, estimate.total.calls, estimate.total.known) == (5, 10, 0)
    assert estimate.total.input_tokens > 0
    assert estimate.cost is not None
    assert estimate.most_cost is not None
    assert Decimal(0) < estimate.cost < estimate.most_cost


def test_samples_multiply_the_calls_and_joint_extraction_halves_them() -> None:
    assert asyncio.run(estimated(LocalModel(), run_first=False, samples=3)).total.calls == 30
    assert asyncio.run(estimated(LocalModel(), run_first=False, mode="joint")).total.calls == 5


def test_what_is_remembered_costs_nothing() -> None:
    model = LocalModel()
    estimate = asyncio.run(estimated(model, run_first=True))
    assert model.asked == 10
    assert (estimate.total.calls, estimate.total.known, estimate.cost) == (0, 10, Decimal(0))


@pytest.mark.parametrize("mode", ["two-stage", "joint"])
def test_a_second_model_has_its_own_price_and_its_own_count(mode: str) -> None:
    alone = asyncio.run(estimated(LocalModel(), run_first=False, mode=mode))
    second = LocalModel("local:second", price=100, tokens_each=2)
    both = asyncio.run(estimated(LocalModel(), run_first=False, second=second, mode=mode))
    checked = next(stage for stage in both.stages if stage.stage == "grounding")
    assert (checked.model, checked.calls) == ("local:second", 5)
    assert checked.cost == second.price.cost(input_tokens=checked.input_tokens, output_tokens=checked.output_tokens)
    assert both.cost == alone.cost + checked.cost
    equal = asyncio.run(estimated(LocalModel(), run_first=False, second=LocalModel("local:second"), mode=mode))
    assert checked.input_tokens > 1.5 * equal.stages[-1].input_tokens


@pytest.mark.parametrize("mode", ["two-stage", "joint"])
def test_what_a_second_model_said_is_remembered_too(mode: str) -> None:
    first, second = LocalModel(), LocalModel("local:second", price=100)
    estimate = asyncio.run(estimated(first, run_first=True, second=second, mode=mode))
    assert second.asked == 5
    assert (estimate.total.calls, estimate.total.known, estimate.cost) == (0, first.asked + 5, Decimal(0))
