"""The extractor that the options of `--model` stand for, with its memo and its limiter.

Rule: nothing of this is loaded without `--model`, and with it the provider's package only when a model is asked: a
replay needs its name alone.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.model_options import ModelOptions
from sameas.cli.service import open_configured
from sameas.extraction.learned import schema_of
from sameas.extraction.learning.examples import Example, read_examples
from sameas.extraction.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.llm.accounts import AccountLimiters
from sameas.llm.address import NEED_KEYS, parse_address
from sameas.llm.memo import SCOPE, CallMemo
from sameas.llm.models import Ask, Model, Openable, Reply, open_model
from sameas.llm.prices import Price, load_prices
from sameas.llm.purse import Purse
from sameas.llm.windows import RateLimits
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings, api_key_for, api_key_names

# What was in flight when a process was killed is asked again after this many seconds.
_CALL_LEASE = 10.0


class ModelPath(msgspec.Struct, frozen=True):
    """The extractor of a command and the memo behind it."""

    extractor: ModelExtractor
    memo: CallMemo


class DeferredModel:
    """A model whose name and price are known and which is opened when it is first asked, or has to count.

    One that only has to count needs no key.
    """

    def __init__(self, address: str, *, prices: str, only_counts: bool = False) -> None:
        try:
            parsed = parse_address(address)
        except ValueError as error:
            raise CliError(str(error), code=ExitCode.USAGE) from error
        self.name = parsed.name
        self.address = parsed
        self._address = address
        self._provider = parsed.provider
        self._price = load_prices(Path(prices) if prices else None).price_of(parsed.name)
        self._only_counts = only_counts
        self._model: Model | None = None

    @property
    def price(self) -> Price | None:
        return self._price

    def count_tokens(self, text: str) -> int:
        return self._opened().count_tokens(text)

    async def open(self) -> None:
        model = await asyncio.to_thread(self._opened)
        if isinstance(model, Openable):
            await model.open()

    async def ask(self, ask: Ask) -> Reply:
        return await self._opened().ask(ask)

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()

    def _opened(self) -> Model:
        if self._model is None:
            try:
                self._model = open_model(self._address, api_key=self._key(), price=self._price, when_loaded=gc.freeze)
            except ValueError as error:
                raise CliError(str(error), code=ExitCode.USAGE) from error
        return self._model

    def _key(self) -> str | None:
        key = api_key_for(self._provider)
        if key is None and self._provider in NEED_KEYS:
            if not self._only_counts:
                names = " or ".join(api_key_names(self._provider))
                raise CliError(f"{self.name} needs a key", todo=f"Set {names}", code=ExitCode.USAGE)
            return "none"
        return key


@asynccontextmanager
async def open_model_path(
    options: ModelOptions,
    *,
    ontology: Ontology,
    settings: Settings,
    examples: Sequence[Example] = (),
    shots: int | None = None,
    limiters: AccountLimiters | None = None,
    purse: Purse | None = None,
) -> AsyncIterator[ModelPath]:
    """The extractor of the options, with the memo of calls in the configured store; closed when the block ends.

    A command that opens several gives all of them its limiters, and its purse in place of a limit for each.
    """
    deferred = partial(DeferredModel, prices=settings.prices, only_counts=options.estimate)
    model = deferred(options.model)
    second = None if options.grounding_model is None else deferred(options.grounding_model)
    if options.max_cost is not None:
        for one in (model, second):
            if one is not None and one.price is None:
                raise CliError(
                    f"--max-cost needs a price, and that of {one.name} is not known",
                    todo="Give --max-tokens, or name a file with its price in SAMEAS_PRICES",
                    code=ExitCode.USAGE,
                )
    settings.home.mkdir(parents=True, exist_ok=True)
    async with open_configured(settings) as store:
        memo = CallMemo(AsyncEngine(store, policies={SCOPE: Policy(lease=_CALL_LEASE)}), settings.tenant)
        accounts = limiters or AccountLimiters(limits_of(options), backend=store.backend)
        control = ModelControl(
            limiter=accounts.of(model.address),
            second_limiter=None if second is None else accounts.of(second.address),
            memo=memo,
            max_tokens=options.max_tokens,
            max_cost=options.max_cost if purse is None else None,
            purse=purse,
        )
        extractor = ModelExtractor(
            OntologyIndex(ontology),
            model,
            control=control,
            settings=_prompt_settings(options, shots),
            examples=examples,
            grounding_model=second,
        )
        try:
            yield ModelPath(extractor, memo)
        finally:
            await model.close()
            if second is not None:
                await second.close()


def _prompt_settings(options: ModelOptions, shots: int | None) -> PromptSettings:
    settings = PromptSettings(mode=options.mode, samples=options.samples or 1, ask_confidence=options.ask_confidence)
    return settings if shots is None else msgspec.structs.replace(settings, examples=shots)


def examples_from(file: Path, ontology: Ontology) -> list[Example]:
    """The examples of a file, for the prompts."""
    if not file.is_file():
        raise CliError(f"{file}: there is no such file of examples", todo="Give a file of JSON lines")
    return read_examples(file, schema_of(OntologyIndex(ontology)))


def limits_of(options: ModelOptions) -> RateLimits:
    """What the account of a model allows, as far as it was said."""
    usual = RateLimits()
    return RateLimits(
        requests_per_minute=options.requests_per_minute or usual.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute or usual.tokens_per_minute,
        max_concurrent=options.concurrency or usual.max_concurrent,
    )
