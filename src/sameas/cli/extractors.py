"""Which extractor a command uses, and learned models as files: made from examples, kept by what they were made from.

Rule: a model that was learned for an ontology lies beside it (`company.ttl.learned`) and is used without asking; its
version is part of the key. Without one it is the reader, where its weights are installed, else the lexicon. Nothing is
loaded before a chunk needs it.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from sameas.cli.errors import CliError, ExitCode
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.deferred import deferred_learned, deferred_lexicon, deferred_reader
from sameas.extraction.extractors.embedded import SUFFIX, beside, find_weights, saved_version, weights_digest
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings

if TYPE_CHECKING:
    from sameas.extraction.evaluation.reader_learning import LearningReport
    from sameas.extraction.extractors.learning.examples import Example

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


# From so many examples on that name one fact of several, patterns are better (docs/reader.md has the figures).
_MANY = 100
Learner: TypeAlias = Literal["reader", "patterns"]


def learn_to(
    target: Path,
    examples: Path,
    ontology: Ontology,
    *,
    complete: bool | None = None,
    learner: Learner | None = None,
) -> LearningReport | None:
    """Learn from a file of examples and save the model: the reader's heads where its weights are installed, else, or
    where many examples name one fact of several, patterns. What came of the former is reported.
    """
    if not examples.is_file():
        raise CliError(f"{examples}: there is no such file of examples", todo="Give a file of JSON lines")
    from sameas.extraction.extractors.learned import schema_of
    from sameas.extraction.extractors.learning import read_examples

    index = OntologyIndex(ontology)
    given = read_examples(examples, schema_of(index))
    target.parent.mkdir(parents=True, exist_ok=True)
    weights = find_weights() if learner != "patterns" else None
    if weights is None:
        if learner == "reader":
            raise CliError("the reader's weights are not installed", todo="Install sameas[reader]")
        _learn_patterns(target, given, index)
        return None
    from sameas.extraction.evaluation.reader_learning import learn_reader, name_everything
    from sameas.extraction.extractors.reader.reading import load_reader

    reader = load_reader(weights)
    if learner is None and len(given) >= _MANY:
        complete = name_everything(given, index, reader) if complete is None else complete
        if not complete:
            _learn_patterns(target, given, index)
            return None
    model, report = learn_reader(given, index, reader, weights=weights_digest(weights), complete=complete)
    model.save(target)
    return report


def _learn_patterns(target: Path, examples: list[Example], index: OntologyIndex) -> None:
    from sameas.extraction.extractors.learned import schema_of
    from sameas.extraction.extractors.learning.train import learn
    from sameas.extraction.extractors.trust import trusted_properties

    learn(examples, schema_of(index)).trusting(trusted_properties(examples, index)).save(target)


def model_from(
    examples: Path, *, ontology: Ontology, settings: Settings, quiet: bool, learner: Learner | None = None
) -> Path:
    """The model of these examples and this ontology: from the cache, or learned now."""
    from sameas import __version__

    if not examples.is_file():
        raise CliError(f"{examples}: there is no such file of examples", todo="Give a file of JSON lines")
    weights = find_weights() if learner != "patterns" else None
    made_by = weights_digest(weights) if weights is not None else "patterns"
    digest = hashlib.sha256(
        f"{__version__}\n{ontology.version}\n{made_by}\n".encode() + examples.read_bytes()
    ).hexdigest()
    target = settings.cache / "learned" / f"{digest}{SUFFIX}"
    if not target.is_file() or not saved_version(target):
        if not quiet:
            print(f"learning from {examples} (kept for the next time)", file=sys.stderr)
        learn_to(target, examples, ontology, learner=learner)
    return target
