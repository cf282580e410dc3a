"""Graphs to files: Turtle, JSON-LD, N-Quads, GraphML, CSV, Cypher and JSON."""

from sameas.extraction.outputs.context import DEFAULT_BASE, OutputContext
from sameas.extraction.outputs.document import write_entities, write_json, write_rejected, write_relations
from sameas.extraction.outputs.formats import FORMATS, MEDIA_TYPES, OutputFormat, render, write_graph
from sameas.extraction.outputs.spooled import SpooledOutputs
from sameas.extraction.outputs.writable import Writable

__all__ = [
    "DEFAULT_BASE",
    "FORMATS",
    "MEDIA_TYPES",
    "OutputContext",
    "OutputFormat",
    "SpooledOutputs",
    "Writable",
    "render",
    "write_entities",
    "write_graph",
    "write_json",
    "write_rejected",
    "write_relations",
]
