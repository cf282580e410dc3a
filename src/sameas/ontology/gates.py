"""Gates before the parsers of JSON-LD and RDF/XML: well-formed, not too deep, no traps, nothing from elsewhere.

JSON-LD has few contexts and no remote one: one that is an address, or imports one, is refused before any parser sees
it, in whatever object, list or term definition it hides. An escaped key (`"\\u0040context"`) is the same key and is
found too.

In XML harmless entities, such as the namespace shorthands that ontology editors write, pass: internal, not nested, few,
and bounded in what all their uses add up to. Refused: external entities and document types, parameter entities,
entities that use entities, and elements nested too deep. Malformed XML is reported with line and column.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

import msgspec

from sameas.ontology.errors import OntologyRefusedError, OntologySyntaxError, OntologyTooLargeError
from sameas.ontology.limits import Limits

_BYTE = re.compile(r"\(byte (\d+)\)")
_COPY_CONTEXT = "Copy the context's content into the file; nothing is ever fetched"

_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "latin-1": "latin-1",
    "latin1": "latin-1",
    "iso-8859-15": "iso8859-15",
    "windows-1252": "cp1252",
    "utf-16": "utf-16",
}
_DECLARATION = re.compile(r"""^\s*<\?xml\b[^>]*?\?>""")
_ENCODING = re.compile(r"""\bencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_NUMERIC = re.compile(r"&#(?:[0-9]+|x[0-9A-Fa-f]+);")
_WRITE_OUT = "Replace the entities by the text that they stand for"


def position(data: bytes, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte."""
    before = data[:offset]
    start = before.rfind(b"\n") + 1
    return before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1


def decode_json(data: bytes, *, limits: Limits, file: str | None) -> Any:
    """The JSON value; an error carries line and column."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        found = _BYTE.search(str(error))
        line, column = position(data, int(found.group(1)) if found else len(data))
        what = _BYTE.sub("", str(error)).strip()
        raise OntologySyntaxError(what, file=file, line=line, column=column, todo="Correct the JSON there") from error
    except UnicodeDecodeError as error:
        # The error counts from the start of the string that it is in.
        line, column = position(data, _bad_byte(data))
        raise OntologySyntaxError(
            what="not UTF-8", file=file, line=line, column=column, todo="Save the file as UTF-8"
        ) from error
    except RecursionError as error:
        raise _too_deep(limits, file) from error


def guard_jsonld(data: bytes, *, limits: Limits, file: str | None) -> bytes:
    """The same document without a byte-order mark, or an error."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    level = [_Place(decode_json(data, limits=limits, file=file), terms=0, is_scoped=False)]
    depth = work = 0
    while level:
        depth += 1
        if depth > limits.nesting:
            raise _too_deep(limits, file)
        below: list[_Place] = []
        for place in level:
            found = _enter(place, data, file)
            # A parser copies the context in force wherever a new one begins.
            work += found.terms if found is not place else place.terms * place.is_scoped
            if work > limits.context_steps:
                raise OntologyTooLargeError(
                    what=f"the contexts take more than {limits.context_steps} steps",
                    file=file,
                    todo="Use one context at the top of the file",
                )
            value = found.value
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            below.extend(_Place(one, found.terms, found.is_scoped) for one in inner)
        level = below
    return data


def _bad_byte(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return 0


class _Place(NamedTuple):
    """A value, how many terms the contexts around it have, and whether terms bring contexts of their own."""

    value: Any
    terms: int
    is_scoped: bool


def _enter(place: _Place, data: bytes, file: str | None) -> _Place:
    """The same place with the context that begins there, if one does."""
    value, terms, is_scoped = place
    if not isinstance(value, dict) or "@context" not in value:
        return place
    stack = [value["@context"]]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            raise _remote(one, data, file)
        if isinstance(one, list):
            stack.extend(one)
        elif isinstance(one, dict):
            if isinstance(one.get("@import"), str):
                raise _remote(one["@import"], data, file)
            terms += len(one)
            is_scoped = is_scoped or any(isinstance(term, dict) and "@context" in term for term in one.values())
    return _Place(value, terms, is_scoped)


def _remote(address: str, data: bytes, file: str | None) -> OntologyRefusedError:
    offset = data.find(json.dumps(address, ensure_ascii=False).encode("utf-8", "replace"))
    line, column = position(data, offset) if offset >= 0 else (1, 1)
    return OntologyRefusedError(
        f"the context {address} is not in the file", file=file, line=line, column=column, todo=_COPY_CONTEXT
    )


def _too_deep(limits: Limits, file: str | None) -> OntologyTooLargeError:
    return OntologyTooLargeError(
        f"values are nested more than {limits.nesting} deep",
        file=file,
        todo="Flatten the file, for instance by converting it to Turtle",
    )


def guard_xml(data: bytes, *, limits: Limits, file: str | None) -> bytes:
    """The same document in UTF-8, or an error; nothing in it can expand beyond the limits afterwards."""
    data = _as_utf8(data, file)
    _Gate(data, limits, file).check()
    return data


def _as_utf8(data: bytes, file: str | None) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        name = "utf-16"
    else:
        data = data.removeprefix(b"\xef\xbb\xbf")
        declaration = _DECLARATION.match(data[:1024].decode("latin-1"))
        encoding = _ENCODING.search(declaration.group()) if declaration else None
        name = encoding.group(1).lower() if encoding else "utf-8"
    codec = _ENCODINGS.get(name)
    if codec is None:
        raise OntologyRefusedError(
            what=f"encoding {name} is not read", file=file, line=1, column=1, todo="Save the file as UTF-8"
        )
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise OntologySyntaxError(
            what=f"byte {data[error.start]:#04x} is not {name}",
            file=file,
            line=before.count(b"\n") + 1,
            column=error.start - (before.rfind(b"\n") + 1) + 1,
            todo="Save the file as UTF-8",
        ) from error
    if codec in ("utf-8", "ascii"):
        return data
    declared = _DECLARATION.match(text)
    if declared:
        # Blanks instead of the declaration: later positions in messages stay right.
        blank = re.sub(r"[^\n]", " ", declared.group())
        text = blank + text[declared.end() :]
        text = text.lstrip() if "\n" not in blank else text
    return text.lstrip("\ufeff").encode("utf-8")


class _Gate:
    """One run of expat over a document, with a handler for each thing that is refused."""

    def __init__(self, data: bytes, limits: Limits, file: str | None) -> None:
        self._data = data
        self._limits = limits
        self._file = file
        self._depth = 0
        self._entities: dict[str, str] = {}
        self._parser = expat.ParserCreate()

    def check(self) -> None:
        parser = self._parser
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.EndDoctypeDeclHandler = self._expansion
        parser.StartElementHandler = self._open
        parser.EndElementHandler = self._close
        parser.ExternalEntityRefHandler = self._external
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise OntologySyntaxError(
                what=f"not well-formed XML: {expat.ErrorString(error.code)}",
                file=self._file,
                line=error.lineno,
                column=error.offset + 1,
                todo="Correct the XML there",
            ) from error

    def _refuse(self, what: str, todo: str = _WRITE_OUT) -> NoReturn:
        raise OntologyRefusedError(
            what,
            file=self._file,
            line=self._parser.CurrentLineNumber,
            column=self._parser.CurrentColumnNumber + 1,
            todo=todo,
        )

    def _doctype(self, name: str, system: str | None, public: str | None, has_internal: bool) -> None:
        if system is not None or public is not None:
            self._refuse(
                f"the document type {name} is defined elsewhere and nothing is fetched",
                "Remove the address from the DOCTYPE",
            )

    def _entity(  # expat's own signature
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        base: str | None,
        system: str | None,
        public: str | None,
        notation: str | None,
    ) -> None:
        if is_parameter:
            self._refuse(f"parameter entity %{name}; is not allowed")
        if value is None:
            self._refuse(f"entity &{name}; is defined elsewhere and nothing is fetched")
        if "&" in _NUMERIC.sub("", value):
            self._refuse(f"entity &{name}; uses another entity")
        self._entities.setdefault(name, value)
        if len(self._entities) > self._limits.entities:
            self._refuse(f"more than {self._limits.entities} entities are declared")

    def _expansion(self) -> None:
        total = 0
        for name, value in self._entities.items():
            total += self._data.count(f"&{name};".encode()) * len(value.encode())
            if total > self._limits.entity_bytes:
                self._refuse(f"the entities expand to more than {self._limits.entity_bytes} bytes")

    def _external(self, context: str, base: str | None, system: str | None, public: str | None) -> int:
        self._refuse("an external entity is used and nothing is fetched")

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._limits.nesting:
            raise OntologyTooLargeError(
                what=f"elements are nested more than {self._limits.nesting} deep",
                file=self._file,
                line=self._parser.CurrentLineNumber,
                column=self._parser.CurrentColumnNumber + 1,
                todo="Flatten the file, for instance by converting it to Turtle",
            )

    def _close(self, name: str) -> None:
        self._depth -= 1
