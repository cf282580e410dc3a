"""What an output says besides the graph: where IRIs begin, which document, which ontology, who extracted.

Rule: without `sources`, `times` and `places` no time and no machine is named, so that equal work gives equal bytes: so
it is in the files of a run. They are what one caller knows of the document, said when the graph is given to them.
"""

import hashlib
import re
from typing import Protocol
from urllib.parse import quote

import msgspec

from sameas.extraction.text.document_source import DocumentPlaces, DocumentSource, TextPlace, is_iri


class Writable(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object: ...


_LOCAL = re.compile(r"[^/#:]+\Z")
DEFAULT_BASE = "urn:sameas:"
_NOWHERE = TextPlace()


class OutputContext(msgspec.Struct, frozen=True, kw_only=True):
    """The frame of an output. `base` is put before every id that is made here; end it with `/`, `#` or
    `:`.
    """

    key: str
    base: str = DEFAULT_BASE
    text_hash: str = ""
    """The digest of the normalised text. Without it the document is known by the key alone."""
    sources: tuple[DocumentSource, ...] = ()
    times: tuple[str, str] | None = None
    """When the reading began and when it ended, ISO 8601."""
    places: DocumentPlaces | None = None
    ontology: str = ""
    extractor: str = ""
    extractor_version: str = ""

    def __post_init__(self) -> None:
        if not is_iri(self.base) or self.base[-1] not in "/#:" or len(self.base) <= self.base.index(":") + 1:
            raise ValueError(f"the base {self.base!r} is not an absolute IRI that ends with '/', '#' or ':'")

    def entity(self, entity_id: str) -> str:
        return f"{self.base}{entity_id}"

    @property
    def run(self) -> str:
        return f"{self.base}run-{quote(self.key, safe='-')}"

    @property
    def graph(self) -> str:
        return f"{self.base}graph-{quote(self.key, safe='-')}"

    @property
    def document(self) -> str:
        """The IRI of the document: of its text, whatever its names are and whoever reads it."""
        return document_iri(self.base, self.text_hash) if self.text_hash else f"{self.base}document-{_plain(self.key)}"

    @property
    def is_known(self) -> bool:
        """Whether anything is said of the document that is not the run's."""
        return bool(self.sources or self.times or self.places)

    def place(self, start: int, end: int) -> TextPlace:
        """Page and paragraph of a stretch of the text, where the document has them."""
        return _NOWHERE if self.places is None else self.places.of(start, end)

    @property
    def agent(self) -> str:
        return f"{self.base}extractor-{quote(self.extractor or 'unknown', safe='-')}"

    def made(self, kind: str, *parts: str) -> str:
        """A stable IRI for something that has no name of its own, from what it is made of."""
        return f"{self.base}{kind}-{self.digest(*parts)}"

    @staticmethod
    def digest(*parts: str) -> str:
        """What such an IRI ends with."""
        joined = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
        return hashlib.sha256(joined).hexdigest()[:24]


def document_iri(base: str, text_hash: str) -> str:
    """The IRI of the document whose normalised text has this SHA-256, in hex."""
    return f"{base}document-sha256-{text_hash}"


def _plain(key: str) -> str:
    return quote(key, safe="-")


def local_name(iri: str) -> str:
    """The last part of an IRI, for people."""
    match = _LOCAL.search(iri)
    return match[0] if match else iri
