"""A result in the forms of other libraries: pandas, networkx, rdflib."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sameas.extraction.outputs.context import local_name
from sameas.identity.errors import SameasError

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import rdflib

    from sameas.interactive.result import Result
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
