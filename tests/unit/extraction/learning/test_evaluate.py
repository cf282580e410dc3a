"""The evaluation command prints one line an ontology and their mean."""

import json
from pathlib import Path

import pytest

from sameas.extraction.evaluation.learned import main
from sameas.extraction.extractors.learning import Example
from sameas.extraction.extractors.learning.corpus import read_corpus, sample
from sameas.extraction.extractors.learning.prior import shipped_prior
from tests.unit.extraction.learning.shifted import HELD_OUT, SCHEMA, TRAIN


def _lines(examples: list[Example]) -> str:
    rows = [
        {
            "sent": e.text,
            "triples": [{"sub": t.subject, "rel": t.property, "obj": t.object} for t in e.triples],
        }
        for e in examples
    ]
    return "\n".join(json.dumps(row) for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    relations = [
        {"pid": item.id, "label": item.label, "domain": item.domain or "", "range": item.range or ""}
        for item in SCHEMA.properties
    ]
    ontology = {
        "id": "ont_1_mixed",
        "concepts": [{"qid": key, "label": label} for key, label in SCHEMA.class_labels.items()],
    }
    for name in ("ontologies", "train", "validation"):
        (tmp_path / name).mkdir()
    (tmp_path / "ontologies" / "1_mixed_ontology.json").write_text(json.dumps({**ontology, "relations": relations}))
    (tmp_path / "train" / "ont_1_mixed_train.jsonl").write_text(_lines(TRAIN))
    (tmp_path / "validation" / "ont_1_mixed_validation.jsonl").write_text(_lines(HELD_OUT + TRAIN[:3]))
    return tmp_path


def test_the_table_has_a_line_an_ontology_and_the_mean(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--limit", "30", "--prior", "shipped"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ontology", "1_mixed", "mean"]
    assert lines[1].split()[1:3] == ["30", str(len(HELD_OUT))]


def test_texts_that_are_also_in_train_are_left_out(folder: Path) -> None:
    (part,) = read_corpus(folder)
    assert len(part.held_out("validation")) == len(HELD_OUT)


def test_a_missing_split_is_said_plainly(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder), "--limit", "10", "--prior", "shipped", "--split", "test"]) == 1
    assert "has no split 'test'" in capsys.readouterr().err


def test_a_folder_of_another_layout_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "Text2KGBench's layout" in capsys.readouterr().err


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    assert sample(TRAIN, 10, seed=3) == sample(TRAIN, 10, seed=3)
    assert sample(TRAIN, 10, seed=3) != sample(TRAIN, 10, seed=4)
    assert sample(TRAIN, None) == TRAIN


def test_the_shipped_prior_is_small_and_holds_no_text() -> None:
    content = shipped_prior().content
    assert not any(isinstance(getattr(content, name), str) for name in content.__struct_fields__)
