"""What a file says of its classes: above, equal, apart, and restricted; with expressions taken to pieces.

An intersection puts a class below each of its parts; a union that equals a class puts its parts below it; a
complement sets apart; an enumeration gives the class its members.
"""

from collections.abc import Iterable

from sameas.ontology import vocabulary as v
from sameas.ontology.expression import ExpressionReader
from sameas.ontology.facts import Facts, is_blank
from sameas.ontology.model import Restriction

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
