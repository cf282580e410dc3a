"""What speaks for a candidate being the subject of a fact whose object and property are given.

The static part depends on the sentence alone; the pair part on where the object stands. One more choice is
always there: that the sentence does not name its subject ("He was born in Paris").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sameas.extraction.extractors.learning.candidates import can_be_subject
from sameas.extraction.extractors.learning.clauses import Clauses, find_clauses
from sameas.extraction.extractors.learning.hashing import lead, salt, slot, word
from sameas.extraction.extractors.learning.lexicon import NOBODY, Lexicon
from sameas.extraction.extractors.learning.lists import find_lists
from sameas.extraction.extractors.learning.object_features import Names, Nesting, bucket, shape
from sameas.extraction.extractors.learning.spans import (
    DATE,
    NAME,
    OPENING,
    QUANTITY,
    QUOTED,
    STOPWORDS,
    WordSpan,
    is_single,
)
from sameas.extraction.extractors.learning.tokens import Tokens, word_set

_START, _END, _NONE = word("<s>"), word("</s>"), word("-")
_WINDOW = 4
_SHAPE_TOKENS = 5
_RANKS = 4
_PLACES = {name: word(name) for name in ("after", "before", "around", "within", "across")}
_ABSENCE_WORDS = word_set(
    "it he she his her its they their film album song book novel series band journal river game episode"
)

_KK, _P1, _P2, _N1, _N2, _KN, _KP, _PN = (
    slot(f"s.{name}") for name in ("kk", "p1", "p2", "n1", "n2", "kn", "kp", "pn")
)
_LEN, _POS, _RANK, _PART, _RANK_PART, _POS_K = (
    slot(f"s.{name}") for name in ("len", "pos", "rank", "part", "rp", "posk")
)
_HOLDS, _COUNT, _SHAPE, _SHAPE_R = (slot(f"s.{name}") for name in ("holds", "cnt", "sh", "shr"))
_FW, _CAPS, _LW, _W0, _W, _R, _L = (slot(f"s.{name}") for name in ("fw", "caps", "lw", "w0", "w", "r", "l"))
_IN_QUOTES, _KNOWN, _KNOWN_VALUE = salt("s.inq"), salt("s.known"), salt("s.known value")
_REL, _DIST, _BETWEEN, _REL_K, _REL_P, _BETWEEN_P = (
    slot(f"p.{name}") for name in ("rel", "d", "btw", "relk", "relp", "btwp")
)
_ABSENT = salt("0.b")
_A1, _A2, _A3, _A_LEN, _A_HAS, _A_P = (slot(f"0.{name}") for name in ("w1", "w2", "w3", "len", "has", "p"))

# Where a subject stands from an object: on which side, how far away, and how many names are between.
Standing = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class SubjectFeatures:
    """The subjects of a sentence to choose from, their static features, and its names."""

    spans: list[WordSpan]
    rows: list[list[int]]
    looks: list[tuple[int, ...]]
    absent: list[int]
    names: Names
    clauses: Clauses


def _absent(tokens: Tokens) -> list[int]:
    lower = tokens.lower
    first, second, third = ([word(text) for text in lower[:3]] + [_END] * 3)[:3]
    two = lead(first) ^ second
    row = [
        _ABSENT,
        _A1 ^ first,
        _A2 ^ two,
        _A3 ^ lead(two) ^ third,
        _A_LEN ^ bucket(len(lower)),
    ]
    return row + [_A_HAS ^ word(text) for text in sorted(_ABSENCE_WORDS.intersection(lower))]


def _is_more_than_number(span: WordSpan, tokens: Tokens, lexicon: Lexicon, *, without: int) -> bool:
    """Digits are a name where they are quoted, open a sentence, or are a subject elsewhere; a known value is none."""
    if span.kinds & (QUOTED | OPENING):
        return True
    if not span.kinds & (DATE | QUANTITY) and any(text[-1].isalpha() for text in tokens.words[span.first : span.last]):
        return True
    return lexicon.knows_subject(" ".join(tokens.lower[span.first : span.last]), without=without)


def subject_features(
    tokens: Tokens, spans: list[WordSpan], lexicon: Lexicon, *, without: int = NOBODY
) -> SubjectFeatures:
    """The static features of every candidate that can be a subject."""
    lower = tokens.lower
    numbers = [word(text) for text in lower]
    padded = [_START, _START, *numbers, _END, _END]
    leads = [lead(number) for number in padded]
    inner = [_W ^ number for number in numbers]
    right = [_R ^ number for number in numbers]
    left = [_L ^ number for number in numbers]
    shapes = [shape(text) for text in tokens.words]
    quoted = Nesting([(span.first, span.last) for span in spans if span.kinds & QUOTED], len(lower))
    places = sorted({(span.first, span.last) for span in spans if span.kinds & NAME})
    names = Names(places, len(lower))
    single = Names([place for place in places if is_single(tokens, *place)], len(lower))
    keys = {place: " ".join(lower[place[0] : place[1]]) for place in places}
    said = Counter(keys.values())
    chosen = [
        span for span in spans if can_be_subject(span) and _is_more_than_number(span, tokens, lexicon, without=without)
    ]
    rows = []
    sorts: list[tuple[int, ...]] = []
    for span in chosen:
        a, b, kinds = span.first, span.last, span.kinds
        p1, n1 = padded[a + 1], padded[b + 2]
        rank = min(_RANKS, names.between(0, a))
        part = 2 * names.holds_from_before(a, b) + names.holds_beyond(a, b)
        looks = word("_".join(shapes[a : min(b, a + _SHAPE_TOKENS)]))
        key = keys.get((a, b)) or " ".join(lower[a:b])
        place, led = bucket(a), lead(kinds)
        sort, before, after = _KK ^ kinds, _P1 ^ p1, _N1 ^ n1
        form, end = _SHAPE ^ looks, _LW ^ numbers[b - 1]
        row = [
            sort,
            before,
            _P2 ^ leads[a] ^ p1,
            after,
            _N2 ^ leads[b + 2] ^ padded[b + 3],
            _KN ^ led ^ n1,
            _KP ^ led ^ p1,
            _PN ^ leads[a + 1] ^ n1,
            _LEN ^ min(b - a, 8),
            _POS ^ place,
            _RANK ^ rank,
            _PART ^ part,
            _RANK_PART ^ lead(rank) ^ part,
            _POS_K ^ lead(place) ^ kinds,
            _HOLDS ^ names.is_around(a, b),
            _COUNT ^ min(3, said[key]),
            form,
            _SHAPE_R ^ lead(looks) ^ min(3, rank),
            _FW ^ (numbers[a] if lower[a] in STOPWORDS else _NONE),
            _CAPS ^ word(f"{shapes[a]}|{shapes[b - 1]}"),
            end,
            _W0 ^ numbers[a],
        ]
        row += inner[a:b]
        row += right[b : b + _WINDOW]
        row += left[max(0, a - _WINDOW) : a]
        if quoted.holds(a, b):
            row.append(_IN_QUOTES)
        if lexicon.knows_subject(key, without=without):
            row.append(_KNOWN)
        if lexicon.knows_value(key, without=without):
            row.append(_KNOWN_VALUE)
        rows.append(row)
        sorts.append((end, after, before, form, sort))
    clauses = find_clauses(tokens, single.outermost, find_lists(tokens, spans))
    return SubjectFeatures(chosen, rows, sorts, _absent(tokens), names, clauses)


def place_of(subject: WordSpan, target: WordSpan, names: Names) -> Standing:
    """Where the subject stands from the object, and, coarsely, how far away and how many names are between."""
    if target.last <= subject.first:
        return _apart("after", target.last, subject.first, names)
    if subject.last <= target.first:
        return _apart("before", subject.last, target.first, names)
    if subject.first <= target.first and target.last <= subject.last:
        return "around", 0, 0
    if target.first <= subject.first and subject.last <= target.last:
        return "within", 0, 0
    return "across", 0, 0


def _apart(where: str, first: int, last: int, names: Names) -> Standing:
    return where, bucket(last - first), min(3, names.between(first, last))


@lru_cache(maxsize=4096)
def pair_features(place: Standing, kinds: int) -> tuple[int, ...]:
    """Features of a subject and an object together, for any property."""
    where = _PLACES[place[0]]
    led = lead(where)
    return _REL ^ where, _DIST ^ led ^ place[1], _BETWEEN ^ led ^ place[2], _REL_K ^ led ^ kinds


def property_features(place: Standing, look: Sequence[int], name: int) -> list[int]:
    """Features of a subject and an object together, for the property with this number.

    `look` are the features of the subject that say what sort of thing it is: a property wants its own sort.
    """
    where, named = lead(_PLACES[place[0]]), lead(name)
    row = [named ^ key for key in look]
    row[:0] = _REL_P ^ where ^ name, _BETWEEN_P ^ lead(where ^ place[2]) ^ name
    return row


def absent_feature(name: int) -> int:
    """The feature of an unnamed subject for the property with this number."""
    return _A_P ^ name
