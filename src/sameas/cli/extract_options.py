"""The arguments of `sameas extract`.

They are read by argparse, unlike those of the other commands: Typer brings pydantic along, which alone takes half of
the time that a replay may take.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sameas.cli.extractors import EXTRACTORS
from sameas.cli.formats import FORMATS
from sameas.cli.model_options import add_options

SHORT = "Extract entities and relations from documents, true to an ontology."


def build_parser() -> argparse.ArgumentParser:
    """What reads them."""
    parser = argparse.ArgumentParser(
        prog="sameas extract",
        description=SHORT,
        epilog="The graph goes to stdout or --out, the summary to stderr. Exit codes: 0 all complete, 1 failed, 2 "
        "wrong usage, 3 a partial result, 4 bad input, 5 store or work not available now, 6 the graph does not conform "
        "to the shapes, 130 interrupted.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "documents",
        nargs="+",
        metavar="FILE|-|TEXT",
        help="files, patterns, '-' for standard input, texts in quotes",
    )
    add("--ontology", "-o", required=True, metavar="FILE", help="a file, or the name of one that was added")
    add("--imports", type=Path, metavar="DIR", help="a folder that answers owl:imports")
    add(
        "--examples",
        type=Path,
        metavar="FILE",
        help="learn from these first, kept for the next time; with --model, show it those that are like each chunk",
    )
    add(
        "--format",
        "-f",
        choices=FORMATS,
        default="turtle",
        help="how the graph is written; turtle by default",
    )
    add("--out", type=Path, metavar="FILE", help="write to this file, or one file each into this folder")
    add("--extractor", choices=EXTRACTORS, help="by default learned, if there is a model, else lexicon")
    add("--spacy", metavar="PIPELINE", help="also take the names that this spaCy pipeline finds (sameas[spacy])")
    add(
        "--shapes",
        metavar="FILE|derived",
        help="validate the graph by these SHACL shapes, or by those that follow from the ontology (sameas[shacl])",
    )
    add("--base", metavar="IRI", help="what the IRIs of entities begin with")
    add("--concurrency", type=_at_least_one, metavar="N", help="chunks at a time; never changes the result")
    add(
        "--deadline",
        type=_positive,
        metavar="S",
        help="seconds after which what is there is given as partial",
    )
    add("--quiet", "-q", action="store_true", help="nothing on stderr but errors")
    add("--json", action="store_true", help="one JSON object for each document on stdout")
    add("--debug", action="store_true", help="show tracebacks")
    add_options(parser)
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("it must be more than 0")
    return number
