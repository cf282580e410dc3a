"""The models that requests may name, and the control under which they are asked.

Rule: a request can only name a model that the deployment lists in `SAMEAS_MODELS`; no address from outside is ever
called. One limiter for each account, whoever asks, shared by all servers on one Redis; answers are remembered for each
tenant apart.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sameas.extraction.extractor import Extractor
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.llm.accounts import AccountLimiters
from sameas.llm.address import parse_address
from sameas.llm.models import Model
from sameas.llm.windows import RateLimits
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.server.problems import Problem
from sameas.server.wire import ExtractionParams
from sameas.settings import Settings, SettingsError, api_key_for


class ModelWish(NamedTuple):
    """Who wants which model to be asked about which ontology; the engine keeps what it answers."""

    ontology: Ontology
    params: ExtractionParams
    tenant: str
    engine: AsyncEngine


class Models:
    """The listed models; each is opened when it is first named."""

    def __init__(self, settings: Settings) -> None:
        self._prices = settings.prices
        self._limits = RateLimits(
            requests_per_minute=settings.model_requests_per_minute,
            tokens_per_minute=settings.model_tokens_per_minute,
            max_concurrent=settings.model_concurrency,
        )
        self._accounts: AccountLimiters | None = None
        self._addresses: dict[str, str] = {}
        for address in (one.strip() for one in settings.models.split(",")):
            if address:
                try:
                    self._addresses[parse_address(address).name] = address
                except ValueError as error:
                    raise SettingsError(f"SAMEAS_MODELS: {error}") from error
        self._opened: dict[str, Model] = {}

    def __call__(self, wish: ModelWish) -> Extractor:
        """The extractor that asks the model of a wish."""
        from sameas.extraction.prompted import ModelControl, ModelExtractor, PromptSettings
        from sameas.llm.memo import CallMemo

        model = self._open(self._address(wish.params.named_model))
        if self._accounts is None:
            self._accounts = AccountLimiters(self._limits, backend=wish.engine.store.backend)
        limiter = self._accounts.of(parse_address(self._address(wish.params.named_model)))
        usual = PromptSettings()
        most = wish.params.max_tokens or usual.max_output_tokens
        return ModelExtractor(
            OntologyIndex(wish.ontology),
            model,
            control=ModelControl(limiter=limiter, memo=CallMemo(wish.engine, wish.tenant)),
            settings=PromptSettings(
                mode=wish.params.mode or usual.mode,
                samples=wish.params.samples or usual.samples,
                temperature=wish.params.temperature or usual.temperature,
                max_output_tokens=most,
                repair_output_tokens=max(most, usual.repair_output_tokens),
            ),
        )

    async def close(self) -> None:
        for model in self._opened.values():
            await model.close()

    def _address(self, named: str | None) -> str:
        if not self._addresses:
            raise Problem(422, "no-model", "this service has no model configured; leave model out")
        known = ", ".join(self._addresses)
        if named is None:
            if len(self._addresses) > 1:
                raise Problem(422, "model-unnamed", f"this service has several models; name one of {known}")
            return next(iter(self._addresses.values()))
        if named not in self._addresses:
            raise Problem(422, "model-unknown", f"this service does not ask that model; it asks {known}")
        return self._addresses[named]

    def _open(self, address: str) -> Model:
        from sameas.llm.models import open_model
        from sameas.llm.prices import load_prices

        if address not in self._opened:
            parsed = parse_address(address)
            price = load_prices(Path(self._prices) if self._prices else None).price_of(parsed.name)
            self._opened[address] = open_model(
                address, api_key=api_key_for(parsed.provider), price=price, when_loaded=gc.freeze
            )
        return self._opened[address]


async def model_estimate(
    extractor: Extractor, ontology: Ontology, text: str, *, settings: PipelineSettings
) -> Mapping[str, Any] | None:
    """What a model would be asked about a text; None where the extractor asks none."""
    if not extractor.name.startswith("model:"):
        return None
    from sameas.extraction.prompted import ModelExtractor
    from sameas.extraction.prompted.estimate import Estimator

    if not isinstance(extractor, ModelExtractor):
        return None
    found = await Estimator(OntologyIndex(ontology), extractor, settings=settings, memo=extractor.memo).estimate(text)
    total = found.total
    return {
        "chunks": found.chunks,
        "calls": total.calls,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cost": None if found.cost is None else float(found.cost),
    }
