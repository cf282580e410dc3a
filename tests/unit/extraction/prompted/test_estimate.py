"""An estimate asks nobody, counts what would be sent, and leaves out what is remembered."""

import asyncio
from decimal import Decimal

import msgspec
import pytest

from sameas import open_async_store
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.extractors.prompted.settings import ExtractionMode
from sameas.extraction.pipeline.estimate import Estimate, Estimator
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.account import RateLimits
from sameas.llm.circuit import CircuitSettings
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.memo import CallMemo, call_key
from sameas.llm.models import Ask, ModelError, Reply, Usage
from sameas.llm.prices import Price
from sameas.llm.supervisor import Backoff
from sameas.llm.tokens import count_input
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

    def __init__(
        self, name: str = "local:oracle", *, price: int = 1, tokens_each: int = 1, oracle: Oracle = ORACLE
    ) -> None:
        self.name = name
        self._oracle = oracle
        self.price = Price(input=Decimal(price), output=Decimal(2 * price))
        self._tokens_each = tokens_each
        self.asked = 0
        self.tokens = 0

    def count_tokens(self, text: str) -> int:
        return (len(text) // 4 + 1) * self._tokens_each

    async def ask(self, ask: Ask) -> Reply:
        self.asked += 1
        answer = self._oracle.answer(ask.schema_name, Seen.of(ask.messages[0].content, ask.messages[1].content))
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
def test_a_second_model_has_its_own_price_and_its_own_count(mode: ExtractionMode) -> None:
    alone = asyncio.run(estimated(LocalModel(), run_first=False, mode=mode))
    second = LocalModel("local:second", price=100, tokens_each=2)
    both = asyncio.run(estimated(LocalModel(), run_first=False, second=second, mode=mode))
    checked = next(stage for stage in both.stages if stage.stage == "grounding")
    assert (checked.model, checked.calls) == ("local:second", 5)
    assert checked.cost == second.price.cost(input_tokens=checked.input_tokens, output_tokens=checked.output_tokens)
    assert alone.cost is not None
    assert checked.cost is not None
    assert both.cost == alone.cost + checked.cost
    equal = asyncio.run(estimated(LocalModel(), run_first=False, second=LocalModel("local:second"), mode=mode))
    assert checked.input_tokens > 1.5 * equal.stages[-1].input_tokens


@pytest.mark.parametrize("mode", ["two-stage", "joint"])
def test_what_a_second_model_said_is_remembered_too(mode: str) -> None:
    first, second = LocalModel(), LocalModel("local:second", price=100)
    estimate = asyncio.run(estimated(first, run_first=True, second=second, mode=mode))
    assert second.asked == 5
    assert (estimate.total.calls, estimate.total.known, estimate.cost) == (0, first.asked + 5, Decimal(0))


class CostlyModel(LocalModel):
    """Takes all that it may: each call fails as often as it is tried again, and each reply is cut and asked for again."""

    def __init__(self, *, failures: int) -> None:
        super().__init__()
        self._failures = failures
        self._failed: dict[str, int] = {}

    async def ask(self, ask: Ask) -> Reply:
        self.asked += 1
        whole = Usage(count_input(ask, count=self.count_tokens), ask.max_output_tokens, reported=True)
        key = call_key(self.name, ask)
        self._failed[key] = self._failed.get(key, 0) + 1
        if self._failed[key] <= self._failures:
            raise ModelError("it broke off", code="malformed", usage=whole)
        if "could not be used" not in ask.messages[-1].content:
            return Reply('{"entities":[{"na' + "x" * 3000, whole, "stop", self.name)
        seen = Seen.of(ask.messages[0].content, ask.messages[1].content)
        told = ORACLE.answer(ask.schema_name, seen)
        if ask.schema_name == "EntityReply":
            # Every word of a name is a thing of its own too, with a class of a long name; verbs are left to say facts.
            names = {word.strip(".") for word in seen.text.split() if word[0].isupper()}
            told = {"entities": [*told["entities"], *({"name": name, "type": 1} for name in names)], "values": []}
        return Reply(msgspec.json.encode(told).decode(), whole, "stop", self.name)


@pytest.mark.parametrize("mode", ["two-stage", "joint"])
@pytest.mark.parametrize("with_second", [False, True])
def test_no_run_costs_more_than_an_estimate_calls_the_most(mode: ExtractionMode, with_second: bool) -> None:
    async def go() -> tuple[Estimate, Decimal, int]:
        model, second = CostlyModel(failures=2), CostlyModel(failures=2) if with_second else None
        if second is not None:
            second.name = "local:second"
        limits = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9)
        circuit = CircuitSettings(failures_to_open=10**6)
        limiter = CentralRateLimiterService(limits, circuit=circuit)
        control = ModelControl(limiter=limiter, backoff=Backoff(first=0.001, longest=0.001))
        extractor = ModelExtractor(
            INDEX, model, control=control, settings=PromptSettings(mode=mode), grounding_model=second
        )
        estimate = await Estimator(INDEX, extractor, settings=SETTINGS).estimate(TEXT)
        done = await Pipeline(index=INDEX, extractor=extractor, settings=SETTINGS).run(TEXT, key="k")
        assert done.outcome == "COMPLETE"
        assert second is None or second.asked > 0
        return (
            estimate,
            sum((row.cost or Decimal(0) for row in done.usage), Decimal(0)),
            sum(row.calls for row in done.usage),
        )

    estimate, cost, calls = asyncio.run(go())
    assert estimate.most_cost is not None
    assert estimate.cost is not None
    assert estimate.cost < cost <= estimate.most_cost
    assert calls <= estimate.total.most_calls


def test_a_joint_reply_has_room_for_names_and_facts() -> None:
    two, joint = PromptSettings(), PromptSettings(mode="joint")
    assert (two.max_output_tokens, two.repair_output_tokens) == (600, 1800)
    assert (joint.max_output_tokens, joint.repair_output_tokens) == (1800, 3600)
    own = PromptSettings(mode="joint", max_output_tokens=5000)
    assert (own.max_output_tokens, own.repair_output_tokens) == (5000, 5000)
