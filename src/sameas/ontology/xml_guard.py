"""A gate before the RDF/XML parser: well-formed, no traps, in UTF-8.

Harmless entities, such as the namespace shorthands that ontology editors write, pass: internal, not nested,
few, and bounded in what all their uses add up to. Refused: external entities and document types, parameter
entities, entities that use entities, and elements nested too deep. Malformed XML is reported with line and
column.
"""

import re
from typing import NoReturn
from xml.parsers import expat

from sameas.ontology.errors import OntologyRefusedError, OntologySyntaxError, OntologyTooLargeError
from sameas.ontology.limits import Limits

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
_INLINE = "Replace the entities by the text that they stand for"


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

    def _refuse(self, what: str, todo: str = _INLINE) -> NoReturn:
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
