"""Scores of an extractor's answers against examples, after Text2KGBench's definitions.

- `precision`, `recall`, `f1`: for each text, predictions of properties that its examples have, compared as
  text without spaces, underscores and case; then the mean over texts. A text without predictions counts as
  zero.
- `micro_f1`: all predictions against all examples, nothing left out.
- `conformance`: the share of predictions whose property is in the ontology, mean over texts, one where there
  is none.
- `subject_hallucination`, `object_hallucination`: the share of predictions whose subject (object) is not in
  the text or in the class labels, words stemmed, `01 January` aside; mean over texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.schema import Schema
from sameas.extraction.extractors.learning.tokens import fold, tokenize

_SUFFIXES = (
    "ational",
    "ations",
    "ation",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "er",
    "ed",
    "es",
    "e",
    "y",
    "s",
)
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an extractor said of an example's text: subject, property id, object."""

    example: Example
    triples: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of one ontology, or their mean over several."""

    texts: float
    precision: float
    recall: float
    f1: float
    micro_precision: float
    micro_recall: float
    micro_f1: float
    conformance: float
    subject_hallucination: float
    object_hallucination: float


def _key(subject: str, name: str, value: str) -> tuple[str, str, str]:
    return fold(subject), name, fold(value)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def stem(text: str) -> str:
    """A word without a common ending, roughly."""
    for suffix in _SUFFIXES:
        if text.endswith(suffix) and len(text) - len(suffix) >= _SHORTEST:
            return text[: -len(suffix)]
    return text


def _stemmed(text: str) -> str:
    return "".join(stem(word) for word in tokenize(text.replace("_", " ")).lower)


def _unsupported(values: Sequence[str], text: str) -> float:
    if not values:
        return 0.0
    missing = [value for value in values if _stemmed(value).replace("01januar", "") not in text]
    return len(missing) / len(values)


def score(predictions: Iterable[Prediction], schema: Schema | None = None) -> Scores:
    """The scores of an ontology's predictions; without its schema every property conforms and nothing is
    checked in the text.
    """
    made = list(predictions)
    precision = recall = f1 = conformance = subject_miss = object_miss = 0.0
    right = said = wanted = 0
    labels = " ".join(schema.class_labels.values()) if schema else ""
    for item in made:
        gold = {_key(t.subject, t.property, t.object) for t in item.example.triples}
        names = {name for _, name, _ in gold}
        found = {_key(*triple) for triple in item.triples}
        near = {triple for triple in found if triple[1] in names}
        right, said, wanted = right + len(found & gold), said + len(found), wanted + len(gold)
        hits = len(near & gold)
        if hits:
            precision += hits / len(near)
            recall += hits / len(gold)
            f1 += _harmonic(hits / len(near), hits / len(gold))
        if schema is not None:
            known = [triple for triple in item.triples if schema.find(triple[1])]
            conformance += len(known) / len(item.triples) if item.triples else 1.0
            text = _stemmed(item.example.text + " " + labels)
            subject_miss += _unsupported([triple[0] for triple in item.triples], text)
            object_miss += _unsupported([triple[2] for triple in item.triples], text)
    count = max(1, len(made))
    micro_precision, micro_recall = right / max(1, said), right / max(1, wanted)
    return Scores(
        texts=len(made),
        precision=precision / count,
        recall=recall / count,
        f1=f1 / count,
        micro_precision=micro_precision,
        micro_recall=micro_recall,
        micro_f1=_harmonic(micro_precision, micro_recall),
        conformance=conformance / count if schema else 1.0,
        subject_hallucination=subject_miss / count,
        object_hallucination=object_miss / count,
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean over ontologies; the number of texts is their sum."""
    count = max(1, len(scores))
    values = {each.name: sum(getattr(item, each.name) for item in scores) / count for each in fields(Scores)}
    values["texts"] = sum(item.texts for item in scores)
    return Scores(**values)
