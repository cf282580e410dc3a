"""A graph against SHACL shapes, given or derived from the ontology, through pyshacl (the extra `shacl`).

Both graphs come in through our own parser, so its gates hold here too: nothing is fetched, nothing expands.
Shapes with SPARQL that reaches outside (SERVICE, LOAD, FROM) and JavaScript are refused. Warnings do not
make a graph invalid.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.ontology import vocabulary as v
from sameas.ontology.errors import OntologyExtraError, OntologyRefusedError
from sameas.ontology.index import OntologyIndex
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Ontology
from sameas.ontology.parse import Node, Statement, Value, parse_statements, read_bounded
from sameas.ontology.shapes import class_statements, derive_shapes

if TYPE_CHECKING:
    import rdflib

_SPARQL = frozenset(v.SH + name for name in ("select", "ask", "construct", "update"))
_OUTSIDE = re.compile(r"\b(?:SERVICE|LOAD|FROM)\b", re.IGNORECASE)


class ShapeResult(msgspec.Struct, frozen=True, order=True):
    """One thing that a shape objects to."""

    severity: str
    """`violation`, `warning` or `info`."""
    focus: str
    path: str
    value: str
    constraint: str
    """The SHACL component, for instance `ClassConstraintComponent`."""
    message: str


class ShapeReport(msgspec.Struct, frozen=True):
    """The outcome; it conforms if there is no violation."""

    conforms: bool
    results: tuple[ShapeResult, ...] = ()


def validate_graph(
    graph: bytes,
    *,
    ontology: Ontology,
    shapes: bytes | Path | None = None,
    extension: str = ".ttl",
    limits: Limits = DEFAULT_LIMITS,
) -> ShapeReport:
    """The report on a graph in any notation; shapes are derived from the ontology if none are given.

    Raises OntologyExtraError without the extra `shacl`, OntologyRefusedError for a graph or shapes that reach outside,
    and what `read_ontology` raises for one that cannot be read.
    """
    index = OntologyIndex(ontology)
    data = parse_statements(graph, extension=extension, file="graph", limits=limits, keep=None)
    data.extend(_known_types(data, index))
    if shapes is None:
        wanted = parse_statements(derive_shapes(index).encode(), notation="ntriples", limits=limits, keep=None)
    elif isinstance(shapes, Path):
        content = read_bounded(shapes, limits=limits)
        wanted = parse_statements(content, extension=shapes.suffix, file=str(shapes), limits=limits, keep=None)
    else:
        wanted = parse_statements(shapes, file="shapes", limits=limits, keep=None)
    _refuse_outside(wanted)
    known = parse_statements(class_statements(index).encode(), notation="ntriples", limits=limits, keep=None)
    return _run(_to_rdflib(data), _to_rdflib(wanted), _to_rdflib(known))


def _known_types(data: list[Statement], index: OntologyIndex) -> list[Statement]:
    """What the ontology says of the individuals that the graph mentions."""
    mentioned = {node for subject, _, value in data for node in (subject, value) if isinstance(node, str)}
    return [
        (iri, v.TYPE, kind)
        for iri in sorted(mentioned & index.individuals.keys())
        for kind in index.individuals[iri].types
    ]


def _refuse_outside(statements: list[Statement]) -> None:
    for _, predicate, node in statements:
        is_query = predicate in _SPARQL and isinstance(node, Value) and _OUTSIDE.search(node.text)
        if is_query or predicate.startswith(v.SH + "js"):
            raise OntologyRefusedError(
                what=f"the shapes use {predicate} in a way that could reach outside",
                todo="Remove SERVICE, LOAD, FROM and JavaScript from the shapes",
            )


def _pyshacl() -> Any:
    try:
        import pyshacl
    except ImportError as error:
        raise OntologyExtraError(
            what="pyshacl is not installed", todo="Install it with: pip install 'sameas[shacl]'"
        ) from error
    return pyshacl


def _to_rdflib(statements: list[Statement]) -> "rdflib.Graph":
    _pyshacl()
    import rdflib

    def term(node: Node) -> Any:
        if isinstance(node, Value):
            if node.lang:
                return rdflib.Literal(node.text, lang=node.lang)
            return rdflib.Literal(node.text, datatype=rdflib.URIRef(node.datatype))
        return rdflib.BNode(node[2:]) if node.startswith("_:") else rdflib.URIRef(node)

    graph = rdflib.Graph()
    for subject, predicate, node in statements:
        # An import in the data would be an invitation to fetch.
        if predicate != v.IMPORTS:
            graph.add((term(subject), rdflib.URIRef(predicate), term(node)))
    return graph


def _run(data: "rdflib.Graph", shapes: "rdflib.Graph", known: "rdflib.Graph") -> ShapeReport:
    _, report, _ = _pyshacl().validate(
        data, shacl_graph=shapes, ont_graph=known, inference="none", allow_warnings=True, do_owl_imports=False
    )
    found = {_result(report, node) for node in report.subjects(predicate=_uri("resultSeverity"))}
    return ShapeReport(conforms=not any(one.severity == "violation" for one in found), results=tuple(sorted(found)))


def _uri(name: str) -> Any:
    import rdflib

    return rdflib.URIRef(v.SH + name)


def _result(report: "rdflib.Graph", node: Any) -> ShapeResult:
    def text(name: str) -> str:
        value = report.value(node, _uri(name))
        return "" if value is None else str(value)

    return ShapeResult(
        severity=text("resultSeverity").removeprefix(v.SH).lower(),
        focus=text("focusNode"),
        path=text("resultPath"),
        value=text("value"),
        constraint=text("sourceConstraintComponent").removeprefix(v.SH),
        message=_plain(text("resultMessage")),
    )


def _plain(message: str) -> str:
    """pyshacl prints blank nodes with made-up names; without them the same fault has the same message."""
    return re.sub(r"\s+", " ", re.sub(r"\bN[0-9a-f]{32}\b|_:\w+", "a shape", message)).strip()[:500]
