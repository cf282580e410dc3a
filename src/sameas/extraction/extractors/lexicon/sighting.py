"""What a chunk mentions: known individuals, names, quoted texts, dates and numbers, with a class where one is
plain to see.

Rule: mentions do not overlap, save that an individual inside a longer name gives way to the name. A class is
plain where its label stands inside the name (`Lake Geneva`), right before it (`the company Acme`) or after it
(`Acme is a company`). A shape alone gives a class last, when no cue has asked for a narrower one.
"""

# ruff: noqa: RUF001 (word lists and the marks of other scripts are the data here)

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from sameas.extraction.extractors.lexicon.cues import Cue
from sameas.extraction.extractors.lexicon.dates import find_dates
from sameas.extraction.extractors.lexicon.names import find_names, looks_like
from sameas.extraction.extractors.lexicon.phrases import Match, Phrases, fold_phrase, is_unspaced
from sameas.extraction.extractors.lexicon.quantities import find_quantities, is_money
from sameas.extraction.extractors.lexicon.values import find_quotes
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import Chunk
from sameas.ontology.focus import Focus
from sameas.ontology.index import OntologyIndex

_BEFORE = re.compile(r"\s+(?:(?:named|called|namens)\s+)?[\"“„«‘]?\Z")
# "the city of Bremen" is Bremen; "the company of Anna Keller" is not Anna Keller.
_OF = re.compile(r"\s+(?:of|von|de)\s+[\"“„«‘]?\Z")
_AFTER = re.compile(
    r"[\"”“»’]?(?:\s*\([^)]{0,80}\))?\s*(?:,|is|was|are|were|became|ist|war|est|était|es|era|è)\s+(?:also\s+)?"
    r"(?:an?|the|one of the|ein|eine|un|une|una|uno|der|die|das)\s+"
    # "Anna is the author of the novel Dawn" does not call Anna a novel.
    r"(?:(?!(?:of|in|at|on|by|for|from|to|with|who|which|that|von|de|des|du)\b)[\w'’-]+\s+){0,4}\Z"
)
# "CEO of Acme", "Founder of the Wattmann Institute": the name begins after the role.
_ROLE_OF = re.compile(r"[ ]of[ ](?:the[ ])?(?=[^\W\d_])")
_DIGIT = re.compile(r"\d")
_STOPS = frozenset("的和与及是在了、，。；：！？,.;:!?\n 　「」『』《》（）()")
_LONGEST_RUN = 16
_LOOK = 120


class KnownIndividual(NamedTuple):
    """An individual under one of its labels."""

    iri: str
    types: tuple[str, ...]
    is_capitalised: bool


class Sighting:
    """Sees the mentions of chunks for one ontology."""

    def __init__(self, index: OntologyIndex) -> None:
        self._kinds = ClassKinds(index)
        entries = index.lexicon()
        self._classes: Phrases[str] = Phrases(
            chain.from_iterable(
                ((entry.text, entry.iri), (_plural(entry.text), entry.iri))
                for entry in entries
                if entry.kind == "class"
            )
        )
        self._individuals: Phrases[KnownIndividual] = Phrases(
            (
                entry.text,
                KnownIndividual(
                    entry.iri, index.narrowest(index.individuals[entry.iri].types), entry.text[:1].isupper()
                ),
            )
            for entry in entries
            if entry.kind == "individual"
        )

    def mentions(self, chunk: Chunk, folded: str, cues: Sequence[Match[Cue]], *, focus: Focus) -> list[Mention]:
        """The mentions of a chunk, from left to right; those whose class is not plain have none."""
        text = chunk.text
        taken = _Taken()
        classes = self._classes.find(folded)
        class_spans = {(match.start, match.end) for match in classes}
        cue_spans = {(match.start, match.end) for match in cues}
        names = [*self._names(chunk, cues, class_spans | cue_spans)]
        quantities = list(find_quantities(text))
        found = [
            *taken.add(one for one in quantities if is_money(one)),
            *taken.add(self._known(text, folded, names)),
            *taken.add(find_quotes(text)),
            *taken.add(find_dates(text) if _DIGIT.search(text) else ()),
            *taken.add(names),
            *taken.add(quantities),
            *taken.add(_beside_cues(text, cues)),
        ]
        found.sort(key=lambda mention: mention.order)
        allowed = None if focus.is_whole else frozenset(focus.classes)
        # "the birth place of Anna": what is a part of a cue says nothing of a class.
        inside = [(match.start, match.end) for match in cues if any(cue.form == "noun" for cue in match.payload)]
        free = [one for one in classes if not any(_is_part_of(one, start, end) for start, end in inside)]
        return [self._typed(mention, text, free, allowed) for mention in found]

    def is_class(self, words: str) -> bool:
        """Whether words in small letters are the name of a class."""
        return bool(self._classes.get(fold_phrase(words)))

    def by_shape(self, mention: Mention, *, focus: Focus) -> Mention:
        """A name that nothing else gave a class to, with the general class that its shape suggests."""
        iri = self._kinds.class_for(mention.looks_like) if mention.kind == "name" and not mention.types else ""
        if not iri or not (focus.is_whole or iri in focus.classes):
            return mention
        return msgspec.structs.replace(mention, types=(iri,))

    def _known(self, text: str, folded: str, names: list[Mention]) -> Iterator[Mention]:
        for match in self._individuals.find(folded):
            if any(_inside(match.start, match.end, name) for name in names):
                continue
            fitting = [one for one in match.payload if not one.is_capitalised or text[match.start].isupper()]
            if fitting:
                first = fitting[0]
                yield Mention(
                    match.start,
                    match.end,
                    text[match.start : match.end],
                    kind="individual",
                    types=first.types,
                    individual=first.iri,
                )

    def _names(self, chunk: Chunk, cues: Sequence[Match[Cue]], words: set[tuple[int, int]]) -> Iterator[Mention]:
        text = chunk.text
        nouns = {match.start: match.end for match in cues if any(cue.form == "noun" for cue in match.payload)}
        longest = {match.start: match.head or match.end for match in reversed(cues)}
        for shape in find_names(text, chunk.sentences):
            start, end = shape.start, shape.end
            # "Headquartered in Bremen": a cue that opens a sentence.
            if (start, end) in words or longest.get(start, 0) > end:
                continue
            role_end = nouns.get(start, end)
            # "Director Jane Doe": the role is a cue, the name follows.
            if start < role_end < end - 1 and text[role_end] == " " and text[role_end + 1].isupper():
                start = role_end + 1
            elif (of := _ROLE_OF.match(text, role_end, end)) is not None and start < role_end:
                start = of.end()
            shaped = shape.looks_like if start == shape.start else looks_like(text, start, end)
            yield Mention(start, end, text[start:end], looks_like=shaped)

    def _typed(self, mention: Mention, text: str, classes: list[Match[str]], allowed: frozenset[str] | None) -> Mention:
        if mention.types or (mention.kind == "literal" and mention.value != mention.text):
            return mention
        iri = self._beside(mention, text, classes, allowed)
        if not iri:
            return mention
        return msgspec.structs.replace(mention, kind="name", types=(iri,), value="", datatype="")

    def _beside(self, mention: Mention, text: str, classes: list[Match[str]], allowed: frozenset[str] | None) -> str:
        at = bisect_left(classes, mention.start - _LOOK, key=lambda match: match.start)
        for match in classes[at:]:
            if match.start > mention.end + _LOOK:
                break
            iris = [iri for iri in match.payload if allowed is None or iri in allowed]
            if not iris:
                continue
            inside = mention.start <= match.start and match.end <= mention.end
            if inside and mention.kind == "name" and (match.start == mention.start) != (match.end == mention.end):
                return iris[0]
            iris = [iri for iri in iris if self._agrees(mention, iri)]
            if not iris:
                continue
            if match.end <= mention.start:
                before = text[match.end : mention.start]
                if _BEFORE.match(before) or (_OF.match(before) and self._kinds.kind_of(iris[0]) == "place"):
                    return iris[0]
            if match.start >= mention.end and _AFTER.match(text[mention.end : match.start]):
                return iris[0]
        return ""

    def _agrees(self, mention: Mention, iri: str) -> bool:
        """Whether the shape of a name does not contradict a class."""
        kind = self._kinds.kind_of(iri)
        return mention.looks_like not in ("person", "organisation", "place") or kind in ("", mention.looks_like)


class _Taken:
    """The characters that mentions have so far; who comes first keeps them."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, mentions: Iterable[Mention]) -> Iterator[Mention]:
        for mention in mentions:
            at = bisect_left(self._starts, mention.end)
            if at and self._ends[at - 1] > mention.start:
                continue
            self._starts.insert(at, mention.start)
            self._ends.insert(at, mention.end)
            yield mention


def _inside(start: int, end: int, name: Mention) -> bool:
    return name.start <= start and end <= name.end and (name.start, name.end) != (start, end)


def _is_part_of(match: Match[str], start: int, end: int) -> bool:
    return start <= match.start and match.end <= end and (match.start, match.end) != (start, end)


def _beside_cues(text: str, cues: Sequence[Match[Cue]]) -> Iterator[Mention]:
    """Names in scripts without blanks and capitals: what stands right beside a cue, up to the next sign."""
    for match in cues:
        left = match.start
        while left > 0 and match.start - left < _LONGEST_RUN and _is_part(text[left - 1]):
            left -= 1
        right = match.end
        while right < len(text) and right - match.end < _LONGEST_RUN and _is_part(text[right]):
            right += 1
        if left < match.start:
            yield Mention(left, match.start, text[left : match.start])
        if match.end < right:
            yield Mention(match.end, right, text[match.end : right])


def _is_part(sign: str) -> bool:
    return is_unspaced(sign) and sign not in _STOPS


def _plural(label: str) -> str:
    return label[:-1] + "ies" if label.endswith("y") else label + "s"
