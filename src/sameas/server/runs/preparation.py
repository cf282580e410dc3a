"""From a request to everything that it stands for: its ontology, its extractor, its settings and its key.

Rule: what is long goes to a process of its own, where the ontology is loaded and the text is read; then this process
knows the key and the names alone. A long call of C, such as decoding an ontology of sixty thousand classes, would keep
every client of this process waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.runs.metadata import ExtractorName
from sameas.extraction.runs.record import SCOPE
from sameas.identity.errors import NotCanonical
from sameas.identity.key import IdempotencyKey
from sameas.once.observe import Event, KeyFailed
from sameas.ontology.model import Ontology
from sameas.server.runs.extractors import Extractors
from sameas.server.runs.models import ModelEstimate, model_estimate
from sameas.server.schemas import ExtractRequest
from sameas.server.tenants.descriptions import LARGE_ONTOLOGY
from sameas.server.tenants.ontologies import Ontologies, Registered
from sameas.server.tenants.workspaces import Workspaces, tenant_of

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
    return await model_estimate(prepared.means.extractor, prepared.means.ontology, text, settings=prepared.settings)


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
