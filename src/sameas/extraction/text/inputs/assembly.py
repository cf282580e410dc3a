"""The text of a document while it is put together, each piece with its place in the source, within limits: some files
are small on disk and endless inside."""

import time

import msgspec

from sameas.extraction.text.document import Document, PartUnit, Segment
from sameas.extraction.text.inputs.errors import DocumentLimitError

MIB = 1024 * 1024


class InputLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds for one document; all are checked while it is read."""

    file_bytes: int = 256 * MIB
    characters: int = 128 * MIB
    pages: int = 5_000
    objects: int = 500_000
    decompressed_bytes: int = 512 * MIB
    memory_bytes: int = 2048 * MIB
    seconds: float = 120.0

    def __post_init__(self) -> None:
        if any(getattr(self, name) <= 0 for name in self.__struct_fields__):
            raise ValueError("every input limit must be above zero")


class SizeMeter:
    """Counts what a reader uses and stops it at a limit."""

    def __init__(self, limits: InputLimits) -> None:
        self.limits = limits
        self._characters = 0
        self._objects = 0
        self._ends_at = time.monotonic() + limits.seconds

    def text(self, characters: int) -> None:
        self._characters += characters
        if self._characters > self.limits.characters:
            raise DocumentLimitError("too much text", limit=self.limits.characters, unit="characters")
        self.tick()

    def objects(self, number: int = 1) -> None:
        self._objects += number
        if self._objects > self.limits.objects:
            raise DocumentLimitError("too many objects", limit=self.limits.objects, unit="objects")

    def tick(self) -> None:
        if time.monotonic() > self._ends_at:
            raise DocumentLimitError("taken too long to read", limit=self.limits.seconds, unit="seconds")


_LONGEST_TITLE = 500


class Assembly:
    """Collects pieces of text and the segments that tie them to the source."""

    def __init__(self, meter: SizeMeter, *, media_type: str, unit: PartUnit = "text") -> None:
        self._meter = meter
        self._media_type = media_type
        self._unit: PartUnit = unit
        self._pieces: list[str] = []
        self._segments: list[Segment] = []
        self._length = 0
        self._newlines = 2
        self.title = ""

    def add(self, text: str, *, at: int, source_length: int | None = None, part: int = 0, exact: bool = True) -> None:
        """Text that stands in the source at this offset of this part."""
        if not text:
            return
        source_end = at + (len(text) if source_length is None else source_length)
        last = self._segments[-1] if self._segments else None
        joins = (
            last is not None
            and exact
            and last.exact
            and (last.end, last.source_end, last.part) == (self._length, at, part)
        )
        if last is not None and joins:
            start, source_start = last.start, last.source_start
            self._segments.pop()
        else:
            start, source_start = self._length, at
        self._write(text)
        self._segments.append(Segment(start, self._length, source_start, source_end, part, exact))

    def space(self) -> None:
        """A blank that the source does not have, unless there is one already."""
        if self._pieces and not self._pieces[-1][-1].isspace():
            self._write(" ")

    def line_break(self, *, blank_lines: int = 0) -> None:
        """Begin a new line, or a new paragraph with one blank line."""
        wanted = 1 + blank_lines
        if self._length and self._newlines < wanted:
            self._write("\n" * (wanted - self._newlines))

    def document(self) -> Document:
        return Document(
            "".join(self._pieces),
            media_type=self._media_type,
            unit=self._unit,
            segments=tuple(self._segments),
            title=" ".join(self.title.split())[:_LONGEST_TITLE],
        )

    def _write(self, text: str) -> None:
        self._meter.text(len(text))
        self._meter.objects()
        self._pieces.append(text)
        self._length += len(text)
        solid = text.rstrip("\n")
        self._newlines = len(text) - len(solid) + (self._newlines if not solid else 0)
