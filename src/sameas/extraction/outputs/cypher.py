"""The graph as Cypher: MERGE statements only, safe to run again and in any order of documents.

Rule: what one document says is on nodes and relationships that name it, so that loading another takes nothing away.
`(:Statement)` stands for a fact; `(:Evidence)-[:IN]->(:Document)` for what supports it; the plain relationship between
two things is there too, for queries. Text goes into string literals only, with every sign that could end one escaped;
labels and relationship types are cut down to letters, digits and `_`, because a backslash escape inside back quotes is
read before the quotes are.
"""

import re
from collections.abc import Iterator, Mapping

from sameas.extraction.graph.model import Entity, Evidence, Graph, Relation
from sameas.extraction.outputs.context import OutputContext, Writable, local_name

_NOT_NAME = re.compile(r"[^0-9A-Za-z_]+")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSAFE = re.compile("[\\\\'\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

# The properties that MERGE and people look for.
CONSTRAINTS = tuple(
    f"CREATE CONSTRAINT sameas_{label.lower()} IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.{field} IS UNIQUE"
    for label, field in (
        ("Entity", "iri"),
        ("Value", "iri"),
        ("Name", "text"),
        ("Document", "iri"),
        ("Source", "iri"),
        ("Statement", "iri"),
        ("Evidence", "iri"),
    )
)
INDEXES = (
    "CREATE INDEX sameas_entity_name IF NOT EXISTS FOR (n:`Entity`) ON (n.name)",
    "CREATE INDEX sameas_statement_predicate IF NOT EXISTS FOR (n:`Statement`) ON (n.predicate)",
    "CREATE INDEX sameas_source_name IF NOT EXISTS FOR (n:`Source`) ON (n.name)",
)


def write_cypher(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Statements for Neo4j, Memgraph and others, each ended by a semicolon."""
    for line in _lines(graph, context):
        target.write(f"{line};\n".encode())


def _lines(graph: Graph, context: OutputContext) -> Iterator[str]:
    yield from CONSTRAINTS
    yield from INDEXES
    yield from _document(context)
    for entity in graph.entities:
        yield from _entity(entity, context)
    for relation in graph.relations:
        yield from _relation(relation, context)


def _document(context: OutputContext) -> Iterator[str]:
    document = _text(context.document)
    fields = {"sha256": context.text_hash}
    fields["title"] = next((source.title for source in context.sources if source.title), "")
    if context.times is not None:
        fields["readAt"] = context.times[0]
    yield f"MERGE (d:`Document` {{iri: {document}}}){_set('d', {name: _text(v) for name, v in fields.items() if v})}"
    for source in context.sources:
        about = {
            "name": source.name,
            "title": source.title,
            "location": source.location,
            "mediaType": source.media_type,
            "modifiedAt": source.modified_at,
        }
        sets = {name: _text(value) for name, value in about.items() if value}
        if source.size is not None:
            sets["size"] = str(source.size)
        iri = context.iri("source", context.document, source.name, source.location)
        yield (
            f"MATCH (d:`Document` {{iri: {document}}}) MERGE (f:`Source` {{iri: {_text(iri)}}}){_set('f', sets)} "
            "MERGE (d)-[:`DERIVED_FROM`]->(f)"
        )


def _entity(entity: Entity, context: OutputContext) -> Iterator[str]:
    node = f"(n:`Entity` {{iri: {_text(context.entity(entity.id))}}})"
    name = _text(entity.name)
    # Of several names the first in order, no matter which document was loaded first.
    yield f"MERGE {node} SET n.name = CASE WHEN n.name IS NULL OR n.name > {name} THEN {name} ELSE n.name END"
    labels = "".join(f":`{label}`" for label in sorted({cypher_name(iri) for iri in entity.types}))
    if labels:
        yield f"MATCH {node} SET n{labels}"
    for alias in (entity.name, *entity.aliases):
        yield f"MATCH {node} MERGE (a:`Name` {{text: {_text(alias)}}}) MERGE (n)-[:`NAMED`]->(a)"
    if entity.individual:
        yield f"MATCH {node} MERGE (i:`Entity` {{iri: {_text(entity.individual)}}}) MERGE (n)-[:`SAME_AS`]->(i)"
    document = f"(d:`Document` {{iri: {_text(context.document)}}})"
    types = {"types": _list(entity.types), "confidence": _number(entity.confidence)}
    yield f"MATCH {node} MATCH {document} MERGE (n)-[r:`DESCRIBED_IN`]->(d){_set('r', types)}"
    for mention in entity.mentions:
        yield from _evidence(mention, context, of=f"MATCH {node}", owner="n", link="MENTIONED")


def _relation(relation: Relation, context: OutputContext) -> Iterator[str]:
    subject = f"MATCH (s:`Entity` {{iri: {_text(context.entity(relation.subject))}}})"
    if relation.value is None:
        object_ = f"MATCH (o:`Entity` {{iri: {_text(context.entity(relation.object))}}})"
    else:
        value = relation.value
        iri = context.iri("value", value.value, value.datatype, value.unit)
        object_ = f"MATCH (o:`Value` {{iri: {_text(iri)}}})"
        fields = {"value": value.value, "datatype": value.datatype, "unit": value.unit}
        yield f"MERGE (o:`Value` {{iri: {_text(iri)}}}){_set('o', {name: _text(v) for name, v in fields.items()})}"
    statement = context.iri("statement", *relation.triple)
    kind = cypher_name(relation.predicate)
    confidence = _number(relation.confidence)
    yield (
        f"{subject} {object_} MERGE (s)-[r:`{kind}` {{iri: {_text(relation.predicate)}}}]->(o) "
        f"SET r.statement = {_text(statement)}, r.confidence = CASE WHEN r.confidence IS NULL OR "
        f"r.confidence < {confidence} THEN {confidence} ELSE r.confidence END"
    )
    node = f"(t:`Statement` {{iri: {_text(statement)}}})"
    yield (
        f"{subject} {object_} MERGE {node} SET t.predicate = {_text(relation.predicate)} "
        "MERGE (t)-[:`SUBJECT`]->(s) MERGE (t)-[:`OBJECT`]->(o)"
    )
    said = {"status": _text(relation.status), "confidence": confidence, "run": _text(context.run)}
    document = f"(d:`Document` {{iri: {_text(context.document)}}})"
    yield f"MATCH {node} MATCH {document} MERGE (t)-[r:`STATED_IN`]->(d){_set('r', said)}"
    for evidence in relation.evidence:
        yield from _evidence(evidence, context, of=f"MATCH {node}", owner="t", link="SUPPORTED_BY")


def _evidence(evidence: Evidence, context: OutputContext, *, of: str, owner: str, link: str) -> Iterator[str]:
    iri = context.iri("target", context.document, str(evidence.start), str(evidence.end))
    place = context.place(evidence.start, evidence.end)
    fields = {"text": _text(evidence.text), "start": str(evidence.start), "end": str(evidence.end)}
    fields |= {unit: str(number) for unit, number in place._asdict().items() if number is not None}
    yield (
        f"{of} MATCH (d:`Document` {{iri: {_text(context.document)}}}) MERGE (e:`Evidence` {{iri: {_text(iri)}}})"
        f"{_set('e', fields)} MERGE (e)-[:`IN`]->(d) MERGE ({owner})-[:`{link}`]->(e)"
    )


def _set(variable: str, fields: Mapping[str, str]) -> str:
    sets = ", ".join(f"{variable}.`{name}` = {value}" for name, value in fields.items())
    return f" SET {sets}" if sets else ""


def cypher_name(iri: str) -> str:
    """The name of a class or property as a label or type."""
    return _NOT_NAME.sub("_", local_name(iri)).strip("_") or "Thing"


def _number(share: float) -> str:
    return f"{share:.4f}"


def _list(items: tuple[str, ...]) -> str:
    return f"[{', '.join(_text(item) for item in items)}]"


def _text(text: str) -> str:
    return f"'{_UNSAFE.sub(_escape, text)}'"


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    code = 0xFFFD if "\ud800" <= sign <= "\udfff" else ord(sign)
    return _ESCAPES.get(sign) or f"\\u{code:04X}"
