"""Whom a sentence speaks of, and facts across sentences that would have it speak of another.

Rule: a sentence that begins with a pronoun or possessive goes on about the subject of the one before, unless number,
gender or class speak against it; one that begins with a name speaks of that one, unless a later word goes back. Where
it is not plain whom it speaks of, every fact stays.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from sameas.extraction.extractors.reader.ends import Place, ReadEnds
from sameas.extraction.extractors.reader.foreign_words import Language, language_of
from sameas.extraction.extractors.reader.rivals import Fact
from sameas.extraction.graph import stance_words
from sameas.extraction.graph.class_kinds import ClassKinds
from sameas.extraction.graph.model import Mention
from sameas.extraction.graph.stance import is_said_by_another
from sameas.extraction.text.chunking import Chunk, find_sentence
from sameas.extraction.text.document import Span
from sameas.ontology.index import OntologyIndex
from sameas.ontology.model import Constraint

_TIME = (
    r"(?:(?:in|on|since|by|im|am|seit|en|le|el|depuis|desde)\s+(?:(?:the\s+)?(?:year|jahr|jahre|l'année|año)\s+|(?:[\w.]+\s+){0,3})?\d{4},?\s+"
    r"|\d{4},?\s+)"
)
# What may stand before the name that a sentence begins with.
_LEAD = re.compile(
    rf"\W*(?:{_TIME}(?:(?!(?:in|at|of|by|for|from|with|bei|von|für|mit|aus|à|chez|par|pour|avec|de|du|con|por|para|del)\b)(?-i:[a-zäöüß]+)\s+)?)?"
    r"(?:(?P<article>the|die|der|das|le|la|l['\u2019]|les|el|los|las)\s*"
    r"(?:(?!(?:of|that|which|who|in|from|with|for|dont|que|qui|de|du|des|del)\b)[^\W\d_][\w-]{3,}\s+)?)?"
    r"(?:(?:dr|prof|mr|mrs|ms|herr|frau|mme|sr|sra|don|doña)\.?\s+)*",
    re.IGNORECASE,
)
_OPENING = re.compile(rf"\W*(?:{_TIME})?(?P<word>[^\W\d_]+)", re.IGNORECASE)
# A pronoun with nobody behind it: "it is known that", "es gibt", "il y a".
_NOBODY = re.compile(
    r"\W*(?:it\s+(?:seems|(?:is|was)\s[^.;:!?]*\b(?:that|who))|es\s+(?:gibt|gab|handelt|heißt|(?:ist|war)\s[^.;:!?]*\b(?:dass|der|die))"
    r"|il\s+(?:y\s+a|faut|s['\u2019]agit|est\s[^.;:!?]*\bque))\b",
    re.IGNORECASE,
)
_AND = re.compile(r"\s*(?:,|and\b|und\b|et\b|y\b|e\b|&|sowie\b)\s*", re.IGNORECASE)
# What goes back to something from inside of a sentence, by language. German nouns have capitals.
_DEFINITE = (
    r"\b(?:the|this|that|these)\s+(?-i:[a-z]{3,})",
    r"\b(?:der|die|das|dem|den|des|im|zum|zur|vom|beim|diese\w*)\s+[^\W\d_]{3,}",
    r"\b(?:le|la|les|l['\u2019]|du|au|aux|ce|cet|cette|ces)\s*(?-i:[a-zà-ÿ]{3,})",
    r"\b(?:el|la|los|las|del|al|este|esta|ese|esa)\s+(?-i:[a-zà-ÿ]{3,})",
)
_LANGUAGES: tuple[Language, ...] = ("", "de", "fr", "es")
_GOES_BACK: dict[Language, re.Pattern[str]] = {
    language: re.compile(f"{back}|{definite}", re.IGNORECASE)
    for language, back, definite in zip(_LANGUAGES, stance_words.GOES_BACK, _DEFINITE, strict=True)
}
_NAME = re.compile(
    r"(?!(?:The|This|He|She|It|They|Er|Sie|Es|Il|Elle|Ils|Elles|Él|Ella)\b)[\"“„«'\u2019(]?[^\W\d_a-zà-ÿ]"
)
_KEY = re.compile(r"\s*:")
_WORD = re.compile(r"[^\W\d_]+")
_SMALL = frozenset(("of", "the", "and", "für", "und", "der", "die", "des", "de", "du", "la", "le", "et", "y", "del"))
_NEAR = 8
_STOPPED = re.compile(r"[.!?…。]\W*\Z")


class _Opening(NamedTuple):
    """What a pronoun says of the one it means."""

    is_person: bool | None
    articles: frozenset[str] = frozenset()
    """Those that the subject cannot have."""


_FEMININE_DE, _OTHERS_DE = frozenset(("die",)), frozenset(("der", "das"))
_PERSON, _THING = _Opening(is_person=True), _Opening(is_person=False)
_OPENINGS: dict[Language, dict[str, _Opening]] = {
    "": {"he": _PERSON, "she": _PERSON, "his": _PERSON, "her": _PERSON, "it": _THING, "its": _THING},
    "de": {
        "er": _Opening(None, _FEMININE_DE | {"das"}),
        "sie": _Opening(None, _OTHERS_DE),
        "es": _Opening(is_person=False, articles=frozenset(("die", "der"))),
        **{f"sein{end}": _Opening(None, _FEMININE_DE) for end in ("", "e", "er", "en", "em", "es")},
        **{f"ihr{end}": _Opening(None, _OTHERS_DE) for end in ("", "e", "er", "en", "em", "es")},
    },
    "fr": {
        "il": _Opening(None, frozenset(("la", "les"))),
        "elle": _Opening(None, frozenset(("le", "les"))),
        **{word: _Opening(None, frozenset(("les",))) for word in ("son", "sa", "ses")},
    },
    "es": {
        "él": _Opening(None, frozenset(("la", "las", "los"))),
        "ella": _Opening(None, frozenset(("el", "las", "los"))),
        **{word: _Opening(None, frozenset(("las", "los"))) for word in ("su", "sus")},
    },
}  # fmt: skip


# A text too short to tell its language may be of any.
_OPENINGS[""] = {word: one for language in ("es", "fr", "de", "") for word, one in _OPENINGS[language].items()}


class _Thing(NamedTuple):
    """A name in a chunk, with the classes that rules and the reader see for it."""

    start: int
    end: int
    name: str
    types: tuple[str, ...]
    place: Place | None


class Subjects:
    """Says of the facts of one chunk which have the wrong one for a sentence's subject."""

    def __init__(
        self,
        index: OntologyIndex,
        ends: ReadEnds,
        kinds: ClassKinds,
        chunk: Chunk,
        facts: Sequence[Fact],
        seen: Sequence[Mention],
    ) -> None:
        self._index, self._ends, self._kinds, self._chunk = index, ends, kinds, chunk
        language = language_of(chunk.text)
        self._openings, self._goes_back = _OPENINGS[language], _GOES_BACK[language]
        places = {(one.start, one.end): one for fact in facts for one in (fact.subject, fact.object) if one is not None}
        known = {(one.start, one.end): one for one in seen}
        found: list[_Thing] = []
        for start, end in sorted({*places, *known}, key=lambda at: (at[0], -at[1])):
            mention = known.get((start, end))
            if (mention is not None and mention.kind == "literal") or not _NAME.match(chunk.text, start, end):
                continue
            name = chunk.text[start:end].casefold()
            types = () if mention is None else mention.types
            # "Brun" is the Kaj Brun of the sentence before.
            types = types or next((one.types for one in reversed(found) if _same(one.name, name)), ())
            if not found or start >= found[-1].end:
                found.append(_Thing(start, end, name, types, places.get((start, end))))
        self._things = found
        self._by_sentence: dict[int, list[_Thing]] = {}
        for thing in found:
            self._by_sentence.setdefault(find_sentence(chunk.sentences, thing.start), []).append(thing)

    def allows(self, fact: Fact) -> bool:
        """Whether the sentence of a fact's later end may speak of the earlier one."""
        if fact.object is None:
            return True
        ordered = (fact.subject, fact.object) if fact.subject.start < fact.object.start else (fact.object, fact.subject)
        earlier, later = ordered
        sentences = self._chunk.sentences
        first, last = (find_sentence(sentences, one.start) for one in ordered)
        here = self._by_sentence.get(last, [])
        if first == last and is_said_by_another(
            self._chunk.text, sentences[last], Span(earlier.start, earlier.end), Span(later.start, later.end)
        ):
            return False
        if first == last or earlier.name[:1].isdigit() or any(_same(one.name, earlier.name) for one in here):
            return True
        is_subject = earlier is fact.subject
        allowed = self._index.domain(fact.property) if is_subject else self._index.expected_range(fact.property)
        opening = self._opening(last)
        if opening is not None:
            meant = self._meant(last, allowed)
            return meant is None or _same(meant.name, earlier.name)
        own = self._own(last)
        if (
            own is None
            or own.start > later.start
            or not _STOPPED.search(self._chunk.text, max(0, sentences[last].start - _NEAR), sentences[last].start)
            or self._goes_back.search(self._chunk.text, own.end, sentences[last].end)
            or self._are_together(earlier, later)
        ):
            return True
        if later.start >= own.end:
            return not self._fits(own, allowed)
        if is_subject:
            return True
        # It begins with the fact's subject, and the object was named before: is that sentence another's?
        meant = self._meant(first, self._index.domain(fact.property))
        if meant is not None:
            return _same(meant.name, later.name)
        return any(_same(thing.name, later.name) for thing in self._things if thing.start < sentences[first].end)

    def _are_together(self, one: Place, other: Place) -> bool:
        """Whether a sentence names both."""
        return any(
            any(_same(thing.name, one.name) for thing in things)
            and any(_same(thing.name, other.name) for thing in things)
            for things in self._by_sentence.values()
        )

    def _opening(self, number: int) -> _Opening | None:
        """The pronoun that a sentence begins with."""
        sentence = self._chunk.sentences[number]
        found = _OPENING.match(self._chunk.text, sentence.start, sentence.end)
        if found is None or _NOBODY.match(self._chunk.text, sentence.start, sentence.end):
            return None
        return self._openings.get(found["word"].casefold())

    def _meant(self, number: int, allowed: Constraint) -> _Thing | None:
        """Whom the pronoun at the beginning of a sentence means; None where that is not plain."""
        before = number
        while before > 0 and self._opening(before) is not None:
            before -= 1
        opening = self._opening(before + 1) if before < number else None
        subject = self._own(before)
        if opening is None or self._opening(before) is not None:
            return None
        if subject is None or not self._fits(subject, allowed):
            return None
        sentence = self._chunk.sentences[before]
        lead = _LEAD.fullmatch(self._chunk.text, sentence.start, subject.start)
        if lead is not None and (lead["article"] or "").casefold() in opening.articles:
            return None
        after = _AND.match(self._chunk.text, subject.end)
        others = [one for one in self._by_sentence[before] if not _same(one.name, subject.name)]
        if after is not None and any(one.start == after.end() for one in others):
            return None
        is_person = self._is_person(subject)
        if opening.is_person is not None and is_person is not opening.is_person:
            return None
        if is_person and any(self._is_person(one) for one in others):
            # Which of two people, their names do not say.
            return None
        return subject

    def _own(self, number: int) -> _Thing | None:
        """The name that a sentence begins with."""
        sentence = self._chunk.sentences[number]
        first = next(iter(self._by_sentence.get(number, [])), None)
        is_first = first is not None and _LEAD.fullmatch(self._chunk.text, sentence.start, first.start)
        if first is None or not is_first or not (first.types or first.place) or _KEY.match(self._chunk.text, first.end):
            return None
        return first

    def _fits(self, thing: _Thing, allowed: Constraint) -> bool:
        if thing.place is not None and allowed:
            ahead = self._ends.type_score(thing.place, allowed)
            return self._ends.is_likely(thing.place, allowed) and ahead is not None and ahead >= 0
        above = self._index.class_tree.above
        fitting = [group for group in allowed if any(not above(iri).isdisjoint(group) for iri in thing.types)]
        return bool(allowed) and len(fitting) == len(allowed)

    def _is_person(self, thing: _Thing) -> bool:
        if thing.types:
            return any(self._kinds.kind_of(iri) == "person" for iri in thing.types)
        types = {} if thing.place is None else thing.place.types
        best = max(types, key=lambda iri: (types[iri], iri), default="")
        return bool(best) and self._kinds.kind_of(best) == "person"


def _same(one: str, other: str) -> bool:
    """Whether two names may be of one thing: the shorter within the longer, or made of its first letters."""
    short, long = sorted((one, other), key=len)
    return short in long or short == "".join(word[0] for word in _WORD.findall(long) if word not in _SMALL)
