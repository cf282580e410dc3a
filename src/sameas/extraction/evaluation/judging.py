"""Which facts of a graph are right, by complete gold: the names exactly, case and blanks aside, and values by their
normal forms.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

import msgspec

from sameas.extraction.evaluation.domains import Domain, GoldDocument
from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.learning.tokens import fold
from sameas.extraction.graph.model import Graph, Relation
from sameas.extraction.outputs.context import local_name
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import sentence_spans
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.ontology.index import OntologyIndex

Fact = tuple[str, str, str]
_NUMBER = re.compile(r"\d+")
# What a text of such a kind mentions beside its facts is denied, doubted, asked, supposed, over, or said by others.
_AGAINST = frozenset({"negation", "hedge", "question", "conditional", "former", "replaced", "quote", "nofact"})


class JudgedFact(msgspec.Struct, frozen=True):
    """A fact that was stated: how sure, whether it is right, and whether it stands where nothing is asserted."""

    fact: Fact
    confidence: float
    is_right: bool
    is_against_the_text: bool


class Judged(msgspec.Struct, frozen=True):
    """What was stated of a document, and how many facts it has."""

    domain: str
    document: GoldDocument
    stated: tuple[JudgedFact, ...]

    @property
    def missed(self) -> int:
        return len({_key(*triple) for triple in self.document.triples}) - sum(one.is_right for one in self.stated)


def judge(domain: str, document: GoldDocument, graph: Graph, *, min_confidence: float = 0.0) -> Judged:
    """Compare a graph with the gold of its text."""
    gold = {_key(*triple) for triple in document.triples}
    text = normalize_text(document.text)
    silent = [*_silent_sentences(document, text)] if _AGAINST & set(document.kind) else []
    best: dict[Fact, JudgedFact] = {}
    for fact, relation in _facts(graph):
        if relation.confidence < min_confidence:
            continue
        key = _key(*fact)
        is_right = key in gold
        against = not is_right and any(
            start <= evidence.start < end for evidence in relation.evidence for start, end in silent
        )
        known = best.get(key)
        if known is None or relation.confidence > known.confidence:
            best[key] = JudgedFact(fact, relation.confidence, is_right, against)
    return Judged(domain, document, tuple(best[key] for key in sorted(best)))


async def judge_documents(
    domain: Domain, index: OntologyIndex, extractor: Extractor, *, min_confidence: float = 0.0, at_once: int = 1
) -> list[Judged]:
    """Send the documents of a domain through the whole pipeline, as `extract` would, and judge what comes out."""
    pipeline = Pipeline(index=index, extractor=extractor, settings=PipelineSettings(concurrency=1))
    ontology = index.ontology
    slots = asyncio.Semaphore(at_once)

    async def one(document: GoldDocument) -> Judged:
        async with slots:
            key = compute_idempotency_key(
                document.text,
                ontology_id=ontology.iri or ontology.version,
                ontology_version=ontology.version,
                extraction_params={},
            )
            result = await pipeline.run(document.text, key=str(key), formats=())
        return judge(domain.name, document, result.found, min_confidence=min_confidence)

    return list(await asyncio.gather(*map(one, domain.documents)))


def _facts(graph: Graph) -> Iterator[tuple[Fact, Relation]]:
    names = {entity.id: entity.name for entity in graph.entities}
    for relation in graph.relations:
        value = relation.value
        named = names[relation.object] if value is None else value.value
        yield (names[relation.subject], local_name(relation.predicate), named), relation


def _key(subject: str, name: str, value: str) -> Fact:
    return fold(subject), name, _plain(value)


def _plain(value: str) -> str:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return fold(value)
    return f"{number.normalize():f}" if number.is_finite() else fold(value)


def _silent_sentences(document: GoldDocument, text: str) -> Iterator[tuple[int, int]]:
    """The sentences that assert nothing: no fact of the gold has its object there, nor the number of its value."""
    objects = [(fold(value), _NUMBER.match(value)) for _, _, value in document.triples]
    for span in sentence_spans(text):
        sentence = text[span.start : span.end]
        said = fold(sentence)
        if not any(value in said or (number is not None and number[0] in sentence) for value, number in objects):
            yield span.start, span.end
