"""An extractor whose identity is known before it is built: the lexicon, the reader, or a model that was learned.

Rule: a replay needs the identity alone, so nothing is loaded until a chunk has to be worked on. A model that was
replaced since its version was read is refused: its answers would be kept under the version before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sameas.extraction.extractors import embedded
from sameas.extraction.extractors.contract import Extractor, Found
from sameas.extraction.extractors.embedded import find_weights, weights_digest
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.identity.errors import SameasError
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology


class ModelReplacedError(SameasError, ValueError):
    """The file of a learned model was replaced after its version was read."""


class WeightsMissingError(SameasError, ValueError):
    """A learned model needs weights of the reader that are not there."""


class Deferred:
    """An extractor whose identity is known and which is built at its first chunk."""

    def __init__(self, name: str, version: str, settings: Mapping[str, Any], build: Callable[[], Extractor]) -> None:
        self.name = name
        self.version = version
        self.settings = settings
        self._build = build
        self._built: Extractor | None = None

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        return await self._extractor().extract_entities(chunk, focus)

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        return await self._extractor().extract_relations(chunk, mentions, focus)

    def _extractor(self) -> Extractor:
        if self._built is None:
            self._built = self._build()
        return self._built


def deferred_lexicon(ontology: Ontology) -> Deferred:
    """The lexicon of an ontology."""

    def build() -> Extractor:
        from sameas.extraction.extractors.lexicon import LexiconExtractor

        return LexiconExtractor(OntologyIndex(ontology))

    return Deferred(embedded.LEXICON, embedded.LEXICON_VERSION, {}, build)


def deferred_reader(ontology: Ontology, *, weights: Path) -> Deferred:
    """The reader for an ontology; `weights` is its folder."""
    digest = weights_digest(weights)

    def build() -> Extractor:
        from sameas.extraction.extractors.reader.extractor import ReaderExtractor
        from sameas.extraction.extractors.reader.reading import load_reader

        return ReaderExtractor(OntologyIndex(ontology), load_reader(weights), digest=digest)

    return Deferred(embedded.READER, embedded.READER_VERSION, embedded.reader_settings(digest), build)


def deferred_learned(ontology: Ontology, *, model: Path) -> Deferred:
    """What was learned for an ontology, from its file."""
    version = embedded.saved_version(model)
    if embedded.is_fitted(model):
        return _deferred_fitted(ontology, model=model, version=version)

    def build() -> Extractor:
        from sameas.extraction.extractors.learned import LearnedExtractor
        from sameas.extraction.extractors.learning import LearnedModel

        loaded = LearnedModel.load(model)
        if loaded.version != version:
            raise ModelReplacedError(f"{model.name} changed while it was read; ask again")
        return LearnedExtractor(OntologyIndex(ontology), loaded)

    return Deferred(embedded.LEARNED, embedded.LEARNED_VERSION, embedded.learned_settings(version), build)


def _deferred_fitted(ontology: Ontology, *, model: Path, version: str) -> Deferred:
    weights = find_weights()
    if weights is None:
        raise WeightsMissingError(
            f"{model.name} was learned for the reader, whose weights are not installed; install sameas[reader]"
        )
    digest = weights_digest(weights)
    settings = embedded.fitted_settings(version, digest)

    def build() -> Extractor:
        from sameas.extraction.extractors.reader.extractor import ReaderExtractor
        from sameas.extraction.extractors.reader.fitted import FittedModel
        from sameas.extraction.extractors.reader.reading import load_reader

        loaded = FittedModel.load(model)
        if loaded.version != version:
            raise ModelReplacedError(f"{model.name} changed while it was read; ask again")
        if loaded.content.weights != digest:
            raise WeightsMissingError(f"{model.name} was learned for other weights of the reader; learn it again")
        index = OntologyIndex(ontology)
        return ReaderExtractor(
            index,
            loaded.apply(load_reader(weights), index),
            digest=digest,
            judge_signs=loaded.judge(),
            name=embedded.FITTED,
            version=embedded.FITTED_VERSION,
            settings=settings,
        )

    return Deferred(embedded.FITTED, embedded.FITTED_VERSION, settings, build)
