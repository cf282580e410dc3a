"""Examples are read in their three forms, and a bad line is refused with its number."""

import json
from pathlib import Path

import pytest

from sameas.extraction.learning import (
    Example,
    ExamplesError,
    Property,
    Schema,
    Triple,
    parse_examples,
    read_examples,
)

SCHEMA = Schema((Property("P57", "director"), Property("P136", "film genre")))


def test_the_simple_form_is_read_with_ids_or_labels() -> None:
    line = json.dumps({"text": "A by B.", "triples": [["A", "P57", "B"], ["A", "film_genre", "C"]]})
    assert parse_examples([line], SCHEMA) == [Example("A by B.", (Triple("A", "P57", "B"), Triple("A", "P136", "C")))]


def test_lines_of_one_sentence_become_one_example() -> None:
    line = {"id": "1", "sent": "A by B.", "sub_label": "A", "rel_label": "director", "obj_label": "B"}
    lines = [json.dumps(line), "", json.dumps({**line, "obj_label": "C"})]
    assert parse_examples(lines, SCHEMA) == [Example("A by B.", (Triple("A", "P57", "B"), Triple("A", "P57", "C")))]


def test_the_form_with_several_triples_is_read() -> None:
    line = json.dumps({"sent": "A by B.", "triples": [{"sub": "A", "rel": "director", "obj": "B"}]})
    assert parse_examples([line], SCHEMA) == [Example("A by B.", (Triple("A", "P57", "B"),))]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"text": "A \\ud800", "triples": []}', "half of a surrogate pair"),
        ('{"text": "A"}', "neither 'triples' nor 'sub_label'"),
        ('{"text": "", "triples": []}', "'text' must be a text that is not empty"),
        ('{"text": "A", "triples": [["A", "P57"]]}', "must be \\[subject, property, object\\]"),
        ('{"text": "A", "triples": [["A", "P99", "B"]]}', "'P99' is not in the ontology"),
    ],
)
def test_a_bad_line_is_named_by_its_number(line: str, complaint: str) -> None:
    good = '{"text": "A by B.", "triples": []}'
    with pytest.raises(ExamplesError, match=f"line 2: .*{complaint}"):
        parse_examples([good, line], SCHEMA)


def test_an_unknown_property_can_be_kept_under_its_name() -> None:
    line = '{"text": "A", "triples": [["A", "colour", "B"]]}'
    assert parse_examples([line], SCHEMA, unknown="keep") == [Example("A", (Triple("A", "colour", "B"),))]


def test_a_file_that_is_not_text_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ExamplesError, match="examples.jsonl is not UTF-8"):
        read_examples(path, SCHEMA)
