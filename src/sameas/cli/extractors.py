"""Which extractor a command uses, known by name, version and settings before it is built.

Rule: a model that was learned for an ontology lies beside it (`company.ttl.learned`) and is used without asking; its
version is part of the key. A replay needs the identity alone, so nothing is built until a chunk has to be worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction import embedded
from sameas.extraction.chunking import Chunk
from sameas.extraction.extractor import Extractor, Found
from sameas.extraction.graph import Claim, Mention
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology

ExtractorName: TypeAlias = Literal["lexicon", "learned"]
EXTRACTORS: tuple[ExtractorName, ...] = get_args(ExtractorName)
SUFFIX = ".learned"


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


def beside(ontology: Path) -> Path:
    """Where the model of an ontology is kept."""
    return ontology.with_name(ontology.name + SUFFIX)


def choose_extractor(
    ontology: Ontology, *, path: Path, wanted: ExtractorName | None = None, model: Path | None = None
) -> Extractor:
    """The one that is wanted; else a learned one, if there is a model, else the lexicon."""
    found = model or beside(path)
    if wanted == "lexicon" or (wanted is None and not found.is_file()):
        return Deferred(embedded.LEXICON, embedded.LEXICON_VERSION, {}, lambda: _lexicon(ontology))
    if not found.is_file():
        raise CliError(
            f"there is no learned model {found}",
            todo=f"Run `sameas learn EXAMPLES --ontology {path}` first, or give --examples",
        )
    version = embedded.saved_version(found)
    return Deferred(
        embedded.LEARNED,
        embedded.LEARNED_VERSION,
        embedded.learned_settings(version),
        lambda: _load(ontology, found, version=version),
    )


def with_spacy(extractor: Extractor, ontology: Ontology, *, pipeline: str) -> Extractor:
    """The extractor with the names that a spaCy pipeline finds, by its name or its folder."""
    from sameas.extraction.spacy_names import SpacyNames, SpacyUnavailableError

    try:
        return SpacyNames(extractor, OntologyIndex(ontology), pipeline=pipeline)
    except SpacyUnavailableError as error:
        raise CliError(str(error), todo="Leave --spacy out, or install it", code=ExitCode.USAGE) from error


def _lexicon(ontology: Ontology) -> Extractor:
    from sameas.extraction.lexicon import LexiconExtractor

    return LexiconExtractor(OntologyIndex(ontology))


def _load(ontology: Ontology, path: Path, *, version: str) -> Extractor:
    from sameas.extraction.learned import LearnedExtractor
    from sameas.extraction.learning import LearnedModel

    model = LearnedModel.load(path)
    if model.version != version:
        raise CliError(f"{path} changed while it was read", todo="Run the command again", code=ExitCode.FAILED)
    return LearnedExtractor(OntologyIndex(ontology), model)
