"""The scores follow the benchmark's definitions."""

import pytest

from sameas.extraction.extractors.learning import Property, Schema
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.learning.scoring import Prediction, mean, score

SCHEMA = Schema((Property("P1", "author"), Property("P2", "genre")), {"Q1": "novel"})
GOLD = Example("The Red Boat is a sea story by Ann Low.", (Triple("The Red Boat", "P1", "Ann Low"),))


def test_spaces_underscores_and_case_do_not_count() -> None:
    result = score([Prediction(GOLD, (("the_red boat", "P1", "ANN  LOW"),))], SCHEMA)
    assert (result.f1, result.micro_f1) == (1.0, 1.0)


def test_other_properties_hurt_only_the_unfiltered_score() -> None:
    result = score([Prediction(GOLD, (("The Red Boat", "P1", "Ann Low"), ("The Red Boat", "P2", "sea story")))], SCHEMA)
    assert result.f1 == 1.0
    assert result.micro_precision == 0.5


def test_a_text_without_prediction_counts_as_zero() -> None:
    result = score([Prediction(GOLD, ()), Prediction(GOLD, (("The Red Boat", "P1", "Ann Low"),))], SCHEMA)
    assert result.f1 == 0.5
    assert result.conformance == 1.0


def test_what_the_text_does_not_say_is_a_hallucination() -> None:
    result = score([Prediction(GOLD, (("The Red Boat", "P9", "Tom Hill"), ("sea stories", "P1", "novels")))], SCHEMA)
    assert result.conformance == 0.5
    assert result.object_hallucination == 0.5
    assert result.subject_hallucination == 0.0


def test_the_mean_is_over_ontologies_not_texts() -> None:
    good = score([Prediction(GOLD, (("The Red Boat", "P1", "Ann Low"),))], SCHEMA)
    bad = score([Prediction(GOLD, ())] * 3, SCHEMA)
    assert mean([good, bad]).f1 == pytest.approx(0.5)
    assert mean([good, bad]).texts == 4
