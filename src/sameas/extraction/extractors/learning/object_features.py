"""What speaks for a candidate being the object of some property: its words and shape, its context, what is known of it,
and which candidates hold it or lie in it.

A place is the token where it begins and the one behind its end. Each question about places is answered from what was
summed up once: a sentence has many candidates, and each of them is asked about.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from sameas.extraction.extractors.learning.hashing import lead, salt, slot, word
from sameas.extraction.extractors.learning.labels import Cues, stem
from sameas.extraction.extractors.learning.lexicon import NOBODY, Known, Lexicon
from sameas.extraction.extractors.learning.spans import KIND_BITS, NAME, OPENING, QUOTED, STOPWORDS, WordSpan
from sameas.extraction.extractors.learning.styles import SORTS, sort_of
from sameas.extraction.extractors.learning.tokens import Tokens

Place = tuple[int, int]

_START, _END = word("<s>"), word("</s>")
_BUCKETS = (0, 1, 2, 3, 5, 8, 12, 20)
_LEFT, _RIGHT = 6, 5
_SHAPE_TOKENS = 4
_NEAR, _FAR, _NEXT = 3, 7, 2
_YEAR = 4
_SHORT = 2
ZONES = ("before", "left", "far left", "after", "right", "far right", "inside")
# Features that name a property and speak for that property: the prior gives them one weight over all
# properties.
OWN_TEMPLATES = ("known", "known well", *(f"cue {kind} {zone}" for kind in "lr" for zone in ZONES))

_BIAS = salt("bias")
_P1, _P2, _P3, _N1, _N2, _PN = (slot(name) for name in ("p1", "p2", "p3", "n1", "n2", "pn"))
_CL, _CR, _W, _FW, _LW, _SU = (slot(name) for name in ("cl", "cr", "w", "fw", "lw", "su"))
_KIND, _KINDS, _LEN, _SHAPE, _SHAPE_P = (slot(name) for name in ("k", "kk", "len", "sh", "shp"))
_POS, _SORT, _SORT_P, _WITHIN, _FORM = (slot(name) for name in ("pos", "so", "sop", "in", "form"))
_IN_QUOTES, _KNOWN_ANY, _KNOWN_NOT = (salt(name) for name in ("inq", "known any", "known not"))
_BAG, _KNOWN_P = slot("b"), slot("known p")
_SORTED = {sort: (_SORT ^ word(sort), _SORT_P ^ lead(word(sort))) for sort in SORTS}
_OWN = {name: slot(name) for name in OWN_TEMPLATES}
_CUES = {kind: {zone: _OWN[f"cue {kind} {zone}"] for zone in ZONES} for kind in "lr"}
_KNOWN, _KNOWN_WELL = _OWN["known"], _OWN["known well"]


class Nesting:
    """The places of one kind in a sentence of so many tokens, ordered."""

    __slots__ = ("_reach",)

    def __init__(self, places: Sequence[Place], count: int) -> None:
        farthest = [0] * (count + 1)
        for first, last in places:
            farthest[first + 1] = max(last, farthest[first + 1])
        # How far those reach that begin before a token.
        self._reach = list(accumulate(farthest, max))

    def holds(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens."""
        return self._reach[first + 1] >= last

    def holds_from_before(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and begins before them."""
        return self._reach[first] >= last

    def holds_beyond(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and ends behind them."""
        return self._reach[first + 1] > last

    def holds_more(self, first: int, last: int) -> bool:
        """Whether a place holds these tokens and others."""
        return self._reach[first] >= last or self._reach[first + 1] > last


class Names(Nesting):
    """The names of a sentence, and which of them are the outermost."""

    __slots__ = ("_ends", "_nearest", "_starts", "outermost")

    def __init__(self, places: Sequence[Place], count: int) -> None:
        super().__init__(places, count)
        nearest = [count + 1] * (count + 1)
        for first, last in places:
            nearest[first] = min(last, nearest[first])
        # Where the first of those ends that begin at a token or behind it.
        self._nearest = list(accumulate(reversed(nearest), min))[::-1]
        self.outermost = [place for place in places if not self.holds_more(*place)]
        # None of these holds another: their ends are ordered as their starts are.
        self._starts = [first for first, _ in self.outermost]
        self._ends = [last for _, last in self.outermost]

    def is_around(self, first: int, last: int) -> bool:
        """Whether these tokens hold a name and others."""
        return self._nearest[first] < last or self._nearest[first + 1] <= last

    def between(self, first: int, last: int) -> int:
        """How many of the outermost names these tokens hold."""
        return max(0, bisect_right(self._ends, last) - bisect_left(self._starts, first))


@dataclass(frozen=True, slots=True)
class ObjectFeatures:
    """Features of the sentence, which all candidates share, and of each candidate."""

    shared: list[int]
    rows: list[list[int]]


def own_feature(template: str, name: str) -> int:
    """The number of a feature that names a property."""
    return _OWN[template] ^ word(name)


def bucket(distance: int) -> int:
    """A distance in tokens, coarsely."""
    return bisect_left(_BUCKETS, distance)


@lru_cache(maxsize=65536)
def shape(text: str) -> str:
    """The look of a word: `Aa`, `AA`, `9999`."""
    if text.isdigit():
        return "9999" if len(text) == _YEAR else "9"
    if text[0].isupper():
        return ("A" if len(text) == 1 else "AA") if text.isupper() else "Aa"
    return "a" if text[0].isalpha() else text


def _zone(place: int, span: WordSpan) -> str:
    if place < span.first:
        distance = span.first - place
        return "before" if distance <= _NEAR else "left" if distance <= _FAR else "far left"
    if place >= span.last:
        distance = place - span.last
        return "after" if distance < _NEXT else "right" if distance < _FAR else "far right"
    return "inside"


def _knowns(span: WordSpan, key: str, lexicon: Lexicon) -> Sequence[Known]:
    if span.form is None:
        return lexicon.values.get(key, ())
    return [known for known in lexicon.aliases.get(key, ()) if known.form == span.form]


@lru_cache(maxsize=4096)
def _kind_features(kinds: int) -> tuple[int, ...]:
    return tuple(_KIND ^ bit for bit in range(KIND_BITS) if kinds >> bit & 1)


def _known_features(row: list[int], knowns: Sequence[Known], *, before: int, without: int) -> None:
    seen = False
    for known in knowns:
        count = known.count_without(without)
        if count > 0:
            seen = True
            name = word(known.property)
            row.append(_KNOWN ^ name)
            row.append(_KNOWN_P ^ lead(name) ^ before)
            if count > 1:
                row.append(_KNOWN_WELL ^ name)
    row.append(_KNOWN_ANY if seen else _KNOWN_NOT)


def object_features(
    tokens: Tokens, spans: list[WordSpan], lexicon: Lexicon, cues: Cues, *, without: int = NOBODY
) -> ObjectFeatures:
    """Features of every candidate of a sentence, as an object of any property."""
    lower = tokens.lower
    numbers = [word(text) for text in lower]
    padded = [_START, _START, _START, *numbers, _END, _END]
    leads = [lead(number) for number in padded]
    shapes = [shape(text) for text in tokens.words]
    shared = sorted({_BAG ^ numbers[i] for i, text in enumerate(lower) if text.isalpha() and text not in STOPWORDS})
    left = [_CL ^ number for number in numbers]
    right = [_CR ^ number for number in numbers]
    inner = [_W ^ number for number in numbers]
    hits = [
        (i, _CUES[kind], word(name))
        for i, text in enumerate(lower)
        if len(text) > _SHORT
        for kind, name in cues.get(stem(text), ())
    ]
    quoted = Nesting([(span.first, span.last) for span in spans if span.kinds & QUOTED], len(lower))
    names = Nesting([(span.first, span.last) for span in spans if span.kinds & (NAME | OPENING | QUOTED)], len(lower))
    rows = []
    for span in spans:
        a, b, kinds = span.first, span.last, span.kinds
        p1, n1 = padded[a + 2], padded[b + 3]
        p12 = leads[a + 1] ^ p1
        looks = word("_".join(shapes[a : min(b, a + _SHAPE_TOKENS)]))
        sort, sort_p = _SORTED[sort_of(span)]
        row = [
            _BIAS,
            _P1 ^ p1,
            _P2 ^ p12,
            _P3 ^ leads[a] ^ p12,
            _N1 ^ n1,
            _N2 ^ leads[b + 3] ^ padded[b + 4],
            _PN ^ leads[a + 2] ^ n1,
            _FW ^ numbers[a],
            _LW ^ numbers[b - 1],
            _SU ^ word(lower[b - 1][-3:]),
            _KINDS ^ kinds,
            _LEN ^ min(b - a, 6),
            _SHAPE ^ looks,
            _SHAPE_P ^ lead(looks) ^ p1,
            _POS ^ bucket(a),
            sort,
            sort_p ^ p1,
            _WITHIN ^ lead(names.holds_more(a, b)) ^ kinds,
        ]
        row += left[max(0, a - _LEFT) : a]
        row += right[b : b + _RIGHT]
        row += inner[a:b]
        row += _kind_features(kinds)
        if quoted.holds(a, b):
            row.append(_IN_QUOTES)
        if span.form is not None:
            row.append(_FORM ^ word(span.form))
        _known_features(row, _knowns(span, " ".join(lower[a:b]), lexicon), before=p1, without=without)
        if hits:
            row += {cue[_zone(i, span)] ^ name: None for i, cue, name in hits}
        rows.append(row)
    return ObjectFeatures(shared, rows)
