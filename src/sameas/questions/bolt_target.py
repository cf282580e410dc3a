"""A collection published to Neo4j, Memgraph and others over Bolt.

Rule: every statement is one of those below, and values go in as parameters, many rows at a time; only classes and
properties become labels and types, cut down to letters, digits and `_`. What is sent replaces what was there of the
same thing, and the revision is written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sameas.collections.collection import Collection
from sameas.collections.model import EntityInfo, Statement
from sameas.collections.views import Reader
from sameas.extraction.outputs import OutputContext
from sameas.extraction.outputs.cypher import CONSTRAINTS, INDEXES, cypher_name
from sameas.questions.errors import PublishError
from sameas.questions.publication import Pushed, current, outgoing, redirect

Rows: TypeAlias = list[dict[str, Any]]
Run: TypeAlias = Callable[[str, dict[str, Any]], list[dict[str, Any]]]

_AT_ONCE = 1_000
REVISION = "MATCH (c:`Collection` {iri: $iri}) RETURN c.revision AS revision"
SET_REVISION = "MERGE (c:`Collection` {iri: $iri}) SET c.revision = $revision, c.name = $name"
FORGET_THINGS = "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri})<-[:`SUBJECT`]-(t:`Statement`) DETACH DELETE t"
FORGET_FACTS = "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri})-[r]->(o) DELETE r"
DROP_THINGS = "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri}) DETACH DELETE n"
THINGS = "UNWIND $rows AS row MERGE (n:`Entity` {iri: row.iri}) SET n.name = row.name"
NAMES = (
    "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri}) MERGE (a:`Name` {text: row.text}) MERGE (n)-[:`NAMED`]->(a)"
)
SAME = (
    "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri}) MERGE (i:`Entity` {iri: row.same}) "
    "MERGE (n)-[:`SAME_AS`]->(i)"
)
DIFFERENT = (
    "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri}) MERGE (o:`Entity` {iri: row.other}) "
    "MERGE (n)-[:`DIFFERENT_FROM`]->(o)"
)
DOCUMENTS = (
    "UNWIND $rows AS row MERGE (d:`Document` {iri: row.iri}) SET d.sha256 = row.sha256, d.name = row.name, "
    "d.title = row.title, d.location = row.location, d.mediaType = row.mediaType, d.readAt = row.readAt"
)
DROP_EVIDENCE = "UNWIND $rows AS row MATCH (d:`Document` {iri: row.iri})<-[:`IN`]-(e:`Evidence`) DETACH DELETE e"
THERE = "MATCH (n:`Entity`) WHERE n.iri STARTS WITH $base RETURN n.iri AS iri"
# What nothing leads to any more may name what was erased.
UNUSED = (
    "MATCH (a:`Name`) WHERE NOT EXISTS { MATCH (:`Entity`)-[:`NAMED`]->(a) } DETACH DELETE a",
    "MATCH (o:`Value`) WHERE NOT EXISTS { MATCH (:`Statement`)-[:`OBJECT`]->(o) } DETACH DELETE o",
)
DROP_DOCUMENTS = "UNWIND $rows AS row MATCH (d:`Document` {iri: row.iri}) DETACH DELETE d"
VALUES = (
    "UNWIND $rows AS row MERGE (o:`Value` {iri: row.object}) "
    "SET o.value = row.value, o.datatype = row.datatype, o.unit = row.unit"
)
EVIDENCE = (
    "UNWIND $rows AS row MATCH (t:`Statement` {iri: row.statement}) MERGE (d:`Document` {iri: row.document}) "
    "MERGE (e:`Evidence` {iri: row.iri}) SET e.text = row.text, e.start = row.start, e.`end` = row.until "
    "MERGE (e)-[:`IN`]->(d) MERGE (t)-[:`SUPPORTED_BY`]->(e)"
)
# Two of their own: a batch has rows with and without, and a parameter that is sometimes null has no type.
PAGES = "UNWIND $rows AS row MATCH (e:`Evidence` {iri: row.iri}) SET e.page = row.number"
PARAGRAPHS = "UNWIND $rows AS row MATCH (e:`Evidence` {iri: row.iri}) SET e.paragraph = row.number"


def labelled(iri: str) -> str:
    """The statement that gives things the label of a class."""
    return f"UNWIND $rows AS row MATCH (n:`Entity` {{iri: row.iri}}) SET n:`{cypher_name(iri)}`"


def related(predicate: str, *, to: str) -> str:
    """The statement that connects things by a property, and says so in a node of its own."""
    return (
        f"UNWIND $rows AS row MATCH (s:`Entity` {{iri: row.subject}}) MERGE (o:`{to}` {{iri: row.object}}) "
        f"MERGE (s)-[r:`{cypher_name(predicate)}` {{iri: row.predicate}}]->(o) "
        "SET r.statement = row.statement, r.confidence = row.confidence "
        "MERGE (t:`Statement` {iri: row.statement}) SET t.predicate = row.predicate, t.confidence = row.confidence "
        "MERGE (t)-[:`SUBJECT`]->(s) MERGE (t)-[:`OBJECT`]->(o)"
    )


def push_bolt(collection: Collection, url: str, *, user: str = "", password: str = "") -> Pushed:
    """Bring a graph database up to date; blocking."""
    try:
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError
    except ImportError as error:
        raise PublishError("a push over Bolt needs the driver. Install it: pip install neo4j") from error
    auth = (user, password) if user or password else None
    try:
        with neo4j.GraphDatabase.driver(url, auth=auth) as driver:
            driver.verify_connectivity()

            def run(statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
                found = driver.execute_query(statement, values)  # pyright: ignore[reportArgumentType, reportCallIssue]
                return [record.data() for record in found.records]

            for statement in (*CONSTRAINTS, *INDEXES):
                run(statement, {})
            return BoltPush(collection, run).go()
    except (DriverError, Neo4jError) as error:
        raise PublishError(f"the graph database did not take it: {error}") from error


class BoltPush:
    """One push; `run` sends a statement with its parameters."""

    def __init__(self, collection: Collection, run: Run) -> None:
        self._collection = collection
        self._run = run
        self._base = collection.base
        self._context = OutputContext(key="", base=collection.base)
        self._iri = f"{collection.base}collection-{collection.id}"

    def go(self) -> Pushed:
        rows = self._run(REVISION, {"iri": self._iri})
        before = -1 if not rows or rows[0]["revision"] is None else int(rows[0]["revision"])
        work = outgoing(self._collection, before=before)
        removed = 0
        with self._collection.reading() as reader:
            documents, things = list(work.documents), list(work.entities)
            if work.is_whole:
                there = [row["iri"].removeprefix(self._base) for row in self._run(THERE, {"base": self._base})]
                now = [info.id for info in reader.all_entities()] + [id_ for id_, _ in reader.all_merged()]
                things = list(dict.fromkeys([*now, *there]))
                self._send(DROP_EVIDENCE, [{"iri": reader.document_iri(digest)} for digest in documents])
            for some in _batches(documents):
                removed += self._documents(reader, some)
            for some in _batches(things):
                removed += self._things(reader, some)
            if work.is_whole:
                for statement in UNUSED:
                    self._run(statement, {})
        if work.revision != before:
            self._run(SET_REVISION, {"iri": self._iri, "revision": work.revision, "name": self._collection.name})
        return Pushed(
            before=before, revision=work.revision, entities=len(things), documents=len(documents), removed=removed
        )

    def _documents(self, reader: Reader, digests: list[str]) -> int:
        there, gone = [], []
        for digest in digests:
            iri = reader.document_iri(digest)
            row = reader.session.one("document_by_digest", collection=self._collection.number, digest=digest)
            if row is None:
                gone.append({"iri": iri})
                continue
            first = reader.document(digest).names[:1]
            told = first[0] if first else None
            there.append(
                {
                    "iri": iri,
                    "sha256": digest.removeprefix("sha256-"),
                    "name": told.name if told else "",
                    "title": told.title if told else "",
                    "location": told.path if told else "",
                    "mediaType": told.media_type if told else "",
                    "readAt": told.read_at if told else "",
                }
            )
        self._send(DROP_EVIDENCE, gone)
        self._send(DROP_DOCUMENTS, gone)
        self._send(DOCUMENTS, there)
        return len(gone)

    def _things(self, reader: Reader, ids: list[str]) -> int:
        touched = [{"iri": self._base + id_} for id_ in ids]
        self._send(FORGET_THINGS, touched)
        self._send(FORGET_FACTS, touched)
        found = [info for id_ in ids if (info := current(reader, id_)) is not None]
        led = {id_: now for id_ in ids if (now := redirect(reader, id_))}
        kept = {info.id for info in found} | set(led)
        gone = [{"iri": self._base + id_} for id_ in ids if id_ not in kept]
        self._send(DROP_THINGS, gone)
        self._send(THINGS, [{"iri": info.iri, "name": info.name} for info in found])
        self._send(NAMES, [{"iri": one.iri, "text": name} for one in found for name in (one.name, *one.aliases)])
        self._send(SAME, [{"iri": one.iri, "same": same} for one in found for same in one.same_as])
        apart = [(one.iri, other) for one in found for other in reader.told_apart.get(one.id, ())]
        self._send(DIFFERENT, [{"iri": iri, "other": self._base + other} for iri, other in apart])
        moved = [{"iri": self._base + id_, "name": ""} for id_ in led]
        self._send(THINGS, moved)
        self._send(SAME, [{"iri": self._base + id_, "same": self._base + now} for id_, now in led.items()])
        self._label(found)
        self._facts([one for info in found for one in reader.statements_of(info.id)])
        return len(gone)

    def _label(self, found: list[EntityInfo]) -> None:
        by_class: dict[str, Rows] = {}
        for info in found:
            for iri in info.types:
                by_class.setdefault(iri, []).append({"iri": info.iri})
        for iri, rows in sorted(by_class.items()):
            self._send(labelled(iri), rows)

    def _facts(self, statements: list[Statement]) -> None:
        groups: dict[tuple[str, str], Rows] = {}
        values: Rows = []
        evidence: Rows = []
        pages: Rows = []
        paragraphs: Rows = []
        for one in statements:
            parts = ("", "", "") if one.value is None else (one.value.value, one.value.datatype, one.value.unit)
            statement = self._context.iri("statement", one.subject, one.predicate, one.object, *parts)
            object_ = self._base + one.object if one.value is None else self._context.iri("value", *parts)
            if one.value is not None:
                values.append({"object": object_, "value": parts[0], "datatype": parts[1], "unit": parts[2]})
            row = {
                "subject": self._base + one.subject,
                "predicate": one.predicate,
                "object": object_,
                "statement": statement,
                "confidence": one.confidence,
            }
            groups.setdefault((one.predicate, "Entity" if one.value is None else "Value"), []).append(row)
            for place in one.evidence:
                document = f"{self._base}document-{place.document}"
                iri = self._context.iri("target", document, str(place.start), str(place.end))
                evidence.append(
                    {
                        "statement": statement,
                        "document": document,
                        "iri": iri,
                        "text": place.text,
                        "start": place.start,
                        "until": place.end,
                    }
                )
                if place.page is not None:
                    pages.append({"iri": iri, "number": place.page})
                if place.paragraph is not None:
                    paragraphs.append({"iri": iri, "number": place.paragraph})
        self._send(VALUES, values)
        for (predicate, to), rows in sorted(groups.items()):
            self._send(related(predicate, to=to), rows)
        self._send(EVIDENCE, evidence)
        self._send(PAGES, pages)
        self._send(PARAGRAPHS, paragraphs)

    def _send(self, statement: str, rows: Rows) -> None:
        for some in _batches(rows):
            self._run(statement, {"rows": some})


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(items), _AT_ONCE):
        yield items[at : at + _AT_ONCE]
