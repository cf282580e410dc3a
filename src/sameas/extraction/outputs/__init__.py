"""Graphs to files: Turtle, JSON-LD, N-Quads, GraphML, CSV, Cypher and JSON."""

from sameas.extraction.outputs.context import DEFAULT_BASE, OutputContext, Writable, document_iri, write_about
from sameas.extraction.outputs.document import write_entities, write_json, write_rejected, write_relations
from sameas.extraction.outputs.formats import FORMATS, MEDIA_TYPES, OutputFormat, OutputSpool, render, write_graph

__all__ = [
    "DEFAULT_BASE",
    "FORMATS",
    "MEDIA_TYPES",
    "OutputContext",
    "OutputFormat",
    "OutputSpool",
    "Writable",
    "document_iri",
    "render",
    "write_about",
    "write_entities",
    "write_graph",
    "write_json",
    "write_rejected",
    "write_relations",
]
