"""The graph as JSON, and its two halves as the run's folder keeps them."""

import msgspec

from sameas.extraction.graph import KnowledgeGraph
from sameas.extraction.outputs.context import OutputContext


def write_json(graph: KnowledgeGraph, *, context: OutputContext) -> bytes:
    """Everything that was found and refused, camelCase, indented; ids come with the IRIs they stand for."""
    whole = {"idempotencyKey": context.key, "base": context.base, **msgspec.to_builtins(graph)}
    return _pretty(whole)


def write_entities(graph: KnowledgeGraph) -> bytes:
    return _pretty(graph.entities)


def write_relations(graph: KnowledgeGraph) -> bytes:
    return _pretty(graph.relations)


def write_rejected(graph: KnowledgeGraph) -> bytes:
    return _pretty(graph.rejected)


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
