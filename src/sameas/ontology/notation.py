"""Which notation a file is written in: by its extension where that is sure, by its first characters
otherwise.

Refuses what looks like an ontology and is not read: OWL functional and Manchester syntax, OWL/XML, HTML,
compressed files.
"""

import re
from typing import Literal

from sameas.ontology.errors import OntologyFormatError

Notation = Literal["turtle", "rdfxml", "jsonld", "ntriples", "nquads", "trig", "text2kgbench"]

BY_EXTENSION: dict[str, Notation] = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".nt": "ntriples",
    ".ntriples": "ntriples",
    ".nq": "nquads",
    ".nquads": "nquads",
    ".trig": "trig",
    ".jsonld": "jsonld",
}
# .owl, .rdf, .xml and .json are used for several notations each, so their content decides.
EXTENSIONS = frozenset({*BY_EXTENSION, ".owl", ".rdf", ".xml", ".json"})
CONVERT = "Convert it to Turtle first, for instance with Protege (save as) or ROBOT (robot convert)"
LOOK = 4096

_QUAD = re.compile(rb'(?:<[^>]*>|_:\S+)\s+<[^>]*>\s+(?:<[^>]*>|_:\S+|"(?:[^"\\]|\\.)*"\S*)\s+(?:<[^>]*>|_:\S+)\s*\.')
_COMMENT = re.compile(rb"\s*(?:#[^\n]*\n\s*)*")
_FUNCTIONAL = re.compile(rb"(?:Prefix|Ontology)\s*\(")
_MANCHESTER = re.compile(rb"(?:Prefix|Ontology):")
_XML_SKIP = re.compile(rb"\s*(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>\s*)*", re.DOTALL)
# An element without a namespace cannot be RDF/XML, and <a:b> alone is an IRI.
_XML = re.compile(rb"<(?:[?!]|html\b|[A-Za-z][\w.:-]*\s[^>]*xmlns)", re.IGNORECASE)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def detect_notation(data: bytes, *, extension: str = "", file: str | None = None) -> Notation:
    """The notation of the data; an extension that means one notation only is believed."""
    known = BY_EXTENSION.get(extension.lower())
    if known is not None and not data.startswith(b"\x1f\x8b"):
        return known
    return _sniff(data, file)


def _sniff(data: bytes, file: str | None) -> Notation:
    if data.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")):
        raise OntologyFormatError(what="the file is compressed", file=file, todo="Unpack it first")
    if data.startswith(_UTF16):
        return "rdfxml"
    text = data[:LOOK].removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return _json_like(text, data)
    if _XML.match(text):
        return _xml_like(data, file)
    start = _COMMENT.match(text)
    body = text[start.end() :] if start else text
    if _FUNCTIONAL.match(body):
        raise OntologyFormatError(what="OWL functional syntax is not read", file=file, todo=CONVERT)
    if _MANCHESTER.match(body) and not body.lower().startswith(b"prefix ") and b"Class:" in data:
        raise OntologyFormatError(what="OWL Manchester syntax is not read", file=file, todo=CONVERT)
    if _QUAD.match(body):
        return "nquads"
    # TriG reads all that Turtle and N-Triples can say.
    return "trig"


def _json_like(text: bytes, data: bytes) -> Notation:
    inside = text[1:].lstrip()
    if text.startswith(b"{") and inside.startswith((b'"', b"}")):
        return "text2kgbench" if b'"concepts"' in data and b'"relations"' in data else "jsonld"
    if text.startswith(b"[") and (inside.startswith((b"{", b'"')) or inside.rstrip() == b"]"):
        return "jsonld"
    return "trig"


def _xml_like(data: bytes, file: str | None) -> Notation:
    head = data.removeprefix(b"\xef\xbb\xbf")[: 16 * LOOK]
    skipped = _XML_SKIP.match(head)
    root = head[skipped.end() :] if skipped else head
    if root[:6].lower() == b"<html>" or head[:LOOK].lower().lstrip().startswith(b"<!doctype html"):
        raise OntologyFormatError(
            what="this is a web page", file=file, todo="Download the RDF file that the page describes"
        )
    if root.startswith((b"<Ontology", b"<owl:Ontology ")):
        raise OntologyFormatError(what="OWL/XML is not read", file=file, todo=CONVERT)
    return "rdfxml"
