"""Whether a mention can be an end of a property, and the form it then has: a class, or a fitting datatype.

A name whose class is not known yet can be anything that its shape does not contradict; taking the end gives
it the class that the property asks for.
"""

import msgspec

from sameas.extraction.extractors.lexicon.values import STRING, ValueFit
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.model import Mention
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint
from sameas.ontology.vocabulary import THING


class Fitting:
    """Answers for one ontology; remembered for each property and class."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._values = ValueFit(index)
        self._kinds = ClassKinds(index)
        self._known: dict[tuple[str, tuple[str, ...], bool], bool] = {}
        self._fitting: dict[tuple[Constraint, str], tuple[str, ...]] = {}

    def subject(self, mention: Mention, property_iri: str) -> Mention | None:
        if mention.kind == "literal" and mention.datatype != STRING:
            return None
        return self._thing(mention, property_iri, self._index.domain(property_iri), is_subject=True)

    def target(self, mention: Mention, property_iri: str) -> Mention | None:
        if mention.kind == "literal":
            fitted = self._values.fit(mention, property_iri)
            if fitted is not None or mention.datatype != STRING:
                return fitted
        if not self._values.takes_things(property_iri):
            return self._as_text(mention, property_iri)
        return self._thing(mention, property_iri, self._index.expected_range(property_iri), is_subject=False)

    def both(self, one: Mention, other: Mention) -> Mention:
        """A name that two cues give classes to: both, unless nothing can be both."""
        new = [iri for iri in other.types if iri not in one.types and self._can_also_be(one.types, iri)]
        return msgspec.structs.replace(one, types=(*one.types, *new)) if new else one

    def _can_also_be(self, types: tuple[str, ...], iri: str) -> bool:
        kind = self._kinds.kind_of(iri)
        return all(self._kinds.kind_of(known) == kind and not self._index.are_disjoint(known, iri) for known in types)

    def _as_text(self, mention: Mention, property_iri: str) -> Mention | None:
        """A name where the property asks for text."""
        text = msgspec.structs.replace(
            mention, kind="literal", types=(), value=mention.text, datatype=STRING, individual=""
        )
        return self._values.fit(text, property_iri)

    def _thing(
        self, mention: Mention, property_iri: str, constraint: Constraint, *, is_subject: bool
    ) -> Mention | None:
        if mention.types:
            known = (property_iri, mention.types, is_subject)
            fits = self._known.get(known)
            if fits is None:
                fits = self._known[known] = any(self._is_within(iri, constraint) for iri in mention.types)
            return mention if fits else None
        wanted = self._wanted(constraint, looks_like=mention.looks_like)
        if not wanted:
            return None
        return msgspec.structs.replace(mention, kind="name", types=(wanted,), value="", datatype="")

    def _is_within(self, class_iri: str, constraint: Constraint) -> bool:
        above = self._index.class_tree.above(class_iri)
        return all(not above.isdisjoint(group) for group in constraint)

    def is_open(self, mention: Mention, property_iri: str) -> bool:
        """Whether a name could be an end of the property, but nothing tells of which of several classes."""
        if mention.types:
            return False
        return any(
            len(self._candidates(constraint, looks_like=mention.looks_like)) > 1
            for constraint in (self._index.domain(property_iri), self._index.expected_range(property_iri))
        )

    def kind_of(self, mention: Mention) -> str:
        """Whether a mention is of a person, an organisation or a place, as far as class or shape tell."""
        if mention.types:
            return next((kind for iri in mention.types if (kind := self._kinds.kind_of(iri))), "")
        return "" if mention.looks_like == "somewhere" else mention.looks_like

    def _wanted(self, constraint: Constraint, *, looks_like: str) -> str:
        """The class that an end of this constraint has, if the shape does not contradict it and there is only one."""
        if not constraint:
            return self._kinds.class_for(looks_like) or THING
        fitting = self._candidates(constraint, looks_like=looks_like)
        return fitting[0] if len(fitting) == 1 else ""

    def _candidates(self, constraint: Constraint, *, looks_like: str) -> tuple[str, ...]:
        """The most general classes that a name of this shape can have here."""
        asked = (constraint, looks_like)
        known = self._fitting.get(asked)
        if known is None:
            fitting = [iri for iri in (constraint[0] if constraint else ()) if self._can_be(iri, constraint)]
            shape = "place" if looks_like == "somewhere" else looks_like
            kinds = {iri: self._kinds.kind_of(iri) for iri in fitting}
            if looks_like not in ("", "somewhere"):
                fitting = [iri for iri in fitting if kinds[iri] in ("", shape)]
            plain = [iri for iri in fitting if kinds[iri] == shape] if shape else []
            known = self._most_general(plain or fitting)
            self._fitting[asked] = known
        return known

    def _can_be(self, iri: str, constraint: Constraint) -> bool:
        is_class = iri in self._index.classes and not self._index.is_datatype(iri)
        return is_class and self._is_within(iri, constraint)

    def _most_general(self, fitting: list[str]) -> tuple[str, ...]:
        """Those that are below no other of them; of equal ones the first."""
        above = self._index.class_tree.above
        return tuple(
            iri
            for at, iri in enumerate(fitting)
            if not any(
                other in above(iri) and (iri not in above(other) or place < at)
                for place, other in enumerate(fitting)
                if other != iri
            )
        )
