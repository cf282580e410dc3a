"""The one contract of a language model: what is asked, what comes back, and what can go wrong.

Rule: an `Ask` is exactly what is sent, so that equal asks to equally named models may share one reply. A model's name
is its identity in keys and holds neither a secret nor an address. A reply is text that nobody has believed yet: who
asked validates it. Whatever a provider does wrong is a `ModelError` with one of ten codes; other exceptions are bugs.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from sameas.llm.prices import Price
from sameas.once.errors import SameasError

if TYPE_CHECKING:
    from sameas.llm.batches import Batches

Role: TypeAlias = Literal["system", "user", "assistant"]
Finish: TypeAlias = Literal["stop", "length", "refusal", "other"]
Effort: TypeAlias = Literal["minimal", "low", "medium", "high"]
Code: TypeAlias = Literal[
    "rate_limited",
    "overloaded",
    "server",
    "network",
    "timeout",
    "bad_request",
    "auth",
    "not_found",
    "unreachable",
    "malformed",
]

# Longer than any stage's attempt, which ends a call first; this one catches what is asked outside of a stage.
DEFAULT_TIMEOUT = 120.0


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation. Raises nothing."""

    role: Role
    content: str


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what is sent. `schema` is the JSON schema of the reply; `sample` tells equal asks apart on purpose.
    Raises ValueError for one that cannot be sent."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    schema_name: str
    max_output_tokens: int
    temperature: float = 0.0
    sample: int = 0
    effort: Effort | None = None
    """How long the model may think; None is as little as it can."""

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("an ask needs at least one message")
        if self.messages[-1].role != "user":
            raise ValueError("the last message of an ask must be the user's: it is what the model answers")
        if not self.schema_name.isidentifier() or not self.schema_name.isascii():
            raise ValueError(f"schema_name must be a plain name such as entities, not {self.schema_name!r}")
        if self.max_output_tokens < 1:
            raise ValueError("max_output_tokens must be at least 1")
        if not 0 <= self.temperature <= 2:
            raise ValueError("temperature must be from 0 to 2")
        if self.sample < 0:
            raise ValueError("sample must not be negative")


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call. `reported` is false where they were counted here, because the server said nothing or
    something impossible.
    """

    input_tokens: int
    output_tokens: int
    reported: bool
    cached_tokens: int = 0
    """Of those that went in: read from the provider's cache of prompts."""
    cache_write_tokens: int = 0
    """Of those that went in: written to it."""

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Reply(msgspec.Struct, frozen=True):
    """What a model said; `finish` tells whether it said all of it, and `model` which one it was."""

    text: str
    usage: Usage
    finish: Finish
    model: str


class Kind(msgspec.Struct, frozen=True):
    """What follows from the code of an error."""

    is_retryable: bool
    counts_for_circuit: bool
    ends_run: bool = False


# A 429 is a server that works and says so; the limiter waits for it, and the circuit is for those that do not work.
KINDS: Mapping[Code, Kind] = MappingProxyType(
    {
        "rate_limited": Kind(is_retryable=True, counts_for_circuit=False),
        "overloaded": Kind(is_retryable=True, counts_for_circuit=True),
        "server": Kind(is_retryable=True, counts_for_circuit=True),
        "network": Kind(is_retryable=True, counts_for_circuit=True),
        "timeout": Kind(is_retryable=True, counts_for_circuit=True),
        "malformed": Kind(is_retryable=True, counts_for_circuit=True),
        "bad_request": Kind(is_retryable=False, counts_for_circuit=False),
        "auth": Kind(is_retryable=False, counts_for_circuit=False, ends_run=True),
        "not_found": Kind(is_retryable=False, counts_for_circuit=False, ends_run=True),
        "unreachable": Kind(is_retryable=False, counts_for_circuit=False, ends_run=True),
    }
)


class ModelError(SameasError):
    """The model gave no reply.

    `usage` is what the call cost all the same, where the server may have worked for it; `retry_after` is what the
    server asked for, in seconds.
    """

    def __init__(
        self, message: str, *, code: Code, retry_after: float | None = None, usage: Usage | None = None
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self.retry_after = retry_after
        self.usage = usage

    @property
    def is_retryable(self) -> bool:
        """Whether the same ask may succeed later."""
        return KINDS[self.code].is_retryable

    @property
    def counts_for_circuit(self) -> bool:
        """Whether it is a sign that the server is down, rather than that the ask was wrong or too early."""
        return KINDS[self.code].counts_for_circuit

    @property
    def ends_run(self) -> bool:
        """Whether no other ask would fare better: the key, the name or the address of the model is wrong."""
        return KINDS[self.code].ends_run


class Model(Protocol):
    """A language model that can be asked. Only `ask` raises."""

    @property
    def name(self) -> str:
        """Its identity for keys, such as `openai:gpt-5-mini`: no secret, no address."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens the text has, or slightly more; counted here, without asking anybody."""
        ...

    @property
    def price(self) -> Price | None:
        """What a million tokens cost; None where that is not known."""
        ...

    async def ask(self, ask: Ask) -> Reply:
        """The reply, of one attempt; raises `ModelError`. Whoever asks decides about another attempt."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


@runtime_checkable
class Openable(Protocol):
    """A model that takes long to get ready, as where a provider's package must be loaded."""

    async def open(self) -> None:
        """Get ready, without keeping others waiting: who holds claims must be able to renew them meanwhile."""
        ...


def open_model(
    address: str,
    *,
    api_key: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    url: str | None = None,
    price: Price | None = None,
    stream: bool = False,
    when_loaded: Callable[[], object] | None = None,
    batches: "Batches | None" = None,
) -> Model:
    """A model by what a person types: `openai:NAME`, `anthropic:NAME`, `google:NAME`, `ollama:NAME`, or
    `http://host:port/v1#NAME` for vLLM and every other server with OpenAI's interface.

    Nothing is sent. `timeout` bounds a whole reply, in seconds; `url` leads to a provider through another address;
    `price` stands in for the table's. With `stream` the server is asked to send its answer piece by piece, for proxies
    that end a connection on which nothing moves; the answer is the same. `when_loaded` is called once the provider's
    package is there: with `gc.freeze` a process of its own never looks through that package for garbage, which
    otherwise holds every call up for a tenth of a second now and then. With `batches` questions are handed in together
    and answered within a day, for half of the price: give `timeout` and whoever asks as much time.

    Raises ValueError for an address that is none, a hosted model without a key, a time-out or URL that cannot be, and
    without the extra `llm`.
    """
    from sameas.llm.adapters import open_model as opened

    return opened(
        address,
        api_key=api_key,
        timeout=timeout,
        url=url,
        price=price,
        stream=stream,
        when_loaded=when_loaded,
        batches=batches,
    )
