"""The questions that extraction asks of an ontology, answered quickly. Pure; built once, read by many.

A property without a domain (or range) of its own has that of the properties above it, else the range (or
domain) of its inverse. Several `rdfs:domain` mean all of them, as OWL says; several `schema:domainIncludes`
mean any of them.
"""

from collections.abc import Iterable
from enum import Enum
from functools import cached_property

from sameas.ontology import vocabulary as v
from sameas.ontology.datatype import BROADER
from sameas.ontology.hierarchy import Hierarchy
from sameas.ontology.lexicon import Entry, build_lexicon
from sameas.ontology.model import (
    Constraint,
    Datatype,
    Individual,
    Ontology,
    OntologyClass,
    OntologyProperty,
    Restriction,
    Term,
)


class Verdict(Enum):
    """Whether a relation may be said."""

    OK = "ok"
    WRONG_DIRECTION = "wrong direction"
    NO = "no"


class OntologyIndex:
    """Look-ups over one ontology. Raises nothing: of a name that is not in the ontology nothing is known."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology
        self.classes: dict[str, OntologyClass] = {one.iri: one for one in ontology.classes}
        self.properties: dict[str, OntologyProperty] = {one.iri: one for one in ontology.properties}
        self.individuals: dict[str, Individual] = {one.iri: one for one in ontology.individuals}
        self.datatypes: dict[str, Datatype] = {one.iri: one for one in ontology.datatypes}
        self._domains: dict[str, Constraint] = {}
        self._ranges: dict[str, Constraint] = {}
        self._fitting: dict[str, tuple[str, ...]] = {}

    @cached_property
    def class_tree(self) -> Hierarchy:
        """Classes by subclass and equivalence."""
        return Hierarchy(
            {one.iri: one.parents for one in self.ontology.classes},
            {one.iri: one.equivalents for one in self.ontology.classes if one.equivalents},
        )

    @cached_property
    def property_tree(self) -> Hierarchy:
        """Properties by subproperty and equivalence."""
        return Hierarchy(
            {one.iri: one.parents for one in self.ontology.properties},
            {one.iri: one.equivalents for one in self.ontology.properties if one.equivalents},
        )

    @cached_property
    def datatype_tree(self) -> Hierarchy:
        """Kinds of values, the ontology's own above XML Schema's that carry them, and the reverse."""
        above: dict[str, set[str]] = {narrow: {broad} for narrow, broad in BROADER.items()}
        equal: dict[str, set[str]] = {}
        for one in self.ontology.datatypes:
            above.setdefault(one.iri, set()).update(one.parents)
            if not (one.parents or one.facets or one.values):
                equal.setdefault(one.iri, set()).add(one.base)
            else:
                above[one.iri].add(one.base)
        return Hierarchy(above, equal)

    @cached_property
    def _entries(self) -> tuple[Entry, ...]:
        return build_lexicon(self.ontology)

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Classes with nothing above them, sorted; equals stand for each other once."""
        tree = self.class_tree
        found = {self.shown(iri) for iri in self.classes if not self._known_parents(iri)}
        return tuple(sorted(found, key=lambda iri: (tree.same(iri)[0], iri)))

    def term(self, iri: str) -> Term | None:
        """The class, property, individual or datatype of that name."""
        return self.classes.get(iri) or self.properties.get(iri) or self.individuals.get(iri) or self.datatypes.get(iri)

    def lexicon(self) -> tuple[Entry, ...]:
        """Every text that stands for a class, property or individual, and every pattern."""
        return self._entries

    def shown(self, iri: str) -> str:
        """The member of a group of equal classes that stands for it: declared, with a label, first by IRI."""
        members = [one for one in self.class_tree.same(iri) if one in self.classes]
        return min(
            members or [iri],
            key=lambda one: (
                one not in self.classes or not self.classes[one].declared,
                one not in self.classes or not self.classes[one].labels,
                one,
            ),
        )

    def _known_parents(self, iri: str) -> tuple[str, ...]:
        return tuple(one for one in self.class_tree.parents(iri) if one in self.classes)

    def children(self, iri: str) -> tuple[str, ...]:
        """Direct subclasses that the ontology has, sorted; equals stand for each other once."""
        found = {self.shown(one) for one in self.class_tree.children(iri)}
        return tuple(sorted(one for one in found if one in self.classes))

    def ancestors(self, iri: str) -> tuple[str, ...]:
        """Everything above a class, itself and its equals left out, sorted."""
        return tuple(sorted(self.class_tree.above(iri).difference(self.class_tree.same(iri))))

    def descendants(self, iri: str) -> tuple[str, ...]:
        """Everything below a class, itself and its equals left out, sorted."""
        return tuple(sorted(self.class_tree.below(iri).difference(self.class_tree.same(iri))))

    def is_subclass(self, narrow: str, broad: str) -> bool:
        """Whether the first class is the second, or below it."""
        return broad in v.TOP or broad in self.class_tree.above(narrow)

    def is_datatype(self, iri: str) -> bool:
        """Whether the name stands for a kind of values."""
        return iri in self.datatypes or iri.startswith(v.XSD) or iri in (v.LITERAL, v.LANG_STRING)

    def are_disjoint(self, one: str, other: str) -> bool:
        """Whether nothing can be both."""
        return self._sets_apart(one, other) or self._sets_apart(other, one)

    def _sets_apart(self, one: str, other: str) -> bool:
        above_other = self.class_tree.above(other)
        return any(
            not above_other.isdisjoint(self.classes[name].disjoint)
            for name in self.class_tree.above(one)
            if name in self.classes
        )

    def narrowest(self, types: Iterable[str]) -> tuple[str, ...]:
        """The classes that have no other of them below, in the order given."""
        found = tuple(types)
        return tuple(
            iri
            for iri in found
            if not any(self.is_subclass(other, iri) and not self.is_subclass(iri, other) for other in found)
        )

    def classes_of_both(self, one: Iterable[str], other: Iterable[str]) -> tuple[str, ...] | None:
        """The classes of what has all of these, or None if nothing can."""
        left, right = tuple(one), tuple(other)
        if any(self.are_disjoint(a, b) for a in left for b in right):
            return None
        types = tuple(dict.fromkeys((*left, *right)))
        return self.narrowest(tuple(iri for iri in types if iri not in v.TOP) or types)

    def restrictions(self, iri: str) -> tuple[Restriction, ...]:
        """What a class and everything above it say of their properties."""
        return tuple(
            restriction
            for name in sorted(self.class_tree.above(iri))
            if name in self.classes
            for restriction in self.classes[name].restrictions
        )

    def domain(self, iri: str) -> Constraint:
        """What the subject must be."""
        if iri not in self._domains:
            self._domains[iri] = self._end(iri, "domain", "range")
        return self._domains[iri]

    def range(self, iri: str) -> Constraint:
        """What the object must be."""
        if iri not in self._ranges:
            self._ranges[iri] = self._end(iri, "range", "domain")
        return self._ranges[iri]

    def expected_range(self, iri: str) -> Constraint:
        """What the object is: the range, or where there is none, what the classes that restrict the property allow."""
        return self.range(iri) or self._restricted.get(iri, ())

    @cached_property
    def _restricted(self) -> dict[str, Constraint]:
        """The fillers of `owl:allValuesFrom` by property, any one of them; none where one allows everything."""
        found: dict[str, set[str]] = {}
        unclear: set[str] = set()
        for one in self.ontology.classes:
            for restriction in one.restrictions:
                if restriction.kind != "all" or restriction.inverse:
                    continue
                if len(restriction.filler) != 1:
                    unclear.add(restriction.property)
                else:
                    found.setdefault(restriction.property, set()).update(restriction.filler[0])
        return {iri: (tuple(sorted(names)),) for iri, names in found.items() if names and iri not in unclear}

    def range_for(self, class_iri: str, iri: str) -> Constraint:
        """What the object must be where the subject is of a class: the range, and what the class restricts it to."""
        groups = set(self.range(iri))
        for restriction in self._restrictions_on(class_iri, iri):
            if restriction.kind == "all":
                groups.update(restriction.filler)
        return tuple(sorted(groups))

    def _end(self, iri: str, end: str, opposite: str) -> Constraint:
        found = self._nearest(iri, end, opposite)
        if found:
            return found
        same = (iri, *(self.properties[iri].equivalents if iri in self.properties else ()))
        inverses = sorted({one for name in same if name in self.properties for one in self.properties[name].inverses})
        return next((far for other in inverses if (far := self._nearest(other, opposite, end))), ())

    def _nearest(self, iri: str, end: str, opposite: str) -> Constraint:
        """The end that the property has itself, else what the nearest ones above it have."""
        level, seen = {iri}, {iri}
        while level:
            known = [self.properties[name] for name in level if name in self.properties]
            ends = [getattr(one, end) or (getattr(one, opposite) if one.symmetric else ()) for one in known]
            groups = {group for constraint in ends for group in constraint}
            if groups:
                return tuple(sorted(groups))
            level = {name for one in known for name in (*one.parents, *one.equivalents)} - seen
            seen |= level
        return ()

    def properties_for(self, class_iri: str) -> tuple[str, ...]:
        """Properties that a member of the class can have, its own and inherited, sorted."""
        found = self._fitting.get(class_iri)
        if found is None:
            near = {iri for name in self.class_tree.above(class_iri) for iri in self._by_domain.get(name, ())}
            fitting = {iri for iri in near if self._fits_class(class_iri, self.domain(iri))}
            fitting.update(one.property for one in self.restrictions(class_iri) if not one.inverse)
            found = self._fitting[class_iri] = tuple(sorted(fitting & self.properties.keys()))
        return found

    @cached_property
    def _by_domain(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for iri in self.properties:
            for name in {name for group in self.domain(iri) for name in group}:
                found.setdefault(name, []).append(iri)
        return found

    @cached_property
    def open_properties(self) -> tuple[str, ...]:
        """Properties without any domain: anything can have them."""
        return tuple(iri for iri in self.properties if not self.domain(iri))

    def allows(self, subject: str, property_iri: str, value: str) -> Verdict:
        """Whether the subject class may have the property with such a value: a class or a datatype."""
        one = self.properties.get(property_iri)
        if one is None:
            return Verdict.NO
        if self._allows(subject, one, value):
            return Verdict.OK
        if not self.is_datatype(value) and self._allows(value, one, subject):
            return Verdict.OK if one.symmetric else Verdict.WRONG_DIRECTION
        return Verdict.NO

    def _allows(self, subject: str, one: OntologyProperty, value: str) -> bool:
        reach = self.range(one.iri)
        is_value = self.is_datatype(value)
        if is_value and one.kind == "object" and reach:
            # Without a range, files call properties of dates and numbers object properties all the same.
            return False
        if not is_value and one.kind == "datatype":
            return False
        if not self._fits_class(subject, self.domain(one.iri)):
            return False
        fits = self._fits_datatype if is_value else self._fits_class
        return fits(value, reach) and all(
            self._obeys(restriction, value) for restriction in self._restrictions_on(subject, one.iri)
        )

    def _restrictions_on(self, subject: str, property_iri: str) -> list[Restriction]:
        above = self.property_tree.above(property_iri)
        return [one for one in self.restrictions(subject) if one.property in above and not one.inverse]

    def _obeys(self, restriction: Restriction, value: str) -> bool:
        fits = self._fits_datatype if self.is_datatype(value) else self._fits_class
        if restriction.kind == "all":
            return fits(value, restriction.filler)
        forbidden = restriction.kind == "cardinality" and restriction.maximum == 0
        return not (forbidden and fits(value, restriction.filler))

    def _fits_class(self, iri: str, constraint: Constraint) -> bool:
        above = self.class_tree.above(iri)
        return all(not above.isdisjoint(group) for group in constraint)

    def _fits_datatype(self, iri: str, constraint: Constraint) -> bool:
        above = self.datatype_tree.above(iri)
        return all(v.LITERAL in group or not above.isdisjoint(group) for group in constraint)
