"""The provider's own clients, one for each event loop: which package speaks to whom, what it is told beforehand, and an
ask in the words of pydantic-ai.

Rule: the clients' own retries are off, and neither keys nor addresses are looked for in the environment.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec import field

from sameas.llm.address import ModelAddress, Provider
from sameas.llm.models import Ask, Message
from sameas.llm.tokens import schema_text

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai import models as provided
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    from sameas.llm.batches import Batches

_FORMATS_KEPT = 64

# Marks of models that refuse to be told a temperature.
_WITHOUT_TEMPERATURE = ("openai_supports_reasoning", "anthropic_disallows_sampling_settings")

Part: TypeAlias = Literal["json_schema", "json_object", "reasoning_effort"]
"""A part of a request that a server may refuse to be told."""

# Whoever limits the rate decides how many connections there are.
KEPT_CONNECTIONS = 100
_PROMPTS_KEPT = 1_000


class PromptsSeen:
    """The first parts of prompts that were sent of late, by digest: one that comes again is worth a provider's cache.

    Writing to a cache costs more than reading once: with a large ontology most prompts come once only.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def comes_again(self, text: str) -> bool:
        """Note a prompt; whether it was sent before."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = digest in self._seen
        self._seen[digest] = None
        self._seen.move_to_end(digest)
        if len(self._seen) > _PROMPTS_KEPT:
            self._seen.popitem(last=False)
        return known


class Link(msgspec.Struct, frozen=True):
    """The client of one event loop."""

    client: "AsyncClient"
    model: "provided.Model[Any]"
    formats: dict[tuple[str, str], Any] | None
    """On OpenAI's interface, what the schemas become, by name and text: a run has few and asks often."""
    effort: str | None = None
    """What the server is told about thinking, where the client does not know how."""
    provider: Provider = "compatible"
    prompts: PromptsSeen = field(default_factory=PromptsSeen)


def open_link(address: ModelAddress, *, api_key: str | None, timeout: float, batches: "Batches | None" = None) -> Link:
    """A client for the running loop; loading its package takes seconds the first time."""
    from httpx2 import Limits

    from sameas.llm.ollama_client import OllamaClient
    from sameas.llm.reply_client import ReplyClient, tls

    kind: Callable[..., ReplyClient] = OllamaClient if address.provider == "ollama" else ReplyClient
    if batches is not None:
        from sameas.llm.batch_client import BatchClient

        kind = partial(BatchClient, batches=batches)
    client = kind(
        timeout=timeout,
        verify=tls(),
        limits=Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS),
        trust_env=not address.is_local,
    )
    # The clients look into the environment for a key unless they are given one; servers without keys ignore this one.
    key = api_key or "none"
    opener = _OPENERS[address.provider]
    return Link(
        client,
        opener(address, key, client),
        {} if opener is _open_openai else None,
        "none" if address.provider == "ollama" else None,
        address.provider,
    )


def _open_openai(address: ModelAddress, api_key: str, client: "AsyncClient") -> "provided.Model[Any]":
    from openai import AsyncOpenAI
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles import merge_profile
    from pydantic_ai.providers.ollama import OllamaProvider
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = AsyncOpenAI(api_key=api_key, base_url=address.url, max_retries=0, http_client=client)
    match address.provider:
        case "ollama":
            ollama = OllamaModel(address.model, provider=OllamaProvider(openai_client=sdk))
            profile = merge_profile(ollama.profile, _older_limit(), _whole_streams())
            return OllamaModel(address.model, provider=OllamaProvider(openai_client=sdk), profile=profile)
        case "compatible":
            provider = OpenAICompatibleProvider("compatible", openai_client=sdk)
            profile = merge_profile(provider.model_profile(address.model), _compatible_profile(), _whole_streams())
            return OpenAIChatModel(address.model, provider=provider, profile=profile)
        case _:
            own = OpenAIProvider(openai_client=sdk)
            profile = merge_profile(own.model_profile(address.model), _whole_streams())
            return OpenAIChatModel(address.model, provider=own, profile=profile)


def _whole_streams() -> "OpenAIModelProfile":
    """A stream that ends without saying why it ended was cut."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)


def _compatible_profile() -> "OpenAIModelProfile":
    """vLLM, llama.cpp and their like take a schema, and some of their templates one system message only."""
    return {
        **_older_limit(),
        "supports_json_schema_output": True,
        "openai_chat_supports_multiple_system_messages": False,
    }


def _older_limit() -> "OpenAIModelProfile":
    """Servers that follow OpenAI's interface know the older name of the limit, and not all of them the newer."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)


def _open_anthropic(address: ModelAddress, api_key: str, client: "AsyncClient") -> "provided.Model[Any]":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(api_key=api_key, base_url=address.url, max_retries=0, http_client=client)
    return AnthropicModel(address.model, provider=AnthropicProvider(anthropic_client=sdk))


def _open_google(address: ModelAddress, api_key: str, client: "AsyncClient") -> "provided.Model[Any]":
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(
        api_key=api_key, base_url=address.url, http_client=client, retry_options=HttpRetryOptions(attempts=1)
    )
    return GoogleModel(address.model, provider=provider)


_OPENERS: dict[str, Callable[[ModelAddress, str, "AsyncClient"], "provided.Model[Any]"]] = {
    "openai": _open_openai,
    "ollama": _open_openai,
    "compatible": _open_openai,
    "anthropic": _open_anthropic,
    "google": _open_google,
}


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
