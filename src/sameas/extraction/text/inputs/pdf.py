"""PDF to text, page by page. A place is a page number, from 1, and an offset in the text of that page.

Runs of pages share nothing, so a limit stops the reading between two of them; the caller's process is
protected by reading in a child process (see `isolation`).
"""

import io

from sameas.extraction.text.document import Document
from sameas.extraction.text.inputs.assembly import Assembly, SizeMeter
from sameas.extraction.text.inputs.errors import DamagedDocumentError, DocumentLimitError, MissingExtraError

MEDIA_TYPE = "application/pdf"


def read_pdf(data: bytes, *, meter: SizeMeter) -> Document:
    """The text of a PDF; an encrypted one that opens without a password is read."""
    try:
        from pypdf import PdfReader, filters
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise MissingExtraError("pypdf", kind="PDF") from error
    limits = meter.limits
    for name in ("ZLIB_MAX_OUTPUT_LENGTH", "LZW_MAX_OUTPUT_LENGTH", "RUN_LENGTH_MAX_OUTPUT_LENGTH"):
        if hasattr(filters, name):
            setattr(filters, name, min(getattr(filters, name), limits.decompressed_bytes))
    out = Assembly(meter, media_type=MEDIA_TYPE, unit="page")
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DamagedDocumentError("the PDF is locked with a password: save it without one")
        meter.objects(int(reader.trailer.get("/Size", 0)))
        pages = len(reader.pages)
        if pages > limits.pages:
            raise DocumentLimitError(f"{pages} pages", limit=limits.pages, unit="pages")
        out.title = (reader.metadata.title if reader.metadata is not None else None) or ""
        for number, page in enumerate(reader.pages, 1):
            text = page.extract_text()
            out.line_break(blank_lines=1)
            out.add(text, at=0, part=number)
            meter.tick()
    except PyPdfError as error:
        raise DamagedDocumentError(f"the file is not a PDF that can be read: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise DamagedDocumentError(f"the PDF is damaged: {type(error).__name__}: {error}") from error
    return out.document()
