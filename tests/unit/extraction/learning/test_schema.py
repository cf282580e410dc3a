"""A schema has at least one property, each once, found by id or label."""

from pathlib import Path

import pytest

from sameas.extraction.extractors.learning import Property, Schema, SchemaError, read_text2kgbench_schema
from tests.shared_data import shared


def test_a_property_is_found_by_id_or_label() -> None:
    schema = Schema((Property("P57", "Film director"),))
    assert schema.find("P57") == schema.find("film_director") == schema.properties[0]
    assert schema.find("producer") is None


def test_a_schema_without_properties_is_refused() -> None:
    with pytest.raises(SchemaError, match="no property"):
        Schema(())


def test_a_property_named_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="'P1' twice"):
        Schema((Property("P1", "a"), Property("P1", "b")))


def test_every_benchmark_ontology_is_read() -> None:
    paths = sorted(shared("data", "text2kgbench", "ontologies").glob("*.json"))
    assert len([read_text2kgbench_schema(path) for path in paths]) == 10


def test_another_kind_of_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    path.write_text('{"relations": []}')
    with pytest.raises(SchemaError, match="o.json is not an ontology"):
        read_text2kgbench_schema(path)
