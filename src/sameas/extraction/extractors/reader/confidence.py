"""How sure a fact is, from everything that speaks for it or against it.

The weights are a logistic regression over facts that passed the guard in texts that the network has not seen
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
    close: float = 0.0
    """How near to the object the words of one of the property's labels stand."""
    other_close: float = 0.0
    """The same for the best of the other properties that the object may be of."""
    nearer_subject: float = 0.0
    """Other things that the property may be of, nearer to the object than the subject."""
    topic: float = 0.0
    """1 where the text begins with the subject."""
    anaphor: float = 0.0
    """1 where the sentence of the later end has a pronoun or a noun for the earlier one, less than 0 for another."""
    key: float = 0.0
    """How well the words before a colon name the property."""
    mate: float = 0.0
    """The score, from 0 to 8, of the same fact about another member of a list that an end belongs to."""
    fit: float = 0.0
    """How far the subject, wherever it is named, is of a class that the property is said of."""


BIAS = -2.935
WEIGHTS = Signs(
    score=0.151,
    agreed=0.720,
    rival_property=-0.007,
    rival_subject=-0.402,
    rival_object=-0.114,
    subject_type=-0.068,
    object_type=0.054,
    is_value=0.314,
    tag=0.147,
    apart=0.111,
    against=-0.133,
    contradicted=-0.748,
    cue=0.581,
    cue_here=0.847,
    other_subject=-0.282,
    rival_cue=-0.868,
    siblings=0.008,
    nearer_object=-0.333,
    close=0.976,
    other_close=-0.186,
    nearer_subject=-0.090,
    topic=0.439,
    anaphor=0.290,
    key=0.659,
    mate=0.208,
    fit=0.136,
)

# The same after thirty examples of each domain (`--fitted`), held near those above.
_FITTED_BIAS = -3.069
_FITTED_WEIGHTS = Signs(
    score=0.323,
    agreed=0.763,
    rival_property=0.116,
    rival_subject=-0.469,
    rival_object=-0.177,
    subject_type=0.076,
    object_type=0.048,
    is_value=0.289,
    tag=0.267,
    apart=0.046,
    against=-0.123,
    contradicted=-0.787,
    cue=0.501,
    cue_here=0.840,
    other_subject=-0.252,
    rival_cue=-0.933,
    siblings=0.122,
    nearer_object=-0.370,
    close=1.001,
    other_close=-0.168,
    nearer_subject=-0.089,
    topic=0.421,
    anaphor=0.485,
    key=0.697,
    mate=0.119,
    fit=-0.003,
)


def logit(probability: float) -> float:
    """Within four."""
    low = 1 / (1 + math.exp(_HIGHEST))
    held = min(max(probability, low), 1 - low)
    return math.log(held / (1 - held))


def judge(signs: Signs, iri: str = "") -> float:
    """The probability that the fact is right."""
    return _sigmoid(BIAS + _weigh(signs, WEIGHTS))


def judge_fitted(signs: Signs, offset: float = 0.0) -> float:
    """The same for a reader whose heads were fitted to examples; the offset is what they say of the property."""
    return _sigmoid(_FITTED_BIAS + offset + _weigh(signs, _FITTED_WEIGHTS))


def _weigh(signs: Signs, weights: Signs) -> float:
    return sum(weight * sign for weight, sign in zip(weights, signs, strict=True))


def _sigmoid(total: float) -> float:
    return round(1 / (1 + math.exp(-total)), 2)


ALONE = {0.8: 0.6, 0.67: 0.25, 0.54: 0.2}
"""What the lexicon's own scores are worth where the reader does not read the same."""
