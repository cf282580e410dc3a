"""An ask in the words of pydantic-ai: messages, settings and parameters."""

import hashlib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sameas.llm.links import Link
from sameas.llm.models import Ask, Message
from sameas.llm.usage import schema_text

if TYPE_CHECKING:
    from pydantic_ai import models as provided
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestParameters

_FORMATS_KEPT = 64

# Marks of models that refuse to be told a temperature.
_WITHOUT_TEMPERATURE = ("openai_supports_reasoning", "anthropic_disallows_sampling_settings")

Part: TypeAlias = Literal["json_schema", "json_object", "reasoning_effort"]
"""A part of a request that a server may refuse to be told."""


def request_of(ask: Ask, link: Link, *, timeout: float, refused: frozenset[Part]) -> tuple[Any, Any, Any]:
    """What pydantic-ai takes for an ask: messages, settings, parameters."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.settings import ModelSettings

    model = link.model
    # Reading a text takes no long thoughts, and they would use up the tokens of the reply.
    settings = ModelSettings(
        max_tokens=ask.max_output_tokens, seed=ask.sample, timeout=timeout, thinking=ask.effort or False
    )
    _use_prompt_cache(settings, ask, link)
    if not any(model.profile.get(mark) for mark in _WITHOUT_TEMPERATURE):
        settings["temperature"] = ask.temperature
    # A model that cannot be held to a schema is told of it instead; whoever asks validates either way.
    is_native = bool(model.profile.get("supports_json_schema_output", False))
    extra: dict[str, Any] = {}
    effort = link.effort
    if ask.effort is not None and link.provider in ("ollama", "compatible"):
        effort = ask.effort
    if effort is not None and "reasoning_effort" not in refused:
        extra["reasoning_effort"] = effort
    instruction: tuple[Message, ...] = ()
    parameters = ModelRequestParameters(
        output_mode="native" if is_native else "prompted",
        output_object=OutputObjectDefinition(json_schema=dict(ask.schema), name=ask.schema_name),
        # Nothing is added to what is asked.
        prompted_output_template=False if is_native else None,
        allow_text_output=True,
    )
    if is_native and link.formats is not None:
        # The client goes through every part of a schema at every call, unless it is given as it goes out.
        if "json_schema" not in refused:
            extra["response_format"] = _format_of(ask, model, parameters, link.formats)
        else:
            instruction = (Message("system", f"Reply with one JSON object of this schema: {schema_text(ask.schema)}"),)
            if "json_object" not in refused:
                extra["response_format"] = {"type": "json_object"}
        parameters = ModelRequestParameters(output_mode="text", allow_text_output=True)
    if extra:
        settings["extra_body"] = extra
    return _messages(instruction + ask.messages), settings, parameters


def _use_prompt_cache(settings: Any, ask: Ask, link: Link) -> None:
    """Have the provider keep the first part of the prompt, which is the same for many chunks."""
    first = ask.messages[0]
    if first.role != "system":
        return
    if link.provider == "openai":
        # It caches by itself; the key leads equal prompts to the same machine.
        settings["openai_prompt_cache_key"] = hashlib.sha256(first.content.encode("utf-8", "replace")).hexdigest()[:32]
    elif link.provider == "anthropic" and link.prompts.comes_again(first.content):
        settings["anthropic_cache_instructions"] = True


def _format_of(
    ask: Ask, model: "provided.Model[Any]", parameters: "ModelRequestParameters", formats: dict[tuple[str, str], Any]
) -> Any:
    """The schema as it goes out on OpenAI's interface, in the form that suits the model."""
    known = (ask.schema_name, schema_text(ask.schema))
    if known not in formats:
        if len(formats) >= _FORMATS_KEPT:
            formats.clear()
        fitted = model.customize_request_parameters(parameters).output_object
        assert fitted is not None
        described: dict[str, Any] = {"name": fitted.name, "schema": fitted.json_schema}
        if model.profile.get("openai_supports_strict_tool_definition", True):
            described["strict"] = fitted.strict
        formats[known] = {"type": "json_schema", "json_schema": described}
    return formats[known]


def _messages(messages: tuple[Message, ...]) -> "list[ModelMessage]":
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    found: list[ModelMessage] = []
    for message in messages:
        match message.role:
            case "system":
                found.append(ModelRequest(parts=[SystemPromptPart(message.content)]))
            case "user":
                found.append(ModelRequest(parts=[UserPromptPart(message.content)]))
            case "assistant":
                found.append(ModelResponse(parts=[TextPart(message.content)]))
    return found
