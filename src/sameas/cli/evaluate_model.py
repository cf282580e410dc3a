"""`sameas eval --model`: how good a language model is on a folder in Text2KGBench's layout."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec

from sameas.cli.errors import ExitCode
from sameas.cli.extract_options import ModelOptions
from sameas.cli.prompted import limits_of, open_model_path
from sameas.cli.service import open_configured
from sameas.cli.summary import prices_line, what_helps
from sameas.extraction.evaluation.prompted import Evaluation, ModelRow, shots_of, table
from sameas.extraction.extractors.learning.corpus import Part
from sameas.llm.account import RateLimits
from sameas.llm.budget import SpendingLimit
from sameas.llm.limiter import AccountLimiters
from sameas.settings import load_settings


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated on what."""

    split: str
    texts: int | None
    shots: int
    options: ModelOptions
    json: bool


def evaluate(trial: Trial, parts: Sequence[Part]) -> ExitCode:
    """Ask the model about the sentences of each ontology and print its scores."""
    rows = asyncio.run(_all(trial, parts))
    if not trial.json:
        for line in table(rows):
            print(line)
        if any(row.usage.cost for row in rows):
            print(prices_line(load_settings()))
    failed = sum(row.failed for row in rows)
    if not failed:
        return ExitCode.OK
    codes = Counter(code for row in rows for code in row.missing.elements())
    why = ", ".join(f"{count} {code}" for code, count in codes.most_common())
    texts = sum(int(row.scores.texts) for row in rows)
    print(f"sameas: {failed} of {texts} sentences could not be done: {why}. {what_helps(codes)}", file=sys.stderr)
    return ExitCode.PARTIAL


async def _all(trial: Trial, parts: Sequence[Part]) -> list[ModelRow]:
    """One ontology after another, under the limits and with the money of one command."""
    settings, spending = load_settings(), SpendingLimit(trial.options.max_cost)
    settings.home.mkdir(parents=True, exist_ok=True)
    async with open_configured(settings) as store:
        limiters = AccountLimiters(partial(limits_of, trial.options), backend=store.backend)
        return [await _one(trial, part, limiters, spending, several=len(parts) > 1) for part in parts]


async def _one(
    trial: Trial, part: Part, limiters: AccountLimiters, spending: SpendingLimit, *, several: bool
) -> ModelRow:
    index, ontology = part.index, part.index.ontology
    shots = shots_of(part, index) if trial.shots else []
    async with open_model_path(
        trial.options,
        ontology=ontology,
        settings=load_settings(),
        examples=shots,
        shots=trial.shots,
        limiters=limiters,
        spending=spending,
    ) as path:
        evaluation = Evaluation(
            part,
            index,
            path.extractor,
            concurrency=trial.options.concurrency or RateLimits().max_concurrent,
            split=trial.split,
            timeouts=path.timeouts,
        )
        row = await evaluation.run(texts=trial.texts)
    if trial.json:
        # Standard output is for programs: one line as soon as an ontology is done.
        print(msgspec.json.encode({"split": trial.split, "row": row}).decode(), flush=True)
    elif several:
        print(f"{part.name}: F1 {row.scores.f1:.3f}, {row.usage.calls} calls", file=sys.stderr)
    return row
