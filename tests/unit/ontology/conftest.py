"""A real ontology that is too large for one prompt, read once."""

import pytest

from sameas.ontology import Focuser, Ontology, OntologyIndex, load_ontology
from tests.shared_data import shared


@pytest.fixture(scope="session")
def schema() -> Ontology:
    return load_ontology(shared("data", "ontologies", "schemaorg.ttl"))


@pytest.fixture(scope="session")
def focuser(schema: Ontology) -> Focuser:
    return Focuser(OntologyIndex(schema))
