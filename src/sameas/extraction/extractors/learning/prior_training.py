"""Make the prior from the training sentences of several ontologies: `python -m ...prior_training DATA_FOLDER
[OUT]`.

Only the train part is read. The file holds weights of hashed features; small weights are dropped to keep it
small. Numbers are left out: ontologies without a numeric property would teach that numbers are never objects.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameas.extraction.extractors.learning.container import pack, write_file
from sameas.extraction.extractors.learning.corpus import read_corpus
from sameas.extraction.extractors.learning.fitting import Floats, fit_choice, matrix, minimize_from, sigmoid, vocabulary
from sameas.extraction.extractors.learning.hashing import word
from sameas.extraction.extractors.learning.labels import descriptors
from sameas.extraction.extractors.learning.object_features import OWN_TEMPLATES, own_feature
from sameas.extraction.extractors.learning.observations import Observations, observe
from sameas.extraction.extractors.learning.prior import FILE, MARK, Prior, PriorContent
from sameas.extraction.extractors.learning.spans import QUANTITY

_LEAST_OBJECT = 20
_LEAST_SUBJECT = 8
_STRENGTH = 3.0
_OWN_STRENGTH = 0.1
_ROUNDS = 30
_SUBJECT_ROUNDS = 50
_KEPT = 50_000


@dataclass(frozen=True)
class _Block:
    """One ontology's rows, its labels, and which descriptors each of its properties has."""

    rows: Any
    turned: Any
    mixing: Floats
    labels: Floats
    weights: Floats
    own: list[tuple[NDArray[np.int64], NDArray[np.int64]]]


def _without_numbers(item: Observations) -> tuple[list[list[int]], list[int], NDArray[np.bool_]]:
    kept = np.array([not kinds & QUANTITY for kinds in item.object_kinds], bool)
    rows = [row for row, keep in zip(item.object_rows, kept, strict=True) if keep]
    return rows, [s for s, keep in zip(item.sentence, kept, strict=True) if keep], kept


def _block(item: Observations, numbers: dict[int, int], columns: dict[str, int]) -> _Block:
    rows, _, kept = _without_numbers(item)
    found = matrix(rows, numbers)
    properties = {each.id: each for each in item.schema.properties}
    mixing = np.zeros((len(columns), len(item.properties)), np.float32)
    for j, name in enumerate(item.properties):
        for descriptor in descriptors(item.schema, properties[name]):
            mixing[columns[descriptor], j] = 1
    own = []
    for template in OWN_TEMPLATES:
        names = {own_feature(template, name): j for j, name in enumerate(item.properties)}
        hits = sorted({(i, names[key]) for i, row in enumerate(rows) for key in row if key in names})
        places = np.array(hits, np.int64).reshape(-1, 2)
        own.append((places[:, 0], places[:, 1]))
    return _Block(found, found.T.tocsr(), mixing, item.labels[kept], item.weights[kept], own)


def _fit_objects(blocks: Sequence[_Block], features: int, columns: int) -> tuple[Floats, NDArray[np.float64]]:
    size = features * columns

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        guess = flat[:size].reshape(features, columns).astype(np.float32)
        own = flat[size:]
        slope = np.float32(_STRENGTH) * guess
        own_slope = _OWN_STRENGTH * own
        value = 0.5 * _STRENGTH * float((guess * guess).sum(dtype=np.float64)) + 0.5 * _OWN_STRENGTH * float(own @ own)
        for block in blocks:
            scores = block.rows @ (guess @ block.mixing)
            for weight, hits in zip(own, block.own, strict=True):
                scores[hits] += np.float32(weight)
            gap = block.weights * (sigmoid(scores) - block.labels)
            each = block.weights * (np.logaddexp(np.float32(0), scores) - block.labels * scores)
            value += float(each.sum(dtype=np.float64))
            slope += (block.turned @ gap) @ block.mixing.T
            own_slope = own_slope + np.array([float(gap[hits].sum(dtype=np.float64)) for hits in block.own])
        return value, np.concatenate([slope.ravel().astype(np.float64), own_slope])

    found = minimize_from(loss, np.zeros(size + len(OWN_TEMPLATES)), rounds=_ROUNDS)
    return found[:size].reshape(features, columns).astype(np.float32), found[size:]


def _quantize(values: NDArray[Any]) -> tuple[bytes, float]:
    scale = float(np.abs(values).max(initial=0.0)) / 127 or 1.0
    return np.rint(values / scale).astype(np.int8).tobytes(), scale


def train_prior(items: Sequence[Observations]) -> Prior:
    """A prior from the observations of several ontologies."""
    kept = [_without_numbers(item) for item in items]
    offsets = list(accumulate([len(item.sentence) + 1 for item in items], initial=0))
    rows = [row for found in kept for row in found[0]]
    groups = [offset + s for offset, found in zip(offsets, kept, strict=False) for s in found[1]]
    own = {own_feature(template, name) for item in items for template in OWN_TEMPLATES for name in item.properties}
    numbers = vocabulary(rows, groups, least=_LEAST_OBJECT)
    numbers = {key: i for i, key in enumerate(key for key in numbers if key not in own)}
    names = sorted(
        {
            d
            for item in items
            for each in item.schema.properties
            if each.id in item.properties
            for d in descriptors(item.schema, each)
        }
    )
    columns = {name: i for i, name in enumerate(names)}
    weights, own_weights = _fit_objects([_block(item, numbers, columns) for item in items], len(numbers), len(columns))
    bar = np.sort(np.abs(weights), axis=None)[-min(_KEPT, weights.size)]
    weights[np.abs(weights) < bar] = 0
    feature, column = np.nonzero(weights)
    values, scale = _quantize(weights[feature, column])
    subject_keys, subject_weights = _fit_subjects(items)
    subject_values, subject_scale = _quantize(subject_weights)
    content = PriorContent(
        object_keys=np.array(sorted(numbers, key=numbers.__getitem__), np.uint32).tobytes(),
        descriptors=np.array([word(name) for name in names], np.uint32).tobytes(),
        pointers=np.searchsorted(feature, np.arange(len(numbers) + 1)).astype(np.uint32).tobytes(),
        columns=column.astype(np.uint16).tobytes(),
        values=values,
        scale=scale,
        own=[round(float(weight), 4) for weight in own_weights],
        subject_keys=np.array(subject_keys, np.uint32).tobytes(),
        subject_values=subject_values,
        subject_scale=subject_scale,
    )
    return Prior(content)


def _fit_subjects(items: Sequence[Observations]) -> tuple[list[int], NDArray[np.float64]]:
    rows = [row for item in items for row in item.subject_rows]
    right = [flag for item in items for flag in item.subject_right]
    bounds = [0]
    for item in items:
        start = bounds[-1]
        bounds += [start + bound for bound in item.subject_groups[1:]]
    member = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)).tolist()
    numbers = vocabulary(rows, member, least=_LEAST_SUBJECT)
    start_at = np.zeros(len(numbers))
    weights = fit_choice(matrix(rows, numbers), bounds, right, prior=start_at, strength=1.0, rounds=_SUBJECT_ROUNDS)
    return list(numbers), weights


def main() -> None:
    """Read the train part of a data folder and write the prior."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with ontologies/ and train/ in Text2KGBench's form")
    parser.add_argument("out", type=Path, nargs="?", default=Path(__file__).with_name(FILE))
    given = parser.parse_args()
    items = [observe(part.train, part.schema) for part in read_corpus(given.data)]
    prior = train_prior(items)
    data = pack(prior.content, mark=MARK)
    write_file(given.out, data)
    sys.stdout.write(f"{given.out.name}: {len(data)} bytes, {len(items)} ontologies, version {prior.version}\n")


if __name__ == "__main__":
    main()
