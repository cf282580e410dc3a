"""Which extractor a command uses.

Rule: a model that was learned for an ontology lies beside it (`company.ttl.learned`) and is used without asking; its
version is part of the key. Without one it is the reader, where its weights are installed, else the lexicon. Nothing is
loaded before a chunk needs it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.deferred import deferred_learned, deferred_lexicon, deferred_reader
from sameas.extraction.extractors.embedded import beside
from sameas.extraction.extractors.reader.finding import find_weights
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology

ExtractorName: TypeAlias = Literal["reader", "lexicon", "learned"]
EXTRACTORS: tuple[ExtractorName, ...] = get_args(ExtractorName)
_NEEDS: dict[ExtractorName, str] = {"reader": "numpy", "lexicon": "ahocorasick_rs", "learned": "scipy"}


def is_installed(name: ExtractorName) -> bool:
    """Whether everything that an extractor needs is there."""
    return find_spec(_NEEDS[name]) is not None and (name != "reader" or find_weights() is not None)


def choose_extractor(
    ontology: Ontology,
    *,
    path: Path,
    wanted: ExtractorName | None = None,
    model: Path | None = None,
    default: Literal["", "reader", "lexicon"] = "",
) -> Extractor:
    """The one that is wanted; else a learned one, if there is a model, else the default, the reader or the lexicon."""
    learned = model or beside(path)
    name = wanted or ("learned" if learned.is_file() else default)
    if name == "learned":
        if not learned.is_file():
            raise CliError(
                f"there is no learned model {learned}",
                todo=f"Run `sameas learn EXAMPLES --ontology {path}` first, or give --examples",
            )
        return deferred_learned(ontology, model=learned)
    weights = find_weights() if name != "lexicon" else None
    if name == "reader" and weights is None:
        raise CliError("the reader's weights are not installed", todo="Install sameas[reader], or choose the lexicon")
    return deferred_lexicon(ontology) if weights is None else deferred_reader(ontology, weights=weights)


def with_spacy(extractor: Extractor, ontology: Ontology, *, pipeline: str) -> Extractor:
    """The extractor with the names that a spaCy pipeline finds, by its name or its folder."""
    from sameas.extraction.extractors.spacy_names import SpacyNames, SpacyUnavailableError

    try:
        return SpacyNames(extractor, OntologyIndex(ontology), pipeline=pipeline)
    except SpacyUnavailableError as error:
        raise CliError(str(error), todo="Leave --spacy out, or install it", code=ExitCode.USAGE) from error
