"""Which parts of a sentence may be a subject or an object: names, quoted strings, dates, quantities, phrases.

A span is a guess by form alone; nothing here is learned. Names are runs of capitalised words, joined over particles,
hyphens and colons, whole and in part, because where a name ends is for the learner to say. In scripts without capitals
any short run of words, or of signs where no blanks are set, may be a name; Japanese tells more: hiragana is what stands
between names, and a word in katakana is not cut.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from sameas.extraction.extractors.learning.dates import Date, find_dates
from sameas.extraction.extractors.learning.quantities import Quantity, find_quantities
from sameas.extraction.extractors.learning.tokens import Tokens, is_unspaced, word_set
from sameas.extraction.extractors.lexicon.values import find_quotes
from sameas.extraction.text.chunking import sentence_spans

_WORDS_JOINED, _SIGNS_JOINED = 4, 8
_HIRAGANA = re.compile("[\u3040-\u309f]")
_KATAKANA = re.compile("[\u30a0-\u30ff]{2}")

NAME, QUOTED, DATE, QUANTITY, OPENING, MIXED, BRACKETED, KNOWN, SHORTENED, PHRASE, PLACE, PLAIN = (
    1 << i for i in range(12)
)
KIND_BITS = 12

_APOSTROPHES = "'\u2019"
_TIGHT = word_set("- ' \u2019 . & / \u2013 _ +")
_CLOSE = word_set(
    "of the de la le les du des del della di da do dos das van von der den zu bin ibn al el y e et und av af "
    "ten ter - \u2019 ' & \u2013 / 's"
)
_WIDE = word_set("and for in on at to a an into from with by or no vs upon about without is are : . ! ? his her my s")
_FAR = word_set(", ( )")
_JOINTS = (_WIDE | _FAR | word_set("; & und oder et ou y 、 和 及")) - word_set(". a an no s his her my")
_LEVEL = {**dict.fromkeys(_FAR, 3), **dict.fromkeys(_WIDE, 2), **dict.fromkeys(_CLOSE, 1)}
_GAP_TOKENS = 3
_RUNS_JOINED = 4
_ARTICLES = frozenset(("the", "a", "an"))
_OPENERS = word_set(
    "in on at after before during since from by with as for to he she it they we this that these those his "
    "her its their there when while although though however also both one two three many most some all if "
    "but and or not other under over between following until another each first then here who which where"
)
_LEADING = _ARTICLES | _OPENERS
OPENING_ENDS = word_set(
    "is was are were has had have will would can could may became becomes won received features stars takes "
    "took serves served represents represented began begins plays played lies flows rises joined located s ( "
    ", : ; ["
)
_OPENING_TOKENS = 14
_QUOTES = frozenset("\"'`\u201c\u201d\u201e\u2018\u201a«»\u2039\u203a「『《")
_BACKTICKED = re.compile("`+([^`'\n]{1,160})'+")
_NAME_PIECES = (3, 5)
_ABBREVIATION = 3


def caseless_names(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """The runs that may be names; a text in plain letters has none."""
    if tokens.text.isascii():
        return
    words, count = tokens.words, len(tokens)
    first = 0
    while first < count:
        last = first
        while last < count and _is_caseless(words[last][0]):
            last += 1
        for start in range(first, last):
            longest = _SIGNS_JOINED if is_unspaced(words[start][0]) else _WORDS_JOINED
            for end in range(start + 1, min(last, start + longest) + 1):
                if _may_be_name(words, start, end):
                    yield start, end
        first = last + 1


def _is_caseless(sign: str) -> bool:
    return (sign.isalpha() and sign.lower() == sign.upper()) or is_unspaced(sign)


def _may_be_name(words: tuple[str, ...], first: int, last: int) -> bool:
    if _HIRAGANA.match(words[first]) or _HIRAGANA.match(words[last - 1]):
        return False
    return not any(_KATAKANA.fullmatch("".join(words[max(0, at - 1) : at + 1])) for at in (first, last))


class WordSpan(msgspec.Struct, frozen=True):
    """Tokens first to last (not included) of a sentence, the forms they have, and what they say where that
    is known.
    """

    first: int
    last: int
    kinds: int
    form: str | None = None
    value: Date | Quantity | None = None


_STOPS = frozenset(".!?。！？")  # noqa: RUF001


class Spans:
    """Spans found so far, one for each place and normal form."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, int, str | None], int] = {}
        self.values: dict[tuple[int, int], Date | Quantity] = {}

    def add(self, first: int, last: int, kind: int, form: str | None = None) -> None:
        if last > first:
            key = (first, last, form)
            self.found[key] = self.found.get(key, 0) | kind

    def ordered(self) -> list[WordSpan]:
        ordered = sorted(self.found, key=lambda key: (key[0], key[1], key[2] or ""))
        return [
            WordSpan(a, b, self.found[(a, b, form)], form, self.values.get((a, b)) if form is None else None)
            for a, b, form in ordered
        ]


def sentence_starts(tokens: Tokens) -> frozenset[int]:
    """The tokens that begin a sentence, the first one aside: a stop that ends one is not that of an abbreviation."""
    if _STOPS.isdisjoint(tokens.words[:-1]):
        return frozenset()
    begins = {span.start for span in sentence_spans(tokens.text)}
    return frozenset(at for at, start in enumerate(tokens.starts) if at and start in begins)


def _runs(tokens: Tokens, begins: frozenset[int]) -> list[tuple[int, int]]:
    words, starts, ends = tokens.words, tokens.starts, tokens.ends
    runs: list[tuple[int, int]] = []
    count = len(words)
    i = 0
    while i < count:
        word = words[i]
        if not (word[0].isupper() or (word[0].isdigit())):
            i += 1
            continue
        j = i + 1
        while j < count:
            following = words[j]
            if following[0].isupper() or following[0].isdigit():
                j += 1
            elif (
                following in _TIGHT
                and j + 1 < count
                and starts[j] == ends[j - 1]
                and (
                    (starts[j + 1] == ends[j] and words[j + 1][0].isalnum())
                    or (
                        following == "."
                        and len(words[j - 1]) <= _ABBREVIATION
                        and words[j + 1][0].isupper()
                        and j + 1 not in begins
                    )
                )
                and not (following in _APOSTROPHES and words[j + 1] == "s")
            ):
                j += 2
            else:
                break
        runs.append((i, j))
        i = j
    return runs


def is_single(tokens: Tokens, first: int, last: int) -> bool:
    """Whether nothing in a span joins two names, which may be one: `Ann Lee`, but not `Ann in Paris`."""
    return _JOINTS.isdisjoint(tokens.lower[first:last])


def _gap(tokens: Tokens, first: int, last: int) -> int:
    """How far apart two runs are: 1 near, 2 wide, 3 far, 0 not joinable."""
    if last - first > _GAP_TOKENS:
        return 0
    level = 1
    for word in tokens.lower[first:last]:
        found = _LEVEL.get(word)
        if found is None:
            return 0
        level = max(level, found)
    return level


def _add_name(tokens: Tokens, out: Spans, first: int, last: int, kind: int) -> None:
    lower = tokens.lower
    out.add(first, last, kind)
    if last - first > 1 and lower[first] in _ARTICLES:
        out.add(first + 1, last, kind)
    elif first > 0 and lower[first - 1] in _LEADING and tokens.words[first - 1][0].isupper():
        out.add(first - 1, last, kind)
    if last < len(tokens) and tokens.words[last] in ".!?" and tokens.starts[last] == tokens.ends[last - 1]:
        inner = last + 1 < len(tokens)
        if tokens.words[last] != "." or (inner and len(tokens.words[last - 1]) <= _ABBREVIATION + 1):
            out.add(first, last + 1, kind)


def _names(tokens: Tokens, out: Spans) -> None:
    lower = tokens.lower
    runs = []
    begins = sentence_starts(tokens)
    for first, last in _runs(tokens, begins):
        start = first
        if lower[first] in _OPENERS and (first == 0 or tokens.words[first - 1] in ".!?"):
            out.add(first, last, NAME)
            start += 1
        if start < last:
            runs.append((start, last))
    # "Ann Lee. Raven Tower" is no name, however short the word before the stop.
    levels = [_gap(tokens, a[1], b[0]) if b[0] not in begins else 0 for a, b in pairwise(runs)]
    for k, (first, last) in enumerate(runs):
        _add_name(tokens, out, first, last, NAME)
        _pieces(tokens, out, first, last)
        for m in range(k + 1, min(len(runs), k + _RUNS_JOINED)):
            if not levels[m - 1]:
                break
            _add_name(tokens, out, first, runs[m][1], NAME)
        # A plain noun before the name: `president of Chile`.
        if first > 1 and lower[first - 1] in ("of", "the"):
            noun = first - 3 if lower[first - 1] == "the" and lower[first - 2] == "of" else first - 2
            if noun >= 0 and lower[noun + 1] == "of" and lower[noun].isalpha() and tokens.words[noun][0].islower():
                out.add(noun, last, PHRASE)
        # A capitalised word and the plain words after it: `Tabasco pepper`, `Panthera pardus`.
        for extra in (1, 2):
            end = last + extra
            if end > len(tokens) or not lower[end - 1].isalpha() or lower[end - 1] in STOPWORDS:
                break
            out.add(max(first, last - 3), end, MIXED)
            if last - first > 1:
                out.add(last - 1, end, MIXED)


def _pieces(tokens: Tokens, out: Spans, first: int, last: int) -> None:
    words = tokens.words
    size = last - first
    if size == 1:
        return
    for cut in (1, 2):
        if size > cut and words[first + cut][0].isalnum():
            out.add(first + cut, last, NAME)
        if size > cut and words[last - cut - 1][0].isalnum():
            out.add(first, last - cut, NAME)
    names = tokens.slice(first, last).split()
    least, most = _NAME_PIECES
    if least <= len(names) <= most and all(name[0].isupper() for name in names) and names[-1].isalpha():
        out.add(first, last, SHORTENED, f"{names[0]} {names[-1]}")


def _openings(tokens: Tokens, out: Spans) -> None:
    _opening(tokens, out, 1 if tokens.lower[0] in _QUOTES else 0)
    for i in range(1, len(tokens) - 1):
        if tokens.words[i] in ".!?" and tokens.words[i + 1][0].isupper() and len(tokens.words[i - 1]) > _ABBREVIATION:
            _opening(tokens, out, i + 1)


def _opening(tokens: Tokens, out: Spans, start: int) -> None:
    """What a sentence begins with, up to its verb: `The northern fur seal`."""
    lower = tokens.lower
    if start >= len(lower) or lower[start] in _OPENERS:
        return
    found = 0
    for i in range(start + 1, min(len(tokens), start + _OPENING_TOKENS)):
        if lower[i] in OPENING_ENDS and not (lower[i] == "s" and lower[i - 1] not in _APOSTROPHES):
            end = i - 1 if lower[i] == "s" else i
            out.add(start, end, OPENING)
            if lower[start] in _ARTICLES and end - start > 1:
                out.add(start + 1, end, OPENING)
            found += lower[i] != "s"
            if found > 1:
                break


def _enclosed(tokens: Tokens, out: Spans) -> None:
    quoted = [(mention.start, mention.end) for mention in find_quotes(tokens.text)]
    quoted += [found.span(1) for found in _BACKTICKED.finditer(tokens.text)] if "`" in tokens.text else []
    for start, end in quoted:
        first, last = bisect_left(tokens.starts, start), bisect_right(tokens.ends, end)
        out.add(first, last, QUOTED)
        # A stop inside the quotation marks may be the style's or the value's own.
        if last < len(tokens) and tokens.words[last] in ",.;" and tokens.starts[last] == tokens.ends[last - 1]:
            out.add(first, last + 1, QUOTED)
    bracket: int | None = None
    for i, word in enumerate(tokens.words):
        if word == "(":
            bracket = i
        elif bracket is not None and word in "),;:":
            if 1 <= i - bracket - 1 <= _RUNS_JOINED:
                out.add(bracket + 1, i, BRACKETED)
            bracket = None


def _values(tokens: Tokens, out: Spans) -> None:
    at_start = {start: i for i, start in enumerate(tokens.starts)}
    at_end = {end: i + 1 for i, end in enumerate(tokens.ends)}
    dated: set[int] = set()
    for mention in find_dates(tokens.text):
        first, last = at_start.get(mention.start), at_end.get(mention.end)
        if first is not None and last is not None:
            out.add(first, last, DATE)
            out.values[(first, last)] = mention.date
            if mention.date.month is not None:
                dated.update(range(first, last))
    for number in find_quantities(tokens.text):
        for start, end in ((number.number_start, number.number_end), (number.start, number.end)):
            first, last = at_start.get(start), at_end.get(end)
            if first is None or last is None or first in dated or (first, last) in out.values:
                continue
            out.add(first, last, QUANTITY)
            out.values[(first, last)] = number.quantity


STOPWORDS = word_set(
    "a an and are as at be been being but by can could did do does for from had has have he her his if in "
    "into is it its may more most not of on or our over she should so some such than that the their them "
    "then there these they this those to under until up was were what when where which while who whom whose "
    "will with would also after before during about between both each other only same very s t i you we "
    "first second third known called named one two three including"
)


def find_spans(tokens: Tokens) -> list[WordSpan]:
    """All spans of a sentence, ordered by place."""
    return collect_spans(tokens).ordered()


def collect_spans(tokens: Tokens) -> Spans:
    """All spans of a sentence, for others to add to."""
    out = Spans()
    if len(tokens):
        _names(tokens, out)
        _openings(tokens, out)
        _enclosed(tokens, out)
        _values(tokens, out)
        for first, last in caseless_names(tokens):
            out.add(first, last, PLAIN)
    return out
