"""A collection as RDF: what is said of one thing, and of one document.

Rule: the default graph is the resolved view, and each document has a graph of its own, named by its IRI, with the facts
that it states. Everything has the IRI of its subject, so that one thing can be taken out and put in again.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sameas.collections.errors import DocumentNotFoundError, EntityNotFoundError
from sameas.collections.model import DocumentInfo, EntityInfo, Statement
from sameas.collections.views import Reader
from sameas.extraction.outputs.rdf import DCTERMS, OWL, PROV, RDF, RDFS, SAMEAS, SKOS, XSD
from sameas.extraction.text.document import DocumentSource

if TYPE_CHECKING:
    from pyoxigraph import Quad


class CollectionGraph:
    """Makes the quads of a collection."""

    def __init__(self, *, base: str) -> None:
        import pyoxigraph

        self._base = base
        self._node = pyoxigraph.NamedNode
        self._literal = pyoxigraph.Literal
        self._quad = pyoxigraph.Quad
        self._terms: dict[str, Any] = {}

    def subject(self, id_: str) -> Any:
        """The node of a thing, by its id."""
        return self._node(f"{self._base}{id_}")

    def document_node(self, digest: str) -> Any:
        return self._node(f"{self._base}document-{digest}")

    def entity(self, reader: Reader, id_: str) -> "list[Quad]":
        """All that begins with a thing; nothing where it is gone or is another by now."""
        try:
            number, now, name = reader.resolve_id(id_)
        except EntityNotFoundError:
            return []
        if now != id_:
            return [self.redirect(id_, now)]
        return list(self.thing(reader, reader.entity_info(number, now, name)))

    def thing(self, reader: Reader, info: EntityInfo) -> "Iterator[Quad]":
        """A thing with its facts, and what somebody said it is not."""
        yield from self.described(info)
        for other in reader.told_apart.get(info.id, ()):
            yield self._say(self.subject(info.id), OWL + "differentFrom", self.subject(other))
        yield from self.stated(reader.statements_of(info.id))

    def redirect(self, id_: str, now: str) -> "Quad":
        """A merged id leads to what it is by now."""
        return self._say(self.subject(id_), OWL + "sameAs", self.subject(now))

    def described(self, info: EntityInfo) -> "Iterator[Quad]":
        """Names and classes of a thing."""
        node = self.subject(info.id)
        for iri in info.types:
            yield self._say(node, RDF + "type", self._term(iri))
        yield self._say(node, RDFS + "label", self._text(info.name))
        for alias in info.aliases:
            yield self._say(node, SKOS + "altLabel", self._text(alias))
        for iri in info.same_as:
            yield self._say(node, OWL + "sameAs", self._node(iri))

    def stated(self, statements: "list[Statement]") -> "Iterator[Quad]":
        """The facts, each in the resolved view and in the graphs of its documents."""
        for one in statements:
            subject, predicate = self.subject(one.subject), self._term(one.predicate)
            value: Any
            if one.value is None:
                value = self.subject(one.object)
            else:
                value = self._text(one.value.value, datatype=one.value.datatype)
            yield self._quad(subject, predicate, value)
            for digest in sorted({evidence.document for evidence in one.evidence}):
                yield self._quad(subject, predicate, value, self.document_node(digest))

    def document(self, reader: Reader, digest: str) -> "list[Quad]":
        """What is known of a document; nothing where it is gone."""
        try:
            info = reader.document(digest)
        except DocumentNotFoundError:
            return []
        return list(self.about(info))

    def about(self, info: DocumentInfo) -> "Iterator[Quad]":
        node = self.document_node(info.digest)
        yield self._say(node, RDF + "type", self._term(PROV + "Entity"))
        yield self._say(node, DCTERMS + "identifier", self._literal(info.digest))
        for name in info.names:
            source = DocumentSource.of_name(name.path or name.name)
            yield self._say(node, RDFS + "label", self._text(name.name))
            if source.location:
                yield self._say(node, PROV + "atLocation", self._node(source.location))
            elif name.path:
                yield self._say(node, SAMEAS + "path", self._text(name.path))
            if name.title:
                yield self._say(node, DCTERMS + "title", self._text(name.title))
            if name.media_type:
                yield self._say(node, DCTERMS + "format", self._text(name.media_type))
            if name.size:
                yield self._say(node, DCTERMS + "extent", self._text(str(name.size), datatype=XSD + "integer"))
            for term, moment in ((DCTERMS + "modified", name.source_time), (PROV + "generatedAtTime", name.read_at)):
                if moment:
                    yield self._say(node, term, self._text(moment, datatype=XSD + "dateTime"))

    def _say(self, subject: Any, predicate: str, value: Any) -> "Quad":
        return self._quad(subject, self._term(predicate), value)

    def _term(self, iri: str) -> Any:
        term = self._terms.get(iri)
        if term is None:
            term = self._terms[iri] = self._node(iri)
        return term

    def _text(self, text: str, *, datatype: str = "") -> Any:
        # A lone surrogate cannot be written in UTF-8.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return self._literal(clean, datatype=self._term(datatype)) if datatype else self._literal(clean)
