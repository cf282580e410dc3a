"""Whatever changes what a model is asked changes the key of the extraction."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.extractors.prompted import questions as questions_module
from sameas.extraction.extractors.prompted.questions import Prompt, PromptName, prompt
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.llm.limiter import CentralRateLimiterService
from tests.unit.extraction.company import EX, company_index
from tests.unit.llm.calls import ScriptedModel, answer

INDEX = company_index()
EXAMPLE = Example("Anna Stone works for Acme Ltd.", (Triple("Anna Stone", EX + "worksFor", "Acme Ltd"),))


def params(
    *, name: str = "scripted", examples: Sequence[Example] = (), second: str | None = None, **settings: Any
) -> str:
    models = [ScriptedModel([answer()]) for _ in range(2)]
    models[0].name, models[1].name = name, second or ""
    extractor = ModelExtractor(
        INDEX,
        models[0],
        control=ModelControl(limiter=CentralRateLimiterService()),
        settings=PromptSettings(**settings),
        examples=examples,
        grounding_model=models[1] if second else None,
    )
    return msgspec.json.encode(Pipeline(index=INDEX, extractor=extractor).key_params(), order="sorted").decode()


def test_model_mode_samples_examples_and_second_model_are_in_the_key() -> None:
    keys = [
        params(),
        params(name="other"),
        params(mode="joint"),
        params(samples=3),
        params(examples=[EXAMPLE]),
        params(second="judge"),
        params(second="other judge"),
    ]
    assert len(set(keys)) == len(keys)
    assert params() == keys[0]


@pytest.mark.parametrize(("mode", "name"), [("two-stage", "entities"), ("two-stage", "relations"), ("joint", "joint")])
def test_another_version_of_a_prompt_is_another_key(
    monkeypatch: pytest.MonkeyPatch, mode: str, name: PromptName
) -> None:
    before = params(mode=mode)

    def newer(asked: PromptName) -> Prompt:
        found = prompt(asked)
        return msgspec.structs.replace(found, version="999") if asked == name else found

    monkeypatch.setattr(questions_module, "prompt", newer)
    assert params(mode=mode) != before
