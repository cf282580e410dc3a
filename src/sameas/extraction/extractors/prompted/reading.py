"""From a model's statements to mentions and claims with places in the text.

Rule: nothing is believed here and nothing is invented. A name gets the places where it stands, a fact the two places
of its ends that are nearest to each other, and values are read by their form. What has no place, or only one in words
that speak to an assistant, is refused with a reason; the guard judges all the rest. A name is found as it is written,
as whole words, with any blanks between them; else in another case. Longer names come first, and places do not overlap;
but what is a whole sentence, or as long as one, comes last: one such "name" would take the places of all the others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.fitting import Fitting
from sameas.extraction.extractors.lexicon.phrases import fold_phrase, is_unspaced
from sameas.extraction.extractors.lexicon.quantities import find_quantities
from sameas.extraction.extractors.lexicon.values import STRING, find_quotes
from sameas.extraction.extractors.prompted.addressing import addressed, is_within
from sameas.extraction.extractors.prompted.replies import Agreed
from sameas.extraction.graph.model import Claim, ConfidenceSource, Mention, Rejection, RejectionCode
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex

# A name that stands oftener than this in one chunk is a word like any other; the first places are enough.
_MOST_PLACES = 50
_LONG_AS_A_SENTENCE = 12
_ODD_BLANKS = re.compile(r"[^\S ]|  ")


def locate(text: str, names: Iterable[str], *, sentences: Iterable[Span] = ()) -> Mapping[str, tuple[Span, ...]]:
    """The places of each name, from left to right; none for a name that is not there."""
    whole = {" ".join(text[span.start : span.end].split()).rstrip(".!?") for span in sentences}

    def rank(name: str) -> tuple[bool, int, str]:
        words = name.split()
        is_sentence = len(words) > _LONG_AS_A_SENTENCE or " ".join(words).rstrip(".!?") in whole
        return is_sentence, -len(name), name

    ordered = sorted(set(names), key=rank)
    taken = bytearray(len(text))
    found: dict[str, tuple[Span, ...]] = {}
    for name in ordered:
        spans = [span for span in places(text, name) if not any(taken[span.start : span.end])]
        for span in spans:
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
        found[name] = tuple(spans)
    return found


def places(text: str, name: str) -> list[Span]:
    """Where a name stands, whatever else stands there."""
    words = name.split()
    if not words:
        return []
    # Compiling a pattern for each name takes longer than all the rest; few names need one.
    if len(words) == 1 or not _ODD_BLANKS.search(text):
        found = list(islice(_plain(text, " ".join(words)), _MOST_PLACES))
        if found:
            return found
    pattern = r"\s+".join(map(re.escape, words))
    for flags in (0, re.IGNORECASE):
        matches = (Span(*match.span()) for match in re.finditer(pattern, text, flags))
        found = list(islice((span for span in matches if _is_whole(text, span)), _MOST_PLACES))
        if found:
            return found
    return []


def _plain(text: str, name: str) -> Iterator[Span]:
    at = text.find(name)
    while at >= 0:
        span = Span(at, at + len(name))
        whole = _is_whole(text, span)
        if whole:
            yield span
        at = text.find(name, span.end if whole else at + 1)


def _is_whole(text: str, span: Span) -> bool:
    """Whether the words at both ends are whole; scripts without blanks have no such ends."""
    before, first = text[span.start - 1 : span.start], text[span.start]
    last, after = text[span.end - 1], text[span.end : span.end + 1]
    return not (_continues(before, first) or _continues(after, last))


def _continues(beyond: str, edge: str) -> bool:
    return bool(beyond) and edge.isalnum() and not is_unspaced(edge) and (beyond.isalnum() or beyond == "_")


def nearest(subjects: Iterable[Span], objects: Iterable[Span]) -> tuple[Span, Span] | None:
    """The two places that are closest to each other; of equals, the first in the text."""
    pairs = [(one, other) for one in subjects for other in objects if not _overlap(one, other)]
    return min(pairs, key=lambda pair: (_distance(*pair), pair[0], pair[1]), default=None)


def _distance(one: Span, other: Span) -> int:
    return max(one.start, other.start) - min(one.end, other.end)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


# The rule's judgement of what one answer of a model says: nearer to the text is surer.
NAME_AS_WRITTEN, NAME_IN_OTHER_FORM = 0.9, 0.7
SAME_SENTENCE, OTHER_SENTENCE = 0.9, 0.6

TypedName = tuple[str, str]
"""A name and a class IRI."""
Fact = tuple[int, str, int]
"""Numbers of two things, and the property IRI between them."""
NamedFact = tuple[str, str, str]


class Thing(msgspec.Struct, frozen=True):
    """What a chunk mentions, once, with all of its places."""

    mention: Mention
    places: tuple[Mention, ...]


class Read(msgspec.Struct, frozen=True):
    """Mentions with places, and the names that have none."""

    mentions: tuple[Mention, ...]
    rejected: tuple[Rejection, ...] = ()


class ReplyReader:
    """Reads the answers about chunks for one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._index = index
        self._fitting = Fitting(index)
        self._individuals = {
            fold_phrase(entry.text): entry.iri for entry in reversed(index.lexicon()) if entry.kind == "individual"
        }

    def mentions(
        self, chunk: Chunk, names: Sequence[Agreed[TypedName]], values: Iterable[str], *, with_values: bool
    ) -> Read:
        """The places of names and values; a place that two claim belongs to the longer one, and names come first."""
        types: dict[str, list[str]] = {}
        sure: dict[str, Agreed[TypedName]] = {}
        for one in names:
            name, iri = one.what
            known = types.setdefault(name, [])
            if not any(iri == other or self._index.are_disjoint(iri, other) for other in known):
                known.append(iri)
            sure.setdefault(name, one)
        located = locate(chunk.text, types, sentences=chunk.sentences)
        orders = addressed(chunk.text, chunk.sentences)
        found: list[Mention] = []
        missing: list[Rejection] = []
        for name, iris in types.items():
            spans = [span for span in located[name] if not is_within(span, orders)]
            found.extend(self._mention(chunk, name, span, tuple(iris), sure[name]) for span in spans)
            if not spans:
                code = "addressed_to_model" if located[name] else _why_nowhere(chunk.text, name)
                missing.append(Rejection(0, 0, code, "entity_extraction", name, detail="; ".join(iris)))
        if with_values:
            found.extend(one for one in _values(chunk.text, values, taken=found) if not is_within(one.span, orders))
        return Read(tuple(sorted(found, key=lambda mention: mention.order)), tuple(missing))

    def claims(self, chunk: Chunk, things: Sequence[Thing], facts: Iterable[Agreed[Fact]]) -> list[Claim]:
        """A claim for each fact, at the places of its ends that are nearest to each other."""
        return [
            self._claim(chunk, _at(things, subject), iri, _at(things, target), fact.confidence, fact.source)
            for fact in facts
            for subject, iri, target in (fact.what,)
        ]

    def joint(
        self, chunk: Chunk, names: Sequence[Agreed[TypedName]], facts: Sequence[Agreed[NamedFact]]
    ) -> tuple[Read, list[Claim]]:
        """Mentions and claims of an answer that gives both; an end that has no class takes the one that fits."""
        listed = {one.what[0] for one in names}
        ends = {end for fact in facts for end in (fact.what[0], fact.what[2])} - listed
        # Only what a fact names can be of use.
        read = self.mentions(chunk, names, ends, with_values=bool(ends))
        things = {thing.mention.text: number for number, thing in enumerate(read_things(read.mentions), 1)}
        spelled = {fold_phrase(text): number for text, number in things.items()}
        numbered = [
            Agreed(
                (_number(subject, things, spelled), iri, _number(target, things, spelled)), fact.confidence, fact.source
            )
            for fact in facts
            for subject, iri, target in (fact.what,)
        ]
        claims = self.claims(chunk, read_things(read.mentions), numbered)
        # An end that was only named in a fact is a text so far; the claim knows what it is.
        by_place = {(mention.start, mention.end): mention for mention in read.mentions}
        for claim in claims:
            for end in (claim.subject, claim.object):
                known = by_place.get((end.start, end.end))
                if known is not None and known.kind == "literal" and end.types:
                    by_place[(end.start, end.end)] = end
        mentions = tuple(sorted(by_place.values(), key=lambda mention: mention.order))
        return Read(mentions, read.rejected), claims

    def _mention(self, chunk: Chunk, name: str, span: Span, types: tuple[str, ...], sure: Agreed[TypedName]) -> Mention:
        words = chunk.text[span.start : span.end]
        individual = self._individuals.get(fold_phrase(words), "")
        confidence = sure.confidence
        if confidence is None:
            confidence = NAME_AS_WRITTEN if words == name else NAME_IN_OTHER_FORM
        return Mention(
            span.start,
            span.end,
            words,
            kind="individual" if individual else "name",
            types=types,
            individual=individual,
            confidence=confidence,
            confidence_from=sure.source,
        )

    def _claim(
        self, chunk: Chunk, one: Thing, iri: str, other: Thing, confidence: float | None, source: ConfidenceSource
    ) -> Claim:
        pair = nearest([place.span for place in one.places], [place.span for place in other.places])
        subject, target = one.places[0], other.places[0]
        if pair is not None:
            subject = next(place for place in one.places if place.span == pair[0])
            target = next(place for place in other.places if place.span == pair[1])
        if iri in self._index.properties:
            # What does not fit stays as it is: the guard may turn it round, or say why not.
            subject = self._fitting.subject(subject, iri) or subject
            target = self._fitting.target(target, iri) or target
        first = find_sentence(chunk.sentences, min(subject.start, target.start))
        last = find_sentence(chunk.sentences, max(subject.end, target.end) - 1)
        evidence = Span(
            min(subject.start, target.start, chunk.sentences[first].start),
            max(subject.end, target.end, chunk.sentences[last].end),
        )
        if confidence is None:
            confidence = SAME_SENTENCE if first == last else OTHER_SENTENCE
        return Claim(subject, iri, target, evidence, confidence, source)


def _why_nowhere(text: str, name: str) -> RejectionCode:
    if not name.strip():
        return "empty_name"
    # It is there, but other names have all of its places.
    return "duplicate" if places(text, name) else "not_in_text"


def read_things(mentions: Iterable[Mention]) -> list[Thing]:
    """What the mentions are of, by first appearance: names of one class, or values of one form, are one thing."""
    groups: dict[tuple[object, ...], list[Mention]] = {}
    for mention in sorted(mentions, key=lambda one: one.order):
        groups.setdefault((mention.text, mention.types, mention.datatype), []).append(mention)
    return [Thing(places[0], tuple(places)) for places in groups.values()]


def _at(things: Sequence[Thing], number: int) -> Thing:
    """The thing of a number; one that was not listed has no place, and the guard refuses it."""
    if 1 <= number <= len(things):
        return things[number - 1]
    unknown = Mention(0, 0, f"thing {number}")
    return Thing(unknown, (unknown,))


def _number(name: str, things: dict[str, int], spelled: dict[str, int]) -> int:
    return things.get(name) or spelled.get(fold_phrase(name), 0)


def _values(text: str, named: Iterable[str], *, taken: Sequence[Mention]) -> Iterator[Mention]:
    """Dates, quantities and quoted texts by their form, then the values that the model named, where room is left."""
    used = bytearray(len(text))
    for mention in taken:
        used[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    wanted = locate(text, named)
    stated = (
        Mention(span.start, span.end, words, kind="literal", value=words, datatype=STRING)
        for name in wanted
        for span in wanted[name]
        for words in (text[span.start : span.end],)
    )
    for mention in (*find_quotes(text), *find_dates(text), *find_quantities(text), *stated):
        if not any(used[mention.start : mention.end]):
            used[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
            yield mention
