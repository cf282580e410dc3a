"""Texts with complete gold, and which facts of a graph are right by it: the names exactly, case and blanks aside, and
values by their normal forms.

Each domain is a folder with `ontology.ttl`, `documents.jsonl` or `texts.jsonl`, and `examples.jsonl` to learn from. A
line is `{"text", "triples": [[subject, property, object], ...], "kind": [tags]}`; a property is given by the last part
of its IRI. What is stated in several ways in a text is listed once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

import msgspec

from sameas.extraction.extractors.contract import Extractor
from sameas.extraction.extractors.learning.examples import ExamplesError
from sameas.extraction.extractors.learning.tokens import fold
from sameas.extraction.graph.model import Graph, Relation
from sameas.extraction.outputs.context import local_name
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.extraction.pipeline.settings import PipelineSettings
from sameas.extraction.text.chunking import sentence_spans
from sameas.identity.key import compute_idempotency_key, normalize_text
from sameas.ontology.index import OntologyIndex

ONTOLOGY = "ontology.ttl"
EXAMPLES = "examples.jsonl"
_DOCUMENTS = ("documents.jsonl", "texts.jsonl")
# Tags that name a language; a document without one is English.
LANGUAGES = ("german", "french", "spanish")

Fact = tuple[str, str, str]
_NUMBER = re.compile(r"\d+")
# What a text of such a kind mentions beside its facts is denied, doubted, asked, supposed, over, or said by others.
_AGAINST = frozenset({"negation", "hedge", "question", "conditional", "former", "replaced", "quote", "nofact"})


class GoldDocument(msgspec.Struct, frozen=True):
    """A text and all that it asserts."""

    text: str
    triples: tuple[tuple[str, str, str], ...]
    kind: tuple[str, ...] = ()
    id: str = ""

    @property
    def language(self) -> str:
        return next((tag for tag in self.kind if tag in LANGUAGES), "english")


class Domain(msgspec.Struct, frozen=True):
    """One ontology with its documents; `examples` is a file to learn from, or None."""

    name: str
    ontology: Path
    documents: tuple[GoldDocument, ...]
    examples: Path | None


def is_domain(folder: Path) -> bool:
    return (folder / ONTOLOGY).is_file() and any((folder / name).is_file() for name in _DOCUMENTS)


def read_domains(folder: Path) -> list[Domain]:
    """The domains below a folder, or the one that it is, by name."""
    found = [folder] if is_domain(folder) else sorted(path for path in folder.iterdir() if is_domain(path))
    if not found:
        raise ExamplesError(f"{folder} holds no domain: a folder with {ONTOLOGY} and {_DOCUMENTS[0]}")
    return [_read(path) for path in found]


def _read(folder: Path) -> Domain:
    path = next(folder / name for name in _DOCUMENTS if (folder / name).is_file())
    documents = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            documents.append(msgspec.json.decode(line, type=GoldDocument))
        except msgspec.DecodeError as error:
            raise ExamplesError(f"{path}: line {number}: {error}") from None
    examples = folder / EXAMPLES
    return Domain(folder.name, folder / ONTOLOGY, tuple(documents), examples if examples.is_file() else None)


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
