"""An ontology for people to look at: as an outline for pages, classes with their place in the tree and properties with
what they connect; and as lines of text, each class with its own properties and those it inherits. Pure.

The outline has names and places only; what extraction alone needs (patterns, facets, restrictions) is left out. In
lines, equal classes share one, and a class below several others is written out once and pointed to afterwards, so the
length follows the ontology and not the number of ways through it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sameas.ontology import vocabulary as v
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import local_name, name_of
from sameas.ontology.model import Constraint, Ontology, OntologyProperty, PropertyKind, Text

INDENT = "  "


class ClassOutline(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A class: its name for people, and the classes right above it."""

    iri: str
    label: str
    comment: str = ""
    parents: tuple[str, ...] = ()


class PropertyOutline(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A property: its name for people, and the classes or datatypes that it may connect, any of them."""

    iri: str
    label: str
    comment: str = ""
    kind: PropertyKind = "any"
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()


class Outline(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole ontology in outline."""

    iri: str = ""
    title: str = ""
    version: str = ""
    classes: tuple[ClassOutline, ...] = ()
    properties: tuple[PropertyOutline, ...] = ()


def outline_of(ontology: Ontology) -> Outline:
    """The outline of an ontology."""
    index = OntologyIndex(ontology)
    classes = tuple(
        ClassOutline(
            iri=one.iri,
            label=_best(one.labels) or _local(one.iri),
            comment=_best(one.comments),
            parents=tuple(parent for parent in one.parents if parent in index.classes),
        )
        for one in ontology.classes
        if index.shown(one.iri) == one.iri
    )
    properties = tuple(
        PropertyOutline(
            iri=one.iri,
            label=_best(one.labels) or _local(one.iri),
            comment=_best(one.comments),
            kind=one.kind,
            domain=_names(index.domain(one.iri)),
            range=_names(index.expected_range(one.iri)),
        )
        for one in ontology.properties
    )
    title = _best(ontology.titles) or _local(ontology.iri)
    return Outline(iri=ontology.iri, title=title, version=ontology.version, classes=classes, properties=properties)


def _names(constraint: Constraint) -> tuple[str, ...]:
    return tuple(sorted({name for group in constraint for name in group}))


def _best(texts: tuple[Text, ...]) -> str:
    """The text in English, or without a language, or the first."""
    if not texts:
        return ""
    return min(texts, key=lambda text: (text.lang != "en" and not text.lang.startswith("en-"), text.lang != "")).value


def _local(iri: str) -> str:
    return iri.rstrip("/#").replace("#", "/").rpartition("/")[2] or iri


def show_ontology(ontology: Ontology, *, lang: str = "en") -> list[str]:
    """The whole text: a head line, the tree, and what belongs to no class. Raises nothing."""
    return list(_Page(ontology, lang).lines())


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


class _Page:
    def __init__(self, ontology: Ontology, lang: str) -> None:
        self._index = OntologyIndex(ontology)
        self._lang = lang
        self._written: set[str] = set()

    def lines(self) -> Iterator[str]:
        ontology = self._index.ontology
        title = next((text.value for text in ontology.titles), "") or ontology.iri or "ontology"
        yield title
        yield ", ".join(
            [
                _count(len(ontology.classes), "class", "classes"),
                _count(len(ontology.properties), "property", "properties"),
                _count(len(ontology.individuals), "individual", "individuals"),
                _count(len(ontology.datatypes), "datatype", "datatypes"),
            ]
        )
        if ontology.version:
            yield f"version {ontology.version}"
        for item in ontology.imports:
            yield f"imports {item.iri}: " + (item.file or "not found, put the file into the imports folder")
        yield ""
        for root in self._index.roots:
            yield from self._tree(root)
        # For what hangs below names that the ontology does not have.
        for iri in sorted(self._index.classes):
            if self._index.shown(iri) not in self._written:
                yield from self._tree(self._index.shown(iri))
        anywhere = [self._index.properties[iri] for iri in self._index.open_properties]
        if anywhere:
            yield ""
            yield "any class"
            for one in anywhere:
                yield f"{INDENT}- {self._arrow(one, self._index.expected_range(one.iri))}"

    def _tree(self, root: str) -> Iterator[str]:
        waiting = [(root, 0)]
        while waiting:
            iri, depth = waiting.pop()
            margin = INDENT * depth
            head = margin + self._head(iri)
            children = self._index.children(iri)
            if iri in self._written:
                yield f"{head} (above)"
                continue
            self._written.add(iri)
            yield head
            yield from (f"{margin}{INDENT}{line}" for line in self._properties(iri))
            waiting.extend((child, depth + 1) for child in reversed(children))

    def _head(self, iri: str) -> str:
        others = [one for one in self._index.class_tree.same(iri) if one != iri]
        equal = "".join(f" = {self._name(one)}" for one in others)
        notes = "" if self._index.classes[iri].declared else " (not declared)"
        notes += " (deprecated)" if self._index.classes[iri].deprecated else ""
        return f"{self._name(iri)} <{iri}>{equal}{notes}"

    def _properties(self, iri: str) -> Iterator[str]:
        same = set(self._index.class_tree.same(iri))
        inherited: dict[str, list[str]] = {}
        for name in self._index.properties_for(iri):
            source = self._source(name, iri, same)
            if source is None:
                yield f"- {self._arrow(self._index.properties[name], self._index.range_for(iri, name))}"
            else:
                inherited.setdefault(source, []).append(self._name(name))
        for source in sorted(inherited, key=lambda one: (self._name(one), one)):
            yield f"from {self._name(source)}: {', '.join(inherited[source])}"

    def _source(self, name: str, iri: str, same: set[str]) -> str | None:
        """The class above that brings the property, or None if the class itself does."""
        named = {one for group in self._index.domain(name) for one in group}
        named.update(
            one
            for one in self._index.class_tree.above(iri)
            if one in self._index.classes
            and any(restriction.property == name for restriction in self._index.classes[one].restrictions)
        )
        if named & same:
            return None
        # The nearest class above: the one with the most above itself.
        tree = self._index.class_tree
        return min(named & tree.above(iri), key=lambda one: (-len(tree.above(one)), one))

    def _arrow(self, one: OntologyProperty, reach: Constraint) -> str:
        notes = [name for name in ("functional", "symmetric", "transitive", "deprecated") if getattr(one, name)]
        tail = f" ({', '.join(notes)})" if notes else ""
        return f"{self._name(one.iri)} -> {self._constraint(reach)}{tail}"

    def _constraint(self, constraint: Constraint) -> str:
        if not constraint:
            return "anything"
        groups = [" or ".join(self._name(one) for one in group) or "nothing" for group in constraint]
        return groups[0] if len(groups) == 1 else " and ".join(f"({group})" for group in groups)

    def _name(self, iri: str) -> str:
        if iri.startswith((v.XSD, v.RDFS, v.RDF)):
            return local_name(iri)
        term = self._index.term(iri)
        return name_of(term, lang=self._lang) if term is not None else local_name(iri)
