"""Files to documents: text, Markdown, HTML, PDF and DOCX."""

from sameas.extraction.inputs.errors import (
    DamagedDocumentError,
    DocumentError,
    DocumentLimitError,
    MissingExtraError,
    UnsupportedDocumentError,
)
from sameas.extraction.inputs.limits import InputLimits
from sameas.extraction.inputs.reader import guess_media_type, read_bytes, read_document

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
