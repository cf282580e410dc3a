"""Turtle, written as text: the graph of a run has a dozen statements for each place, and the objects of a serialiser
would cost more than the statements.

Rule: the bytes are those of the serialiser of pyoxigraph. Whatever is not plainly a prefixed name or a text is left to
that serialiser, which alone escapes, and refuses an invalid IRI.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from sameas.extraction.outputs.context import Writable

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
