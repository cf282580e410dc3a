"""What speaks for each fact of a chunk: the network's score beside its rivals, and what the words around it say.

Rule: signs are counted, never judged; `confidence` says what they are worth. A word of another language counts as the
English one that labels use.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sameas.extraction.extractors.reader.confidence import Signs, logit
from sameas.extraction.extractors.reader.ends import Place, ReadEnds
from sameas.extraction.extractors.reader.foreign_words import Language, english_roots, language_of
from sameas.extraction.extractors.reader.joining import overlap
from sameas.extraction.extractors.reader.rivals import Fact, Rivals, ends_of, name_of
from sameas.extraction.graph import stance_words
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.model import Claim, Mention
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.ontology.focus import words_of
from sameas.ontology.index import OntologyIndex
from sameas.ontology.word_families import LITTLE, root_of

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_REACH = 4.0
_LONGEST_LIST = 120
# Between two members of a list: nothing but other members.
_LIST = re.compile(
    r"\s*(?:,|/|\band\b|&|\bund\b|\bet\b|\by\b|\be\b|\bsowie\b)(?:[^.;:!?\n]{0,60}?(?:,|\band\b|&|\bund\b|\bet\b|\by\b))?"
    r"\s*(?:(?:the|a|an|der|die|das|den|dem|le|la|les|des|du|de|el|los|las|un|une|una|eine?|in|at|two|three)\s+|l['\u2019])*[\"“„«]?\Z"
)
_KEY = re.compile(r"(?:^|[\n(;,.•*|-])\s*(?P<key>[^\W\d_][^\n:;(),.|]{1,30}?)\s*:\s*[^\n:;]*\Z")
_PERSON = re.compile(r"\b(?:he|she|his|her|him|er|sie|seine?[rnms]?|il|elle|él|ella)\b", re.IGNORECASE)
_THING = re.compile(r"\b(?:it|its|es|sein|ihre?[rnms]?)\b", re.IGNORECASE)
_DEFINITE = re.compile(
    r"\b(?:the|this|der|die|das|dem|den|le|la|l'|les|ce|cette|el|los|las|este|esta)\s+(?P<noun>[^\W\d_A-ZÄÖÜ][\w-]+|[A-ZÄÖÜ][a-zäöüß]{3,})",
    re.IGNORECASE,
)
_UNTRUE = re.compile("|".join(stance_words.UNTRUE), re.IGNORECASE)
_AND = re.compile(r"\b(?:and|und|et|y|sowie)\b|&")
_NO = re.compile(
    r"\b(?:not|no|nein|non|never|none|neither|nor|nobody|without|nicht|kein\w*|nie|ohne|ne|n'|pas|aucun\w*|sans|nunca|sin|ning\w+)\b|n't\b",
    re.IGNORECASE,
)


_WORK = re.compile(
    r"\b(?:film|movie|series|programme|serial|sitcom|episode|novel|book|play|opera|musical|album|song|poem|magazine|newspaper"
    r"|podcast|comic|documentary)s?\b",
    re.IGNORECASE,
)


class _Word(NamedTuple):
    start: int
    roots: frozenset[str]


class Weighing:
    """Counts signs for one ontology."""

    def __init__(self, index: OntologyIndex, ends: ReadEnds) -> None:
        self.index, self.ends = index, ends
        self.kinds = ClassKinds(index)
        self._labels: dict[str, tuple[frozenset[str], ...]] = {}
        self._nouns: dict[str, frozenset[str]] = {}
        self._kinds: dict[str, str] = {}

    def kind_of(self, place: Place) -> str:
        """Whether a place seems to name a work with a title or a person."""
        if not place.types:
            return ""
        best = max(place.types, key=lambda iri: (place.types[iri], iri))
        kind = self._kinds.get(best)
        if kind is None:
            named = (self.index.classes[iri] for iri in self.index.class_tree.above(best) if iri in self.index.classes)
            is_work = any(_WORK.search(text.value) for one in named for text in (*one.labels, *one.alt_labels))
            kind = self._kinds[best] = "work" if is_work else self.kinds.kind_of(best)
        return kind

    def is_called(self, place: Place, noun: str, language: Language) -> bool:
        """Whether a noun is what the class of a place is called."""
        if not place.types:
            return False
        best = max(place.types, key=lambda iri: (place.types[iri], iri))
        return not _roots_in(noun, language).isdisjoint(self.nouns(best))

    def labels(self, iri: str) -> tuple[frozenset[str], ...]:
        """The roots of each label of a property."""
        known = self._labels.get(iri)
        if known is None:
            one = self.index.properties[iri]
            texts = (_HUMPS.sub(" ", text.value) for text in (*one.labels, *one.alt_labels))
            known = self._labels[iri] = tuple(roots for roots in map(_roots, texts) if roots)
        return known

    def nouns(self, iri: str) -> frozenset[str]:
        """The roots of the labels of a class and of those above it."""
        known = self._nouns.get(iri)
        if known is None:
            found: set[str] = set()
            for each in self.index.class_tree.above(iri):
                one = self.index.classes.get(each)
                for text in (*one.labels, *one.alt_labels) if one else ():
                    found |= _roots(text.value)
            known = self._nouns[iri] = frozenset(found)
        return known

    def chunk(self, chunk: Chunk, facts: Sequence[Fact], said: Sequence[Claim], asked: Sequence[str]) -> "ChunkSigns":
        return ChunkSigns(self, chunk, facts, said, asked)


class ChunkSigns:
    """Counts the signs of the facts of one chunk."""

    def __init__(
        self, weighing: Weighing, chunk: Chunk, facts: Sequence[Fact], said: Sequence[Claim], asked: Sequence[str]
    ) -> None:
        self._weighing, self._chunk, self._said, self._asked = weighing, chunk, said, asked
        self.rivals = Rivals(facts, weighing.index)
        language = language_of(chunk.text)
        self._words = [_Word(match.start(), _roots_in(match.group(), language)) for match in _WORD.finditer(chunk.text)]
        self._starts = [word.start for word in self._words]
        self._order = sorted(self.rivals.places, key=lambda place: place.start)
        self._types: dict[str, dict[str, float]] = {}
        for place in self.rivals.places:
            known = self._types.setdefault(place.name, {})
            for iri, score in place.types.items():
                known[iri] = max(score, known.get(iri, 0.0))

    def of(self, fact: Fact, subject: Mention, target: Mention) -> Signs:
        chunk, index, ends, rivals = self._chunk, self._weighing.index, self._weighing.ends, self.rivals
        score = logit(fact.score)
        domain = ends.type_score(fact.subject, index.domain(fact.property))
        is_value = target.kind == "literal"
        reach = None if is_value or fact.object is None else ends.type_score(
            fact.object, index.expected_range(fact.property)
        )  # fmt: skip
        tags = [fact.subject.score] + ([fact.object.score] if fact.object is not None else [])
        first, last = sorted(find_sentence(chunk.sentences, end.start) for end in (subject, target))
        agreed = any(
            one.predicate == fact.property and overlap(one.subject, subject) and overlap(one.object, target)
            for one in self._said
        )
        other = any(
            one.predicate != fact.property
            and (overlap(one.subject, subject) or overlap(one.object, subject))
            and (overlap(one.subject, target) or overlap(one.object, target))
            for one in self._said
        )
        words = self._said_in(chunk.sentences[first].start, chunk.sentences[last].end)
        near = self._said_in(chunk.sentences[last].start, chunk.sentences[last].end)
        close = self._close(fact.property, target)
        key = self._key(fact.property, target)
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
            other_subject=float(first != last and self._may_be_of(fact, chunk.sentences[last])),
            rival_cue=max((self._cue(words, iri) for iri in rivals.properties(fact)), default=0.0),
            siblings=float(rivals.siblings(fact)),
            nearer_object=0.0 if is_value else float(self._nearer(fact)),
            close=close,
            other_close=max(
                (self._close(iri, target) for iri in self._asked if self._may_be(iri, fact, target)), default=0.0
            ),
            nearer_subject=float(self._nearer_subject(fact)),
            topic=float(bool(self._order) and self._order[0].name == fact.subject.name),
            anaphor=self._anaphor(fact, subject, target),
            key=key,
            mate=self._mate(fact),
            fit=self._fit(fact),
        )

    def is_named(self, fact: Fact) -> bool:
        """Whether the sentences of both ends have every word of a label of the property."""
        ends = [fact.subject.start, fact.subject.start if fact.object is None else fact.object.start]
        first, last = (find_sentence(self._chunk.sentences, at) for at in (min(ends), max(ends)))
        said = self._said_in(self._chunk.sentences[first].start, self._chunk.sentences[last].end)
        return self._cue(said, fact.property) >= 1.0

    def are_both_said(self, one: str, other: str, subject: Mention, target: Mention) -> bool:
        """Whether a conjunction stands between words of both properties: `its founder and chief executive`."""
        if one == other:
            return False
        sentence = self._chunk.sentences[find_sentence(self._chunk.sentences, max(subject.start, target.start))]
        low, high = bisect_left(self._starts, sentence.start), bisect_left(self._starts, sentence.end)
        roots = [frozenset().union(*self._weighing.labels(iri)) for iri in (one, other)]
        for match in _AND.finditer(self._chunk.text, sentence.start, sentence.end):
            at = bisect_left(self._starts, match.start())
            before = frozenset().union(*(word.roots for word in self._words[max(low, at - 3) : at]))
            after = frozenset().union(*(word.roots for word in self._words[at : min(high, at + 4)]))
            if any(before & first and after & second for first, second in (roots, roots[::-1])):
                return True
        return False

    def _said_in(self, start: int, end: int) -> frozenset[str]:
        low, high = bisect_left(self._starts, start), bisect_left(self._starts, end)
        return frozenset().union(*(word.roots for word in self._words[low:high]))

    def _close(self, iri: str, target: Mention) -> float:
        """How near to the object the words of one of the property's labels stand, in its sentence."""
        sentence = self._chunk.sentences[find_sentence(self._chunk.sentences, target.start)]
        low, high = bisect_left(self._starts, sentence.start), bisect_left(self._starts, sentence.end)
        at, after = bisect_left(self._starts, target.start), bisect_left(self._starts, target.end)
        best = 0.0
        if target.datatype.endswith("#boolean"):
            at = after = high
        for label in self._weighing.labels(iri):
            total = 0.0
            for root in label:
                nearest = 0.0
                for number in range(low, high):
                    if root in self._words[number].roots and not at <= number < after:
                        apart = at - number if number < at else number - after + 1
                        nearest = max(nearest, 1 / (1 + (apart - 1) / _REACH))
                total += nearest
            best = max(best, total / len(label))
        return best

    def _may_be(self, iri: str, fact: Fact, target: Mention) -> bool:
        """Whether the object may be one of another property instead."""
        index = self._weighing.index
        if iri == fact.property or iri not in index.properties:
            return False
        tree = index.property_tree
        if iri in tree.above(fact.property) or fact.property in tree.above(iri):
            return False
        if fact.property in index.properties[iri].inverses or iri in index.properties[fact.property].inverses:
            return False
        reach = index.expected_range(iri)
        if target.kind == "literal":
            return any(target.datatype in group for group in reach) or (
                _is_number(target.datatype) and any(_is_number(name) for group in reach for name in group)
            )
        return fact.object is not None and (self._weighing.ends.type_score(fact.object, reach) or 0.0) > 0

    def _key(self, iri: str, target: Mention) -> float:
        """How well what stands before a colon in front of the object names the property: less than 0 for another."""
        found = _KEY.search(self._chunk.text[max(0, target.start - 120) : target.start])
        if found is None:
            return 0.0
        said = frozenset().union(*(_roots_in(word, "") for word in _WORD.findall(found["key"])))
        said = said or _roots(found["key"])
        if not said:
            return 0.0

        def share(one: str) -> float:
            return max((len(roots & said) / len(roots | said) for roots in self._weighing.labels(one)), default=0.0)

        mine = share(iri)
        other = max((share(one) for one in self._asked if one != iri), default=0.0)
        return mine - other if mine or other else -0.2

    def _anaphor(self, fact: Fact, subject: Mention, target: Mention) -> float:
        """Whether the sentence of the later end speaks of the earlier one: 1 if its pronoun or noun fits, -1 if not."""
        chunk = self._chunk
        if fact.object is None:
            return 0.0
        earlier, later, place = (
            (subject, target, fact.subject) if subject.start < target.start else (target, subject, fact.object)
        )
        sentence = chunk.sentences[find_sentence(chunk.sentences, later.start)]
        if earlier.start >= sentence.start or earlier.kind == "literal":
            return 0.0
        lead = chunk.text[sentence.start : later.start]
        person = self._is_person(earlier, place)
        found = _PERSON.search(lead)
        if found is not None:
            return 1.0 if person else -0.5
        definite = _DEFINITE.search(lead)
        if definite is not None:
            said = _roots(definite["noun"])
            if said & (_roots(earlier.text) | frozenset().union(*(self._weighing.nouns(iri) for iri in earlier.types))):
                return 1.0
            for other in self.rivals.places:
                if other.name != place.name and other.start < sentence.start and said & _roots(other.name):
                    return -1.0
        if _THING.search(lead):
            return -1.0 if person else 0.7
        return 0.0

    def _is_person(self, end: Mention, place: Place) -> bool:
        kinds = {self._weighing.kinds.kind_of(iri) for iri in end.types}
        if "person" in kinds:
            return True
        if not place.types or kinds - {""}:
            return False
        types = self._types.get(place.name, {})
        best = max(types, key=lambda iri: types[iri])
        return types[best] > 0.5 and self._weighing.kinds.kind_of(best) == "person"

    def _mate(self, fact: Fact) -> float:
        """The best score of the same fact about another member of a list with one of its ends; 0 where none has one."""
        if fact.object is None:
            return 0.0
        best = 0.0
        for one in self.rivals.facts:
            if one.property != fact.property or one.object is None or one is fact:
                continue
            same_subject, same_object = one.subject.name == fact.subject.name, one.object.name == fact.object.name
            if same_subject == same_object:
                continue
            pair = (one.object, fact.object) if same_subject else (one.subject, fact.subject)
            if self._in_one_list(*pair):
                best = max(best, logit(one.score) + 4.0)
        return best

    def _in_one_list(self, one: Place, other: Place) -> bool:
        first, last = (one, other) if one.start < other.start else (other, one)
        return (
            0 < last.start - first.end < _LONGEST_LIST
            and _LIST.fullmatch(self._chunk.text, first.end, last.start) is not None
        )

    def _fit(self, fact: Fact) -> float:
        """How far the name, wherever it stands, is of a class that the property is said of."""
        domain = self._weighing.index.domain(fact.property)
        place = fact.subject
        types = self._types.get(place.name, place.types)
        score = self._weighing.ends.type_score_of(types, domain)
        return 0.0 if score is None else score

    def _nearer(self, fact: Fact) -> int:
        """How many things that the property may lead to, at most three, stand nearer to the subject than the object."""
        if fact.object is None:
            return 0
        reach = self._weighing.index.expected_range(fact.property)
        far = abs(fact.subject.start - fact.object.start)
        nearer = (
            place
            for place in self.rivals.places
            if place.name not in ends_of(fact)
            and abs(place.start - fact.subject.start) < far
            and (self._weighing.ends.type_score(place, reach) or 0.0) > 0
        )
        return min(3, sum(1 for _ in nearer))

    def _nearer_subject(self, fact: Fact) -> int:
        """The same for things that the property may be of, nearer to the object than the subject."""
        if fact.object is None:
            return 0
        domain = self._weighing.index.domain(fact.property)
        far = abs(fact.subject.start - fact.object.start)
        nearer = (
            place
            for place in self.rivals.places
            if place.name not in ends_of(fact)
            and abs(place.start - fact.object.start) < far
            and (self._weighing.ends.type_score(place, domain) or 0.0) > 0
        )
        return min(3, sum(1 for _ in nearer))

    def _may_be_of(self, fact: Fact, sentence: Span) -> bool:
        """Whether a sentence about the object alone names something else that the property may be of."""
        domain = self._weighing.index.domain(fact.property)
        return any(
            sentence.start <= place.start < sentence.end
            and place.name not in (fact.subject.name, name_of(fact.object))
            and (self._weighing.ends.type_score(place, domain) or 0.0) > 0
            for place in self.rivals.places
        )

    def _cue(self, said: frozenset[str], iri: str) -> float:
        """How much of the best of a property's labels is said, in any form of its words."""
        return max((len(roots & said) / len(roots) for roots in self._weighing.labels(iri)), default=0.0)


def denies(words: str) -> bool:
    """Whether words say no, or name what is none of a yes."""
    return _NO.search(words) is not None or _UNTRUE.search(words) is not None


def _is_number(iri: str) -> bool:
    return iri.rpartition("#")[2] in _NUMBERS


_NUMBERS = frozenset(
    ("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger", "positiveInteger", "gYear")
)


def _roots(text: str) -> frozenset[str]:
    return frozenset(root_of(word) for word in words_of(text) if word not in LITTLE)


def _roots_in(word: str, language: Language) -> frozenset[str]:
    return _roots(word) | english_roots(word.casefold(), language)
