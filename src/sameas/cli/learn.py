"""`sameas learn`: a model from examples, saved beside the ontology, where `extract` finds it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from sameas.cli.models import learn_to
from sameas.cli.registry import find_ontology
from sameas.extraction.embedded import beside, saved_version
from sameas.ontology.load import load_ontology
from sameas.settings import load_settings


def command(
    examples: Annotated[Path, typer.Argument(help="JSON lines: {text, triples} or Text2KGBench's forms.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="A file, or the name of one that was added.")],
    imports: Annotated[Path | None, typer.Option(help="A folder that answers owl:imports.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save the model here instead of beside the ontology.")] = None,
) -> None:
    """Learn an extractor from examples."""
    settings = load_settings()
    path = find_ontology(ontology, settings)
    loaded = load_ontology(path, imports_dir=imports, cache_dir=settings.cache / "ontologies")
    target = out or beside(path)
    print(f"learning from {examples}, which takes a few seconds or more ...", file=sys.stderr)
    began = time.monotonic()
    learn_to(target, examples, loaded)
    seconds = time.monotonic() - began
    size = target.stat().st_size
    print(f"learned {target} in {seconds:.1f} s ({size / 1000:.0f} KB)", file=sys.stderr)
    print(saved_version(target))
