"""Ontologies that come along, as published."""

import pytest

from sameas.ontology.load import load_ontology
from sameas.ontology.published import find_published, published_names
from tests.shared_data import shared

ORIGINALS = {"foaf": "foaf.rdf", "prov": "prov-o.ttl", "schema": "schemaorg.ttl", "skos": "skos.rdf"}


@pytest.mark.parametrize("name", published_names())
def test_every_published_ontology_loads_and_its_licence_is_named(name):
    path = find_published(name)
    assert path is not None
    assert load_ontology(path).classes
    assert f"| `{name}` |" in (path.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", published_names())
def test_published_ontologies_are_unchanged(name):
    path = find_published(name)
    assert path is not None
    assert path.read_bytes() == (shared("data/ontologies") / ORIGINALS[name]).read_bytes()


def test_other_names_are_not_known():
    assert find_published("company") is None
    assert find_published("../foaf") is None
