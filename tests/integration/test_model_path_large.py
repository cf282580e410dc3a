"""A large ontology: a prompt holds what its chunk is about, and what no chunk is about costs nothing."""

from pathlib import Path

import pytest

from sameas.extraction.runs.service import Extraction
from sameas.ontology.focus import FocusSettings
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.servers.model_oracle import Oracle, Seen, asked
from tests.servers.model_server import ModelServer
from tests.shared_data import shared

from .model_path import document, facts, model_path, sentence

pytestmark = pytest.mark.anyio

SCHEMA = "https://schema.org/"
CHUNKS = 200
# schema.org calls it `worksFor`; the oracle answers with the label that the prompt shows.
ORACLE = Oracle(lambda text: [(subject, "worksFor", target) for subject, _, target in facts(text)])
CHANGED = "Person77 Stone works for Zenith Robotics."


VOLCANOLOGIST = b"""
<https://schema.org/Volcanologist> a <http://www.w3.org/2000/01/rdf-schema#Class> ;
    <http://www.w3.org/2000/01/rdf-schema#label> "Volcanologist" ;
    <http://www.w3.org/2000/01/rdf-schema#subClassOf> <https://schema.org/Thing> .
"""


@pytest.fixture(scope="module")
def schema() -> OntologyIndex:
    return indexed()


@pytest.fixture(scope="module")
def larger() -> OntologyIndex:
    return indexed(VOLCANOLOGIST)


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    """A model that knows the document."""
    model_server.rescript(ORACLE)
    return model_server


def indexed(more: bytes = b"") -> OntologyIndex:
    turtle = shared("data", "ontologies", "schemaorg.ttl").read_bytes()
    return OntologyIndex(read_ontology(turtle + more, extension=".ttl"))


def said(done: Extraction) -> set[tuple[str, str, str]]:
    names = {entity.id: entity.name for entity in done.graph.entities}
    return {(names[one.subject], one.predicate.removeprefix(SCHEMA), names[one.object]) for one in done.graph.relations}


async def test_a_large_ontology_costs_what_the_chunks_are_about(
    server: ModelServer, schema: OntologyIndex, larger: OntologyIndex, tmp_path: Path
) -> None:
    whole = {(f"Person{number} Stone", "worksFor", f"Acme{number} Robotics") for number in range(CHUNKS)}
    edited = whole - {("Person77 Stone", "worksFor", "Acme77 Robotics")} | {
        ("Person77 Stone", "worksFor", "Zenith Robotics")
    }
    async with model_path(server, tmp_path, index=schema) as path:
        assert said(await path.extract(document(CHUNKS))) == whole
        assert len(server.calls) == 2 * CHUNKS
    async with model_path(server, tmp_path, index=larger) as path:
        again = await path.extract(document(CHUNKS))
        assert not again.replayed
        assert said(again) == whole
        assert len(server.calls) == 2 * CHUNKS
        changed = await path.extract(document(CHUNKS, changed={77: CHANGED}))
        assert said(changed) == edited
        new = server.calls[2 * CHUNKS :]
        assert len(new) == 2
        assert all(CHANGED in asked(call) for call in new)


async def test_a_class_that_one_chunk_is_about_costs_the_calls_of_that_chunk(
    server: ModelServer, schema: OntologyIndex, larger: OntologyIndex, tmp_path: Path
) -> None:
    text = f"{sentence(1)}\n\nKatia Krafft was a volcanologist.\n\n{sentence(2)}"
    async with model_path(server, tmp_path, index=schema) as path:
        await path.extract(text)
    before = len(server.calls)
    async with model_path(server, tmp_path, index=larger) as path:
        await path.extract(text)
    new = server.calls[before:]
    assert new
    assert all("volcanologist" in asked(call) for call in new)
    assert "Volcanologist" in Seen.of(new[0].system, asked(new[0])).classes


async def test_a_prompt_of_a_large_ontology_is_bounded(
    server: ModelServer, schema: OntologyIndex, tmp_path: Path
) -> None:
    async with model_path(server, tmp_path, index=schema) as path:
        await path.extract(sentence(1))
    shown = [Seen.of(call.system, asked(call)) for call in server.calls]
    entities, relations = shown
    assert {"Person", "Organization"} <= entities.classes.keys()
    assert len(entities.classes) < len(schema.classes) // 10
    for seen in (entities, relations):
        assert "worksFor" in seen.properties
        assert len(seen.properties) <= FocusSettings().properties
