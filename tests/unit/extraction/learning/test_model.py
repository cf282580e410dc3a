"""A learned model: supported by the text, deterministic, safe to store."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameas.extraction.extractors.learning import Example, ExamplesError, LearnedModel, Triple
from sameas.extraction.extractors.learning.candidates import find_candidates
from sameas.extraction.extractors.learning.container import ContainerError
from sameas.extraction.extractors.learning.lexicon import Known, Lexicon
from sameas.extraction.extractors.learning.scoring import Prediction, score
from sameas.extraction.extractors.learning.subject_features import subject_features
from sameas.extraction.extractors.learning.tokens import tokenize
from sameas.extraction.extractors.learning.train import learn
from tests.unit.extraction.learning.shifted import HELD_OUT, SCHEMA, TRAIN

_IDS = {item.id for item in SCHEMA.properties}


def _check(model: LearnedModel, text: str) -> None:
    for triple in model.extract(text):
        assert triple.property in _IDS
        assert 0 < triple.confidence <= 1
        for mention in (triple.subject, triple.object):
            assert text[mention.start : mention.end] == mention.text
            assert mention.form != mention.text


def test_every_fact_has_its_place_in_the_text(shifted_model: LearnedModel) -> None:
    for example in HELD_OUT:
        _check(shifted_model, example.text)


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=400))
def test_any_text_is_read_without_harm(shifted_model: LearnedModel, text: str) -> None:
    _check(shifted_model, text)


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "...", "((((", '"', "\ud800 Paris", "A" * 100_000, "é" * 50, "北京是中国的首都。"]
)
def test_odd_texts_are_read_without_harm(shifted_model: LearnedModel, text: str) -> None:
    _check(shifted_model, text)


def test_sentences_of_another_style_are_understood(shifted_model: LearnedModel) -> None:
    made = [
        Prediction(
            example,
            tuple((t.subject.value, t.property, t.object.value) for t in shifted_model.extract(example.text)),
        )
        for example in HELD_OUT
    ]
    result = score(made, SCHEMA)
    assert result.conformance == 1.0
    assert result.f1 >= 0.6
    assert result.micro_f1 >= 0.6


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "Fenwick College has 350 students, Eastgate University has 8,450 students.",
            {("Fenwick College", "students", "350"), ("Eastgate University", "students", "8450")},
        ),
        (
            "Fenwick College has 350 students and Eastgate University has 8,450.",
            {("Fenwick College", "students", "350"), ("Eastgate University", "students", "8450")},
        ),
        (
            "Keller Field is 210 metres above sea level; Sandholm Airport lies 76 metres above sea level.",
            {("Keller Field", "elevation", "210.0"), ("Sandholm Airport", "elevation", "76.0")},
        ),
    ],
)
def test_several_subjects_are_found_in_one_sentence(
    shifted_model: LearnedModel, text: str, facts: set[tuple[str, str, str]]
) -> None:
    assert {(t.subject.value, t.property, t.object.value) for t in shifted_model.extract(text)} == facts


def test_each_sentence_of_a_text_has_its_own_subject(shifted_model: LearnedModel) -> None:
    text = "Ruth Adeyemi is employed by Sunfield Dairies. Sunfield Dairies is based in Lower Hatton."
    found = {(t.subject.value, t.property, t.object.value) for t in shifted_model.extract(text)}
    assert found == {
        ("Ruth Adeyemi", "employer", "Sunfield Dairies"),
        ("Sunfield Dairies", "location", "Lower Hatton"),
    }


def test_a_number_is_no_subject_even_where_it_is_a_known_value() -> None:
    tokens = tokenize("The Sandholm runway is 503.5 metres long.")
    lexicon = Lexicon({"503 . 5": (Known("503.5", "runwayLength", 2),)}, {}, {}, {})
    subjects = subject_features(tokens, find_candidates(tokens, lexicon), lexicon)
    names = {tokens.slice(span.first, span.last) for span in subjects.spans}
    assert "Sandholm" in names
    assert not names & {"503", "503.5", "5", "503.5 metres"}


def test_values_take_the_form_that_the_examples_have(shifted_model: LearnedModel) -> None:
    (born,) = shifted_model.extract("Nadia Rahman was born on June 22nd, 1979.")
    assert (born.object.text, born.object.form) == ("June 22nd, 1979", "1979-06-22")


def test_the_model_survives_its_file(shifted_model: LearnedModel, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    shifted_model.save(path)
    loaded = LearnedModel.load(path)
    assert loaded.version == shifted_model.version
    assert path.stat().st_size < 1_000_000
    for example in HELD_OUT:
        assert loaded.extract(example.text) == shifted_model.extract(example.text)
    assert [item.name for item in tmp_path.iterdir()] == ["model.bin"]


@pytest.mark.parametrize("keep", [0, 5, 40, 1000, -1])
def test_a_torn_file_is_refused(shifted_model: LearnedModel, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "model.bin"
    shifted_model.save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ContainerError, match="model.bin .*learn it again"):
        LearnedModel.load(path)


def test_a_changed_byte_is_noticed(shifted_model: LearnedModel, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    shifted_model.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ContainerError, match="damaged"):
        LearnedModel.load(path)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"PK\x03\x04 something else entirely, long enough to hold a digest and more")
    with pytest.raises(ContainerError, match="not a file of this kind"):
        LearnedModel.load(path)


def test_equal_examples_give_an_equal_model_under_any_hash_seed() -> None:
    code = (
        "from sameas.extraction.extractors.learning.train import learn\n"
        "from tests.unit.extraction.learning.shifted import SCHEMA, TRAIN\n"
        "print(learn(TRAIN[:40], SCHEMA).version)"
    )
    root = Path(__file__).resolve().parents[4]
    versions = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(versions) == 1


def test_other_examples_give_another_version(shifted_model: LearnedModel) -> None:
    assert learn(TRAIN[:20], SCHEMA).version != shifted_model.version


def test_examples_of_other_properties_alone_are_refused() -> None:
    with pytest.raises(ExamplesError, match="nothing to learn"):
        learn([Example("A by B.", (Triple("A", "colour", "B"),))], SCHEMA)


def test_one_example_is_enough_to_learn_from() -> None:
    model = learn(TRAIN[:1], SCHEMA)
    _check(model, TRAIN[0].text)


def test_applying_a_model_needs_no_scipy() -> None:
    code = "import sys, sameas.extraction.extractors.learning; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("part", ["A of ", '"Aa" ', "1,2 ", "Aa and Bb, ", "("])
def test_a_text_made_to_be_slow_is_read_in_bounded_time(shifted_model: LearnedModel, part: str) -> None:
    began = time.process_time()
    shifted_model.extract(part * 20_000)
    assert time.process_time() - began < 5
