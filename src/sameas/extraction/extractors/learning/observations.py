"""Examples turned into rows to fit: every candidate as an object, and for every fact the choice of its
subject.

An example seldom states all that its text says, so what it leaves out is weak evidence: a candidate counts
as no object of a property with full weight only in sentences that are examples of that property.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from sameas.extraction.extractors.learning.candidates import find_candidates, learn_edges
from sameas.extraction.extractors.learning.clauses import clause_features
from sameas.extraction.extractors.learning.dates import Date, find_dates
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.forms import AffixCounter, Forms, choose_styles
from sameas.extraction.extractors.learning.hashing import word
from sameas.extraction.extractors.learning.labels import Cues, cues_of
from sameas.extraction.extractors.learning.lexicon import Lexicon, key_of, learn_lexicon
from sameas.extraction.extractors.learning.lists import Carried, ListCounter
from sameas.extraction.extractors.learning.object_features import object_features
from sameas.extraction.extractors.learning.schema import Schema
from sameas.extraction.extractors.learning.spans import WordSpan
from sameas.extraction.extractors.learning.styles import settle_order, sort_of, writings
from sameas.extraction.extractors.learning.subject_features import (
    SubjectFeatures,
    absent_feature,
    pair_features,
    place_of,
    property_features,
    subject_features,
)
from sameas.extraction.extractors.learning.tokens import Tokens, fold, tokenize
from sameas.extraction.text.chunking import sentence_spans

_UNLABELLED = 0.5
# The share of values that must be new to the lexicon, as they are in a new text.
_NEWS = 0.5
# The share of texts of several subjects or sentences from which clauses count.
_SEVERAL = 0.1
# The most pairs of examples that are read as one text.
_JOINED = 150
# So many for each example of several subjects or sentences.
_JOINED_EACH = 5
# Sentences are the most usual of these.
_JOINTS = (". ", ", while ", ". ", "; ", ". ", ", ", ". ", " and ")
_STOPS = (".", "!", "?", "。")
Affixes = dict[str, tuple[str, ...]]


@dataclass
class Observations:
    """The rows of an ontology's examples. Row i of the objects belongs to example `sentence[i]`."""

    schema: Schema
    properties: tuple[str, ...]
    lexicon: Lexicon
    cues: Cues
    forms: Forms
    object_rows: list[list[int]] = field(default_factory=list)
    object_kinds: list[int] = field(default_factory=list)
    sentence: list[int] = field(default_factory=list)
    labels: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    carried: Carried = frozenset()
    subject_rows: list[list[int]] = field(default_factory=list)
    subject_groups: list[int] = field(default_factory=lambda: [0])
    subject_right: list[bool] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Read:
    example: Example
    tokens: Tokens
    spans: list[WordSpan]
    lexicon: Lexicon


def _matching_styles(value: str, span: WordSpan, tokens: Tokens, affixes: tuple[str, ...]) -> list[str]:
    wanted = fold(value)
    return [style for style, written in writings(span, tokens, affixes) if fold(written) == wanted]


def _learn_affixes(reads: list[_Read], properties: frozenset[str]) -> Affixes:
    counter = AffixCounter()
    for read in reads:
        for triple in read.example.triples:
            if triple.property not in properties:
                continue
            if not any(_matching_styles(triple.object, span, read.tokens, ()) for span in read.spans):
                texts = [said for span in read.spans if span.form is None for _, said in writings(span, read.tokens)]
                counter.note(triple.property, triple.object, texts)
    return counter.affixes()


def _blind(reads: list[_Read], lexicon: Lexicon) -> list[tuple[int, _Read]]:
    """Some examples read once more, as if nothing were known of their values, each with its number.

    Where nearly all values of the examples recur, the fit would learn that an unknown name is no value of
    anything.
    """
    news = total = 0
    for number, read in enumerate(reads):
        for triple in read.example.triples:
            total += 1
            news += not lexicon.knows_value(key_of(triple.object), without=number)
    lacking = (_NEWS * total - news) / (1 - _NEWS)
    if lacking <= 0:
        return []
    nothing = Lexicon({}, {}, {}, {}, lexicon.edges)
    chosen = range(0, len(reads), max(1, round(total / lacking)))
    return [
        (i, _Read(reads[i].example, reads[i].tokens, find_candidates(reads[i].tokens, nothing, without=i), nothing))
        for i in chosen
    ]


def _pairs(reads: list[_Read], most: int) -> Iterator[tuple[Example, Example]]:
    """Examples to be read as one text: neighbours first, then those farther apart, up to a number.

    Most texts speak of one thing: without these the fit would learn that the first name of a text is the subject of
    all that it says.
    """
    apart = (zip(reads, reads[by:], strict=False) for by in range(1, len(reads)))
    return ((one.example, other.example) for one, other in islice(chain.from_iterable(apart), min(_JOINED, most)))


def _says_several(example: Example) -> bool:
    """Whether a text has several subjects or several sentences."""
    subjects = {triple.subject for triple in example.triples}
    return len(subjects) > 1 or len(list(islice(sentence_spans(example.text), 2))) > 1


def _same_year(value: str, span: WordSpan) -> bool:
    """A date that the text says less exactly than the example does: neither right nor wrong."""
    if not isinstance(span.value, Date):
        return False
    return any(mention.date.year == span.value.year for mention in find_dates(value))


class _Collector:
    """Gathers the rows of one example after the other."""

    def __init__(self, observations: Observations, affixes: Affixes, *, with_clauses: bool) -> None:
        self.out = observations
        self.with_clauses = with_clauses
        self.affixes = affixes
        self.lists = ListCounter()
        self.styles: Counter[tuple[str, str, str]] = Counter()
        self.labels: list[NDArray[np.float32]] = []
        self.weights: list[NDArray[np.float32]] = []
        self.column = {name: i for i, name in enumerate(observations.properties)}

    def add(self, number: int, read: _Read) -> None:
        out, tokens, spans = self.out, read.tokens, read.spans
        triples = [triple for triple in read.example.triples if triple.property in self.column]
        labels = np.zeros((len(spans), len(self.column)), np.float32)
        weights = np.full(labels.shape, _UNLABELLED, np.float32)
        for triple in triples:
            weights[:, self.column[triple.property]] = 1
        subjects = subject_features(tokens, spans, read.lexicon, without=number)
        self.lists.note(triples, subjects.clauses.lists, tokens)
        for triple in triples:
            right = self._label(triple, read, labels, weights)
            if right:
                self._choice(triple, spans[right[0]], subjects, tokens)
        weights[labels > 0] = 1
        features = object_features(tokens, spans, read.lexicon, out.cues, without=number)
        out.object_rows += [row + features.shared for row in features.rows]
        out.object_kinds += [span.kinds for span in spans]
        out.sentence += [number] * len(spans)
        self.labels.append(labels)
        self.weights.append(weights)

    def add_joined(self, one: Example, other: Example, *, joint: str) -> None:
        """Two examples as one text, for the choice of subjects alone: each fact has both ends in its own part."""
        first = one.text.rstrip().rstrip("".join(_STOPS))
        opens = any(other.text.startswith(triple.subject) for triple in other.triples)
        start = first + (joint if opens else _JOINTS[0])
        tokens = tokenize(start + other.text)
        nothing = Lexicon({}, {}, {}, {}, self.out.lexicon.edges)
        spans = find_candidates(tokens, nothing)
        subjects = subject_features(tokens, spans, nothing)
        for part, begin, end in ((one, 0, len(start)), (other, len(start), len(tokens.text))):
            inside = [s for s in spans if begin <= tokens.starts[s.first] and tokens.ends[s.last - 1] <= end]
            names = {fold(tokens.slice(span.first, span.last)) for span in inside}
            for triple in part.triples:
                if triple.property not in self.column or fold(triple.subject) not in names:
                    continue
                target = next((s for s in inside if _matching_styles(triple.object, s, tokens, ())), None)
                if target is not None:
                    self._choice(triple, target, subjects, tokens)

    def _label(
        self, triple: Triple, read: _Read, labels: NDArray[np.float32], weights: NDArray[np.float32]
    ) -> list[int]:
        column = self.column[triple.property]
        matches: dict[int, list[str]] = {}
        # Words are added to a candidate only where no candidate says the whole value.
        for affixes in ((), self.affixes.get(triple.property, ())):
            if not matches:
                found = (
                    (i, _matching_styles(triple.object, s, read.tokens, affixes)) for i, s in enumerate(read.spans)
                )
                matches = {i: styles for i, styles in found if styles}
        for i, styles in matches.items():
            labels[i, column] = 1
            for style in styles:
                self.styles[(triple.property, sort_of(read.spans[i]), style)] += 1
        for i, span in enumerate(read.spans):
            if i not in matches and _same_year(triple.object, span):
                weights[i, column] = 0
        return list(matches)

    def _choice(self, triple: Triple, target: WordSpan, subjects: SubjectFeatures, tokens: Tokens) -> None:
        out = self.out
        wanted, name = fold(triple.subject), word(triple.property)
        found = False
        for span, row, look in zip(subjects.spans, subjects.rows, subjects.looks, strict=True):
            if (span.first, span.last) == (target.first, target.last):
                continue
            place = place_of(span, target, subjects.names)
            right = fold(span.form or tokens.slice(span.first, span.last)) == wanted
            found |= right
            pair = pair_features(place, span.kinds)
            if self.with_clauses:
                pair += clause_features(subjects.clauses, span, target)
            out.subject_rows.append([*row, *pair, *property_features(place, look, name)])
            out.subject_right.append(right)
        out.subject_rows.append([*subjects.absent, absent_feature(name)])
        out.subject_right.append(not found)
        out.subject_groups.append(len(out.subject_rows))

    def finish(self) -> None:
        width = len(self.column)
        self.out.labels = np.concatenate([np.zeros((0, width), np.float32), *self.labels])
        self.out.weights = np.concatenate([np.zeros((0, width), np.float32), *self.weights])
        self.out.carried = self.lists.carried(self.column)
        self.out.forms = choose_styles(settle_order(self.styles))


def observe(examples: Sequence[Example], schema: Schema) -> Observations:
    """All rows of the examples, for the properties that occur in them."""
    seen = {triple.property for example in examples for triple in example.triples}
    properties = tuple(item.id for item in schema.properties if item.id in seen)
    cues = cues_of(schema, properties)
    lexicon = replace(learn_lexicon(examples, properties), edges=learn_edges(examples, properties, cues))
    reads = []
    for number, example in enumerate(examples):
        tokens = tokenize(example.text)
        reads.append(_Read(example, tokens, find_candidates(tokens, lexicon, without=number), lexicon))
    affixes = _learn_affixes(reads, frozenset(properties))
    out = Observations(schema, properties, lexicon, cues, Forms({}))
    several = sum(_says_several(example) for example in examples)
    # Examples of one sentence about one thing say nothing about clauses, and what they seem to say is chance.
    collector = _Collector(out, affixes, with_clauses=several > _SEVERAL * len(examples))
    for number, read in (*enumerate(reads), *_blind(reads, lexicon)):
        collector.add(number, read)
    for number, (one, other) in enumerate(_pairs(reads, _JOINED_EACH * several) if collector.with_clauses else ()):
        collector.add_joined(one, other, joint=_JOINTS[number % len(_JOINTS)])
    collector.finish()
    return out
