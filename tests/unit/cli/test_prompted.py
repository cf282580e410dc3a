"""How long a model of the command line may take, and what becomes of a text when it takes its time."""

import asyncio

import pytest

from sameas.cli.prompted import DeferredModel
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import ChunkSettings
from sameas.llm.limiter import CentralRateLimiterService, usual_limits
from sameas.llm.models import Ask, Reply
from sameas.llm.timeouts import STAGE_TIMEOUTS, timeouts_for
from tests.servers.model_oracle import Oracle
from tests.unit.extraction.clock import run_jumping
from tests.unit.extraction.company import company_index
from tests.unit.extraction.prompted.test_estimate import LocalModel

CHUNKS = 13
INDEX = company_index()


class SlowModel(LocalModel):
    """Takes twenty seconds for each answer, as a model on a laptop does."""

    most_at_once = under_way = 0

    async def ask(self, ask: Ask) -> Reply:
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        await asyncio.sleep(20)
        self.under_way -= 1
        return await super().ask(ask)


@pytest.mark.parametrize("address", ["ollama:qwen3", "http://127.0.0.1:9/v1#x"])
def test_a_server_of_ones_own_has_minutes_for_an_answer_and_is_asked_again_within_its_stage(address: str) -> None:
    attempt = DeferredModel(address, prices="").timeout
    assert attempt is not None
    assert attempt >= 120
    assert DeferredModel(address, prices="", timeout=7).timeout == 7
    for stage in ("entity_extraction", "relation_extraction", "grounding"):
        assert timeouts_for(attempt)[stage].hard_ms > 2_000 * attempt


def test_an_attempt_at_a_providers_model_is_given_up_before_its_stage_is() -> None:
    # None: as long as the soft limit of the stage.
    assert DeferredModel("openai:gpt-5-mini", prices="").timeout is None
    assert all(limit.soft_ms < limit.hard_ms for limit in STAGE_TIMEOUTS.values())


@pytest.mark.parametrize("is_given_more", [True, False], ids=["as the command does", "as a service does"])
def test_a_server_that_takes_twenty_seconds_a_call_answers_for_every_chunk(is_given_more: bool) -> None:
    """One call at a time: who waits for its turn does not use up its stage."""
    text = "\n\n".join(f"Person{number} Stone works for Acme{number} Robotics." for number in range(CHUNKS))
    oracle = Oracle([(f"Person{number} Stone", "works for", f"Acme{number} Robotics") for number in range(CHUNKS)])
    model, own = SlowModel(oracle=oracle), DeferredModel("ollama:qwen3", prices="")
    control = ModelControl(
        limiter=CentralRateLimiterService(usual_limits(own.address)),
        attempt_seconds=own.timeout if is_given_more else None,
    )
    extractor = ModelExtractor(INDEX, model, control=control)
    settings = PipelineSettings(
        chunking=ChunkSettings(window=20, limit=400),
        concurrency=8,
        timeouts=timeouts_for(own.timeout or 0) if is_given_more else STAGE_TIMEOUTS,
    )
    done = run_jumping(Pipeline(index=INDEX, extractor=extractor, settings=settings).run(text, key="k", formats=()))
    assert (done.outcome, len(done.graph.relations)) == ("COMPLETE", CHUNKS)
    assert model.most_at_once == 1
