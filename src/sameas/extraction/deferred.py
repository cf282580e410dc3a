"""An extractor whose identity is known before it is built: the lexicon, or a model that was learned.

Rule: a replay needs the identity alone, so nothing is loaded until a chunk has to be worked on. A model that was
replaced since its version was read is refused: its answers would be kept under the version before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sameas.extraction import embedded
from sameas.extraction.chunking import Chunk
from sameas.extraction.extractor import Extractor, Found
from sameas.extraction.graph import Claim, Mention
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology


class ModelReplacedError(ValueError):
    """The file of a learned model was replaced after its version was read."""


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
        from sameas.extraction.lexicon import LexiconExtractor

        return LexiconExtractor(OntologyIndex(ontology))

    return Deferred(embedded.LEXICON, embedded.LEXICON_VERSION, {}, build)


def deferred_learned(ontology: Ontology, *, model: Path) -> Deferred:
    """What was learned for an ontology, from its file."""
    version = embedded.saved_version(model)

    def build() -> Extractor:
        from sameas.extraction.learned import LearnedExtractor
        from sameas.extraction.learning import LearnedModel

        loaded = LearnedModel.load(model)
        if loaded.version != version:
            raise ModelReplacedError(f"{model.name} changed while it was read; ask again")
        return LearnedExtractor(OntologyIndex(ontology), loaded)

    return Deferred(embedded.LEARNED, embedded.LEARNED_VERSION, embedded.learned_settings(version), build)
