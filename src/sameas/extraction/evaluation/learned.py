"""Measure the learned extractor: `python -m sameas.extraction.evaluation.learned DATA_FOLDER [--limit N]
[--split S]`.

Each ontology is learned from its train part alone and scored on another split, texts that are also in train
left out. What is scored is what `extract` answers: every text goes through the whole pipeline, lexicon, guard and
resolution included; the bare model is scored beside it. By default each ontology starts from a prior made from the
other ontologies, so that few-shot figures are honest; `--prior shipped` takes the one that comes with the package.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sameas.extraction.extractors.learned import LearnedExtractor
from sameas.extraction.extractors.learning.container import ContainerError, pack
from sameas.extraction.extractors.learning.corpus import Part, read_corpus, sample
from sameas.extraction.extractors.learning.examples import Example, ExamplesError
from sameas.extraction.extractors.learning.model import MARK, LearnedModel
from sameas.extraction.extractors.learning.observations import observe
from sameas.extraction.extractors.learning.prior import Prior, shipped_prior
from sameas.extraction.extractors.learning.prior_training import train_prior
from sameas.extraction.extractors.learning.schema import SchemaError
from sameas.extraction.extractors.learning.scoring import Prediction, Scores, mean, score
from sameas.extraction.extractors.learning.train import learn
from sameas.extraction.extractors.trust import trusted_properties
from sameas.extraction.graph.model import Graph, Relation
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.identity.key import compute_idempotency_key
from sameas.ontology.errors import OntologyError


@dataclass(frozen=True, slots=True)
class Row:
    """One ontology's figures: how many examples, the scores of the pipeline and of the model alone, seconds to learn,
    sentences a second in one document (both of processor time), bytes of the model.
    """

    name: str
    examples: int
    scores: Scores
    model: Scores
    seconds: float
    rate: float
    size: int


def priors(parts: list[Part], *, which: str) -> Iterator[Prior]:
    """The prior to use for each ontology: the shipped one, or one from all the others."""
    if which == "shipped":
        for _ in parts:
            yield shipped_prior()
        return
    seen = [observe(part.train, part.schema) for part in parts]
    for i in range(len(parts)):
        yield train_prior(seen[:i] + seen[i + 1 :])


def bare(model: LearnedModel, examples: Sequence[Example]) -> list[Prediction]:
    """The model's own answers, before the pipeline has seen them."""
    return [
        Prediction(example, tuple((t.subject.value, t.property, t.object.value) for t in model.extract(example.text)))
        for example in examples
    ]


class Answers:
    """What `extract` answers with a model: the whole pipeline, a text at a time."""

    def __init__(self, model: LearnedModel, part: Part) -> None:
        self._ontology = part.index.ontology
        extractor = LearnedExtractor(part.index, model)
        self._pipeline = Pipeline(index=part.index, extractor=extractor, settings=PipelineSettings(concurrency=1))

    def of(self, examples: Sequence[Example]) -> list[Prediction]:
        return asyncio.run(self._each(examples))

    def rate(self, examples: Sequence[Example]) -> float:
        """Texts a second where all of them are one document."""
        began = time.process_time()
        asyncio.run(self._graph("\n\n".join(example.text for example in examples)))
        return len(examples) / max(1e-9, time.process_time() - began)

    async def _each(self, examples: Sequence[Example]) -> list[Prediction]:
        return [Prediction(example, tuple(triples_of(await self._graph(example.text)))) for example in examples]

    async def _graph(self, text: str) -> Graph:
        key = compute_idempotency_key(
            text,
            ontology_id=self._ontology.iri or self._ontology.version,
            ontology_version=self._ontology.version,
            extraction_params={},
        )
        return (await self._pipeline.run(text, key=str(key), formats=())).found


def triples_of(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """The relations of a graph by names; values as the examples write them."""
    names = {entity.id: entity.name for entity in graph.entities}
    for relation in graph.relations:
        yield names[relation.subject], relation.predicate, _object(relation, names)


def _object(relation: Relation, names: dict[str, str]) -> str:
    value = relation.value
    return names[relation.object] if value is None else value.written or value.value


def measure(part: Part, prior: Prior, *, limit: int | None, split: str, seed: int) -> Row:
    """Learn one ontology and score it."""
    examples = sample(part.train, limit, seed=seed)
    held = part.held_out(split)
    began = time.process_time()
    model = learn(examples, part.schema, seed=seed, prior=prior)
    model = model.trusting(trusted_properties(examples, part.index))
    seconds = time.process_time() - began
    answers = Answers(model, part)
    return Row(
        name=part.name,
        examples=len(examples),
        scores=score(answers.of(held), part.schema),
        model=score(bare(model, held), part.schema),
        seconds=seconds,
        rate=answers.rate(held),
        size=len(pack(model.content, mark=MARK)),
    )


def average(rows: Sequence[Row]) -> Row:
    """The mean of the rows; the number of examples is their sum."""
    return Row(
        "mean",
        sum(row.examples for row in rows),
        mean([row.scores for row in rows]),
        mean([row.model for row in rows]),
        sum(row.seconds for row in rows) / len(rows),
        sum(row.rate for row in rows) / len(rows),
        sum(row.size for row in rows) // len(rows),
    )


def table(rows: list[Row]) -> Iterator[str]:
    """The lines of the report; the last two figures of quality are those of the bare model."""
    yield (
        f"{'ontology':<14}{'examples':>9}{'texts':>7}{'P':>7}{'R':>7}{'F1':>7}{'mP':>7}{'mR':>7}{'mF1':>7}"
        f"{'conf':>7}{'subH':>7}{'objH':>7}{'modelF1':>9}{'mF1':>7}{'learn s':>9}{'sent/s':>8}{'bytes':>9}"
    )
    for row in (*rows, average(rows)):
        s = row.scores
        figures = (s.precision, s.recall, s.f1, s.micro_precision, s.micro_recall, s.micro_f1)
        checks = (s.conformance, s.subject_hallucination, s.object_hallucination)
        yield (
            f"{row.name:<14}{row.examples:>9}{s.texts:>7.0f}"
            + "".join(f"{figure:>7.3f}" for figure in (*figures, *checks))
            + f"{row.model.f1:>9.3f}{row.model.micro_f1:>7.3f}{row.seconds:>9.1f}{row.rate:>8.0f}{row.size:>9}"
        )


def main(arguments: list[str] | None = None) -> int:
    """Print the table for a data folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with ontologies/, train/ and the split, in Text2KGBench's form")
    parser.add_argument("--limit", type=int, help="learn from so many sentences an ontology; all without it")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--prior", choices=("others", "shipped"), default="others")
    parser.add_argument("--seed", type=int, default=0, help="which sentences are taken with --limit")
    given = parser.parse_args(arguments)
    try:
        parts = read_corpus(given.data)
        found = priors(parts, which=given.prior)
        rows = [
            measure(part, prior, limit=given.limit, split=given.split, seed=given.seed)
            for part, prior in zip(parts, found, strict=True)
        ]
    except (ExamplesError, SchemaError, ContainerError, OntologyError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for line in table(rows):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
