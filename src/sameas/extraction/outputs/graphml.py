"""The graph as GraphML: a node for each entity and each value, an edge for each relation."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from sameas.extraction.graph import Graph
from sameas.extraction.outputs.context import OutputContext, local_name
from sameas.extraction.outputs.writable import Writable

_NODE_KEYS = ("iri", "label", "kind", "types", "datatype", "unit", "individual")
_EDGE_KEYS = ("predicate", "relation", "status", "evidence", "start", "end")
# XML 1.0 has no form for these characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """GraphML for Gephi, yEd, NetworkX and the like."""
    for line in _lines(graph, context):
        target.write(f"{line}\n".encode())


def _lines(graph: Graph, context: OutputContext) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for domain, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for name in keys:
            kind = "int" if name in ("start", "end") else "string"
            yield f'<key id="{domain}-{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>'
    yield '<graph id="knowledge" edgedefault="directed">'
    for entity in graph.entities:
        fields = {
            "iri": context.entity(entity.id),
            "label": entity.name,
            "kind": "entity",
            "types": " ".join(entity.types),
            "individual": entity.individual,
        }
        yield f"<node id={_attribute(entity.id)}>{_data('node', fields)}</node>"
    written: set[str] = set()
    for number, relation in enumerate(graph.relations):
        target = relation.object
        if relation.value is not None:
            value = relation.value
            target = context.made("value", value.value, value.datatype, value.unit).removeprefix(context.base)
            if target not in written:
                written.add(target)
                fields = {
                    "label": value.value,
                    "kind": "value",
                    "datatype": value.datatype,
                    "unit": value.unit,
                }
                yield f"<node id={_attribute(target)}>{_data('node', fields)}</node>"
        fields = {
            "predicate": relation.predicate,
            "relation": local_name(relation.predicate),
            "status": relation.status,
        }
        if relation.evidence:
            first = relation.evidence[0]
            fields |= {"evidence": first.text, "start": str(first.start), "end": str(first.end)}
        ends = f"source={_attribute(relation.subject)} target={_attribute(target)}"
        yield f'<edge id="e{number}" {ends}>{_data("edge", fields)}</edge>'
    yield "</graph>"
    yield "</graphml>"


def _data(domain: str, fields: dict[str, str]) -> str:
    return "".join(
        f'<data key="{domain}-{name}">{escape(_clean(value), {chr(13): "&#13;"})}</data>'
        for name, value in fields.items()
        if value
    )


def _attribute(value: str) -> str:
    return quoteattr(_clean(value))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
