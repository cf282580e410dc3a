"""The reader with its real weights, through the whole pipeline: what it states, and what it must never state."""

import asyncio
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from sameas.extraction.extractors.confidence import least_confidence, sure_part
from sameas.extraction.extractors.deferred import deferred_reader
from sameas.extraction.extractors.embedded import find_weights
from sameas.extraction.pipeline.pipeline import Pipeline
from sameas.ontology.index import OntologyIndex
from sameas.ontology.load import read_ontology
from tests.unit.server.house import running

PREFIX = "https://x.example/#"
ONTOLOGY = """
@prefix : <https://x.example/#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Company a owl:Class ; rdfs:label "company" . :Person a owl:Class ; rdfs:label "person" . :Place a owl:Class ; rdfs:label "place" .
:Company owl:disjointWith :Person , :Place . :Person owl:disjointWith :Place .
:headquarteredIn a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Place ; rdfs:label "headquartered in" .
:acquired a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Company ; rdfs:label "acquired" .
:chiefExecutive a owl:ObjectProperty ; rdfs:domain :Company ; rdfs:range :Person ; rdfs:label "chief executive" .
:foundedIn a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:gYear ; rdfs:label "founded in" .
:employees a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:integer ; rdfs:label "number of employees" .
:isListed a owl:DatatypeProperty ; rdfs:domain :Company ; rdfs:range xsd:boolean ; rdfs:label "is listed on a stock exchange" .
"""


@lru_cache
def pipeline() -> Pipeline:
    weights = find_weights()
    assert weights is not None
    assert isinstance(weights, Path)
    index = OntologyIndex(read_ontology(ONTOLOGY.encode(), extension=".ttl"))
    return Pipeline(index=index, extractor=deferred_reader(index.ontology, weights=weights))


def stated(text: str, *, least: float | None = None) -> set[tuple[str, str, str]]:
    found = asyncio.run(pipeline().run(text, key="k", formats=())).found
    names = {entity.id: entity.name for entity in found.entities}
    return {
        (
            names[one.subject],
            one.predicate.removeprefix(PREFIX),
            one.value.value if one.value else names[one.object],
        )
        for one in sure_part(found, least_confidence("reader", least)).relations
    }


def test_it_states_what_a_text_says_of_names_that_nobody_listed():
    text = "Brennerei Kolb, headquartered in Ulm, was founded in 1921. Its chief executive is Ada Lind. It employs 220 people."
    assert stated(text) == {
        ("Brennerei Kolb", "headquarteredIn", "Ulm"),
        ("Brennerei Kolb", "foundedIn", "1921"),
        ("Brennerei Kolb", "chiefExecutive", "Ada Lind"),
        ("Brennerei Kolb", "employees", "220"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "Brennerei Kolb is not headquartered in Leeds.",
        "Is Brennerei Kolb headquartered in Leeds?",
        "Brennerei Kolb may be headquartered in Leeds.",
        "If Brennerei Kolb were headquartered in Leeds, nobody would notice.",
        "Brennerei Kolb is no longer headquartered in Leeds.",
        "Brennerei Kolb was headquartered in Leeds until 2019.",
        "Brennerei Kolb plans to acquire Bolt Motors.",
        "Brennerei Kolb has denied that it acquired Bolt Motors.",
        "In the novel, Brennerei Kolb acquired Bolt Motors.",
        "Ada Lind was fired as chief executive of Brennerei Kolb.",
        "The former chief executive of Brennerei Kolb is Ada Lind.",
        "Brennerei Kolb employs 20 people fewer than Bolt Motors.",
        "Ada Lind was named CEO of the Year.",
    ],
)
@pytest.mark.parametrize("least", [None, 0.0])
def test_what_a_sentence_denies_doubts_asks_or_ends_is_not_stated_at_any_confidence(text, least):
    assert stated(text, least=least) == set()


def test_an_aside_is_not_the_one_who_acts():
    assert ("Texas", "acquired", "Bolt Motors") not in stated(
        "Acme Ltd, based in Austin, Texas, acquired Bolt Motors.", least=0.0
    )
    assert not any(
        subject == "Instagram" and name == "headquarteredIn"
        for subject, name, _ in stated("The company that acquired Instagram is headquartered in Menlo Park.")
    )


def test_a_denied_yes_is_a_no():
    assert ("Brennerei Kolb", "isListed", "true") not in stated("Brennerei Kolb is not listed on a stock exchange.")


EXAMPLE = Path(__file__).resolve().parents[2] / "src" / "sameas" / "example" / "company.ttl"
STORY = "Falke Uhren GmbH was founded by Berta Kunz. It is headquartered in Passau and works with Otto Brandt of Weser Glas."


def test_the_command_leaves_out_what_is_less_sure_and_the_key_stays(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SAMEAS_")}

    def extract(*options: str, **settings: str) -> dict[str, Any]:
        command = [
            sys.executable,
            "-m",
            "sameas.cli",
            "extract",
            STORY,
            "-o",
            str(EXAMPLE),
            "--json",
            "--quiet",
            *options,
        ]
        done = subprocess.run(command, cwd=tmp_path, env={**environment, **settings}, capture_output=True, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    usual, whole, none = extract(), extract("--min-confidence", "0"), extract(SAMEAS_MIN_CONFIDENCE="1")
    assert usual["idempotencyKey"] == whole["idempotencyKey"] == none["idempotencyKey"]
    assert (usual["cacheHit"], whole["cacheHit"], none["cacheHit"]) == (False, True, True)
    assert all(one["confidence"] >= 0.5 for one in usual["relations"])
    assert len(usual["relations"]) >= 2
    assert len(whole["relations"]) >= len(usual["relations"])
    assert none["relations"] == []
    assert "left out" in none["notes"][-1]


def test_the_service_reads_with_it_and_leaves_out_what_is_less_sure(tmp_path):
    request = {"text": STORY, "ontologyId": "company"}
    with running(tmp_path, extractor="", min_confidence=0.0) as service:
        whole = service.client.post("/api/v1/extract", json=request).json()
        assert service.client.get(f"/api/v1/runs/{whole['idempotencyKey']}").json()["extractor"]["name"] == "reader"
    with running(tmp_path, extractor="", min_confidence=1.0) as service:
        none = service.client.post("/api/v1/extract", json=request).json()
    assert none["idempotencyKey"] == whole["idempotencyKey"]
    assert none["cacheHit"]
    assert whole["relations"]
    assert none["relations"] == []
