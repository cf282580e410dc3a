"""The arguments of `sameas extract`.

They are read by argparse, unlike those of the other commands: Typer brings pydantic along, which alone takes half of
the time that a replay may take.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from sameas.cli.extractors import EXTRACTORS
from sameas.cli.formats import FORMATS
from sameas.cli.model_options import add_options

SHORT = "Extract entities and relations from documents."


class Parser(argparse.ArgumentParser):
    """Says what a mistyped option may have meant, before anything else is wrong."""

    def check_options(self, arguments: Sequence[str]) -> None:
        end = arguments.index("--") if "--" in arguments else len(arguments)
        for argument in arguments[:end]:
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                near = get_close_matches(name, self._option_string_actions, n=1)
                self.error(f"no such option: {name}" + (f". Did you mean {near[0]}?" if near else ""))


def build_parser() -> Parser:
    """What reads them."""
    parser = Parser(
        prog="sameas extract",
        description="Extract entities and relations from documents, true to an ontology.",
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
        metavar="F",
        help=f"how the graph is written: {', '.join(FORMATS)}; turtle by default",
    )
    add("--out", type=Path, metavar="FILE", help="write to this file, or one file each into this folder")
    add("--extractor", choices=EXTRACTORS, help="by default learned, if there is a model, else reader, else lexicon")
    add(
        "--min-confidence",
        type=_share,
        metavar="C",
        help="leave out what is less sure; 0.5 for the reader, else 0. The run keeps everything",
    )
    add("--spacy", metavar="PIPELINE", help="also take the names that this spaCy pipeline finds (sameas[spacy])")
    add(
        "--shapes",
        metavar="FILE|derived",
        help="validate the graph by these SHACL shapes, or by those that follow from the ontology (sameas[shacl])",
    )
    add("--base", metavar="IRI", help="what the IRIs of entities begin with")
    add("--workers", choices=("celery",), help="have the documents read by the workers of a cluster (SAMEAS_BROKER)")
    add(
        "--concurrency",
        type=_at_least_one,
        metavar="N",
        help="documents, and chunks of each, at a time; never changes the result",
    )
    add(
        "--deadline",
        type=_positive,
        metavar="S",
        help="seconds after which what is there is given as partial",
    )
    add("--open", action="store_true", help="show the finished run in the web app, until Ctrl-C")
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


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError("it must be from 0 to 1")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("it must be more than 0")
    return number
