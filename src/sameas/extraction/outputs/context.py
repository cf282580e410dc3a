"""What an output says besides the graph: where IRIs begin, which document, which ontology, which extractor.

Rule: without `sources`, `times` and `places` no time and no machine is named, so that equal work gives equal bytes. The
files of a run are written so. What one caller knows of the document is added as plain statements, without a library,
when the graph is given to that caller: a replay must not take longer for it.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import quote

import msgspec

from sameas.extraction.graph.model import Graph
from sameas.extraction.text.document import DocumentPlaces, DocumentSource, TextPlace, is_iri


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

    def iri(self, kind: str, *parts: str) -> str:
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


Kind: TypeAlias = Literal["iri", "text", "nonNegativeInteger", "dateTime"]
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNSAFE = re.compile('[\\\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


class DocumentStatement(NamedTuple):
    """A statement about the document: the predicate is a prefix and a name, the value an IRI or a literal."""

    subject: str
    predicate: str
    value: str
    kind: Kind = "text"


def about_document(graph: Graph, context: OutputContext) -> Iterator[DocumentStatement]:
    """What the caller knows of the document, always in the same order."""
    for source in context.sources:
        yield from _source(source, context)
    if context.times is not None:
        for term, moment in zip(("startedAtTime", "endedAtTime"), context.times, strict=True):
            if moment:
                yield DocumentStatement(context.run, f"prov:{term}", moment, "dateTime")
    if context.places is not None:
        yield from _places(graph, context)


def write_about(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """The statements as Turtle, after a head that declares the prefixes."""
    for one in about_document(graph, context):
        target.write(f"<{one.subject}> {one.predicate} {_written(one)} .\n".encode())


def _source(source: DocumentSource, context: OutputContext) -> Iterator[DocumentStatement]:
    node = context.iri("source", context.document, source.name, source.location)
    yield DocumentStatement(context.document, "prov:wasDerivedFrom", node, "iri")
    if source.title:
        yield DocumentStatement(context.document, "dcterms:title", source.title)
    yield DocumentStatement(node, "rdf:type", "http://www.w3.org/ns/prov#Entity", "iri")
    if source.name:
        yield DocumentStatement(node, "rdfs:label", source.name)
    if source.location:
        yield DocumentStatement(node, "prov:atLocation", source.location, "iri")
    if source.media_type:
        yield DocumentStatement(node, "dcterms:format", source.media_type)
    if source.size is not None:
        yield DocumentStatement(node, "dcterms:extent", str(source.size), "nonNegativeInteger")
    if source.modified_at:
        yield DocumentStatement(node, "dcterms:modified", source.modified_at, "dateTime")


def _places(graph: Graph, context: OutputContext) -> Iterator[DocumentStatement]:
    mentions = (mention for entity in graph.entities for mention in entity.mentions)
    evidence = (each for relation in graph.relations for each in relation.evidence)
    described: set[tuple[int, int]] = set()
    for one in chain(mentions, evidence):
        # Several things can rest on the same characters.
        if (one.start, one.end) in described:
            continue
        described.add((one.start, one.end))
        target = context.iri("target", context.document, str(one.start), str(one.end))
        for unit, number in context.place(one.start, one.end)._asdict().items():
            if number is not None:
                yield DocumentStatement(target, f"sameas:{unit}", str(number), "nonNegativeInteger")


def _written(one: DocumentStatement) -> str:
    if one.kind == "iri":
        return f"<{one.value}>"
    quoted = f'"{_UNSAFE.sub(_escape, one.value)}"'
    return quoted if one.kind == "text" else f"{quoted}^^xsd:{one.kind}"


def _escape(match: re.Match[str]) -> str:
    sign = match[0]
    code = 0xFFFD if "\ud800" <= sign <= "\udfff" else ord(sign)
    return _ESCAPES.get(sign) or f"\\u{code:04X}"
