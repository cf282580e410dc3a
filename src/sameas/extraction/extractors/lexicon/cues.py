"""What in a text points to a property: its labels, alternative labels and patterns, and their usual other forms.

A cue stands between its subject and object in one order or the other, or it is a noun (`capital`) whose place tells
which is which. Annotate a property with https://sameas.dev/ns#pattern, such as "{subject} was born in {object}", where
its labels are not the words that people write.

Two ways of writing take a cue apart. Cues that share their last word: `written and directed by` says `written by` as
well; what is joined must be a cue of its own with that last word. And a passive whose doer stands apart: `founded in
1950 by` says `founded by`; between the participle and `by` stand only dates, places and manners.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias

from sameas.extraction.extractors.lexicon.inflection import (
    EVENT_VERBS,
    active_forms,
    is_past,
    participles,
    passive_forms,
    verb_forms,
)
from sameas.extraction.extractors.lexicon.phrases import Match, Phrases, fold_phrase
from sameas.ontology.index import OntologyIndex

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)


CueForm: TypeAlias = Literal["subject_first", "object_first", "noun"]
CueUse: TypeAlias = Literal["phrase", "verb", "passive", "event", "nominal"]
"""How the phrase is used: a verb takes its object directly (`acquired`), a passive ends with `by`, an event is what
happened to its subject (`founded`, of a date), a nominal follows a copula (`subsidiary of`), a phrase is the rest.
"""

SAID_IN_LABEL, SAID_OTHERWISE, DERIVED = 3, 2, 1

# ruff: noqa: SIM905 (word lists and the marks of other scripts are the data here)


_JOINS = tuple(f" {word} " for word in "and or & und oder et ou y o e en och".split())
_JOINED = re.compile(r"(?:[^\W\d_]+(?:,(?:\s(?:and|or|und|et|y))?|\s(?:and|or|&|und|oder|et|ou|y|o|e|en|och))\s)+\Z")
_WORD = re.compile(r"[^\W\d_]+")
_BACK = 80

# ruff: noqa: RUF001 (the marks of other scripts are the data here)


_UNTIL_BY = re.compile(
    r"(?:,?\s+(?:in|on|at|as|near|around|about|during|since|early|late|the|a|an|of|and(?=\s+[^\Wa-z_])|jointly|together|later"
    r"|first|originally|back|\w+ly|[^\Wa-z_][\w.'’/-]*))+?,?\s+(?=by\s)"
)
_MANNER = re.compile(
    r",?\s+(?:in|on|at|as|near|around|about|during|since|early|late|jointly|together|later|first|back|\w+ly)\b"
)
_FAR = 90
_DOER = "by"


class Cue(NamedTuple):
    """A property, how its ends lie around the phrase, and how much the phrase says."""

    property: str
    form: CueForm
    weight: int
    before: str = ""
    after: str = ""
    is_pattern: bool = False
    use: CueUse = "phrase"


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
_BY = "by"
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
    if words[-1] == _BY and len(words) > 1:
        yield from _from_passive(words, phrase, iri, weight)
        return
    if words[-1] in _PREPOSITIONS and len(words) > 1:
        use: CueUse = "nominal" if _is_nominal(words) else "phrase"
        yield from ((form, Cue(iri, "subject_first", weight, use=use)) for form in _inflected(words))
        if is_past(words[0]):
            rest = " ".join(words[1:])
            passive = Cue(iri, "object_first", weight, use="passive")
            yield from ((f"{form} {rest} by", passive) for form in participles(words[0]))
        return
    english = bool(_ENGLISH.match(phrase))
    if english and len(words) == 1 and is_past(words[0]):
        yield from _from_verb(words[0], iri, weight)
        return
    yield phrase, Cue(iri, "noun", weight)
    if english and len(words) > 1 and is_past(words[0]):
        # `made from grape`: a verb with the kind of thing that follows.
        yield phrase, Cue(iri, "subject_first", weight)
    if english:
        yield from _from_noun(words, iri, weight)


def _from_verb(verb: str, iri: str, weight: int) -> Iterator[tuple[str, Cue]]:
    """What a verb says of doer and thing, either of them first."""
    yield from ((form, Cue(iri, "subject_first", weight, use="verb")) for form in verb_forms(verb))
    yield from ((f"{form} {_BY}", Cue(iri, "object_first", weight, use="passive")) for form in participles(verb))


def _from_passive(words: list[str], phrase: str, iri: str, weight: int) -> Iterator[tuple[str, Cue]]:
    yield phrase, Cue(iri, "subject_first", weight, use="passive")
    if len(words) == len(("founded", _BY)) and is_past(words[0]):
        yield from ((form, Cue(iri, "object_first", DERIVED, use="verb")) for form in verb_forms(words[0]))


def _is_nominal(words: list[str]) -> bool:
    """Whether a label with a preposition at its end begins with a noun: `partner of`, `doctorate from`."""
    first = words[0]
    if words[-1] == "of":
        return not is_past(first)
    return not (is_past(first) or first.endswith((*_VERB_ENDINGS, "ing")))


def _inflected(words: list[str]) -> Iterator[str]:
    yield " ".join(words)
    rest = " ".join(words[1:])
    first = words[0]
    is_verb = is_past(first) or first.endswith((*_VERB_ENDINGS, "ing"))
    if len(words) == 2 and is_verb and words[1] != "of" and _ENGLISH.match(first):
        yield from (f"{form} {rest}" for form in verb_forms(first))


def _from_noun(words: list[str], iri: str, weight: int) -> Iterator[tuple[str, Cue]]:
    last = words[-1]
    if not last.endswith("s"):
        yield (
            " ".join([*words[:-1], f"{last[:-1]}ies" if last.endswith("y") else f"{last}s"]),
            Cue(iri, "noun", DERIVED),
        )
    if len(words) == 1:
        if last.endswith("s") and not last.endswith("ss"):
            yield last, Cue(iri, "subject_first", weight, use="verb")
            yield from _from_verb(last, iri, DERIVED)
        yield from ((form, Cue(iri, "subject_first", SAID_OTHERWISE, use="passive")) for form in passive_forms(last))
        yield from ((form, Cue(iri, "object_first", DERIVED, use="verb")) for form in active_forms(last))
    for word in words:
        for phrase in EVENT_VERBS.get(word) or EVENT_VERBS.get(word.removesuffix("s"), ()):
            yield from _from_event(phrase, iri)


def _from_event(phrase: str, iri: str) -> Iterator[tuple[str, Cue]]:
    words = phrase.split()
    if words[-1] == _BY:
        yield from _from_passive(words, phrase, iri, SAID_OTHERWISE)
    elif len(words) > 1:
        use: CueUse = "nominal" if _is_nominal(words) else "phrase"
        yield phrase, Cue(iri, "subject_first", SAID_OTHERWISE, use=use)
        yield from ((form, Cue(iri, "subject_first", DERIVED, use=use)) for form in _inflected(words))
    elif phrase.endswith("s"):
        yield phrase, Cue(iri, "subject_first", SAID_OTHERWISE, use="verb")
        yield from _from_verb(phrase, iri, DERIVED)
    else:
        yield phrase, Cue(iri, "subject_first", SAID_OTHERWISE, use="event")


def with_coordinated(folded: str, matches: Iterable[Match[Cue]], *, cues: Phrases[Cue]) -> Iterator[Match[Cue]]:
    """The matches, each followed by those of the words that are joined to its first, at the same place."""
    for match in matches:
        yield match
        if not folded.endswith(_JOINS, 0, match.start):
            continue
        first, _, last = folded[match.start : match.end].partition(" ")
        joined = _JOINED.search(folded, max(0, match.start - _BACK), match.start)
        if not last or joined is None:
            continue
        for word in dict.fromkeys(_WORD.findall(joined.group())):
            payload = cues.get(f"{word} {last}") if word != first else ()
            if payload:
                yield Match(match.start, match.end, payload)


def with_separated(
    text: str, folded: str, matches: Iterable[Match[Cue]], *, cues: Phrases[Cue]
) -> Iterator[Match[Cue]]:
    """The matches, and after each the passive cue that its first word begins and a later `by` completes."""
    done = -1
    for match in matches:
        yield match
        if match.start == done or not folded.find(" by ", match.start, match.end + _FAR) > 0:
            continue
        word_end = folded.find(" ", match.start, match.end)
        word_end = match.end if word_end < 0 else word_end
        payload = cues.get(f"{folded[match.start : word_end]} {_DOER}")
        if not payload or not _MANNER.match(text, word_end):
            continue
        between = _UNTIL_BY.match(text, word_end, word_end + _FAR)
        if between is not None:
            done = match.start
            yield Match(match.start, between.end() + len(_DOER), payload, word_end)
