"""Facts to the model: which names are classes, properties, individuals and datatypes, and what each one is.

A name that is only mentioned, for instance as a domain, is a class too, marked as not declared. What holds both ways
(equivalent, disjoint, inverse) is written on both sides, so that it does not matter which side the file says it on.
Expressions are taken to pieces: an intersection puts a class below each of its parts; a union that equals a class puts
its parts below it; a complement sets apart; an enumeration gives the class its members.
"""

from collections.abc import Iterable

from sameas.ontology import vocabulary as v
from sameas.ontology.datatype import assemble_datatypes, find_datatypes
from sameas.ontology.expression import ExpressionReader
from sameas.ontology.facts import Facts, is_blank
from sameas.ontology.limits import Limits
from sameas.ontology.model import (
    Constraint,
    Import,
    Individual,
    Ontology,
    OntologyClass,
    OntologyProperty,
    PropertyKind,
    Restriction,
    Text,
)

SUBJECTS = (
    *(v.SUBCLASS, v.EQUIVALENT_CLASS, v.DISJOINT, v.DISJOINT_UNION),
    *(v.UNION, v.INTERSECTION, v.COMPLEMENT),
)
"""Whoever has one of these is a class, declared or not."""


class ClassAxioms:
    """The statements about the classes that a file describes, collected once."""

    def __init__(self, facts: Facts, read: ExpressionReader, described: set[str]) -> None:
        self._facts = facts
        self._read = read
        self._described = described
        self.parents: dict[str, set[str]] = {}
        self.equivalents: dict[str, set[str]] = {}
        self.disjoint: dict[str, set[str]] = {}
        self.restrictions: dict[str, set[Restriction]] = {}
        self.members: dict[str, set[str]] = {}
        """Individual -> the classes that list it."""
        self.mentioned: set[str] = set()
        for iri in sorted(described):
            self._describe(iri)
        self._find_disjoint_groups()

    def _describe(self, iri: str) -> None:
        """Take in what is said of a class: above it, equal to it, apart from it."""
        facts = self._facts
        for node in facts.nodes(iri, v.SUBCLASS):
            self._absorb(iri, node, equal=False)
        for node in facts.nodes(iri, v.EQUIVALENT_CLASS):
            self._absorb(iri, node, equal=True)
        # Older files write the expression on the class itself.
        self._absorb_parts(iri, iri, equal=True)
        for other in facts.iris(iri, v.DISJOINT):
            self._set_apart(iri, other)
        for head in facts.objects(iri, v.DISJOINT_UNION):
            members = [node for node in self._read.items(head) if isinstance(node, str) and not is_blank(node)]
            self._keep_apart(members)
            for member in members:
                self._above(member, iri)

    def _absorb(self, iri: str, node: str, *, equal: bool) -> None:
        self._read.step()
        if is_blank(node):
            self._read.constraint(node)  # refuses an expression that contains itself
            self._absorb_parts(iri, node, equal=equal)
        elif equal and node != iri and not v.is_built_in(node):
            self.equivalents.setdefault(iri, set()).add(node)
            if node in self._described:
                self.equivalents.setdefault(node, set()).add(iri)
        elif not equal:
            self._above(iri, node)

    def _absorb_parts(self, iri: str, node: str, *, equal: bool) -> None:
        facts = self._facts
        for head in facts.objects(node, v.INTERSECTION):
            for member in self._read.items(head):
                if isinstance(member, str):
                    self._absorb(iri, member, equal=False)
        for head in facts.objects(node, v.UNION):
            members = [one for one in self._read.items(head) if isinstance(one, str)]
            for member in members:
                if equal and not is_blank(member):
                    self._above(member, iri)
        for other in facts.iris(node, v.COMPLEMENT):
            self._set_apart(iri, other)
        if equal:
            for individual in self._read.enumerated(node):
                if isinstance(individual, str):
                    self.members.setdefault(individual, set()).add(iri)
        for restriction in self._read.restrictions(node):
            self.restrictions.setdefault(iri, set()).add(restriction)
            self.mentioned.update(name for group in restriction.filler for name in group)

    def _above(self, iri: str, parent: str) -> None:
        if parent != iri and not v.is_built_in(parent) and not v.is_built_in(iri):
            self.parents.setdefault(iri, set()).add(parent)
            self.mentioned.update((iri, parent))

    def _set_apart(self, one: str, other: str) -> None:
        if not v.is_built_in(other):
            self.disjoint.setdefault(one, set()).add(other)
            self.disjoint.setdefault(other, set()).add(one)

    def _keep_apart(self, members: Iterable[str]) -> None:
        known = sorted(set(members))
        for position, one in enumerate(known):
            for other in known[position + 1 :]:
                self._read.step()
                self._set_apart(one, other)

    def _find_disjoint_groups(self) -> None:
        for node in sorted(self._facts.of_type(v.ALL_DISJOINT)):
            for head in self._facts.objects(node, v.MEMBERS):
                self._keep_apart(
                    member for member in self._read.items(head) if isinstance(member, str) and not is_blank(member)
                )


def assemble(facts: Facts, *, limits: Limits, root: Facts | None = None, imports: tuple[Import, ...] = ()) -> Ontology:
    """The ontology that the facts describe; its name and title come from `root`, the file without imports."""
    return _Assembly(facts, limits).ontology(root or facts, imports)


class _Assembly:
    def __init__(self, facts: Facts, limits: Limits) -> None:
        self._facts = facts
        self._read = ExpressionReader(facts, limits)
        self._datatypes = find_datatypes(facts)
        self._properties = self._find_properties()
        self._declared = self._class_names(facts.of_type(*v.CLASS_TYPES, v.DEPRECATED_CLASS))
        self._described = self._declared | (self._class_names(set(facts.subjects(*SUBJECTS))) - self._properties)
        self._deprecated = self._find_deprecated()
        self._mentioned: set[str] = set()
        self._axioms = ClassAxioms(facts, self._read, self._described)
        self._mention((tuple(self._axioms.mentioned),))

    def ontology(self, root: Facts, imports: tuple[Import, ...]) -> Ontology:
        properties = self._assemble_properties()
        individuals = self._assemble_individuals()
        name = min((iri for iri in root.of_type(v.ONTOLOGY) if not is_blank(iri)), default="")
        return Ontology(
            iri=name,
            version_iri=min(root.iris(name, v.VERSION_IRI), default=""),
            titles=root.texts(name, *v.TITLES),
            imports=imports,
            classes=self._assemble_classes(),
            properties=properties,
            individuals=individuals,
            datatypes=assemble_datatypes(self._facts, self._datatypes, self._read),
        )

    def _class_names(self, names: set[str]) -> set[str]:
        values = self._datatypes | v.SCHEMA_DATATYPES
        return {iri for iri in names - values if not is_blank(iri) and not v.is_built_in(iri)}

    def _find_properties(self) -> set[str]:
        facts = self._facts
        typed = facts.of_type(*v.PROPERTY_TYPES, v.DEPRECATED_PROPERTY)
        connecting = set(facts.subjects(v.DOMAIN, v.RANGE, *v.DOMAIN_INCLUDES, *v.RANGE_INCLUDES))
        typed.update(connecting, facts.subjects(v.SUBPROPERTY))
        notes = facts.of_type(v.ANNOTATION_PROPERTY) - connecting
        notes -= facts.of_type(v.OBJECT_PROPERTY, v.DATATYPE_PROPERTY)
        return {iri for iri in typed - notes if not is_blank(iri) and not v.is_built_in(iri)}

    def _mention(self, constraint: Constraint) -> None:
        for group in constraint:
            self._mentioned.update(iri for iri in group if not v.is_built_in(iri) and iri not in self._datatypes)

    def _names(self, iri: str) -> tuple[tuple[Text, ...], tuple[Text, ...], tuple[Text, ...]]:
        facts = self._facts
        labels = facts.texts(iri, *v.LABELS)
        return labels, facts.texts(iri, *v.ALT_LABELS), facts.texts(iri, *v.COMMENTS)

    def _find_deprecated(self) -> set[str]:
        facts = self._facts
        found = facts.having(v.DEPRECATED, "true", "1")
        found.update(facts.subjects(*v.SUPERSEDED))
        return found | facts.of_type(v.DEPRECATED_CLASS, v.DEPRECATED_PROPERTY)

    def _assemble_classes(self) -> tuple[OntologyClass, ...]:
        found: list[OntologyClass] = []
        for iri in sorted(self._described | (self._mentioned - self._properties)):
            labels, alt_labels, comments = self._names(iri)
            found.append(
                OntologyClass(
                    iri=iri,
                    labels=labels,
                    alt_labels=alt_labels,
                    comments=comments,
                    parents=tuple(sorted(self._axioms.parents.get(iri, ()))),
                    equivalents=tuple(sorted(self._axioms.equivalents.get(iri, ()))),
                    disjoint=tuple(sorted(self._axioms.disjoint.get(iri, ()))),
                    restrictions=tuple(sorted(self._axioms.restrictions.get(iri, ()), key=_restriction_order)),
                    deprecated=iri in self._deprecated,
                    declared=iri in self._declared,
                    keys=self._keys(iri),
                )
            )
        return tuple(found)

    def _keys(self, iri: str) -> tuple[tuple[str, ...], ...]:
        lists = [self._read.items(head) for head in self._facts.objects(iri, v.HAS_KEY)]
        named = [sorted({one for one in items if isinstance(one, str) and not is_blank(one)}) for items in lists]
        return tuple(sorted({tuple(key) for key in named if key}))

    def _assemble_properties(self) -> tuple[OntologyProperty, ...]:
        inverses = self._both_ways(v.INVERSES)
        equivalents = self._both_ways({v.EQUIVALENT_PROPERTY})
        found: list[OntologyProperty] = []
        for iri in sorted(self._properties):
            labels, alt_labels, comments = self._names(iri)
            domain = self._constraint(iri, v.DOMAIN, v.DOMAIN_INCLUDES)
            reach = self._constraint(iri, v.RANGE, v.RANGE_INCLUDES)
            types = self._facts.iris(iri, v.TYPE)
            kind = self._kind(types, reach)
            self._mention(domain)
            if kind != "datatype":
                self._mention(reach)
            values = [self._read.values(node) for node in self._facts.nodes(iri, v.RANGE) if is_blank(node)]
            traits = {name: type_ in types for type_, name in v.TRAITS.items()}
            found.append(
                OntologyProperty(
                    iri=iri,
                    kind=kind,
                    labels=labels,
                    alt_labels=alt_labels,
                    comments=comments,
                    patterns=self._facts.texts(iri, v.PATTERN),
                    parents=tuple(
                        sorted(p for p in self._facts.iris(iri, v.SUBPROPERTY) - {iri} if not v.is_built_in(p))
                    ),
                    equivalents=tuple(sorted(equivalents.get(iri, ()))),
                    inverses=tuple(sorted(inverses.get(iri, ()))),
                    domain=domain,
                    range=reach,
                    values=tuple(sorted(set().union(*values))),
                    deprecated=iri in self._deprecated,
                    **traits,
                )
            )
        return tuple(found)

    def _both_ways(self, predicates: Iterable[str]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for predicate in predicates:
            for one in self._facts.subjects(predicate):
                for other in self._facts.iris(one, predicate):
                    if not is_blank(one) and not v.is_built_in(other):
                        found.setdefault(one, set()).add(other)
                        found.setdefault(other, set()).add(one)
        return found

    def _constraint(self, iri: str, every: str, some: Iterable[str]) -> Constraint:
        parts = [self._read.constraint(node) for node in self._facts.nodes(iri, every)]
        includes = sorted(self._facts.nodes(iri, *some))
        if includes:
            parts.append(self._read.union(includes))
        return self._read.both(parts)

    def _kind(self, types: set[str], reach: Constraint) -> PropertyKind:
        is_object = v.OBJECT_PROPERTY in types or bool(types & v.OBJECT_TRAITS)
        is_datatype = v.DATATYPE_PROPERTY in types
        if is_object == is_datatype:
            names = {iri for group in reach for iri in group}
            values = {iri for iri in names if iri in self._datatypes or iri.startswith(v.XSD) or iri == v.LITERAL}
            is_datatype = bool(names) and values == names
            is_object = bool(names) and not values
        return "object" if is_object else "datatype" if is_datatype else "any"

    def _assemble_individuals(self) -> tuple[Individual, ...]:
        types: dict[str, set[str]] = {iri: set(classes) for iri, classes in self._axioms.members.items()}
        metatypes = v.SCHEMA_DATATYPES | v.CLASS_TYPES | v.PROPERTY_TYPES
        for kind, members in self._facts.types():
            plain = kind in (v.THING, v.OWL + "NamedIndividual")
            if kind in metatypes or is_blank(kind) or kind.startswith(v.SH) or (v.is_built_in(kind) and not plain):
                continue
            for iri in members:
                known = types.setdefault(iri, set())
                if not plain:
                    known.add(kind)
        found: list[Individual] = []
        for iri in sorted(types):
            if is_blank(iri) or iri in self._properties or iri in self._datatypes or v.is_built_in(iri):
                continue
            self._mention((tuple(types[iri]),))
            labels, alt_labels, comments = self._names(iri)
            found.append(
                Individual(
                    iri=iri,
                    labels=labels,
                    alt_labels=alt_labels,
                    comments=comments,
                    types=tuple(sorted(types[iri])),
                    same_as=tuple(sorted(self._facts.iris(iri, v.SAME_AS))),
                )
            )
        return tuple(found)


def _restriction_order(one: Restriction) -> tuple[object, ...]:
    return (
        one.property,
        one.kind,
        one.inverse,
        one.filler,
        one.minimum,
        -1 if one.maximum is None else one.maximum,
        one.value,
    )
