"""The arguments of `sameas extract`, and the formats that a graph is printed in, with the endings of their files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args

import msgspec

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extractors import EXTRACTORS

T = TypeVar("T", bound=str)

Format: TypeAlias = Literal["turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
EXTENSIONS: dict[Format, str] = {
    "turtle": ".ttl", "jsonld": ".jsonld", "nquads": ".nq", "graphml": ".graphml", "csv": ".csv", "cypher": ".cypher",
    "json": ".json", "html": ".html",
}  # fmt: skip
ENDINGS: dict[str, Format] = {
    **{extension: name for name, extension in EXTENSIONS.items()},
    ".turtle": "turtle", ".nquads": "nquads", ".cql": "cypher", ".htm": "html",
}  # fmt: skip
# What no command writes, or not every one.
_OTHER_ENDINGS = {*ENDINGS, ".rdf", ".owl", ".xml", ".nt", ".tsv", ".jsonl", ".xlsx", ".parquet", ".gexf", ".pdf"}
# Files of these formats can follow each other on one stream.
STREAMS: tuple[Format, ...] = ("turtle", "nquads", "cypher")

# Set besides --model, and of no use without it.
_ONLY_WITH_MODEL = (
    "estimate", "max_tokens", "max_cost", "samples", "joint", "ask_confidence", "grounding_model",
    "requests_per_minute", "tokens_per_minute", "timeout", "effort", "batch",
)  # fmt: skip


_LONGEST_TIMEOUT = 86_400


def format_for(out: Path | None, wanted: T | None, *, endings: Mapping[str, T], default: T) -> T:
    """The format that is asked for, else that of the file's name, else the usual one."""
    if wanted is not None:
        return wanted
    ending = "" if out is None or out.is_dir() else out.suffix.lower()
    if ending in endings:
        return endings[ending]
    if ending in _OTHER_ENDINGS:
        raise CliError(
            f"what is called {ending} is not written here, and --out {out} says no other format",
            todo=f"Name it {', '.join(endings)}, or give --format",
            code=ExitCode.USAGE,
        )
    return default


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for with `--model`."""

    model: str
    grounding_model: str | None = None
    estimate: bool = False
    joint: bool = False
    samples: int | None = None
    ask_confidence: bool = False
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    effort: Literal["minimal", "low", "medium", "high"] | None = None
    batch: bool = False

    @classmethod
    def of(cls, given: argparse.Namespace) -> ModelOptions:
        """The options of a parsed command line."""
        return cls(**{name: getattr(given, name) for name in cls.__struct_fields__})

    @property
    def mode(self) -> Literal["two-stage", "joint"]:
        return "joint" if self.joint else "two-stage"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only `--model` uses."""
    add = parser.add_argument_group("with a language model").add_argument
    add(
        "--model",
        metavar="NAME",
        help="openai:NAME, anthropic:NAME, google:NAME, ollama:NAME, http://host:port/v1#NAME",
    )
    add("--estimate", action="store_true", help="print calls, tokens and cost; spend nothing")
    add("--max-tokens", type=int, metavar="N", help="stop cleanly before a document takes more tokens")
    add("--max-cost", type=dollars, metavar="USD", help="stop cleanly before a document costs more")
    add("--samples", type=int, metavar="N", help="ask so often; confidence is how many agree")
    add("--joint", action="store_true", help="ask for entities and relations in one question")
    add(
        "--effort",
        choices=("minimal", "low", "medium", "high"),
        help="let the model think first, which takes time and tokens; by default as little as it can",
    )
    add("--batch", action="store_true", help="half the price, within a day: questions go to the provider in batches")
    add("--ask-confidence", action="store_true", help="ask the model how sure it is of each thing and fact")
    add("--grounding-model", metavar="NAME", help="a second model that checks each relation against the text")
    add("--requests-per-minute", type=int, metavar="N", help="what the account allows; 50, on loopback no limit")
    add("--tokens-per-minute", type=int, metavar="N", help="what the account allows; 100000, on loopback no limit")
    add(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds for one answer, which is asked for again then; 45, or 300 of a server of your own",
    )


def check_options(given: argparse.Namespace) -> None:
    """Refuse what does not go together."""
    if given.model is None:
        for name in _ONLY_WITH_MODEL:
            if getattr(given, name):
                raise CliError(f"{_option(name)} needs --model", code=ExitCode.USAGE)
        return
    if given.extractor is not None or given.spacy is not None:
        raise CliError(
            "--model is an extractor of its own", todo="Leave --extractor and --spacy out", code=ExitCode.USAGE
        )
    for name in ("max_tokens", "samples", "requests_per_minute", "tokens_per_minute"):
        value = getattr(given, name)
        if value is not None and value < 1:
            raise CliError(f"{_option(name)} must be 1 or more", code=ExitCode.USAGE)
    if given.timeout is not None and not 0 < given.timeout <= _LONGEST_TIMEOUT:
        raise CliError(f"--timeout must be above 0 and at most {_LONGEST_TIMEOUT}, in seconds", code=ExitCode.USAGE)


def dollars(text: str) -> Decimal:
    """An amount of money."""
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        raise argparse.ArgumentTypeError("it must be an amount such as 0.50") from None
    if not (amount.is_finite() and amount >= 0):
        raise argparse.ArgumentTypeError("it must not be negative")
    return amount


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


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
        metavar="F",
        help=f"how the graph is written: {', '.join(FORMATS)}; by default what --out is called, or turtle",
    )
    add("--out", metavar="FILE|DIR/", help="write to this file, or one file each into this folder")
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
