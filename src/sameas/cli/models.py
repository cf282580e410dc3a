"""Learned models as files: made from examples, and kept by the content that they were made from."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from sameas.cli.errors import CliError
from sameas.extraction.embedded import SUFFIX, saved_version
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Ontology
from sameas.settings import Settings


def learn_to(target: Path, examples: Path, ontology: Ontology) -> None:
    """Learn from a file of examples and save the model."""
    if not examples.is_file():
        raise CliError(f"{examples}: there is no such file of examples", todo="Give a file of JSON lines")
    from sameas.extraction.learned import schema_of
    from sameas.extraction.learning import read_examples
    from sameas.extraction.learning.train import learn
    from sameas.extraction.trust import trusted_properties

    index = OntologyIndex(ontology)
    schema = schema_of(index)
    given = read_examples(examples, schema)
    target.parent.mkdir(parents=True, exist_ok=True)
    learn(given, schema).trusting(trusted_properties(given, index)).save(target)


def model_from(examples: Path, *, ontology: Ontology, settings: Settings, quiet: bool) -> Path:
    """The model of these examples and this ontology: from the cache, or learned now."""
    from sameas import __version__

    if not examples.is_file():
        raise CliError(f"{examples}: there is no such file of examples", todo="Give a file of JSON lines")
    digest = hashlib.sha256(f"{__version__}\n{ontology.version}\n".encode() + examples.read_bytes()).hexdigest()
    target = settings.cache / "learned" / f"{digest}{SUFFIX}"
    if not target.is_file() or not saved_version(target):
        if not quiet:
            print(f"learning from {examples} (kept for the next time)", file=sys.stderr)
        learn_to(target, examples, ontology)
    return target
