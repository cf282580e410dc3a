"""The graph as RDF: Turtle, JSON-LD and N-Quads, with PROV-O provenance and Web Annotation selectors.

Rule: there are no blank nodes, and statements come in one order, so that equal graphs give equal bytes. Everything is
escaped by the serialiser; an IRI that is not one is an error, never written. A fact is a plain triple, and a
`rdf:Statement` says which characters of which document support it. What a caller knows of the document comes last, so
that it can be added to what a run has written.

Turtle is written as text: the graph of a run has a dozen statements for each place, and the objects of a serialiser
would cost more than the statements. Its bytes are those of the serialiser of pyoxigraph; whatever is not plainly a
prefixed name or a text is left to that serialiser.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from sameas.extraction.graph.model import Entity, Evidence, Graph, Relation
from sameas.extraction.graph.scratch import Seen
from sameas.extraction.outputs.context import OutputContext, Writable, about_document, write_about

if TYPE_CHECKING:
    from pyoxigraph import Literal

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_TYPE = _RDF + "type"
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_NUMBER = "http://www.w3.org/2001/XMLSchema#nonNegativeInteger"
_OA = "http://www.w3.org/ns/oa#"
_OA_WORDS = (
    "Annotation", "hasBody", "hasTarget", "SpecificResource", "hasSource", "hasSelector", "TextPositionSelector",
    "start", "end", "TextQuoteSelector", "exact",
)  # fmt: skip
_RDF_WORDS = ("Statement", "subject", "predicate", "object")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_PLAIN_TEXT = re.compile(r"[^\x00-\x1f\"\\\x7f-\uffff]*\Z")
_PIECES_AT_ONCE = 4096
_HEAD = "<urn:x> <urn:x> "

Line = tuple[str, str, str]
"""Subject, predicate and object as they are written; without a predicate the object is whole statements, of which the
last is of the subject and open.
"""

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
PROV = "http://www.w3.org/ns/prov#"
OA = "http://www.w3.org/ns/oa#"
DCTERMS = "http://purl.org/dc/terms/"
SAMEAS = "https://sameas.dev/ns#"
PREFIXES = {
    "rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD, "skos": SKOS, "prov": PROV, "oa": OA, "dcterms": DCTERMS,
    "sameas": SAMEAS,
}  # fmt: skip


class TurtleTerms:
    """Terms in Turtle, with these prefixes."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = dict(prefixes)
        self._names = {iri: name for name, iri in prefixes.items()}
        self._whole = lru_cache(maxsize=4096)(self._serialized_node)
        self._typed = lru_cache(maxsize=4096)(self._serialized_literal)
        self._number = self.node(_NUMBER)

    @property
    def head(self) -> bytes:
        return "".join(sorted(f"@prefix {name}: <{iri}> .\n" for name, iri in self._prefixes.items())).encode()

    def node(self, iri: str) -> str:
        cut = max(iri.rfind("#"), iri.rfind("/"), iri.rfind(":")) + 1
        name, last = self._names.get(iri[:cut]), iri[cut:]
        if name is None or not _PLAIN_NAME.match(last):
            return self._whole(iri)
        return f"{name}:{last}"

    def literal(self, text: str, datatype: str = "") -> str:
        if datatype == _NUMBER and text.isascii() and text.isdigit():
            return f'"{text}"^^{self._number}'
        if datatype not in ("", _STRING):
            return self._typed(text, datatype)
        return f'"{text}"' if _PLAIN_TEXT.match(text) else self._serialized_literal(text, datatype)

    def blocks(self, base: str, document: str) -> "TurtleBlocks":
        """Writes what there is most of, about a document."""
        return TurtleBlocks(self, base, document)

    @staticmethod
    def statement(subject: str, predicate: str, value: str) -> Line:
        return subject, predicate, value

    def _serialized_node(self, iri: str) -> str:
        import pyoxigraph

        return self._serialized(pyoxigraph.NamedNode(iri))

    def _serialized_literal(self, text: str, datatype: str) -> str:
        import pyoxigraph

        if not datatype:
            return str(pyoxigraph.Literal(text))
        return self._serialized(pyoxigraph.Literal(text, datatype=pyoxigraph.NamedNode(datatype)))

    def _serialized(self, term: object) -> str:
        import pyoxigraph

        any_node = pyoxigraph.NamedNode("urn:x")
        data = pyoxigraph.serialize(
            [pyoxigraph.Triple(any_node, any_node, term)],  # type: ignore[arg-type]
            format=pyoxigraph.RdfFormat.TURTLE,
            prefixes=self._prefixes,
        )
        assert data is not None
        # A line break inside of a term is escaped: the statement is the last line.
        return data.decode().removesuffix(" .\n").rpartition("\n")[2].removeprefix(_HEAD)


class TurtleBlocks:
    """What is said of a mention, a relation and a place, each as one line: there are more of these than of everything
    else together, and most of it is the same in all of them.
    """

    def __init__(self, terms: TurtleTerms, base: str, document: str) -> None:
        # A made name needs no look: it is a kind and a digest.
        self._before, _, self._after = terms.node(f"{base}x").rpartition("x")
        words = {name: terms.node(_OA + name) for name in _OA_WORDS}
        words |= {name: terms.node(_RDF + name) for name in _RDF_WORDS}
        self._annotation = f"a {words['Annotation']} ;\n\t{words['hasBody']}"
        self._target = f" ;\n\t{words['hasTarget']}"
        self._source = f"a {words['SpecificResource']} ;\n\t{words['hasSource']} {document} ;\n\t{words['hasSelector']}"
        self._start = f"a {words['TextPositionSelector']} ;\n\t{words['start']}"
        self._end = f"^^{terms.node(_NUMBER)} ;\n\t{words['end']}"
        self._number = f"^^{terms.node(_NUMBER)}"
        self._quote = f"a {words['TextQuoteSelector']} ;\n\t{words['exact']}"
        self._statement = f"a {words['Statement']} ;\n\t{words['subject']}"
        self._predicate = f" ;\n\t{words['predicate']}"
        self._object = f" ;\n\t{words['object']}"

    def made(self, kind: str, named: str) -> str:
        """The node of something that has no name of its own."""
        return f"{self._before}{kind}-{named}{self._after}"

    def mention(self, note: str, node: str, target: str) -> Line:
        return note, "", f"{note} {self._annotation} {node}{self._target} {target}"

    def relation(self, statement: str, subject: str, predicate: str, value: str) -> Line:
        said = f"{subject}{self._predicate} {predicate}{self._object} {value}"
        return statement, "", f"{statement} {self._statement} {said}"

    def place(self, target: str, named: str, place: tuple[str, str], quote: str) -> Line:
        position, quoted = self.made("position", named), self.made("quote", named)
        start, end = place
        text = (
            f"{target} {self._source} {position} , {quoted} .\n"
            f'{position} {self._start} "{start}"{self._end} "{end}"{self._number} .\n'
            f"{quoted} {self._quote} {quote}"
        )
        return quoted, "", text


def write_lines(lines: Iterable[Line], target: Writable, *, terms: TurtleTerms) -> None:
    """Write the prefixes and the statements; consecutive ones with the same subject, or predicate, are joined."""
    target.write(terms.head)
    type_ = terms.node(_TYPE)
    pieces: list[str] = []
    subject = predicate = ""
    for about, said, value in lines:
        if not said:
            pieces.append(f" .\n{value}" if subject else value)
        elif about != subject:
            pieces.append(f"{' .' + chr(10) if subject else ''}{about} {'a' if said == type_ else said} {value}")
        elif said != predicate:
            pieces.append(f" ;\n\t{'a' if said == type_ else said} {value}")
        else:
            pieces.append(f" , {value}")
        subject, predicate = about, said
        if len(pieces) >= _PIECES_AT_ONCE:
            target.write("".join(pieces).encode())
            pieces.clear()
    pieces.append(" .\n" if subject else "")
    target.write("".join(pieces).encode())


def write_turtle(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Facts and provenance in one graph."""
    prefixes = dict(PREFIXES)
    if not any(iri.startswith(context.base) or context.base.startswith(iri) for iri in PREFIXES.values()):
        prefixes[""] = context.base
    terms = TurtleTerms(prefixes)
    write_lines(_Statements(context, terms).all(graph), target, terms=terms)
    write_about(graph, target, context=context)


def write_jsonld(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Facts in a named graph, provenance beside it."""
    import pyoxigraph

    statements = _Statements(context, _QuadTerms(), graph=context.graph)
    quads = chain(statements.all(graph), statements.about(graph))
    pyoxigraph.serialize(quads, cast("IO[bytes]", target), format=pyoxigraph.RdfFormat.JSON_LD)


def write_nquads(graph: Graph, target: Writable, *, context: OutputContext) -> None:
    """Facts in a named graph, provenance beside it."""
    import pyoxigraph

    statements = _Statements(context, _QuadTerms(), graph=context.graph)
    quads = chain(statements.all(graph), statements.about(graph))
    pyoxigraph.serialize(quads, cast("IO[bytes]", target), format=pyoxigraph.RdfFormat.N_QUADS)


class _Terms(Protocol):
    """Makes terms and statements."""

    def node(self, iri: str, /) -> Any: ...

    def literal(self, text: str, datatype: str = "") -> Any: ...

    @property
    def statement(self) -> Callable[..., Any]:
        """Makes a statement of subject, predicate and value, in a named graph if that follows."""
        ...


class _QuadTerms:
    """The terms of pyoxigraph."""

    def __init__(self) -> None:
        import pyoxigraph

        self.node = pyoxigraph.NamedNode
        self.statement = pyoxigraph.Quad
        self._literal = pyoxigraph.Literal

    def literal(self, text: str, datatype: str = "") -> "Literal":
        return self._literal(text, datatype=self.node(datatype)) if datatype else self._literal(text)


class _Statements:
    """The statements of a graph, always in the same order. `graph` is the named graph of the facts, if provenance is
    kept apart from them.
    """

    def __init__(self, context: OutputContext, terms: _Terms, *, graph: str = "") -> None:
        self._node = terms.node
        self._literal = terms.literal
        self._statement = terms.statement
        self._context = context
        self._facts = (terms.node(graph),) if graph else ()
        self._named = bool(graph)
        self._terms = {
            name: terms.node(iri)
            for name, iri in {
                "type": RDF + "type",
                "label": RDFS + "label",
                "altLabel": SKOS + "altLabel",
                "sameAs": OWL + "sameAs",
                "Statement": RDF + "Statement",
                "subject": RDF + "subject",
                "predicate": RDF + "predicate",
                "object": RDF + "object",
                "generated": PROV + "wasGeneratedBy",
                "Activity": PROV + "Activity",
                "Entity": PROV + "Entity",
                "SoftwareAgent": PROV + "SoftwareAgent",
                "used": PROV + "used",
                "associated": PROV + "wasAssociatedWith",
                "Annotation": OA + "Annotation",
                "body": OA + "hasBody",
                "target": OA + "hasTarget",
                "SpecificResource": OA + "SpecificResource",
                "source": OA + "hasSource",
                "selector": OA + "hasSelector",
                "Position": OA + "TextPositionSelector",
                "start": OA + "start",
                "end": OA + "end",
                "exact": OA + "exact",
                "Quote": OA + "TextQuoteSelector",
                "unit": SAMEAS + "unit",
                "status": SAMEAS + "status",
                "confidence": SAMEAS + "confidence",
                "version": SAMEAS + "version",
                "identifier": DCTERMS + "identifier",
            }.items()
        }
        # An ontology's terms, which nearly every statement has.
        self._term = lru_cache(maxsize=1024)(terms.node)
        self._document = context.document
        self._document_node = terms.node(context.document)
        self._run_node = terms.node(context.run)
        self._described = Seen()
        self._blocks = terms.blocks(context.base, self._document_node) if isinstance(terms, TurtleTerms) else None

    def all(self, graph: Graph) -> Iterator[Any]:
        """All statements of a run."""
        yield from self._run()
        for entity in graph.entities:
            yield from self._entity(entity)
        for relation in graph.relations:
            yield from self._relation(relation)

    def about(self, graph: Graph) -> Iterator[Any]:
        """The statements of what the caller knows of the document."""
        for one in about_document(graph, self._context):
            prefix, _, name = one.predicate.partition(":")
            predicate = self._term(PREFIXES[prefix] + name)
            if one.kind == "iri":
                value = self._node(one.value)
            else:
                value = self._text(one.value, datatype="" if one.kind == "text" else XSD + one.kind)
            yield self._statement(self._node(one.subject), predicate, value)

    def _say(self, subject: Any, term: str, value: Any) -> Any:
        return self._statement(subject, self._terms[term], value)

    def _fact(self, subject: Any, predicate: Any, value: Any) -> Any:
        return self._statement(subject, predicate, value, *self._facts)

    def _run(self) -> Iterator[Any]:
        context, terms = self._context, self._terms
        run, agent = self._run_node, self._node(context.agent)
        yield self._say(run, "type", terms["Activity"])
        yield self._say(run, "used", self._document_node)
        if context.ontology:
            yield self._say(run, "used", self._node(context.ontology))
        yield self._say(run, "associated", agent)
        yield self._say(agent, "type", terms["SoftwareAgent"])
        if context.extractor:
            yield self._say(agent, "label", self._literal(context.extractor))
        if context.extractor_version:
            yield self._say(agent, "version", self._literal(context.extractor_version))
        if self._named:
            yield self._say(self._node(context.graph), "type", terms["Entity"])
            yield self._say(self._node(context.graph), "generated", run)
        yield self._say(self._document_node, "type", terms["Entity"])
        if context.text_hash:
            yield self._say(self._document_node, "identifier", self._literal(f"sha256-{context.text_hash}"))

    def _entity(self, entity: Entity) -> Iterator[Any]:
        terms = self._terms
        node = self._node(self._context.entity(entity.id))
        for type_iri in entity.types:
            yield self._fact(node, terms["type"], self._term(type_iri))
        yield self._fact(node, terms["label"], self._text(entity.name))
        for alias in entity.aliases:
            yield self._fact(node, terms["altLabel"], self._text(alias))
        if entity.individual:
            yield self._fact(node, terms["sameAs"], self._node(entity.individual))
        for mention in entity.mentions:
            named = self._context.digest(self._document, entity.id, str(mention.start), str(mention.end))
            note = self._made("mention", named)
            if self._blocks is not None:
                place = self._place_of(mention)
                yield self._blocks.mention(note, node, self._made("target", place))
                yield from self._place(mention, place)
                continue
            yield self._say(note, "type", terms["Annotation"])
            yield self._say(note, "body", node)
            yield from self._target(note, mention)

    def _relation(self, relation: Relation) -> Iterator[Any]:
        terms = self._terms
        subject = self._node(self._context.entity(relation.subject))
        predicate = self._term(relation.predicate)
        if relation.value is None:
            value = self._node(self._context.entity(relation.object))
        else:
            value = self._text(relation.value.value, datatype=relation.value.datatype)
        yield self._fact(subject, predicate, value)
        statement = self._made("statement", self._context.digest(*relation.triple))
        if self._blocks is not None:
            yield self._blocks.relation(statement, subject, predicate, value)
        else:
            yield self._say(statement, "type", terms["Statement"])
            yield self._say(statement, "subject", subject)
            yield self._say(statement, "predicate", predicate)
            yield self._say(statement, "object", value)
        if relation.value is not None and relation.value.unit:
            yield self._say(statement, "unit", self._literal(relation.value.unit))
        yield self._say(statement, "status", self._literal(relation.status))
        confidence = format(round(relation.confidence, 4), "f").rstrip("0").rstrip(".")
        yield self._say(statement, "confidence", self._literal(confidence, XSD + "decimal"))
        yield self._say(statement, "generated", self._run_node)
        for evidence in relation.evidence:
            yield from self._target(statement, evidence)

    def _target(self, owner: Any, evidence: Evidence) -> Iterator[Any]:
        named = self._place_of(evidence)
        yield self._say(owner, "target", self._made("target", named))
        yield from self._place(evidence, named)

    def _place(self, evidence: Evidence, named: str) -> Iterator[Any]:
        # Several things can rest on the same characters: the place is described once.
        if not self._described.is_new(evidence.start, evidence.end):
            return
        terms, target = self._terms, self._made("target", named)
        start, end = str(evidence.start), str(evidence.end)
        if self._blocks is not None:
            yield self._blocks.place(target, named, (start, end), self._text(evidence.text))
            return
        yield self._say(target, "type", terms["SpecificResource"])
        yield self._say(target, "source", self._document_node)
        position, quote = self._made("position", named), self._made("quote", named)
        yield self._say(target, "selector", position)
        yield self._say(target, "selector", quote)
        yield self._say(position, "type", terms["Position"])
        yield self._say(position, "start", self._literal(start, XSD + "nonNegativeInteger"))
        yield self._say(position, "end", self._literal(end, XSD + "nonNegativeInteger"))
        yield self._say(quote, "type", terms["Quote"])
        yield self._say(quote, "exact", self._text(evidence.text))

    def _place_of(self, evidence: Evidence) -> str:
        """What the names of a place end with."""
        return self._context.digest(self._document, str(evidence.start), str(evidence.end))

    def _made(self, kind: str, named: str) -> Any:
        if self._blocks is not None:
            return self._blocks.made(kind, named)
        return self._node(f"{self._context.base}{kind}-{named}")

    def _text(self, text: str, *, datatype: str = "") -> Any:
        # A lone surrogate cannot be written in UTF-8.
        clean = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
        return self._literal(clean, datatype)
