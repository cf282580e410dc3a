"""Models that several tests share: learning takes seconds."""

import pytest

from sameas.extraction.extractors.learning import LearnedModel
from sameas.extraction.extractors.learning.train import learn
from tests.unit.extraction.learning.shifted import SCHEMA, TRAIN


@pytest.fixture(scope="session")
def shifted_model() -> LearnedModel:
    return learn(TRAIN, SCHEMA)
