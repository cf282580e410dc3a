"""A small collection with two documents, and a desk to ask at."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import sameas
from sameas.collections.collection import Collection, text_digest
from sameas.collections.model import Source
from sameas.collections.registry import Collections, local_caller, open_tables
from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.ontology.load import load_ontology
from sameas.questions.desk import QuestionDesk
from sameas.questions.process import QueryLimits
from sameas.questions.runner import QueryRunner

NS = "https://sameas.dev/example/company#"
XSD = "http://www.w3.org/2001/XMLSchema#"
BASE = "https://example.org/kg/"
EXAMPLE = Path(sameas.__file__).parent / "example"


class Writer:
    """Puts documents into a collection; a fact is subject, property and object, `Name/Class` each."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.classes = {iri.rpartition("#")[2]: iri for iri in (one.iri for one in collection.ontology.classes)}

    def put(self, name: str, *facts: tuple[str, str, str]) -> None:
        entities: dict[str, Entity] = {}
        relations: list[Relation] = []
        lines: list[str] = []
        at = 0
        for subject, predicate, object_ in facts:
            line = f"{_name(subject)} {predicate} {_name(object_)}."
            evidence = (Evidence(at, at + len(line), line),)
            at += len(line) + 1
            lines.append(line)
            for end in (subject, object_):
                if "/" in end:
                    label, _, kind = end.partition("/")
                    entities[end] = Entity(end, label, (NS + kind,), (), (Evidence(at, at + 1, label),))
            if "/" in object_:
                relations.append(Relation(subject, NS + predicate, object_, evidence=evidence))
            else:
                value = Value(object_, XSD + "integer")
                relations.append(Relation(subject, NS + predicate, value=value, evidence=evidence))
        text = "\n".join(lines)
        graph = KnowledgeGraph.of(entities=entities.values(), relations=relations)
        source = Source(name=name, path=f"/docs/{name}", title=name.title(), media_type="text/plain", size=len(text))
        self.collection.put_document(source, digest=text_digest(text), said=graph)


def _name(end: str) -> str:
    return end.partition("/")[0]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    collections = Collections(open_tables(f"sqlite:///{tmp_path / 'c.db'}"))
    ontology = load_ontology(EXAMPLE / "company.ttl")
    made = Writer(collections.create("press", ontology=ontology, caller=local_caller(), base=BASE))
    made.put(
        "one.txt",
        ("Nordlicht Speicher/Company", "acquired", "Helvetia Zellen/Company"),
        ("Helvetia Zellen/Company", "headquarters", "Zug/City"),
        ("Nordlicht Speicher/Company", "employees", "640"),
    )
    made.put(
        "two.txt",
        ("Nordlicht Speicher/Company", "acquired", "Helvetia Zellen/Company"),
        ("Weserstahl AG/Company", "headquarters", "Zug/City"),
    )
    yield made
    collections.close()


@pytest.fixture(scope="session")
def runner() -> Iterator[QueryRunner]:
    made = QueryRunner()
    yield made
    made.close()


@pytest.fixture
def desk(writer: Writer, runner: QueryRunner, tmp_path: Path) -> QuestionDesk:
    limits = QueryLimits(seconds=5, rows=1000)
    return QuestionDesk(writer.collection, folder=tmp_path / "index", runner=runner, limits=limits)
