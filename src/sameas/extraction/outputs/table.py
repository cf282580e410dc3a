"""The graph as CSV: a line for each entity, then a line for each relation, under one heading.

A text that a spreadsheet would run as a formula gets an apostrophe before it; numbers are left alone.
"""

import csv
import io

from sameas.extraction.graph import KnowledgeGraph
from sameas.extraction.outputs.context import OutputContext

COLUMNS = (
    "kind", "subject", "subject_name", "types", "predicate", "object", "object_name", "value", "datatype", "unit",
    "start", "end", "evidence", "status", "confidence",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = ("integer", "decimal")


def write_csv(graph: KnowledgeGraph, *, context: OutputContext) -> bytes:
    """RFC 4180 with a heading."""
    out = io.StringIO(newline="")
    rows = csv.DictWriter(out, COLUMNS, restval="", quoting=csv.QUOTE_MINIMAL)
    rows.writeheader()
    names = {entity.id: entity.name for entity in graph.entities}
    for entity in graph.entities:
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
    return out.getvalue().encode("utf-8", "replace")


def _safe(text: str) -> str:
    clean = text.replace("\x00", "\ufffd")
    return f"'{clean}" if clean.startswith(_FORMULA_STARTS) else clean
