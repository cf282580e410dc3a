"""The reader's network on numpy: labels read each alone, once, and a text that sees all labels and all of itself."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sameas.extraction.extractors.reader.decoding import VIRTUAL_BUCKET, distance_bucket
from sameas.extraction.extractors.reader.packing import Floats
from sameas.extraction.extractors.reader.weights import Weights

_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")


def use_one_thread() -> bool:
    """Tell OpenBLAS, unless the environment says how many; whether it was there to be told."""
    if "OPENBLAS_NUM_THREADS" in os.environ:
        return False
    library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]
    for name in _SETTERS:
        setter = getattr(library, name, None)
        if setter is not None:
            setter(1)
            return True
    return False


_ROPE_BASE = 100_000.0
_EPSILON = 1e-5
Numbers = npt.NDArray[np.int64]


class EncodedLabel(NamedTuple):
    """A label as texts see it: keys and values of each layer [layers, key heads, tokens, width], query and bias."""

    keys: Floats
    values: Floats
    query: Floats
    bias: float


class LabelSet(NamedTuple):
    """The labels that one text sees, joined."""

    keys: Floats
    values: Floats
    queries: Floats
    biases: Floats


class EncodedText(NamedTuple):
    """What the last layer wrote for each token, with the probabilities of tags and of stances."""

    hidden: Floats
    tags: Floats
    stance: Floats


def _normed(x: Floats) -> Floats:
    scaled: Floats = x / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + _EPSILON)
    return scaled


def _softmax(x: Floats) -> Floats:
    x = np.exp(x - x.max(-1, keepdims=True))
    x /= x.sum(-1, keepdims=True)
    return x


def _gelu(x: Floats) -> Floats:
    """As PyTorch's, with the error function by Abramowitz and Stegun 7.1.26: at most 1.5e-7 off."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    erf = np.sign(x) * (1 - series * t * np.exp(-z * z))
    result: Floats = (0.5 * x * (1 + erf)).astype(np.float32)
    return result


def _attend(q: Floats, k: Floats, v: Floats) -> Floats:
    """What tokens [tokens, heads, width] read from others [key heads, others, width]: [tokens, heads * width]."""
    count, heads, width = q.shape
    key_heads = len(k)
    # Query heads that share a key head are rows of one matrix product.
    grouped = q.reshape(count, key_heads, heads // key_heads, width).transpose(1, 2, 0, 3)
    read = _softmax(grouped.reshape(key_heads, -1, width) @ k.transpose(0, 2, 1)) @ v
    return read.reshape(heads, count, width).transpose(1, 0, 2).reshape(count, heads * width)


class Network:
    """Encodes labels and texts, and scores spans of a text for labels."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._heads = weights.heads
        settings = weights.settings
        self._speeds = _ROPE_BASE ** -(np.arange(0, settings.head_width, 2) / settings.head_width)

    def with_heads(self, heads: Mapping[str, Floats]) -> "Network":
        """The same layers under other heads; those that are not named stay."""
        other = copy(self)
        other._heads = {**self._heads, **heads}
        return other

    @property
    def heads(self) -> Mapping[str, Floats]:
        return self._heads

    def encode_label(self, vectors: Floats) -> EncodedLabel:
        """A label alone; `vectors` are its tokens' embeddings."""
        return self.encode_labels([vectors])[0]

    def encode_labels(self, vectors: Sequence[Floats]) -> list[EncodedLabel]:
        """Labels that see each only itself, as rows of the same products of matrices."""
        lengths = [len(one) for one in vectors]
        keys: list[Floats] = []
        values: list[Floats] = []
        hidden = self._run(np.concatenate(vectors), lengths, 0, None, keys, values)
        every_key, every_value = np.stack(keys), np.stack(values)
        found = []
        for end, length in zip(accumulate(lengths), lengths, strict=True):
            rows = slice(end - length, end)
            query = self._linear("query2", _gelu(self._linear("query1", hidden[rows].mean(0))))
            bias = float(self._linear("query_bias", query)[0])
            found.append(EncodedLabel(every_key[:, :, rows].copy(), every_value[:, :, rows].copy(), query, bias))
        return found

    @staticmethod
    def join_labels(labels: Sequence[EncodedLabel]) -> LabelSet:
        """Labels side by side, in any number and order."""
        return LabelSet(
            np.concatenate([one.keys for one in labels], 2),
            np.concatenate([one.values for one in labels], 2),
            np.stack([one.query for one in labels]),
            np.array([one.bias for one in labels], np.float32),
        )

    def encode_text(self, vectors: Floats, labels: LabelSet) -> EncodedText:
        """A text that sees the labels."""
        offset = self._weights.settings.text_offset
        return self.judge_tokens(self._run(vectors, [len(vectors)], offset, labels, None, None))

    def judge_tokens(self, hidden: Floats) -> EncodedText:
        """Tags and stances of what the last layer wrote."""
        tags, stance = (_softmax(self._linear(name, hidden)) for name in ("tags", "stance"))
        return EncodedText(hidden, tags, stance)

    def _run(
        self,
        x: Floats,
        lengths: Sequence[int],
        offset: int,
        labels: LabelSet | None,
        keys: list[Floats] | None,
        values: list[Floats] | None,
    ) -> Floats:
        settings = self._weights.settings
        count, width = len(x), settings.head_width
        heads, key_heads = settings.heads, settings.key_heads
        places = np.concatenate([np.arange(offset, offset + length) for length in lengths])
        angles = np.outer(places, self._speeds)
        cos, sin = (turn(angles).astype(np.float32)[:, None, :] for turn in (np.cos, np.sin))
        x = x.copy()
        both = heads + key_heads
        scale = np.float32(width**-0.5)
        for number, layer in enumerate(self._weights.layers):
            h = _normed(x) @ layer.qkv
            halves = h[:, : both * width].reshape(count, both, 2, width // 2)
            left, right = halves[:, :, 0], halves[:, :, 1]
            turned = np.concatenate([left * cos - right * sin, right * cos + left * sin], -1)
            k = turned[:, heads:].transpose(1, 0, 2)
            v = h[:, both * width :].reshape(count, key_heads, width).transpose(1, 0, 2)
            if keys is not None and values is not None:
                keys.append(k.copy())
                values.append(v.copy())
            q = turned[:, :heads] * scale
            if labels is not None:
                k = np.concatenate([labels.keys[number], k], 1)
                v = np.concatenate([labels.values[number], v], 1)
                mixed = _attend(q, k, v)
            else:
                pieces = (slice(end - length, end) for end, length in zip(accumulate(lengths), lengths, strict=True))
                mixed = np.concatenate([_attend(q[rows], k[:, rows], v[:, rows]) for rows in pieces])
            x += mixed @ layer.out
            h = _normed(x) @ layer.gate_up
            gate, up = h[:, : h.shape[1] // 2], h[:, h.shape[1] // 2 :]
            x += (gate / (1 + np.exp(-gate)) * up) @ layer.down
        return _normed(x) * self._weights.norm

    def _linear(self, name: str, x: Floats) -> Floats:
        result: Floats = x @ self._heads[f"{name}.weight"].T + self._heads[f"{name}.bias"]
        return result

    @staticmethod
    def span_vectors(hidden: Floats, first: Numbers, last: Numbers) -> Floats:
        """First token, last token and mean of each span."""
        sums = np.zeros((len(hidden) + 1, hidden.shape[1]), np.float64)
        np.cumsum(hidden, 0, out=sums[1:])
        mean = (sums[last + 1] - sums[first]) / (last - first + 1)[:, None]
        return np.concatenate([hidden[first], hidden[last], mean.astype(np.float32)], -1)

    def score_pairs(self, spans: Floats, first: Numbers, queries: Floats, biases: Floats) -> Floats:
        """Scores before the sigmoid [spans, spans + 2, properties]; the last two objects are true and false."""
        subject = self._linear("subject", spans)
        target = np.concatenate([self._linear("object", spans), self._heads["virtual"]])
        bucket = np.full((len(first), len(first) + 2), VIRTUAL_BUCKET, np.int64)
        bucket[:, : len(first)] = distance_bucket(first[None, :] - first[:, None])
        z = _gelu(subject[:, None] + target[None] + self._heads["distance.weight"][bucket])
        z = self._linear("pair2", _gelu(self._linear("pair1", z)))
        scores: Floats = z @ queries.T / 16 + self._heads["bias"][0] + biases
        return scores

    def score_types(self, spans: Floats, queries: Floats, biases: Floats) -> Floats:
        """Scores before the sigmoid [spans, classes]."""
        z = self._linear("kind2", _gelu(self._linear("kind1", spans)))
        scores: Floats = z @ queries.T / 16 + self._heads["bias"][1] + biases
        return scores
