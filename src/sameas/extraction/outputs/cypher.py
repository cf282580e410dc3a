"""The graph as Cypher: one MERGE for each entity and each relation, safe to run again.

Text goes into string literals only, with every sign that could end one escaped; labels and relationship types
are cut down to letters, digits and `_`, because a backslash escape inside back quotes is read before the
quotes are.
"""

import re
from collections.abc import Iterator

from sameas.extraction.graph import Graph
from sameas.extraction.outputs.context import OutputContext, local_name
from sameas.extraction.outputs.writable import Writable

_NOT_NAME = re.compile(r"[^0-9A-Za-z_]+")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSAFE = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def write_cypher(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Statements for Neo4j, Memgraph and others, each ended by a semicolon."""
    for line in _lines(graph, context):
        target.write(f"{line}\n".encode())


def _lines(graph: Graph, context: OutputContext) -> Iterator[str]:
    for entity in graph.entities:
        labels = "".join(f":`{name}`" for name in sorted({_name(iri) for iri in entity.types}))
        fields = {"name": _text(entity.name), "types": _list(entity.types)}
        if entity.aliases:
            fields["aliases"] = _list(entity.aliases)
        if entity.individual:
            fields["sameAs"] = _text(entity.individual)
        sets = ", ".join(f"n.{field} = {value}" for field, value in fields.items())
        labelled = f" SET n{labels}" if labels else ""
        yield f"MERGE (n:`Entity` {{iri: {_text(context.entity(entity.id))}}}) SET {sets}{labelled};"
    for relation in graph.relations:
        subject = f"(s:`Entity` {{iri: {_text(context.entity(relation.subject))}}})"
        if relation.value is None:
            target = f"(o:`Entity` {{iri: {_text(context.entity(relation.object))}}})"
            opening = f"MATCH {subject} MATCH {target}"
        else:
            value = relation.value
            parts = f"value: {_text(value.value)}, datatype: {_text(value.datatype)}, unit: {_text(value.unit)}"
            opening = f"MATCH {subject} MERGE (o:`Value` {{{parts}}})"
        sets = f"r.status = {_text(relation.status)}"
        if relation.evidence:
            first = relation.evidence[0]
            sets += f", r.evidence = {_text(first.text)}, r.start = {first.start}, r.end = {first.end}"
        yield (
            f"{opening} MERGE (s)-[r:`{_name(relation.predicate)}` {{iri: {_text(relation.predicate)}}}]->(o) "
            f"SET {sets};"
        )


def _name(iri: str) -> str:
    return _NOT_NAME.sub("_", local_name(iri)).strip("_") or "Thing"


def _list(items: tuple[str, ...]) -> str:
    return f"[{', '.join(_text(item) for item in items)}]"


def _text(text: str) -> str:
    return f"'{_UNSAFE.sub(_escape, text)}'"


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    code = 0xFFFD if "\ud800" <= sign <= "\udfff" else ord(sign)
    return _ESCAPES.get(sign) or f"\\u{code:04X}"
