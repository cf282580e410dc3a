"""Whether a mention can be an end of a property, and the form it then has: a class, or a fitting datatype.

A name whose class is not known yet can be anything that its shape does not contradict; taking the end gives
it the class that the property asks for.
"""

import msgspec

from sameas.extraction.graph import Mention
from sameas.extraction.kinds import ClassKinds
from sameas.extraction.lexicon.values import STRING, ValueFit
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
        return self._thing(mention, property_iri, self._index.range(property_iri), is_subject=False)

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

    def _wanted(self, constraint: Constraint, *, looks_like: str) -> str:
        """The class that an end of this constraint has, if the shape does not contradict it."""
        if not constraint:
            return self._kinds.class_for(looks_like) or THING
        for iri in constraint[0]:
            if self._index.is_datatype(iri) or iri not in self._index.classes:
                continue
            kind = self._kinds.kind_of(iri)
            if (looks_like in ("", "somewhere", kind) or not kind) and self._is_within(iri, constraint):
                return iri
        return ""
