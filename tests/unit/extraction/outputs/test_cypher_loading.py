"""Cypher is loaded into an embedded database: two documents in any order give the same graph, and lose nothing.

ladybug runs openCypher over declared tables. It has neither constraints nor several labels of a node, so those two
kinds of statement are left to Neo4j (SAMEAS_TEST_NEO4J_URL).
"""

import itertools
import os
import re
from typing import Any

import ladybug
import pytest

from sameas.extraction.graph.model import Entity, Evidence, KnowledgeGraph, Relation, Value
from sameas.extraction.outputs import OutputContext, render
from sameas.extraction.text.document import DocumentSource

XSD = "http://www.w3.org/2001/XMLSchema#"
TABLES = (
    "CREATE NODE TABLE Entity(iri STRING PRIMARY KEY, name STRING)",
    "CREATE NODE TABLE Value(iri STRING PRIMARY KEY, value STRING, datatype STRING, unit STRING)",
    "CREATE NODE TABLE Name(text STRING PRIMARY KEY)",
    "CREATE NODE TABLE Document(iri STRING PRIMARY KEY, sha256 STRING, title STRING, readAt STRING)",
    (
        "CREATE NODE TABLE Source(iri STRING PRIMARY KEY, name STRING, location STRING, mediaType STRING, "
        "modifiedAt STRING, size INT64)"
    ),
    "CREATE NODE TABLE Statement(iri STRING PRIMARY KEY, predicate STRING)",
    (
        "CREATE NODE TABLE Evidence(iri STRING PRIMARY KEY, text STRING, start INT64, `end` INT64, page INT64, "
        "paragraph INT64)"
    ),
    "CREATE REL TABLE DERIVED_FROM(FROM Document TO Source)",
    "CREATE REL TABLE NAMED(FROM Entity TO Name)",
    "CREATE REL TABLE SAME_AS(FROM Entity TO Entity)",
    "CREATE REL TABLE DESCRIBED_IN(FROM Entity TO Document, types STRING[], confidence DOUBLE)",
    "CREATE REL TABLE MENTIONED(FROM Entity TO Evidence)",
    "CREATE REL TABLE `IN`(FROM Evidence TO Document)",
    "CREATE REL TABLE SUBJECT(FROM Statement TO Entity)",
    "CREATE REL TABLE OBJECT(FROM Statement TO Entity, FROM Statement TO Value)",
    "CREATE REL TABLE STATED_IN(FROM Statement TO Document, status STRING, confidence DOUBLE, run STRING)",
    "CREATE REL TABLE SUPPORTED_BY(FROM Statement TO Evidence)",
    "CREATE REL TABLE met(FROM Entity TO Entity, FROM Entity TO Value, iri STRING, statement STRING, confidence DOUBLE)",
    "CREATE REL TABLE age(FROM Entity TO Entity, FROM Entity TO Value, iri STRING, statement STRING, confidence DOUBLE)",
)
_NOT_HERE = re.compile(r"CREATE (?:CONSTRAINT|INDEX) |MATCH \(n:`Entity` \{[^}]*\}\) SET n:")


def cypher_of(number: int, *, name: str = "Ada", alias: str = "A. L.", confidence: float = 0.9) -> str:
    graph = KnowledgeGraph.of(
        entities=[
            Entity("ada", name, ("http://e/Person",), (alias,), (Evidence(0, 3, name),)),
            Entity("bob", "O'Bob\n", ("http://e/Person",), (), (Evidence(8, 11, "Bob"),), "http://e/known"),
        ],
        relations=[
            Relation(
                "ada", "http://e/met", "bob", evidence=(Evidence(0, 12, f"line {number}"),), confidence=confidence
            ),
            Relation("ada", "http://e/age", value=Value("36", XSD + "integer"), evidence=(Evidence(20, 22, "36"),)),
        ],
    )
    context = OutputContext(
        key=f"k{number}",
        text_hash=f"{number:064x}",
        sources=(DocumentSource(name=f"{number}.txt", size=number),),
        times=("2026-01-01T00:00:00Z", ""),
    )
    return render(graph, to="cypher", context=context).decode()


DOCUMENTS = (
    cypher_of(1),
    cypher_of(2, name="ADA", alias="Countess", confidence=0.4),
    cypher_of(3, alias="Lovelace"),
)


class Loaded:
    """A database in memory with its tables."""

    def __init__(self) -> None:
        self._connection: Any = ladybug.Connection(ladybug.Database(":memory:"))
        for table in TABLES:
            self._connection.execute(table)

    def load(self, document: str) -> None:
        for line in document.splitlines():
            if not _NOT_HERE.match(line):
                self._connection.execute(line.removesuffix(";"))

    def rows(self, query: str) -> list[list[Any]]:
        return sorted(self._connection.execute(query).get_all())

    def everything(self) -> list[list[list[Any]]]:
        return [
            self.rows("MATCH (n:Entity) RETURN n.iri, coalesce(n.name, '')"),
            self.rows("MATCH (n:Entity)-[:NAMED]->(a:Name) RETURN n.iri, a.text"),
            self.rows("MATCH (t:Statement)-[:SUPPORTED_BY]->(e:Evidence)-[:`IN`]->(d) RETURN t.iri, e.text, d.iri"),
            self.rows("MATCH (n:Entity)-[:MENTIONED]->(e:Evidence)-[:`IN`]->(d) RETURN n.iri, e.text, d.iri"),
            self.rows("MATCH (t:Statement)-[r:STATED_IN]->(d) RETURN t.predicate, d.iri, r.confidence, r.run"),
            self.rows("MATCH (d:Document)-[:DERIVED_FROM]->(f:Source) RETURN d.iri, f.name, f.size"),
            self.rows("MATCH (s:Entity)-[r:met|age]->(o) RETURN s.iri, r.iri, r.confidence"),
        ]


def loaded(documents: tuple[str, ...]) -> list[list[list[Any]]]:
    database = Loaded()
    for document in documents:
        database.load(document)
    return database.everything()


def test_documents_in_any_order_give_one_graph_with_all_their_evidence() -> None:
    orders = [loaded(order) for order in itertools.permutations(DOCUMENTS)]
    assert all(order == orders[0] for order in orders)
    entities, names, evidence, mentions, stated, sources, relations = orders[0]
    assert [name for _, name in entities] == ["", "ADA", "O'Bob\n"]
    assert {text for _, text in names} >= {"Ada", "ADA", "A. L.", "Countess", "Lovelace"}
    assert [text for _, text, _ in evidence if text.startswith("line")] == ["line 1", "line 2", "line 3"]
    assert len(mentions) == 6
    assert len(stated) == 6
    assert len(sources) == 3
    assert [row[2] for row in relations] == [1.0, 0.9]


def test_loading_a_document_again_changes_nothing() -> None:
    assert loaded((DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[0])) == loaded(DOCUMENTS[:2])


@pytest.mark.skipif("SAMEAS_TEST_NEO4J_URL" not in os.environ, reason="not run: SAMEAS_TEST_NEO4J_URL is not set")
def test_neo4j_takes_every_statement_with_its_constraints() -> None:
    import neo4j

    user, _, password = os.environ.get("SAMEAS_TEST_NEO4J_AUTH", "neo4j:").partition(":")
    with neo4j.GraphDatabase.driver(os.environ["SAMEAS_TEST_NEO4J_URL"], auth=(user, password)) as driver:
        for document in DOCUMENTS:
            for line in document.splitlines():
                driver.execute_query(line.removesuffix(";"))
        found = driver.execute_query("MATCH (t:Statement)-[:SUPPORTED_BY]->(e) RETURN count(DISTINCT e) AS n").records
        assert found[0]["n"] >= 3
