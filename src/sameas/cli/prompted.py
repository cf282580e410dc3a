"""The extractor that the options of `--model` stand for, with its memo and its limiter.

Rule: nothing of this is loaded without `--model`, and with it the provider's package only when a model is asked: a
replay needs its name alone.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import ModelOptions
from sameas.cli.service import open_configured
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.llm.account import RateLimits
from sameas.llm.address import NEED_KEYS, TAKE_BATCHES, ModelAddress, parse_address
from sameas.llm.batches import Batches
from sameas.llm.budget import SpendingLimit
from sameas.llm.limiter import AccountLimiters, usual_limits
from sameas.llm.lingering import LingeringCalls
from sameas.llm.memo import SCOPE, CallMemo
from sameas.llm.models import DEFAULT_TIMEOUT, Ask, Model, Openable, Reply, open_model
from sameas.llm.prices import Price, load_prices
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimeout, timeouts_for
from sameas.once.async_engine import AsyncEngine
from sameas.once.policy import Policy
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings, api_key_for, api_key_names

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.examples import Example

# What was in flight when a process was killed is asked again after this many seconds.
_CALL_LEASE = 10.0
# A model on one's own machine may take minutes for an answer, and longer for its first.
_OWN_SERVERS_TIMEOUT = 300.0
# A batch is answered within a day, or not at all.
_BATCH_TIMEOUT = 90_000.0
# Providers count batches apart; as many questions as this wait for one at a time.
IN_BATCHES = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9, max_concurrent=500)
# How long an interrupted command waits for what it has sent.
_LINGER = 10.0


class ModelPath(msgspec.Struct, frozen=True):
    """The extractor of a command and the memo behind it."""

    extractor: ModelExtractor
    memo: CallMemo
    timeouts: Mapping[StageName, StageTimeout]


class DeferredModel:
    """A model whose name and price are known and which is opened when it is first asked, or has to count.

    One that only has to count needs no key.
    """

    def __init__(
        self,
        address: str,
        *,
        prices: str,
        timeout: float | None = None,
        only_counts: bool = False,
        batches: Batches | None = None,
    ) -> None:
        try:
            parsed = parse_address(address)
        except ValueError as error:
            raise CliError(str(error), code=ExitCode.USAGE) from error
        self.name = parsed.name
        self.address = parsed
        self._address = address
        self._provider = parsed.provider
        self._price = load_prices(Path(prices) if prices else None).price_of(parsed.name)
        if batches is not None and parsed.provider not in TAKE_BATCHES:
            raise CliError(
                f"{parsed.name} takes no batches",
                todo="Leave --batch out; OpenAI and Anthropic do",
                code=ExitCode.USAGE,
            )
        self._batches = batches
        # None: what the stage allows.
        self.timeout = timeout or (_OWN_SERVERS_TIMEOUT if parsed.is_own else None)
        self._only_counts = only_counts
        self._model: Model | None = None

    @property
    def price(self) -> Price | None:
        return self._price if self._batches is None or self._price is None else self._price.half

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
                self._model = open_model(
                    self._address,
                    api_key=self._key(),
                    price=self._price,
                    timeout=self.timeout or DEFAULT_TIMEOUT,
                    when_loaded=gc.freeze,
                    batches=self._batches,
                )
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
    spending: SpendingLimit | None = None,
    lingering: LingeringCalls | None = None,
) -> AsyncIterator[ModelPath]:
    """The extractor of the options, with the memo of calls in the configured store; closed when the block ends.

    A command that opens several gives all of them its limiters, and its money in place of a limit for each.
    """
    batches = None
    if options.batch:
        batches = Batches(settings.cache / "batches", on_note=lambda text: print(f"sameas: {text}", file=sys.stderr))
    deferred = partial(
        DeferredModel,
        prices=settings.prices,
        timeout=options.timeout or (_BATCH_TIMEOUT if options.batch else None),
        only_counts=options.estimate,
        batches=batches,
    )
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
        memo = CallMemo(
            AsyncEngine(store, policies={SCOPE: Policy(lease=_CALL_LEASE, hand_in_for=5.0)}), settings.tenant
        )
        accounts = limiters or AccountLimiters(partial(limits_of, options), backend=store.backend)
        attempt = max(one.timeout or 0.0 for one in (model, second) if one is not None) or None
        if options.batch:
            # A batch of one question, to see whether anybody answers, would take as long as all.
            for one in (model, second):
                if one is not None:
                    accounts.of(one.address).known_models.add(one.name)
        control = ModelControl(
            limiter=accounts.of(model.address),
            second_limiter=None if second is None else accounts.of(second.address),
            memo=memo,
            max_tokens=options.max_tokens,
            max_cost=options.max_cost if spending is None else None,
            spending=spending,
            attempt_seconds=attempt,
            lingering=lingering,
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
            yield ModelPath(extractor, memo, STAGE_TIMEOUTS if attempt is None else timeouts_for(attempt))
        finally:
            try:
                if lingering is not None and lingering.count:
                    await _wait_for(lingering)
            finally:
                await model.close()
                if second is not None:
                    await second.close()


async def _wait_for(lingering: LingeringCalls) -> None:
    """What was sent before an interruption is paid for: it is kept, if its answer comes in time."""
    sent = lingering.count
    print(
        f"sameas: interrupted; waiting up to {_LINGER:g} s for {sent} answers that are on their way, so that they need "
        "not be paid for again. Interrupt once more to leave at once",
        file=sys.stderr,
    )
    late = await lingering.wait(_LINGER)
    print(f"sameas: {sent - late} of {sent} answers were kept", file=sys.stderr)


def _prompt_settings(options: ModelOptions, shots: int | None) -> PromptSettings:
    settings = PromptSettings(
        mode=options.mode,
        samples=options.samples or 1,
        ask_confidence=options.ask_confidence,
        effort=options.effort,
    )
    return settings if shots is None else msgspec.structs.replace(settings, examples=shots)


def examples_from(file: Path, ontology: Ontology) -> list[Example]:
    """The examples of a file, for the prompts."""
    # Both load what learns, which a replay does not need.
    from sameas.extraction.extractors.learned import schema_of
    from sameas.extraction.extractors.learning.examples import read_examples

    if not file.is_file():
        raise CliError(f"{file}: there is no such file of examples", todo="Give a file of JSON lines")
    return read_examples(file, schema_of(OntologyIndex(ontology)))


def limits_of(options: ModelOptions, model: ModelAddress) -> RateLimits:
    """What the account of a model allows, as far as it was said."""
    usual = IN_BATCHES if options.batch else usual_limits(model)
    return RateLimits(
        requests_per_minute=options.requests_per_minute or usual.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute or usual.tokens_per_minute,
        max_concurrent=options.concurrency or usual.max_concurrent,
    )
