"""Files and bytes to statements, through pyoxigraph, behind gates for size, depth, time and everything
remote.

Only statements whose predicate extraction uses are kept, so that memory follows the ontology and not the
file. Nothing is ever fetched. An error says file, line, column and what to do. Named graphs are read as
one. Relative IRIs resolve against one fixed base, never against the file's place: moving a file must not
change its version.
"""

import contextlib
import io
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from sameas.ontology.errors import (
    OntologyError,
    OntologyExtraError,
    OntologyNotFoundError,
    OntologyRefusedError,
    OntologySyntaxError,
    OntologyTooLargeError,
)
from sameas.ontology.gates import guard_jsonld, guard_xml, position
from sameas.ontology.limits import DEFAULT_LIMITS, Limits
from sameas.ontology.notation import Notation, detect_notation
from sameas.ontology.vocabulary import USED

if TYPE_CHECKING:
    import pyoxigraph

BASE = "https://sameas.dev/local/"
BLOCK = 64 * 1024
# pyoxigraph 0.5 overflows the stack on triples nested in triples very deep; no ontology nests any.
TRIPLE_NESTING = 64
# Strings, IRIs, comments and escapes are stepped over, so that only real marks count.
_TRIPLE_MARK = re.compile(
    rb'''"""(?:[^"\\]|\\.|"(?!""))*"""|"(?:[^"\\\n]|\\.)*"|<[^<>"{}|^`\s]*>|#[^\n]*|\\.|'''
    rb"""'''(?:[^'\\]|\\.|'(?!''))*'''|'(?:[^'\\\n]|\\.)*'|<<|>>""",
    re.DOTALL,
)


class Value(NamedTuple):
    """A literal: its text, its datatype, its language in lower case."""

    text: str
    datatype: str
    lang: str


Node = str | Value
"""An IRI, a blank node (its name after `_:`) or a literal."""
Statement = tuple[str, str, Node]


def read_bounded(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The file's bytes; a file over the limit is refused after reading the limit at most."""
    try:
        with path.open("rb") as source:
            data = source.read(limits.file_bytes + 1) if path.stat().st_size <= limits.file_bytes else None
    except FileNotFoundError as error:
        raise OntologyNotFoundError(what="there is no such file", file=str(path), todo="Check the path") from error
    except OSError as error:
        raise OntologyNotFoundError(
            what=f"the file cannot be read ({error.strerror})",
            file=str(path),
            todo="Check its kind and permissions",
        ) from error
    if data is None or len(data) > limits.file_bytes:
        raise OntologyTooLargeError(
            what=f"the file has more than {limits.file_bytes} bytes",
            file=str(path),
            todo="Cut the ontology down to the part you need, or raise the limit file_bytes",
        )
    return data


def parse_statements(  # all but the first are keywords
    data: bytes,
    *,
    notation: Notation | None = None,
    extension: str = "",
    file: str | None = None,
    base: str = BASE,
    limits: Limits = DEFAULT_LIMITS,
    keep: frozenset[str] | None = USED,
) -> list[Statement]:
    """The statements whose predicate is in `keep`, or all of them if it is None."""
    if len(data) > limits.file_bytes:
        raise OntologyTooLargeError(what=f"more than {limits.file_bytes} bytes", file=file)
    notation = notation or detect_notation(data, extension=extension, file=file)
    if notation == "rdfxml":
        data = guard_xml(data, limits=limits, file=file)
    elif notation == "jsonld":
        data = guard_jsonld(data, limits=limits, file=file)
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
        _guard_triples(data, file)
    _require_oxigraph()
    return list(_statements(_quads(data, notation, file, base, limits), keep))


def _guard_triples(data: bytes, file: str | None) -> None:
    if data.count(b"<<") <= TRIPLE_NESTING:
        return
    depth = 0
    for mark in _TRIPLE_MARK.finditer(data):
        if mark.group() not in (b"<<", b">>"):
            continue
        depth = depth + 1 if mark.group() == b"<<" else max(0, depth - 1)
        if depth > TRIPLE_NESTING:
            line, column = position(data, mark.start())
            raise OntologyTooLargeError(
                what=f"triples are nested more than {TRIPLE_NESTING} deep",
                file=file,
                line=line,
                column=column,
                todo="Remove the nested triples",
            )


class _Reader(io.BytesIO):
    """Hands the data out in blocks, single bytes from `fine_from` on, and stops when time is up."""

    def __init__(self, data: bytes, *, deadline: float, fine_from: int | None = None) -> None:
        super().__init__()
        self._data = data
        self._deadline = deadline
        self._fine_from = len(data) if fine_from is None else fine_from
        self.position = 0

    def read(self, size: int | None = -1, /) -> bytes:
        if time.monotonic() > self._deadline:
            raise _OutOfTimeError
        step = min(BLOCK, self._fine_from - self.position) if self.position < self._fine_from else 1
        if size is not None and 0 < size < step:
            step = size
        block = self._data[self.position : self.position + step]
        self.position += len(block)
        return block


class _OutOfTimeError(Exception):
    pass


def _out_of_time() -> NoReturn:
    raise _OutOfTimeError


def _require_oxigraph() -> None:
    try:
        import pyoxigraph  # noqa: F401
    except ImportError as error:
        raise OntologyExtraError(
            what="pyoxigraph is not installed", todo="Install it with: pip install 'sameas[ontology]'"
        ) from error


def _quads(
    data: bytes, notation: Notation, file: str | None, base: str, limits: Limits
) -> Iterator["pyoxigraph.Quad | pyoxigraph.Triple"]:
    from pyoxigraph import RdfFormat, parse

    known = {
        "turtle": RdfFormat.TURTLE,
        "rdfxml": RdfFormat.RDF_XML,
        "jsonld": RdfFormat.JSON_LD,
        "ntriples": RdfFormat.N_TRIPLES,
        "nquads": RdfFormat.N_QUADS,
        "trig": RdfFormat.TRIG,
    }
    if notation not in known:
        raise OntologyError(what=f"{notation} is no RDF notation", file=file, todo="Use load_ontology for it")
    rdf_format = known[notation]
    # N-Triples and N-Quads have no relative IRIs, and the parser refuses a base for them.
    base_iri = None if notation in ("ntriples", "nquads") else base
    deadline = time.monotonic() + limits.parse_seconds
    reader = _Reader(data, deadline=deadline)
    count = 0
    try:
        for quad in parse(input=reader, format=rdf_format, base_iri=base_iri):
            yield quad
            count += 1
            if count > limits.statements:
                raise OntologyTooLargeError(
                    what=f"more than {limits.statements} statements",
                    file=file,
                    todo="Cut the ontology down to the part you need, or raise the limit statements",
                )
            if count % 1024 == 0 and time.monotonic() > deadline:
                _out_of_time()
    except SyntaxError as error:
        line, column = error.lineno, error.offset
        if line is None or column is None:

            def parse_again(again: _Reader) -> None:
                for _ in parse(input=again, format=rdf_format, base_iri=base_iri):
                    pass

            line, column = _find(data, parse_again, reader.position, limits)
        raise _translate(error, file, line, column) from error
    except _OutOfTimeError as error:
        raise OntologyTooLargeError(
            what=f"parsing took more than {limits.parse_seconds:g} seconds",
            file=file,
            todo="Flatten or split the file, or raise the limit parse_seconds",
        ) from error


def _find(data: bytes, parse_again: "Callable[[_Reader], None]", reached: int, limits: Limits) -> tuple[int, int]:
    """Where a parser that names no place stopped: parse again and hand out the last block byte by byte."""
    reader = _Reader(data, deadline=time.monotonic() + limits.parse_seconds, fine_from=max(0, reached - 2 * BLOCK))
    with contextlib.suppress(SyntaxError, _OutOfTimeError):
        parse_again(reader)
    return position(data, max(0, reader.position - 1))


def _translate(error: SyntaxError, file: str | None, line: int, column: int) -> OntologyError:
    what = re.sub(r"^Parser error at line \d+ column \d+: ", "", str(error.args[0]))
    what = re.sub(r"^error while parsing ", "", what)
    if "LoadDocumentCallback" in what:
        return OntologyRefusedError(
            "a context is not in the file", file=file, line=line, column=column, todo="Copy it into the file"
        )
    return OntologySyntaxError(what, file=file, line=line, column=column, todo="Correct the file there")


def _statements(
    quads: "Iterable[pyoxigraph.Quad | pyoxigraph.Triple]", keep: frozenset[str] | None
) -> Iterator[Statement]:
    from pyoxigraph import BlankNode, Literal, NamedNode

    for quad in quads:
        predicate = quad.predicate.value
        if keep is not None and predicate not in keep:
            continue
        subject, node = quad.subject, quad.object
        if isinstance(subject, NamedNode):
            about = subject.value
        elif isinstance(subject, BlankNode):
            about = "_:" + subject.value
        else:
            continue
        if isinstance(node, NamedNode):
            yield about, predicate, node.value
        elif isinstance(node, Literal):
            yield (
                about,
                predicate,
                Value(node.value, node.datatype.value, (node.language or "").lower()),
            )
        elif isinstance(node, BlankNode):
            yield about, predicate, "_:" + node.value
