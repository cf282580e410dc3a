"""Which extractor a command uses.

Rule: a model that was learned for an ontology lies beside it (`company.ttl.learned`) and is used without asking; its
version is part of the key. Nothing is loaded before a chunk needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.deferred import deferred_learned, deferred_lexicon
from sameas.extraction.embedded import beside
from sameas.extraction.extractor import Extractor
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology

ExtractorName: TypeAlias = Literal["lexicon", "learned"]
EXTRACTORS: tuple[ExtractorName, ...] = get_args(ExtractorName)


def choose_extractor(
    ontology: Ontology, *, path: Path, wanted: ExtractorName | None = None, model: Path | None = None
) -> Extractor:
    """The one that is wanted; else a learned one, if there is a model, else the lexicon."""
    found = model or beside(path)
    if wanted == "lexicon" or (wanted is None and not found.is_file()):
        return deferred_lexicon(ontology)
    if not found.is_file():
        raise CliError(
            f"there is no learned model {found}",
            todo=f"Run `sameas learn EXAMPLES --ontology {path}` first, or give --examples",
        )
    return deferred_learned(ontology, model=found)


def with_spacy(extractor: Extractor, ontology: Ontology, *, pipeline: str) -> Extractor:
    """The extractor with the names that a spaCy pipeline finds, by its name or its folder."""
    from sameas.extraction.spacy_names import SpacyNames, SpacyUnavailableError

    try:
        return SpacyNames(extractor, OntologyIndex(ontology), pipeline=pipeline)
    except SpacyUnavailableError as error:
        raise CliError(str(error), todo="Leave --spacy out, or install it", code=ExitCode.USAGE) from error
