"""What `sameas eval` runs: any extractor, or a model, over every domain of a folder with complete gold; a language
model over a folder in Text2KGBench's layout.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from sameas.cli.errors import CliError, ExitCode
from sameas.cli.extract_options import ModelOptions
from sameas.cli.extractors import ExtractorName, choose_extractor
from sameas.cli.prompted import limits_of, open_model_path
from sameas.cli.service import open_configured
from sameas.cli.summary import prices_line, what_helps
from sameas.extraction.evaluation import Domain, Judged, judge_documents, lines_of, read_domains, report_of
from sameas.extraction.evaluation.prompted import Evaluation, ModelRow, shots_of, table
from sameas.extraction.extractors.confidence import least_confidence
from sameas.extraction.extractors.learning.corpus import Part
from sameas.llm.account import RateLimits
from sameas.llm.budget import SpendingLimit
from sameas.llm.limiter import AccountLimiters
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import load_ontology
from sameas.settings import load_settings


class GoldTrial(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated, and how."""

    extractor: ExtractorName | None = None
    learn: bool = False
    """Learn from the examples of each domain first."""
    options: ModelOptions | None = None
    shots: int = 0
    domain: str | None = None
    min_confidence: float | None = None
    json: bool = False


def evaluate_gold(folder: Path, trial: GoldTrial) -> None:
    """Print the figures of a folder with complete gold."""
    domains = read_domains(folder)
    wanted = [domain for domain in domains if trial.domain in (None, domain.name)]
    if not wanted:
        names = ", ".join(domain.name for domain in domains)
        raise CliError(f"{folder} has no domain {trial.domain!r}", todo=f"It has {names}")
    report = report_of(asyncio.run(judge_all(wanted, trial)))
    if not trial.json:
        for line in lines_of(report):
            print(line)
        return
    whole = report.whole
    mean = {
        "documents": whole.documents,
        "facts": whole.there,
        "stated": whole.stated,
        "precision": whole.precision,
        "recall": whole.recall,
        "f1": whole.f1,
        "againstTheText": report.share_against_the_text,
        "calibrationError": report.calibration_error,
        "languages": {
            name: {"precision": one.precision, "recall": one.recall, "f1": one.f1}
            for name, one in report.languages.items()
        },
    }
    print(msgspec.json.encode({"mean": mean}).decode())


async def judge_all(domains: Sequence[Domain], trial: GoldTrial) -> list[Judged]:
    """The documents of all domains, read and judged."""
    return [one for domain in domains for one in await _judge(domain, trial)]


async def _judge(domain: Domain, trial: GoldTrial) -> list[Judged]:
    index = OntologyIndex(load_ontology(domain.ontology))
    if trial.options is not None:
        return await _judge_model(domain, index, trial, trial.options)
    model = None
    if trial.learn:
        from sameas.cli.extractors import model_from

        # In a thread: learning has a loop of its own.
        model = await asyncio.to_thread(
            model_from, _examples(domain), ontology=index.ontology, settings=load_settings(), quiet=True
        )
    extractor = choose_extractor(index.ontology, path=domain.ontology, wanted=trial.extractor, model=model)
    least = least_confidence(extractor.name, trial.min_confidence)
    return await judge_documents(domain, index, extractor, min_confidence=least)


async def _judge_model(domain: Domain, index: OntologyIndex, trial: GoldTrial, options: ModelOptions) -> list[Judged]:
    from sameas.cli.prompted import examples_from, open_model_path

    examples = examples_from(_examples(domain), index.ontology) if trial.shots else []
    async with open_model_path(
        options, ontology=index.ontology, settings=load_settings(), examples=examples, shots=trial.shots
    ) as path:
        return await judge_documents(
            domain, index, path.extractor, min_confidence=trial.min_confidence or 0.0, at_once=options.concurrency or 5
        )


def _examples(domain: Domain) -> Path:
    if domain.examples is None:
        raise CliError(
            f"{domain.name} has no examples to learn from", todo="Add examples.jsonl", code=ExitCode.BAD_INPUT
        )
    return domain.examples


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
