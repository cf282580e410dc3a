"""Heads fitted on numpy: the slopes are right, the layers stay, equal lessons give equal heads."""

from pathlib import Path

import numpy as np
import pytest

from sameas.extraction.evaluation.reader_learning import learn_reader
from sameas.extraction.extractors.learning.examples import Example, Triple
from sameas.extraction.extractors.reader import fitting
from sameas.extraction.extractors.reader.fitted import FittedModel
from sameas.extraction.extractors.reader.fitting import BIASES, QUERIES, TRAINED, Schedule, fit_heads
from sameas.extraction.extractors.reader.labels import ask_for
from sameas.extraction.extractors.reader.lessons import make_lesson
from sameas.extraction.extractors.reader.reading import Reader
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.unit.extraction.reader.test_extractor import LISTED, ONTOLOGY, SEAT, STAFF

TINY = Path(__file__).parent / "tiny"
COLUMNS = {SEAT: 0, STAFF: 1, LISTED: 2}
TEXTS = (
    ("Acme Ltd of Ulm is here. Acme Ltd employs 20.", ((SEAT, "Ulm"), (STAFF, "20"))),
    ("Bolt sits in Bonn.", ((SEAT, "Bonn"),)),
    ("Cord is listed.", ((LISTED, "true"),)),
)
SUBJECTS = ("Acme Ltd", "Bolt", "Cord")
EXAMPLES = [
    Example(text, tuple(Triple(subject, iri, value) for iri, value in facts))
    for subject, (text, facts) in zip(SUBJECTS, TEXTS, strict=True)
]


@pytest.fixture(scope="module")
def reader():
    return Reader(TINY)


@pytest.fixture(scope="module")
def index():
    return OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))


def lesson_of(example, reader, index):
    asked = ask_for(index, tuple(COLUMNS), tuple(sorted(index.classes)))
    return make_lesson(example, 0, asked, COLUMNS, reader, index)


@pytest.fixture(scope="module")
def lessons(reader, index):
    return [lesson_of(example, reader, index)[0] for example in EXAMPLES]


def test_a_lesson_has_the_facts_of_its_example(lessons):
    assert [int(one.target.sum()) for one in lessons] == [2, 1, 1]
    assert lessons[2].target[:, -2, 2].sum() == 1, "true is the last object but one"


@pytest.mark.parametrize(
    ("triple", "reason"),
    [
        (Triple("Zed", SEAT, "Ulm"), "its subject does not stand in the text"),
        (Triple("Acme Ltd", SEAT, "Rome"), "its object does not stand in the text"),
        (Triple("Acme Ltd", LISTED, "perhaps"), "its object is neither true nor false"),
        (Triple("Acme Ltd", "https://x.example/#none", "Ulm"), "its property is not read"),
    ],
)
def test_a_fact_that_cannot_be_used_is_told_with_the_reason(triple, reason, reader, index):
    _, unused = lesson_of(Example("Acme Ltd of Ulm is here.", (triple,)), reader, index)
    assert [one.reason for one in unused] == [reason]


@pytest.mark.parametrize("name", [*TRAINED, QUERIES, BIASES])
def test_slopes_are_those_of_the_loss(name, lessons, reader):
    lesson, schedule = lessons[0], Schedule(dropped=0.0)
    generator = np.random.default_rng(5)
    heads = {key: value.astype(np.float64) for key, value in reader.network.heads.items() if key in TRAINED}
    heads[QUERIES] = generator.normal(0, 0.1, (3, heads["pair2.weight"].shape[0]))
    heads[BIASES] = generator.normal(0, 0.1, 3)
    exact = lesson._replace(
        hidden=lesson.hidden.astype(np.float64),
        vectors=lesson.vectors.astype(np.float64),
        queries=lesson.queries.astype(np.float64),
    )
    weights = np.ones(3)

    def loss():
        return fitting.loss_of(exact, heads, schedule, weights)

    slopes = {key: np.zeros_like(value) for key, value in heads.items()}
    fitting._add_slopes(exact, heads, slopes, schedule, weights, np.random.default_rng(0))
    flat, slope = heads[name].reshape(-1), slopes[name].reshape(-1)
    places = np.argsort(-np.abs(slope))[:3]
    for place in places:
        kept, step = flat[place], 1e-4
        flat[place] = kept + step
        above = loss()
        flat[place] = kept - step
        below = loss()
        flat[place] = kept
        assert (above - below) / (2 * step) == pytest.approx(slope[place], rel=0.05, abs=1e-4)


def test_equal_lessons_give_equal_heads_and_the_loss_falls(lessons, reader):
    schedule = Schedule(passes=20)
    one, other = (fit_heads(lessons, reader.network.heads, 3, schedule) for _ in range(2))
    assert all(np.array_equal(one.heads[name], other.heads[name]) for name in TRAINED)
    before = {**reader.network.heads, QUERIES: np.zeros_like(one.queries), BIASES: np.zeros_like(one.biases)}
    after = {**one.heads, QUERIES: one.queries, BIASES: one.biases}
    weights = np.ones(3, np.float32)
    assert sum(fitting.loss_of(each, after, schedule, weights) for each in lessons) < sum(
        fitting.loss_of(each, before, schedule, weights) for each in lessons
    )


def test_a_property_that_no_example_has_is_not_taught_as_false(lessons, reader):
    fitted = fit_heads(lessons[1:2], reader.network.heads, 3, Schedule(passes=20))
    assert fitted.biases[0] != 0
    assert fitted.biases[1] == fitted.biases[2] == 0


def test_what_was_fitted_is_saved_and_read_again(tmp_path, lessons, reader, index):
    fitted = fit_heads(lessons, reader.network.heads, 3, Schedule(passes=3))
    model = FittedModel.of(
        fitted, reader, weights="w", properties=list(COLUMNS), examples=3, complete=True, offsets=[(SEAT, 0.5)]
    )
    model.save(tmp_path / "o.ttl.learned")
    loaded = FittedModel.load(tmp_path / "o.ttl.learned")
    assert loaded.version == model.version
    changed = loaded.apply(reader, index).network.heads
    assert np.allclose(changed["subject.weight"], fitted.heads["subject.weight"], atol=1e-2)
    assert changed["stance.weight"] is reader.network.heads["stance.weight"]


def test_where_nothing_is_gained_the_reader_stays_as_it_came(reader, index):
    model, report = learn_reader(EXAMPLES, index, reader, weights="w")
    assert not report.gains
    assert model.is_base
    assert model.apply(reader, index) is reader
    assert {one.iri: one.examples for one in report.properties if one.examples} == {SEAT: 2, STAFF: 1, LISTED: 1}


def test_one_example_is_too_few_to_tell_and_the_reader_stays_as_it_came(reader, index):
    model, report = learn_reader(EXAMPLES[:1], index, reader, weights="w")
    assert report.examples == 1
    assert model.is_base
