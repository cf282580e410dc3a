"""The formats a graph can be written in, by the names that people type."""

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, get_args

from sameas.extraction.graph.model import Graph
from sameas.extraction.outputs.context import OutputContext, Writable
from sameas.extraction.outputs.cypher import write_cypher
from sameas.extraction.outputs.document import write_json
from sameas.extraction.outputs.graphml import write_graphml
from sameas.extraction.outputs.rdf import write_jsonld, write_nquads, write_turtle
from sameas.extraction.outputs.table import write_csv

OutputFormat: TypeAlias = Literal["turtle", "jsonld", "nquads", "graphml", "csv", "cypher", "json"]
FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)


class Writer(Protocol):
    def __call__(self, graph: Graph, target: Writable, *, context: OutputContext) -> None: ...


_WRITERS: Mapping[OutputFormat, Writer] = MappingProxyType(
    {
        "turtle": write_turtle,
        "jsonld": write_jsonld,
        "nquads": write_nquads,
        "graphml": write_graphml,
        "csv": write_csv,
        "cypher": write_cypher,
        "json": write_json,
    }
)
MEDIA_TYPES: Mapping[OutputFormat, str] = MappingProxyType(
    {
        "turtle": "text/turtle",
        "jsonld": "application/ld+json",
        "nquads": "application/n-quads",
        "graphml": "application/graphml+xml",
        "csv": "text/csv",
        "cypher": "application/x-cypher-query",
        "json": "application/json",
    }
)


def render(graph: Graph, *, to: OutputFormat, context: OutputContext) -> bytes:
    """The graph in a format."""
    whole = io.BytesIO()
    write_graph(graph, whole, to=to, context=context)
    return whole.getvalue()


def write_graph(graph: Graph, target: Writable, *, to: OutputFormat, context: OutputContext) -> None:
    """The graph in a format, in pieces."""
    writer = _WRITERS.get(to)
    if writer is None:
        raise ValueError(f"{to!r} is not a format; the formats are {', '.join(FORMATS)}")
    writer(graph, target, context=context)
