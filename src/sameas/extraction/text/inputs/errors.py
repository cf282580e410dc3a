"""What can be wrong with a document.

DocumentError
    UnsupportedDocumentError   the kind of file is not one that is read
    MissingExtraError          the package that reads it is not installed
    DocumentLimitError         it is larger, deeper or slower than the limits allow
    DamagedDocumentError       it is not what its kind says
"""

from sameas.identity.errors import SameasError


class DocumentError(SameasError):
    """The document cannot be read."""


class UnsupportedDocumentError(DocumentError):
    """The kind of document is unknown: give text, Markdown, HTML, PDF or DOCX."""


class MissingExtraError(DocumentError):
    """A package that reads this kind of document is not installed."""

    def __init__(self, package: str, *, kind: str) -> None:
        super().__init__(f"reading {kind} needs the package {package}: install sameas[documents]")
        self.package = package


class DocumentLimitError(DocumentError):
    """The document passes a limit; raise the limit if you trust the document."""

    def __init__(self, what: str, *, limit: float, unit: str) -> None:
        super().__init__(f"the document has {what}; the limit is {limit:g} {unit}. Raise it if you trust the document")
        self.limit = limit


class DamagedDocumentError(DocumentError):
    """The document is damaged or not of the kind its name says."""
