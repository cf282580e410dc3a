"""The words of property and class labels, as cues: what little an ontology says without any example."""

from __future__ import annotations

import re
from collections import defaultdict

from sameas.extraction.extractors.learning.schema import Property, Schema
from sameas.extraction.extractors.learning.spans import STOPWORDS

_HUMP = re.compile(r"([a-z])([A-Z])")
_LETTERS = re.compile(r"[^\W\d_]+")
_SHORTEST = 3
_STEM = 5
Cues = dict[str, tuple[tuple[str, str], ...]]


def label_words(label: str) -> list[str]:
    """The words of a label that mean something; `birthDate` has two."""
    words = _LETTERS.findall(_HUMP.sub(r"\1 \2", label).lower())
    return [word for word in words if len(word) >= _SHORTEST and word not in STOPWORDS]


def stem(word: str) -> str:
    """The beginning of a word: `director`, `directed` and `direction` share it."""
    return word[:_STEM] if len(word) > _STEM else word[: _STEM - 1]


def cues_of(schema: Schema, properties: tuple[str, ...]) -> Cues:
    """From a stem to the properties that have it, in their own label (`l`) or in that of their range
    (`r`).
    """
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in schema.properties:
        if item.id not in properties:
            continue
        for word in label_words(item.label):
            found[stem(word)].add(("l", item.id))
        for word in label_words(schema.class_labels.get(item.range or "", "")):
            found[stem(word)].add(("r", item.id))
    return {key: tuple(sorted(found[key])) for key in sorted(found)}


def descriptors(schema: Schema, item: Property) -> tuple[str, ...]:
    """What a property has in common with properties of other ontologies: its label, its words, its range."""
    found = {"*", "label " + " ".join(item.label.lower().split())}
    found.update("word " + stem(word) for word in label_words(item.label))
    found.add("range " + (schema.label_of(item.range) or item.datatype or "").lower())
    return tuple(sorted(found))
