"""From a request to everything that it stands for: its ontology, its extractor, its settings and its key.

Rule: what is long goes to a process of its own, where the ontology is loaded and the text is read; then this process
knows the key and the names alone. A long call of C, such as decoding an ontology of sixty thousand classes, would keep
every client of this process waiting. One object stands for one ontology and one choice of extractor, so that pipelines
are built once. Nothing is guessed: what the deployment cannot do is refused with what it can.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from sameas.extraction.extractors import learned  # noqa: F401 - loaded when the service starts, not at its first run
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.deferred import deferred_learned, deferred_lexicon, deferred_reader
from sameas.extraction.extractors.embedded import beside, find_weights
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.metadata import ExtractorName
from sameas.extraction.runs.record import SCOPE
from sameas.extraction.text.chunking import ChunkSettings
from sameas.identity.errors import NotCanonical
from sameas.identity.key import IdempotencyKey
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimeout, timeouts_for
from sameas.once.async_engine import AsyncEngine
from sameas.once.observe import Event, KeyFailed
from sameas.ontology.model import Ontology
from sameas.server.problems import Problem
from sameas.server.runs.models import BATCH_TIMEOUT, ModelEstimate, ModelWish, model_estimate
from sameas.server.schemas import ExtractionParams, ExtractRequest
from sameas.server.tenants.ontologies import Ontologies, Registered
from sameas.server.tenants.ontology_files import LARGE_ONTOLOGY
from sameas.server.tenants.workspaces import Workspaces, tenant_of
from sameas.settings import Settings

# A text of so many characters is worked on in tens of milliseconds at a time.
LONG_TEXT = 200_000


class Means(NamedTuple):
    """What a run is done with in this process."""

    ontology: Ontology
    extractor: Extractor


class Prepared(NamedTuple):
    """A request with everything that it stands for; its key is computed once. Long work has its means elsewhere."""

    space: str
    request: ExtractRequest
    found: Registered
    settings: PipelineSettings
    key: IdempotencyKey
    extractor: ExtractorName
    means: Means | None


def asks_model(request: ExtractRequest) -> bool:
    """Whether a run of this request asks a model."""
    params = request.extraction_params
    return params.extractor == "model" or params.named_model is not None


def is_long(request: ExtractRequest, found: Registered) -> bool:
    """Whether a run of this request may take this process's time from everybody else."""
    return len(request.text) > LONG_TEXT or found.entry.size > LARGE_ONTOLOGY


async def estimate_of(prepared: Prepared) -> ModelEstimate | None:
    """What a model would be asked about a request that is worked on in this process; None where none is asked."""
    if prepared.means is None:
        return None
    text = prepared.key.components.text or prepared.request.text
    return await model_estimate(prepared.means.extractor, text, settings=prepared.settings)


class Preparing:
    """Prepares requests in this process. Lives in the background loop."""

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        ontologies: Ontologies,
        extractors: Extractors,
        base: str,
        observe: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._workspaces = workspaces
        self._ontologies = ontologies
        self._extractors = extractors
        self._base = base
        self._observe = observe

    def settings(self, request: ExtractRequest) -> PipelineSettings:
        return self._extractors.settings(request.extraction_params)

    async def prepare(self, space: str, request: ExtractRequest, found: Registered) -> Prepared:
        """Load the ontology, choose the extractor and compute the key."""
        ontology = await self._ontologies.load(found)
        extractor = self._extractors.extractor(ontology, found, request.extraction_params, tenant=tenant_of(space))
        settings = self.settings(request)
        try:
            key = self._workspaces.get(space).key_of(
                request.text, ontology=ontology, extractor=extractor, settings=settings, base=self._base
            )
        except NotCanonical as error:
            self._observe(KeyFailed(SCOPE, error))
            raise
        who = ExtractorName(extractor.name, extractor.version)
        return Prepared(space, request, found, settings, key, who, Means(ontology, extractor))


_KEPT = 64
# Chunks whose questions go into one batch.
_IN_A_BATCH = 500

# Builds the extractor of a named model for an ontology; a deployment without models has none.
ModelExtractors = Callable[[ModelWish], Extractor]


class TimeLimits(NamedTuple):
    """How long a run and its stages may take, as far as operators said; None is no limit. A request may ask for other
    limits, but not for longer ones than were set.
    """

    deadline: float | None = None
    stages: Mapping[StageName, StageTimeout] = MappingProxyType({})

    @classmethod
    def of(cls, settings: Settings) -> TimeLimits:
        stages = {cast("StageName", stage): StageTimeout(*both) for stage, both in settings.timeouts().items()}
        return cls(settings.deadline or None, stages)

    def deadline_for(self, params: ExtractionParams) -> float | None:
        return min(filter(None, (params.deadline, self.deadline)), default=None)

    def stages_for(self, params: ExtractionParams) -> Mapping[StageName, StageTimeout]:
        if params.batch:
            # Whoever waits for a batch waits for the provider's time, a day at most.
            return timeouts_for(BATCH_TIMEOUT)
        if params.timeout is None:
            return {**STAGE_TIMEOUTS, **self.stages}
        asked = timeouts_for(params.timeout)
        return {stage: _shorter(limit, self.stages.get(stage)) for stage, limit in asked.items()}


NO_LIMITS = TimeLimits()


class Extractors:
    """The extractors and pipeline settings of requests, the same objects for the same wish."""

    def __init__(
        self,
        *,
        concurrency: int,
        engine: AsyncEngine,
        models: ModelExtractors,
        limits: TimeLimits = NO_LIMITS,
        default: str = "",
    ) -> None:
        self._limits = limits
        self._concurrency = concurrency
        self._engine = engine
        self._models = models
        self._default = default
        self._extractors: OrderedDict[tuple[int, ExtractionParams, str], tuple[Ontology, Extractor]] = OrderedDict()
        self._settings: OrderedDict[tuple[Any, ...], PipelineSettings] = OrderedDict()

    def extractor(self, ontology: Ontology, found: Registered, params: ExtractionParams, *, tenant: str) -> Extractor:
        place = (id(ontology), params, tenant)
        known = self._extractors.get(place)
        if known is None:
            # The ontology is kept beside its extractor, so that its id stays its own.
            known = self._extractors[place] = (ontology, self._choose(ontology, found, params, tenant))
            while len(self._extractors) > _KEPT:
                self._extractors.popitem(last=False)
        return known[1]

    def settings(self, params: ExtractionParams) -> PipelineSettings:
        size, at_once = params.chunk_size, params.concurrency or (_IN_A_BATCH if params.batch else self._concurrency)
        place = (size, at_once, params.timeout, params.deadline, params.batch)
        known = self._settings.get(place)
        if known is None:
            known = self._settings[place] = PipelineSettings(
                chunking=ChunkSettings() if size is None else ChunkSettings(max(1, size // 5), size),
                concurrency=at_once,
                timeouts=self._limits.stages_for(params),
                deadline_seconds=self._limits.deadline_for(params),
            )
            while len(self._settings) > _KEPT:
                self._settings.popitem(last=False)
        return known

    def _choose(self, ontology: Ontology, found: Registered, params: ExtractionParams, tenant: str) -> Extractor:
        if params.extractor == "model" or params.named_model is not None:
            if params.extractor not in (None, "model"):
                raise Problem(422, "params-contradict", f"extractor {params.extractor!r} asks no model; name none")
            return self._models(ModelWish(ontology, params, tenant, self._engine))
        of_models = (params.temperature, params.max_tokens, params.mode, params.samples, params.timeout, params.batch)
        if any(one is not None for one in of_models):
            raise Problem(
                422,
                "params-contradict",
                "temperature, maxTokens, mode, samples, timeout and batch are a model's; name the model too",
            )
        model = _model_of(found.file)
        if params.extractor == "learned" and model is None:
            raise Problem(
                422, "no-learned-model", "nothing was learned for this ontology; leave extractor out or learn first"
            )
        if model is not None and params.extractor in (None, "learned"):
            return deferred_learned(ontology, model=model)
        wanted = params.extractor or self._default
        weights = find_weights() if wanted != "lexicon" else None
        if wanted == "reader" and weights is None:
            raise Problem(422, "no-reader", "the reader's weights are not installed here; leave extractor out")
        return deferred_lexicon(ontology) if weights is None else deferred_reader(ontology, weights=weights)


def _shorter(asked: StageTimeout, most: StageTimeout | None) -> StageTimeout:
    return asked if most is None or asked.hard_ms <= most.hard_ms else most


def _model_of(file: Path | None) -> Path | None:
    if file is None:
        return None
    model = beside(file)
    return model if model.is_file() else None
