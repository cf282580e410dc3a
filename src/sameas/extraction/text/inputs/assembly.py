"""The text of a document while it is put together, each piece with its place in the source."""

from sameas.extraction.text.document import Document, PartUnit, Segment
from sameas.extraction.text.inputs.limits import SizeMeter

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
