"""`sameas eval`: how good an extractor, or a language model, is on a folder of domains with complete gold, on one in
Text2KGBench's layout, or on a file of examples with any ontology. What is scored is what `extract` would answer.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extractors import ExtractorName

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.corpus import Part


def command(
    dataset: Annotated[
        Path,
        typer.Argument(help="Domains (ontology.ttl, documents.jsonl), Text2KGBench's layout, or a file of examples."),
    ],
    *,
    split: Annotated[str, typer.Option(help="validation or test.")] = "validation",
    ontology: Annotated[
        str | None, typer.Option(help="Only this one, such as 1_movie or movie; with a file, its ontology.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="With a file: learn from this one; without it, from four fifths.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Learn from so many sentences; all without it.")] = None,
    prior: Annotated[
        Literal["others", "shipped"] | None, typer.Option(help="Where weights start: others, with a file shipped.")
    ] = None,
    extractor: Annotated[
        ExtractorName | None, typer.Option(help="With complete gold; without it the one that `extract` takes.")
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="With complete gold: learn from the examples of each domain first.")
    ] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="With complete gold: leave out what is less sure; by default as `extract` does."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which sentences --limit takes.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    model: Annotated[str | None, typer.Option(help="Ask this model; answers are remembered.")] = None,
    texts: Annotated[int | None, typer.Option(min=1, help="With --model: the first so many sentences.")] = None,
    shots: Annotated[int, typer.Option(min=0, help="With --model: examples in a prompt, from train.")] = 3,
    joint: Annotated[bool, typer.Option("--joint", help="With --model: one question a sentence.")] = False,
    samples: Annotated[int, typer.Option(min=1, help="With --model: ask so often.")] = 1,
    grounding_model: Annotated[str | None, typer.Option(help="With --model: a second one that checks.")] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="With --model: calls at a time; 5, of a server of your own 1.")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="With --model; 50, on loopback no limit.")
    ] = None,
    tokens_per_minute: Annotated[
        int | None, typer.Option(min=1, help="With --model; 100000, on loopback no limit.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="With --model: seconds for one answer; 45, of your own 300.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="With --model: stop before the command costs more.")
    ] = None,
) -> None:
    """Learn from the train part of each ontology, or ask a model, and score another part."""
    options = None
    if model is not None:
        from sameas.cli.extract_options import ModelOptions

        options = ModelOptions(
            model=model,
            grounding_model=grounding_model,
            joint=joint,
            samples=samples,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            concurrency=concurrency,
            timeout=timeout,
            max_cost=_dollars(max_cost),
        )
    if _has_complete_gold(dataset):
        from sameas.cli.trials import GoldTrial, evaluate_gold

        gold = GoldTrial(
            extractor=extractor,
            learn=learn,
            options=options,
            shots=shots,
            domain=ontology,
            min_confidence=min_confidence,
            json=json,
        )
        evaluate_gold(dataset, gold)
        return
    if extractor is not None or learn or min_confidence is not None:
        raise CliError(
            "--extractor, --learn and --min-confidence go with complete gold",
            todo="Give a folder of domains, each with ontology.ttl and documents.jsonl",
            code=ExitCode.USAGE,
        )
    parts, wanted = _parts(dataset, ontology=ontology, train=train, seed=seed)
    if options is not None:
        from sameas.cli.trials import Trial, evaluate

        trial = Trial(split=split, texts=texts, shots=shots, options=options, json=json)
        code = evaluate(trial, wanted)
        if code:
            raise typer.Exit(code)
        return
    from sameas.extraction.evaluation.learned import measure, priors, table

    rows = []
    # A prior leaves out the ontology that it is for, so all of them are walked.
    start_from = prior or ("others" if len(parts) > 1 else "shipped")
    for part, start in zip(parts, priors(parts, which=start_from), strict=True):
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


def _has_complete_gold(dataset: Path) -> bool:
    from sameas.extraction.evaluation import is_domain

    return dataset.is_dir() and (is_domain(dataset) or any(map(is_domain, dataset.iterdir())))


def _parts(dataset: Path, *, ontology: str | None, train: Path | None, seed: int) -> tuple[list[Part], list[Part]]:
    """All ontologies of the data, and those that are asked for."""
    from sameas.extraction.extractors.learning.corpus import read_corpus, read_part

    if dataset.is_file():
        from sameas.cli.registry import find_ontology
        from sameas.settings import load_settings

        if ontology is None:
            raise CliError(f"{dataset} is a file of examples", todo="Name its ontology with --ontology")
        if train is not None and not train.is_file():
            raise CliError(f"{train}: there is no such file of examples", todo="Give a file of JSON lines")
        one = read_part(dataset, find_ontology(ontology, load_settings()), train=train, seed=seed)
        return [one], [one]
    if not dataset.is_dir():
        raise CliError(f"{dataset} is not a folder, nor a file", todo="Give Text2KGBench's layout or JSON lines")
    if train is not None:
        raise CliError("--train goes with a file of examples", todo="A folder has its own train part")
    parts = read_corpus(dataset)
    wanted = [part for part in parts if ontology in (None, part.name, part.name.partition("_")[2])]
    if not wanted:
        names = ", ".join(part.name for part in parts)
        raise CliError(f"{dataset} has no ontology {ontology!r}", todo=f"It has {names}")
    return parts, wanted


def _dollars(text: str | None) -> Decimal | None:
    from sameas.cli.extract_options import dollars

    try:
        return None if text is None else dollars(text)
    except ArgumentTypeError as error:
        raise CliError(f"--max-cost: {error}", code=ExitCode.USAGE) from None
