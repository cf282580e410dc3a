"""A document: its text, the way back from a character of the text to its place in the source, and what the caller knows
of the source: its names, its address, its pages and paragraphs.

Rule: the pipeline works on the normalised text, and stored offsets refer to it. Everything else is made for each caller
and never stored with a result, because two originals, or equal texts under different names, can share one key.
"""

import mimetypes
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

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
    """Maps offsets in the normalised text to offsets in the text that a caller gave."""

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


_BREAK = re.compile(r"\n(?:[ \t]*\n)+")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# RFC 3987, but for addresses of version 6: no brackets, nothing private, and a port is a number.
_SIGN = (
    r"(?:[^\x00-\x20<>\"{}|\\^`\[\]#%\x7f-\x9f\ud800-\uf8ff\ufdd0-\ufdef\ufff0-\uffff"
    r"\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff]|%[0-9A-Fa-f]{2})"
)
_AUTHORITY = r"(?:(?!//)|(?=//(?:[^/?#@]*@)?[^/?#:@]*(?::[0-9]*)?(?:[/?#]|\Z)))"
_IRI = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*:{_AUTHORITY}{_SIGN}*(?:#{_SIGN}*)?\Z")


def is_iri(text: str) -> bool:
    """Whether a text is an absolute IRI: one that is not cannot be written, and would spoil what it stands in."""
    return _IRI.match(text) is not None


def readable_path(path: str | os.PathLike[str]) -> str:
    """A path as text that can be written anywhere: what of it is no UTF-8 is escaped."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode()


class DocumentSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One file or address that a document was read from. `location` is an IRI, `modified_at` a time of ISO 8601."""

    name: str = ""
    location: str = ""
    title: str = ""
    media_type: str = ""
    size: int | None = None
    modified_at: str = ""

    def __post_init__(self) -> None:
        if self.location and not is_iri(self.location):
            raise ValueError(f"the location {self.location!r} is not an IRI; percent-encode it, or leave it out")

    @classmethod
    def of_file(cls, path: Path, document: Document | None = None) -> "DocumentSource":
        """What the file system knows of a file; `document` is what was read from it, if that is at hand."""
        about = path.stat()
        guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
        return cls(
            name=readable_path(path.name),
            location=path.resolve().as_uri(),
            title="" if document is None else document.title,
            media_type=guessed if document is None else document.media_type,
            size=about.st_size,
            modified_at=_instant(about.st_mtime),
        )

    @classmethod
    def of_name(cls, name: str, *, media_type: str = "", size: int | None = None, title: str = "") -> "DocumentSource":
        """A document known by a name, a path or an address."""
        return cls(name=_last_part(name), location=_iri(name), title=title, media_type=media_type, size=size)

    @classmethod
    def of_metadata(cls, metadata: Mapping[str, Any]) -> "DocumentSource":
        """From the metadata of a LangChain or LlamaIndex document, by the names that their loaders use."""
        where = _first(metadata, "source", "url", "file_path", "path", "id")
        size = metadata.get("file_size")
        return cls(
            name=_first(metadata, "file_name", "filename", "name") or _last_part(where),
            location=_iri(where),
            title=_first(metadata, "title"),
            media_type=_first(metadata, "media_type", "mime_type", "file_type", "content_type"),
            size=size if isinstance(size, int) else None,
            modified_at=_moment(_first(metadata, "last_modified_date", "last_modified", "modified_at", "moddate")),
        )


class TextPlace(NamedTuple):
    """Where in its source a stretch of text begins, counted from 1, as far as the source counts."""

    page: int | None = None
    paragraph: int | None = None


class DocumentPlaces:
    """The pages and paragraphs of a document, by offsets of its normalised text."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._offsets = document.offsets()
        self._paragraphs: list[int] = []
        if document.unit == "text":
            self._paragraphs = [0, *(found.end() for found in _BREAK.finditer(document.normalized))]
        self.of = lru_cache(maxsize=4096)(self._of)

    def _of(self, start: int, end: int) -> TextPlace:
        if self._document.unit == "text":
            return TextPlace(paragraph=bisect_right(self._paragraphs, start))
        found = self._document.places(Span(start, end), offsets=self._offsets)
        if not found:
            return TextPlace()
        part = found[0].part
        return TextPlace(page=part) if self._document.unit == "page" else TextPlace(paragraph=part)


def _first(metadata: Mapping[str, Any], *names: str) -> str:
    return next((found for name in names if isinstance(found := metadata.get(name), str) and found), "")


def _last_part(name: str) -> str:
    return name.rstrip("/").replace("\\", "/").rpartition("/")[2] or name


def _iri(name: str) -> str:
    if _URL.match(name) or name.startswith("urn:"):
        return name if is_iri(name) else ""
    path = Path(name)
    return path.as_uri() if path.is_absolute() else ""


def _moment(written: str) -> str:
    """A time in full, however it was written; empty if it is not a time."""
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        return ""
    return read.isoformat(timespec="seconds").replace("+00:00", "Z")


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
