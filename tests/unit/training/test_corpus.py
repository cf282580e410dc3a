"""The training texts of this repository keep their conventions, and their README counts them."""

import json
import re
from pathlib import Path

import pytest

from training.check_corpus import LANGUAGES, check, counts, read_domains

CORPUS = Path(__file__).parents[3] / "training" / "corpus"
TURTLE = """
@prefix : <https://bench.example/x#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:Agent a owl:Class . :Firm a owl:Class ; rdfs:subClassOf :Agent . :Place a owl:Class .
:Agent owl:disjointWith :Place .
:hasPart a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Agent .
:owns a owl:ObjectProperty ; rdfs:subPropertyOf :hasPart ; rdfs:domain :Agent ; rdfs:range :Firm ; owl:inverseOf :ownedBy .
:ownedBy a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Agent .
:seat a owl:ObjectProperty ; rdfs:domain :Firm ; rdfs:range :Place .
:partner a owl:ObjectProperty , owl:SymmetricProperty ; rdfs:domain :Firm ; rdfs:range :Firm .
:founded a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:date .
:staff a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:integer .
:listed a owl:DatatypeProperty ; rdfs:domain :Firm ; rdfs:range xsd:boolean .
"""


@pytest.fixture(scope="module")
def domains():
    return read_domains(CORPUS)


def test_every_text_and_fact_keeps_the_conventions(domains):
    assert check(domains) == []


def test_the_readme_counts_the_texts(domains):
    told = counts(domains)
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|", (CORPUS / "README.md").read_text(), re.MULTILINE
    )
    table = {
        name.lower(): dict(zip(("domains", "texts", "facts", "empty"), map(int, row), strict=True))
        for name, *row in rows
    }
    total = table.pop("all")
    assert table == {language: dict(told[language]) for language in ("english", *LANGUAGES)}
    assert total == {key: sum(row[key] for row in table.values()) for key in total}
    assert all(domain.name in (CORPUS / "README.md").read_text() for domain in domains)


@pytest.mark.parametrize(
    ("text", "triples", "kind", "fault"),
    [
        ("Acme owns Bolt.", [["Acme", "owns", "Bolts"]], ["plain"], "object 'Bolts'"),
        ("Acme owns Bolt.", [["Acne", "owns", "Bolt"]], ["plain"], "subject 'Acne'"),
        ("Acme owns Bolt.", [["Acme", "has", "Bolt"]], ["plain"], "unknown property has"),
        ("Acme owns Bolt.", [["Acme", "owns", "Bolt"], ["Bolt", "ownedBy", "Acme"]], ["plain"], "both directions"),
        ("Acme and Bolt.", [["Acme", "partner", "Bolt"], ["Bolt", "partner", "Acme"]], ["plain"], "both directions"),
        ("Acme owns Bolt.", [["Acme", "owns", "Bolt"], ["Acme", "hasPart", "Bolt"]], ["plain"], "beside the more specific"),
        ("Acme owns Bolt, in Bolt.", [["Acme", "owns", "Bolt"], ["Acme", "seat", "Bolt"]], ["plain"], "'Bolt' is"),
        ("Acme has 12 people.", [["Acme", "staff", "12,0"]], ["number"], "no integer"),
        ("Acme has 12 people.", [["Acme", "staff", "13"]], ["number"], "object '13'"),
        ("Acme, founded in 1999.", [["Acme", "founded", "99"]], ["date"], "no date"),
        ("Acme is listed.", [["Acme", "listed", "yes"]], ["plain"], "no boolean"),
        ("Acme owns Acme.", [["Acme", "owns", "Acme"]], ["plain"], "related to itself"),
        ("Acme owns Bolt.", [["Acme", "owns", "Bolt"]] * 2, ["plain"], "stands twice"),
        ("Acme owns Bolt.", [["Acme", "owns", "Bolt"]], ["nofact"], "nofact"),
        ("Acme owns nobody.", [], ["negation"], "nofact"),
        ("Acme owns nobody.", [], ["denial", "nofact"], "tags"),
        ("Ächme.", [], ["nofact"], "unicode"),
        (" Acme.", [], ["nofact"], "blank ends"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(tmp_path, text, triples, kind, fault):
    found = check(read_domains(written(tmp_path, [{"text": text, "triples": triples, "kind": kind}])))
    assert any(fault in one for one in found), found


def test_what_is_right_and_what_stands_twice(tmp_path):
    right = {
        "text": "Acme, of Rome, has 1,200 people.",
        "triples": [["Acme", "seat", "Rome"], ["Acme", "staff", "1200"]],
        "kind": ["number"],
    }
    assert check(read_domains(written(tmp_path / "a", [right]))) == []
    assert "the same text" in check(read_domains(written(tmp_path / "b", [right, right])))[0]


def written(folder, rows):
    domain = folder / "x"
    domain.mkdir(parents=True)
    (domain / "ontology.ttl").write_text(TURTLE, encoding="utf-8")
    (domain / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder
