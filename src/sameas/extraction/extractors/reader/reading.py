"""Reads a text for a set of properties and classes: mentions with types, facts with scores, and the stance of each.

Labels are encoded once and remembered by their words, so that any part of any ontology costs only what is new in it.
Confidence is the score after calibration on validation domains; nothing here decides what is asserted.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from sameas.extraction.extractors.reader.decoding import TokenSpan, find_mentions, group_names, spans_at
from sameas.extraction.extractors.reader.network import EncodedLabel, EncodedText, LabelSet, Network, use_one_thread
from sameas.extraction.extractors.reader.packing import Floats
from sameas.extraction.extractors.reader.tokenizer import SubwordTokens
from sameas.extraction.extractors.reader.weights import Settings, load_embeddings, load_tokenizer, load_weights

STANCES = ("asserted", "denied", "hedged", "ended", "asked", "attributed")
_LABEL_TOKENS = 60
# A label takes half a megabyte.
_REMEMBERED = 400
_TOGETHER = 32
_MENTIONS = 80


class ReadMention(msgspec.Struct, frozen=True):
    """A name or value in the text, with a score for each class that was asked for."""

    start: int
    end: int
    name: int
    """Mentions of one spelling share a name."""
    score: float
    types: tuple[float, ...]


class ReadFact(msgspec.Struct, frozen=True):
    """A property between two mentions; `object` is None for a truth value, which is then `truth`."""

    property: int
    subject: int
    object: int | None
    truth: bool | None
    confidence: float
    stance: tuple[float, ...]
    """The probability of each of STANCES over the words from one end to the other."""


class Reading(msgspec.Struct, frozen=True):
    """What was read; `property`, `subject` and `object` are positions in what was asked and in `mentions`."""

    mentions: tuple[ReadMention, ...]
    facts: tuple[ReadFact, ...]


class Reader:
    """A loaded network with its tokenizer and the labels it remembers; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        use_one_thread()
        weights = load_weights(folder)
        self.settings: Settings = weights.settings
        self._network = Network(weights)
        self._embeddings = load_embeddings(folder, weights.settings)
        self._tokenizer = load_tokenizer(folder)
        self._labels: OrderedDict[str, EncodedLabel] = OrderedDict()
        self._joined: tuple[tuple[str, ...], LabelSet] | None = None
        self._lock = threading.Lock()
        self._changes: Mapping[str, tuple[Floats, float]] = {}
        self._remembered: dict[tuple[str, tuple[str, ...]], Floats] | None = None

    @property
    def network(self) -> Network:
        return self._network

    def fitted(self, heads: Mapping[str, Floats], changes: Mapping[str, tuple[Floats, float]]) -> "Reader":
        """The same reader with heads that were fitted, and changes to the queries and biases of some label texts."""
        other = copy(self)
        other._network = self._network.with_heads(heads)
        other._changes = changes
        other._joined = None
        return other

    def encode(self, text: str, labels: Sequence[str]) -> tuple[SubwordTokens, EncodedText, LabelSet]:
        """A text as the last layer writes it, with its tokens and the labels that it saw."""
        asked = tuple(labels)
        tokens, joined = self._tokenizer.encode(text), self._join(asked)
        known = None if self._remembered is None else self._remembered.get((text, asked))
        if known is not None:
            return tokens, self._network.judge_tokens(known), joined
        encoded = self._network.encode_text(self._embeddings(np.array(tokens.ids)), joined)
        if self._remembered is not None:
            self._remembered[text, asked] = encoded.hidden
        return tokens, encoded, joined

    def remembering(self) -> "Reader":
        """The same reader, which keeps what its layers wrote for each text, for heads that are fitted over it."""
        other = copy(self)
        other._remembered = {}
        return other

    def read(
        self,
        text: str,
        *,
        properties: Sequence[str],
        booleans: Sequence[bool],
        classes: Sequence[str],
        keep_from: float = 0.05,
        also: Sequence[tuple[int, int]] = (),
    ) -> Reading:
        """The facts of at least such a confidence; labels are the texts of `reader.labels`.

        `booleans` says of each property whether its values are true and false. `also` are stretches that may be names
        or values beside those that the reader finds.
        """
        if not text or not properties:
            return Reading((), ())
        tokens, encoded, labels = self.encode(text, (*properties, *classes))
        spans = find_mentions(encoded.tags, tokens.starts, tokens.ends, text)[:_MENTIONS]
        known = {(span.start, span.end) for span in spans}
        others = sorted(place for place in set(also) if place not in known)
        spans += spans_at(others, encoded.tags, tokens.starts, tokens.ends)[: _MENTIONS - len(spans)]
        if not spans:
            return Reading((), ())
        name_of, _ = group_names(spans, text)
        first, last = (np.array(column) for column in zip(*((one.first, one.last) for one in spans), strict=True))
        vectors = self._network.span_vectors(encoded.hidden, first, last)
        count = len(properties)
        kinds = _sigmoid(self._network.score_types(vectors, labels.queries[count:], labels.biases[count:]))
        mentions = tuple(
            ReadMention(span.start, span.end, name, span.score, tuple(float(one) for one in types))
            for span, name, types in zip(spans, name_of, kinds, strict=True)
        )
        scores = self._network.score_pairs(vectors, first, labels.queries[:count], labels.biases[:count])
        sure = _sigmoid(scores / self.settings.temperature + self.settings.offset)
        facts = self._choose(sure, spans, name_of, np.array(booleans, bool), encoded.stance, keep_from)
        return Reading(mentions, facts)

    def _choose(
        self,
        sure: Floats,
        spans: Sequence[TokenSpan],
        name_of: Sequence[int],
        booleans: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]",
        stance: Floats,
        keep_from: float,
    ) -> tuple[ReadFact, ...]:
        """Of each fact between names, the best pair of places."""
        places = len(spans)
        best: dict[tuple[int, int, int], tuple[float, int, int]] = {}
        for one, other, number in np.argwhere(sure >= keep_from).tolist():
            truth = other - places
            if (truth >= 0) != bool(booleans[number]) or (truth < 0 and name_of[one] == name_of[other]):
                continue
            key = (name_of[one], -1 - truth if truth >= 0 else name_of[other], number)
            score = float(sure[one, other, number])
            if key not in best or score > best[key][0]:
                best[key] = (score, one, other)
        facts = []
        for (_, _, number), (score, one, other) in best.items():
            truth = other - places
            end = spans[one] if truth >= 0 else spans[other]
            low, high = min(spans[one].first, end.first), max(spans[one].last, end.last)
            told = tuple(float(part) for part in stance[low : high + 1].mean(0))
            value = (truth == 0) if truth >= 0 else None
            facts.append(ReadFact(number, one, None if truth >= 0 else other, value, score, told))
        return tuple(sorted(facts, key=lambda fact: (-fact.confidence, fact.property, fact.subject)))

    def _join(self, texts: tuple[str, ...]) -> LabelSet:
        with self._lock:
            if self._joined is not None and self._joined[0] == texts:
                return self._joined[1]
            joined = self._network.join_labels(self._encoded(texts))
            for at, text in enumerate(texts):
                if text in self._changes:
                    query, bias = self._changes[text]
                    joined.queries[at] += query
                    joined.biases[at] += bias
            self._joined = (texts, joined)
            return joined

    def _encoded(self, texts: Sequence[str]) -> list[EncodedLabel]:
        new = [text for text in dict.fromkeys(texts) if text not in self._labels]
        for at in range(0, len(new), _TOGETHER):
            some = new[at : at + _TOGETHER]
            vectors = [self._embeddings(np.array(self._tokenizer.encode(text).ids[:_LABEL_TOKENS])) for text in some]
            self._labels.update(zip(some, self._network.encode_labels(vectors), strict=True))
        for text in texts:
            self._labels.move_to_end(text)
        found = [self._labels[text] for text in texts]
        while len(self._labels) > _REMEMBERED:
            self._labels.popitem(last=False)
        return found


@lru_cache(maxsize=1)
def load_reader(folder: Path) -> Reader:
    """The reader of a folder, one for all ontologies of a process."""
    return Reader(folder)


def _sigmoid(x: Floats) -> Floats:
    result: Floats = 1 / (1 + np.exp(-x.clip(-60, 60)))
    return result
