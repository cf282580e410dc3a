"""The graph as CSV: a line for each source of the document, each entity and each relation, under one heading. Evidence
beyond a relation's first piece has lines of its own after it.

A text that a spreadsheet would run as a formula gets an apostrophe before it; numbers are left alone.
"""

import csv

from sameas.extraction.graph.model import Evidence, Graph
from sameas.extraction.outputs.context import OutputContext, Writable

COLUMNS: tuple[str, ...] = (
    "kind", "subject", "subject_name", "types", "predicate", "object", "object_name", "value", "datatype", "unit",
    "start", "end", "evidence", "status", "confidence", "document", "page", "paragraph", "location", "size",
    "modified_at",
)  # fmt: skip
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = ("integer", "decimal")


def write_csv(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """RFC 4180 with a heading."""
    rows = csv.DictWriter(_Encoded(target), COLUMNS, restval="", quoting=csv.QUOTE_MINIMAL)
    rows.writeheader()
    for source in context.sources:
        rows.writerow(
            {
                "kind": "document",
                "subject": context.document,
                "subject_name": _safe(source.name),
                "types": _safe(source.media_type),
                "value": _safe(source.title),
                "document": context.document,
                "location": _safe(source.location),
                "size": "" if source.size is None else source.size,
                "modified_at": source.modified_at,
            }
        )
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
            row |= _place(entity.mentions[0], context)
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
            is_number = value.datatype.endswith(_NUMBERS)
            row |= {"value": value.value if is_number else _safe(value.value), "datatype": value.datatype}
            row["unit"] = _safe(value.unit)
        for number, evidence in enumerate(relation.evidence):
            placed = row | _place(evidence, context) | {"evidence": _safe(evidence.text)}
            rows.writerow(placed | {"kind": "evidence"} if number else placed)
        if not relation.evidence:
            rows.writerow(row)


def _place(evidence: Evidence, context: OutputContext) -> dict[str, str | int]:
    place = context.place(evidence.start, evidence.end)
    found: dict[str, str | int] = {"document": context.document, "start": evidence.start, "end": evidence.end}
    found |= {unit: number for unit, number in place._asdict().items() if number is not None}
    return found


class _Encoded:
    def __init__(self, target: Writable) -> None:
        self._target = target

    def write(self, text: str, /) -> None:
        self._target.write(text.encode("utf-8", "replace"))


def _safe(text: str) -> str:
    clean = text.replace("\x00", "\ufffd")
    return f"'{clean}" if clean.startswith(_FORMULA_STARTS) else clean
