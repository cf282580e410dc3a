"""A graph against SHACL shapes, given or derived from the ontology, through pyshacl (the extra `shacl`).

Both graphs come in through our own parser, so its gates hold here too: nothing is fetched, nothing expands. Shapes with
SPARQL that reaches outside (SERVICE, LOAD, FROM) and JavaScript are refused. Warnings do not make a graph invalid.

Derived shapes say domain, range, datatypes, cardinality, disjointness and enumerations. What a text merely leaves out
is no fault, so least numbers (minimum cardinality, some values) are warnings and the rest violations. They are
N-Triples with blank nodes; the subclass statements that `sh:class` needs come separately.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.ontology import vocabulary as v
from sameas.ontology.datatype import narrower
from sameas.ontology.errors import OntologyExtraError, OntologyRefusedError
from sameas.ontology.index import OntologyIndex
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.model import Constraint, Ontology, OntologyProperty, Restriction
from sameas.ontology.parse import Node, Statement, Value, parse_statements, read_bounded

if TYPE_CHECKING:
    import rdflib

_INTEGER = v.XSD + "integer"

_SPARQL = frozenset(v.SH + name for name in ("select", "ask", "construct", "update"))
_OUTSIDE = re.compile(r"\b(?:SERVICE|LOAD|FROM)\b", re.IGNORECASE)


def derive_shapes(index: OntologyIndex) -> str:
    """The shapes of a whole ontology as N-Triples."""
    return _Writer(index).shapes()


def class_statements(index: OntologyIndex) -> str:
    """Who is below whom, as N-Triples, for the validator to look up."""
    lines: list[str] = []
    for one in index.ontology.classes:
        pairs = [(one.iri, above) for above in (*one.parents, *one.equivalents)]
        pairs.extend((equal, one.iri) for equal in one.equivalents)
        lines.extend(f"{_iri(narrow)} {_iri(v.SUBCLASS)} {_iri(broad)} ." for narrow, broad in pairs)
    return "\n".join([*lines, ""])


class _Writer:
    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._lines: list[str] = []
        self._blank = count()

    def shapes(self) -> str:
        for one in self._index.ontology.properties:
            self._property(one)
        for each in self._index.ontology.classes:
            others = [iri for iri in each.disjoint if iri in self._index.classes and iri != each.iri]
            if each.restrictions or others:
                shape = self._shape("targetClass", each.iri)
                for other in others:
                    unwanted = self._node()
                    self._add(unwanted, "class", _iri(other))
                    self._add(shape, "not", unwanted)
                for restriction in each.restrictions:
                    self._restriction(shape, restriction)
        return "\n".join([*self._lines, ""])

    def _node(self) -> str:
        return f"_:s{next(self._blank)}"

    def _add(self, subject: str, name: str, value: str) -> None:
        self._lines.append(f"{subject} {_iri(v.SH + name)} {value} .")

    def _shape(self, target: str, iri: str) -> str:
        shape = self._node()
        self._lines.append(f"{shape} {_iri(v.TYPE)} {_iri(v.SH + 'NodeShape')} .")
        self._add(shape, target, _iri(iri))
        return shape

    def _path(self, shape: str, iri: str, *, inverse: bool = False) -> str:
        inner = self._node()
        path = _iri(iri)
        if inverse:
            path = self._node()
            self._add(path, "inversePath", _iri(iri))
        self._add(shape, "property", inner)
        self._add(inner, "path", path)
        return inner

    def _property(self, one: OntologyProperty) -> None:
        domain, reach = self._index.domain(one.iri), self._index.range(one.iri)
        if domain or reach or one.functional or one.values:
            shape = self._shape("targetSubjectsOf", one.iri)
            self._require(shape, domain)
            inner = self._path(shape, one.iri)
            self._require(inner, reach)
            if one.functional:
                self._add(inner, "maxCount", _number(1))
            if one.values:
                self._add(inner, "in", self._list(self._enumeration(one)))
        if one.inverse_functional:
            shape = self._shape("targetObjectsOf", one.iri)
            self._add(self._path(shape, one.iri, inverse=True), "maxCount", _number(1))

    def _enumeration(self, one: OntologyProperty) -> Iterator[str]:
        datatypes = [iri for group in one.range for iri in group if self._index.is_datatype(iri)]
        for value in one.values:
            if not datatypes:
                yield _iri(value)
            for datatype in datatypes:
                yield f"{_text(value)}^^{_iri(datatype)}"

    def _restriction(self, shape: str, one: Restriction) -> None:
        match one.kind:
            case "all":
                if one.filler:
                    self._require(self._path(shape, one.property, inverse=one.inverse), one.filler)
            case "some" | "value":
                self._warn_below(self._path(shape, one.property, inverse=one.inverse), 1)
            case "cardinality":
                # A qualified number counts some values only: a largest number of all would be too strict.
                if one.maximum is not None and not one.filler:
                    inner = self._path(shape, one.property, inverse=one.inverse)
                    self._add(inner, "maxCount", _number(one.maximum))
                if one.minimum:
                    self._warn_below(self._path(shape, one.property, inverse=one.inverse), one.minimum)

    def _warn_below(self, inner: str, least: int) -> None:
        self._add(inner, "minCount", _number(least))
        self._add(inner, "severity", _iri(v.SH + "Warning"))

    def _require(self, shape: str, constraint: Constraint) -> None:
        for group in constraint:
            options = list(self._options(group))
            if options:
                self._add(shape, "or", self._list(options))

    def _options(self, group: Iterable[str]) -> Iterator[str]:
        for iri in group:
            node = self._node()
            if iri == v.LITERAL:
                self._add(node, "nodeKind", _iri(v.SH + "Literal"))
                yield node
            elif self._index.is_datatype(iri):
                declared = self._index.datatypes.get(iri)
                names = {*narrower(declared.base if declared else iri), iri}
                for name in sorted(names):
                    option = self._node()
                    self._add(option, "datatype", _iri(name))
                    yield option
            else:
                self._add(node, "class", _iri(iri))
                yield node

    def _list(self, members: Iterable[str]) -> str:
        head = _iri(v.NIL)
        for member in reversed(list(members)):
            cell = self._node()
            self._lines.append(f"{cell} {_iri(v.FIRST)} {member} .")
            self._lines.append(f"{cell} {_iri(v.REST)} {head} .")
            head = cell
        return head


def _iri(iri: str) -> str:
    return "<" + "".join(c if c > " " and c not in '<>"{}|^`\\' else f"\\u{ord(c):04X}" for c in iri) + ">"


def _text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def _number(value: int) -> str:
    return f'"{value}"^^{_iri(_INTEGER)}'


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
