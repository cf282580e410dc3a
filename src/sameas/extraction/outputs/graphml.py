"""The graph as GraphML: a node for each entity and each value, an edge for each relation."""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import msgspec

from sameas.extraction.graph.model import Evidence, Graph
from sameas.extraction.outputs.context import OutputContext, Writable, local_name

_NODE_KEYS = ("iri", "label", "kind", "types", "datatype", "unit", "individual")
_EDGE_KEYS = (
    "predicate", "relation", "status", "confidence", "evidence", "start", "end", "document", "page", "paragraph",
    "places",
)  # fmt: skip
_GRAPH_KEYS = ("document", "name", "location", "title", "mediaType", "size", "modifiedAt", "readAt", "sources")
_NUMBERS = ("start", "end", "page", "paragraph", "size")
# XML 1.0 has no form for these characters, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """GraphML for Gephi, yEd, NetworkX and the like."""
    for line in _lines(graph, context):
        target.write(f"{line}\n".encode())


def _lines(graph: Graph, context: OutputContext) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for domain, keys in (("graph", _GRAPH_KEYS), ("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
        for name in keys:
            kind = "long" if name in _NUMBERS else "double" if name == "confidence" else "string"
            yield f'<key id="{domain}-{name}" for="{domain}" attr.name="{name}" attr.type="{kind}"/>'
    yield f'<graph id="knowledge" edgedefault="directed">{_data("graph", _about(context))}'
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
            target = context.iri("value", value.value, value.datatype, value.unit).removeprefix(context.base)
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
            "confidence": f"{relation.confidence:g}",
        }
        if relation.evidence:
            fields |= _evidence(relation.evidence, context)
        ends = f"source={_attribute(relation.subject)} target={_attribute(target)}"
        yield f'<edge id="e{number}" {ends}>{_data("edge", fields)}</edge>'
    yield "</graph>"
    yield "</graphml>"


def _about(context: OutputContext) -> dict[str, str]:
    """The document: the fields of its first name, and all of its names as JSON."""
    about = {"document": context.document, "readAt": context.times[0] if context.times else ""}
    sources: list[dict[str, object]] = [msgspec.to_builtins(source) for source in context.sources]
    for first in sources[:1]:
        about |= {name: str(value) for name, value in first.items()}
        about["sources"] = _json([{name: _cleaned(value) for name, value in one.items()} for one in sources])
    return about


def _evidence(evidence: tuple[Evidence, ...], context: OutputContext) -> dict[str, str]:
    """The first piece of evidence as fields of its own, and all of them as JSON."""
    places = [
        {
            "document": context.document,
            "start": one.start,
            "end": one.end,
            **_place(one, context),
            "text": _clean(one.text),
        }
        for one in evidence
    ]
    first = {name: str(value) for name, value in places[0].items() if name != "text"}
    return {**first, "evidence": evidence[0].text, "places": _json(places)}


def _place(evidence: Evidence, context: OutputContext) -> dict[str, int]:
    place = context.place(evidence.start, evidence.end)
    return {unit: number for unit, number in place._asdict().items() if number is not None}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _data(domain: str, fields: dict[str, str]) -> str:
    return "".join(
        f'<data key="{domain}-{name}">{escape(_clean(value), {chr(13): "&#13;"})}</data>'
        for name, value in fields.items()
        if value
    )


def _attribute(value: str) -> str:
    return quoteattr(_clean(value))


def _cleaned(value: object) -> object:
    return _clean(value) if isinstance(value, str) else value


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
