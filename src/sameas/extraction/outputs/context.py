"""What an output says besides the graph: where IRIs begin, which text, which ontology, who extracted.

Rule: no time and no machine is named, so that equal work gives equal bytes.
"""

import hashlib
import re
from urllib.parse import quote

import msgspec

_LOCAL = re.compile(r"[^/#:]+\Z")
_FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|\\^`]")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+\Z")
DEFAULT_BASE = "urn:sameas:"


class OutputContext(msgspec.Struct, frozen=True, kw_only=True):
    """The frame of an output. `base` is put before every id that is made here; end it with `/`, `#` or
    `:`.
    """

    key: str
    base: str = DEFAULT_BASE
    document: str = ""
    ontology: str = ""
    extractor: str = ""
    extractor_version: str = ""

    def __post_init__(self) -> None:
        if _FORBIDDEN.search(self.base) or not _ABSOLUTE.match(self.base) or self.base[-1] not in "/#:":
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
    def source(self) -> str:
        """The document's own IRI if it has one, else one made from the key."""
        if self.document and _ABSOLUTE.match(self.document) and not _FORBIDDEN.search(self.document):
            return self.document
        return f"{self.base}document-{quote(self.key, safe='-')}"

    @property
    def agent(self) -> str:
        return f"{self.base}extractor-{quote(self.extractor or 'unknown', safe='-')}"

    def made(self, kind: str, *parts: str) -> str:
        """A stable IRI for something that has no name of its own, from what it is made of."""
        joined = "".join([f"{len(part)}:{part}" for part in parts]).encode("utf-8", "surrogatepass")
        return f"{self.base}{kind}-{hashlib.sha256(joined).hexdigest()[:24]}"


def local_name(iri: str) -> str:
    """The last part of an IRI, for people."""
    match = _LOCAL.search(iri)
    return match[0] if match else iri
