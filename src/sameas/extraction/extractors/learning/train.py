"""Learn an extractor from examples: observe, fit from the prior, choose thresholds by cross-validation.

Equal examples, schema, seed and prior give an equal model, byte for byte; the seed only deals examples into
folds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sameas.extraction.extractors.learning.decoding import LearnedTriple, Thresholds, choose
from sameas.extraction.extractors.learning.examples import Example, ExamplesError
from sameas.extraction.extractors.learning.fitting import fit_choice, fit_logistic, matrix, vocabulary
from sameas.extraction.extractors.learning.forms import allowed_sorts, shortens
from sameas.extraction.extractors.learning.model import LearnedModel, ModelContent, pack_lexicon
from sameas.extraction.extractors.learning.observations import Observations, observe
from sameas.extraction.extractors.learning.prior import Prior, shipped_prior
from sameas.extraction.extractors.learning.schema import Schema
from sameas.extraction.extractors.learning.scoring import Prediction, score

_STRENGTH = 1.0
_MANY = 150
_FOLDS = 3
# Held-out examples after which further folds would hardly move the thresholds.
_ENOUGH = 400
_ROUNDS = 60
# Thresholds need no exact fit.
_TRIAL_ROUNDS = 30
_BEST = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18, 0.25)
_OTHER = (0.12, 0.18, 0.25, 0.33)
_CAUTION = 1.5
_TINY = 0.01


def learn(examples: Sequence[Example], schema: Schema, *, seed: int = 0, prior: Prior | None = None) -> LearnedModel:
    """A model of the examples. Triples of properties that the schema lacks are passed over."""
    known = {item.id for item in schema.properties}
    if not any(triple.property in known for example in examples for triple in example.triples):
        raise ExamplesError("no example has a triple of a property in the ontology; there is nothing to learn")
    start = prior if prior is not None else shipped_prior()
    thresholds = _cross_validate(examples, schema, start, seed)
    return _fit(examples, schema, start, thresholds)


def _fit(
    examples: Sequence[Example],
    schema: Schema,
    prior: Prior,
    thresholds: Thresholds,
    *,
    rounds: int = _ROUNDS,
) -> LearnedModel:
    seen = observe(examples, schema)
    least = 2 if len(examples) > _MANY else 1
    object_keys, object_weights = _fit_objects(seen, prior, least, rounds)
    subject_keys, subject_weights = _fit_subjects(seen, prior, least, rounds)
    small, scales = _quantize(object_weights)
    items = {item.id: item for item in schema.properties}
    content = ModelContent(
        properties=list(seen.properties),
        sorts=[list(allowed_sorts(items[name], seen.forms)) for name in seen.properties],
        **pack_lexicon(seen.lexicon),
        cues=[(key, list(items)) for key, items in seen.cues.items()],
        styles=[(name, sort, style) for (name, sort), style in seen.forms.styles.items()],
        object_keys=object_keys.tobytes(),
        object_weights=small.tobytes(),
        object_scales=[float(scale) for scale in scales],
        subject_keys=subject_keys.tobytes(),
        subject_weights=subject_weights.astype(np.float16).tobytes(),
        best=thresholds.best,
        other=thresholds.other,
        examples=len(examples),
        prior=prior.version,
        shortens=shortens(examples, seen.properties),
        carried=sorted(seen.carried),
        trusted=[],
    )
    return LearnedModel(content)


def _fit_objects(
    seen: Observations, prior: Prior, least: int, rounds: int
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    numbers = vocabulary(seen.object_rows, seen.sentence, least=least)
    given = prior.objects(seen.schema, seen.properties)
    for key in given:
        numbers.setdefault(key, len(numbers))
    start = np.zeros((len(numbers), len(seen.properties)), np.float32)
    for key, weights in given.items():
        start[numbers[key]] = weights
    rows = matrix(seen.object_rows, numbers)
    fitted = fit_logistic(rows, seen.labels, seen.weights, prior=start, strength=_STRENGTH, rounds=rounds)
    keys = np.array(list(numbers), np.uint32)
    kept = np.abs(fitted).max(axis=1) > _TINY
    return keys[kept], fitted[kept]


def _fit_subjects(
    seen: Observations, prior: Prior, least: int, rounds: int
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    member = np.repeat(np.arange(len(seen.subject_groups) - 1), np.diff(seen.subject_groups)).tolist()
    numbers = vocabulary(seen.subject_rows, member, least=least)
    for key in prior.subjects:
        numbers.setdefault(key, len(numbers))
    start = np.array([prior.subjects.get(key, 0.0) for key in numbers])
    rows = matrix(seen.subject_rows, numbers)
    fitted = fit_choice(rows, seen.subject_groups, seen.subject_right, prior=start, strength=_STRENGTH, rounds=rounds)
    keys = np.array(list(numbers), np.uint32)
    kept = np.abs(fitted) > _TINY
    return keys[kept], fitted[kept]


def _quantize(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    scales = np.maximum(np.abs(weights).max(axis=0, initial=0.0), 1e-6) / np.float32(127)
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)


def _cross_validate(examples: Sequence[Example], schema: Schema, prior: Prior, seed: int) -> Thresholds:
    """The thresholds that do best on examples that were held out, near the usual ones where examples are
    few.
    """
    usual = Thresholds()
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)
    guesses: list[tuple[Example, list[LearnedTriple]]] = []
    for fold in range(_FOLDS):
        held = set(order[fold::_FOLDS])
        rest = [example for i, example in enumerate(examples) if i not in held]
        if len(guesses) >= _ENOUGH:
            break
        if not held or not any(True for example in rest for triple in example.triples if schema.find(triple.property)):
            return usual
        model = _fit(rest, schema, prior, usual, rounds=_TRIAL_ROUNDS)
        guesses += [(examples[i], model.guess(examples[i].text)) for i in sorted(held)]
    trials = [Thresholds(best, other) for best in _BEST for other in _OTHER if other >= best]
    return min(trials, key=lambda trial: (-_worth(guesses, trial, usual), trial.best, trial.other))


def _worth(guesses: Sequence[tuple[Example, list[LearnedTriple]]], trial: Thresholds, usual: Thresholds) -> float:
    made = [
        Prediction(example, tuple((t.subject.value, t.property, t.object.value) for t in choose(found, trial)))
        for example, found in guesses
    ]
    result = score(made)
    strange = abs(math.log(trial.best / usual.best)) + abs(math.log(trial.other / usual.other))
    return (result.f1 + result.micro_f1) / 2 - _CAUTION * strange / len(guesses)
