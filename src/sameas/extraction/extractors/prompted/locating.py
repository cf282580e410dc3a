"""Where a name that a model gave stands in the text.

Rule: a name is found as it is written, as whole words, with any blanks between them; else in another case. Longer
names come first, and places do not overlap; but what is a whole sentence, or as long as one, comes last: one such
"name" would take the places of all the others. A name that stands nowhere, or only inside others, gets no place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from sameas.extraction.extractors.lexicon.phrases import is_unspaced
from sameas.extraction.text.document import Span

# A name that stands oftener than this in one chunk is a word like any other; the first places are enough.
_MOST_PLACES = 50
_LONG_AS_A_SENTENCE = 12
_ODD_BLANKS = re.compile(r"[^\S ]|  ")


def locate(text: str, names: Iterable[str], *, sentences: Iterable[Span] = ()) -> Mapping[str, tuple[Span, ...]]:
    """The places of each name, from left to right; none for a name that is not there."""
    whole = {" ".join(text[span.start : span.end].split()).rstrip(".!?") for span in sentences}

    def rank(name: str) -> tuple[bool, int, str]:
        words = name.split()
        is_sentence = len(words) > _LONG_AS_A_SENTENCE or " ".join(words).rstrip(".!?") in whole
        return is_sentence, -len(name), name

    ordered = sorted(set(names), key=rank)
    taken = bytearray(len(text))
    found: dict[str, tuple[Span, ...]] = {}
    for name in ordered:
        spans = [span for span in places(text, name) if not any(taken[span.start : span.end])]
        for span in spans:
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
        found[name] = tuple(spans)
    return found


def places(text: str, name: str) -> list[Span]:
    """Where a name stands, whatever else stands there."""
    words = name.split()
    if not words:
        return []
    # Compiling a pattern for each name takes longer than all the rest; few names need one.
    if len(words) == 1 or not _ODD_BLANKS.search(text):
        found = list(islice(_plain(text, " ".join(words)), _MOST_PLACES))
        if found:
            return found
    pattern = r"\s+".join(map(re.escape, words))
    for flags in (0, re.IGNORECASE):
        matches = (Span(*match.span()) for match in re.finditer(pattern, text, flags))
        found = list(islice((span for span in matches if _is_whole(text, span)), _MOST_PLACES))
        if found:
            return found
    return []


def _plain(text: str, name: str) -> Iterator[Span]:
    at = text.find(name)
    while at >= 0:
        span = Span(at, at + len(name))
        whole = _is_whole(text, span)
        if whole:
            yield span
        at = text.find(name, span.end if whole else at + 1)


def _is_whole(text: str, span: Span) -> bool:
    """Whether the words at both ends are whole; scripts without blanks have no such ends."""
    before, first = text[span.start - 1 : span.start], text[span.start]
    last, after = text[span.end - 1], text[span.end : span.end + 1]
    return not (_continues(before, first) or _continues(after, last))


def _continues(beyond: str, edge: str) -> bool:
    return bool(beyond) and edge.isalnum() and not is_unspaced(edge) and (beyond.isalnum() or beyond == "_")


def nearest(subjects: Iterable[Span], objects: Iterable[Span]) -> tuple[Span, Span] | None:
    """The two places that are closest to each other; of equals, the first in the text."""
    pairs = [(one, other) for one in subjects for other in objects if not _overlap(one, other)]
    return min(pairs, key=lambda pair: (_distance(*pair), pair[0], pair[1]), default=None)


def _distance(one: Span, other: Span) -> int:
    return max(one.start, other.start) - min(one.end, other.end)


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
