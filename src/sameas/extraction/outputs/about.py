"""What a caller knows of a document, as plain statements: its sources, when it was read, and where in it each place is.

Rule: nothing is loaded for it. It is added to the graph of a run that is given again, which must not take longer.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs.context import OutputContext, Writable
from sameas.extraction.text.document_source import DocumentSource

Kind: TypeAlias = Literal["iri", "text", "nonNegativeInteger", "dateTime"]
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSAFE = re.compile('[\\\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


class Said(NamedTuple):
    """One statement: the predicate is a prefix and a name, the value an IRI or a literal."""

    subject: str
    predicate: str
    value: str
    kind: Kind = "text"


def about_document(graph: Graph, context: OutputContext) -> Iterator[Said]:
    """All that is known besides what the run knows, in one order."""
    for source in context.sources:
        yield from _source(source, context)
    if context.times is not None:
        for term, moment in zip(("startedAtTime", "endedAtTime"), context.times, strict=True):
            if moment:
                yield Said(context.run, f"prov:{term}", moment, "dateTime")
    if context.places is not None:
        yield from _places(graph, context)


def write_about(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """The statements as Turtle, after a head that declares the prefixes."""
    for one in about_document(graph, context):
        target.write(f"<{one.subject}> {one.predicate} {_written(one)} .\n".encode())


def _source(source: DocumentSource, context: OutputContext) -> Iterator[Said]:
    node = context.made("source", context.document, source.name, source.location)
    yield Said(context.document, "prov:wasDerivedFrom", node, "iri")
    if source.title:
        yield Said(context.document, "dcterms:title", source.title)
    yield Said(node, "rdf:type", "http://www.w3.org/ns/prov#Entity", "iri")
    if source.name:
        yield Said(node, "rdfs:label", source.name)
    if source.location:
        yield Said(node, "prov:atLocation", source.location, "iri")
    if source.media_type:
        yield Said(node, "dcterms:format", source.media_type)
    if source.size is not None:
        yield Said(node, "dcterms:extent", str(source.size), "nonNegativeInteger")
    if source.modified_at:
        yield Said(node, "dcterms:modified", source.modified_at, "dateTime")


def _places(graph: Graph, context: OutputContext) -> Iterator[Said]:
    mentions = (mention for entity in graph.entities for mention in entity.mentions)
    evidence = (each for relation in graph.relations for each in relation.evidence)
    told: set[tuple[int, int]] = set()
    for one in chain(mentions, evidence):
        # Several things can rest on the same characters.
        if (one.start, one.end) in told:
            continue
        told.add((one.start, one.end))
        target = context.made("target", context.document, str(one.start), str(one.end))
        for unit, number in context.place(one.start, one.end)._asdict().items():
            if number is not None:
                yield Said(target, f"sameas:{unit}", str(number), "nonNegativeInteger")


def _written(one: Said) -> str:
    if one.kind == "iri":
        return f"<{one.value}>"
    quoted = f'"{_UNSAFE.sub(_escape, one.value)}"'
    return quoted if one.kind == "text" else f"{quoted}^^xsd:{one.kind}"


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    code = 0xFFFD if "\ud800" <= sign <= "\udfff" else ord(sign)
    return _ESCAPES.get(sign) or f"\\u{code:04X}"
