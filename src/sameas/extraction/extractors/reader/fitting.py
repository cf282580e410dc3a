"""The reader's heads fitted to lessons on numpy: the layers stay as they are, and so does what no lesson speaks of.

Gradients are written out by hand for the two heads that examples teach, tags and pairs, and for a change to the query
of each property. Adam, with a pull back to where the heads began. Equal lessons and seed give equal heads.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sameas.extraction.extractors.reader.lessons import Lesson
from sameas.extraction.extractors.reader.packing import Floats

TRAINED = (
    "tags.weight", "tags.bias", "subject.weight", "subject.bias", "object.weight", "object.bias", "virtual",
    "distance.weight", "pair1.weight", "pair1.bias", "pair2.weight", "pair2.bias", "bias",
)  # fmt: skip
QUERIES, BIASES = "query changes", "bias changes"
_SCALE = 16.0


class Schedule(NamedTuple):
    """How long and how fast; found on the validation domains of the corpus."""

    passes: int = 20
    most_steps: int = 600
    size: int = 4
    rate: float = 1e-3
    pull: float = 0.02
    """How much of the way back a step goes, of what the rate would allow."""
    dropped: float = 0.1
    unlabelled: float = 1.0
    """What a pair counts that the examples do not name."""
    unlabelled_tag: float = 1.0
    unseen: float = 0.0
    """What such a pair counts of a property that no example has."""


class Fitted(NamedTuple):
    """Heads that were fitted, and a change of query and bias for each property."""

    heads: dict[str, Floats]
    queries: Floats
    biases: Floats


def fit_heads(
    lessons: Sequence[Lesson], heads: Mapping[str, Floats], properties: int, schedule: Schedule, *, seed: int = 0
) -> Fitted:
    """The heads half way to where so many passes over the lessons lead; without lessons, as they came."""
    start = {name: heads[name] for name in TRAINED}
    start[QUERIES] = np.zeros((properties, heads["pair2.weight"].shape[0]), np.float32)
    start[BIASES] = np.zeros(properties, np.float32)
    shown = np.zeros(properties, bool)
    for lesson in lessons:
        shown[lesson.columns[lesson.target.any((0, 1))]] = True
    weights = np.where(shown, schedule.unlabelled, schedule.unlabelled * schedule.unseen).astype(np.float32)
    now = {name: array.copy() for name, array in start.items()}
    first = {name: np.zeros_like(array) for name, array in start.items()}
    second = {name: np.zeros_like(array) for name, array in start.items()}
    rng, noise = random.Random(seed), np.random.default_rng(seed)
    batches = math.ceil(len(lessons) / schedule.size)
    steps = min(schedule.passes * batches, schedule.most_steps)
    waiting: list[Lesson] = []
    for step in range(1, steps + 1):
        if len(waiting) < schedule.size:
            waiting += rng.sample(list(lessons), len(lessons))
        batch, waiting = waiting[: schedule.size], waiting[schedule.size :]
        slopes = {name: np.zeros_like(array) for name, array in start.items()}
        for lesson in batch:
            _add_slopes(lesson, now, slopes, schedule, weights, noise)
        size = math.sqrt(sum(float(np.vdot(one, one)) for one in slopes.values())) / len(batch)
        scale = np.float32(min(1.0, 1.0 / max(size, 1e-9)) / len(batch))
        done = step / steps
        rate = schedule.rate * min(1.0, done / 0.1) * 0.5 * (1 + math.cos(math.pi * done))
        for name, slope in slopes.items():
            slope *= scale
            one, other, array = first[name], second[name], now[name]
            one += np.float32(0.1) * (slope - one)
            other += np.float32(0.02) * (slope * slope - other)
            size_of = np.sqrt(other / np.float32(1 - 0.98**step)) + np.float32(1e-8)
            array -= np.float32(rate / (1 - 0.9**step)) * one / size_of
            array -= np.float32(rate * schedule.pull) * (array - start[name])
    # Half the way: what few examples ask for goes too far.
    half: dict[str, Floats] = {
        name: (start[name] + now[name]) * np.float32(0.5) for name in (*TRAINED, QUERIES, BIASES)
    }
    return Fitted({name: half[name] for name in TRAINED}, half[QUERIES], half[BIASES])


def loss_of(lesson: Lesson, heads: Mapping[str, Floats], schedule: Schedule, weights: Floats) -> float:
    """What the heads get wrong in a lesson, nothing dropped: the sum whose slopes are followed."""
    vectors = lesson.vectors
    subject = vectors @ heads["subject.weight"].T + heads["subject.bias"]
    target = np.concatenate([vectors @ heads["object.weight"].T + heads["object.bias"], heads["virtual"]])
    joined = subject[:, None] + target[None] + heads["distance.weight"][lesson.bucket]
    inner = joined * _bell(joined)[0] @ heads["pair1.weight"].T + heads["pair1.bias"]
    pair = inner * _bell(inner)[0] @ heads["pair2.weight"].T + heads["pair2.bias"]
    scores = pair @ (lesson.queries + heads[QUERIES][lesson.columns]).T / _SCALE
    scores = scores + (heads["bias"][0] + lesson.biases + heads[BIASES][lesson.columns])
    best = _best(scores, lesson)
    missed = np.logaddexp(0, best) - lesson.target * best
    tags = lesson.hidden @ heads["tags.weight"].T + heads["tags.bias"]
    tags -= np.log(np.exp(tags - tags.max(-1, keepdims=True)).sum(-1, keepdims=True)) + tags.max(-1, keepdims=True)
    weight = np.where(lesson.tags > 0, 1.0, schedule.unlabelled_tag)
    tag_loss = -(tags[np.arange(len(tags)), lesson.tags] * weight).sum() / max(1.0, weight.sum())
    return float((missed * _weights(lesson, weights)).sum() / 20 + tag_loss)


def _best(scores: Floats, lesson: Lesson) -> Floats:
    """The best pair of places of two names counts."""
    places = len(lesson.vectors)
    by_subject = np.maximum.reduceat(scores, lesson.starts, 0)
    best: Floats = np.maximum.reduceat(by_subject, np.concatenate([lesson.starts, [places, places + 1]]), 1)
    return best


def _weights(lesson: Lesson, weights: Floats) -> Floats:
    found: Floats = np.where(lesson.target > 0, np.float32(1), weights[lesson.columns]) * lesson.allowed
    return found


def _bell(x: Floats) -> tuple[Floats, Floats]:
    """The error function's share of each number, and the slope of x times it."""
    z = np.abs(x) * np.float32(0.7071067811865476)
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    density = np.exp(-z * z)
    share = (0.5 * (1 + np.sign(x) * (1 - series * t * density))).astype(x.dtype)
    slope: Floats = share + x * density * np.float32(0.3989422804014327)
    return share, slope


def _add_slopes(
    lesson: Lesson,
    now: Mapping[str, Floats],
    slopes: dict[str, Floats],
    schedule: Schedule,
    weights: Floats,
    noise: np.random.Generator,
) -> None:
    _add_tag_slopes(lesson, now, slopes, schedule)
    keep = np.float32(1 - schedule.dropped)
    vectors = lesson.vectors * (noise.random(lesson.vectors.shape, np.float32) < keep) / keep
    places, columns = len(vectors), lesson.columns
    subject = vectors @ now["subject.weight"].T + now["subject.bias"]
    target = np.concatenate([vectors @ now["object.weight"].T + now["object.bias"], now["virtual"]])
    joined = subject[:, None] + target[None] + now["distance.weight"][lesson.bucket]
    share, slope0 = _bell(joined)
    mask = (noise.random(joined.shape, np.float32) < keep).astype(np.float32) / keep
    bent0 = joined * share * mask
    inner = bent0 @ now["pair1.weight"].T + now["pair1.bias"]
    share, slope1 = _bell(inner)
    bent1 = inner * share
    pair = bent1 @ now["pair2.weight"].T + now["pair2.bias"]
    queries = lesson.queries + now[QUERIES][columns]
    scores = pair @ queries.T / np.float32(_SCALE) + (now["bias"][0] + lesson.biases + now[BIASES][columns])
    best = _best(scores, lesson)
    sure = 1 / (1 + np.exp(-best.clip(-30, 30)))
    error = (sure - lesson.target) * _weights(lesson, weights) / np.float32(20)
    rows = np.repeat(np.arange(len(lesson.starts)), np.diff(np.append(lesson.starts, places)))
    cells = np.concatenate([rows, [len(lesson.starts), len(lesson.starts) + 1]])
    spread = error[rows][:, cells] * (scores == best[rows][:, cells])
    spread = spread.astype(scores.dtype)
    flat = spread.reshape(-1, len(columns))
    np.add.at(slopes[BIASES], columns, flat.sum(0))
    slopes["bias"][0] += flat.sum()
    back = spread @ queries / np.float32(_SCALE)
    np.add.at(slopes[QUERIES], columns, flat.T @ pair.reshape(-1, pair.shape[-1]) / np.float32(_SCALE))
    slopes["pair2.weight"] += _outer(back, bent1)
    slopes["pair2.bias"] += back.sum((0, 1))
    back = (back @ now["pair2.weight"]) * slope1
    slopes["pair1.weight"] += _outer(back, bent0)
    slopes["pair1.bias"] += back.sum((0, 1))
    back = (back @ now["pair1.weight"]) * mask * slope0
    np.add.at(slopes["distance.weight"], lesson.bucket.ravel(), back.reshape(-1, back.shape[-1]))
    of_subject, of_target = back.sum(1), back.sum(0)
    slopes["virtual"] += of_target[places:]
    slopes["subject.weight"] += of_subject.T @ vectors
    slopes["subject.bias"] += of_subject.sum(0)
    slopes["object.weight"] += of_target[:places].T @ vectors
    slopes["object.bias"] += of_target[:places].sum(0)


def _add_tag_slopes(lesson: Lesson, now: Mapping[str, Floats], slopes: dict[str, Floats], schedule: Schedule) -> None:
    tags = lesson.hidden @ now["tags.weight"].T + now["tags.bias"]
    tags = np.exp(tags - tags.max(-1, keepdims=True))
    tags /= tags.sum(-1, keepdims=True)
    tags[np.arange(len(tags)), lesson.tags] -= 1
    weight = np.where(lesson.tags > 0, 1.0, schedule.unlabelled_tag).astype(np.float32)
    tags *= (weight / max(1.0, float(weight.sum())))[:, None]
    slopes["tags.weight"] += tags.T @ lesson.hidden
    slopes["tags.bias"] += tags.sum(0)


def _outer(back: Floats, forth: Floats) -> Floats:
    product: Floats = back.reshape(-1, back.shape[-1]).T @ forth.reshape(-1, forth.shape[-1])
    return product
