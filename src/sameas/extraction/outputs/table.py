"""The graph as CSV: a line for each entity, then a line for each relation, under one heading.

A text that a spreadsheet would run as a formula gets an apostrophe before it; numbers are left alone.
"""

import csv

from sameas.extraction.graph import Graph
from sameas.extraction.outputs.context import OutputContext
from sameas.extraction.outputs.writable import Writable

COLUMNS = (
    "kind", "subject", "subject_name", "types", "predicate", "object", "object_name", "value", "datatype", "unit",
    "start", "end", "evidence", "status", "confidence",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = ("integer", "decimal")


def write_csv(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """RFC 4180 with a heading."""
    rows = csv.DictWriter(_Encoded(target), COLUMNS, restval="", quoting=csv.QUOTE_MINIMAL)
    rows.writeheader()
    names: dict[str, str] = {}
    for entity in graph.entities:
        names[entity.id] = entity.name
        row: dict[str, str | int] = {
            "kind": "entity",
            "subject": context.entity(entity.id),
            "subject_name": _safe(entity.name),
            "types": " ".join(entity.types),
            "confidence": f"{entity.confidence:g}",
        }
        if entity.mentions:
            row |= {"start": entity.mentions[0].start, "end": entity.mentions[0].end}
        rows.writerow(row)
    for relation in graph.relations:
        row = {
            "kind": "relation",
            "subject": context.entity(relation.subject),
            "subject_name": _safe(names.get(relation.subject, "")),
            "predicate": relation.predicate,
            "status": relation.status,
            "confidence": f"{relation.confidence:g}",
        }
        if relation.value is None:
            row |= {
                "object": context.entity(relation.object),
                "object_name": _safe(names.get(relation.object, "")),
            }
        else:
            value = relation.value
            number = value.datatype.endswith(_NUMBERS)
            row |= {"value": value.value if number else _safe(value.value), "datatype": value.datatype}
            row["unit"] = _safe(value.unit)
        if relation.evidence:
            first = relation.evidence[0]
            row |= {"start": first.start, "end": first.end, "evidence": _safe(first.text)}
        rows.writerow(row)


class _Encoded:
    def __init__(self, target: Writable) -> None:
        self._target = target

    def write(self, text: str, /) -> None:
        self._target.write(text.encode("utf-8", "replace"))


def _safe(text: str) -> str:
    clean = text.replace("\x00", "\ufffd")
    return f"'{clean}" if clean.startswith(_FORMULA_STARTS) else clean
