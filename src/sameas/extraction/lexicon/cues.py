"""What in a text points to a property: its labels, alternative labels and patterns, and their usual other
forms.

A cue stands between its subject and object in one order or the other, or it is a noun (`capital`) whose place
tells which is which. Annotate a property with https://sameas.dev/ns#pattern, such as "{subject} was born in
{object}", where its labels are not the words that people write.
"""

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from sameas.extraction.lexicon.inflection import EVENT_VERBS, active_forms, passive_forms, verb_forms
from sameas.extraction.lexicon.phrases import fold_phrase
from sameas.ontology.index import OntologyIndex

CueForm: TypeAlias = Literal["subject_first", "object_first", "noun"]

SAID_IN_LABEL, SAID_OTHERWISE, DERIVED = 3, 2, 1


class Cue(NamedTuple):
    """A property, how its ends lie around the phrase, and how much the phrase says."""

    property: str
    form: CueForm
    weight: int
    before: str = ""
    after: str = ""
    is_pattern: bool = False


_PREPOSITIONS = frozenset(
    (
        "of in on at by for to from with as into about through under over von im für bei aus nach mit de à en "
        "por para con di da per van bij"
    ).split()
)
_SKIPPED_FIRST = frozenset(("is", "was", "are", "were", "be", "has", "have", "had"))
_PATTERN = re.compile(r"\{(subject|object)\}")
_ENGLISH = re.compile(r"[a-z][a-z' -]*\Z")
_VERB_ENDINGS = ("ed", "es", "s")
# Labels such as these occur in every text and say nothing.
_EMPTY_LABELS = frozenset(
    ("is", "has", "of", "in", "a", "type", "the", "and", "as", "at", "by", "for", "on", "to", "with")
)


def build_cues(index: OntologyIndex) -> Iterator[tuple[str, Cue]]:
    """All cues of an ontology, each with its phrase."""
    for entry in index.lexicon():
        if entry.kind == "pattern":
            yield from _from_pattern(entry.text, entry.iri)
        elif entry.kind == "property":
            yield from _from_label(fold_phrase(entry.text), entry.iri, preferred=entry.preferred)


def _from_pattern(text: str, iri: str) -> Iterator[tuple[str, Cue]]:
    parts = _PATTERN.split(text)
    slots = parts[1::2]
    if sorted(slots) != ["object", "subject"]:
        return
    before, middle, after = (fold_phrase(part) for part in parts[::2])
    if middle:
        form: CueForm = "subject_first" if slots[0] == "subject" else "object_first"
        yield middle, Cue(iri, form, SAID_IN_LABEL + 1, before, after, is_pattern=True)


def _from_label(label: str, iri: str, *, preferred: bool) -> Iterator[tuple[str, Cue]]:
    weight = SAID_IN_LABEL if preferred else SAID_OTHERWISE
    words = label.split()
    while words and words[0] in _SKIPPED_FIRST and len(words) > 1:
        words = words[1:]
    if not words or " ".join(words) in _EMPTY_LABELS:
        return
    phrase = " ".join(words)
    if words[-1] in _PREPOSITIONS and len(words) > 1:
        yield from ((form, Cue(iri, "subject_first", weight)) for form in _inflected(words))
        return
    english = bool(_ENGLISH.match(phrase))
    if english and len(words) == 1 and words[0].endswith("ed"):
        yield from ((form, Cue(iri, "subject_first", weight)) for form in verb_forms(words[0]))
        return
    yield phrase, Cue(iri, "noun", weight)
    if english:
        yield from _from_noun(words, iri)


def _inflected(words: list[str]) -> Iterator[str]:
    yield " ".join(words)
    rest = " ".join(words[1:])
    if len(words) == 2 and words[0].endswith((*_VERB_ENDINGS, "ing")) and _ENGLISH.match(words[0]):
        yield from (f"{form} {rest}" for form in verb_forms(words[0]))


def _from_noun(words: list[str], iri: str) -> Iterator[tuple[str, Cue]]:
    last = words[-1]
    if not last.endswith("s"):
        yield (
            " ".join([*words[:-1], f"{last[:-1]}ies" if last.endswith("y") else f"{last}s"]),
            Cue(iri, "noun", DERIVED),
        )
    if len(words) == 1:
        if last.endswith("s") and not last.endswith("ss"):
            yield from ((form, Cue(iri, "subject_first", DERIVED)) for form in verb_forms(last))
        yield from ((form, Cue(iri, "subject_first", SAID_OTHERWISE)) for form in passive_forms(last))
        yield from ((form, Cue(iri, "object_first", DERIVED)) for form in active_forms(last))
    for word in words:
        for phrase in EVENT_VERBS.get(word) or EVENT_VERBS.get(word.removesuffix("s"), ()):
            yield phrase, Cue(iri, "subject_first", SAID_OTHERWISE)
            if " " in phrase:
                yield from ((form, Cue(iri, "subject_first", DERIVED)) for form in _inflected(phrase.split()))
            elif phrase.endswith("s"):
                yield from ((form, Cue(iri, "subject_first", DERIVED)) for form in verb_forms(phrase))
