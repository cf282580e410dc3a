"""Learned models as files: made from examples, and kept by the content that they were made from."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from sameas.cli.errors import CliError
from sameas.extraction.extractors.embedded import SUFFIX, saved_version
from sameas.extraction.extractors.reader.finding import find_weights, weights_digest
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings

if TYPE_CHECKING:
    from sameas.extraction.evaluation.reader_learning import LearningReport
    from sameas.extraction.extractors.learning.examples import Example

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
