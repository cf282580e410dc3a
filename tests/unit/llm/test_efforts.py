"""What each provider's models can be told about thinking: our table is what the providers' clients know."""

import pytest

from sameas.extraction.extractors.prompted import PromptSettings
from sameas.llm.address import parse_address
from sameas.llm.efforts import ROOM_FOR_THOUGHTS, check_effort, thinking_of, usual_effort
from sameas.llm.prices import load_prices

OPENAI = (
    *("gpt-4o", "gpt-4.1-mini", "gpt-5", "gpt-5-mini", "gpt-5-nano-2025-08-07", "gpt-5-pro", "gpt-5-chat-latest"),
    *(
        "gpt-5.1-chat-latest",
        "gpt-5.2-pro",
        "gpt-6.1-sol",
        "gpt-6-astra",
        "o1",
        "o3",
        "o4-mini",
        "gpt-5.1",
        "gpt-6-luna",
    ),
)
ANTHROPIC = (
    *("claude-3-7-sonnet-latest", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-6"),
    *(
        "claude-opus-4-7",
        "claude-sonnet-5",
        "claude-opus-5",
        "claude-opus-5-5",
        "claude-haiku-5-5",
        "claude-sonnet-5-5",
    ),
)
GOOGLE = (
    *("gemini-1.5-pro", "gemini-2.0-flash", "gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview"),
    *("gemini-3.1-pro-preview", "gemini-3.5-flash"),
)
OURS = {"minimal", "low", "medium", "high"}


def thinking(name):
    return thinking_of(parse_address(name))


@pytest.mark.parametrize("model", OPENAI)
def test_openai_s_models_take_what_their_client_knows(model):
    from pydantic_ai.providers.openai import OpenAIProvider

    profile, found = OpenAIProvider.model_profile(model), thinking(f"openai:{model}")
    assert bool(found.efforts) is profile.get("supports_thinking", False)
    assert found.always is profile.get("thinking_always_enabled", False)
    known = profile.get("openai_reasoning_efforts")
    # Where the client pins nothing, the least is not taken: it went with the models that can be told not to think.
    assert set(found.efforts) == (OURS & known if known else set(found.efforts) - {"minimal"})


@pytest.mark.parametrize("model", ANTHROPIC)
def test_anthropic_s_models_take_what_their_client_knows(model):
    from pydantic_ai.providers.anthropic import AnthropicProvider

    profile, found = AnthropicProvider.model_profile(model), thinking(f"anthropic:{model}")
    assert found.always is profile.get("thinking_always_enabled", False)
    adapts = profile["anthropic_supports_adaptive_thinking"]
    assert set(found.efforts) == (OURS - {"minimal"} if adapts else OURS)


@pytest.mark.parametrize("model", GOOGLE)
def test_google_s_models_take_what_their_client_knows(model):
    from pydantic_ai.profiles.google import google_model_profile

    profile, found = google_model_profile(model), thinking(f"google:{model}")
    assert profile is not None
    assert bool(found.efforts) is profile["supports_thinking"]
    assert found.always is profile.get("thinking_always_enabled", False)
    levels = {level.lower() for level in profile.get("google_thinking_levels", ())}
    assert set(found.efforts) == (levels or (OURS if found.efforts else set()))


def test_thoughts_have_more_room_than_the_clients_give_them():
    from pydantic_ai.profiles.anthropic import ANTHROPIC_THINKING_BUDGET_MAP

    for effort, room in ROOM_FOR_THOUGHTS.items():
        assert ANTHROPIC_THINKING_BUDGET_MAP[effort] < room
        assert PromptSettings(effort=effort).max_output_tokens == 600 + room
    # The most that Gemini 2.5 is given.
    assert ROOM_FOR_THOUGHTS["high"] > 24_576
    with pytest.raises(ValueError, match="at least 2201 with effort low"):
        PromptSettings(effort="low", max_output_tokens=2_200)


@pytest.mark.parametrize(
    ("name", "effort", "said"),
    [
        ("openai:gpt-4.1", "low", "does not think before it answers; leave the effort out"),
        ("openai:o3", "minimal", "it takes low or medium or high"),
        ("openai:gpt-5-pro", "low", "it takes high"),
        ("anthropic:claude-opus-5", "minimal", "it takes low or medium or high"),
        ("google:gemini-2.5-flash-lite", "minimal", "it takes low or medium or high"),
        ("google:gemini-3-pro-preview", "medium", "it takes low or high"),
        ("google:gemini-2.0-flash", "high", "does not think"),
        ("ollama:gpt-oss:20b", "minimal", "it takes low or medium or high"),
    ],
)
def test_what_a_model_does_not_take_is_refused_with_what_it_takes(name, effort, said):
    with pytest.raises(ValueError, match=said):
        check_effort(parse_address(name), effort)


def test_models_that_cannot_stop_thinking_have_room_for_it_without_being_told():
    least = {name: usual_effort(parse_address(name)) for name in load_prices().models}
    assert {name: one for name, one in least.items() if one} == {
        "openai:gpt-6.1-sol": "low",
        "anthropic:claude-opus-5-5": "low",
        "google:gemini-3.1-pro-preview": "low",
    }
    assert usual_effort(parse_address("http://localhost:8000/v1#any")) is None
