"""`sameas learn`: a model from examples, saved beside the ontology, where `extract` finds it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sameas.cli.extractors import Learner, learn_to
from sameas.cli.registry import find_ontology
from sameas.cli.tables import print_table
from sameas.extraction.extractors.embedded import beside, saved_version
from sameas.ontology.load import load_ontology
from sameas.settings import load_settings

if TYPE_CHECKING:
    from sameas.extraction.evaluation.reader_learning import LearningReport
    from sameas.extraction.evaluation.report import Figures

_SHOWN = 10


def command(
    examples: Annotated[Path, typer.Argument(help="JSON lines: {text, triples} or Text2KGBench's forms.")],
    *,
    ontology: Annotated[str, typer.Option("--ontology", "-o", help="A file, or the name of one that was added.")],
    imports: Annotated[Path | None, typer.Option(help="A folder that answers owl:imports.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save the model here instead of beside the ontology.")] = None,
    complete: Annotated[
        bool | None,
        typer.Option(
            "--complete/--partial",
            help="Whether the examples name every fact of their texts; without it the reader decides.",
            show_default=False,
        ),
    ] = None,
    learner: Annotated[
        Learner | None, typer.Option(help="reader fits the reader's heads (the default with its weights), or patterns.")
    ] = None,
) -> None:
    """Learn an extractor from examples."""
    settings = load_settings()
    path = find_ontology(ontology, settings)
    loaded = load_ontology(path, imports_dir=imports, cache_dir=settings.cache / "ontologies")
    target = out or beside(path)
    print(f"learning from {examples}, which takes a few seconds or more ...", file=sys.stderr)
    began = time.monotonic()
    report = learn_to(target, examples, loaded, complete=complete, learner=learner)
    seconds = time.monotonic() - began
    if report is not None:
        _print_report(report)
    size = target.stat().st_size
    print(f"learned {target} in {seconds:.1f} s ({size / 1000:.0f} KB)", file=sys.stderr)
    print(saved_version(target))


def _print_report(report: LearningReport) -> None:
    from sameas.extraction.outputs.context import local_name

    rows = [
        [local_name(one.iri), str(one.examples), *_cells(one.base), *_cells(one.fitted)] for one in report.properties
    ]
    count = sum(one.examples for one in report.properties)
    rows.append(["all", str(count), *_cells(report.base), *_cells(report.fitted)])
    print_table(("property", "examples", "P", "R", "learned P", "R"), rows, to=sys.stderr)
    print("P and R are of examples held out in turn, before and after learning.", file=sys.stderr)
    if report.unused:
        print(f"{len(report.unused)} facts of the examples teach nothing:", file=sys.stderr)
    for one in report.unused[:_SHOWN]:
        fact = f"{one.triple.subject} | {local_name(one.triple.property)} | {one.triple.object}"
        print(f"  example {one.number + 1}: {fact}: {one.reason}", file=sys.stderr)
    if len(report.unused) > _SHOWN:
        print(f"  and {len(report.unused) - _SHOWN} more", file=sys.stderr)
    if not report.complete:
        print(
            "note: the examples leave out facts that their texts state; those are not taught as false (--complete if "
            "they name every fact)",
            file=sys.stderr,
        )
    if not report.gains:
        print(
            f"note: cross-validation shows no gain (F1 {report.base_f1:.3f} before, {report.fitted_f1:.3f} after): the "
            "reader is used as it came. More examples may help",
            file=sys.stderr,
        )


def _cells(figures: Figures) -> list[str]:
    return [
        f"{figures.precision:.2f}" if figures.stated else "",
        f"{figures.recall:.2f}" if figures.there else "",
    ]
