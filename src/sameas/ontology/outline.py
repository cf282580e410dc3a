"""An ontology for people to look at: classes with their place in the tree, properties with what they connect.

Rule: names and places only; what extraction alone needs (patterns, facets, restrictions) is left out.
"""

from __future__ import annotations

import msgspec

from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint, Ontology, PropertyKind, Text


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
