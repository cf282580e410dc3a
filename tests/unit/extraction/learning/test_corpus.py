"""What is scored: folders in Text2KGBench's layout, with answers beside or apart, and files with any ontology."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from sameas.extraction.extractors.learning import ExamplesError
from sameas.extraction.extractors.learning.corpus import read_corpus, read_part

EXAMPLE = Path(str(files("sameas.example").joinpath("company.ttl"))).parent
RELATIONS = "https://cenguix.github.io/Text2KGBench/ont_1_film/relations#"


def _write(path: Path, *rows: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ontology = {
        "id": "ont_1_film",
        "concepts": [{"qid": "Film", "label": "film"}, {"qid": "Person", "label": "person"}],
        "relations": [{"pid": "director", "label": "director", "domain": "Film", "range": "Person"}],
    }
    _write(tmp_path / "ontologies" / "1_film_ontology.json", ontology)
    _write(tmp_path / "train" / "ont_1_film_train.jsonl", _answered(0))
    _write(tmp_path / "test" / "ont_1_film_test.jsonl", *({"id": f"t{n}", "sent": _text(n)} for n in range(3)))
    _write(tmp_path / "ground_truth" / "ont_1_film_ground_truth.jsonl", *(_answered(n) for n in (2, 1, 0)))
    return tmp_path


def _text(number: int) -> str:
    return f"Film {number} was directed by Ann Lee."


def _answered(number: int) -> dict[str, object]:
    triples = [{"sub": f"Film_{number}", "rel": "director", "obj": "Ann_Lee"}]
    return {"id": f"t{number}", "sent": _text(number), "triples": triples}


def test_sentences_are_joined_with_their_ground_truth_by_id(folder: Path) -> None:
    (part,) = read_corpus(folder)
    found = part.held_out("test")
    assert [example.text for example in found] == [_text(1), _text(2)]
    assert [(t.subject, t.property, t.object) for t in found[1].triples] == [
        ("Film 2", RELATIONS + "director", "Ann Lee")
    ]


def test_a_sentence_without_an_answer_is_named(folder: Path) -> None:
    _write(folder / "ground_truth" / "ont_1_film_ground_truth.jsonl", _answered(0))
    (part,) = read_corpus(folder)
    with pytest.raises(ExamplesError, match=r"ont_1_film_test.jsonl, line 2: .* no answer for the id 't1'"):
        part.held_out("test")


def test_sentences_alone_without_ground_truth_are_refused(folder: Path) -> None:
    (folder / "ground_truth" / "ont_1_film_ground_truth.jsonl").unlink()
    (part,) = read_corpus(folder)
    with pytest.raises(ExamplesError, match="line 1: neither 'triples' nor 'sub_label'"):
        part.held_out("test")


def test_a_file_is_scored_with_any_ontology_and_learned_from_another(tmp_path: Path) -> None:
    lines = (EXAMPLE / "examples.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "train.jsonl").write_text("\n".join(lines[:20]))
    (tmp_path / "test.jsonl").write_text("\n".join(lines[18:24]))
    part = read_part(tmp_path / "test.jsonl", EXAMPLE / "company.ttl", train=tmp_path / "train.jsonl")
    assert (part.name, len(part.train), len(part.held_out("any"))) == ("test", 20, 4)


def test_a_file_alone_is_dealt_into_two(tmp_path: Path) -> None:
    part = read_part(EXAMPLE / "examples.jsonl", EXAMPLE / "company.ttl", seed=1)
    held = part.held_out("")
    assert 0 < len(held) <= len(part.train) / 4 + 1
    assert not {example.text for example in held} & {example.text for example in part.train}
    again = read_part(EXAMPLE / "examples.jsonl", EXAMPLE / "company.ttl", seed=1)
    assert [example.text for example in again.held_out("")] == [example.text for example in held]


def test_nothing_to_score_is_refused(tmp_path: Path) -> None:
    line = (EXAMPLE / "examples.jsonl").read_text("utf-8").splitlines()[0]
    (tmp_path / "one.jsonl").write_text(line)
    with pytest.raises(ExamplesError, match="one.jsonl has no example to score"):
        read_part(tmp_path / "one.jsonl", EXAMPLE / "company.ttl", train=tmp_path / "one.jsonl")
