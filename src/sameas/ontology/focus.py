"""What a piece of text can be about: the classes and properties of a large ontology that its words point
to.

A term's score depends on the term and the text alone, never on the rest of the ontology. So a class that a
text is not about can be added without changing the focus of that text, byte for byte, and no paid call is
repeated for it. A small ontology is passed whole. Deterministic; no model, no network.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property

import msgspec

from sameas.ontology.index import OntologyIndex
from sameas.ontology.lexicon import Entry

FULL = 1000
"""The score of a label of one word that is in the text; each further word adds as much."""
SHORT = 3
ROOT = 5
"""Letters that "founded" and "founder" share, or "director" and "directed"; these alone count half."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
# Scripts written without spaces: pairs of characters stand for words.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_NAME = re.compile(r"\b[^\W\d_a-z][^\W\d_]+")
_DIGITS = re.compile(r"\d")
NAME_HINTS = (
    *("person", "human", "agent", "organization", "organisation", "company", "corporation"),
    *("place", "location", "city", "country", "event"),
)
"""A capitalised word can be the name of one of these, though the text does not say so."""
NUMBER_HINTS = ("date", "year", "time", "number", "amount")


class FocusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an ontology one text may bring with it."""

    whole_up_to: int = 120
    """Classes and properties together, up to which an ontology is passed whole."""
    classes: int = 40
    properties: int = 60


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """What the text can be about: IRIs, sorted."""

    classes: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    is_whole: bool = False

    def encode(self) -> bytes:
        """The bytes that are compared and hashed."""
        return msgspec.json.encode(self)


DEFAULT_SETTINGS = FocusSettings()


class Focuser:
    """Chooses for any number of texts; made once for an ontology."""

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
    def _labels(self) -> dict[str, list[tuple[Entry, frozenset[str]]]]:
        """Labels by the root of each of their words."""
        found: dict[str, list[tuple[Entry, frozenset[str]]]] = {}
        for entry in self._index.lexicon():
            text = re.sub(r"\{(?:subject|object)\}", " ", entry.text) if entry.kind == "pattern" else entry.text
            words = frozenset(words_of(text))
            for root in {word[:ROOT] for word in words}:
                found.setdefault(root, []).append((entry, words))
        return found

    def focus(self, text: str) -> Focus:
        """The classes and properties that the text can be about."""
        if self._whole is not None:
            return self._whole
        said = set(words_of(text))
        scores = self._score(said)
        for iri in self._hinted(_hints(text)):
            # A guess from the shape of a word never beats a word that is there.
            scores[iri] = max(scores[iri], FULL // 4)
        classes = self._choose_classes(scores)
        return Focus(
            classes=self._with_context(classes),
            properties=tuple(sorted(self._choose_properties(scores, classes))),
        )

    def _score(self, said: Iterable[str]) -> Counter[str]:
        words = frozenset(said)
        roots = {word[:ROOT] for word in words}
        scores: Counter[str] = Counter()
        for root in roots:
            for entry, label in self._labels.get(root, ()):
                common = [word for word in label if word[:ROOT] in roots]
                # Half of a label, and more than little words such as "in" and "of".
                whole = len(common) == len(label)
                if not whole and (2 * len(common) < len(label) or max(map(len, common)) <= SHORT):
                    continue
                points = sum(FULL if word in words else FULL // 2 for word in common)
                # A part of a label counts for little: "music" alone is hardly a music video object.
                score = points if whole else points // (2 * len(label))
                for iri in self._about(entry):
                    scores[iri] = max(scores[iri], score)
        return scores

    def _hinted(self, hints: set[str]) -> set[str]:
        """Terms with a label that is one of the hints and nothing more."""
        return {
            entry.iri
            for hint in hints
            for entry, label in self._labels.get(hint[:ROOT], ())
            if label == {hint} and entry.kind != "individual"
        }

    def _about(self, entry: Entry) -> tuple[str, ...]:
        individual = self._index.individuals.get(entry.iri) if entry.kind == "individual" else None
        return (entry.iri,) if individual is None else individual.types

    def _choose_classes(self, scores: Counter[str]) -> list[str]:
        hit = [iri for iri in scores if iri in self._index.classes]
        return sorted(hit, key=lambda iri: (-scores[iri], iri))[: self._settings.classes]

    def _with_context(self, classes: list[str]) -> tuple[str, ...]:
        """The classes and everything above them, so that a reader sees what each one is; equals once."""
        found = {self._index.shown(one) for iri in classes for one in self._index.class_tree.above(iri)}
        return tuple(sorted(found & self._index.classes.keys()))

    def _choose_properties(self, scores: Counter[str], classes: list[str]) -> list[str]:
        index = self._index
        chosen = set(classes)
        total: Counter[str] = Counter()
        for iri in scores:
            if iri in index.properties:
                total[iri] += scores[iri]
        for position, class_iri in enumerate(classes):
            for iri in index.properties_for(class_iri):
                own = any(not chosen.isdisjoint(group) for group in index.domain(iri))
                reaches = any(not chosen.isdisjoint(group) for group in index.range(iri))
                total[iri] = max(total[iri], scores[iri] + FULL // 4 * (own + reaches) + max(0, 100 - position))
        kept = [iri for iri in total if not index.properties[iri].deprecated]
        return sorted(kept, key=lambda iri: (-total[iri], iri))[: self._settings.properties]


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


def _hints(text: str) -> set[str]:
    found: set[str] = set()
    if _NAME.search(text):
        found.update(NAME_HINTS)
    if _DIGITS.search(text):
        found.update(NUMBER_HINTS)
    return {_stem(word) for word in found}
