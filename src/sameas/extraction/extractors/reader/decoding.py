"""From the network's numbers to mentions, names and facts. Needs numpy alone, so that training uses this very file."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[Any]
BEGIN, INSIDE = 1, 2
_BEGIN_FROM = 0.3
_INSIDE_FROM = 0.4
_AGAIN_FROM = 0.5
_BUCKETS = 4
VIRTUAL_BUCKET = 2 * _BUCKETS + 1


class TokenSpan(NamedTuple):
    """Tokens first..last (inclusive), the characters [start, end), and how sure the tags are."""

    first: int
    last: int
    start: int
    end: int
    score: float


def find_mentions(tags: Floats, starts: Sequence[int], ends: Sequence[int], text: str) -> list[TokenSpan]:
    """The mentions that the tag probabilities [tokens, 3] show; a mention never ends inside a word."""
    found: list[TokenSpan] = []
    at, count = 0, len(starts)
    while at < count:
        if tags[at, BEGIN] <= _BEGIN_FROM:
            at += 1
            continue
        last = at
        while last + 1 < count and _goes_on(tags, last + 1, starts, ends, text):
            last += 1
        # Blanks and marks before a line's end are tokens, too.
        while last > at and text[starts[last] : ends[last]].isspace():
            last -= 1
        start, end = int(starts[at]), int(ends[last])
        said = text[start:end]
        start += len(said) - len(said.lstrip())
        end -= len(said) - len(said.rstrip())
        if end > start:
            found.append(TokenSpan(at, last, start, end, float(tags[at, BEGIN])))
        at = last + 1
    return found


def spans_at(
    places: Iterable[tuple[int, int]], tags: Floats, starts: Sequence[int], ends: Sequence[int]
) -> list[TokenSpan]:
    """The tokens of stretches that others took for names or values, as sure as the tags are of each."""
    found = []
    for start, end in places:
        inside = [at for at, begin in enumerate(starts) if begin < end and ends[at] > start and ends[at] > begin]
        if inside and starts[inside[0]] <= start:
            found.append(TokenSpan(inside[0], inside[-1], start, end, _whole_score(tags, inside[0], inside[-1])))
    return found


def _whole_score(tags: Floats, first: int, last: int) -> float:
    """How sure the tags are that a stretch begins here, goes on to its end and no further."""
    score = float(tags[first, BEGIN])
    if last > first:
        score = min(score, float(tags[first + 1 : last + 1, INSIDE].min()))
    if last + 1 < len(tags):
        score = min(score, 1 - float(tags[last + 1, INSIDE]))
    return score


def _goes_on(tags: Floats, at: int, starts: Sequence[int], ends: Sequence[int], text: str) -> bool:
    if tags[at, INSIDE] > _INSIDE_FROM and tags[at, BEGIN] < _AGAIN_FROM:
        return True
    return starts[at] == ends[at - 1] and text[starts[at] : ends[at]].isalnum() and text[starts[at] - 1].isalnum()


def group_names(spans: Sequence[TokenSpan], text: str) -> tuple[list[int], list[str]]:
    """For each mention the number of its name, and the names; mentions of one spelling are one name."""
    numbers: dict[str, int] = {}
    names: list[str] = []
    of = []
    for span in spans:
        said = text[span.start : span.end]
        key = said.casefold()
        if key not in numbers:
            numbers[key] = len(names)
            names.append(said)
        of.append(numbers[key])
    return of, names


def distance_bucket(gap: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Direction and size of a distance in tokens, in nine steps."""
    size = np.minimum(np.log2(np.abs(gap) + 1.0) / 2, _BUCKETS).astype(np.int64)
    bucket: npt.NDArray[np.int64] = np.sign(gap).astype(np.int64) * size + _BUCKETS
    return bucket


def value_of(span: tuple[int, int], values: Iterable[tuple[int, int, str, str]], datatype: str) -> str | None:
    """The normal form of the date or number that a mention of a value says, in a datatype; None if it says none."""
    wanted = "date" if datatype in ("date", "dateTime", "gYear", "gYearMonth") else "number"
    best: tuple[int, str, str] | None = None
    for start, end, value, sort in values:
        shared = min(end, span[1]) - max(start, span[0])
        if shared > 0 and (best is None or (sort == wanted, shared) > (best[2] == wanted, best[0])):
            best = (shared, value, sort)
    if best is None:
        return None
    _, value, sort = best
    if sort == "date":
        if wanted == "number" and not value.isdigit():
            return None
        return value[:4] if datatype == "gYear" else value[:7] if datatype == "gYearMonth" else value
    # A bare number of four digits may be a year that the reader of dates left aside.
    if wanted == "date" and not (value.isdigit() and len(value) == 4):
        return None
    return value
