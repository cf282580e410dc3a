"""What a piece of text can be about: the classes and properties of a large ontology that its words point
to.

Evidence is, from strong to weak: a label that the text says, in any form of its words; a part of one; the
description of a term; names and numbers, which can be of people, places and dates that the text does not
call so. A class in focus brings its properties, and a property that is said the classes at its ends.

A term's score depends on the term and the text alone, never on the rest of the ontology. So a class that a
text is not about can be added without changing the focus of that text, byte for byte, and no paid call is
repeated for it. A small ontology is passed whole. Deterministic; no model, no network.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

import msgspec

from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import Entry, local_name, words_of_label
from sameas.ontology.model import Constraint, Term
from sameas.ontology.word_families import LITTLE, root_of

FULL = 1000
"""The score of a label of one word that is in the text; each further word adds as much, another form of it half."""
GUESS = FULL // 10
"""The score of what the shape of a word suggests: it never beats a word that is there."""
SHORT = 3
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
# Scripts written without spaces: pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_NAME = re.compile(r"\b[^\W\d_a-z][^\W\d_]+")
_DIGITS = re.compile(r"\d")
_SENTENCE_END = re.compile(r"[.;:](?:\s|$)")
NAME_HINTS = (
    *("person", "human", "agent", "organization", "organisation", "company", "corporation"),
    *("place", "location", "city", "country", "event"),
)
"""A capitalised word can be the name of one of these, though the text does not say so."""
NUMBER_HINTS = ("date", "year", "time", "number", "amount")
MEASURES = frozenset(
    {
        *("date", "datetime", "datetimestamp", "gyear", "gyearmonth", "time", "duration"),
        *("number", "integer", "int", "long", "decimal", "double", "float", "nonnegativeinteger", "positiveinteger"),
    }
)
"""Datatypes, by their last names in small letters, whose values have digits."""


class FocusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an ontology one text may bring with it."""

    whole_up_to: int = 120
    """Classes and properties together, up to which an ontology is passed whole."""
    classes: int = 40
    properties: int = 60


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """What the text can be about: IRIs, sorted. Its call raises nothing."""

    classes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    is_whole: bool = False

    def encode(self) -> bytes:
        """The bytes that are compared and hashed."""
        return msgspec.json.encode(self)


DEFAULT_SETTINGS = FocusSettings()


class Focuser:
    """Chooses for any number of texts; made once for an ontology. Raises nothing."""

    def __init__(self, index: OntologyIndex, *, settings: FocusSettings = DEFAULT_SETTINGS) -> None:
        self._index = index
        self._settings = settings

    @cached_property
    def _whole(self) -> Focus | None:
        ontology = self._index.ontology
        if len(ontology.classes) + len(ontology.properties) > self._settings.whole_up_to:
            return None
        return Focus(
            classes=tuple(one.iri for one in ontology.classes),
            properties=tuple(one.iri for one in ontology.properties),
            is_whole=True,
        )

    @cached_property
    def _labels(self) -> "dict[str, list[_Label]]":
        """Labels and descriptions by the root of each of their words."""
        found: dict[str, list[_Label]] = {}
        for label in (*self._names(), *self._descriptions()):
            for root in label.roots:
                found.setdefault(root, []).append(label)
        return found

    def _names(self) -> "Iterator[_Label]":
        for entry in self._index.lexicon():
            if entry.kind != "individual" and words_of_label(entry.text):
                continue  # Its words stand beside it as an entry of their own.
            text = re.sub(r"\{(?:subject|object)\}", " ", entry.text) if entry.kind == "pattern" else entry.text
            words = frozenset(words_of(text))
            yield _Label(words - LITTLE or words, self._about(entry), is_term=entry.kind != "individual")

    def _descriptions(self) -> "Iterator[_Label]":
        """The first sentence of what a file says of a term: weaker than a label, and for what its label hides."""
        terms: tuple[Term, ...] = (*self._index.ontology.classes, *self._index.ontology.properties)
        for term in terms:
            for comment in term.comments:
                words = frozenset(words_of(_SENTENCE_END.split(comment.value, maxsplit=1)[0])) - LITTLE
                if words:
                    yield _Label(words, (term.iri,), is_description=True)

    @cached_property
    def _ends(self) -> dict[str, tuple[frozenset[str], frozenset[str], bool]]:
        """The classes at either end of each property, and whether its values have digits."""
        index = self._index
        found = {}
        for iri in index.properties:
            reach = _names_in(index.range(iri))
            measured = any(index.is_datatype(name) and local_name(name).casefold() in MEASURES for name in reach)
            found[iri] = (_names_in(index.domain(iri)), reach, measured)
        return found

    @cached_property
    def _doubles(self) -> frozenset[str]:
        """Properties without a label that equal one with a label: names in other vocabularies."""
        known = self._index.properties
        named = {iri for iri, one in known.items() if one.labels}
        same = {other for iri in named for other in known[iri].equivalents}
        return frozenset(
            iri
            for iri, one in known.items()
            if iri not in named and (iri in same or not named.isdisjoint(one.equivalents))
        )

    @cached_property
    def _by_range(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for iri, (_, reach, _) in self._ends.items():
            for name in reach:
                found.setdefault(name, []).append(iri)
        return found

    def focus(self, text: str) -> Focus:
        """The classes and properties that the text can be about."""
        if self._whole is not None:
            return self._whole
        has_digits = bool(_DIGITS.search(text))
        hints = {_stem(word) for word in NUMBER_HINTS} if has_digits else set()
        scores = self._score(frozenset(words_of(text)), hints)
        if _NAME.search(text):
            hints.update(_stem(word) for word in NAME_HINTS)
        for iri in self._hinted(hints):
            scores[iri] = max(scores[iri], GUESS)
        classes = self._choose_classes(scores)
        return Focus(
            classes=self._with_context(classes),
            properties=tuple(sorted(self._choose_properties(scores, classes, has_digits=has_digits))),
        )

    def _score(self, said: frozenset[str], hints: set[str]) -> Counter[str]:
        roots = {root_of(word) for word in said - LITTLE}
        guessed = {root_of(hint) for hint in hints} - roots
        scores: Counter[str] = Counter()
        for root in roots:
            for label in self._labels.get(root, ()):
                score = label.score(said, roots, guessed)
                for iri in label.about if score else ():
                    scores[iri] = max(scores[iri], score)
        return scores

    def _hinted(self, hints: set[str]) -> set[str]:
        """Terms with a label that is one of the hints and nothing more."""
        return {
            iri
            for hint in hints
            for label in self._labels.get(root_of(hint), ())
            if label.is_term and label.words == {hint}
            for iri in label.about
        }

    def _about(self, entry: Entry) -> tuple[str, ...]:
        individual = self._index.individuals.get(entry.iri) if entry.kind == "individual" else None
        return (entry.iri,) if individual is None else individual.types

    def _choose_classes(self, scores: Counter[str]) -> dict[str, int]:
        """The best classes and what they score; where a property is said, its ends can be what it joins."""
        found: Counter[str] = Counter({iri: score for iri, score in scores.items() if iri in self._index.classes})
        for iri, score in scores.items():
            if score >= FULL // 2 and iri in self._ends:
                domain, reach, _ = self._ends[iri]
                for name in (domain | reach) & self._index.classes.keys():
                    found[name] = max(found[name], GUESS)
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))[: self._settings.classes])

    def _with_context(self, classes: Iterable[str]) -> tuple[str, ...]:
        """The classes and everything above them, so that a reader sees what each one is; equals once."""
        found = {self._index.shown(one) for iri in classes for one in self._index.class_tree.above(iri)}
        return tuple(sorted(found & self._index.classes.keys()))

    def _choose_properties(self, scores: Counter[str], classes: dict[str, int], *, has_digits: bool) -> list[str]:
        index = self._index
        total: Counter[str] = Counter({iri: scores[iri] for iri in scores if iri in index.properties})
        for class_iri, score in classes.items():
            for iri in index.properties_for(class_iri):
                domain, reach, measured = self._ends[iri]
                # What a class has of its own says more of it than what everything above it has.
                points = score // (2 if class_iri in domain else 4)
                points += max((classes[name] for name in reach & classes.keys()), default=0) // 4
                points += GUESS if measured and has_digits else 0
                total[iri] = max(total[iri], scores[iri] + points)
        for class_iri, score in classes.items():
            for iri in self._by_range.get(class_iri, ()):
                total[iri] = max(total[iri], scores[iri] + score // 4)
        kept = [iri for iri in total if not index.properties[iri].deprecated and iri not in self._doubles]
        return sorted(kept, key=lambda iri: (-total[iri], iri))[: self._settings.properties]


class _Label:
    """Words that stand for terms, and what a text that says some of them says of these."""

    __slots__ = ("about", "is_description", "is_term", "roots", "words")

    def __init__(
        self, words: frozenset[str], about: tuple[str, ...], *, is_term: bool = False, is_description: bool = False
    ) -> None:
        self.words = words
        self.about = about
        self.is_term = is_term
        self.is_description = is_description
        self.roots = {root_of(word): word for word in sorted(words)}

    def score(self, said: frozenset[str], roots: set[str], guessed: set[str]) -> int:
        """Points for the words that are said, and for those that a number suggests beside them."""
        common = [word for root, word in self.roots.items() if root in roots]
        if self.is_description:
            # Half of it, and more than one word.
            return GUESS if len(common) > 1 and 2 * len(common) >= len(self.roots) else 0
        hinted = sum(root in guessed for root in self.roots)
        whole = len(common) + hinted == len(self.roots)
        # Half of a label, and more than little words such as "in" and "of".
        if not whole and (2 * len(common) < len(self.roots) or max(map(len, common)) <= SHORT):
            return 0
        points = sum(FULL if word in said else FULL // 2 for word in common) + GUESS * hinted
        # A part of a label counts for little: "music" alone is hardly a music video object.
        return points if whole else points // (2 * len(self.roots))


def _names_in(constraint: Constraint) -> frozenset[str]:
    return frozenset(name for group in constraint for name in group)


def words_of(text: str) -> Iterable[str]:
    """Words in a form in which "Companies" and "company" meet; pairs of characters in unspaced scripts."""
    for match in _WORD.finditer(text):
        word = match.group().casefold()
        if _UNSPACED.search(word):
            for run in _UNSPACED.findall(word):
                yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            yield _stem(word)


_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ss", "ss"), ("s", ""))


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + instead
    return word
