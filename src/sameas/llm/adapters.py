"""Models of every provider, through pydantic-ai: the one place that knows its names.

Rule: one attempt per ask. The clients' own retries are switched off, because who asks counts attempts, tokens and time.
Keys and addresses are handed in; the clients find neither in the environment. A time-out bounds the whole reply, so
that a server which sends a byte now and then cannot keep a call for ever.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import msgspec

from sameas.llm.address import NEED_KEYS, ModelAddress, parse_address
from sameas.llm.models import Ask, Finish, Message, Model, ModelError, Reply
from sameas.llm.prices import Price, load_prices
from sameas.llm.tokens import counter_for
from sameas.llm.usage import believable, own_usage, schema_text

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai import models as provided
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.profiles.openai import OpenAIModelProfile

# Whoever limits the rate decides how many connections there are.
KEPT_CONNECTIONS = 100
_FORMATS_KEPT = 64

# Marks of models that refuse to be told a temperature.
_WITHOUT_TEMPERATURE = ("openai_supports_reasoning", "anthropic_disallows_sampling_settings")

Part: TypeAlias = Literal["json_schema", "json_object", "reasoning_effort"]

_FORMATS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    ("json_schema", ("response_format",)),
    ("json_object", ("response_format",)),
)
# What a server on OpenAI's interface may not know, and the words of a refusal that name it: older models of OpenAI
# and some other servers take no schema, or no format at all, and older versions of Ollama know no effort "none".
_REFUSALS: dict[str, tuple[tuple[Part, tuple[str, ...]], ...]] = {
    "openai": _FORMATS,
    "compatible": _FORMATS,
    "ollama": (*_FORMATS, ("reasoning_effort", ("reasoning", "think"))),
}

_FINISHES: dict[str | None, Finish] = {"stop": "stop", "length": "length", "content_filter": "refusal"}


class Link(msgspec.Struct, frozen=True):
    """The client of one event loop."""

    client: "AsyncClient"
    model: "provided.Model[Any]"
    formats: dict[tuple[str, str], Any] | None
    """On OpenAI's interface, what the schemas become, by name and text: a run has few and asks often."""
    effort: str | None = None
    """What the server is told about thinking, where the client does not know how."""


class AdaptedModel:
    """A provider's model behind our contract."""

    def __init__(
        self,
        address: ModelAddress,
        *,
        api_key: str | None,
        timeout: float,
        price: Price | None,
        stream: bool,
        when_loaded: Callable[[], object] | None,
    ) -> None:
        self._address = address
        self._api_key = api_key
        self._timeout = timeout
        self._price = price
        self._stream = stream
        self._when_loaded = when_loaded
        self._counter = counter_for(address.provider, address.model)
        # What this model's server has refused to be told; known from the first ask on.
        self._refused: frozenset[Part] = frozenset()
        # Sockets belong to the loop that opened them.
        self._links: WeakKeyDictionary[asyncio.AbstractEventLoop, Link] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        return self._address.name

    @property
    def price(self) -> Price | None:
        return self._price

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    def count_tokens(self, text: str) -> int:
        return self._counter.count(text)

    async def ask(self, ask: Ask) -> Reply:
        outcome = await self._attempt(ask)
        while isinstance(outcome, ModelError) and (part := self._refused_by(outcome)):
            # Turned away unread: the same ask without that part is still the first attempt.
            self._refused |= {part}
            outcome = await self._attempt(ask)
        if isinstance(outcome, ModelError):
            # Raised out here, so that the client's exception, which holds the request and its key, does not hang on it.
            raise outcome
        return outcome

    async def _attempt(self, ask: Ask) -> Reply | ModelError:
        link = self._link()
        request = _request_of(ask, link, timeout=self._timeout, refused=self._refused)
        try:
            async with asyncio.timeout(self._timeout):
                response = await (_streamed(link, request) if self._stream else link.model.request(*request))
            return self._reply(ask, response)
        except ModelError as error:
            return error
        except TimeoutError:
            return ModelError(
                f"{self.name}: no whole answer within {self._timeout:g} s; raise the time-out or ask for less",
                code="timeout",
                usage=own_usage(ask, "", count=self.count_tokens),
            )
        except Exception as error:
            return self._failure(ask, error)

    def _refused_by(self, error: ModelError) -> "Part | None":
        """The part of our requests that the server says it does not know, if it was not left out before."""
        said = str(error).casefold()
        if error.code != "bad_request" or self._address.provider not in _REFUSALS or "invalid schema" in said:
            return None
        for part, marks in _REFUSALS[self._address.provider]:
            if part not in self._refused and any(mark in said for mark in marks):
                return part
        return None

    async def open(self) -> None:
        """Load the provider's package, which takes seconds the first time."""
        loop = asyncio.get_running_loop()
        if loop not in self._links:
            link = await asyncio.to_thread(self._new_link)
            if self._links.setdefault(loop, link) is not link:
                await link.client.aclose()
            if self._when_loaded is not None:
                when_loaded, self._when_loaded = self._when_loaded, None
                when_loaded()

    async def close(self) -> None:
        """Close the connections of the running loop."""
        link = self._links.pop(asyncio.get_running_loop(), None)
        if link is not None:
            await link.client.aclose()

    def _link(self) -> Link:
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None:
            link = self._links[loop] = self._new_link()
        return link

    def _new_link(self) -> Link:
        return _open_link(self._address, api_key=self._api_key, timeout=self._timeout)

    def _reply(self, ask: Ask, response: "ModelResponse") -> Reply:
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        finish = _FINISHES.get(response.finish_reason, "other")
        if finish == "refusal" and not text:
            text = str((response.provider_details or {}).get("refusal") or "")
        usage = believable(
            ask,
            text,
            input_tokens=response.usage.input_tokens,
            output_tokens=response.usage.output_tokens,
            count=self.count_tokens,
        )
        if not text and finish in ("stop", "other"):
            raise ModelError(f"{self.name}: the answer is empty", code="malformed", usage=usage)
        return Reply(text, usage, finish, self.name)

    def _failure(self, ask: Ask, error: Exception) -> ModelError:
        from sameas.llm.faults import translate

        spent = own_usage(ask, "", count=self.count_tokens)
        return translate(error, model=self.name, api_key=self._api_key, spent=spent)


def open_model(
    address: str,
    *,
    api_key: str | None = None,
    timeout: float,
    url: str | None = None,
    price: Price | None = None,
    stream: bool = False,
    when_loaded: Callable[[], object] | None = None,
) -> Model:
    """See `sameas.llm.models.open_model`."""
    parsed = parse_address(address, url=url)
    if not timeout > 0:
        raise ValueError("timeout must be positive, in seconds")
    if parsed.provider in NEED_KEYS and not api_key:
        raise ValueError(
            f"{parsed.name} needs a key: give api_key, or set the provider's variable for the command line"
        )
    try:
        import pydantic_ai  # noqa: F401
    except ImportError:
        raise ValueError("language models need another package: pip install 'sameas[llm]'") from None
    known = price or load_prices().price_of(parsed.name)
    return AdaptedModel(
        parsed, api_key=api_key or None, timeout=timeout, price=known, stream=stream, when_loaded=when_loaded
    )


class CutStreamError(Exception):
    """A stream ended without saying that its answer is whole."""


async def _streamed(link: Link, request: tuple[Any, Any, Any]) -> "ModelResponse":
    """The whole answer of a server that sends it piece by piece, and so is never silent for long."""
    async with link.model.request_stream(*request) as pieces:
        async for _ in pieces:
            continue
        response = pieces.get()
    if response.finish_reason is None and not (response.provider_details or {}).get("finish_reason"):
        # Half an answer can be good JSON: without its end nobody knows.
        raise CutStreamError("the stream ended before the answer did")
    return response


def _request_of(ask: Ask, link: Link, *, timeout: float, refused: frozenset[Part]) -> tuple[Any, Any, Any]:
    """What pydantic-ai takes for an ask: messages, settings, parameters."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.settings import ModelSettings

    model = link.model
    # Reading a text takes no long thoughts, and they would use up the tokens of the reply.
    settings = ModelSettings(max_tokens=ask.max_output_tokens, seed=ask.sample, timeout=timeout, thinking=False)
    if not any(model.profile.get(mark) for mark in _WITHOUT_TEMPERATURE):
        settings["temperature"] = ask.temperature
    # A model that cannot be held to a schema is told of it instead; whoever asks validates either way.
    is_native = bool(model.profile.get("supports_json_schema_output", False))
    extra: dict[str, Any] = {}
    if link.effort is not None and "reasoning_effort" not in refused:
        extra["reasoning_effort"] = link.effort
    told: tuple[Message, ...] = ()
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
            told = (Message("system", f"Reply with one JSON object of this schema: {schema_text(ask.schema)}"),)
            if "json_object" not in refused:
                extra["response_format"] = {"type": "json_object"}
        parameters = ModelRequestParameters(output_mode="text", allow_text_output=True)
    if extra:
        settings["extra_body"] = extra
    return _messages(told + ask.messages), settings, parameters


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


def _open_link(address: ModelAddress, *, api_key: str | None, timeout: float) -> Link:
    from httpx2 import Limits

    from sameas.llm.reply_client import ReplyClient, tls

    client = ReplyClient(
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
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return OpenAIModelProfile(
        **_older_limit(), supports_json_schema_output=True, openai_chat_supports_multiple_system_messages=False
    )


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
