"""`sameas eval`: how good the learned extractor is on a folder in Text2KGBench's layout."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from sameas.cli.errors import CliError


def command(
    dataset: Annotated[Path, typer.Argument(help="A folder with ontologies/, train/ and the split.")],
    *,
    split: Annotated[str, typer.Option(help="validation or test.")] = "validation",
    ontology: Annotated[str | None, typer.Option(help="Only this one, such as 1_movie or movie.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Learn from so many sentences; all without it.")] = None,
    prior: Annotated[Literal["others", "shipped"], typer.Option(help="Where weights start.")] = "others",
    seed: Annotated[int, typer.Option(help="Which sentences --limit takes.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Learn from the train part of each ontology and score another part."""
    from sameas.extraction.learning.corpus import read_corpus
    from sameas.extraction.learning.evaluate import measure, priors, table

    if not dataset.is_dir():
        raise CliError(f"{dataset} is not a folder", todo="Give a folder in Text2KGBench's layout")
    parts = read_corpus(dataset)
    wanted = [part for part in parts if ontology in (None, part.name, part.name.partition("_")[2])]
    if not wanted:
        names = ", ".join(part.name for part in parts)
        raise CliError(f"{dataset} has no ontology {ontology!r}", todo=f"It has {names}")
    rows = []
    # A prior leaves out the ontology that it is for, so all of them are walked.
    for part, start in zip(parts, priors(parts, which=prior), strict=True):
        if part not in wanted:
            continue
        row = measure(part, start, limit=limit, split=split, seed=seed)
        rows.append(row)
        if json:
            import msgspec

            print(msgspec.json.encode({"split": split, **asdict(row)}).decode(), flush=True)
        elif len(wanted) > 1:
            print(f"{part.name}: F1 {row.scores.f1:.3f}", file=sys.stderr)
    if not json:
        for line in table(rows):
            print(line)
