"""A document: its text, and the way back from a character of the text to its place in the source.

Rule: the pipeline works on the normalised text and stored offsets refer to it. The map to a caller's original
is computed for each caller and never stored, because two originals can share one key.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import msgspec

from sameas.identity.key import normalize_text


class Span(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """A stretch of the text: the characters from start up to, not including, end."""

    start: int
    end: int

    def shifted(self, by: int) -> "Span":
        return Span(self.start + by, self.end + by)

    def covers(self, other: "Span") -> bool:
        return self.start <= other.start and other.end <= self.end


PartUnit: TypeAlias = Literal["text", "page", "paragraph"]

# Blanks at the end of a line, and the CR of a CRLF: what normalising takes out of the middle of a text. The look-behind
# starts each run of blanks once, so that a megabyte of blanks takes linear time.
_TAKEN_OUT = re.compile(r"(?<![ \t])[ \t]++(?=[\r\n])|\r(?=\n)")


class OffsetMap:
    """From offsets in the normalised text to offsets in the text that a caller gave."""

    def __init__(self, original: str) -> None:
        begin = len(original) - len(original.lstrip())
        end = len(original.rstrip())
        self._normal = array("q", [0])
        self._original = array("q", [begin])
        taken = 0
        for match in _TAKEN_OUT.finditer(original, begin, max(begin, end)):
            taken += match.end() - match.start()
            self._normal.append(match.end() - begin - taken)
            self._original.append(match.end())
        self.length = max(0, end - begin - taken)

    def offset(self, normal: int) -> int:
        """Where the character at this offset of the normalised text stands in the original."""
        if not 0 <= normal <= self.length:
            raise IndexError(f"offset {normal} is outside the normalised text of {self.length} characters")
        if normal == self.length and normal:
            return self.offset(normal - 1) + 1
        piece = bisect_right(self._normal, normal) - 1
        return self._original[piece] + normal - self._normal[piece]

    def span(self, span: Span) -> Span:
        """The same stretch in the original: from its first character to just after its last."""
        if span.end <= span.start:
            at = self.offset(span.start)
            return Span(at, at)
        return Span(self.offset(span.start), self.offset(span.end - 1) + 1)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a document's text and where it stands in its part of the source.

    Where `exact` is false the text was rewritten on the way (an entity, an escape, a ligature) and the whole
    stretch maps to the whole source range.
    """

    start: int
    end: int
    source_start: int
    source_end: int
    part: int = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A range in the source: of the file's own characters, or within page or paragraph number `part`."""

    unit: PartUnit
    part: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a source, with the segments that tie it to the source's own positions."""

    text: str
    media_type: str = "text/plain"
    unit: PartUnit = "text"
    segments: tuple[Segment, ...] = ()
    title: str = ""
    normalized: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "normalized", normalize_text(self.text))

    def offsets(self) -> OffsetMap:
        """The map from the normalised text to `text`, computed now."""
        return OffsetMap(self.text)

    def places(self, span: Span, *, offsets: OffsetMap | None = None) -> tuple[SourcePlace, ...]:
        """Where a span of the normalised text stands in the source; several places where it crosses parts."""
        inside = (offsets or self.offsets()).span(span)
        if not self.segments:
            return (SourcePlace(self.unit, 0, inside.start, inside.end),)
        found: list[SourcePlace] = []
        index = max(0, bisect_right(self.segments, inside.start, key=lambda segment: segment.start) - 1)
        while index < len(self.segments) and self.segments[index].start < inside.end:
            place = _within(self.segments[index], inside, unit=self.unit)
            if place is not None:
                if found and found[-1].part == place.part and found[-1].start <= place.start:
                    place = SourcePlace(self.unit, place.part, found[-1].start, max(found[-1].end, place.end))
                    found.pop()
                found.append(place)
            index += 1
        return tuple(found)


def _within(segment: Segment, span: Span, *, unit: PartUnit) -> SourcePlace | None:
    start, end = max(segment.start, span.start), min(segment.end, span.end)
    if start >= end:
        return None
    if not segment.exact:
        return SourcePlace(unit, segment.part, segment.source_start, segment.source_end)
    shift = segment.source_start - segment.start
    return SourcePlace(unit, segment.part, start + shift, end + shift)


def normalized_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """The normalised text of a stream, piece by piece: joined, they equal `normalize_text` of the whole."""
    held: list[str] = []
    begun = False
    for piece in pieces:
        solid = piece.rstrip()
        if not solid:
            held.append(piece)
            continue
        # Whitespace at a piece's end may be trailing, or one half of a CRLF: it waits for what follows.
        whole = "".join([*held, solid])
        held = [piece[len(solid) :]]
        normal = normalize_text(whole)
        if begun:
            lead = whole[: len(whole) - len(whole.lstrip())]
            normal = normalize_text(f"x{lead}x")[1:-1] + normal
        begun = True
        yield normal
