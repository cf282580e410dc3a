"""How sure a fact is, from everything that speaks for it or against it.

The weights are a logistic regression over facts that passed the guard in the validation domains of the corpus
(`python -m training.confidence` fits them), so that of facts with confidence .8 about four in five are right there.
"""

import math
from typing import NamedTuple

_HIGHEST = 4.0


class Signs(NamedTuple):
    """What is known of a fact; scores as logits, within four."""

    score: float
    """The reader's own, calibrated on its own."""
    agreed: float
    """1 where the lexicon reads the same fact."""
    rival_property: float
    """How far another property between the same two ends is ahead; below 0 where none is."""
    rival_subject: float
    """The same for another subject of the same property and object."""
    rival_object: float
    """The same for another object of the same subject and property."""
    subject_type: float
    """The best class that the property allows at this end."""
    object_type: float
    is_value: float
    tag: float
    """The less sure of its two mentions."""
    apart: float
    """Sentences between the ends, at most four."""
    against: float
    """What the stance head has against it."""
    contradicted: float
    """1 where the lexicon reads another property between the same ends."""
    cue: float
    """How much of one of the property's labels the sentences say, in any form of its words."""
    cue_here: float
    """The same for the sentence of the later end alone."""
    other_subject: float
    """1 where the ends are in two sentences, and that of the object names another possible subject."""
    rival_cue: float
    """The same for other properties between the same ends."""
    siblings: float
    """How many facts of the property the subject may have."""
    nearer_object: float
    """Other things that the property may lead to, nearer to the subject than this one."""


_BIAS = -3.166
_WEIGHTS = Signs(
    score=0.173,
    agreed=0.679,
    rival_property=-0.066,
    rival_subject=-0.273,
    rival_object=-0.205,
    subject_type=0.040,
    object_type=0.053,
    is_value=0.103,
    tag=0.121,
    apart=0.105,
    against=0.136,
    contradicted=-0.953,
    cue=0.673,
    cue_here=1.422,
    other_subject=-0.558,
    rival_cue=-0.918,
    siblings=0.495,
    nearer_object=-0.578,
)

# A score that examples have shaped is worth more: fitted on the same domains, each after thirty examples of its own
# (`--fitted`), with what four folds of these read of each other beside.
_FITTED_BIAS = -3.217
_FITTED_WEIGHTS = Signs(
    score=0.386,
    agreed=0.835,
    rival_property=-0.104,
    rival_subject=-0.315,
    rival_object=-0.220,
    subject_type=0.043,
    object_type=0.046,
    is_value=-0.162,
    tag=0.276,
    apart=0.075,
    against=0.357,
    contradicted=-1.278,
    cue=0.437,
    cue_here=1.620,
    other_subject=-0.268,
    rival_cue=-0.878,
    siblings=0.404,
    nearer_object=-0.596,
)


def logit(probability: float) -> float:
    """Within four."""
    low = 1 / (1 + math.exp(_HIGHEST))
    held = min(max(probability, low), 1 - low)
    return math.log(held / (1 - held))


def judge(signs: Signs, iri: str = "") -> float:
    """The probability that the fact is right."""
    return _sigmoid(_BIAS + _weigh(signs, _WEIGHTS))


def judge_fitted(signs: Signs, offset: float = 0.0) -> float:
    """The same for a reader whose heads were fitted to examples; the offset is what they say of the property."""
    return _sigmoid(_FITTED_BIAS + offset + _weigh(signs, _FITTED_WEIGHTS))


def _weigh(signs: Signs, weights: Signs) -> float:
    return sum(weight * sign for weight, sign in zip(weights, signs, strict=True))


def _sigmoid(total: float) -> float:
    return round(1 / (1 + math.exp(-total)), 2)


ALONE = {0.8: 0.6, 0.67: 0.25, 0.54: 0.2}
"""What the lexicon's own scores are worth where the reader does not read the same."""
