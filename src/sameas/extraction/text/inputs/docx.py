"""DOCX to text. A place is the number of a paragraph in reading order, from 1, and an offset in its text.

The archive is weighed before it is opened, by what its members unpack to; entity declarations are refused.
"""

import io
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.assembly import Assembly, SizeMeter
from sameas.extraction.text.inputs.errors import DamagedDocumentError, DocumentLimitError, MissingExtraError

if TYPE_CHECKING:
    from docx.document import Document as DocxDocument
    from docx.table import _Cell
    from docx.text.paragraph import Paragraph

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_PROLOGUE = 1024


def read_docx(data: bytes, *, meter: SizeMeter) -> Document:
    """The text of a Word document: paragraphs and tables in reading order."""
    try:
        import docx
    except ImportError as error:
        raise MissingExtraError("python-docx", kind="DOCX") from error
    out = Assembly(meter, media_type=MEDIA_TYPE, unit="paragraph")
    try:
        _weigh(data, meter)
        opened = docx.Document(io.BytesIO(data))
        out.title = opened.core_properties.title or ""
        for number, (paragraph, in_table) in enumerate(_paragraphs(opened, meter), 1):
            text = paragraph.text
            if text.strip():
                out.line_break(blank_lines=0 if in_table else 1)
                out.add(text, at=0, part=number)
            meter.tick()
    except (
        zipfile.BadZipFile,
        KeyError,
        ValueError,
        AttributeError,
        NotImplementedError,
        SyntaxError,
    ) as error:
        raise DamagedDocumentError(f"the file is not a DOCX that can be read: {type(error).__name__}") from error
    return out.document()


def _weigh(data: bytes, meter: SizeMeter) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        meter.objects(len(members))
        unpacked = sum(member.file_size for member in members)
        limit = meter.limits.decompressed_bytes
        if unpacked > limit:
            raise DocumentLimitError(f"{unpacked} bytes when unpacked", limit=limit, unit="bytes")
        for member in members:
            if member.filename.endswith((".xml", ".rels")):
                with archive.open(member) as opened:
                    if b"<!DOCTYPE" in opened.read(_PROLOGUE):
                        raise DamagedDocumentError("the DOCX declares a document type, which Word never does")


def _paragraphs(opened: "DocxDocument", meter: SizeMeter) -> Iterator[tuple["Paragraph", bool]]:
    from docx.table import Table

    for block in opened.iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                seen: set[int] = set()
                for cell in row.cells:
                    # A merged cell comes once for each column it spans.
                    if id(cell._tc) not in seen:
                        seen.add(id(cell._tc))
                        yield from ((paragraph, True) for paragraph in _cell(cell, meter))
        else:
            meter.objects()
            yield block, False


def _cell(cell: "_Cell", meter: SizeMeter) -> Iterator["Paragraph"]:
    for paragraph in cell.paragraphs:
        meter.objects()
        yield paragraph
