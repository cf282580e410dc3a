"""The graph as JSON, and its parts as the run's folder keeps them.

Rule: the bytes are those of the whole indented by msgspec, but one thing is in memory at a time.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from sameas.extraction.graph.model import Entity, Graph, Relation
from sameas.extraction.outputs.context import OutputContext, Writable


def write_json(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Everything that was found and refused, camelCase, indented; ids come with the IRIs they stand for."""
    about = {
        "iri": context.document,
        "sha256": context.text_hash,
        "sources": context.sources,
        "readAt": context.times[0] if context.times else "",
    }
    head = (context.key, context.base, {name: value for name, value in about.items() if value})
    target.write(b'{\n  "idempotencyKey": %s,\n  "base": %s,\n  "document": ' % tuple(map(_encoded, head[:2])))
    target.write(_indented(head[2], margin=b"  "))
    parts: dict[bytes, Iterable[object]] = {
        b"entities": (_placed(entity, "mentions", context) for entity in graph.entities),
        b"relations": (_placed(relation, "evidence", context) for relation in graph.relations),
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


def _placed(item: Entity | Relation, name: str, context: OutputContext) -> dict[str, Any]:
    """The thing, each piece of its evidence with its document and its place."""
    plain: dict[str, Any] = msgspec.to_builtins(item)
    for evidence in plain.get(name, ()):
        evidence["document"] = context.document
        place = context.place(evidence["start"], evidence["end"])
        evidence.update({unit: number for unit, number in place._asdict().items() if number is not None})
    return plain


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def _indented(item: object, *, margin: bytes) -> bytes:
    # A line break inside a JSON string is escaped, so that each one here begins a line.
    return msgspec.json.format(_encoded(item), indent=2).replace(b"\n", b"\n" + margin)


def _write_list(items: Iterable[object], target: Writable, *, margin: bytes = b"") -> None:
    opening = b"["
    for item in items:
        target.write(b"%s\n  %s%s" % (opening, margin, _indented(item, margin=b"  " + margin)))
        opening = b","
    target.write(b"[]" if opening == b"[" else b"\n%s]" % margin)
