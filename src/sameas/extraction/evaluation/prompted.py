"""How good a model is on a folder in Text2KGBench's layout: its sentences through the whole pipeline, guard included.

Rule: scores are those of the benchmark (`learning.scoring`), over what the guard let through. A sentence that could
not be done counts as one without an answer, and is counted. Whatever was answered before a crash is remembered by the
memo of calls: the same command goes on from there.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sameas.extraction.extractors.learning.corpus import Part
from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.scoring import Prediction, Scores, mean, score
from sameas.extraction.extractors.prompted.asking import together
from sameas.extraction.extractors.prompted.extractor import ModelExtractor
from sameas.extraction.graph.model import KnowledgeGraph, Relation
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.llm.ledger import UsageRow, added, joined
from sameas.llm.timeouts import STAGE_TIMEOUTS, StageName, StageTimeout
from sameas.ontology.index import OntologyIndex


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One ontology's figures: its scores, how many sentences could not be done and why, and what was spent on all."""

    name: str
    scores: Scores
    failed: int
    usage: UsageRow
    missing: Counter[str] = field(default_factory=Counter)
    """The sentences that could not be done, by the code of the first thing that was missing."""


def shots_of(part: Part, index: OntologyIndex) -> list[Example]:
    """The train part as examples for prompts, without the triples of properties that the ontology lacks."""
    return [
        Example(example.text, tuple(triple for triple in example.triples if triple.property in index.properties))
        for example in part.train
    ]


class Evaluation:
    """Sentences of one ontology, asked about and scored."""

    def __init__(
        self,
        part: Part,
        index: OntologyIndex,
        extractor: ModelExtractor,
        *,
        concurrency: int,
        split: str,
        timeouts: Mapping[StageName, StageTimeout] = STAGE_TIMEOUTS,
    ) -> None:
        self._part = part
        self._index = index
        self._extractor = extractor
        settings = PipelineSettings(concurrency=1, timeouts=timeouts)
        self._pipeline = Pipeline(index=index, extractor=extractor, settings=settings)
        self._slots = asyncio.Semaphore(concurrency)
        self._split = split

    async def run(self, *, texts: int | None = None) -> ModelRow:
        """Score the split, or the first texts of it."""
        examples = self._part.held_out(self._split)[:texts]
        # One failure ends the others: an error that is not a chunk's is everybody's.
        done = await together([partial(self._sentence, example) for example in examples]) if examples else []
        missing = Counter(code for _, code, _ in done if code)
        return ModelRow(
            name=self._part.name,
            scores=score((prediction for prediction, _, _ in done), self._part.schema),
            failed=missing.total(),
            missing=missing,
            usage=added(joined(*(usage for _, _, usage in done)), stage="total", model=self._extractor.model.name),
        )

    async def _sentence(self, example: Example) -> tuple[Prediction, str, tuple[UsageRow, ...]]:
        ontology = self._index.ontology
        async with self._slots:
            key = compute_idempotency_key(
                example.text, ontology_id=ontology.iri, ontology_version=ontology.version, extraction_params={}
            )
            result = await self._pipeline.run(example.text, key=str(key), formats=())
        triples = predicted(result.graph, normalize_text(example.text))
        return Prediction(example, tuple(triples)), result.missing[0].code if result.missing else "", result.usage


def predicted(graph: KnowledgeGraph, text: str) -> Iterator[tuple[str, str, str]]:
    """The relations of a graph as the benchmark writes triples; values as they are said."""
    names = {entity.id: entity.name for entity in graph.entities}
    for relation in graph.relations:
        yield names[relation.subject], relation.predicate, _object(relation, names, text)


def _object(relation: Relation, names: dict[str, str], text: str) -> str:
    if relation.value is None:
        return names[relation.object]
    span = relation.object_spans[0]
    return text[span.start : span.end]


def table(rows: Sequence[ModelRow]) -> Iterator[str]:
    """The lines of the report."""
    yield (
        f"{'ontology':<14}{'texts':>7}{'P':>7}{'R':>7}{'F1':>7}{'mP':>7}{'mR':>7}{'mF1':>7}"
        f"{'conf':>7}{'subH':>7}{'objH':>7}{'failed':>8}{'calls':>8}{'tokens':>10}{'cost $':>9}{'saved':>10}"
    )
    usage = added([row.usage for row in rows], stage="total", model="")
    whole = ModelRow("mean", mean([row.scores for row in rows]), sum(row.failed for row in rows), usage)
    for row in (*rows, whole):
        s, used = row.scores, row.usage
        figures = (s.precision, s.recall, s.f1, s.micro_precision, s.micro_recall, s.micro_f1)
        checks = (s.conformance, s.subject_hallucination, s.object_hallucination)
        cost = "?" if used.cost is None else f"{used.cost:.4f}"
        yield (
            f"{row.name:<14}{s.texts:>7.0f}"
            + "".join(f"{figure:>7.3f}" for figure in (*figures, *checks))
            + f"{row.failed:>8}{used.calls:>8}{used.tokens:>10}{cost:>9}{used.saved_tokens:>10}"
        )
