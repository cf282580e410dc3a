"""What speaks for a candidate being the subject of a fact whose object and property are given.

The static part depends on the sentence alone; the pair part on where the object stands. One more choice is
always there: that the sentence does not name its subject ("He was born in Paris").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sameas.extraction.learning.candidates import can_be_subject
from sameas.extraction.learning.clauses import Clauses, find_clauses
from sameas.extraction.learning.hashing import mix, salt, word
from sameas.extraction.learning.lexicon import NOBODY, Lexicon
from sameas.extraction.learning.lists import find_lists
from sameas.extraction.learning.object_features import bucket, shape
from sameas.extraction.learning.spans import DATE, NAME, OPENING, QUANTITY, QUOTED, STOPWORDS, Span, is_single
from sameas.extraction.learning.tokens import Tokens, word_set

_START, _END, _NONE = word("<s>"), word("</s>"), word("-")
_WINDOW = 4
_SHAPE_TOKENS = 5
_RANKS = 4
_PLACES = {name: word(name) for name in ("after", "before", "around", "within", "across")}
_ABSENCE_WORDS = word_set(
    "it he she his her its they their film album song book novel series band journal river game episode"
)

_KK, _P1, _P2, _N1, _N2, _KN, _KP, _PN = (
    salt(f"s.{name}") for name in ("kk", "p1", "p2", "n1", "n2", "kn", "kp", "pn")
)
_LEN, _POS, _RANK, _PART, _RANK_PART, _POS_K = (
    salt(f"s.{name}") for name in ("len", "pos", "rank", "part", "rp", "posk")
)
_HOLDS, _IN_QUOTES, _COUNT, _SHAPE, _SHAPE_R = (salt(f"s.{name}") for name in ("holds", "inq", "cnt", "sh", "shr"))
_FW, _CAPS, _LW, _W0, _W, _R, _L = (salt(f"s.{name}") for name in ("fw", "caps", "lw", "w0", "w", "r", "l"))
_KNOWN, _KNOWN_VALUE = salt("s.known"), salt("s.known value")
_REL, _DIST, _BETWEEN, _REL_K, _REL_P, _BETWEEN_P = (
    salt(f"p.{name}") for name in ("rel", "d", "btw", "relk", "relp", "btwp")
)
_ABSENT, _A1, _A2, _A3, _A_LEN, _A_HAS, _A_P = (
    salt(f"0.{name}") for name in ("b", "w1", "w2", "w3", "len", "has", "p")
)


@dataclass(frozen=True, slots=True)
class SubjectFeatures:
    """The subjects of a sentence to choose from, their static features, and its outermost names."""

    spans: list[Span]
    rows: list[list[int]]
    looks: list[tuple[int, ...]]
    absent: list[int]
    names: list[tuple[int, int]]
    clauses: Clauses


def _absent(tokens: Tokens) -> list[int]:
    lower = tokens.lower
    first, second, third = ([word(text) for text in lower[:3]] + [_END] * 3)[:3]
    two = mix(first, second)
    row = [
        _ABSENT,
        mix(_A1, first),
        mix(_A2, two),
        mix(_A3, mix(two, third)),
        mix(_A_LEN, bucket(len(lower))),
    ]
    return row + [mix(_A_HAS, word(text)) for text in sorted(_ABSENCE_WORDS.intersection(lower))]


def _outermost(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [x for x in places if not any(y != x and y[0] <= x[0] and x[1] <= y[1] for y in places)]


def _is_more_than_number(span: Span, tokens: Tokens, lexicon: Lexicon, *, without: int) -> bool:
    """Digits are a name where they are quoted, open a sentence, or are a subject elsewhere; a known value is none."""
    if span.kinds & (QUOTED | OPENING):
        return True
    if not span.kinds & (DATE | QUANTITY) and any(text[-1].isalpha() for text in tokens.words[span.first : span.last]):
        return True
    return lexicon.knows_subject(" ".join(tokens.lower[span.first : span.last]), without=without)


def subject_features(tokens: Tokens, spans: list[Span], lexicon: Lexicon, *, without: int = NOBODY) -> SubjectFeatures:
    """The static features of every candidate that can be a subject."""
    lower = tokens.lower
    numbers = [word(text) for text in lower]
    padded = [_START, _START, *numbers, _END, _END]
    shapes = [shape(text) for text in tokens.words]
    quoted = [(span.first, span.last) for span in spans if span.kinds & QUOTED]
    names = sorted({(span.first, span.last) for span in spans if span.kinds & NAME})
    outer = _outermost(names)
    single = _outermost([x for x in names if is_single(tokens, *x)])
    keys = {place: " ".join(lower[place[0] : place[1]]) for place in names}
    said = Counter(keys.values())
    chosen = [
        span for span in spans if can_be_subject(span) and _is_more_than_number(span, tokens, lexicon, without=without)
    ]
    rows = []
    sorts: list[tuple[int, ...]] = []
    for span in chosen:
        a, b, kinds = span.first, span.last, span.kinds
        p2, p1 = padded[a : a + 2]
        n1, n2 = padded[b + 2 : b + 4]
        rank = min(_RANKS, sum(1 for name in outer if name[1] <= a))
        part = 2 * any(x < a and b <= y for x, y in names) + any(x <= a and b < y for x, y in names)
        looks = word("_".join(shapes[a : min(b, a + _SHAPE_TOKENS)]))
        key = keys.get((a, b)) or " ".join(lower[a:b])
        place = bucket(a)
        row = [
            mix(_KK, kinds),
            mix(_P1, p1),
            mix(_P2, mix(p2, p1)),
            mix(_N1, n1),
            mix(_N2, mix(n1, n2)),
            mix(_KN, mix(kinds, n1)),
            mix(_KP, mix(kinds, p1)),
            mix(_PN, mix(p1, n1)),
            mix(_LEN, min(b - a, 8)),
            mix(_POS, place),
            mix(_RANK, rank),
            mix(_PART, part),
            mix(_RANK_PART, mix(rank, part)),
            mix(_POS_K, mix(place, kinds)),
            mix(_HOLDS, any(a <= x and y <= b and (x, y) != (a, b) for x, y in names)),
            mix(_COUNT, min(3, said[key])),
            mix(_SHAPE, looks),
            mix(_SHAPE_R, mix(looks, min(3, rank))),
            mix(_FW, numbers[a] if lower[a] in STOPWORDS else _NONE),
            mix(_CAPS, word(f"{shapes[a]}|{shapes[b - 1]}")),
            mix(_LW, numbers[b - 1]),
            mix(_W0, numbers[a]),
        ]
        row += [mix(_W, number) for number in numbers[a:b]]
        row += [mix(_R, number) for number in numbers[b : b + _WINDOW]]
        row += [mix(_L, number) for number in numbers[max(0, a - _WINDOW) : a]]
        if any(x <= a and b <= y for x, y in quoted):
            row.append(_IN_QUOTES)
        if lexicon.knows_subject(key, without=without):
            row.append(_KNOWN)
        if lexicon.knows_value(key, without=without):
            row.append(_KNOWN_VALUE)
        rows.append(row)
        sorts.append((mix(_LW, numbers[b - 1]), mix(_N1, n1), mix(_P1, p1), mix(_SHAPE, looks), mix(_KK, kinds)))
    return SubjectFeatures(
        chosen, rows, sorts, _absent(tokens), outer, find_clauses(tokens, single, find_lists(tokens, spans))
    )


def place_of(subject: Span, target: Span, names: list[tuple[int, int]]) -> tuple[str, int, int]:
    """Where the subject stands from the object, how many tokens away, and how many names are between."""
    if target.last <= subject.first:
        between = sum(1 for x, y in names if target.last <= x and y <= subject.first)
        return "after", subject.first - target.last, between
    if subject.last <= target.first:
        between = sum(1 for x, y in names if subject.last <= x and y <= target.first)
        return "before", target.first - subject.last, between
    if subject.first <= target.first and target.last <= subject.last:
        return "around", 0, 0
    if target.first <= subject.first and subject.last <= target.last:
        return "within", 0, 0
    return "across", 0, 0


def pair_features(place: tuple[str, int, int], kinds: int) -> list[int]:
    """Features of a subject and an object together, for any property."""
    where = _PLACES[place[0]]
    return [
        mix(_REL, where),
        mix(_DIST, mix(where, bucket(place[1]))),
        mix(_BETWEEN, mix(where, min(3, place[2]))),
        mix(_REL_K, mix(where, kinds)),
    ]


def property_features(place: tuple[str, int, int], look: Sequence[int], name: int) -> list[int]:
    """Features of a subject and an object together, for the property with this number.

    `look` are the features of the subject that say what sort of thing it is: a property wants its own sort.
    """
    where = _PLACES[place[0]]
    beyond = mix(where, min(3, place[2]))
    return [
        mix(_REL_P, mix(where, name)),
        mix(_BETWEEN_P, mix(beyond, name)),
        *[mix(name, key) for key in look],
    ]


def absent_feature(name: int) -> int:
    """The feature of an unnamed subject for the property with this number."""
    return mix(_A_P, name)
