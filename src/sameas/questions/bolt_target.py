"""A collection published to Neo4j, Memgraph and others over Bolt.

Rule: every statement is one of those below, and values go in as parameters, many rows at a time; only classes and
properties become labels and types, cut down to letters, digits and `_`. What is sent replaces what was there of the
same thing; what nothing leads to any more goes, and only that: what others put beside it stays. The revision is written
last, and that a push is under way first, so that the next one clears up after one that was broken off.
"""

from __future__ import annotations

import re
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
_OTHER_BASE = re.compile("[/#:]")
REVISION = "MATCH (c:`Collection` {iri: $iri}) RETURN c.revision AS revision, c.underWay AS broken"
BEGIN = "MERGE (c:`Collection` {iri: $iri}) SET c.underWay = true"
SET_REVISION = "MERGE (c:`Collection` {iri: $iri}) SET c.revision = $revision, c.name = $name, c.underWay = false"
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
    "d.names = row.names, d.title = row.title, d.location = row.location, d.mediaType = row.mediaType, "
    "d.readAt = row.readAt"
)
DROP_EVIDENCE = "UNWIND $rows AS row MATCH (d:`Document` {iri: row.iri})<-[:`IN`]-(e:`Evidence`) DETACH DELETE e"
THERE = "MATCH (n:`Entity`) WHERE n.iri STARTS WITH $base RETURN n.iri AS iri"
# What things lead to: of what their push takes away, that which nothing leads to any more goes with it.
_LED_TO = {
    "Name": ("text", "MATCH (n)-[:`NAMED`]->(o:`Name`)"),
    "Value": ("iri", "MATCH (n)<-[:`SUBJECT`]-(:`Statement`)-[:`OBJECT`]->(o:`Value`)"),
    "Evidence": ("iri", "MATCH (n)<-[:`SUBJECT`]-(:`Statement`)-[:`SUPPORTED_BY`]->(o:`Evidence`)"),
    # Known things of a list, which are no things of the collection.
    "Entity": ("iri", "MATCH (n)-[:`SAME_AS`]->(o:`Entity`) WHERE NOT o.iri STARTS WITH $base"),
}
_UNUSED = {
    **dict.fromkeys(("Name", "Value", "Evidence"), "NOT EXISTS { MATCH ()-[]->(o) }"),
    "Entity": "NOT o.iri STARTS WITH $base AND o.name IS NULL AND NOT EXISTS { MATCH (o)-[]-() }",
}
LED_TO = {
    label: f"UNWIND $rows AS row MATCH (n:`Entity` {{iri: row.iri}}) {match} RETURN DISTINCT o.{key} AS id"
    for label, (key, match) in _LED_TO.items()
}
DROP_LED_TO = {
    label: f"UNWIND $rows AS row MATCH (o:`{label}` {{{key}: row.id}}) WHERE {_UNUSED[label]} DETACH DELETE o"
    for label, (key, _) in _LED_TO.items()
}
DROP_UNUSED = tuple(f"MATCH (o:`{label}`) WHERE {unused} DETACH DELETE o" for label, unused in _UNUSED.items())
LABELS = "UNWIND $rows AS row MATCH (n:`Entity` {iri: row.iri}) RETURN n.iri AS iri, labels(n) AS labels"
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


def unlabelled(label: str) -> str:
    """The statement that takes the label of a class from things."""
    return f"UNWIND $rows AS row MATCH (n:`Entity` {{iri: row.iri}}) REMOVE n:`{label}`"


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
        self._classes = {cypher_name(one.iri) for one in collection.ontology.classes}
        self._led_to: dict[str, set[str]] = {label: set() for label in LED_TO}

    def go(self) -> Pushed:
        rows = self._run(REVISION, {"iri": self._iri})
        before = -1 if not rows or rows[0]["revision"] is None else int(rows[0]["revision"])
        was_broken = bool(rows) and rows[0]["broken"] is True
        work = outgoing(self._collection, before=before)
        if work.revision == before and not was_broken:
            return Pushed(before=before, revision=before)
        self._run(BEGIN, {"iri": self._iri})
        removed = 0
        with self._collection.reading() as reader:
            documents, things = list(work.documents), list(work.entities)
            if work.is_whole:
                now = [info.id for info in reader.all_entities()] + [id_ for id_, _ in reader.all_merged()]
                things = list(dict.fromkeys([*now, *self._there()]))
                self._send(DROP_EVIDENCE, [{"iri": reader.document_iri(digest)} for digest in documents])
            for some in _batches(documents):
                removed += self._documents(reader, some)
            for some in _batches(things):
                removed += self._things(reader, some)
        self._clear(everything=work.is_whole or was_broken)
        self._run(SET_REVISION, {"iri": self._iri, "revision": work.revision, "name": self._collection.name})
        return Pushed(
            before=before, revision=work.revision, entities=len(things), documents=len(documents), removed=removed
        )

    def _there(self) -> Iterator[str]:
        """The ids of things that the database has from earlier pushes."""
        for row in self._run(THERE, {"base": self._base}):
            id_ = row["iri"].removeprefix(self._base)
            # Another collection may have a longer base that begins with this one.
            if not _OTHER_BASE.search(id_):
                yield id_

    def _clear(self, *, everything: bool) -> None:
        """Drop what nothing leads to any more: of all, or of what this push took away."""
        if everything:
            for statement in DROP_UNUSED:
                self._run(statement, {"base": self._base} if "$base" in statement else {})
            return
        for label, ids in self._led_to.items():
            self._send(DROP_LED_TO[label], [{"id": id_} for id_ in sorted(ids)])

    def _documents(self, reader: Reader, digests: list[str]) -> int:
        there, gone = [], []
        for digest in digests:
            iri = reader.document_iri(digest)
            row = reader.session.one("document_by_digest", collection=self._collection.number, digest=digest)
            if row is None:
                gone.append({"iri": iri})
                continue
            names = reader.document(digest).names
            told = names[0] if names else None
            there.append(
                {
                    "iri": iri,
                    "sha256": digest.removeprefix("sha256-"),
                    "name": told.name if told else "",
                    "title": told.title if told else "",
                    "location": told.path if told else "",
                    "mediaType": told.media_type if told else "",
                    "readAt": told.read_at if told else "",
                    "names": [one.name for one in names],
                }
            )
        self._send(DROP_EVIDENCE, gone)
        self._send(DROP_DOCUMENTS, gone)
        self._send(DOCUMENTS, there)
        return len(gone)

    def _things(self, reader: Reader, ids: list[str]) -> int:
        touched = [{"iri": self._base + id_} for id_ in ids]
        for label, statement in LED_TO.items():
            values = {"base": self._base} if "$base" in statement else {}
            self._led_to[label].update(row["id"] for row in self._run(statement, {**values, "rows": touched}))
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
        self._label(found, merged=[row["iri"] for row in moved])
        self._facts([one for info in found for one in reader.statements_of(info.id)])
        return len(gone)

    def _label(self, found: list[EntityInfo], *, merged: list[str]) -> None:
        wanted: dict[str, set[str]] = {iri: set() for iri in merged}
        wanted |= {info.iri: {cypher_name(iri) for iri in info.types} for info in found}
        gone: dict[str, Rows] = {}
        for row in self._run(LABELS, {"rows": [{"iri": iri} for iri in wanted]}):
            for label in self._classes.intersection(row["labels"]) - wanted[row["iri"]]:
                gone.setdefault(label, []).append({"iri": row["iri"]})
        for label, rows in sorted(gone.items()):
            self._send(unlabelled(label), rows)
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
        values = {"base": self._base} if "$base" in statement else {}
        for some in _batches(rows):
            self._run(statement, {**values, "rows": some})


def _batches(items: list[Any]) -> Iterator[list[Any]]:
    for at in range(0, len(items), _AT_ONCE):
        yield items[at : at + _AT_ONCE]
