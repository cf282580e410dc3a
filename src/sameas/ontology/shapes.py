"""SHACL shapes that follow from an ontology: domain, range, datatypes, cardinality, disjointness,
enumerations.

What a text merely leaves out is no fault, so least numbers (minimum cardinality, some values) are warnings
and the rest violations. Written as N-Triples with blank nodes; the subclass statements that `sh:class`
needs come separately.
"""

from collections.abc import Iterable, Iterator
from itertools import count

from sameas.ontology import vocabulary as v
from sameas.ontology.datatype import narrower
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint, OntologyProperty, Restriction

_INTEGER = v.XSD + "integer"


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
