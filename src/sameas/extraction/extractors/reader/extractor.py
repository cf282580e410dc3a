"""The reader as an extractor: what it reads in a chunk, weighed with what the lexicon sees there.

Rule: the reader finds the names and values that take part in facts; other names come from the lexicon, where they do
not overlap. A fact has one confidence, from the reader's score, its rivals, the classes of its ends and whether the
lexicon agrees. What the lexicon alone reads stays, as sure as such facts were found to be.
"""

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import msgspec

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.embedded import READER, READER_VERSION, reader_settings
from sameas.extraction.extractors.lexicon.extractor import LexiconExtractor
from sameas.extraction.extractors.reader.asking import Asked, ask_for
from sameas.extraction.extractors.reader.confidence import ALONE, Signs, judge, logit
from sameas.extraction.extractors.reader.ends import BOOLEAN, Place, ReadEnds
from sameas.extraction.extractors.reader.reading import Reading
from sameas.extraction.extractors.reader.rivals import Fact, Rivals, ends_of, name_of
from sameas.extraction.extractors.reader.turns import ReadingThreads
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.graph.stance import clause_around
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.llm.timeouts import paused
from sameas.ontology.focus import Focus, words_of
from sameas.ontology.index import OntologyIndex
from sameas.ontology.word_families import LITTLE, root_of

# A text as long as those that the reader was trained on; the sentence before gives pronouns something to mean.
_WINDOW = 450
_CARRIED = 200
_READ_FROM = 0.05
_KEPT_FROM = 0.15
_REMEMBERED = 64
# Another subject of the same fact, or property between the same ends, that is so many times as sure rules it out.
_CLEARLY = 2.0
_READ_WELL = 0.5
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


Judge = Callable[[Signs, str], float]
"""How sure a fact of a property is, from its signs."""


class ReadsTexts(Protocol):
    """What reads; `reader.reading.Reader` is the one there is."""

    def read(
        self,
        text: str,
        *,
        properties: Sequence[str],
        booleans: Sequence[bool],
        classes: Sequence[str],
        keep_from: float = ...,
        also: Sequence[tuple[int, int]] = ...,
    ) -> Reading: ...


class ReaderExtractor:
    """Finds mentions and claims in any number of chunks, for one ontology."""

    def __init__(
        self,
        index: OntologyIndex,
        reader: ReadsTexts,
        *,
        digest: str,
        judge_signs: Judge = judge,
        name: str = READER,
        version: str = READER_VERSION,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`digest` names the weights; another name, version and settings are those of a reader that was fitted."""
        self._index = index
        self._reader = reader
        self._name, self._version = name, version
        self._settings = reader_settings(digest) if settings is None else settings
        self._judge = judge_signs
        self._lexicon = LexiconExtractor(index)
        self._ends = ReadEnds(index)
        self._roots: dict[str, tuple[frozenset[str], ...]] = {}
        self._asked: OrderedDict[tuple[tuple[str, ...], tuple[str, ...]], Asked] = OrderedDict()
        # Two texts at a time, one thread each: a product of matrices waits for its slowest thread.
        self._threads = ReadingThreads(min(2, os.cpu_count() or 1))

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        return self._version

    @property
    def settings(self) -> Mapping[str, Any]:
        return self._settings

    async def extract_entities(self, chunk: Chunk, focus: Focus) -> Found[Mention]:
        """The ends of facts, the lexicon's mentions where there are none, and the claims with them."""
        seen = await self._lexicon.extract_entities(chunk, focus)
        facts = await self._in_turn(chunk, focus, seen.items)
        said = await self._lexicon.extract_relations(chunk, seen.items, focus)
        claims = self._claims(chunk, _with_whole_names(facts, seen.items), seen.items, said.items)
        ends = {end.order: end for claim in claims for end in (claim.subject, claim.object)}
        names = [end for end in ends.values() if end.datatype != BOOLEAN]
        types = {_key(end): end.types for end in names if end.kind == "name"}
        apart = [_typed(one, types) for one in seen.items if not any(_overlap(one, end) for end in names)]
        claims.extend(self._alone(said.items, claims, (*apart, *ends.values())))
        claims = self._one_way(claims)
        items = {one.order: one for one in (*apart, *ends.values())}
        ordered = sorted(items.values(), key=lambda mention: mention.order)
        notes = tuple(note for note in seen.notes if "no cue for relations" not in note)
        return Found(tuple(ordered), notes, tuple(claims), (*seen.rejected, *said.rejected))

    async def extract_relations(self, chunk: Chunk, mentions: Sequence[Mention], focus: Focus) -> Found[Claim]:
        """Nothing more: facts are read together with their ends."""
        return Found()

    async def _in_turn(self, chunk: Chunk, focus: Focus, seen: Sequence[Mention]) -> list[Fact]:
        """Read in one of the threads; waiting for one is not work, and a stage's clock stands meanwhile."""
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def read() -> list[Fact]:
            loop.call_soon_threadsafe(begun.set)
            return self._read(chunk, focus, seen)

        reading = asyncio.wrap_future(self._threads.submit(read, chunk=chunk.index))
        try:
            with paused():
                await begun.wait()
            return await reading
        finally:
            # Who leaves before its turn is not read for.
            reading.cancel()

    def _read(self, chunk: Chunk, focus: Focus, seen: Sequence[Mention]) -> list[Fact]:
        asked = self._labels(focus)
        if not asked.properties:
            return []
        found: dict[tuple[object, ...], Fact] = {}
        for window in _windows(chunk):
            reading = self._reader.read(
                chunk.text[window.start : window.end],
                properties=asked.property_texts,
                booleans=asked.booleans,
                classes=asked.class_texts,
                keep_from=_READ_FROM,
                also=[
                    (one.start - window.start, one.end - window.start)
                    for one in seen
                    if window.start <= one.start and one.end <= window.end
                ],
            )
            places = [
                Place(
                    one.start + window.start,
                    one.end + window.start,
                    dict(zip(asked.classes, one.types, strict=True)),
                    one.score,
                    chunk.text[one.start + window.start : one.end + window.start].casefold(),
                )
                for one in reading.mentions
            ]
            for fact in reading.facts:
                target = None if fact.object is None else places[fact.object]
                new = Fact(
                    asked.properties[fact.property],
                    places[fact.subject],
                    target,
                    fact.truth,
                    fact.confidence,
                    1 - fact.stance[0],
                )
                # A sentence that two windows share is read twice.
                key = (new.property, new.subject.name, new.truth, target and (target.start, target.end))
                if key not in found or new.score > found[key].score:
                    found[key] = new
        return list(found.values())

    def _labels(self, focus: Focus) -> Asked:
        key = (focus.properties, focus.classes)
        known = self._asked.get(key)
        if known is None:
            known = self._asked[key] = ask_for(self._index, *key)
            if len(self._asked) > _REMEMBERED:
                self._asked.popitem(last=False)
        return known

    def _claims(
        self, chunk: Chunk, facts: Sequence[Fact], seen: Sequence[Mention], said: Sequence[Claim]
    ) -> list[Claim]:
        names = {(one.start, one.end): one for one in seen if one.kind != "literal"}
        values = self._ends.values(chunk)
        rivals = Rivals(facts, self._index)
        offered: list[tuple[float, Fact, Mention, Mention]] = []
        for fact in facts:
            if rivals.is_weaker_twin(fact) or rivals.is_weaker_truth(fact):
                continue
            subject = self._ends.subject(
                chunk, fact.subject, fact.property, names.get((fact.subject.start, fact.subject.end))
            )
            if subject is None:
                continue
            target = (
                self._ends.truth(chunk, subject, value=bool(fact.truth))
                if fact.object is None
                else self._ends.target(
                    chunk,
                    fact.object,
                    fact.property,
                    names.get((fact.object.start, fact.object.end)),
                    values,
                )
            )
            if target is None or subject.span == target.span or _has_own_subject(chunk, subject, target, seen):
                continue
            confidence = self._judge(self._signs(chunk, fact, subject, target, rivals, said), fact.property)
            if confidence >= _KEPT_FROM:
                offered.append((confidence, fact, subject, target))
        return self._joined(chunk, offered)

    def _joined(self, chunk: Chunk, offered: list[tuple[float, Fact, Mention, Mention]]) -> list[Claim]:
        """The surest first: what they say a thing is holds for the others, wherever it is named."""
        offered.sort(key=lambda one: (-one[0], one[1].property, one[2].order, one[3].order))
        known: dict[str, Mention] = {}
        places: dict[str, Place] = {}
        taken: list[Mention] = []
        single: dict[tuple[str, str], str] = {}
        surest: dict[tuple[str, ...], float] = {}
        made: list[Claim] = []
        for confidence, fact, *ends in offered:
            both = []
            for end in ends:
                sure = msgspec.structs.replace(end, confidence=max(end.confidence, confidence))
                both.append(self._ends.together(known.get(_key(end)), sure))
            subject, target = both
            if subject is None or target is None or any(_cuts(end, other) for end in both if end for other in taken):
                continue
            beside = ((fact.property, "", _key(target), target.value), (_key(subject), _key(target), target.value))
            if any(surest.setdefault(each, confidence) >= _CLEARLY * confidence for each in beside):
                continue
            if self._index.properties[fact.property].functional:
                value = target.value or _key(target)
                if single.setdefault((_key(subject), fact.property), value) != value:
                    continue
            for end, place in ((subject, fact.subject), (target, fact.object)):
                taken.append(end)
                if end.kind != "literal" and place is not None:
                    known[_key(end)] = end
                    places.setdefault(_key(end), place)
            low, high = min(subject.start, target.start), max(subject.end, target.end)
            first, last = (find_sentence(chunk.sentences, at) for at in (low, high - 1))
            evidence = (
                clause_around(chunk.text, chunk.sentences[first], subject.span, target.span)
                if first == last
                else Span(chunk.sentences[first].start, chunk.sentences[last].end)
            )
            made.append(Claim(subject, fact.property, target, evidence, confidence, "model", last - first + 1))
        types = {key: self._ends.guessed(end, places[key]).types for key, end in known.items()}
        return [
            msgspec.structs.replace(claim, subject=_typed(claim.subject, types), object=_typed(claim.object, types))
            for claim in made
        ]

    def _signs(
        self, chunk: Chunk, fact: Fact, subject: Mention, target: Mention, rivals: Rivals, said: Sequence[Claim]
    ) -> Signs:
        index = self._index
        score = logit(fact.score)
        domain = self._ends.type_score(fact.subject, index.domain(fact.property))
        is_value = target.kind == "literal"
        reach = None if is_value or fact.object is None else self._ends.type_score(
            fact.object, index.expected_range(fact.property)
        )  # fmt: skip
        tags = [fact.subject.score] + ([fact.object.score] if fact.object is not None else [])
        first, last = sorted(find_sentence(chunk.sentences, end.start) for end in (subject, target))
        agreed = any(
            one.predicate == fact.property and _overlap(one.subject, subject) and _overlap(one.object, target)
            for one in said
        )
        other = any(
            one.predicate != fact.property
            and (_overlap(one.subject, subject) or _overlap(one.object, subject))
            and (_overlap(one.subject, target) or _overlap(one.object, target))
            for one in said
        )
        words = _roots(chunk.text[chunk.sentences[first].start : chunk.sentences[last].end])
        near = _roots(chunk.text[chunk.sentences[last].start : chunk.sentences[last].end])
        return Signs(
            score=score,
            agreed=float(agreed),
            rival_property=rivals.by_property(fact) - score,
            rival_subject=rivals.by_subject(fact) - score,
            rival_object=rivals.by_object(fact) - score,
            subject_type=0.0 if domain is None else domain,
            object_type=0.0 if reach is None else reach,
            is_value=float(is_value),
            tag=logit(min(tags)),
            apart=float(min(4, last - first)),
            against=fact.against,
            contradicted=float(not agreed and other),
            cue=self._cue(words, fact.property),
            cue_here=self._cue(near, fact.property),
            other_subject=float(first != last and self._may_be_of(fact, chunk, chunk.sentences[last], rivals)),
            rival_cue=max((self._cue(words, iri) for iri in rivals.properties(fact)), default=0.0),
            siblings=float(rivals.siblings(fact)),
            nearer_object=0.0 if is_value else float(self._nearer(fact, rivals)),
        )

    def _nearer(self, fact: Fact, rivals: Rivals) -> int:
        """How many things that the property may lead to, at most three, stand nearer to the subject than the object."""
        if fact.object is None:
            return 0
        reach = self._index.expected_range(fact.property)
        far = abs(fact.subject.start - fact.object.start)
        nearer = (
            place
            for place in rivals.places
            if place.name not in ends_of(fact)
            and abs(place.start - fact.subject.start) < far
            and (self._ends.type_score(place, reach) or 0.0) > 0
        )
        return min(3, sum(1 for _ in nearer))

    def _may_be_of(self, fact: Fact, chunk: Chunk, sentence: Span, rivals: Rivals) -> bool:
        """Whether a sentence about the object alone names something else that the property may be of."""
        domain = self._index.domain(fact.property)
        return any(
            sentence.start <= place.start < sentence.end
            and place.name not in (fact.subject.name, name_of(fact.object))
            and (self._ends.type_score(place, domain) or 0.0) > 0
            for place in rivals.places
        )

    def _cue(self, said: frozenset[str], iri: str) -> float:
        """How much of the best of a property's labels is said, in any form of its words."""
        labels = self._roots.get(iri)
        if labels is None:
            known = self._index.properties[iri]
            texts = (_HUMPS.sub(" ", text.value) for text in (*known.labels, *known.alt_labels))
            labels = self._roots[iri] = tuple(roots for roots in map(_roots, texts) if roots)
        return max((len(roots & said) / len(roots) for roots in labels), default=0.0)

    def _one_way(self, claims: Sequence[Claim]) -> list[Claim]:
        """Of the same said the other way round, or by the inverse, the surer."""
        kept: list[Claim] = []
        for claim in sorted(claims, key=lambda one: -one.confidence):
            known = self._index.properties[claim.predicate]
            twins = {claim.predicate, *known.inverses}
            if not any(
                (one.predicate in twins or claim.predicate in self._index.properties[one.predicate].inverses)
                and _key(one.subject) == _key(claim.object)
                and _key(one.object) == _key(claim.subject)
                for one in kept
            ):
                kept.append(claim)
        return kept

    def _alone(self, said: Sequence[Claim], claims: Sequence[Claim], mentions: Sequence[Mention]) -> Iterator[Claim]:
        """What the lexicon says of ends that the reader does not contradict."""
        there = {one.span for one in mentions}
        for claim in said:
            # The same fact, one of another subject, or another between the same ends.
            read = any(
                _overlap(one.object, claim.object)
                and (one.predicate == claim.predicate or _overlap(one.subject, claim.subject))
                for one in claims
                if one.confidence >= _READ_WELL or _overlap(one.subject, claim.subject)
            )
            if not read and claim.subject.span in there and claim.object.span in there:
                sure = ALONE.get(claim.confidence, min(ALONE.values()))
                yield msgspec.structs.replace(claim, confidence=sure)


def _has_own_subject(chunk: Chunk, subject: Mention, target: Mention, seen: Sequence[Mention]) -> bool:
    """Whether the sentence of the object begins with another thing of the same kind: then it speaks of that one."""
    sentence = chunk.sentences[find_sentence(chunk.sentences, target.start)]
    if sentence.start <= subject.start < sentence.end or subject.start > target.start:
        return False
    first = next((one for one in seen if one.start >= sentence.start and one.kind == "name"), None)
    return (
        first is not None
        and first.end <= target.start
        and not chunk.text[sentence.start : first.start].strip()
        and not set(first.types).isdisjoint(subject.types)
        and _key(first) not in _key(subject)
        and _key(subject) not in _key(first)
    )


def _roots(text: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in words_of(text) if word not in LITTLE)


def _with_whole_names(facts: Sequence[Fact], seen: Sequence[Mention]) -> list[Fact]:
    """With the lexicon's name where the reader took it for several."""
    parts = {(place.start, place.end): place for fact in facts for place in (fact.subject, fact.object) if place}
    whole: dict[tuple[int, int], Place] = {}
    for name in seen:
        if name.kind == "literal":
            continue
        inside = [place for place in parts.values() if name.start <= place.start and place.end <= name.end]
        inside.sort(key=lambda place: place.start)
        if len(inside) > 1 and all(other.start == one.end + 1 for one, other in pairwise(inside)):
            for place in inside:
                joined = msgspec.structs.replace(place, start=name.start, end=name.end, name=name.text.casefold())
                whole[place.start, place.end] = joined
    if not whole:
        return list(facts)
    named = (
        fact._replace(
            subject=whole.get((fact.subject.start, fact.subject.end), fact.subject),
            object=fact.object and whole.get((fact.object.start, fact.object.end), fact.object),
        )
        for fact in facts
    )
    return [fact for fact in named if fact.subject is not fact.object and name_of(fact.subject) != name_of(fact.object)]


def _windows(chunk: Chunk) -> Iterator[Span]:
    """Whole sentences, as many as fit."""
    start = end = 0
    last = Span(0, 0)
    for sentence in chunk.sentences:
        if sentence.end - start > _WINDOW and end > start:
            yield Span(start, end)
            start = last.start if end - last.start <= _CARRIED else end
        last, end = sentence, sentence.end
    if len(chunk.text) > start:
        yield Span(start, len(chunk.text))


def _key(end: Mention) -> str:
    return end.text.casefold()


def _typed(end: Mention, types: Mapping[str, tuple[str, ...]]) -> Mention:
    found = types.get(_key(end))
    return end if end.kind == "literal" or found is None else msgspec.structs.replace(end, types=found)


def _overlap(one: Mention, other: Mention) -> bool:
    return one.start < other.end and other.start < one.end


def _cuts(one: Mention, other: Mention) -> bool:
    """Whether two names share words and are not the same."""
    if BOOLEAN in (one.datatype, other.datatype) or one.span == other.span:
        return False
    return _overlap(one, other)
