"""Which extractor a request means, known by its identity before it is built.

Rule: one object for one ontology and one choice, so that pipelines are built once. Nothing is guessed: what the
deployment cannot do is refused with what it can.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from sameas.extraction import learned  # noqa: F401 - loaded when the service starts, not at its first run
from sameas.extraction.chunking import ChunkSettings
from sameas.extraction.deferred import deferred_learned, deferred_lexicon
from sameas.extraction.embedded import beside
from sameas.extraction.extractor import Extractor
from sameas.extraction.pipeline_settings import PipelineSettings
from sameas.once.async_engine import AsyncEngine
from sameas.ontology.model import Ontology
from sameas.server.models import ModelWish
from sameas.server.ontologies import Registered
from sameas.server.problems import Problem
from sameas.server.wire import ExtractionParams

_KEPT = 64

# Builds the extractor of a named model for an ontology; a deployment without models has none.
ModelExtractors = Callable[[ModelWish], Extractor]


class Extractors:
    """The extractors and pipeline settings of requests, the same objects for the same wish."""

    def __init__(self, *, concurrency: int, engine: AsyncEngine, models: ModelExtractors) -> None:
        self._concurrency = concurrency
        self._engine = engine
        self._models = models
        self._extractors: OrderedDict[tuple[int, ExtractionParams, str], tuple[Ontology, Extractor]] = OrderedDict()
        self._settings: OrderedDict[tuple[int | None, int], PipelineSettings] = OrderedDict()

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
        place = (params.chunk_size, params.concurrency or self._concurrency)
        known = self._settings.get(place)
        if known is None:
            known = self._settings[place] = PipelineSettings(
                chunking=ChunkSettings() if place[0] is None else ChunkSettings(max(1, place[0] // 5), place[0]),
                concurrency=place[1],
            )
            while len(self._settings) > _KEPT:
                self._settings.popitem(last=False)
        return known

    def _choose(self, ontology: Ontology, found: Registered, params: ExtractionParams, tenant: str) -> Extractor:
        if params.extractor == "model" or params.named_model is not None:
            if params.extractor not in (None, "model"):
                raise Problem(422, "params-contradict", f"extractor {params.extractor!r} asks no model; name none")
            return self._models(ModelWish(ontology, params, tenant, self._engine))
        if (params.temperature, params.max_tokens, params.mode, params.samples) != (None, None, None, None):
            raise Problem(
                422, "params-contradict", "temperature, maxTokens, mode and samples are a model's; name the model too"
            )
        model = _model_of(found.file)
        if params.extractor == "learned" and model is None:
            raise Problem(
                422, "no-learned-model", "nothing was learned for this ontology; leave extractor out or learn first"
            )
        if model is None or params.extractor == "lexicon":
            return deferred_lexicon(ontology)
        return deferred_learned(ontology, model=model)


def _model_of(file: Path | None) -> Path | None:
    if file is None:
        return None
    model = beside(file)
    return model if model.is_file() else None
