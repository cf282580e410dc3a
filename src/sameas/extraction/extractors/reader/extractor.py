"""The reader as an extractor: what it reads in a chunk, weighed with what the lexicon sees there.

Rule: the reader finds the names and values that take part in facts; other names come from the lexicon, where they do
not overlap. A fact has one confidence, from the reader's score, its rivals, the classes of its ends and whether the
lexicon agrees. What the lexicon alone reads stays, as sure as such facts were found to be.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from sameas.extraction.extractors.contract import Found
from sameas.extraction.extractors.embedded import READER, READER_VERSION, reader_settings
from sameas.extraction.extractors.lexicon.extractor import LexiconExtractor
from sameas.extraction.extractors.reader.confidence import ALONE, Signs, judge
from sameas.extraction.extractors.reader.ends import BOOLEAN, Place, ReadEnds
from sameas.extraction.extractors.reader.joining import Joining, Offer, key_of, overlap, typed
from sameas.extraction.extractors.reader.labels import Asked, ask_for
from sameas.extraction.extractors.reader.narrowing import Narrowing
from sameas.extraction.extractors.reader.reading import Reading
from sameas.extraction.extractors.reader.rivals import Fact
from sameas.extraction.extractors.reader.subjects import Subjects
from sameas.extraction.extractors.reader.turns import ReadingThreads
from sameas.extraction.extractors.reader.weighing import Weighing, denies
from sameas.extraction.extractors.reader.whole_names import whole_names
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.llm.timeouts import paused
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

# A text as long as those that the reader was trained on; the sentence before gives pronouns something to mean.
_WINDOW = 450
_CARRIED = 200
_READ_FROM = 0.02
_KEPT_FROM = 0.15
_REMEMBERED = 64
_READ_WELL = 0.5


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
        kept_from: float = _KEPT_FROM,
        name: str = READER,
        version: str = READER_VERSION,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`digest` names the weights; another name, version and settings are those of a reader that was fitted. What is
        less sure than `kept_from` is not offered.
        """
        self._index = index
        self._reader = reader
        self._name, self._version = name, version
        self._settings = reader_settings(digest) if settings is None else settings
        self._judge, self._kept_from = judge_signs, kept_from
        self._lexicon = LexiconExtractor(index)
        self._ends = ReadEnds(index)
        self._weighing = Weighing(index, self._ends)
        self._joining = Joining(index, self._ends)
        self._narrowing = Narrowing(index, self._ends)
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
        claims = self._claims(
            chunk,
            whole_names(chunk.text, facts, seen.items, self._weighing),
            seen.items,
            said.items,
            self._labels(focus).properties,
        )
        ends = {end.order: end for claim in claims for end in (claim.subject, claim.object)}
        names = [end for end in ends.values() if end.datatype != BOOLEAN]
        types = {key_of(end): end.types for end in names if end.kind == "name"}
        apart = [typed(one, types) for one in seen.items if not any(overlap(one, end) for end in names)]
        claims.extend(self._alone(said.items, claims, (*apart, *ends.values())))
        claims = self._joining.one_way(claims)
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
        self,
        chunk: Chunk,
        facts: Sequence[Fact],
        seen: Sequence[Mention],
        said: Sequence[Claim],
        asked: Sequence[str],
    ) -> list[Claim]:
        names = {(one.start, one.end): one for one in seen if one.kind != "literal"}
        values = self._ends.values(chunk)
        subjects = Subjects(self._index, self._ends, self._weighing.kinds, chunk, facts, seen)
        facts = [fact for fact in facts if subjects.allows(fact)]
        signs = self._weighing.chunk(chunk, facts, said, asked)
        narrowed = self._narrowing.narrowed(facts, asked, signs)
        if narrowed != facts:
            facts, signs = narrowed, self._weighing.chunk(chunk, narrowed, said, asked)
        rivals = signs.rivals
        offered: list[Offer] = []
        for fact in facts:
            if rivals.is_weaker_twin(fact):
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
            if target is None or rivals.is_weaker_truth(fact, is_denied=denies(target.text)):
                continue
            if subject.span == target.span or _has_own_subject(chunk, subject, target, seen):
                continue
            confidence = self._judge(signs.of(fact, subject, target), fact.property)
            if confidence >= self._kept_from:
                offered.append(Offer(confidence, fact, subject, target))
        return self._joining.claims(chunk, offered, are_both_said=signs.are_both_said)

    def _alone(self, said: Sequence[Claim], claims: Sequence[Claim], mentions: Sequence[Mention]) -> Iterator[Claim]:
        """What the lexicon says of ends that the reader does not contradict."""
        there = {one.span for one in mentions}
        for claim in said:
            # The same fact, one of another subject, or another between the same ends.
            read = any(
                overlap(one.object, claim.object)
                and (one.predicate == claim.predicate or overlap(one.subject, claim.subject))
                for one in claims
                if one.confidence >= _READ_WELL or overlap(one.subject, claim.subject)
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
        and key_of(first) not in key_of(subject)
        and key_of(subject) not in key_of(first)
    )


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
