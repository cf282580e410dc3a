"""The ends of learned relations as mentions: the exact words that were learned, a class or a value, a normal form.

Rule: examples know better than shapes and cues, and the ontology knows its individuals best. An end stands where the
model says, whatever the lexicon sees around it; it has the class that its property asks for, unless the lexicon knows a
narrower one; classes that exclude each other are never given to one place. Dates and numbers are values in the datatype
that the range wants, with the way that the examples write them beside; a normal form is the name of the thing, and the
words in the text stay its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.phrases import fold_phrase
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.lexicon.values import STRING, ValueFit
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint
from sameas.ontology.vocabulary import THING, XSD

if TYPE_CHECKING:
    from sameas.extraction.extractors.learning.decoding import LearnedMention, LearnedTriple

_Key = tuple[int, int, bool, str]
# Below this a guess does not overrule what the lexicon takes a name for: a person stays one.
_WEAK = 0.2
_PRONOUNS = frozenset(
    ("he", "she", "it", "they", "we", "i", "you", "his", "her", "its", "their", "this", "that", "who")
)
_POINTS = frozenset(XSD + name for name in ("date", "dateTime"))
_LESS_PRECISE = frozenset(XSD + name for name in ("gYear", "gYearMonth"))


class LearnedEnds:
    """Makes claims of learned triples, for one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._kinds = ClassKinds(index)
        self._values = ValueFit(index)
        self._individuals = {
            fold_phrase(entry.text): entry.iri for entry in reversed(index.lexicon()) if entry.kind == "individual"
        }

    def claims(
        self, chunk: Chunk, triples: Sequence[tuple[Span, LearnedTriple]], mentions: Sequence[Mention]
    ) -> list[Claim]:
        """A claim for each triple whose ends can be what the property asks for; the surest of a sentence come first."""
        seen = _Seen(mentions)
        made: list[Claim] = []
        known: dict[_Key, Mention] = {}
        for sentence, triple in triples:
            subject = self._subject(chunk, sentence, triple, seen)
            target = self._target(chunk, sentence, triple, seen)
            if subject is None or target is None or subject.span == target.span:
                continue
            both = [self._together(known.get(_key(end)), end) for end in (subject, target)]
            if both[0] is None or both[1] is None:
                continue
            known.update((_key(end), end) for end in both if end is not None)
            made.append(Claim(subject, triple.property, target, sentence, round(min(triple.confidence, 1.0), 2)))
        # A thing that several claims speak of has the classes of all of them.
        return [
            msgspec.structs.replace(claim, subject=known[_key(claim.subject)], object=known[_key(claim.object)])
            for claim in made
        ]

    def _subject(self, chunk: Chunk, sentence: Span, triple: LearnedTriple, seen: _Seen) -> Mention | None:
        end = self._named(chunk, sentence, triple.subject, seen)
        if end is None or end.text.lower() in _PRONOUNS:
            return None
        return self._fitted(end, self._index.domain(triple.property), triple.confidence)

    def _target(self, chunk: Chunk, sentence: Span, triple: LearnedTriple, seen: _Seen) -> Mention | None:
        end = self._named(chunk, sentence, triple.object, seen)
        if end is None:
            return None
        name = triple.property
        form = triple.object.value
        for value in self._readings(end, form, seen):
            fitted = self._values.fit(value, name)
            if fitted is not None:
                written = "" if form == fitted.value else form
                return msgspec.structs.replace(fitted, form=written)
        if self._index.properties[name].kind != "datatype":
            thing = self._fitted(end, self._index.range(name), triple.confidence)
            if thing is not None:
                return thing
        text = Mention(end.start, end.end, end.text, kind="literal", value=form, datatype=STRING)
        return self._values.fit(text, name)

    def _named(self, chunk: Chunk, sentence: Span, end: LearnedMention, seen: _Seen) -> Mention | None:
        """The words as the name of a thing: what the lexicon knows of exactly these, or a new one."""
        start, stop = end.start + sentence.start, end.end + sentence.start
        text = chunk.text[start:stop]
        if not 0 <= start < stop <= len(chunk.text) or not text.strip():
            return None
        form = end.value if end.value != text else ""
        individual = self._individuals.get(fold_phrase(end.value), "")
        if individual:
            types = self._index.individuals[individual].types
            return Mention(start, stop, text, kind="individual", types=types, individual=individual, form=form)
        known = seen.name_at(start, stop, form=form)
        if known is not None and (not form or known.form == form):
            return known
        return Mention(start, stop, text, form=form)

    def _fitted(self, end: Mention, constraint: Constraint, confidence: float) -> Mention | None:
        """The name with a class for this end of the property; a class that does not fit was a guess and gives way."""
        if any(self._is_within(iri, constraint) for iri in end.types):
            return end
        # What an individual is, the ontology itself has said.
        wanted = "" if end.individual else self._wanted(constraint, end.looks_like)
        if confidence < _WEAK and self._contradicts(end, wanted):
            return None
        return msgspec.structs.replace(end, kind="name", types=(wanted,)) if wanted else None

    def _wanted(self, constraint: Constraint, looks_like: str) -> str:
        """The class that the property asks for: of several the one of the name's shape, or else the first."""
        if not constraint:
            return self._kinds.class_for(looks_like) or THING
        fitting = [iri for iri in constraint[0] if iri in self._index.classes and self._is_within(iri, constraint)]
        shape = "place" if looks_like == "somewhere" else looks_like
        return next((iri for iri in fitting if self._kinds.kind_of(iri) == shape), fitting[0] if fitting else "")

    def _contradicts(self, end: Mention, wanted: str) -> bool:
        """Whether a name is taken for another kind of thing than the class is of: a person for an organisation."""
        kinds = {str(self._kinds.kind_of(iri)) for iri in end.types} or {end.looks_like}
        kind = self._kinds.kind_of(wanted) if wanted else ""
        return bool(kind) and kind not in kinds and kinds.isdisjoint(("", "somewhere"))

    def _is_within(self, iri: str, constraint: Constraint) -> bool:
        above = self._index.class_tree.above(iri)
        return all(not above.isdisjoint(group) for group in constraint)

    def _readings(self, end: Mention, form: str, seen: _Seen) -> Iterator[Mention]:
        """The words as a date, number or quoted text: as they stand, or else as the examples would write them."""
        said = [value for value in (_read(end.text, end), *seen.values_around(end)) if value is not None]
        taught = _read(form, end) if form != end.text else None
        if taught is not None and taught.datatype in _POINTS:
            # "04/05/1970": which is the month is for the examples to say.
            said.sort(key=lambda value: value.datatype != taught.datatype)
            if said and said[0].datatype in (taught.datatype, *_LESS_PRECISE):
                said.insert(0, taught)
        yield from said
        if taught is not None:
            yield taught

    def _together(self, known: Mention | None, end: Mention) -> Mention | None:
        """One place with the classes of both, or None where nothing can be both."""
        if known is None or end.kind == "literal":
            return end
        types = self._index.classes_of_both(known.types, end.types)
        if types is None:
            return None
        individual = known.individual or end.individual
        kind = "individual" if individual else known.kind
        return msgspec.structs.replace(known, types=types, individual=individual, kind=kind)


class _Seen:
    """What was seen in a chunk, by place."""

    def __init__(self, mentions: Sequence[Mention]) -> None:
        self._mentions = sorted(mentions, key=lambda mention: mention.order)
        self._names = {(one.start, one.end): one for one in self._mentions if one.kind != "literal"}
        self._forms = {(one.start, one.end, one.form): one for one in self._mentions if one.kind != "literal"}

    def name_at(self, start: int, end: int, *, form: str) -> Mention | None:
        """The name of exactly this place, the one of this form first."""
        return self._forms.get((start, end, form)) or self._names.get((start, end))

    def values_around(self, end: Mention) -> Iterator[Mention]:
        """Values of this very place, or that hold it and say the same; each at this place."""
        for one in self._mentions:
            if one.kind != "literal" or not one.span.covers(end.span):
                continue
            inside = _read(end.text, end)
            same = one.span == end.span if inside is None else inside.value == one.value
            if same:
                yield msgspec.structs.replace(one, start=end.start, end=end.end, text=end.text, form="")


def _read(text: str, place: Mention) -> Mention | None:
    """A text that is one date or one quantity from end to end, at this place."""
    found = _whole(text)
    return found and msgspec.structs.replace(found, start=place.start, end=place.end, text=place.text)


@lru_cache(maxsize=4096)
def _whole(text: str) -> Mention | None:
    """What a text says from end to end. Names return, and are asked about for each property."""
    found = chain(find_dates(text), find_quantities(text))
    return next((one for one in found if (one.start, one.end) == (0, len(text))), None)


def _key(end: Mention) -> _Key:
    return (end.start, end.end, end.kind == "literal", end.form)
