"""The graph as JSON, and its parts as the run's folder keeps them.

Rule: the bytes are those of the whole indented by msgspec, but one thing is in memory at a time.
"""

from collections.abc import Iterable

import msgspec

from sameas.extraction.graph import Graph
from sameas.extraction.outputs.context import OutputContext
from sameas.extraction.outputs.writable import Writable


def write_json(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Everything that was found and refused, camelCase, indented; ids come with the IRIs they stand for."""
    head = (msgspec.json.encode(context.key), msgspec.json.encode(context.base))
    target.write(b'{\n  "idempotencyKey": %s,\n  "base": %s' % head)
    parts = {
        b"entities": graph.entities,
        b"relations": graph.relations,
        b"rejected": graph.rejected,
        b"notes": graph.notes,
    }
    for name, items in parts.items():
        target.write(b',\n  "%s": ' % name)
        _write_list(items, target, margin=b"  ")
    target.write(b"\n}\n")


def write_entities(graph: Graph, target: Writable) -> None:
    _write_list(graph.entities, target)
    target.write(b"\n")


def write_relations(graph: Graph, target: Writable) -> None:
    _write_list(graph.relations, target)
    target.write(b"\n")


def write_rejected(graph: Graph, target: Writable) -> None:
    _write_list(graph.rejected, target)
    target.write(b"\n")


def _write_list(items: Iterable[object], target: Writable, *, margin: bytes = b"") -> None:
    opening = b"["
    for item in items:
        data = msgspec.json.format(msgspec.json.encode(item), indent=2)
        # A line break inside a JSON string is escaped, so that each one here begins a line.
        target.write(b"%s\n  %s%s" % (opening, margin, data.replace(b"\n", b"\n  " + margin)))
        opening = b","
    target.write(b"[]" if opening == b"[" else b"\n%s]" % margin)
