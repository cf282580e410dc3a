"""A collection is published: to a real SPARQL server, and over Bolt as far as an embedded openCypher can check it."""

import contextlib
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import ladybug
import pytest

from sameas.collections.errors import CollectionError
from sameas.questions.bolt_target import LABELS, BoltPush, push_bolt
from sameas.questions.errors import PublishError
from sameas.questions.sparql_target import SparqlTarget, push_sparql
from tests.servers.port import free_port
from tests.unit.questions.conftest import BASE, NS, Writer, writer

__all__ = ["writer"]

_OXIGRAPH = Path(sys.executable).with_name("oxigraph")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    program = shutil.which("oxigraph") or str(_OXIGRAPH)
    if not Path(program).exists():
        if os.environ.get("CI") == "true":
            pytest.fail("the wheel oxigraph is not installed")
        pytest.skip("the wheel oxigraph is not installed")
    port = free_port()
    command = [program, "serve", "--location", str(tmp_path / "ox"), "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(200):
            try:
                httpx.get(url, timeout=1)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


def rows(server: str, query: str) -> list[dict[str, str]]:
    reply = httpx.get(f"{server}/query", params={"query": query}, headers={"Accept": "application/sparql-results+json"})
    found = reply.raise_for_status().json()["results"]["bindings"]
    return [{name: value["value"] for name, value in row.items()} for row in found]


def everything(server: str) -> list[dict[str, str]]:
    found = rows(server, "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }")
    return sorted((one for one in found if not one["g"].endswith("-state")), key=str)


def test_a_sparql_server_holds_what_the_collection_holds(writer: Writer, server: str) -> None:
    collection = writer.collection
    target = SparqlTarget.of(server)
    first = push_sparql(collection, target)
    assert (first.before, first.documents) == (-1, 2)
    view = f"{BASE}collection-{collection.id}"
    asked = f"SELECT ?name {{ GRAPH <{view}> {{ ?s <{NS}headquarters> ?o ; <http://www.w3.org/2000/01/rdf-schema#label> ?name }} }}"
    assert sorted(row["name"] for row in rows(server, asked)) == ["Helvetia Zellen", "Weserstahl AG"]
    sentences = "SELECT ?text { GRAPH ?doc { ?f <http://www.w3.org/ns/oa#hasTarget> ?t . ?t <http://www.w3.org/ns/oa#exact> ?text } }"
    assert {"text": "Nordlicht Speicher acquired Helvetia Zellen."} in rows(server, sentences)


def test_a_second_push_sends_nothing_and_a_change_only_what_it_touched(
    writer: Writer, server: str, tmp_path: Path
) -> None:
    collection = writer.collection
    target = SparqlTarget.of(f"{server}/store")
    push_sparql(collection, target)
    again = push_sparql(collection, target)
    assert (again.entities, again.documents, again.removed) == (0, 0, 0)
    for number in range(20):
        writer.put(f"more-{number}.txt", (f"Firm {number}x/Company", "headquarters", f"Town {number}x/City"))
    assert push_sparql(collection, target).documents == 20
    collection.remove_name("two.txt")
    writer.put("three.txt", ("Alster Capital/Company", "headquarters", "Hamburg/City"))
    changed = push_sparql(collection, target)
    assert changed.removed == 1
    assert changed.documents < 6
    collection.decide("same", "Alster Capital", "Helvetia Zellen")
    push_sparql(collection, target)
    followed = everything(server)
    for graph in {one["g"] for one in followed} | {f"{BASE}collection-{collection.id}-state"}:
        httpx.delete(f"{server}/store", params={"graph": graph}).raise_for_status()
    assert push_sparql(collection, target).before == -1
    assert followed == everything(server)
    assert any(one["p"] == "http://www.w3.org/2002/07/owl#sameAs" for one in followed), "a merged id leads on"


def test_a_server_follows_merges_and_what_was_told_apart(writer: Writer, server: str) -> None:
    collection = writer.collection
    target = SparqlTarget.of(server)
    writer.put("three.txt", ("Alster Capital/Company", "headquarters", "Hamburg/City"))
    writer.put("four.txt", ("Alster Capital/Company", "acquired", "Bora Foods/Company"))
    writer.put("five.txt", ("Weserstahl AG/Company", "acquired", "Bora Foods/Company"))
    push_sparql(collection, target)
    asked = "SELECT ?a ?b { GRAPH ?g { ?a <http://www.w3.org/2002/07/owl#differentFrom> ?b } } ORDER BY ?a"

    def is_followed() -> None:
        push_sparql(collection, target)
        followed = everything(server)
        for graph in {one["g"] for one in followed} | {f"{BASE}collection-{collection.id}-state"}:
            httpx.delete(f"{server}/store", params={"graph": graph}).raise_for_status()
        push_sparql(collection, target)
        assert followed == everything(server)

    apart = collection.decide("different", "Alster Capital", "Bora Foods")
    is_followed()
    assert {(row["a"], row["b"]) for row in rows(server, asked)} == {
        (BASE + apart.a, BASE + apart.b),
        (BASE + apart.b, BASE + apart.a),
    }
    # The younger id is the object of facts of others, and leads on from now on.
    merged = collection.decide("same", "Helvetia Zellen", "Bora Foods")
    is_followed()
    (older,) = {row["b"] for row in rows(server, asked) if row["a"] == BASE + apart.a}
    assert older == BASE + collection.find("Helvetia Zellen")
    collection.undo(merged.id)
    is_followed()
    collection.remove_name("three.txt")
    collection.remove_name("four.txt")
    is_followed()
    assert rows(server, asked) == []
    writer.put("four.txt", ("Alster Capital/Company", "acquired", "Bora Foods/Company"))
    is_followed()
    assert len(rows(server, asked)) == 2
    collection.undo(apart.id)
    is_followed()
    assert rows(server, asked) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_server_keeps_nothing_of_what_is_gone(writer: Writer, server: str, seed: int) -> None:
    draw = random.Random(100 + seed)
    target = SparqlTarget.of(server)
    for _ in range(6):
        for _ in range(draw.randint(1, 3)):
            random_change(writer, draw)
        push_sparql(writer.collection, target)
        followed = everything(server)
        for graph in {one["g"] for one in followed} | {f"{BASE}collection-{writer.collection.id}-state"}:
            httpx.delete(f"{server}/store", params={"graph": graph}).raise_for_status()
        push_sparql(writer.collection, target)
        assert followed == everything(server)


def test_what_was_erased_is_nowhere_on_a_server_after_the_next_push(writer: Writer, server: str) -> None:
    collection = writer.collection
    target = SparqlTarget.of(server)
    writer.put("Helvetia Zellen.txt", ("Weserstahl AG/Company", "acquired", "Alster Capital/Company"))
    push_sparql(collection, target)
    assert "Helvetia" in str(everything(server))
    collection.erase("Helvetia Zellen")
    push_sparql(collection, target)
    assert "Helvetia" not in str(everything(server))
    assert "Weserstahl AG" in str(everything(server))
    assert push_sparql(collection, target).documents == 0


def test_what_a_broken_push_left_is_taken_away_by_the_next(writer: Writer, server: str) -> None:
    collection = writer.collection
    target = SparqlTarget.of(server)
    push_sparql(collection, target)
    # As if it had been broken off before it said which revision is there.
    httpx.delete(f"{server}/store", params={"graph": f"{BASE}collection-{collection.id}-state"}).raise_for_status()
    collection.remove_name("two.txt")
    push_sparql(collection, target)
    assert "two.txt" not in str(everything(server))


def test_a_server_that_is_not_there_or_refuses_is_told(writer: Writer, server: str) -> None:
    with pytest.raises(PublishError, match="did not answer"):
        push_sparql(writer.collection, SparqlTarget.of(f"http://user:secret@127.0.0.1:{free_port()}"))
    with pytest.raises(PublishError, match="answered 4") as refused:
        push_sparql(writer.collection, SparqlTarget(f"{server}/nothing", f"{server}/update"))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "store", "update"),
    [
        ("http://h:7878", "http://h:7878/store", "http://h:7878/update"),
        ("http://h/ds/data", "http://h/ds/data", "http://h/ds/update"),
        (
            "http://h/repositories/x/rdf-graphs/service",
            "http://h/repositories/x/rdf-graphs/service",
            "http://h/repositories/x/statements",
        ),
    ],
)
def test_one_address_is_enough_for_usual_servers(given: str, store: str, update: str) -> None:
    assert SparqlTarget.of(given) == SparqlTarget(store, update)


_LABELLING = re.compile(r"(SET|REMOVE) n:`(\w+)`\Z")


class Embedded:
    """ladybug, with the tables that it wants declared; it has no second label of a node, so those are kept beside it."""

    def __init__(self, properties: tuple[str, ...]) -> None:
        self.connection: Any = ladybug.Connection(ladybug.Database(":memory:"))
        self.labels: set[tuple[str, str]] = set()
        for table in (
            "NODE TABLE Collection(iri STRING PRIMARY KEY, revision INT64, name STRING, underWay BOOL)",
            "NODE TABLE Entity(iri STRING PRIMARY KEY, name STRING)",
            "NODE TABLE Name(text STRING PRIMARY KEY)",
            "NODE TABLE Value(iri STRING PRIMARY KEY, value STRING, datatype STRING, unit STRING)",
            (
                "NODE TABLE Document(iri STRING PRIMARY KEY, sha256 STRING, name STRING, title STRING, location STRING, "
                "mediaType STRING, readAt STRING, names STRING[])"
            ),
            "NODE TABLE Statement(iri STRING PRIMARY KEY, predicate STRING, confidence DOUBLE)",
            (
                "NODE TABLE Evidence(iri STRING PRIMARY KEY, text STRING, start INT64, `end` INT64, page INT64, "
                "paragraph INT64)"
            ),
            "REL TABLE NAMED(FROM Entity TO Name)",
            "REL TABLE SAME_AS(FROM Entity TO Entity)",
            "REL TABLE DIFFERENT_FROM(FROM Entity TO Entity)",
            "REL TABLE SUBJECT(FROM Statement TO Entity)",
            "REL TABLE OBJECT(FROM Statement TO Entity, FROM Statement TO Value)",
            "REL TABLE SUPPORTED_BY(FROM Statement TO Evidence)",
            "REL TABLE `IN`(FROM Evidence TO Document)",
            *(
                f"REL TABLE {name}(FROM Entity TO Entity, FROM Entity TO Value, iri STRING, statement STRING, "
                "confidence DOUBLE)"
                for name in properties
            ),
        ):
            self.connection.execute(f"CREATE {table}")

    def run(self, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        if (change := _LABELLING.search(statement)) is not None:
            (self.labels.update if change[1] == "SET" else self.labels.difference_update)(
                {(row["iri"], change[2]) for row in values["rows"]}
            )
            return []
        if statement == LABELS:
            asked = [row["iri"] for row in values["rows"]]
            return [
                {"iri": iri, "labels": ["Entity", *(label for one, label in self.labels if one == iri)]}
                for iri in asked
            ]
        found = self.connection.execute(statement, parameters=values)
        names = found.get_column_names()
        return [dict(zip(names, row, strict=True)) for row in found.get_all()]

    def rows(self, query: str) -> list[Any]:
        return sorted(self.connection.execute(query).get_all())

    def everything(self) -> dict[str, list[Any]]:
        """All nodes with what they say, and all relationships, in an order of their own."""
        things = [iri for (iri,) in self.connection.execute("MATCH (n:Entity) RETURN n.iri").get_all()]
        found: dict[str, list[Any]] = {"labels": sorted(pair for pair in self.labels if pair[0] in things)}
        for table, key in _TABLES.items():
            nodes = self.connection.execute(f"MATCH (n:`{table}`) RETURN n").get_all()
            found[table] = sorted(str({k: v for k, v in node.items() if not k.startswith("_")}) for (node,) in nodes)
            for other, other_key in _TABLES.items():
                asked = f"MATCH (a:`{table}`)-[r]->(b:`{other}`) RETURN label(r), a.{key}, b.{other_key}"
                found[f"{table} to {other}"] = self.rows(asked)
        return found


_TABLES = {"Entity": "iri", "Name": "text", "Value": "iri", "Document": "iri", "Statement": "iri", "Evidence": "iri"}
_PROPERTIES = ("acquired", "headquarters", "employees")


def test_bolt_statements_bring_a_graph_database_up_to_date(writer: Writer) -> None:
    collection = writer.collection
    database = Embedded(("acquired", "headquarters", "employees"))
    first = BoltPush(collection, database.run).go()
    assert (first.before, first.documents) == (-1, 2)
    facts = "MATCH (s:Entity)-[r:headquarters]->(o:Entity) RETURN s.name, o.name"
    assert database.rows(facts) == [["Helvetia Zellen", "Zug"], ["Weserstahl AG", "Zug"]]
    sources = "MATCH (t:Statement)-[:SUPPORTED_BY]->(e:Evidence)-[:`IN`]->(d:Document) RETURN e.text, d.name"
    assert ["Nordlicht Speicher acquired Helvetia Zellen.", "two.txt"] in database.rows(sources)
    again = BoltPush(collection, database.run).go()
    assert (again.entities, again.documents) == (0, 0)
    collection.remove_name("two.txt")
    writer.put("three.txt", ("Alster Capital/Company", "headquarters", "Hamburg/City"))
    BoltPush(collection, database.run).go()
    assert database.rows(facts) == [["Alster Capital", "Hamburg"], ["Helvetia Zellen", "Zug"]]
    assert {row[1] for row in database.rows(sources)} == {"one.txt", "three.txt"}
    assert database.rows("MATCH (n:Entity) WHERE n.name = 'Weserstahl AG' RETURN n.iri") == []
    fresh = Embedded(("acquired", "headquarters", "employees"))
    BoltPush(collection, fresh.run).go()
    for query in (
        facts,
        sources,
        "MATCH (t:Statement) RETURN t.iri",
        "MATCH (n:Entity)-[:NAMED]->(a) RETURN n.iri, a.text",
    ):
        assert database.rows(query) == fresh.rows(query)


def random_change(writer: Writer, draw: random.Random) -> None:
    collection = writer.collection
    names = [one.names[0].name for one in collection.documents(limit=100) if not one.names[0].name.startswith("known:")]
    things = [one.id for one in collection.entities(limit=200)]
    firms = ["Weserstahl AG", "Helvetia Zellen", "Bora Foods", "Alster Capital", "Bora Foods Ltd"]

    def fact() -> tuple[str, str, str]:
        firm = f"{draw.choice(firms)}/{draw.choice(('Company', 'Company', 'Organization'))}"
        return draw.choice(
            [
                (firm, "acquired", f"{draw.choice(firms)} Two/Company"),
                (firm, "headquarters", f"{draw.choice(('Zug', 'Bremen', 'Hamburg'))}/City"),
                (firm, "employees", str(draw.randint(1, 3))),
            ]
        )

    match draw.randrange(8):
        case 0 | 1 | 2:
            writer.put(f"d{draw.randrange(5)}.txt", *(fact() for _ in range(draw.randint(1, 3))))
        case 3 | 4 if len(names) > 1:
            collection.remove_name(draw.choice(names))
        case 5 if len(things) > 2:
            one, other = draw.sample(things, 2)
            # Two that are one already, or cannot be parted by these names, stay as they are.
            with contextlib.suppress(CollectionError):
                collection.decide(draw.choice(("same", "different")), one, other)
        case 6 if decisions := collection.decisions():
            collection.undo(draw.choice(decisions).id)
        case _:
            rows = "".join(
                f"https://example.org/id/{draw.randint(1, 3)}{i},{firm}\n" for i, firm in enumerate(firms[:2])
            )
            collection.link_known("firms.csv", f"iri,name\n{rows}".encode())


@pytest.mark.parametrize("seed", range(6))
def test_a_graph_database_keeps_nothing_of_what_is_gone(writer: Writer, seed: int) -> None:
    draw = random.Random(seed)
    followed = Embedded(_PROPERTIES)
    for _ in range(8):
        for _ in range(draw.randint(1, 3)):
            random_change(writer, draw)
        BoltPush(writer.collection, followed.run).go()
        fresh = Embedded(_PROPERTIES)
        BoltPush(writer.collection, fresh.run).go()
        assert followed.everything() == fresh.everything()
    assert fresh.rows("MATCH (e:Evidence) RETURN e.iri")


def test_a_broken_push_leaves_nothing_behind_once_another_has_ended(writer: Writer) -> None:
    collection = writer.collection
    for broken_at in range(1, 30, 2):
        database = Embedded(_PROPERTIES)
        BoltPush(collection, database.run).go()
        writer.put("three.txt", ("Alster Capital/Company", "employees", str(broken_at)))
        calls = 0

        def breaks(statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
            nonlocal calls
            calls += 1
            if calls > broken_at:  # noqa: B023
                raise ConnectionError
            return database.run(statement, values)  # noqa: B023

        writer.put("one.txt", ("Weserstahl AG/Company", "headquarters", f"Town {broken_at}x/City"))
        with contextlib.suppress(ConnectionError):
            BoltPush(collection, breaks).go()
        BoltPush(collection, database.run).go()
        fresh = Embedded(_PROPERTIES)
        BoltPush(collection, fresh.run).go()
        assert database.everything() == fresh.everything(), broken_at


def test_what_others_put_into_a_graph_database_stays(writer: Writer) -> None:
    database = Embedded(_PROPERTIES)
    for statement in (
        "CREATE (:Entity {iri: 'https://example.org/kg/other/thing-1', name: 'Of another base'})",
        "CREATE (:Entity {iri: 'https://elsewhere.example/mine', name: 'Mine'})",
    ):
        database.connection.execute(statement)
    BoltPush(writer.collection, database.run).go()
    writer.collection.erase("Helvetia Zellen")
    BoltPush(writer.collection, database.run).go()
    mine = "MATCH (n:Entity) WHERE n.name IN ['Mine', 'Of another base'] RETURN n.name"
    assert database.rows(mine) == [["Mine"], ["Of another base"]]


def test_a_graph_database_follows_what_was_told_apart(writer: Writer) -> None:
    collection = writer.collection
    database = Embedded(("acquired", "headquarters", "employees"))
    BoltPush(collection, database.run).go()
    asked = "MATCH (a:Entity)-[:DIFFERENT_FROM]->(b:Entity) RETURN a.name, b.name"
    apart = collection.decide("different", "Weserstahl AG", "Helvetia Zellen")
    BoltPush(collection, database.run).go()
    assert database.rows(asked) == [["Helvetia Zellen", "Weserstahl AG"], ["Weserstahl AG", "Helvetia Zellen"]]
    collection.undo(apart.id)
    BoltPush(collection, database.run).go()
    assert database.rows(asked) == []


def test_what_was_erased_is_nowhere_in_a_graph_database_after_the_next_push(writer: Writer) -> None:
    collection = writer.collection
    database = Embedded(("acquired", "headquarters", "employees"))
    BoltPush(collection, database.run).go()
    collection.erase("Helvetia Zellen")
    BoltPush(collection, database.run).go()
    assert database.rows("MATCH (n) WHERE n.iri CONTAINS 'helvetia' OR n.name CONTAINS 'Helvetia' RETURN n.iri") == []
    assert database.rows("MATCH (n:Name) WHERE n.text CONTAINS 'Helvetia' RETURN n.text") == []
    assert database.rows("MATCH (e:Evidence) WHERE e.text CONTAINS 'Helvetia' RETURN e.text") == []
    assert database.rows("MATCH (s:Entity)-[r:headquarters]->(o) RETURN s.name") == [["Weserstahl AG"]]
    assert BoltPush(collection, database.run).go().entities == 0


def test_nobody_at_a_bolt_address_is_told(writer: Writer) -> None:
    with pytest.raises(PublishError, match="did not take it"):
        push_bolt(writer.collection, f"bolt://127.0.0.1:{free_port()}")


@pytest.mark.skipif("SAMEAS_TEST_NEO4J_URL" not in os.environ, reason="not run: SAMEAS_TEST_NEO4J_URL is not set")
def test_neo4j_is_brought_up_to_date(writer: Writer) -> None:
    user, _, password = os.environ.get("SAMEAS_TEST_NEO4J_AUTH", "neo4j:").partition(":")
    url = os.environ["SAMEAS_TEST_NEO4J_URL"]
    assert push_bolt(writer.collection, url, user=user, password=password).documents == 2
    assert push_bolt(writer.collection, url, user=user, password=password).entities == 0
