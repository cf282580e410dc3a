"""The models that requests may name, and the control under which they are asked.

Rule: a request can only name a model that the deployment lists in `SAMEAS_MODELS`; no address from outside is ever
called. One limiter for each account, whoever asks, shared by all servers on one Redis; answers are remembered for each
tenant apart. A run may spend what was set aside for it, `ALLOWED`, and a request's own limit at most. Where somebody
set a limit in money, every model has a price that is known; the limits that hold by default leave a model without one
to its tokens.
"""

from __future__ import annotations

import gc
from contextvars import ContextVar
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.llm.account import RateLimits
from sameas.llm.address import NEED_KEYS, TAKE_BATCHES, ModelAddress, parse_address
from sameas.llm.efforts import ROOM_FOR_THOUGHTS, usual_effort
from sameas.llm.limiter import AccountLimiters, CentralRateLimiterService
from sameas.llm.models import DEFAULT_TIMEOUT, Model
from sameas.llm.prices import Price, load_prices
from sameas.once.async_engine import AsyncEngine
from sameas.once.errors import SameasError
from sameas.once.policy import Policy
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.server.problems import Problem
from sameas.server.schemas import ExtractionParams
from sameas.settings import Settings, SettingsError, api_key_for, api_key_names

if TYPE_CHECKING:
    from sameas.llm.batches import Batches
    from sameas.llm.supervisor import RequestSupervisor

# What the run at hand may spend in all, earlier attempts included: tokens, and US dollars where those are limited.
ALLOWED: ContextVar[tuple[int, Decimal | None] | None] = ContextVar("sameas_allowed", default=None)
# Seconds until an answer of a batch has come: within a day, or not at all.
BATCH_TIMEOUT = 90_000.0
# Seconds in which questions for a batch are collected, and between two looks at it.
BATCH_GATHER, BATCH_POLL = 3.0, 30.0
# Providers count batches apart.
_IN_BATCHES = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9, max_concurrent=500)
# What was in flight when a process was killed is asked again after so many seconds.
_CALL_LEASE = 10.0
# As many tokens as so many chunks take: the ontology's terms, the question, and the query once more.
_QUESTION_CHUNKS = 8


class ModelWish(NamedTuple):
    """Who wants which model to be asked about which ontology; the engine keeps what it answers."""

    ontology: Ontology
    params: ExtractionParams
    tenant: str
    engine: AsyncEngine


class AccountState(NamedTuple):
    """How an account stands: calls that wait for a slot and that have one, and its circuit."""

    account: str
    waiting: int
    held: int
    circuit: str


class Models:
    """The listed models; each is opened when it is first named."""

    def __init__(self, settings: Settings) -> None:
        self._prices = settings.prices
        if settings.prices:
            try:
                load_prices(Path(settings.prices))
            except (OSError, ValueError) as error:
                raise SettingsError(f"SAMEAS_PRICES: {error}") from error
        self._most_tokens = settings.request_tokens
        self._most_cost = settings.most_cost_of_request
        self._limits = RateLimits(
            requests_per_minute=settings.model_requests_per_minute,
            tokens_per_minute=settings.model_tokens_per_minute,
            max_concurrent=settings.model_concurrency,
        )
        self._accounts: AccountLimiters | None = None
        self._batch_accounts: AccountLimiters | None = None
        self._batches: Batches | None = None
        self._batch_folder = settings.cache / "batches"
        self._addresses: dict[str, str] = {}
        for address in (one.strip() for one in settings.models.split(",")):
            if address:
                try:
                    parsed = parse_address(address)
                except ValueError as error:
                    raise SettingsError(f"SAMEAS_MODELS: {error}") from error
                self._addresses[parsed.name] = address
                if settings.needs_prices and self._price(parsed) is None:
                    raise SettingsError(
                        f"SAMEAS_MODELS: the price of {parsed.name} is not known, and money is limited; name a file "
                        "with its price in SAMEAS_PRICES"
                    )
        self._opened: dict[tuple[str, float, bool], Model] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What requests may call the models of this deployment."""
        return tuple(self._addresses)

    @property
    def without_price(self) -> tuple[str, ...]:
        """The models that nobody knows the price of: what they cost is not limited, only their tokens are."""
        return tuple(name for name, address in self._addresses.items() if self._price(parse_address(address)) is None)

    @property
    def without_key(self) -> tuple[tuple[str, str], ...]:
        """The models that answer nobody without a key, and have none: each with the variable that it would be in."""
        parsed = map(parse_address, self._addresses.values())
        lacking = [one for one in parsed if one.provider in NEED_KEYS and api_key_for(one.provider) is None]
        return tuple((one.name, " or ".join(api_key_names(one.provider))) for one in lacking)

    def __call__(self, wish: ModelWish) -> Extractor:
        """The extractor that asks the model of a wish."""
        from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
        from sameas.llm.memo import SCOPE, CallMemo

        params = wish.params
        address = self._address(params.named_model)
        parsed, batch = parse_address(address), bool(params.batch)
        if batch and parsed.provider not in TAKE_BATCHES:
            raise Problem(422, "no-batches", f"{parsed.name} takes no batches; leave batch out")
        seconds = BATCH_TIMEOUT if batch else params.timeout
        model = self._open(address, seconds or DEFAULT_TIMEOUT, batch=batch)
        effort = usual_effort(parsed)
        usual = PromptSettings(mode=params.mode or PromptSettings().mode, effort=effort)
        # What a request allows is for the reply.
        thoughts = 0 if effort is None else ROOM_FOR_THOUGHTS[effort]
        most = params.max_tokens + thoughts if params.max_tokens else usual.max_output_tokens
        memo = AsyncEngine(wish.engine.store, policies={SCOPE: Policy(lease=_CALL_LEASE)})
        return ModelExtractor(
            OntologyIndex(wish.ontology),
            model,
            control=ModelControl(
                limiter=self._limiter(parsed, wish.engine, batch=batch),
                memo=CallMemo(memo, wish.tenant),
                max_tokens=self._most_tokens,
                max_cost=self._most_cost_of(parsed),
                attempt_seconds=seconds,
                allowed=ALLOWED.get if self._price(parsed) is not None else _allowed_tokens,
            ),
            settings=PromptSettings(
                mode=usual.mode,
                effort=effort,
                samples=params.samples or usual.samples,
                temperature=params.temperature or usual.temperature,
                max_output_tokens=most,
                repair_output_tokens=max(most, usual.repair_output_tokens),
            ),
        )

    def supervisor(self, named: str | None, *, tenant: str, engine: AsyncEngine) -> RequestSupervisor:
        """What asks a model one question, under the same control as a run's; in the background loop."""
        from sameas.llm.budget import OTHER, TOKENS_PER_CHUNK, TokenBudgetService
        from sameas.llm.memo import SCOPE, CallMemo
        from sameas.llm.supervisor import RequestSupervisor
        from sameas.questions.ask import STAGE

        address = self._address(named)
        budget = TokenBudgetService(
            min(self._most_tokens, _QUESTION_CHUNKS * TOKENS_PER_CHUNK),
            shares={STAGE: Decimal(1), OTHER: Decimal(0)},
            cost_limit=self._most_cost_of(parse_address(address)),
        )
        memo = AsyncEngine(engine.store, policies={SCOPE: Policy(lease=_CALL_LEASE)})
        return RequestSupervisor(
            self._open(address, DEFAULT_TIMEOUT, batch=False),
            limiter=self._limiter(parse_address(address), engine, batch=False),
            budget=budget,
            memo=CallMemo(memo, tenant),
        )

    async def states(self) -> list[AccountState]:
        """How the limiters and circuits of the accounts stand that were asked; in the background loop."""
        found = []
        for account, limiter in self._accounts.all().items() if self._accounts is not None else ():
            try:
                phase: str = await limiter.account.phase()
            except SameasError:
                # Shared on a server that cannot be asked now.
                phase = "unknown"
            found.append(AccountState(account, limiter.waiting, limiter.held, phase))
        return found

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()

    def _limiter(self, model: ModelAddress, engine: AsyncEngine, *, batch: bool) -> CentralRateLimiterService:
        backend = engine.store.backend
        if batch:
            self._batch_accounts = self._batch_accounts or AccountLimiters(_IN_BATCHES)
            limiter = self._batch_accounts.of(model)
            # A batch of one question, to see whether anybody answers, would take as long as all.
            limiter.known_models.add(model.name)
            return limiter
        self._accounts = self._accounts or AccountLimiters(self._limits, backend=backend)
        return self._accounts.of(model)

    def _most_cost_of(self, model: ModelAddress) -> Decimal | None:
        return None if self._price(model) is None else self._most_cost

    def _price(self, model: ModelAddress) -> Price | None:
        return load_prices(Path(self._prices) if self._prices else None).price_of(model.name)

    def _address(self, named: str | None) -> str:
        if not self._addresses:
            raise Problem(422, "no-model", "this service has no model configured; leave model out")
        known = ", ".join(self._addresses)
        if named is None:
            if len(self._addresses) > 1:
                raise Problem(422, "model-unnamed", f"this service has several models; name one of {known}")
            return next(iter(self._addresses.values()))
        # By its whole name, or by its own where that leaves no doubt.
        fits = [name for name in self._addresses if named in (name, name.partition(":")[2])]
        if named in self._addresses:
            fits = [named]
        if len(fits) != 1:
            raise Problem(422, "model-unknown", f"this service does not ask that model; it asks {known}")
        return self._addresses[fits[0]]

    def _open(self, address: str, timeout: float, *, batch: bool) -> Model:
        from sameas.llm.batches import Batches
        from sameas.llm.models import open_model

        place = (address, timeout, batch)
        if place not in self._opened:
            if batch and self._batches is None:
                self._batches = Batches(self._batch_folder, gather_for=BATCH_GATHER, poll_every=BATCH_POLL)
            parsed = parse_address(address)
            self._opened[place] = open_model(
                address,
                api_key=api_key_for(parsed.provider),
                price=self._price(parsed),
                timeout=timeout,
                when_loaded=gc.freeze,
                batches=self._batches if batch else None,
            )
        return self._opened[place]


def _allowed_tokens() -> tuple[int, Decimal | None] | None:
    """What the run at hand may spend where nobody knows what that costs."""
    allowed = ALLOWED.get()
    return None if allowed is None else (allowed[0], None)


class ModelEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a model would be asked about a text, and the most that it may take; a cost is None if no price is known."""

    chunks: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    most_tokens: int
    most_cost: Decimal | None


async def model_estimate(extractor: Extractor, text: str, *, settings: PipelineSettings) -> ModelEstimate | None:
    """What a model would be asked about a text; None where the extractor asks none."""
    if not extractor.name.startswith("model:"):
        return None
    from sameas.extraction.extractors.prompted import ModelExtractor
    from sameas.extraction.pipeline.estimate import Estimator

    if not isinstance(extractor, ModelExtractor):
        return None
    found = await Estimator(extractor.index, extractor, settings=settings, memo=extractor.memo).estimate(text)
    total = found.total
    return ModelEstimate(
        chunks=found.chunks,
        calls=total.calls,
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cost=found.cost,
        most_tokens=total.most_input_tokens + total.most_output_tokens,
        most_cost=found.most_cost,
    )
