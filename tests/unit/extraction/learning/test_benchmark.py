"""The figures that extraction with a learned model must keep on the benchmark's validation part, and that nothing is said
which the text does not say.
"""

import pytest

from sameas.extraction.evaluation.learned import Answers, Row, measure
from sameas.extraction.extractors.learning.corpus import Part, read_corpus, sample
from sameas.extraction.extractors.learning.dates import find_dates
from sameas.extraction.extractors.learning.demonyms import DEMONYMS
from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.prior import shipped_prior
from sameas.extraction.extractors.learning.tokens import fold, tokenize
from sameas.extraction.extractors.learning.train import learn
from tests.shared_data import shared


@pytest.fixture(scope="module")
def parts() -> dict[str, Part]:
    return {part.name: part for part in read_corpus(shared("data", "text2kgbench"))}


@pytest.fixture(scope="module")
def row(parts: dict[str, Part]) -> Row:
    return measure(parts["10_culture"], shipped_prior(), limit=None, split="validation", seed=0)


def test_all_examples_of_an_ontology_give_its_figures(row: Row) -> None:
    assert row.scores.f1 >= 0.65
    assert row.scores.micro_f1 >= 0.68
    assert row.scores.conformance == 1.0
    assert row.size < 1_000_000


def test_the_pipeline_keeps_what_the_model_finds(row: Row) -> None:
    assert row.scores.f1 >= row.model.f1 - 0.02
    assert row.scores.micro_f1 >= row.model.micro_f1 - 0.02


def test_no_sentence_is_both_learned_from_and_scored(parts: dict[str, Part]) -> None:
    culture = parts["10_culture"]
    learned = {example.text for example in culture.train}
    assert not learned & {example.text for example in culture.held_out("validation")}


def test_every_name_and_value_is_in_the_text_or_a_normal_form_that_the_examples_teach(parts: dict[str, Part]) -> None:
    part = parts["5_military"]
    taught = sample(part.train, 100)
    model = learn(taught, part.schema, prior=shipped_prior())
    made = Answers(model, part).of(part.held_out("validation")[:150])
    said = [
        (end, prediction.example.text)
        for prediction in made
        for subject, _, value in prediction.triples
        for end in (subject, value)
    ]
    assert len(said) > 100
    assert [(end, text) for end, text in said if not _is_supported(end, text, taught)] == []


def _is_supported(end: str, text: str, taught: list[Example]) -> bool:
    if fold(end) in fold(text):
        return True
    words = tokenize(text)
    if any(fold(DEMONYMS.get(word, "")) == fold(end) for word in words.lower):
        return True
    dates = {mention.date.year for mention in find_dates(text)}
    if any(mention.date.year in dates for mention in find_dates(end)):
        return True
    # First and last name of somebody whom the text names in full.
    if set(tokenize(end).lower) <= set(words.lower) and len(end.split()) == 2:  # noqa: PLR2004
        return True
    # What else is written otherwise, examples must have written so, at least one text sharing a stem with the value
    # or three texts without exception sharing a word with this one.
    having = [one for one in taught if any(fold(triple.object) == fold(end) for triple in one.triples)]
    akin = any(word[:4] in fold(end) for word in words.lower if len(word) >= 4)  # noqa: PLR2004
    return bool(having) and (akin or any(_says(word, having, taught) for word in words.lower))


def _says(word: str, having: list[Example], taught: list[Example]) -> bool:
    with_word = [one for one in taught if word in tokenize(one.text).lower]
    return len(with_word) >= 3 and all(one in having for one in with_word)  # noqa: PLR2004
