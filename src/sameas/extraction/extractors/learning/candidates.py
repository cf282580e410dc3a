"""Candidates of a sentence: its spans, and what the lexicon, its edges and plain geography know of its words.

Edges are plain words that names stand beside: where names have no capital, these say where one begins and ends. They
are learned from examples whose subjects are written in lower case (`quimab inhibits renin`), and are taken only there:
elsewhere capitals tell more. The words of a property's label end a name as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sameas.extraction.extractors.learning.demonyms import COUNTRIES, DEMONYMS, PLACE_REACH
from sameas.extraction.extractors.learning.examples import Example
from sameas.extraction.extractors.learning.labels import Cues, stem
from sameas.extraction.extractors.learning.lexicon import NOBODY, Known, Lexicon, Table, key_of
from sameas.extraction.extractors.learning.spans import (
    BRACKETED,
    DATE,
    KNOWN,
    MIXED,
    NAME,
    OPENING,
    OPENING_ENDS,
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
from sameas.extraction.extractors.learning.tokens import Tokens, tokenize

BEFORE, AFTER, CUE = "before", "after", "cue"
_START, _END = "<s>", "</s>"
# The share of facts with a subject in lower case from which such names are looked for.
_SHARE = 0.1
_LONGEST = 5

_PHRASE_WORDS = 3
_SUBJECT_KINDS = NAME | QUOTED | OPENING | MIXED | BRACKETED | KNOWN | PLAIN
_NAMING_KINDS = OPENING | QUOTED | KNOWN


def learn_edges(examples: Sequence[Example], properties: Sequence[str], cues: Cues) -> Table:
    """The words beside the ends of facts, and the stems of labels; nothing where subjects have capitals."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    facts = plain = 0
    for number, example in enumerate(examples):
        lower = tokenize(example.text).lower
        for triple in example.triples:
            if triple.property not in properties:
                continue
            facts += 1
            plain += triple.subject[:1].islower()
            for end in (triple.subject, triple.object):
                for first, last in _places(key_of(end).split(" "), lower) if end[:1].islower() else ():
                    found[(lower[first - 1] if first else _START, BEFORE)].add(number)
                    found[(lower[last] if last < len(lower) else _END, AFTER)].add(number)
    if plain < _SHARE * facts:
        return {}
    rows: dict[str, list[Known]] = defaultdict(list)
    for (said, side), numbers in sorted(found.items()):
        rows[said].append(Known(side, "", len(numbers), frozenset(numbers)))
    for key, items in cues.items():
        if any(kind == "l" for kind, _ in items):
            rows[key].append(Known(CUE, "", 1))
    return {key: tuple(rows[key]) for key in sorted(rows)}


def _places(words: list[str], lower: Sequence[str]) -> Iterator[tuple[int, int]]:
    size = len(words)
    for first in range(len(lower) - size + 1):
        if list(lower[first : first + size]) == words:
            yield first, first + size


def plain_names(tokens: Tokens, lexicon: Lexicon, *, without: int) -> Iterator[tuple[int, int]]:
    """The runs of plain words between two edges that have none inside."""
    if not lexicon.edges:
        return
    lower, count = tokens.lower, len(tokens)

    def sides(said: str) -> set[str]:
        found = {known.form for known in lexicon.edges.get(said, ()) if known.count_without(without) > 0}
        if any(known.form == CUE for known in lexicon.edges.get(stem(said), ())):
            found |= {BEFORE, AFTER}
        if said in OPENING_ENDS:
            found.add(AFTER)
        return found - {CUE}

    edges = [sides(said) for said in lower]
    inner = [
        not edge and said not in STOPWORDS and (said[0].isalnum() or said == "-")
        for edge, said in zip(edges, lower, strict=True)
    ]
    for first in range(count):
        if not inner[first] or lower[first] == "-" or (first and BEFORE not in edges[first - 1]):
            continue
        for last in range(first + 1, min(count, first + _LONGEST) + 1):
            if not inner[last - 1]:
                break
            if lower[last - 1] != "-" and (last == count or AFTER in edges[last]):
                yield first, last


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
