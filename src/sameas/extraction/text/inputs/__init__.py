"""Files to documents: text, Markdown, HTML, PDF and DOCX."""

from sameas.extraction.text.inputs.assembly import InputLimits
from sameas.extraction.text.inputs.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentLimitError,
    MissingExtraError,
    UnsupportedDocumentError,
)
from sameas.extraction.text.inputs.reader import guess_media_type, read_bytes, read_document

__all__ = [
    "DamagedDocumentError",
    "DocumentError",
    "DocumentLimitError",
    "InputLimits",
    "MissingExtraError",
    "UnsupportedDocumentError",
    "guess_media_type",
    "read_bytes",
    "read_document",
]
