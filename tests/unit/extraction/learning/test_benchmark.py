"""The figures that the learned extractor must keep on the benchmark's validation part, on its smallest ontology."""

import pytest

from sameas.extraction.learning.corpus import Part, read_corpus
from sameas.extraction.learning.evaluate import measure
from sameas.extraction.learning.prior import shipped_prior
from tests.shared_data import shared


@pytest.fixture(scope="module")
def culture() -> Part:
    parts = {part.name: part for part in read_corpus(shared("data", "text2kgbench"))}
    return parts["10_culture"]


def test_all_examples_of_an_ontology_give_its_figures(culture: Part) -> None:
    row = measure(culture, shipped_prior(), limit=None, split="validation", seed=0)
    assert row.scores.f1 >= 0.62
    assert row.scores.micro_f1 >= 0.65
    assert row.scores.conformance == 1.0
    assert row.size < 1_000_000


def test_no_sentence_is_both_learned_from_and_scored(culture: Part) -> None:
    learned = {example.text for example in culture.train}
    assert not learned & {example.text for example in culture.held_out("validation")}
