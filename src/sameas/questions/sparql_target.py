"""A collection published to any server that speaks SPARQL 1.1: updates, and the graph store protocol.

Rule: each document is a named graph that is put as a whole; the resolved view is one graph, in which a thing is
replaced by an update; a small graph says which revision is there, and is written last.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from sameas.collections.collection import Collection
from sameas.collections.views import Reader
from sameas.extraction.outputs import OutputContext
from sameas.extraction.outputs.rdf import OA, RDF, SAMEAS, XSD
from sameas.questions.errors import PublishError
from sameas.questions.graph import CollectionGraph
from sameas.questions.publication import Pushed, facts_of, outgoing

if TYPE_CHECKING:
    import httpx
    from pyoxigraph import Quad

_NTRIPLES = "application/n-triples"
_THINGS_AT_ONCE = 200
_TRIPLES_AT_ONCE = 20_000
_TIMEOUT = 120.0
# The last part of a graph store's address, and where the same server takes updates.
_UPDATES_BESIDE = {"store": "update", "data": "update", "service": "../statements", "graph-store": "update"}


class SparqlTarget(msgspec.Struct, frozen=True):
    """Where a server takes graphs, and where it takes updates."""

    graph_store: str
    update: str

    @classmethod
    def of(cls, url: str, *, update: str = "") -> SparqlTarget:
        """By one address: of a graph store, or of a server that has `/store` and `/update`."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        last = path.rpartition("/")[2]
        beside = _UPDATES_BESIDE.get(last)
        if beside is None:
            path, beside = f"{path}/store", "update"
        folder = path.rpartition("/")[0]
        for _ in range(beside.count("../")):
            folder = folder.rpartition("/")[0]
        updates = f"{folder}/{beside.rpartition('../')[2]}"
        made = [urlunsplit((parts.scheme, parts.netloc, each, parts.query, "")) for each in (path, updates)]
        return cls(made[0], update or made[1])


def push_sparql(collection: Collection, target: SparqlTarget) -> Pushed:
    """Bring a server up to date; blocking."""
    try:
        import httpx
    except ImportError as error:
        raise PublishError("a push needs httpx. Install sameas[client]") from error
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=False) as client:
        return _Push(collection, target, client).go()


class _Push:
    def __init__(self, collection: Collection, target: SparqlTarget, client: httpx.Client) -> None:
        self._collection = collection
        self._target = target
        self._client = client
        self._graph = CollectionGraph(base=collection.base)
        self._evidence = _Evidence(base=collection.base)
        self._view = f"{collection.base}collection-{collection.id}"
        self._state = f"{self._view}-state"

    def go(self) -> Pushed:
        before = self._revision()
        work = outgoing(self._collection, before=before)
        with self._collection.reading() as reader:
            things = self._send_view(reader) if work.is_whole else self._replace(reader, work.entities)
            documents, removed = 0, 0
            for digest in work.documents:
                is_there = self._put_document(reader, digest)
                documents, removed = documents + is_there, removed + (not is_there)
        if work.revision != before:
            self._say_revision(work.revision)
        return Pushed(before=before, revision=work.revision, entities=things, documents=documents, removed=removed)

    def _revision(self) -> int:
        reply = self._send("GET", self._state, accept=_NTRIPLES, missing_ok=True)
        if reply is None:
            return -1
        import pyoxigraph

        for quad in pyoxigraph.parse(reply.content, format=pyoxigraph.RdfFormat.N_TRIPLES):
            if quad.predicate.value == f"{SAMEAS}revision":
                return int(quad.object.value)
        return -1

    def _say_revision(self, revision: int) -> None:
        self._send(
            "PUT", self._state, data=f'<{self._view}> <{SAMEAS}revision> "{revision}"^^<{XSD}integer> .\n'.encode()
        )

    def _send_view(self, reader: Reader) -> int:
        things = 0

        def quads() -> Iterator[Quad]:
            nonlocal things
            for info in reader.all_entities():
                things += 1
                yield from _resolved(self._graph.thing(reader, info))
            for id_, now in reader.all_merged():
                yield self._graph.redirect(id_, now)

        source = quads()
        method = "PUT"
        while batch := list(islice(source, _TRIPLES_AT_ONCE)):
            self._send(method, self._view, data=_ntriples(batch))
            method = "POST"
        if method == "PUT":
            self._send("PUT", self._view, data=b"")
        return things

    def _replace(self, reader: Reader, ids: tuple[str, ...]) -> int:
        for at in range(0, len(ids), _THINGS_AT_ONCE):
            some = ids[at : at + _THINGS_AT_ONCE]
            nodes = " ".join(str(self._graph.subject(id_)) for id_ in some)
            quads = [quad for id_ in some for quad in _resolved(self._graph.entity(reader, id_))]
            facts = _ntriples(quads).decode()
            view = f"<{self._view}>"
            old = f"GRAPH {view} {{ ?s ?p ?o }}"
            update = f"DELETE {{ {old} }} WHERE {{ VALUES ?s {{ {nodes} }} {old} }}"
            if facts:
                update += f" ;\nINSERT DATA {{ GRAPH {view} {{\n{facts}}} }}"
            self._update(update)
        return len(ids)

    def _put_document(self, reader: Reader, digest: str) -> bool:
        iri = self._graph.document_node(digest).value
        facts = facts_of(reader, digest)
        if facts is None:
            self._send("DELETE", iri, missing_ok=True)
            return False
        quads = [*self._graph.document(reader, digest)]
        for fact in facts:
            quads.extend(_resolved(self._graph.stated([fact])))
            quads.extend(self._evidence.of(fact, digest, self._graph))
        self._send("PUT", iri, data=_ntriples(quads))
        return True

    def _update(self, text: str) -> None:
        headers = {"Content-Type": "application/sparql-update; charset=utf-8"}
        self._checked(self._do("POST", self._target.update, content=text.encode(), headers=headers))

    def _send(
        self, method: str, graph: str, *, data: bytes | None = None, accept: str = "*/*", missing_ok: bool = False
    ) -> httpx.Response | None:
        headers = {"Accept": accept} | ({} if data is None else {"Content-Type": _NTRIPLES})
        reply = self._do(method, self._target.graph_store, params={"graph": graph}, content=data, headers=headers)
        if reply.status_code == 404 and missing_ok:
            return None
        return self._checked(reply)

    def _do(self, method: str, url: str, **parts: Any) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, url, **parts)
        except httpx.HTTPError as error:
            raise PublishError(f"{_shown(url)} did not answer: {error or type(error).__name__}") from error

    @staticmethod
    def _checked(reply: httpx.Response) -> httpx.Response:
        if not reply.is_success:
            said = reply.text[:300].strip()
            raise PublishError(f"{_shown(str(reply.request.url))} answered {reply.status_code}: {said}")
        return reply


class _Evidence:
    """Which characters of a document support a fact, as Web Annotation has it."""

    def __init__(self, *, base: str) -> None:
        self._context = OutputContext(key="", base=base)

    def of(self, fact: Any, digest: str, graph: CollectionGraph) -> Iterator[Quad]:
        import pyoxigraph as rdf

        value = ("", "", "") if fact.value is None else (fact.value.value, fact.value.datatype, fact.value.unit)
        statement = rdf.NamedNode(self._context.iri("statement", fact.subject, fact.predicate, fact.object, *value))
        document = graph.document_node(digest)
        (said,) = _resolved(graph.stated([fact]))
        for term, node in (("subject", said.subject), ("predicate", said.predicate), ("object", said.object)):
            yield rdf.Quad(statement, rdf.NamedNode(RDF + term), node)
        yield rdf.Quad(statement, rdf.NamedNode(RDF + "type"), rdf.NamedNode(RDF + "Statement"))
        for one in fact.evidence:
            if one.document != digest:
                continue
            target = rdf.NamedNode(self._context.iri("target", document.value, str(one.start), str(one.end)))
            yield rdf.Quad(statement, rdf.NamedNode(OA + "hasTarget"), target)
            yield rdf.Quad(target, rdf.NamedNode(OA + "hasSource"), document)
            yield rdf.Quad(
                target, rdf.NamedNode(OA + "exact"), rdf.Literal(one.text.encode("utf-8", "replace").decode())
            )
            numbers = {OA + "start": one.start, OA + "end": one.end}
            numbers |= {SAMEAS + "page": one.page, SAMEAS + "paragraph": one.paragraph}
            for term, number in numbers.items():
                if number is not None:
                    yield rdf.Quad(target, rdf.NamedNode(term), rdf.Literal(number))


def _resolved(quads: Iterable[Quad]) -> Iterator[Quad]:
    """Those of the default graph."""
    for quad in quads:
        if type(quad.graph_name).__name__ == "DefaultGraph":
            yield quad


def _ntriples(quads: Iterable[Quad]) -> bytes:
    import pyoxigraph

    out = io.BytesIO()
    triples = (quad.triple for quad in quads)
    pyoxigraph.serialize(triples, out, format=pyoxigraph.RdfFormat.N_TRIPLES)
    return out.getvalue()


def _shown(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
