"""The provider's own clients, one for each event loop: which package speaks to whom, and what it is told beforehand.

Rule: the clients' own retries are off, and neither keys nor addresses are looked for in the environment.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import field

from sameas.llm.address import ModelAddress, Provider

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai import models as provided
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    from sameas.llm.batches import Batches

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
