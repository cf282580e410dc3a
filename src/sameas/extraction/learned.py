"""The learned model as an extractor: the lexicon's names and values, with relations from both.

Rule: an end of a learned relation is the lexicon's mention where the two overlap, so that one thing has one place;
where the lexicon saw nothing, the span is a new mention with the class that the property asks for. What the
ontology's domain or range forbids is not offered. Numbers and dates are written as the range wants them, or not
at all; a normal form that is the name of a known individual stands for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sameas.extraction.chunking import Chunk
from sameas.extraction.embedded import LEARNED, LEARNED_VERSION, MINIMUM_CONFIDENCE, learned_settings
from sameas.extraction.extractor import Found
from sameas.extraction.graph import Claim, Mention, Span
from sameas.extraction.kinds import ClassKinds
from sameas.extraction.lexicon.extractor import LexiconExtractor
from sameas.extraction.lexicon.fitting import Fitting
from sameas.extraction.lexicon.phrases import fold_phrase
from sameas.extraction.lexicon.values import STRING
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import name_of
from sameas.ontology.model import Constraint

if TYPE_CHECKING:
    from sameas.extraction.learning.decoding import LearnedTriple
    from sameas.extraction.learning.decoding import Mention as LearnedMention
    from sameas.extraction.learning.model import LearnedModel
    from sameas.extraction.learning.schema import Schema

_REMEMBERED = 64


def schema_of(index: OntologyIndex) -> Schema:
    """What the learner needs to know of an ontology."""
    from sameas.extraction.learning.schema import Property, Schema

    properties = []
    for one in index.ontology.properties:
        if one.deprecated:
            continue
        reach = _first(index.range(one.iri))
        is_value = bool(reach) and index.is_datatype(reach)
        properties.append(
            Property(
                id=one.iri,
                label=name_of(one),
                domain=_first(index.domain(one.iri)) or None,
                range=reach if reach and not is_value else None,
                datatype=reach if is_value else None,
            )
        )
    return Schema(tuple(properties), {one.iri: name_of(one) for one in index.ontology.classes})


def _first(constraint: Constraint) -> str:
    """The one class or datatype of an end, where there is one."""
    return constraint[0][0] if len(constraint) == 1 and len(constraint[0]) == 1 else ""


class LearnedExtractor:
    """Finds what the lexicon finds, and what the examples taught. Made once, used for any number of chunks."""

    def __init__(self, index: OntologyIndex, model: LearnedModel, *, minimum: float = MINIMUM_CONFIDENCE) -> None:
        self._index = index
        self._model = model
        self._minimum = minimum
        self._lexicon = LexiconExtractor(index)
        self._fitting = Fitting(index)
        self._kinds = ClassKinds(index)
        self._individuals = {
            fold_phrase(entry.text): entry.iri for entry in reversed(index.lexicon()) if entry.kind == "individual"
        }
        self._recent: OrderedDict[str, tuple[tuple[Span, LearnedTriple], ...]] = OrderedDict()

    @property
    def name(self) -> str:
        return LEARNED

    @property
    def version(self) -> str:
        return LEARNED_VERSION

    @property
    def settings(self) -> Mapping[str, Any]:
        return learned_settings(self._model.version, minimum=self._minimum)

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """The lexicon's mentions, made more specific or added to by the ends of learned relations."""
        found = await self._lexicon.extract_entities(chunk, focus)
        said = await self._lexicon.extract_relations(chunk, found.items, focus)
        places = {(mention.start, mention.end): mention for mention in found.items}
        for claim in self._claims(chunk, found.items, focus, said=said.items):
            for end in (claim.subject, claim.object):
                place = (end.start, end.end)
                known = places.get(place)
                if known is None or (not known.types and (end.kind != "literal" or known.kind != "literal")):
                    places[place] = end
                elif end.kind != "literal" and known.kind == "name":
                    places[place] = self._better(known, end)
        items = _outermost(places.values())
        return Found(tuple(items), self._notes(found.notes))

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """The lexicon's claims and the learned ones, each relation between two places once."""
        found = await self._lexicon.extract_relations(chunk, mentions, focus)
        claims = {_ends(claim): claim for claim in found.items}
        for claim in self._claims(chunk, mentions, focus, said=found.items):
            claims.setdefault(_ends(claim), claim)
        return Found(tuple(sorted(claims.values(), key=lambda claim: claim.order)), self._notes(found.notes))

    def _notes(self, notes: Iterable[str]) -> tuple[str, ...]:
        # Relations that were learned need no cue in the ontology.
        return tuple(note for note in notes if "no cue for relations" not in note)

    def _claims(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus, *, said: Sequence[Claim]) -> list[Claim]:
        """The learned claims; ends of what the lexicon said keep their class."""
        sure = frozenset(end.span for claim in said for end in (claim.subject, claim.object))
        allowed = None if focus.is_whole else frozenset(focus.properties)
        seen = _Seen(mentions)
        claims = []
        for sentence, triple in self._triples(chunk):
            if triple.property not in self._index.properties or (allowed and triple.property not in allowed):
                continue
            claim = self._claim(chunk, sentence, triple, seen, sure)
            if claim is not None:
                claims.append(claim)
        return claims

    def _triples(self, chunk: Chunk) -> tuple[tuple[Span, LearnedTriple], ...]:
        known = self._recent.get(chunk.digest)
        if known is None:
            known = tuple(
                (sentence, triple)
                for sentence in chunk.sentences
                for triple in self._model.extract(chunk.text[sentence.start : sentence.end])
                if triple.confidence >= self._minimum
            )
            self._recent[chunk.digest] = known
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)
        return known

    def _claim(
        self, chunk: Chunk, sentence: Span, triple: LearnedTriple, seen: _Seen, sure: frozenset[Span]
    ) -> Claim | None:
        subject = self._end(chunk, sentence, triple.subject, seen)
        target = self._end(chunk, sentence, triple.object, seen)
        if subject is None or target is None or _overlap(subject, target):
            return None
        if subject.span not in sure:
            subject = self._loosened(subject, self._index.domain(triple.property))
        if target.span not in sure:
            target = self._loosened(target, self._index.range(triple.property))
        subject = self._fitting.subject(subject, triple.property)
        target = self._fitting.target(target, triple.property)
        if subject is None or target is None or subject.kind == "literal":
            return None
        if target.kind == "literal" and target.datatype == STRING and triple.object.form is not None:
            # A text in its learned normal form; numbers and dates stay as the range wants them.
            target = msgspec.structs.replace(target, value=triple.object.form)
        return Claim(subject, triple.property, target, sentence, round(min(triple.confidence, 1.0), 2))

    def _end(self, chunk: Chunk, sentence: Span, end: LearnedMention, seen: _Seen) -> Mention | None:
        """The lexicon's mention at the place, a new one where it saw nothing, or None where that is not clear."""
        start, stop = end.start + sentence.start, end.end + sentence.start
        if not 0 <= start < stop <= len(chunk.text):
            return None
        near = seen.overlapping(start, stop)
        exact = [mention for mention in near if (mention.start, mention.end) == (start, stop)]
        if exact or len(near) == 1:
            return (exact or near)[0]
        # "The Books of Mr. Lessmore": one name to those who learned it, two to the lexicon.
        if any(mention.start < start or mention.end > stop for mention in near):
            return None
        individual = self._individuals.get(fold_phrase(end.value), "")
        types = self._index.individuals[individual].types if individual else ()
        return Mention(
            start,
            stop,
            chunk.text[start:stop],
            kind="individual" if individual else "name",
            types=types,
            individual=individual,
        )

    def _loosened(self, mention: Mention, wanted: Constraint) -> Mention:
        """A mention of a class above the wanted one, free to take the narrower class."""
        group = wanted[0] if wanted else ()
        above = {iri for one in group for iri in self._index.class_tree.above(one)} - set(group)
        if mention.kind != "name" or not mention.types or not set(group).isdisjoint(mention.types):
            return mention
        if above.issuperset(mention.types):
            return msgspec.structs.replace(mention, types=())
        # "invested in Acme" looks like a place by its preposition alone; what was learned knows better.
        if mention.looks_like == "somewhere" and mention.types == (self._kinds.class_for("place"),):
            return msgspec.structs.replace(mention, types=(), looks_like="")
        return mention

    def _better(self, known: Mention, end: Mention) -> Mention:
        """The mention with the narrower class of the two, or the learned one where the shape was only a guess."""
        guessed = known.looks_like == "somewhere" and not end.looks_like
        below = any(iri != other and self._index.is_subclass(iri, other) for iri in end.types for other in known.types)
        return end if guessed or below else known


class _Seen:
    """Mentions by place."""

    def __init__(self, mentions: Sequence[Mention]) -> None:
        self._mentions = sorted(mentions, key=lambda mention: mention.order)

    def overlapping(self, start: int, end: int) -> list[Mention]:
        return [mention for mention in self._mentions if mention.start < end and start < mention.end]


def _outermost(mentions: Iterable[Mention]) -> list[Mention]:
    """Mentions in order, without those inside another."""
    kept: list[Mention] = []
    for mention in sorted(mentions, key=lambda one: (one.start, -one.end, one.order)):
        if not kept or mention.end > kept[-1].end:
            kept.append(mention)
    return sorted(kept, key=lambda one: one.order)


def _overlap(one: Mention, other: Mention) -> bool:
    return one.start < other.end and other.start < one.end


def _ends(claim: Claim) -> tuple[Span, str, Span]:
    return (claim.subject.span, claim.predicate, claim.object.span)
