"""What speaks for a candidate being the object of some property: its words and shape, its context, what is
known of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sameas.extraction.learning.hashing import mix, salt, word
from sameas.extraction.learning.labels import Cues, stem
from sameas.extraction.learning.lexicon import NOBODY, Known, Lexicon
from sameas.extraction.learning.spans import KIND_BITS, NAME, OPENING, QUOTED, STOPWORDS, Span
from sameas.extraction.learning.styles import sort_of
from sameas.extraction.learning.tokens import Tokens

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
_P1, _P2, _P3, _N1, _N2, _PN = (salt(name) for name in ("p1", "p2", "p3", "n1", "n2", "pn"))
_CL, _CR, _W, _FW, _LW, _SU = (salt(name) for name in ("cl", "cr", "w", "fw", "lw", "su"))
_KIND, _KINDS, _LEN, _SHAPE, _SHAPE_P = (salt(name) for name in ("k", "kk", "len", "sh", "shp"))
_POS, _SORT, _SORT_P, _IN_QUOTES, _WITHIN, _FORM = (salt(name) for name in ("pos", "so", "sop", "inq", "in", "form"))
_BAG, _KNOWN_P, _KNOWN_ANY, _KNOWN_NOT = (salt(name) for name in ("b", "known p", "known any", "known not"))
_OWN = {name: salt(name) for name in OWN_TEMPLATES}
_KNOWN, _KNOWN_WELL = _OWN["known"], _OWN["known well"]


@dataclass(frozen=True, slots=True)
class ObjectFeatures:
    """Features of the sentence, which all candidates share, and of each candidate."""

    shared: list[int]
    rows: list[list[int]]


def own_feature(template: str, name: str) -> int:
    """The number of a feature that names a property."""
    return mix(_OWN[template], word(name))


def bucket(distance: int) -> int:
    """A distance in tokens, coarsely."""
    for i, bound in enumerate(_BUCKETS):
        if distance <= bound:
            return i
    return len(_BUCKETS)


def shape(text: str) -> str:
    """The look of a word: `Aa`, `AA`, `9999`."""
    if text.isdigit():
        return "9999" if len(text) == _YEAR else "9"
    if text[0].isupper():
        return ("A" if len(text) == 1 else "AA") if text.isupper() else "Aa"
    return "a" if text[0].isalpha() else text


def _zone(place: int, span: Span) -> str:
    if place < span.first:
        distance = span.first - place
        return "before" if distance <= _NEAR else "left" if distance <= _FAR else "far left"
    if place >= span.last:
        distance = place - span.last
        return "after" if distance < _NEXT else "right" if distance < _FAR else "far right"
    return "inside"


def _knowns(span: Span, key: str, lexicon: Lexicon) -> list[Known]:
    if span.form is None:
        return list(lexicon.values.get(key, ()))
    return [known for known in lexicon.aliases.get(key, ()) if known.form == span.form]


def _known_features(row: list[int], knowns: list[Known], *, before: int, without: int) -> None:
    seen = False
    for known in knowns:
        count = known.count_without(without)
        if count > 0:
            seen = True
            name = word(known.property)
            row.append(mix(_KNOWN, name))
            row.append(mix(_KNOWN_P, mix(name, before)))
            if count > 1:
                row.append(mix(_KNOWN_WELL, name))
    row.append(_KNOWN_ANY if seen else _KNOWN_NOT)


def object_features(
    tokens: Tokens, spans: list[Span], lexicon: Lexicon, cues: Cues, *, without: int = NOBODY
) -> ObjectFeatures:
    """Features of every candidate of a sentence, as an object of any property."""
    lower = tokens.lower
    numbers = [word(text) for text in lower]
    padded = [_START, _START, _START, *numbers, _END, _END]
    shapes = [shape(text) for text in tokens.words]
    shared = sorted({mix(_BAG, numbers[i]) for i, text in enumerate(lower) if text.isalpha() and text not in STOPWORDS})
    left = [mix(_CL, number) for number in numbers]
    right = [mix(_CR, number) for number in numbers]
    inner = [mix(_W, number) for number in numbers]
    hits = [(i, *cue) for i, text in enumerate(lower) if len(text) > _SHORT for cue in cues.get(stem(text), ())]
    quoted = [(span.first, span.last) for span in spans if span.kinds & QUOTED]
    names = [(span.first, span.last) for span in spans if span.kinds & (NAME | OPENING | QUOTED)]
    rows = []
    for span in spans:
        a, b, kinds = span.first, span.last, span.kinds
        p3, p2, p1 = padded[a : a + 3]
        n1, n2 = padded[b + 3 : b + 5]
        p12 = mix(p2, p1)
        looks = word("_".join(shapes[a : min(b, a + _SHAPE_TOKENS)]))
        sort = word(sort_of(span))
        within = any(x <= a and b <= y and (x, y) != (a, b) for x, y in names)
        row = [
            _BIAS,
            mix(_P1, p1),
            mix(_P2, p12),
            mix(_P3, mix(p3, p12)),
            mix(_N1, n1),
            mix(_N2, mix(n1, n2)),
            mix(_PN, mix(p1, n1)),
            mix(_FW, numbers[a]),
            mix(_LW, numbers[b - 1]),
            mix(_SU, word(lower[b - 1][-3:])),
            mix(_KINDS, kinds),
            mix(_LEN, min(b - a, 6)),
            mix(_SHAPE, looks),
            mix(_SHAPE_P, mix(looks, p1)),
            mix(_POS, bucket(a)),
            mix(_SORT, sort),
            mix(_SORT_P, mix(sort, p1)),
            mix(_WITHIN, mix(within, kinds)),
        ]
        row += left[max(0, a - _LEFT) : a]
        row += right[b : b + _RIGHT]
        row += inner[a:b]
        row += [mix(_KIND, bit) for bit in range(KIND_BITS) if kinds >> bit & 1]
        if any(x <= a and b <= y for x, y in quoted):
            row.append(_IN_QUOTES)
        if span.form is not None:
            row.append(mix(_FORM, word(span.form)))
        _known_features(row, _knowns(span, " ".join(lower[a:b]), lexicon), before=p1, without=without)
        row += {mix(_OWN[f"cue {kind} {_zone(i, span)}"], word(name)): None for i, kind, name in hits}
        rows.append(row)
    return ObjectFeatures(shared, rows)
