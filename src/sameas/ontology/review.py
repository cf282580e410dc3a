"""What an ontology's author would want to know before using it. Findings never stop anything; errors do
that.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from sameas.ontology import vocabulary as v
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_from_iri
from sameas.ontology.model import Ontology, OntologyProperty

Code = Literal[
    "empty",
    "no-label",
    "undeclared-class",
    "undeclared-property",
    "circle",
    "impossible-class",
    "no-domain",
    "no-range",
    "several-domains",
    "several-ranges",
    "pattern",
    "import-not-found",
]


class Finding(msgspec.Struct, frozen=True, order=True):
    """One remark about one name."""

    code: Code
    iri: str
    message: str


def review_ontology(ontology: Ontology) -> tuple[Finding, ...]:
    """All remarks, sorted. Raises nothing."""
    index = OntologyIndex(ontology)
    found = {*_of_classes(index), *_of_properties(index)}
    for iri in ontology.unresolved_imports:
        found.add(Finding("import-not-found", iri, "imported and not found; put its file into the imports folder"))
    if not ontology.classes and not ontology.properties:
        found.add(
            Finding(
                "empty",
                ontology.iri,
                "no class and no property; declare them with owl:Class and owl:ObjectProperty",
            )
        )
    return tuple(sorted(found))


def _of_classes(index: OntologyIndex) -> Iterator[Finding]:
    for one in index.ontology.classes:
        if not one.declared:
            yield Finding("undeclared-class", one.iri, "used as a class and not declared; add it or its import")
        elif not one.labels:
            yield Finding("no-label", one.iri, f"no label; the text is searched for {name_from_iri(one.iri)!r} only")
        above = sorted(index.class_tree.above(one.iri))
        apart = next(
            ((a, b) for a in above if a in index.classes for b in index.classes[a].disjoint if b in above),
            None,
        )
        if apart is not None:
            yield Finding(
                "impossible-class",
                one.iri,
                f"below {apart[0]} and {apart[1]}, which are disjoint; nothing can be one",
            )
    for circle in index.class_tree.circles():
        known = [iri for iri in circle if iri in index.classes]
        if any(set(index.classes[iri].parents) & set(circle) for iri in known):
            names = ", ".join(circle)
            yield Finding("circle", circle[0], f"subclasses of each other, read as one class: {names}")


def _of_properties(index: OntologyIndex) -> Iterator[Finding]:
    for one in index.ontology.properties:
        if not one.labels:
            yield Finding(
                "no-label",
                one.iri,
                f"no label; add rdfs:label, skos:altLabel or {v.PATTERN} as cues in the text",
            )
        if not index.domain(one.iri):
            yield Finding("no-domain", one.iri, "no domain; anything can have it")
        if not index.range(one.iri):
            yield Finding("no-range", one.iri, "no range; its value can be anything")
        yield from _of_ends(one)
        for text in one.patterns:
            if text.value.count("{subject}") != 1 or text.value.count("{object}") != 1:
                yield Finding(
                    "pattern",
                    one.iri,
                    f"{text.value!r} needs one {{subject}} and one {{object}}; it is not used",
                )
    for one_class in index.ontology.classes:
        for restriction in one_class.restrictions:
            if restriction.property not in index.properties and not v.is_built_in(restriction.property):
                yield Finding(
                    "undeclared-property",
                    restriction.property,
                    f"restricted by {one_class.iri}, not declared",
                )


def _of_ends(one: OntologyProperty) -> Iterator[Finding]:
    if len(one.domain) > 1:
        yield Finding(
            "several-domains",
            one.iri,
            "several rdfs:domain mean all of them at once; use owl:unionOf to mean any",
        )
    if len(one.range) > 1:
        yield Finding(
            "several-ranges",
            one.iri,
            "several rdfs:range mean all of them at once; use owl:unionOf to mean any",
        )
