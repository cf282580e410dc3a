"""A result in other forms: pandas, networkx and rdflib, and HTML as a notebook shows it.

Rule: the libraries are loaded when they are asked for. In HTML every word of a document is escaped, nothing is
fetched, and a long text is cut so that a notebook stays small.
"""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sameas.extraction.outputs.context import local_name
from sameas.identity.errors import SameasError

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import rdflib

    from sameas.interactive.findings import FoundRelation, Place
    from sameas.interactive.result import DocumentResult, Result
    from sameas.questions.answers import Answer


class MissingLibraryError(SameasError, ImportError):
    """What was asked for needs a library that is not installed."""


def frame_of(result: Result, what: Literal["relations", "entities", "rejected"]) -> pd.DataFrame:
    """The table of the relations, of the entities or of what was refused."""
    rows = {"relations": _relations, "entities": _entities, "rejected": _rejected}.get(what)
    if rows is None:
        raise ValueError(f"{what!r} is not a table; the tables are relations, entities and rejected")
    frame: pd.DataFrame = _library("pandas").DataFrame(rows(result), columns=_COLUMNS[what])
    return frame


def network_of(result: Result) -> nx.MultiDiGraph[Any]:
    """Nodes are the ids of entities, and a tuple of value, datatype and unit for each value."""
    graph: nx.MultiDiGraph[Any] = _library("networkx").MultiDiGraph()
    for entity in result.entities:
        graph.add_node(
            entity.id,
            label=entity.name,
            kind="entity",
            iri=entity.iri,
            types=list(entity.types),
            aliases=list(entity.aliases),
        )
    for relation in result.relations:
        target: str | tuple[str, str, str] = relation.object_id
        if not target:
            target = (relation.object, relation.datatype, relation.unit)
            graph.add_node(target, label=relation.object, kind="value", datatype=relation.datatype, unit=relation.unit)
        graph.add_edge(
            relation.subject_id,
            target,
            key=relation.predicate,
            label=relation.relation,
            confidence=relation.confidence,
            evidence=[msgspec.to_builtins(place) for place in relation.evidence],
        )
    return graph


def rdf_of(result: Result) -> rdflib.Graph:
    """Facts and provenance, as Turtle has them."""
    graph: rdflib.Graph = _library("rdflib").Graph()
    for document in result.documents:
        graph.parse(data=document.render("turtle"), format="turtle")
    return graph


def table_of(answer: Answer) -> pd.DataFrame:
    """The rows of a query; numbers are numbers, everything else is text."""
    if answer.kind != "table":
        raise ValueError("only a SELECT gives a table")
    columns = answer.variables
    rows = [[_plain(row.get(column)) for column in columns] for row in answer.bindings()]
    frame: pd.DataFrame = _library("pandas").DataFrame(rows, columns=columns)
    return frame


def _plain(term: dict[str, str] | None) -> str | int | float | bool | None:
    if term is None:
        return None
    value, kind = term["value"], term.get("datatype", "").rpartition("#")[2]
    try:
        if kind in ("integer", "int", "long", "nonNegativeInteger"):
            return int(value)
        if kind in ("decimal", "double", "float"):
            return float(value)
    except ValueError:
        return value
    return value == "true" if kind == "boolean" else value


_COLUMNS = {
    "relations": [
        "subject", "relation", "object", "unit", "confidence", "document", "page", "paragraph", "evidence", "sources",
        "predicate", "datatype", "subject_id", "object_id",
    ],
    "entities": ["name", "type", "aliases", "mentions", "confidence", "documents", "id", "iri", "types"],
    "rejected": ["code", "subject", "relation", "object", "detail", "count", "document", "start", "end"],
}  # fmt: skip


def _relations(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "subject": one.subject,
            "relation": one.relation,
            "object": one.object,
            "unit": one.unit,
            "confidence": one.confidence,
            "document": one.evidence[0].document if one.evidence else "",
            "page": one.evidence[0].page if one.evidence else None,
            "paragraph": one.evidence[0].paragraph if one.evidence else None,
            "evidence": one.evidence[0].text if one.evidence else "",
            "sources": len(one.evidence),
            "predicate": one.predicate,
            "datatype": one.datatype,
            "subject_id": one.subject_id,
            "object_id": one.object_id,
        }
        for one in result.relations
    ]


def _entities(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "type": local_name(one.types[0]) if one.types else "",
            "aliases": list(one.aliases),
            "mentions": len(one.mentions),
            "confidence": one.confidence,
            "documents": sorted({place.document for place in one.mentions}),
            "id": one.id,
            "iri": one.iri,
            "types": list(one.types),
        }
        for one in result.entities
    ]


def _rejected(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "code": one.rejection.code,
            "subject": one.rejection.subject,
            "relation": local_name(one.rejection.predicate) if one.rejection.predicate else "",
            "object": one.rejection.object,
            "detail": one.rejection.detail,
            "count": one.rejection.count,
            "document": one.document,
            "start": one.rejection.start,
            "end": one.rejection.end,
        }
        for one in result.rejected
    ]


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(f"{name} is not installed. Install it: pip install {name}") from error


_DOCUMENTS_SHOWN = 5
_TEXT_SHOWN = 20_000
_FACTS_SHOWN = 200
# Soft colours on which black text is readable; a class keeps its colour within a page.
_COLOURS = ("#cfe8ff", "#d9f2d0", "#ffe3c2", "#f3d6ff", "#fff3b0", "#ffd6d6", "#d3f3f0", "#e3e0ff")


def page_of(result: Result) -> str:
    """The result as HTML."""
    kinds = sorted({_kind(entity.types) for entity in result.entities})
    colours = {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(kinds)}
    parts = [f"<p><b>{escape(repr(result)[1:-1])}</b></p>", _legend(colours)]
    parts += [_document(document, colours) for document in result.documents[:_DOCUMENTS_SHOWN]]
    left = len(result.documents) - _DOCUMENTS_SHOWN
    if left > 0:
        parts.append(f"<p>and {left} more documents</p>")
    parts.append(_facts(result.relations))
    return f'<div style="font-family:sans-serif;color:#111;background:#fff;padding:.5em">{"".join(parts)}</div>'


def _document(document: DocumentResult, colours: dict[str, str]) -> str:
    marks = sorted(
        (mention.start, -mention.end, mention.end, entity.name, _kind(entity.types))
        for entity in document.graph.entities
        for mention in entity.mentions
        if mention.end <= _TEXT_SHOWN
    )
    text, at, pieces = document.text, 0, []
    for start, _, end, name, kind in marks:
        # Of two that overlap the first and longer one is shown.
        if start < at:
            continue
        style = f"background:{colours[kind]};color:#111;border-radius:.2em;padding:0 .15em"
        pieces.append(escape(text[at:start]))
        pieces.append(f'<mark style="{style}" title="{escape(f"{name} ({kind})")}">{escape(text[start:end])}</mark>')
        at = end
    pieces.append(escape(text[at : max(at, _TEXT_SHOWN)]))
    if len(text) > _TEXT_SHOWN:
        pieces.append(f" <i>... {len(text) - _TEXT_SHOWN} more characters</i>")
    box = "white-space:pre-wrap;border:1px solid #ccc;padding:.5em;max-height:30em;overflow:auto"
    return (
        f'<details open><summary>{escape(document.name)}</summary><div style="{box}">{"".join(pieces)}</div></details>'
    )


def _legend(colours: dict[str, str]) -> str:
    shown = (f'<mark style="background:{colour};color:#111">{escape(kind)}</mark>' for kind, colour in colours.items())
    return f"<p>{' '.join(shown)}</p>" if colours else ""


def _facts(relations: list[FoundRelation]) -> str:
    heads = ("subject", "relation", "object", "evidence", "where")
    rows = "".join(_row(relation) for relation in relations[:_FACTS_SHOWN])
    left = len(relations) - _FACTS_SHOWN
    more = f"<p>and {left} more facts: to_pandas() has them all</p>" if left > 0 else ""
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _row(relation: FoundRelation) -> str:
    first = relation.evidence[0] if relation.evidence else None
    value = f"{relation.object} {relation.unit}" if relation.unit else relation.object
    more = f" (+{len(relation.evidence) - 1})" if len(relation.evidence) > 1 else ""
    cells = (
        relation.subject,
        relation.relation,
        value,
        "" if first is None else first.text,
        "" if first is None else _where(first) + more,
    )
    written = "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells)
    return f"<tr>{written}</tr>"


def _where(place: Place) -> str:
    if place.page is not None:
        return f"{place.document}, page {place.page}"
    return place.document if place.paragraph is None else f"{place.document}, paragraph {place.paragraph}"


def _kind(types: tuple[str, ...]) -> str:
    return local_name(types[0]) if types else "thing"
