"""Candidates of a sentence: its spans, and what the lexicon, its edges and plain geography know of its words."""

from __future__ import annotations

from sameas.extraction.extractors.learning.demonyms import COUNTRIES, DEMONYMS, PLACE_REACH
from sameas.extraction.extractors.learning.edges import plain_names
from sameas.extraction.extractors.learning.lexicon import NOBODY, Lexicon
from sameas.extraction.extractors.learning.spans import (
    BRACKETED,
    DATE,
    KNOWN,
    MIXED,
    NAME,
    OPENING,
    PHRASE,
    PLACE,
    PLAIN,
    QUANTITY,
    QUOTED,
    SHORTENED,
    STOPWORDS,
    WordSpan,
    collect_spans,
)
from sameas.extraction.extractors.learning.tokens import Tokens

_PHRASE_WORDS = 3
_SUBJECT_KINDS = NAME | QUOTED | OPENING | MIXED | BRACKETED | KNOWN | PLAIN
_NAMING_KINDS = OPENING | QUOTED | KNOWN


def can_be_subject(span: WordSpan) -> bool:
    """Whether a thing can have this for a name: anything but a bare date or number, or another's normal
    form.
    """
    if span.form is not None:
        return bool(span.kinds & SHORTENED)
    if span.kinds & (DATE | QUANTITY):
        return bool(span.kinds & _NAMING_KINDS)
    return bool(span.kinds & _SUBJECT_KINDS)


def _phrases(tokens: Tokens, lexicon: Lexicon, without: int) -> list[tuple[int, int]]:
    """Plain words before a head noun that examples had in an object: `first-person shooter`."""
    lower = tokens.lower
    found = []
    for j, word in enumerate(lower):
        heads = lexicon.heads.get(word)
        if not heads or not any(known.count_without(without) > 0 for known in heads):
            continue
        found.append((j, j + 1))
        first = j
        for _ in range(_PHRASE_WORDS):
            if first > 1 and lower[first - 1] == "-":
                first -= 2
            elif first > 0 and lower[first - 1].isalpha() and lower[first - 1] not in STOPWORDS:
                first -= 1
            else:
                break
            found.append((first, j + 1))
    return found


def find_candidates(tokens: Tokens, lexicon: Lexicon, *, without: int = NOBODY) -> list[WordSpan]:
    """All candidates, ordered by place; `without` leaves out what only that example knows."""
    found = collect_spans(tokens)
    lower, count = tokens.lower, len(tokens)
    for i, word in enumerate(lower):
        for j in range(i + 1, min(count, i + lexicon.reach.get(word, 0)) + 1):
            key = " ".join(lower[i:j])
            if lexicon.knows_value(key, without=without) or lexicon.knows_subject(key, without=without):
                found.add(i, j, KNOWN)
            for known in lexicon.aliases.get(key, ()):
                if known.count_without(without) > 0:
                    found.add(i, j, KNOWN, known.form)
        if word in PLACE_REACH and tokens.words[i][0].isupper():
            for j in range(i + 1, min(count, i + PLACE_REACH[word]) + 1):
                key = " ".join(lower[i:j])
                if key in DEMONYMS:
                    found.add(i, j, PLACE, DEMONYMS[key])
                if key in COUNTRIES:
                    found.add(i, j, PLACE)
    for first, last in plain_names(tokens, lexicon, without=without):
        found.add(first, last, PLAIN)
    for first, last in _phrases(tokens, lexicon, without):
        found.add(first, last, PHRASE)
    return found.ordered()
