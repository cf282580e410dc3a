"""Models of every provider, by pydantic-ai: `links` opens clients and writes to them, `faults` reads errors.

Rule: one attempt per ask, because who asks counts attempts, tokens and time. A time-out bounds the whole reply, so that
a server which sends a byte now and then cannot keep a call for ever.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sameas.identity.errors import SameasError
from sameas.llm.address import NEED_KEYS, TAKE_BATCHES, ModelAddress, parse_address
from sameas.llm.links import Link, Part, open_link, request_of
from sameas.llm.models import Ask, Finish, Model, ModelError, Reply
from sameas.llm.prices import Price, load_prices
from sameas.llm.tokens import believable, counter_for, own_usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from sameas.llm.batches import Batches

_FORMATS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    ("json_schema", ("response_format",)),
    ("json_object", ("response_format",)),
)
_EFFORT: tuple[Part, tuple[str, ...]] = ("reasoning_effort", ("reasoning", "think"))
# What a server on OpenAI's interface may not know, and the words of a refusal that name it: older models of OpenAI
# and some other servers take no schema, or no format at all, and older versions of Ollama know no effort "none".
_REFUSALS: dict[str, tuple[tuple[Part, tuple[str, ...]], ...]] = {
    "openai": _FORMATS,
    "compatible": (*_FORMATS, _EFFORT),
    "ollama": (*_FORMATS, _EFFORT),
}

_FINISHES: dict[str | None, Finish] = {"stop": "stop", "length": "length", "content_filter": "refusal"}


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
        batches: "Batches | None" = None,
    ) -> None:
        self._address = address
        self._api_key = api_key
        self._timeout = timeout
        self._price = price
        self._stream = stream
        self._when_loaded = when_loaded
        self._batches = batches
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

    def most_tokens(self, text: str) -> int:
        return self._counter.most(text)

    async def ask(self, ask: Ask) -> Reply:
        outcome = await self._attempt(ask)
        while isinstance(outcome, ModelError) and (part := self._refused_by(outcome)):
            if part == "reasoning_effort" and ask.effort is not None:
                # Somebody wants it: answering without would be another answer than was asked for.
                outcome = ModelError(f"{outcome} It may take no effort {ask.effort!r}: leave it out", code=outcome.code)
                break
            # Turned away unread: the same ask without that part is still the first attempt.
            self._refused = self._refused.union((part,))
            outcome = await self._attempt(ask)
        if isinstance(outcome, ModelError):
            # Raised out here, so that the client's exception, which holds the request and its key, does not hang on it.
            raise outcome
        return outcome

    async def _attempt(self, ask: Ask) -> Reply | ModelError:
        link = self._link()
        request = request_of(ask, link, timeout=self._timeout, refused=self._refused)
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
        message = str(error).casefold()
        if error.code != "bad_request" or self._address.provider not in _REFUSALS or "invalid schema" in message:
            return None
        for part, marks in _REFUSALS[self._address.provider]:
            if part not in self._refused and any(mark in message for mark in marks):
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
        if self._batches is not None:
            await self._batches.close()
        if link is not None:
            await link.client.aclose()

    def _link(self) -> Link:
        loop = asyncio.get_running_loop()
        link = self._links.get(loop)
        if link is None:
            link = self._links[loop] = self._new_link()
        return link

    def _new_link(self) -> Link:
        return open_link(self._address, api_key=self._api_key, timeout=self._timeout, batches=self._batches)

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
            cached_tokens=response.usage.cache_read_tokens,
            cache_write_tokens=response.usage.cache_write_tokens,
            count=self.count_tokens,
        )
        if not text and finish in ("stop", "other"):
            raise ModelError(f"{self.name}: the answer is empty", code="malformed", usage=usage)
        return Reply(text, usage, finish, self.name)

    def _failure(self, ask: Ask, error: Exception) -> ModelError:
        from sameas.llm.faults import translate

        spent = own_usage(ask, "", count=self.count_tokens)
        return translate(error, address=self._address, api_key=self._api_key, spent=spent)


def open_model(
    address: str,
    *,
    api_key: str | None = None,
    timeout: float,
    url: str | None = None,
    price: Price | None = None,
    stream: bool = False,
    when_loaded: Callable[[], object] | None = None,
    batches: "Batches | None" = None,
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
    if batches is not None and (parsed.provider not in TAKE_BATCHES or stream):
        raise ValueError(f"{parsed.name} cannot be asked in batches: OpenAI and Anthropic take them, without streams")
    known = price or load_prices().price_of(parsed.name)
    return AdaptedModel(
        parsed,
        api_key=api_key or None,
        timeout=timeout,
        price=known.half if known is not None and batches is not None else known,
        stream=stream,
        when_loaded=when_loaded,
        batches=batches,
    )


class CutStreamError(SameasError):
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
