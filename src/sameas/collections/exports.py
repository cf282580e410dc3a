"""A whole collection as a file: N-Quads, Turtle, JSON lines, CSV, and one HTML file with the viewer of the web app.

Rule: it is streamed from one state of the tables, so that memory does not follow its size. In N-Quads each document is
a graph of its own and the resolved view is the default graph; Turtle has the resolved view. Every statement says which
characters of which documents support it. The HTML file has every entity and every relation, and of each relation the
first sentences; it draws what somebody asks to see and never all at once.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from sameas.collections.model import CollectionEvidence, CollectionInfo, Decision, DocumentInfo, EntityInfo, Statement
from sameas.collections.views import Reader
from sameas.extraction.outputs.rdf import OA, OWL, PREFIXES, PROV, RDF, RDFS, SAMEAS, SKOS, XSD
from sameas.extraction.text.document import DocumentSource
from sameas.ontology.show import Outline
from sameas.pages.files import single_file

if TYPE_CHECKING:
    from pyoxigraph import Literal as RdfLiteral
    from pyoxigraph import NamedNode, Quad


DataFormat: TypeAlias = Literal["nquads", "turtle", "jsonl", "csv"]
ExportFormat: TypeAlias = DataFormat | Literal["html"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = (*get_args(DataFormat), "html")
EXPORT_MEDIA_TYPES: dict[ExportFormat, str] = {
    "nquads": "application/n-quads",
    "turtle": "text/turtle",
    "jsonl": "application/jsonl",
    "csv": "text/csv",
    "html": "text/html",
}
EXPORT_ENDINGS: dict[str, ExportFormat] = {
    ".nq": "nquads", ".nquads": "nquads", ".ttl": "turtle", ".turtle": "turtle", ".jsonl": "jsonl", ".csv": "csv",
    ".html": "html", ".htm": "html",
}  # fmt: skip
DCT = "http://purl.org/dc/terms/"
_PAGE = 200
_COLUMNS = ("subject", "subject_name", "predicate", "object", "object_name", "value", "datatype", "unit", "confidence",
            "documents", "evidence")  # fmt: skip


def write_collection(reader: Reader, target: IO[bytes], *, to: DataFormat, decisions: list[Decision]) -> None:
    """Write everything that is in a collection."""
    match to:
        case "jsonl":
            for line in _lines(reader, decisions):
                target.write(line + b"\n")
        case "csv":
            _write_csv(reader, target)
        case "nquads" | "turtle":
            import pyoxigraph

            quads = Quads(reader)
            found = quads.all(decisions, graphs=to == "nquads")
            if to == "nquads":
                pyoxigraph.serialize(found, target, format=pyoxigraph.RdfFormat.N_QUADS)
            else:
                triples = (quad.triple for quad in found)
                form = pyoxigraph.RdfFormat.TURTLE
                pyoxigraph.serialize(triples, target, format=form, prefixes={**PREFIXES, "dct": DCT})


def all_documents(reader: Reader) -> Iterator[DocumentInfo]:
    """Every document with its names."""
    after = ""
    while page := reader.documents(after=after, limit=_PAGE):
        yield from page
        after = page[-1].digest


def _lines(reader: Reader, decisions: list[Decision]) -> Iterator[bytes]:
    encode = msgspec.json.encode
    for document in all_documents(reader):
        yield encode({"document": document})
    for entity in reader.all_entities():
        yield encode({"entity": entity})
    for _, statement in reader.all_statements():
        yield encode({"statement": statement})
    for decision in decisions:
        yield encode({"decision": decision})


def _write_csv(reader: Reader, target: IO[bytes]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for _, one in reader.all_statements():
        value = one.value
        cells = [one.subject, one.subject_name, one.predicate, one.object, one.object_name]
        cells += ["", "", ""] if value is None else [value.value, value.datatype, value.unit]
        quotes = " | ".join(f"{place.document_name}:{place.start}-{place.end} {place.text}" for place in one.evidence)
        writer.writerow([*map(_harmless, cells), f"{one.confidence:g}", one.documents, _harmless(quotes)])
        target.write(text.getvalue().encode("utf-8", "replace"))
        text.seek(0)
        text.truncate()


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


class Quads:
    """The statements of a collection as RDF: its documents' graphs, and the resolved view as the default graph."""

    def __init__(self, reader: Reader) -> None:
        import pyoxigraph

        self._reader = reader
        self._node = pyoxigraph.NamedNode
        self._literal = pyoxigraph.Literal
        self._quad = pyoxigraph.Quad

    def all(self, decisions: list[Decision], *, graphs: bool = True) -> Iterator["Quad"]:
        for document in all_documents(self._reader):
            yield from self.document(document)
            if graphs:
                yield from self.graph(document.digest)
        for entity in self._reader.all_entities():
            yield from self.entity(entity)
            for statement in self._reader.statements_of(entity.id):
                yield from self.statement(statement)
        for id_, now in self._reader.all_merged():
            iri, target = (self._node(self._reader.entity_iri(one)) for one in (id_, now))
            yield self._say(iri, OWL + "sameAs", target)
        for decision in decisions:
            yield from self.decision(decision)

    def document(self, document: DocumentInfo) -> Iterator["Quad"]:
        """What is known of a document, with PROV-O and Dublin Core terms."""
        node = self._node(document.iri)
        yield self._say(node, RDF + "type", self._node(PROV + "Entity"))
        yield self._say(node, DCT + "identifier", self._text(document.digest))
        for name in document.names:
            yield self._say(node, DCT + "source", self._text(name.name))
            location = DocumentSource.of_name(name.path or name.name).location
            if location:
                yield self._say(node, PROV + "atLocation", self._node(location))
            elif name.path:
                yield self._say(node, SAMEAS + "path", self._text(name.path))
            for term, value in (("title", name.title), ("format", name.media_type)):
                if value:
                    yield self._say(node, DCT + term, self._text(value))
            if name.source_time:
                yield self._say(node, DCT + "modified", self._typed(name.source_time, XSD + "dateTime"))
            if name.size:
                yield self._say(node, DCT + "extent", self._integer(name.size))
            if name.read_at:
                yield self._say(node, PROV + "generatedAtTime", self._typed(name.read_at, XSD + "dateTime"))

    def graph(self, digest: str) -> Iterator["Quad"]:
        """What one document says, in its own graph."""
        graph = self._node(self._reader.document_iri(digest))
        for statement in self._reader.statements_in(digest, evidence=0):
            subject, predicate, value = self._terms(statement)
            yield self._quad(subject, predicate, value, graph)

    def entity(self, entity: EntityInfo) -> Iterator["Quad"]:
        node = self._node(entity.iri)
        for type_ in entity.types:
            yield self._say(node, RDF + "type", self._node(type_))
        yield self._say(node, RDFS + "label", self._text(entity.name))
        for alias in entity.aliases:
            yield self._say(node, SKOS + "altLabel", self._text(alias))
        for known in entity.same_as:
            yield self._say(node, OWL + "sameAs", self._node(known))

    def statement(self, one: Statement) -> Iterator["Quad"]:
        """A fact, and what supports it."""
        subject, predicate, value = self._terms(one)
        yield self._quad(subject, predicate, value)
        said = "" if one.value is None else f"{one.value.value}\x1f{one.value.datatype}\x1f{one.value.unit}"
        node = self._made("statement", one.subject, one.predicate, one.object, said)
        yield self._say(node, RDF + "type", self._node(RDF + "Statement"))
        yield self._say(node, RDF + "subject", subject)
        yield self._say(node, RDF + "predicate", predicate)
        yield self._say(node, RDF + "object", value)
        confidence = format(round(one.confidence, 4), "f").rstrip("0").rstrip(".")
        yield self._say(node, SAMEAS + "confidence", self._typed(confidence, XSD + "decimal"))
        if one.value is not None and one.value.unit:
            yield self._say(node, SAMEAS + "unit", self._text(one.value.unit))
        for digest in sorted({place.document for place in one.evidence}):
            source = self._node(self._reader.document_iri(digest))
            yield self._say(node, PROV + "wasDerivedFrom", source)
        for place in one.evidence:
            yield from self._target(node, place)

    def decision(self, one: Decision) -> Iterator["Quad"]:
        """What somebody decided, and who and why."""
        term = "sameAs" if one.verdict == "same" else "differentFrom"
        a, b = (self._node(self._reader.entity_iri(id_)) for id_ in (one.a, one.b))
        if one.a != one.b:
            yield self._say(a, OWL + term, b)
        node = self._node(self._reader.entity_iri(f"decision-{one.id}"))
        yield self._say(node, RDF + "type", self._node(PROV + "Activity"))
        yield self._say(node, PROV + "used", a)
        yield self._say(node, PROV + "used", b)
        yield self._say(node, SAMEAS + "verdict", self._node(OWL + term))
        yield self._say(node, PROV + "wasAssociatedWith", self._made("agent", one.by))
        yield self._say(node, PROV + "endedAtTime", self._typed(one.at, XSD + "dateTime"))
        if one.reason:
            yield self._say(node, RDFS + "comment", self._text(one.reason))

    def _target(self, owner: "NamedNode", place: CollectionEvidence) -> Iterator["Quad"]:
        target = self._made("target", place.document, str(place.start), str(place.end))
        yield self._say(owner, OA + "hasTarget", target)
        yield self._say(target, OA + "hasSource", self._node(self._reader.document_iri(place.document)))
        position = self._made("position", place.document, str(place.start), str(place.end))
        yield self._say(target, OA + "hasSelector", position)
        yield self._say(position, RDF + "type", self._node(OA + "TextPositionSelector"))
        yield self._say(position, OA + "start", self._integer(place.start))
        yield self._say(position, OA + "end", self._integer(place.end))
        yield self._say(position, OA + "exact", self._text(place.text))
        for term, number in (("page", place.page), ("paragraph", place.paragraph)):
            if number is not None:
                yield self._say(position, SAMEAS + term, self._integer(number))

    def _terms(self, one: Statement) -> tuple["NamedNode", "NamedNode", Any]:
        subject = self._node(self._reader.entity_iri(one.subject))
        if one.value is None:
            return subject, self._node(one.predicate), self._node(self._reader.entity_iri(one.object))
        return subject, self._node(one.predicate), self._typed(one.value.value, one.value.datatype)

    def _say(self, subject: "NamedNode", predicate: str, value: Any) -> "Quad":
        return self._quad(subject, self._node(predicate), value)

    def _made(self, kind: str, *parts: str) -> "NamedNode":
        joined = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        return self._node(self._reader.entity_iri(f"{kind}-{hashlib.sha256(joined).hexdigest()[:24]}"))

    def _integer(self, number: int) -> "RdfLiteral":
        return self._typed(str(number), XSD + "nonNegativeInteger")

    def _text(self, text: str) -> "RdfLiteral":
        # A lone surrogate cannot be written in UTF-8.
        return self._literal(text.encode("utf-8", "replace").decode("utf-8"))

    def _typed(self, text: str, datatype: str) -> "RdfLiteral":
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return self._literal(clean, datatype=self._node(datatype)) if datatype else self._literal(clean)


_STYLES = ("app/style.css", "app/studio.css", "app/console.css", "app/collections.css")
# Sentences of a relation that go along.
_EVIDENCE = 5


def write_page(reader: Reader, target: IO[bytes], *, info: CollectionInfo, outline: Outline) -> None:
    """Write the file."""
    data = _data(reader, info, outline)
    for piece in single_file(data, start="app/collection_file.js", styles=_STYLES, title=info.name):
        target.write(piece)


def _data(reader: Reader, info: CollectionInfo, outline: Outline) -> Iterator[bytes]:
    encode = msgspec.json.encode
    # What the reader of a mailed file may do in the service is nobody's business.
    yield b'{"collection":' + encode(msgspec.structs.replace(info, role=None))
    yield b',"outline":' + encode(outline)
    yield b',"documents":'
    yield from _list(all_documents(reader))
    yield b',"entities":'
    yield from _list(reader.all_entities())
    yield b',"statements":'
    yield from _list(one for _, one in reader.all_statements(evidence=_EVIDENCE))
    yield b"}"


def _list(items: Iterable[object]) -> Iterator[bytes]:
    before = b"["
    for one in items:
        yield before + msgspec.json.encode(one)
        before = b","
    yield b"[]" if before == b"[" else b"]"
