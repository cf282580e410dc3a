"""Examples are read in their forms, and a bad line is refused with its number."""

import json
from pathlib import Path

import pytest

from sameas.extraction.extractors.learning import (
    Example,
    ExamplesError,
    Property,
    Schema,
    Triple,
    parse_examples,
    read_examples,
)
from sameas.extraction.extractors.learning.examples import read_answers

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


@pytest.mark.parametrize("names", [("subject", "predicate", "object"), ("subject", "property", "object")])
def test_triples_may_name_their_parts(names: tuple[str, ...]) -> None:
    line = json.dumps({"text": "A by B.", "triples": [dict(zip(names, ("A", "director", "B"), strict=True))]})
    assert parse_examples([line], SCHEMA) == [Example("A by B.", (Triple("A", "P57", "B"),))]


def test_a_number_is_an_object_as_it_is_written() -> None:
    line = '{"text": "A has 2.50 of 1200.", "triples": [["A", "P57", 2.50], ["A", "P57", 1200]]}'
    assert [triple.object for triple in parse_examples([line], SCHEMA)[0].triples] == ["2.50", "1200"]


@pytest.mark.parametrize("triple", ['[1, "P57", "B"]', '["A", 57, "B"]', '["A", "P57", true]', '["A", "P57", null]'])
def test_only_the_object_may_be_a_number(triple: str) -> None:
    with pytest.raises(ExamplesError, match="a number as the object"):
        parse_examples([f'{{"text": "A", "triples": [{triple}]}}'], SCHEMA)


def test_what_json_calls_no_number_is_refused() -> None:
    with pytest.raises(ExamplesError, match="line 1: NaN"):
        parse_examples(['{"text": "A", "triples": [["A", "P57", NaN]]}'], SCHEMA)


def test_a_mark_of_the_byte_order_is_no_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"text": "A by B.", "triples": []}\n')
    assert read_examples(path, SCHEMA) == [Example("A by B.", ())]
    assert parse_examples(['\ufeff{"text": "A by B.", "triples": []}'], SCHEMA) == [Example("A by B.", ())]


def test_a_property_is_found_by_the_last_part_of_its_id_if_one_alone_has_it() -> None:
    schema = Schema(
        (Property("http://e/a#madeBy", "maker"), Property("http://e/a#in", "x"), Property("http://e/b/in", "y"))
    )
    line = '{"text": "A by B.", "triples": [["A", "madeBy", "B"]]}'
    assert parse_examples([line], schema)[0].triples == (Triple("A", "http://e/a#madeBy", "B"),)
    with pytest.raises(ExamplesError, match="'in' is not in the ontology"):
        parse_examples(['{"text": "A", "triples": [["A", "in", "B"]]}'], schema)


def test_underscores_of_a_corpus_are_the_blanks_of_its_texts() -> None:
    line = '{"text": "The Big Sky by snake_case.", "triples": [["The_Big_Sky", "P57", "snake_case"]]}'
    assert parse_examples([line], SCHEMA)[0].triples == (Triple("The Big Sky", "P57", "snake_case"),)


def test_sentences_alone_get_their_answers_by_id(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "s1", "triples": [{"sub": "A", "rel": "director", "obj": "B"}]}\n')
    answers = read_answers(path)
    assert parse_examples(['{"id": "s1", "sent": "A by B."}'], SCHEMA, answers=answers) == [
        Example("A by B.", (Triple("A", "P57", "B"),))
    ]
    with pytest.raises(ExamplesError, match="line 1: the ground truth has no answer for the id 's2'"):
        parse_examples(['{"id": "s2", "sent": "A by B."}'], SCHEMA, answers=answers)
    path.write_text('{"id": "s1"}\n')
    with pytest.raises(ExamplesError, match="line 1: an answer has an 'id' and 'triples'"):
        read_answers(path)
