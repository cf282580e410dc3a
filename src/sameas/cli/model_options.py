"""The options of extraction by a language model.

Rule: this file is loaded by every `sameas extract`, so it imports nothing of models. An option that only a model uses
is refused without one.
"""

from __future__ import annotations

import argparse
from decimal import Decimal, InvalidOperation
from typing import Literal

import msgspec

from sameas.cli.errors import CliError, ExitCode

# Set besides --model, and of no use without it.
_ONLY_WITH_MODEL = (
    "estimate", "max_tokens", "max_cost", "samples", "joint", "ask_confidence", "grounding_model",
    "requests_per_minute", "tokens_per_minute", "timeout", "effort", "batch",
)  # fmt: skip


_LONGEST_TIMEOUT = 86_400


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
